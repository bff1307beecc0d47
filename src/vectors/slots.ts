/**
 * The numbers under which the index knows vectors: one numbering for all that the worker holds.
 *
 * A slot is the next number from 0 on, and never given again. Ids rise (`vector-feed.ts`), so slots are in the order of ids, and an id
 * is found by binary search: 24 bytes a vector, where a map from text takes more than a hundred.
 *
 * ```
 * by slot: id of the vector, 3 × uint32  |  id of its memory, 3 × uint32       four characters in each, the first the highest byte
 * ```
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";

const ID_WORDS = 3;
const SLOT_WORDS = 2 * ID_WORDS;
const SLOT_BYTES = 4 * SLOT_WORDS;
const FIRST = 1024;
const GROWTH = 1.25;

export class Slots {
  #words: Uint32Array;
  #length: number;
  /** A bit for each removed slot. */
  #removed: Uint8Array;
  #removedCount = 0;
  /** The newest slot of each memory whose vector does not have its id. */
  readonly #moved = new Map<BareId, number>();
  readonly #sought = new Uint32Array(ID_WORDS);

  private constructor(words: Uint32Array, removed: Uint8Array) {
    this.#words = words;
    this.#length = words.length / SLOT_WORDS;
    this.#removed = removed;
    for (let slot = 0; slot < this.#length; slot++) {
      if (this.has(slot)) this.#noteMoved(slot);
      else this.#removedCount++;
    }
  }

  static empty(): Slots {
    return new Slots(new Uint32Array(0), new Uint8Array(0));
  }

  /** Its form on disk, in parts that follow each other: views, so that nothing may be added or removed while they are written. */
  parts(): Uint8Array[] {
    const { buffer } = this.#words;
    return [new Uint8Array(buffer, 0, this.#length * SLOT_BYTES), this.#removed.subarray(0, Math.ceil(this.#length / 8))];
  }

  /** @param bytes - the parts end to end; `length` is the number of slots */
  static from(bytes: Uint8Array, length: number): Slots {
    const words = new Uint32Array(bytes.slice(0, length * SLOT_BYTES).buffer);
    return new Slots(words, bytes.slice(length * SLOT_BYTES));
  }

  /** The bytes of all parts for a number of slots. */
  static bytesOf(length: number): number {
    return length * SLOT_BYTES + Math.ceil(length / 8);
  }

  /** One more than the last slot. */
  get length(): number {
    return this.#length;
  }

  /** Slots that are not removed. */
  get size(): number {
    return this.#length - this.#removedCount;
  }

  get removed(): number {
    return this.#removedCount;
  }

  has(slot: number): boolean {
    return slot < this.#length && (this.#removed[slot >> 3]! & (1 << (slot & 7))) === 0;
  }

  /** @param id - greater than all before */
  add(id: BareId, memory: BareId): number {
    const slot = this.#length;
    const at = slot * SLOT_WORDS;
    if (at === this.#words.length) this.#grow();
    write(id, this.#words, at);
    write(memory, this.#words, at + ID_WORDS);
    this.#length++;
    this.#noteMoved(slot);
    return slot;
  }

  remove(slot: number): void {
    if (!this.has(slot)) return;
    this.#removed[slot >> 3]! |= 1 << (slot & 7);
    this.#removedCount++;
    const memory = this.memory(slot);
    if (this.#moved.get(memory) === slot) this.#moved.delete(memory);
  }

  id(slot: number): BareId {
    return read(this.#words, slot * SLOT_WORDS);
  }

  memory(slot: number): BareId {
    return read(this.#words, slot * SLOT_WORDS + ID_WORDS);
  }

  /** The slot of a vector; undefined when it is not here, or removed. O(log n) */
  slotOf(id: BareId): number | undefined {
    write(id, this.#sought, 0);
    let [low, high] = [0, this.#length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compare(middle, this.#sought) < 0) low = middle + 1;
      else high = middle;
    }
    return this.has(low) && this.#compare(low, this.#sought) === 0 ? low : undefined;
  }

  /** The slot of a memory's newest vector, if that is here. */
  slotOfMemory(memory: BareId): number | undefined {
    return (this.#moved.size === 0 ? undefined : this.#moved.get(memory)) ?? this.slotOf(memory);
  }

  /**
   * Compares the slots with the ids of all that is stored, in ascending order. Those that are stored no more are given to `remove`.
   *
   * @returns false when one up to the last slot's never had a slot: then these slots are of another store
   */
  keepOnly(ids: Iterable<BareId>, remove: (slot: number) => void): boolean {
    const sought = new Uint32Array(ID_WORDS);
    let slot = 0;
    for (const id of ids) {
      write(id, sought, 0);
      for (; slot < this.#length && this.#compare(slot, sought) < 0; slot++) remove(slot);
      if (slot === this.#length) return true;
      if (this.#compare(slot, sought) > 0 || !this.has(slot)) return false;
      slot++;
    }
    for (; slot < this.#length; slot++) remove(slot);
    return true;
  }

  #compare(slot: number, sought: Uint32Array): number {
    const at = slot * SLOT_WORDS;
    return this.#words[at]! - sought[0]! || this.#words[at + 1]! - sought[1]! || this.#words[at + 2]! - sought[2]!;
  }

  #noteMoved(slot: number): void {
    const at = slot * SLOT_WORDS;
    for (let i = at; i < at + ID_WORDS; i++) {
      if (this.#words[i] !== this.#words[i + ID_WORDS]) {
        this.#moved.set(this.memory(slot), slot);
        return;
      }
    }
  }

  #grow(): void {
    const slots = Math.ceil(Math.max(FIRST, this.#length * GROWTH));
    const words = new Uint32Array(slots * SLOT_WORDS);
    words.set(this.#words.subarray(0, this.#length * SLOT_WORDS));
    this.#words = words;
    const removed = new Uint8Array(Math.ceil(slots / 8));
    removed.set(this.#removed);
    this.#removed = removed;
  }
}

function write(id: BareId, words: Uint32Array, at: number): void {
  for (let i = 0; i < ID_WORDS; i++) {
    const k = 4 * i;
    words[at + i] = (id.charCodeAt(k) << 24) | (id.charCodeAt(k + 1) << 16) | (id.charCodeAt(k + 2) << 8) | id.charCodeAt(k + 3);
  }
}

const scratch = Buffer.alloc(BARE_ID_LENGTH);

function read(words: Uint32Array, at: number): BareId {
  for (let i = 0; i < ID_WORDS; i++) scratch.writeUInt32BE(words[at + i]!, 4 * i);
  return scratch.toString("latin1");
}
