/**
 * Reads a request's body: within its limit, as UTF-8, as one JSON object, not nested too deep to be handled.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { jsonDepth, toJson } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { firstCodePoints } from "../lib/text.ts";
import type { Arrival } from "./arrivals.ts";

export interface Body {
  /** As they came, for the fingerprint of an idempotent request. */
  bytes: Uint8Array;
  value: Record<string, unknown>;
}

const EMPTY: Body = { bytes: new Uint8Array(0), value: {} };
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Refuses, before anything of it is read, a body that says it is too large. */
export function refuseDeclaredBody(headers: Headers, maxBytes: number): void {
  const declared = headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge(maxBytes);
}

/** @param arrival - holds the memory that the body takes, until the caller ends it */
export async function readBody(request: Request, maxBytes: number, arrival: Arrival): Promise<Body> {
  // Asking for `body` makes a stream of it, which one that says its length does not need.
  const declared = request.headers.get("content-length");
  if (declared === "0" || (declared === null && request.body === null)) return EMPTY;
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new ApiError("invalid_request", `A body must not be compressed; Content-Encoding is ${encoding.slice(0, 40)}.`, {
      param: "Content-Encoding",
    });
  }
  const bytes = await readBytes(request, declared, maxBytes, arrival);
  if (bytes.byteLength === 0) return EMPTY;
  const type = request.headers.get("content-type") ?? "";
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new ApiError(
      "invalid_request",
      `The body must be JSON with Content-Type: application/json; got ${type === "" ? "none" : type.slice(0, 80)}.`,
      {
        param: "Content-Type",
      },
    );
  }
  return { bytes, value: parse(bytes) };
}

/** The body of a call that comes without HTTP: what it would be if it had been sent. */
export function bodyOf(value: unknown, maxBytes: number): Body {
  if (value === undefined) return EMPTY;
  const bytes = new TextEncoder().encode(toJson(value));
  if (bytes.byteLength > maxBytes) throw tooLarge(maxBytes);
  return { bytes, value: parse(bytes) };
}

/** Reads a body whose length was declared at once, since it was found short enough; counts any other as it comes. */
async function readBytes(request: Request, declared: string | null, maxBytes: number, arrival: Arrival): Promise<Uint8Array> {
  try {
    if (declared === null) return await arrival.inTime(gather(request.body as ReadableStream<Uint8Array>, maxBytes, arrival), maxBytes);
    const length = Number(declared);
    arrival.reserve(length);
    return new Uint8Array(await arrival.inTime(request.arrayBuffer(), length));
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // The client has hung up or was cut off as too slow: no fault of ours, and nobody reads this.
    throw new ApiError("invalid_request", "The connection ended before the body was complete.", { cause: error });
  }
}

const FIRST_BUFFER_BYTES = 4_096;

