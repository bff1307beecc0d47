/**
 * Status of an index: how far it is, and the memory that it takes.
 *
 * @module
 */
export interface IndexStatus {
  /** Vectors in the index, and those not yet in it: in the graph when there is to be one. */
  indexed: number;
  pending: number;
  /** Deleted vectors that still take space. */
  removed: number;
  /** Changes since the index was last written to disk. */
  unsaved: number;
}

export const NO_STATUS: IndexStatus = { indexed: 0, pending: 0, removed: 0, unsaved: 0 };

/** Memory, by part. */
export interface IndexBytes {
  /** Numbers and terms of each vector. */
  rows: number;
  ids: number;
  /** From words to vectors. */
  terms: number;
  graph: number;
}

export const NO_BYTES: IndexBytes = { rows: 0, ids: 0, terms: 0, graph: 0 };

export function sumOf(a: IndexBytes, b: IndexBytes): IndexBytes {
  return { rows: a.rows + b.rows, ids: a.ids + b.ids, terms: a.terms + b.terms, graph: a.graph + b.graph };
}
