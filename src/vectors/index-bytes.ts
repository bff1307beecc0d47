/**
 * Memory that an index takes, by part.
 *
 * @module
 */
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
