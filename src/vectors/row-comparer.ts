/**
 * Compares a query with the rows of `vector-rows.ts`, in the add-on that has hnswlib (`scripts/hnswlib/rows.h`): it has the processor's
 * vector instructions, and asks for rows ahead.
 *
 * @module
 */
import hnswlib from "hnswlib-node";
import { DIMENSION } from "../embeddings/embedder.ts";
import { COSINE_UNIT, HEAD } from "./encoding.ts";

/** Reads the places and rows that it was given, where they are. A slot without a place is a RangeError, as are arrays of other lengths. */
export interface RowComparer {
  /** Gives it the next places. */
  addPiece(places: Uint32Array): void;
  /** Gives it the next rows. */
  addChunk(rows: Uint8Array): void;
  /** Writes the cosines of a query with the vectors of these slots. */
  compare(query: Int16Array, slots: Uint32Array, cosines: Float64Array): void;
  /**
   * Writes what the terms of these slots come to, each counted as it is marked by its last bits; infinity where the last is the one that is
   * named, and 1 where there is none.
   *
   * @param marks - as many as a power of two
   */
  cover(marks: Uint16Array, slots: Uint32Array, sums: Float64Array, last: number): void;
}

/** A class that is not hnswlib's: it is compiled with it. */
const addon = hnswlib as unknown as { RowComparer: new (dimension: number, head: number, unit: number) => RowComparer };

export function newRowComparer(): RowComparer {
  return new addon.RowComparer(DIMENSION, HEAD, COSINE_UNIT);
}
