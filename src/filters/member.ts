/**
 * Members of a record by their paths, and when two values are the same (pure).
 *
 * @module
 */
import type { JsonObject, JsonValue } from "../lib/json.ts";

export function memberAt(value: JsonObject, path: readonly string[]): JsonValue | undefined {
  let at: JsonValue | undefined = value;
  for (const name of path) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

/** A member that is missing equals nothing, not even null. */
export function isEqual(value: JsonValue | undefined, wanted: JsonValue): boolean {
  return value !== undefined && (value === wanted || Bun.deepEquals(value, wanted));
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isScalar(value: JsonValue | undefined): value is string | number | boolean | null {
  return value !== undefined && (typeof value !== "object" || value === null);
}
