/**
 * Values of frameworks as documents hold them: JSON, and bytes in base64.
 *
 * @module
 */
import type { JsonObject, JsonValue } from "../../client/index.ts";

/** Bytes are an object with this member alone, … */
const BYTES = "$bytes";
/** … and an object of the framework that looks so is the only member of another one. */
const OBJECT = "$object";

/** Returns a value as JSON has it: with bytes as text, and without what JSON leaves out. */
export function toStored(value: object): JsonObject {
  return stored(value) as JsonObject;
}

/** Returns what `toStored` was given. */
export function fromStored(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(fromStored);
  const members = Object.entries(value) as [string, unknown][];
  const [[name, member] = []] = members;
  if (members.length === 1 && name === BYTES) return fromBase64(member as string);
  const own = members.length === 1 && name === OBJECT ? (Object.entries(member as object) as [string, unknown][]) : members;
  return Object.fromEntries(own.map(([name, member]) => [name, fromStored(member)]));
}

export function isScalar(value: unknown): value is string | number | boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

function stored(value: unknown): JsonValue | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value === "function" || typeof value === "symbol" || typeof value === "undefined") return undefined;
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return { [BYTES]: toBase64(value) };
  if ("toJSON" in value && typeof value.toJSON === "function") return stored((value.toJSON as () => unknown)());
  if (Array.isArray(value)) return value.map((member) => stored(member) ?? null);
  const members = Object.entries(value).flatMap(([name, member]): [string, JsonValue][] => {
    const kept = stored(member);
    return kept === undefined ? [] : [[name, kept]];
  });
  const object = Object.fromEntries<JsonValue>(members);
  return members.length === 1 && [BYTES, OBJECT].includes(members[0]?.[0] ?? "") ? { [OBJECT]: object } : object;
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  // Not all at once: there is a limit to the arguments of a function.
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

export function fromBase64(base64: string): Uint8Array {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
