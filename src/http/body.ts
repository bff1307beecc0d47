/**
 * Reads a request's body: within its limit, as UTF-8, as one JSON object, not nested too deep to be handled.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { jsonDepth } from "../lib/json.ts";
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

/** The most bytes that the body of a request can have. */
export function bodyLengthMax(headers: Headers, maxBytes: number): number {
  const declared = headers.get("content-length");
  return declared === null ? maxBytes : Number(declared);
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
  const bytes = await readBytes(request, maxBytes, arrival);
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

/** Reads a body whose length was declared at once, since it was found short enough; counts any other as it comes. */
async function readBytes(request: Request, maxBytes: number, arrival: Arrival): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  try {
    if (declared === null) return await arrival.inTime(gather(request.body as ReadableStream<Uint8Array>, maxBytes, arrival));
    arrival.reserve(Number(declared));
    return new Uint8Array(await arrival.inTime(request.arrayBuffer()));
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
  const { depth, hasLargeNumbers } = scan(bytes);
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
  if (hasLargeNumbers) refuseInfinity(object);
  return object;
}

/** Bun's words without the name of its parser; they can hold as much of the body as they like. */
function whatParserSays(error: Error): string {
  return `: ${error.message.replace("JSON Parse error: ", "").slice(0, 120)}`;
}

/** The largest number there is, 1.8e308, has so many; without an exponent no shorter one is infinite. */
const LARGE_NUMBER_DIGITS = 309;

/**
 * One pass over the bytes for what needs a closer look, which nearly no body does: how deep objects and arrays are nested,
 * and whether there is a number that could be read as infinite, for its digits or for its exponent.
 */
function scan(bytes: Uint8Array): { depth: number; hasLargeNumbers: boolean } {
  let open = 0;
  let depth = 0;
  let digits = 0;
  let hasLargeNumbers = false;
  let inString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (inString) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inString = false;
    } else if (byte >= 0x30 && byte <= 0x39) {
      if (++digits === LARGE_NUMBER_DIGITS) hasLargeNumbers = true;
    } else {
      if (digits > 0 && (byte === 0x65 || byte === 0x45) && bytes[i + 1] !== 0x2d) hasLargeNumbers = true;
      digits = 0;
      if (byte === 0x22) inString = true;
      else if (byte === 0x7b || byte === 0x5b) depth = Math.max(depth, ++open);
      else if (byte === 0x7d || byte === 0x5d) open--;
    }
  }
  return { depth, hasLargeNumbers };
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
function shown(name: string): string {
  return name.length <= SHOWN_LENGTH ? name : `${firstCodePoints(name, SHOWN_LENGTH)}…`;
}
const SHOWN_LENGTH = 64;

/** JSON has no infinity: such a number would come back as null. */
function refuseInfinity(object: Record<string, unknown>): void {
  for (const [name, member] of Object.entries(object)) {
    let level: unknown[] = [member];
    while (level.length > 0) {
      if (level.some((item) => typeof item === "number" && !Number.isFinite(item))) {
        throw new ApiError("invalid_request", `${shown(name)} has a number too large for JSON to keep.`, { param: shown(name) });
      }
      level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
    }
  }
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError("payload_too_large", `The body must be at most ${maxBytes} bytes.`);
}
