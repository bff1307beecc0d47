/**
 * Reads a request's body: within its limit, as UTF-8, as one JSON object, not nested too deep to be handled.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { jsonDepth } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";

export interface Body {
  /** As they came, for the fingerprint of an idempotent request. */
  bytes: Uint8Array;
  value: Record<string, unknown>;
}

const EMPTY: Body = { bytes: new Uint8Array(0), value: {} };
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** Refuses, before anything of it is read, a body that says it is too large or is compressed. */
export function refuseDeclaredBody(headers: Headers, maxBytes: number): void {
  const declared = headers.get("content-length");
  if (declared !== null && Number(declared) > maxBytes) throw tooLarge(maxBytes);
}

export async function readBody(request: Request, maxBytes: number): Promise<Body> {
  if (request.body === null) return EMPTY;
  const encoding = request.headers.get("content-encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") {
    throw new ApiError("invalid_request", `A body must not be compressed; Content-Encoding is ${encoding.slice(0, 40)}.`, {
      param: "Content-Encoding",
    });
  }
  const bytes = await readBytes(request, maxBytes);
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

/** A body whose length was declared is read at once, since it was found short enough; any other is counted as it comes. */
async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (request.headers.has("content-length")) return new Uint8Array(await request.arrayBuffer());
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body as ReadableStream<Uint8Array>) {
    length += chunk.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  let text: string;
  try {
    text = UTF8.decode(bytes);
  } catch {
    throw new ApiError("invalid_request", "The body must be UTF-8.");
  }
  const deep = nesting(bytes) > LIMITS.jsonDepthMax + 1;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ApiError(
      "invalid_request",
      `The body must be JSON: ${error instanceof Error ? error.message : "it is not"}.`.replace(/\.\.$/, "."),
    );
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ApiError(
      "invalid_request",
      `The body must be a JSON object; got ${Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`}.`,
    );
  }
  const object = value as Record<string, unknown>;
  if (deep) refuseDeepField(object);
  if (MAYBE_INFINITE.test(text)) refuseInfinity(object);
  return object;
}

/** Objects and arrays inside each other, counted on the bytes, so that the parser meets nothing it cannot handle. */
function nesting(bytes: Uint8Array): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    if (inString) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) inString = true;
    else if (byte === 0x7b || byte === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (byte === 0x7d || byte === 0x5d) depth--;
  }
  return deepest;
}

function refuseDeepField(object: Record<string, unknown>): void {
  const deepest = Object.entries(object)
    .map(([name, value]) => ({ name, depth: jsonDepth(value) }))
    .find(({ depth }) => depth > LIMITS.jsonDepthMax);
  if (deepest === undefined) return;
  throw new ApiError("invalid_request", `${deepest.name} must nest at most ${LIMITS.jsonDepthMax} levels; got ${deepest.depth}.`, {
    param: deepest.name,
  });
}

/** Only a number of hundreds of digits or a large exponent can be read as infinite. */
const MAYBE_INFINITE = /\d{309}|\d[eE]\+?\d{3}/;

/** JSON has no infinity: such a number would come back as null. */
function refuseInfinity(object: Record<string, unknown>): void {
  for (const [name, member] of Object.entries(object)) {
    let level: unknown[] = [member];
    while (level.length > 0) {
      if (level.some((item) => typeof item === "number" && !Number.isFinite(item))) {
        throw new ApiError("invalid_request", `${name} has a number too large for JSON to keep.`, { param: name });
      }
      level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item) : []));
    }
  }
}

function tooLarge(maxBytes: number): ApiError {
  return new ApiError("payload_too_large", `The body must be at most ${maxBytes} bytes.`);
}
