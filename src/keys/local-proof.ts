/**
 * How the server of a data directory proves to programs of its owner that it is that, before they send it a key or content. Pure.
 *
 * A program opens a connection and sends a nonce. The answer is an HMAC under the local key, which only the owner can read
 * (`local-key.ts`), of the nonce and of the program's end of the connection. So a process that has taken the port of a server that
 * ended cannot answer, nor can it fetch the answer from the server: that sees another connection.
 *
 * @module
 */
import { createHmac, timingSafeEqual } from "node:crypto";

export const PROOF_PATH = "/local/proof";
/** Digits of base62: 190 bits. */
export const NONCE_LENGTH = 32;
const NONCE = new RegExp(`^[0-9A-Za-z]{${NONCE_LENGTH}}$`);

/** The end of a TCP connection; undefined on a Unix socket, which has no addresses. */
export type End = { readonly address: string; readonly port: number } | undefined;

/** @param client - the program's end of the connection, as the server or the program sees it */
export function proofOf(localSecret: string, nonce: string, client: End): string {
  const end = client === undefined ? "a Unix socket" : `${plainAddress(client.address)} ${client.port}`;
  return createHmac("sha256", localSecret).update(`cairn local proof\n${nonce}\n${end}`).digest("base64url");
}

export function isSameProof(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

export function isNonce(text: string | null): text is string {
  return text !== null && NONCE.test(text);
}

/** A listener on both IPv4 and IPv6 sees `::ffff:127.0.0.1`, and one end of a link knows the interface (`fe80::1%eth0`). */
function plainAddress(address: string): string {
  return address
    .toLowerCase()
    .replace(/^::ffff:(?=[\d.]+$)/, "")
    .replace(/%.*$/, "");
}
