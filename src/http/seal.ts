/**
 * Encrypts an answer that shows a secret, so that it can be kept for its Idempotency-Key: a client whose connection broke
 * before it had the answer gets the secret when it asks again, and the disk has it nowhere in clear.
 *
 * The cipher's key follows from two texts that only the client has: the API key it presented, of which the store has a hash,
 * and the Idempotency-Key, of which it has another. AES-256-GCM, its key by HKDF with SHA-256.
 *
 * @module
 */
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import { toJson, type JsonText } from "../lib/json.ts";

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
export const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const PURPOSE = "cairn: answer kept for an Idempotency-Key";

export interface SealingKeys {
  /** The API key as the client sent it. */
  presentedKey: string;
  idempotencyKey: string;
}

/**
 * A JSON object whose only member is the nonce, the encrypted answer and its tag, in base64.
 *
 * @param about - what it belongs to
 * @param nonce - random bytes; no two answers that are kept may have the same
 */
export function seal(answer: JsonText, keys: SealingKeys, about: string, nonce: Uint8Array): JsonText {
  const cipher = createCipheriv(CIPHER, cipherKey(keys), nonce).setAAD(Buffer.from(about));
  const sealed = Buffer.concat([nonce, cipher.update(answer, "utf8"), cipher.final(), cipher.getAuthTag()]);
  return toJson({ sealed: sealed.toString("base64") });
}

/** @throws {Error} when it was sealed with other keys, is about something else, or was changed */
export function unseal(text: JsonText, keys: SealingKeys, about: string): JsonText {
  const { sealed } = JSON.parse(text) as { sealed: string };
  const bytes = Buffer.from(sealed, "base64");
  const [nonce, tag] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(-TAG_BYTES)];
  const decipher = createDecipheriv(CIPHER, cipherKey(keys), nonce).setAAD(Buffer.from(about)).setAuthTag(tag);
  return (decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES), undefined, "utf8") + decipher.final("utf8")) as JsonText;
}

function cipherKey({ presentedKey, idempotencyKey }: SealingKeys): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", presentedKey, idempotencyKey, PURPOSE, KEY_BYTES));
}
