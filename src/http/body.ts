/**
 * Reads a request's body: within its limit, as UTF-8, as one JSON object that is not nested too deep.
 *
 * @module
 */
import { ApiError, messageOf } from "../lib/errors.ts";
import { jsonDepth, toJson } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { firstCodePoints } from "../lib/text.ts";
import type { Arrival } from "./arrivals.ts";
import { unpacked, unpackedBytesMax } from "./gzip.ts";

export interface Body {
  /** As sent, or as it comes out of gzip, for the fingerprint of an idempotent request. */
  bytes: Uint8Array;
  value: Record<string, unknown>;
}

const EMPTY: Body = { bytes: new Uint8Array(0), value: {} };
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Refuses a body by its headers if its declared length is too large. */
export function refuseDeclaredBody(headers: Headers, maxBytes: number): void {
  const declared = headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge(maxBytes);
}

/** @param arrival - holds the memory of the body until the caller ends it */
export async function readBody(request: Request, maxBytes: number, arrival: Arrival): Promise<Body> {
  // Reading `request.body` makes a stream, which a body of declared length does not need.
  const declared = request.headers.get("content-length");
  if (declared === "0" || (declared === null && request.body === null)) return EMPTY;
  const encoding = encodingOf(request.headers);
  const sent = await readBytes(request, declared, maxBytes, arrival);
  const bytes = encoding === "identity" || sent.byteLength === 0 ? sent : await unpackedBody(sent, maxBytes, arrival);
  if (bytes.byteLength === 0) return EMPTY;
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json\s*(;|$)/i.test(type)) throw wrongType("JSON with Content-Type: application/json", type);
  return { bytes, value: parse(bytes) };
}

/** Reads the body of a form, as the endpoints of OAuth have it. */
export async function readForm(request: Request, maxBytes: number, arrival: Arrival): Promise<URLSearchParams> {
  const declared = request.headers.get("content-length");
  if (declared === "0" || (declared === null && request.body === null)) return new URLSearchParams();
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type) || encodingOf(request.headers) !== "identity")
    throw wrongType("a form with Content-Type: application/x-www-form-urlencoded", type);
  return new URLSearchParams(new TextDecoder().decode(await readBytes(request, declared, maxBytes, arrival)));
}

function wrongType(expected: string, type: string): ApiError {
  return new ApiError("invalid_request", `The body must be ${expected}; got ${type === "" ? "none" : type.slice(0, 80)}.`, {
    param: "Content-Type",
  });
}

function encodingOf(headers: Headers): "identity" | "gzip" {
  const encoding = headers.get("content-encoding") ?? "identity";
  const known = encoding.toLowerCase();
  if (known === "identity" || known === "gzip") return known;
  throw wrongEncoding(`A body may be compressed by gzip alone, once; Content-Encoding is ${encoding.slice(0, 40)}.`);
}

/** Memory is taken for the most that can come out, before anything does. */
async function unpackedBody(sent: Uint8Array, maxBytes: number, arrival: Arrival): Promise<Uint8Array> {
  const most = unpackedBytesMax(sent.byteLength, maxBytes);
  arrival.reserve(sent.byteLength + most);
  const bytes = await unpacked(sent, most);
  if (bytes === "too large") throw tooLarge(maxBytes, " as it comes out of gzip");
  if ("problem" in bytes) throw wrongEncoding(`The body must be gzip, as its Content-Encoding says: ${bytes.problem}.`);
  arrival.shrink(bytes.byteLength);
  return bytes;
}

function wrongEncoding(message: string): ApiError {
  return new ApiError("invalid_request", message, { param: "Content-Encoding" });
}

/** The body of a call without HTTP, as if it had been sent. */
export function bodyOf(value: unknown, maxBytes: number): Body {
  if (value === undefined) return EMPTY;
  const bytes = new TextEncoder().encode(toJson(value));
  if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes);
  return { bytes, value: parse(bytes) };
}

/** Reads a body of declared length, which was checked, in one piece, and counts any other as it arrives. */
async function readBytes(request: Request, declared: string | null, maxBytes: number, arrival: Arrival): Promise<Uint8Array> {
  try {
    if (declared === null) return await arrival.inTime(gather(request.body as ReadableStream<Uint8Array>, maxBytes, arrival), maxBytes);
    const length = Number(declared);
    arrival.reserve(length);
    return new Uint8Array(await arrival.inTime(request.arrayBuffer(), length));
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // The client has hung up or was cut off as too slow: nobody reads this.
    throw new ApiError("invalid_request", "The connection ended before the body was complete.", { cause: error });
  }
}

const FIRST_BUFFER_BYTES = 4_096;

