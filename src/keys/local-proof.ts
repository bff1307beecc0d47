/**
 * Proof of the server of a data directory to its owner's programs, before they send it a key or content. Pure.
 *
 * A program opens a connection and sends a nonce. The answer is an HMAC under the local key, which only the owner can read
 * (`local-key.ts`), of the nonce and of both ends of the connection. So a process that has taken the port of a server that ended
 * cannot answer, nor can it fetch the answer from a server elsewhere: even from the port of the program, that sees itself at the other
 * end, and not the process that the program has reached.
 *
 * @module
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { isLoopback } from "../lib/addresses.ts";

export const PROOF_PATH = "/local/proof";
/** Digits of base62: 190 bits. */
export const NONCE_LENGTH = 32;
const NONCE = new RegExp(`^[0-9A-Za-z]{${NONCE_LENGTH}}$`);

interface End {
  readonly address: string;
  readonly port: number;
}

/** Both ends of a TCP connection; undefined on a Unix socket, which has no addresses. */
export type Ends = { readonly client: End; readonly server: End } | undefined;

/** @param ends - as the server sees them: its own is where it listens */
export function proofOf(localSecret: string, nonce: string, ends: Ends): string {
  const named = ends === undefined ? "a Unix socket" : `${nameOf(ends.client)}\n${nameOf(ends.server)}`;
  return createHmac("sha256", localSecret).update(`cairn local proof\n${nonce}\n${named}`).digest("base64url");
}

/** @param ends - as the program sees them: the server's is what it has reached */
export function isProof(given: string, localSecret: string, nonce: string, ends: Ends): boolean {
  return seenByServer(ends).some((seen) => isSame(given, proofOf(localSecret, nonce, seen)));
}

/**
 * Addresses that the server sees of a connection. One that listens on every address does not learn at which it was reached. Where it does,
 * nobody else listens on that port: that holds for its own loopback interface and not for another container's address.
 */
function seenByServer(ends: Ends): Ends[] {
  if (ends === undefined || !isLoopback(ends.client.address)) return [ends];
  return [ends.server.address, ...EVERY_ADDRESS].map((address) => ({ ...ends, server: { ...ends.server, address } }));
}
const EVERY_ADDRESS = ["0.0.0.0", "::"];

function isSame(given: string, expected: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

export function isNonce(text: string | null): text is string {
  return text !== null && NONCE.test(text);
}

/** A listener on both IPv4 and IPv6 sees `::ffff:127.0.0.1`, and one end of a link knows the interface (`fe80::1%eth0`). */
function nameOf({ address, port }: End): string {
  const plain = address
    .toLowerCase()
    .replace(/^::ffff:(?=[\d.]+$)/, "")
    .replace(/%.*$/, "");
  return `${plain} ${port}`;
}
