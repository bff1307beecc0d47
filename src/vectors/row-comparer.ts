/**
 * Compares a query with the rows of `vector-rows.ts`, in the add-on that has hnswlib (`scripts/hnswlib/rows.h`): it has the processor's
 * vector instructions, and asks for rows ahead.
 *
 * @module
 */
import hnswlib from "hnswlib-node";
import { DIMENSION_MAX, NO_COSINE } from "../embeddings/embedder.ts";
import { COSINE_UNIT, HEAD, NO_VECTOR_SCALE } from "./encoding.ts";

/** Reads the places and rows that it was given, where they are. A slot without a place is a RangeError, as are arrays of other lengths. */
export interface RowComparer {
  /** Gives it the next places. */
  addPiece(places: Uint32Array): void;
  /** Gives it the next rows. */
  addChunk(rows: Uint8Array): void;
  /** Writes the cosines of a query with the vectors of these slots. */
  compare(query: Int16Array, slots: Uint32Array, cosines: Float64Array): void;
  /**
   * Writes the cosines of a query with the vectors at these places, and what each scores at most: infinity where the last of its terms is
   * the one that is named. Otherwise the share of words times what its terms cover of the weights, each by the best of its answers; and the
   * rest times how far its cosine is on the way from unrelated to the same. Words alone count where there is no vector. Writes which have
   * the largest bounds, too, largest first.
   *
   * @param length - how many vectors: there may be more places, and room for more cosines and bounds
   * @param best - as long as is wanted, at most as there are vectors
   * @param keys - and `answers`: as in `QueryTerms`; one that answers to what has no weight is a RangeError
   * @returns the largest bound of those that are not among the best; minus infinity where all are
   */
  bound(
    query: Int16Array,
    places: Uint32Array,
    length: number,
    cosines: Float64Array,
    bounds: Float64Array,
    best: Uint32Array,
    weights: Float64Array,
    keys: Uint32Array,
    answers: Uint32Array,
    last: number,
    lexicalShare: number,
    cosineOfUnrelated: number,
    cosineOfSame: number,
  ): number;
}

/** A class that is not hnswlib's: it is compiled with it. */
const addon = hnswlib as unknown as {
  RowComparer: new (dimension: number, head: number, unit: number, emptyScale: number, noCosine: number) => RowComparer;
};

export function newRowComparer(): RowComparer {
  return new addon.RowComparer(DIMENSION_MAX, HEAD, COSINE_UNIT, NO_VECTOR_SCALE, NO_COSINE);
}
