/**
 * Users whose records count as erased although some of them may still be stored.
 *
 * From the commit that begins the erasure of a user on, no read shows anything of what that user had by then; a task takes it away
 * in pieces (`users/erasure.ts`). What the user gets later is not concerned.
 *
 * Copies of records, in answers that are kept and in events on their way, say by themselves whose they are: the record may be gone
 * before them. Those that a Cairn has written that did not save it do not: there the session or its traces say it, as long as they last.
 *
 * @module
 */
import { bare, ID_PREFIXES, isId, type BareId, type Id, type SessionId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { unpacked } from "../lib/packed-json.ts";
import { eachFetched, type Reader } from "./access.ts";
import { MAX_KEY, hashKey } from "./keys.ts";
import { erasures, sessions, traces, type ErasureRow, type IdempotencyRow, type OutboxRow, type RetrievalRow } from "./tables.ts";

/** Checks whether a record with this user is being erased. Its id says whether it was there by then, which its time need not. */
export function isErased(reader: Reader, { userId }: { userId?: string | null | undefined }, id: BareId): boolean {
  if (typeof userId !== "string") return false;
  const erasure = erasureOf(reader, hashKey(userId));
  return erasure !== undefined && id <= erasure.until;
}

/** @param user - `hashKey` of it */
function erasureOf(reader: Reader, user: string): ErasureRow | undefined {
  return reader.isEmpty(erasures) ? undefined : reader.get(erasures, user);
}

/** Checks whether a retrieval shows or names a user who is being erased. */
export function isRetrievalErased(reader: Reader, { userId, others = [] }: Pick<RetrievalRow, "userId" | "others">, id: BareId): boolean {
  if (!isAnyErased(reader)) return false;
  const users = userId === undefined ? others : [hashKey(userId), ...others];
  return eachFetched(users, (user) => erasureOf(reader, user)).some((erasure) => erasure !== undefined && id <= erasure.until);
}

/** Checks whether anything is. */
export function isAnyErased(reader: Reader): boolean {
  return !reader.isEmpty(erasures);
}

/** `hashKey` of the user of a session that may be gone: then its traces know. */
function userOfSession(reader: Reader, session: SessionId): string | undefined {
  const key = bare(session);
  const row = reader.get(sessions, key);
  if (row !== undefined) return row.userId === null ? undefined : hashKey(row.userId);
  const { bySession } = traces.index;
  // More than one, as the first of them may be of nobody.
  for (const entry of reader.keys(bySession, { from: key, to: key + MAX_KEY, limit: 8 })) {
    const userId = reader.get(traces, bySession.recordOf(entry))?.userId;
    if (userId !== undefined) return hashKey(userId);
  }
  return undefined;
}

/** Owner of a pending event, or of its delivery. */
type EventOwner = Pick<OutboxRow, "sessionId" | "user" | "record">;

/** Checks whether an event shows what a user had when the erasure of that user began. */
export function isEventOf(reader: Reader, event: EventOwner, hash: string, { until }: Pick<ErasureRow, "until">): boolean {
  const about = subjectOf(event);
  return about !== undefined && about <= until && userOfEvent(reader, event) === hash;
}

/** The session or the record that an event is about; undefined for one of an administrator's. */
function subjectOf({ sessionId, record }: EventOwner): BareId | undefined {
  return sessionId === null ? record : bare(sessionId);
}

function userOfEvent(reader: Reader, { sessionId, user }: EventOwner): string | undefined {
  return user ?? (sessionId === null ? undefined : userOfSession(reader, sessionId));
}

/** Checks whether what an event shows is being erased. */
export function isEventErased(reader: Reader, event: EventOwner): boolean {
  const about = subjectOf(event);
  if (about === undefined || !isAnyErased(reader)) return false;
  const user = userOfEvent(reader, event);
  const erasure = user === undefined ? undefined : erasureOf(reader, user);
  return erasure !== undefined && about <= erasure.until;
}

type KeptAnswer = Pick<IdempotencyRow, "body" | "createdAt" | "sealed" | "packed" | "users">;

/** `hashKey` of the users whom a kept answer shows. An answer with a secret is of no user. */
export function usersOfAnswer(reader: Reader, answer: KeptAnswer): readonly string[] {
  if (answer.users !== undefined) return answer.users;
  if (answer.sealed === true) return [];
  const { user_id: userId } = fieldsOf(answer);
  const users = typeof userId === "string" ? [hashKey(userId)] : [];
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

function fieldsOf(answer: KeptAnswer): { id?: unknown; session_id?: unknown; user_id?: unknown } {
  return (JSON.parse(keptJson(answer)) as object | null) ?? {};
}

/** The JSON of a kept answer that is not encrypted. */
export function keptJson({ body, packed }: Pick<IdempotencyRow, "body" | "packed">): JsonText {
  return packed === true ? unpacked(body) : body;
}

/** Checks whether a kept answer shows what is being erased. */
export function isAnswerErased(reader: Reader, answer: KeptAnswer): boolean {
  if (!isAnyErased(reader)) return false;
  const found = usersOfAnswer(reader, answer).map((user) => erasureOf(reader, user));
  return found.some((erasure) => erasure !== undefined && !isKeptSince(reader, answer, erasure));
}

/**
 * Checks whether an answer is of a change that came after the beginning of an erasure. The ids in it say so, which its time need not; where
 * there are none it does, unless it is later than now.
 */
export function isKeptSince({ now }: Reader, answer: KeptAnswer, { startedAt, until }: ErasureRow): boolean {
  const ids = answer.sealed === true ? [] : idsIn(answer);
  if (ids.length > 0) return ids.every((id) => bare(id) > until);
  return answer.createdAt > startedAt && answer.createdAt <= now;
}
