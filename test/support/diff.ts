/**
 * The way back from a diff, to see that it says all.
 *
 * @module
 */
import type { JsonObject } from "../../src/lib/json.ts";
import type { Diff } from "../../src/sessions/diff.ts";

/** `applyDiff(before, diffObjects(before, after))` has the keys and values of `after`. */
export function applyDiff(before: JsonObject, { added, removed, modified }: Diff): JsonObject {
  const after = new Map(Object.entries(before));
  for (const key of Object.keys(removed)) after.delete(key);
  for (const [key, value] of Object.entries(added)) after.set(key, value);
  for (const [key, { to }] of Object.entries(modified)) after.set(key, to);
  return Object.fromEntries(after);
}
