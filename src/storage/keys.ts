/**
 * How keys of the store are made.
 *
 * Every key is ASCII text of fixed-width parts laid end to end, so that byte order is the order wanted and a prefix is a
 * range. Texts that callers choose (agents, users, types, tags) can be longer than LMDB's 1,978 bytes: they stand in keys
 * as a hash, 22 characters of SHA-256, so that nobody can make two of them meet.
 *
 * @module
 */
import { toBase62 } from "../lib/base62.ts";
import type { BareId } from "../lib/ids.ts";
import { memoize } from "../lib/memoize.ts";

/** Greater than every character that stands in a key. */
export const AFTER_ALL = "~";

const HASH_BYTES = 16;

/** 22 characters for a text of any length. Hashed as JSON, which tells lone surrogates apart where UTF-8 would not; memoized: 0.1 µs instead of 1.4. */
export const hashKey = memoize((text: string) =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(text)).digest().subarray(0, HASH_BYTES).toString("base64url"),
);

/** Width 7 holds 3.5 × 10^12: milliseconds until 2081, and more versions than any session will have. */
export function numberKey(number: number): string {
  return toBase62(number, 7);
}

export function versionKey(session: BareId, version: number): string {
  return session + numberKey(version);
}

export function turnKey(session: BareId, turn: BareId): string {
  return session + turn;
}
