/**
 * What is searched by meaning: memories. Each collection has vectors of its own and an index of its own, so that no search finds
 * or passes over what is of another.
 *
 * @module
 */
import { memories, vectors, type AnyTable, type Index, type Readable, type VectorTable } from "./tables.ts";

/** What the row of every record that is searched says of its vector. */
export interface EmbeddedRow {
  /** Set while there is a vector: its id, which without the prefix is its key, and its generation. */
  embedding?: { id: `emb_${string}`; generation: number };
}

export interface Collection {
  readonly name: CollectionName;
  /** Under ids, as index entries end with them. */
  readonly records: Readable<EmbeddedRow> & AnyTable;
  readonly vectors: VectorTable;
  /** Indexes by which records are searched together again and again, such as all of a session: their vectors are kept in memory. */
  readonly scopes: readonly Index<EmbeddedRow>[];
  /** Where its index is on disk, in the data directory. */
  readonly directory: string;
}

export type CollectionName = "memories";

export const MEMORIES: Collection = {
  name: "memories",
  records: memories,
  vectors,
  scopes: [memories.index.bySession, memories.index.byUser],
  directory: "vectors",
};
export const COLLECTIONS: Record<CollectionName, Collection> = { memories: MEMORIES };
