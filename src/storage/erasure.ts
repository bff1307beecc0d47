/**
 * Whose records are gone although some of them may still be there.
 *
 * From the commit that begins the erasure of a user on, no read shows anything of what that user had by then; a task takes it away
 * in pieces (`users/erasure.ts`). What the user gets later is not concerned.
 *
 * @module
 */
import { bare, ID_PREFIXES, isId, type BareId, type Id, type SessionId } from "../lib/ids.ts";
import type { Reader } from "./access.ts";
import { AFTER_ALL, hashKey } from "./keys.ts";
import { erasures, sessions, traces, type ErasureRow, type IdempotencyRow } from "./tables.ts";

/** Whether a record with this user is being erased. Its id says whether it was there by then, which its time need not. */
export function isErased(reader: Reader, { userId }: { userId?: string | null | undefined }, id: BareId): boolean {
  const erasure = erasureOf(reader, userId);
  return erasure !== undefined && id <= erasure.until;
}

function erasureOf(reader: Reader, userId: string | null | undefined): ErasureRow | undefined {
  return typeof userId !== "string" || reader.isEmpty(erasures) ? undefined : reader.get(erasures, hashKey(userId));
}

/** Whether anything is. */
export function isAnyErased(reader: Reader): boolean {
  return !reader.isEmpty(erasures);
}

/** The user of a session that may be gone: then its traces know. */
export function userOfSession(reader: Reader, session: SessionId): string | undefined {
  const key = bare(session);
  const row = reader.get(sessions, key);
  if (row !== undefined) return row.userId ?? undefined;
  const { bySession } = traces.index;
  // More than one, as the first of them may be of nobody.
  for (const entry of reader.keys(bySession, { from: key, to: key + AFTER_ALL, limit: 8 })) {
    const userId = reader.get(traces, bySession.recordOf(entry))?.userId;
    if (userId !== undefined) return userId;
  }
  return undefined;
}

/** Whether what concerns a session is being erased. */
export function isSessionErased(reader: Reader, session: SessionId | null): boolean {
  if (session === null || !isAnyErased(reader)) return false;
  return isErased(reader, { userId: userOfSession(reader, session) }, bare(session));
}

type KeptAnswer = Pick<IdempotencyRow, "body" | "createdAt" | "sealed">;

/** The users whom a kept answer shows: that of the record, or of its session. An answer with a secret is of no user. */
export function usersOfAnswer(reader: Reader, answer: KeptAnswer): string[] {
  if (answer.sealed === true) return [];
  const { user_id: userId } = fieldsOf(answer);
  const users = typeof userId === "string" ? [userId] : [];
  for (const id of idsIn(answer)) {
    const user = isId("sess", id) ? userOfSession(reader, id) : undefined;
    if (user !== undefined) users.push(user);
  }
  return users;
}

/** The ids of the record that a kept answer is of, and of its session. */
function idsIn(answer: KeptAnswer): Id[] {
  const { session_id: session, id } = fieldsOf(answer);
  return [session, id].filter((one): one is Id => typeof one === "string" && ID_PREFIXES.some((prefix) => isId(prefix, one)));
}

function fieldsOf({ body }: KeptAnswer): { id?: unknown; session_id?: unknown; user_id?: unknown } {
  return (JSON.parse(body) as object | null) ?? {};
}

/** Whether a kept answer shows what is being erased. */
export function isAnswerErased(reader: Reader, answer: KeptAnswer): boolean {
  if (!isAnyErased(reader)) return false;
  const found = usersOfAnswer(reader, answer).map((userId) => erasureOf(reader, userId));
  return found.some((erasure) => erasure !== undefined && !isKeptSince(reader, answer, erasure));
}

/**
 * Whether an answer is of a change that came after the beginning of an erasure. The ids in it say so, which its time need not; where
 * there are none it does, unless it is later than now.
 */
export function isKeptSince({ now }: Reader, answer: KeptAnswer, { startedAt, until }: ErasureRow): boolean {
  const ids = answer.sealed === true ? [] : idsIn(answer);
  if (ids.length > 0) return ids.every((id) => bare(id) > until);
  return answer.createdAt > startedAt && answer.createdAt <= now;
}
