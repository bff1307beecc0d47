/**
 * Collections that are searched: memories, documents that say so, and turns. Each has vectors of its own and an index of its own, so that
 * no search finds or passes over what is of another.
 *
 * @module
 */
import {
  documentVectors,
  indexedDocuments,
  indexedTurns,
  memories,
  pendingEmbeddings,
  pendingTurns,
  turnVectors,
  vectors,
  type Index,
  type Table,
  type VectorTable,
} from "./tables.ts";

/** Members about the vector in the row of every record that is searched. */
export interface EmbeddedRow {
  /**
   * Set while it can be found: the id of its vector and words, which without the prefix is their key, and the generation. Where it has no
   * vector it is found by its words alone, until one is made if it is pending.
   */
  embedding?: { id: `emb_${string}`; generation: number; hasNoVector?: true };
  /** false when the caller asked for none. */
  embed?: boolean;
}

export interface Collection {
  readonly name: CollectionName;
  /** Under ids, as index entries end with them. */
  readonly records: Table<EmbeddedRow>;
  readonly vectors: VectorTable;
  /** The records whose vector is still to be made. */
  readonly pending: Table<string>;
  /** Indexes by which records are searched together again and again, such as all of a session: their vectors are kept in memory. */
  readonly scopes: readonly Index<EmbeddedRow>[];
  /** Path of its index on disk, in the data directory. */
  readonly directory: string;
}

export type CollectionName = "memories" | "documents" | "turns";

export const MEMORIES: Collection = {
  name: "memories",
  records: memories,
  vectors,
  pending: pendingEmbeddings,
  scopes: [memories.index.bySession, memories.index.byUser],
  directory: "vectors",
};
export const DOCUMENTS: Collection = {
  name: "documents",
  records: indexedDocuments,
  vectors: documentVectors,
  pending: pendingEmbeddings,
  scopes: [indexedDocuments.index.inNamespace],
  directory: "document-vectors",
};
export const TURNS: Collection = {
  name: "turns",
  records: indexedTurns,
  vectors: turnVectors,
  pending: pendingTurns,
  scopes: [indexedTurns.index.bySession, indexedTurns.index.byUser],
  directory: "turn-vectors",
};
export const COLLECTIONS: Record<CollectionName, Collection> = { memories: MEMORIES, documents: DOCUMENTS, turns: TURNS };

/** Checks whether a record has a vector, and not its words alone. */
export function hasVector({ embedding }: EmbeddedRow): boolean {
  return embedding !== undefined && embedding.hasNoVector !== true;
}

/** Checks whether a record should have a vector, now or later. */
export function wantsVector({ embed }: EmbeddedRow): boolean {
  return embed !== false;
}

/** The collection that a table has the records of, if it is one. */
export function collectionOf({ name }: { readonly name: string }): Collection | undefined {
  return Object.values(COLLECTIONS).find(({ records }) => records.name === name);
}
