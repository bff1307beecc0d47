/**
 * The ids of vectors as they are stored, for an index that keeps up with the store.
 *
 * Ids rise with time, also across restarts, but within one millisecond not in the order of commits. So whatever has the last
 * millisecond that was seen, or a later one, is read again each time.
 *
 * @module
 */
import { ID_TIME_WIDTH, type BareId } from "../lib/ids.ts";
import type { Reader } from "../storage/access.ts";
import { AFTER_ALL } from "../storage/keys.ts";
import { vectors } from "../storage/tables.ts";

export class VectorFeed {
  /** The time of the last id seen, which all ids of its millisecond begin with. */
  #from = "";
  /** The ids seen from there on. */
  #seen = new Set<BareId>();

  /** The ids that were not given before, oldest first, at most `max` of them. */
  next(reader: Reader, max: number): BareId[] {
    const ids = reader.keys(vectors, { from: this.#from, to: AFTER_ALL, limit: max + this.#seen.size });
    const last = ids.at(-1);
    const fresh = this.#seen.size === 0 ? ids : ids.filter((id) => !this.#seen.has(id));
    if (last === undefined || fresh.length === 0) return fresh;
    const from = last.slice(0, ID_TIME_WIDTH);
    if (from !== this.#from) this.#seen = new Set();
    this.#from = from;
    for (const id of fresh) if (id >= this.#from) this.#seen.add(id);
    return fresh;
  }
}
