/**
 * Finds a slot among some thousands: a hash table with linear probing. One array by slot would be as long as there are vectors, and each
 * look at it a cache miss; a `Map` takes four times as long to fill.
 *
 * @module
 */
const FIRST = 1024;
/** Spreads what lies together: the golden ratio in 32 bits. */
const MULTIPLIER = 0x9e3779b1;

export class SlotTable {
  #slots: Uint32Array = new Uint32Array(0);
  /** One more than the place of a slot; 0 where there is none. At most half of it is taken. */
  #table = new Uint32Array(FIRST);
  #shift = 32 - Math.log2(FIRST);

  /** @param slots - different ones, which must not change while they are looked for */
  fill(slots: Uint32Array): void {
    this.#slots = slots;
    if (this.#table.length < 2 * slots.length) {
      this.#shift = Math.clz32(2 * slots.length - 1);
      this.#table = new Uint32Array(2 ** (32 - this.#shift));
    } else {
      this.#table.fill(0);
    }
    const [table, mask] = [this.#table, this.#table.length - 1];
    for (let i = 0; i < slots.length; i++) {
      let at = Math.imul(slots[i]!, MULTIPLIER) >>> this.#shift;
      while (table[at] !== 0) at = (at + 1) & mask;
      table[at] = i + 1;
    }
  }

  /** @returns the place of the slot among those that the table was filled with, or -1 */
  find(slot: number): number {
    const [table, mask] = [this.#table, this.#table.length - 1];
    for (let at = Math.imul(slot, MULTIPLIER) >>> this.#shift; ; at = (at + 1) & mask) {
      const place = table[at]! - 1;
      if (place === -1 || this.#slots[place] === slot) return place;
    }
  }
}
