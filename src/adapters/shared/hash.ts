/**
 * Hashes of texts.
 *
 * @module
 */
import { toBase64 } from "./stored-json.ts";

/** Returns the SHA-256 of a text in base64. */
export async function hashOf(text: string): Promise<string> {
  return toBase64(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));
}
