/**
 * Tables of users: whom sessions and memories name, and erasures under way.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { HASH_KEY_LENGTH, nameKey, numberKey } from "../keys.ts";
import { BareIdText, OneOf, Positive, Text, Whole } from "../row-types.ts";
import { having, json, takenUntil } from "./codecs.ts";
import { HASH, table } from "./table.ts";

const UserRow = Type.Object({
  userId: Text,
  /** Creation of the newest session, to the minute; the newest memory, where no session was left when the user was noted. */
  seenAt: Whole,
});
export type UserRow = Static<typeof UserRow>;
const hashLast = (entry: string): string => entry.slice(-HASH_KEY_LENGTH);
export const users = table("users", HASH, UserRow, having(json<UserRow>(), { keepsRead: true }), {
  byName: { of: (hash, { userId }) => `${nameKey(userId)}!${hash}`, record: hashLast },
  bySeen: { of: (hash, { seenAt }) => numberKey(seenAt) + hash, record: hashLast },
});

export const ERASURE_PHASES = [
  "grants",
  "sessions",
  "memories",
  "retrievals",
  "retrievals of others",
  "traces",
  "outbox",
  "deliveries",
  "older deliveries",
  "answers",
  "older answers",
  "leftovers",
  "documents",
  "pages",
] as const;
const ErasureRow = Type.Object({
  userId: Text,
  /** Bound of the erasure: records created by then, and ids up to this one. */
  startedAt: Whole,
  until: BareIdText,
  /** Kind that is being erased now, and the key behind which that continues. */
  phase: OneOf(ERASURE_PHASES),
  after: Text,
  /** Caller that asked for it, and the request. */
  actor: Text,
  retentionDays: Positive,
  /** Counts of what was erased so far. */
  counts: Type.Object({
    sessions: Whole,
    turns: Whole,
    versions: Whole,
    retrievals: Whole,
    memories: Whole,
    documents: Whole,
    traces: Whole,
    deliveries: Whole,
    answers: Whole,
  }),
});
export type ErasureRow = Static<typeof ErasureRow>;
export const erasures = table(
  "erasures",
  HASH,
  ErasureRow,
  having(json<ErasureRow>(), { takenUntil, cachedBytesMax: CACHE_BYTES_MAX.erasures, isGlobal: true }),
);
