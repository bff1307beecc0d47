/**
 * Whether a webhook is on, and how it goes.
 *
 * @module
 */
import type { Webhook } from "../api.ts";
import { Elapsed } from "./time.tsx";

export function WebhookState({ webhook: { enabled, disabled_reason, failing_since } }: { webhook: Webhook }) {
  if (!enabled) return <span class="bad">○ off{disabled_reason !== null && `: ${disabled_reason}`}</span>;
  if (failing_since === null) return <span class="good">● on</span>;
  return (
    <span class="bad">
      ✗ failing for <Elapsed since={failing_since} />
    </span>
  );
}
