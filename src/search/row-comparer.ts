/**
 * Compares a query with the rows of `vector-rows.ts`, in the native add-on (`src/native/rows.h`): it has the processor's vector
 * instructions, and asks for rows ahead.
 *
 * @module
 */
import { loadEncoderAddon } from "../embeddings/builtin/native.ts";
import { NO_COSINE } from "../embeddings/embedder.ts";
import { COSINE_UNIT, NO_VECTOR_SCALE } from "./encoding.ts";

/** Reads the places and rows that it was given, where they are. A slot without a place is a RangeError, as are arrays of other lengths. */
export interface RowComparer {
  /** Gives it the next places. */
  addPiece(places: Uint32Array): void;
  /** Gives it the next rows. */
  addChunk(rows: Uint8Array): void;
  /** Writes the cosines of a query with the vectors of these slots. */
  compare(query: Int16Array, slots: Uint32Array, cosines: Float64Array): void;
  /** Writes 1 where the memory of a slot has one of the terms, and else 0. */
  match(ids: Uint32Array, slots: Uint32Array, found: Uint8Array): void;
}

interface Addon {
  readonly RowComparer: new (unit: number, emptyScale: number, noCosine: number) => RowComparer;
}

export function newRowComparer(): RowComparer {
  return new (loadEncoderAddon() as Addon).RowComparer(COSINE_UNIT, NO_VECTOR_SCALE, NO_COSINE);
}
