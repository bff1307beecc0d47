/**
 * Tables of turns that are searched.
 *
 * @module
 */
import { Type, type Static } from "@sinclair/typebox";
import { BareIdText, OneOf, Text, Whole } from "../row-types.ts";
import { json, text } from "./codecs.ts";
import { Embedding } from "./embeddings.ts";
import { CURRENT, HASH, ID, table, type VectorTable } from "./table.ts";

/** Mark in `meta` that turns were searched. */
export const TURNS_SEARCHED = "turnsSearched";

/** By what turns are found: not at all, by their words, or by meaning too. */
export const TURN_INDEXES = ["off", "words", "meaning"] as const;
export type TurnIndex = (typeof TURN_INDEXES)[number];

const IndexedTurnRow = Type.Object({
  /** The session that it was logged in, which may be gone while forks show it. */
  session: BareIdText,
  /** `hashKey` of that session's user, if it has one, and of its agent. */
  user: Type.Optional(Type.String({ pattern: HASH.source })),
  agent: Type.String({ pattern: HASH.source }),
  /** false where it is found by its words alone. */
  embed: Type.Optional(Type.Literal(false)),
  /** Set while it can be found: the id of its words and its vector, which without the prefix is their key, and the generation. */
  embedding: Type.Optional(Embedding),
});
export type IndexedTurnRow = Static<typeof IndexedTurnRow>;
export const indexedTurns = table(
  "indexed_turns",
  ID,
  IndexedTurnRow,
  json<IndexedTurnRow>(),
  {
    bySession: (turn, { session }) => session + turn,
    byUser: (turn, { user }) => (user === undefined ? undefined : user + turn),
    byAgent: (turn, { agent }) => agent + turn,
  },
  ["session", "user", "agent"],
);

const TurnIndexingRow = Type.Object({
  /** The setting as it was at the begin. */
  index: OneOf(TURN_INDEXES),
  /** The key up to which all turns are as they should be; left out once all are. */
  after: Type.Optional(Text),
  /** Number of turns that were looked at. */
  done: Whole,
});
export type TurnIndexingRow = Static<typeof TurnIndexingRow>;
export const TURN_INDEXING_KEY = "current";
export const turnIndexing = table("turn_indexing", CURRENT, TurnIndexingRow, json<TurnIndexingRow>());

/** Indexed turns whose vector is still to be made, which wait apart: there are many more of them than of others. */
export const pendingTurns = table("pending_turns", /^/, Text, text);

export const turnVectors: VectorTable = { name: "turn_vectors", isOfBytes: true };
