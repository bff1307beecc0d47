/**
 * Table of retrievals: what a search or a context found.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { bare } from "../../lib/ids.ts";
import { hashKey, numberKey } from "../keys.ts";
import { AnyObject, EitherIdText, Fraction, IdText, OneOf, OrNull, Positive, Text, Whole } from "../row-types.ts";
import { json } from "./codecs.ts";
import { HASH, ID, table } from "./table.ts";

export const RETRIEVAL_OPERATIONS = ["search", "context", "turn_search"] as const;
/** The user and the agent of a memory where they are not those of the session or the search; null for a memory of none. */
const Strangers = { userId: Type.Optional(OrNull(Text)), agentId: Type.Optional(OrNull(Text)) };

const RetrievalRow = Type.Object({
  expiresAt: Whole,
  /** Set where the time of the id is later than that of the row, which this is: the clock was behind an earlier id. */
  at: Type.Optional(Whole),
  sessionId: Type.Optional(IdText("sess")),
  /** User and agent of a search that named no session. */
  userId: Type.Optional(Text),
  agentId: Type.Optional(Text),
  actor: Text,
  operation: OneOf(RETRIEVAL_OPERATIONS),
  /** Beginning of its text. */
  query: Text,
  limit: Positive,
  threshold: Fraction,
  /** Set where a filter narrowed what was looked for. */
  filtered: Type.Optional(Type.Literal(true)),
  /** The rest of the request, as it was sent; left out where it is long. */
  request: Type.Optional(AnyObject),
  /** The version of the state that a context showed, and its turns, newest first; of a search in turns those that it found, best first. */
  stateVersion: Type.Optional(Whole),
  turns: Type.Optional(Type.Array(IdText("turn"))),
  /** Judgement of the caller, given later. */
  feedback: Type.Optional(
    Type.Object({
      at: Whole,
      useful: Type.Array(EitherIdText("mem", "turn")),
      notUseful: Type.Array(EitherIdText("mem", "turn")),
      note: Type.Optional(Text),
    }),
  ),
  /** `hashKey` of other users: those of what was found, and those whom the request names. Their erasure takes the row along. */
  others: Type.Optional(Type.Array(Type.String({ pattern: HASH.source }))),
  /** Best first. */
  memories: Type.Array(
    Type.Object({
      id: IdText("mem"),
      score: Fraction,
      /** Set where recency or importance ordered them. */
      rankingScore: Type.Optional(Fraction),
      ...Strangers,
    }),
  ),
  /** Memories that a context showed before those, as they are pinned; the query may have found them, too. */
  pinned: Type.Optional(Type.Array(Type.Object({ id: IdText("mem"), ...Strangers }))),
});
export type RetrievalRow = Static<typeof RetrievalRow>;
export const retrievals = table("retrievals", ID, RetrievalRow, json<RetrievalRow>(), {
  bySession: (retrieval, row) => (row.sessionId === undefined ? undefined : bare(row.sessionId) + retrieval),
  ofNoSession: (retrieval, row) => (row.sessionId === undefined ? retrieval : undefined),
  byUser: (retrieval, row) => (row.userId === undefined ? undefined : hashKey(row.userId) + retrieval),
  byAgent: (retrieval, row) => (row.agentId === undefined ? undefined : hashKey(row.agentId) + retrieval),
  byOther: { of: (retrieval, row) => row.others?.map((user) => user + retrieval), hasMany: true },
  byExpiry: (retrieval, row) => numberKey(row.expiresAt) + retrieval,
  ahead: (retrieval, row) => (row.at === undefined ? undefined : retrieval),
});
