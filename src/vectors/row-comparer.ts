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
   * Writes the cosines, and what each of these slots scores at most: infinity where the last of its terms is the one that is named.
   * Otherwise the share of words times what its terms are marked with by their last bits, at most `whole`, of `whole`; and the rest times
   * how far its cosine is on the way from unrelated to the same.
   *
   * @param marks - as many as a power of two
   * @returns the `count`th largest of the bounds; there have to be as many
   */
  bound(
    query: Int16Array,
    slots: Uint32Array,
    cosines: Float64Array,
    bounds: Float64Array,
    marks: Uint16Array,
    whole: number,
    last: number,
    lexicalShare: number,
    cosineOfUnrelated: number,
    cosineOfSame: number,
    count: number,
  ): number;
}

/** A class that is not hnswlib's: it is compiled with it. */
const addon = hnswlib as unknown as { RowComparer: new (dimension: number, head: number, unit: number) => RowComparer };

export function newRowComparer(): RowComparer {
  return new addon.RowComparer(DIMENSION, HEAD, COSINE_UNIT);
}
