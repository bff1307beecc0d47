/**
 * Index of users, by name and by the time of their newest session: sessions and memories name them in no order that a person
 * looks for, and documents say their hash alone.
 *
 * @module
 */
import type { Tx } from "./access.ts";
import { hashKey } from "./keys.ts";
import { users } from "./tables.ts";

/** Users whose sessions follow each other more closely than this are not written again for each. */
const SEEN_AGAIN_MS = 60_000;

/** Notes that somebody is named by a memory or a document: when that was says nothing of a user who is noted already. */
export function trackNamedUser(tx: Tx, userId: string | null | undefined): void {
  if (typeof userId === "string" && !tx.has(users, hashKey(userId))) tx.put(users, hashKey(userId), { userId, seenAt: tx.now });
}

/** Notes that a user has a session that is created now, or at a later time than the clock shows now. */
export function trackUser(tx: Tx, userId: string | null): void {
  if (userId === null) return;
  const hash = hashKey(userId);
  const before = tx.get(users, hash);
  if (before === undefined || Math.abs(tx.now - before.seenAt) >= SEEN_AGAIN_MS) tx.put(users, hash, { userId, seenAt: tx.now });
}
