/**
 * Bodies in gzip: those of requests, whose limit holds for what comes out of them, and answers to those who ask for it.
 *
 * Large ones are compressed and decompressed on threads of the runtime, so that other requests are answered meanwhile.
 *
 * @module
 */
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { messageOf } from "../lib/errors.ts";

/** Deflate makes no more than that of a byte: a match of 258 in two bits. */
const EXPANSION_MAX = 1_032;
/** Smaller answers fit into few packets. */
const PACKED_BYTES_MIN = 4 * 1024;
/** Size below which compression takes less than half a millisecond and is not handed to another thread. */
const PACKED_AT_ONCE_BYTES = 64 * 1024;
/** The fastest: it makes answers of JSON a quarter to a seventh of their size, in a third of the time of the default. */
const LEVEL = 1;

const gunzipped = promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip);
const gzipped = promisify<string, { level: number }, Buffer>(gzip);

/** Returns how many bytes may come out of compressed ones, of which no more than a limit are wanted. */
export function unpackedBytesMax(compressedBytes: number, bytesMax: number): number {
  return Math.min(bytesMax, compressedBytes * EXPANSION_MAX);
}

/** Returns what comes out of bytes, what is wrong with them, or that it would be more than is wanted: then the rest is left packed. */
export async function unpacked(bytes: Uint8Array, bytesMax: number): Promise<Uint8Array | { problem: string } | "too large"> {
  try {
    const out = await gunzipped(bytes, { maxOutputLength: bytesMax });
    // zlib passes over zeros at the end and what comes behind them.
    const length = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).readUInt32LE(bytes.byteLength - 4);
    return length === out.byteLength ? new Uint8Array(out) : { problem: "there is more behind its end" };
  } catch (error) {
    if ((error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") return "too large";
    return { problem: messageOf(error) };
  }
}

/** Checks whether a text is sent in gzip to clients that accept it. */
export function isPackable(text: string): boolean {
  return text.length >= PACKED_BYTES_MIN;
}

export function packed(text: string): Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>> {
  if (text.length <= PACKED_AT_ONCE_BYTES) return Bun.gzipSync(text, { level: LEVEL });
  return gzipped(text, { level: LEVEL }).then((bytes) => new Uint8Array(bytes));
}

/** Checks whether a header `Accept-Encoding` names an encoding, and does not exclude it. */
export function acceptsEncoding(accepted: string, encoding: "br" | "gzip"): boolean {
  return new RegExp(`(^|[\\s,])${encoding}\\b(?!\\s*;\\s*q=0(\\.0*)?\\s*(,|$))`, "i").test(accepted);
}
