/**
 * Differences between two JSON objects, key by key at the top level.
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
  const difference: Diff = { added: {}, removed: {}, modified: {} };
  for (const key of Object.keys(after)) {
    const [from, to] = [Object.hasOwn(before, key) ? before[key] : undefined, after[key] as JsonValue];
    if (from === undefined) setOwn(difference.added, key, to);
    else if (from !== to && !(isNested(from) && Bun.deepEquals(from, to)) && !isSame(from, to))
      setOwn(difference.modified, key, { from, to });
  }
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) setOwn(difference.removed, key, before[key] as JsonValue);
  return difference;
}

/** `__proto__` becomes a key like any other. */
function setOwn<Value>(object: { [key: string]: Value }, key: string, value: Value): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  else object[key] = value;
}

/** Compares as JSON: `deepEquals` tells -0 from 0, which JSON writes the same. */
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