/** Copies chunks into one buffer that doubles when it is full: a chunk of one byte is an object of a hundred. */
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
  const { depth, hasUnusualNumbers } = scan(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ApiError("invalid_request", `The body must be JSON${error instanceof Error ? whatParserSays(error) : ""}.`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ApiError(
      "invalid_request",
      `The body must be a JSON object; got ${Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`}.`,
    );
  }
  const object = value as Record<string, unknown>;
  if (depth > LIMITS.jsonDepthMax + 1) refuseDeepField(object);
  if (hasUnusualNumbers) refuseChangedNumbers(text);
  return object;
}

/** Bun's words without the name of its parser; they can hold as much of the body as they like. */
function whatParserSays(error: Error): string {
  return `: ${error.message.replace("JSON Parse error: ", "").slice(0, 120)}`;
}

/** Whole numbers of fewer digits are all exact: 2^53 is the first that is not, and has 16. */
const INEXACT_DIGITS = 16;

/**
 * One pass over the bytes for what needs a closer look, which nearly no body does: how deep objects and arrays are nested,
 * and whether there is a number that a double might not hold, for the digits before its point or for its exponent.
 */
function scan(bytes: Uint8Array): { depth: number; hasUnusualNumbers: boolean } {
  let open = 0;
  let depth = 0;
  let digits = 0;
  let hasUnusualNumbers = false;
  let inFraction = false;
  let inString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (inString) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inString = false;
    } else if (byte >= 0x30 && byte <= 0x39) {
      if (++digits === INEXACT_DIGITS && !inFraction) hasUnusualNumbers = true;
    } else {
      if (digits > 0 && (byte === 0x65 || byte === 0x45) && bytes[i + 1] !== 0x2d) hasUnusualNumbers = true;
      digits = 0;
      inFraction = byte === 0x2e;
      if (byte === 0x22) inString = true;
      else if (byte === 0x7b || byte === 0x5b) depth = Math.max(depth, ++open);
      else if (byte === 0x7d || byte === 0x5d) open--;
    }
  }
  return { depth, hasUnusualNumbers };
}

function refuseDeepField(object: Record<string, unknown>): void {
  const deepest = Object.entries(object)
    .map(([name, value]) => ({ name, depth: jsonDepth(value) }))
    .find(({ depth }) => depth > LIMITS.jsonDepthMax);
  if (deepest === undefined) return;
  const param = shown(deepest.name);
  throw new ApiError("invalid_request", `${param} must nest at most ${LIMITS.jsonDepthMax} levels; got ${deepest.depth}.`, { param });
}

/** A field of the caller's own can have a name of any length. */
function shown(name: string, length: number = SHOWN_LENGTH): string {
  return name.length <= length ? name : `${firstCodePoints(name, length)}…`;
}
const SHOWN_LENGTH = 64;
const PATH_SHOWN_LENGTH = 256;

/**
 * Refuses the first number that would not come back as it was sent: a whole one that a double does not hold exactly, and one
 * that it takes for infinite. Digits behind a point may be rounded, as everywhere.
 *
 * @param text - valid JSON
 */
function refuseChangedNumbers(text: string): void {
  for (const { number, path } of numbersIn(text)) {
    const value = Number(number);
    if (!Number.isFinite(value)) throw changedNumber(path(), "has a number too large for JSON to keep.");
    if (/^-?\d+$/.test(number) && !isKept(number, value)) {
      const shownNumber = number.slice(0, SHOWN_LENGTH);
      throw changedNumber(path(), `must be a number that can be kept exactly; ${shownNumber} would become ${value}. Send it as text.`);
    }
  }
}

function changedNumber(path: string, problem: string): ApiError {
  return new ApiError("invalid_request", `${path === "" ? "The body" : path} ${problem}`, { param: path });
}

/** A double that is written with as few digits as tell it from others (54099388594620730) is no other number when it comes back. */
function isKept(number: string, value: number): boolean {
  return number.length < INEXACT_DIGITS || String(value) === number || BigInt(number) === BigInt(value);
}

const OF_A_NUMBER = new Set(Array.from("0123456789.eE+-", (sign) => sign.charCodeAt(0)));

/** The numbers of a JSON text as they are written, and where each stands: `state.orders.0.id`. */
function* numbersIn(text: string): Generator<{ number: string; path: () => string }> {
  /** For each object and array that is open the key or the place that was read last. */
  const keys: (string | number)[] = [];
  const path = () => shown(keys.join("."), PATH_SHOWN_LENGTH);
  for (let i = 0; i < text.length; i++) {
    const sign = text[i] as string;
    if (sign === "{") keys.push("");
    else if (sign === "[") keys.push(0);
    else if (sign === "}" || sign === "]") keys.pop();
    else if (sign === '"') {
      const start = i;
      while (text[++i] !== '"') if (text[i] === "\\") i++;
      // A string before a colon is a key.
      if (typeof keys.at(-1) === "string" && isBeforeColon(text, i + 1))
        keys[keys.length - 1] = JSON.parse(text.slice(start, i + 1)) as string;
    } else if (sign === ",") {
      const last = keys.at(-1);
      if (typeof last === "number") keys[keys.length - 1] = last + 1;
    } else if (sign === "-" || (sign >= "0" && sign <= "9")) {
      const start = i;
      while (i + 1 < text.length && OF_A_NUMBER.has(text.charCodeAt(i + 1))) i++;
      yield { number: text.slice(start, i + 1), path };
    }
  }
}

function isBeforeColon(text: string, from: number): boolean {
  let at = from;
  while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at++;
  return text[at] === ":";
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError("payload_too_large", `The body must be at most ${maxBytes} bytes.`);
}
