/**
 * Vectors of the worker as the request thread sees them: ids, numbers and terms, each once for both.
 *
 * @module
 */
import type { BareId } from "../../lib/ids.ts";
import { IdTable } from "../id-table.ts";
import { type SharedRows, VectorRows } from "../vector-rows.ts";

/** Message of the worker about it. */
export interface Shared {
  /** Slots of one index; another one has its own. */
  readonly index: string;
  /** Vectors of other generations are another provider's. */
  readonly generation: number;
  readonly ids: readonly SharedArrayBuffer[];
  readonly rows: SharedRows;
}

export class SharedVectors {
  readonly index: string;
  readonly generation: number;
  readonly ids: IdTable;
  readonly rows: VectorRows;

  constructor({ index, generation, ids, rows }: Shared) {
    this.index = index;
    this.generation = generation;
    this.ids = new IdTable(ids);
    this.rows = new VectorRows(rows);
  }

  /** The slot of a vector, once its row is there. O(log n) */
  slotOf(id: BareId): number | undefined {
    const slot = this.ids.find(id, this.rows.length);
    return slot !== undefined && this.rows.has(slot) ? slot : undefined;
  }
}
