/**
 * What changed between two JSON objects, key by key at the top level.
 *
 * @module
 */
import type { JsonObject, JsonValue } from "../lib/json.ts";

/** `modified` holds what a key was and what it is; values are the same when their JSON says the same, whatever the order of its keys. */
export interface Diff {
  added: JsonObject;
  removed: JsonObject;
  modified: { [key: string]: { from: JsonValue; to: JsonValue } };
}

export function isEmptyDiff({ added, removed, modified }: Diff): boolean {
  return [added, removed, modified].every((part) => Object.keys(part).length === 0);
}

export function diffObjects(before: JsonObject, after: JsonObject): Diff {
  const added: [string, JsonValue][] = [];
  const removed: [string, JsonValue][] = [];
  const modified: [string, { from: JsonValue; to: JsonValue }][] = [];
  for (const [key, to] of Object.entries(after)) {
    const from = Object.hasOwn(before, key) ? before[key] : undefined;
    if (from === undefined) added.push([key, to]);
    else if (from !== to && !Bun.deepEquals(from, to) && !isSame(from, to)) modified.push([key, { from, to }]);
  }
  for (const [key, from] of Object.entries(before)) {
    if (!Object.hasOwn(after, key)) removed.push([key, from]);
  }
  // Built from entries, so that `__proto__` becomes a key like any other.
  return { added: Object.fromEntries(added), removed: Object.fromEntries(removed), modified: Object.fromEntries(modified) };
}

/** What `deepEquals` calls different, because it tells -0 from 0, can still be written the same in JSON. */
function isSame(from: JsonValue, to: JsonValue): boolean {
  if (from === to) return true;
  if (!isNested(from) || !isNested(to) || Array.isArray(from) !== Array.isArray(to)) return false;
  const members = Object.entries(from);
  if (members.length !== Object.keys(to).length) return false;
  return members.every(([key, value]) => Object.hasOwn(to, key) && isSame(value, to[key] as JsonValue));
}

/** An array is taken as an object here, with its places for keys. */
function isNested(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null;
}
