/**
 * What a change of the settings says in its trace. Pure.
 *
 * @module
 */
import { toJson } from "../lib/json.ts";
import { withoutQuery } from "../lib/urls.ts";
import type { InForce } from "./settings.ts";

/** Before and after, without secrets. */
interface Change {
  from: unknown;
  to: unknown;
}

/**
 * The settings that a change has set, taken back or given another value, by name.
 *
 * @example
 * changedSettings(before, after);
 * // { "trace_retention_days": { from: 365, to: 400 }, "embedding.api_key": { from: { set: false }, to: { set: true } } }
 */
export function changedSettings(before: InForce, after: InForce): Record<string, Change> {
  const [old, now] = [before.entries(), after.entries()];
  const changed = Object.entries(now).filter(
    ([name, entry]) => toJson([old[name]?.set, old[name]?.value]) !== toJson([entry.set, entry.value]),
  );
  return Object.fromEntries(changed.map(([name, { value }]) => [name, { from: shown(name, old[name]?.value), to: shown(name, value) }]));
}

/** Shows of the provider's key only whether there is one, and its URL without the query, which can hold a key. */
function shown(name: string, value: unknown): unknown {
  if (name === "embedding.api_key") return { set: value !== undefined };
  return name === "embedding.base_url" && typeof value === "string" ? withoutQuery(value) : (value ?? null);
}
