/**
 * State of a webhook: on or off, with the last answer and the next try while it fails.
 *
 * @module
 */
import type { Webhook } from "../api.ts";
import { Elapsed, Time, withLocalTimes } from "./time.tsx";

export function WebhookState({ webhook }: { webhook: Webhook }) {
  const { enabled, disabled_reason, failing_since, last_failure, next_attempt_at } = webhook;
  if (!enabled) return <span class="bad">○ off{disabled_reason !== null && `: ${withLocalTimes(disabled_reason)}`}</span>;
  if (failing_since === null) return <span class="good">● on</span>;
  return (
    <span class="bad">
      ✗ failing for <Elapsed since={failing_since} />
      {last_failure !== null && `: ${last_failure.response_code ?? "no answer"}`}
      {next_attempt_at !== null && (
        <>
          , next try <Time at={next_attempt_at} />
        </>
      )}
    </span>
  );
}
