/**
 * JSON compressed, as JSON: for rows that are text, and are read seldom or never.
 *
 * Zstandard at its lowest level: of sessions with conversations in their states it leaves .61 at 16 KB and .20 at 900 KB, with base64,
 * where deflate at its lowest leaves .77 and .68 and takes as long or three times as long. Below 8 KB it leaves .7 and more.
 *
 * @module
 */
import { toJson, type JsonText } from "./json.ts";

const LENGTH_MIN = 8 * 1024;
const LEVEL = 1;

/** A JSON object whose only member is the compressed text; undefined where that is not shorter. */
export function packed(json: JsonText): JsonText | undefined {
  if (json.length < LENGTH_MIN) return undefined;
  const short = toJson({ zstd: Bun.zstdCompressSync(json, { level: LEVEL }).toString("base64") });
  return short.length < Buffer.byteLength(json) ? short : undefined;
}

/** @throws {Error} for a text that `packed` did not make */
export function unpacked(text: JsonText): JsonText {
  const { zstd } = JSON.parse(text) as { zstd: string };
  return Bun.zstdDecompressSync(Buffer.from(zstd, "base64")).toString() as JsonText;
}
