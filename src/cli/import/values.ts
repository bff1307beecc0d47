/**
 * Values in exports of other programs: texts within the limits of the API, times in their several forms, names.
 *
 * @module
 */
import type { JsonObject, JsonValue } from "../../lib/json.ts";
import { LIMITS } from "../../lib/limits.ts";
import { isObject } from "../hook/transcript.ts";
import { parseInstant } from "../../lib/time.ts";
import { pastTime } from "./found.ts";

/** Unix seconds have fewer digits than this until the year 5138, milliseconds since 1973. */
const SECONDS_MAX = 1e11;
const DAY = /^\d{4}-\d\d-\d\d$/;
const HASHED_LENGTH = 40;
const TITLE_LENGTH_MAX = 500;
const REST_MEMBERS_MAX = 32;
const REST_TEXT_LENGTH_MAX = 500;

export function nonEmpty(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

/** Reads a time in seconds or milliseconds, or of ISO 8601, as Unix milliseconds. */
export function timeMs(value: unknown): number | undefined {
  if (typeof value === "string" && DAY.test(value)) return parseInstant(`${value}T00:00Z`);
  if (typeof value === "string") return /^\d+(\.\d+)?$/.test(value) ? timeMs(Number(value)) : parseInstant(value.replace(" ", "T"));
  if (typeof value !== "number" || value <= 0) return undefined;
  return Math.round(value < SECONDS_MAX ? value * 1_000 : value);
}

export function occurredAt(ms: number | undefined, now: number): { occurred_at?: string } {
  const time = ms === undefined ? undefined : pastTime(ms, now);
  return time === undefined ? {} : { occurred_at: time };
}

/** Returns a name as it is, or by its hash where it is too long. */
export function boundedName(name: string, lengthMax: number = LIMITS.externalIdLengthMax): string {
  const text = name.toWellFormed();
  return text.length <= lengthMax ? text : `${text.slice(0, lengthMax - HASHED_LENGTH - 1)}:${hashOf(text)}`.toWellFormed();
}

export function hashOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, HASHED_LENGTH);
}

/** Cuts a text into pieces of a length, at the end of a line or word where there is one; together they are the text. */
export function piecesOf(text: string, lengthMax: number): readonly string[] {
  const pieces: string[] = [];
  let from = 0;
  while (text.length - from > lengthMax) {
    const most = text.slice(from, from + lengthMax);
    const end = [most.lastIndexOf("\n"), most.lastIndexOf(" ")].find((at) => at > lengthMax / 2) ?? lengthMax - 1;
    const length = isHigh(most.charCodeAt(end)) ? end : end + 1;
    pieces.push(text.slice(from, from + length));
    from += length;
  }
  return [...pieces, text.slice(from)];
}

function isHigh(unit: number): boolean {
  return unit >= 0xd8_00 && unit <= 0xdb_ff;
}

/** Reads a line of JSON. @returns why it is no object, or that */
export function objectOfLine(text: string): string | JsonObject {
  try {
    const line: unknown = JSON.parse(text);
    return isObject(line) ? (line as JsonObject) : "is not an object";
  } catch {
    return "is not JSON";
  }
}

export function objectsIn(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? (value as unknown[]).flatMap((one) => (isObject(one) ? [one as JsonObject] : [])) : [];
}

/** A title as metadata have it, where there is one. */
export function titleOf(value: unknown): JsonObject {
  const title = nonEmpty(value);
  return title === undefined ? {} : { title: title.slice(0, TITLE_LENGTH_MAX).toWellFormed() };
}

/** Members of a record that have no place of their own: those that are no objects, and short. */
export function restOf(record: JsonObject, used: readonly string[]): JsonObject {
  const isKept = (value: JsonValue) =>
    typeof value === "number" ||
    typeof value === "boolean" ||
    (typeof value === "string" && value !== "" && value.length <= REST_TEXT_LENGTH_MAX);
  const rest = Object.entries(record).filter(([name, value]) => !used.includes(name) && name.length <= 64 && isKept(value));
  return rest.length === 0 ? {} : { source_data: Object.fromEntries(rest.slice(0, REST_MEMBERS_MAX)) };
}