/** Copies chunks into one buffer that doubles when it is full, since a chunk of one byte is an object of a hundred. */
async function gather(chunks: ReadableStream<Uint8Array>, maxBytes: number, arrival: Arrival): Promise<Uint8Array> {
  let buffer = new Uint8Array(0);
  let length = 0;
  for await (const chunk of chunks) {
    const needed = length + chunk.byteLength;
    if (needed > maxBytes) throw tooLarge(maxBytes);
    if (needed > buffer.length) {
      const larger = Math.min(maxBytes, Math.max(needed, buffer.length * 2, FIRST_BUFFER_BYTES));
      arrival.reserve(larger);
      const before = buffer;
      buffer = new Uint8Array(larger);
      buffer.set(before);
    }
    buffer.set(chunk, length);
    length = needed;
  }
  return buffer.subarray(0, length);
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    throw new ApiError("invalid_request", "The body must be UTF-8.");
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // Bun's words without the name of its parser; they can repeat as much of the body as they like.
    const reason = messageOf(error).replace("JSON Parse error: ", "").slice(0, 120);
    throw new ApiError("invalid_request", `The body must be JSON: ${reason}.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const found = Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`;
    throw new ApiError("invalid_request", `The body must be a JSON object; got ${found}.`);
  }
  const object = value as Record<string, unknown>;
  refuseUnusual(object, text);
  return object;
}

/**
 * Refuses an object that nests too deep, or has a number that would not come back as it was sent.
 *
 * @param text - of which it was parsed
 */
export function refuseUnusual(object: Record<string, unknown>, text: string): void {
  if (!isUnusual(object, LIMITS.jsonDepthMax + 1)) return;
  refuseDeepField(object);
  refuseChangedNumbers(text);
}

/** Checks whether a value nests more levels than that, or has a number so large that a double may not hold what was sent. */
function isUnusual(value: unknown, levels: number): boolean {
  if (typeof value === "number") return Math.abs(value) > Number.MAX_SAFE_INTEGER;
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  const members: unknown[] = Array.isArray(value) ? value : Object.values(value);
  for (const member of members) if (isUnusual(member, levels - 1)) return true;
  return false;
}

function refuseDeepField(object: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(object)) {
    const depth = jsonDepth(value);
    if (depth <= LIMITS.jsonDepthMax) continue;
    const param = shown(name, NAME_SHOWN_LENGTH);
    throw new ApiError("invalid_request", `${param} must nest at most ${LIMITS.jsonDepthMax} levels; got ${depth}.`, { param });
  }
}

/** A field of the caller's own can have a name of any length. */
function shown(name: string, length: number): string {
  return name.length <= length ? name : `${firstCodePoints(name, length)}…`;
}
const NAME_SHOWN_LENGTH = 64;
const PATH_SHOWN_LENGTH = 256;

/** The types of TypeScript do not know yet that the reviver gets the text of each number. */
type Reviver = (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown;
const parseJson = JSON.parse as (text: string, reviver: Reviver) => unknown;

/**
 * Refuses the first number that would not come back as it was sent: a whole one of which an answer would have other digits, and one
 * that becomes infinite. Digits behind a point may be rounded, as everywhere.
 *
 * @param text - valid JSON
 */
function refuseChangedNumbers(text: string): void {
  let problem: string | undefined;
  let path: string[] = [];
  // The object or array that `path` begins in: it is revived after its members, which adds its own key.
  let outermost: unknown;
  const extendPath = (key: string, holder: unknown) => {
    path = [key, ...path];
    outermost = holder;
  };
  try {
    parseJson(text, function (key, value, { source = "" }) {
      if (problem !== undefined) {
        if (value === outermost) extendPath(key, this);
      } else if (typeof value === "number") {
        problem = changeOf(source, value);
        if (problem !== undefined) extendPath(key, this);
      }
      return value;
    });
  } catch (cause) {
    // A value that a later one of the same name replaces is not in the body, but is read again here, with a stack.
    throw new ApiError("invalid_request", "The body nests too deep in a field that it names twice.", { cause });
  }
  if (problem === undefined) return;
  // The first key is that of the body itself.
  const param = shown(path.slice(1).join("."), PATH_SHOWN_LENGTH);
  throw new ApiError("invalid_request", `${param === "" ? "The body" : param} ${problem}`, { param });
}

/** Returns what is wrong with a number; undefined for one that an answer writes with the same digits, or with a point or an exponent. */
function changeOf(sent: string, value: number): string | undefined {
  if (!Number.isFinite(value)) return "has a number too large for JSON to keep.";
  if (!/^-?\d+$/.test(sent) || value === 0 || String(value) === sent) return undefined;
  return `must be a number that can be kept exactly; ${sent.slice(0, NAME_SHOWN_LENGTH)} would become ${value}. Send it as text.`;
}

function tooLarge(maxBytes: number, counted = ""): ApiError {
  return new ApiError("payload_too_large", `The body must be at most ${maxBytes} bytes${counted}.`);
}
