/**
 * The ids of vectors as they are stored, for an index that keeps up with the store. Ids are given inside transactions and rise, also
 * across restarts: whatever is new has a greater id than all that was seen.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import type { Reader } from "../storage/access.ts";
import { AFTER_ALL, behind } from "../storage/keys.ts";
import type { VectorTable } from "../storage/tables.ts";

export class VectorFeed {
  readonly #table: VectorTable;
  #from = "";

  constructor(table: VectorTable) {
    this.#table = table;
  }

  /** Nothing up to this id is given any more. */
  skipTo(id: BareId): void {
    this.#from = behind(id);
  }

  /** The ids that were not given before, oldest first, at most `max` of them. */
  next(reader: Reader, max: number): BareId[] {
    const ids = reader.keys(this.#table, { from: this.#from, to: AFTER_ALL, limit: max });
    const last = ids.at(-1);
    if (last !== undefined) this.#from = behind(last);
    return ids;
  }
}
