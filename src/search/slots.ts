/**
 * The numbers under which the index knows vectors: one numbering for all that the worker holds.
 *
 * A slot is the next number from 0 on, and never given again. Ids rise (`search-index.ts`), so slots are in the order of ids
 * (`id-table.ts`).
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { IdTable } from "./id-table.ts";
import type { PartSource } from "./snapshot/snapshot-file.ts";

const FIRST = 1024;
const GROWTH = 1.25;

export class Slots {
  readonly ids: IdTable;
  #length: number;
  /** A bit for each removed slot. */
  #removed: Uint8Array;
  #removedCount = 0;
  /** The newest slot of each memory whose vector does not have its id. */
  readonly #moved = new Map<BareId, number>();

  private constructor(ids: IdTable, length: number, removed: Uint8Array) {
    this.ids = ids;
    this.#length = length;
    this.#removed = removed;
    for (let slot = 0; slot < length; slot++) {
      if (this.has(slot)) this.#trackMoved(slot);
      else this.#removedCount++;
    }
  }

  static empty(): Slots {
    return new Slots(new IdTable(), 0, new Uint8Array(Math.ceil(FIRST / 8)));
  }

  /** Its form on disk, in parts that follow each other: views, so that nothing may be added or removed while they are written. */
  parts(): Uint8Array[] {
    return [...this.ids.parts(this.#length), this.#removed.subarray(0, Math.ceil(this.#length / 8))];
  }

  /** @param source - the parts; `length` is the number of slots */
  static read(source: PartSource, length: number): Slots {
    return new Slots(IdTable.read(source, length), length, source.take(Math.ceil(length / 8)));
  }

  /** One more than the last slot. */
  get length(): number {
    return this.#length;
  }

  /** Memory taken. */
  get bytes(): number {
    return this.ids.buffers.reduce((sum, { byteLength }) => sum + byteLength, this.#removed.byteLength);
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
    const slot = this.#length++;
    this.ids.put(slot, id, memory);
    if (slot >> 3 === this.#removed.length) {
      const removed = new Uint8Array(Math.ceil(Math.max(FIRST / 8, this.#removed.length * GROWTH)));
      removed.set(this.#removed);
      this.#removed = removed;
    }
    this.#trackMoved(slot);
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
    return this.ids.id(slot);
  }

  memory(slot: number): BareId {
    return this.ids.memory(slot);
  }

  /** Value of `storedHome` for each vector; undefined for one that was removed. */
  *partitions(): Generator<number | undefined> {
    for (let slot = 0; slot < this.#length; slot++) yield this.has(slot) ? this.ids.partition(slot) : undefined;
  }

  /** The slot of a vector; undefined when it is not here, or removed. O(log n) */
  slotOf(id: BareId): number | undefined {
    const slot = this.ids.find(id, this.#length);
    return slot !== undefined && this.has(slot) ? slot : undefined;
  }

  /** The slot of a memory's newest vector, if that is here. */
  slotOfMemory(memory: BareId): number | undefined {
    return (this.#moved.size === 0 ? undefined : this.#moved.get(memory)) ?? this.slotOf(memory);
  }

  /**
   * Compares the slots with the ids of all that is stored, in ascending order. Those that are stored no more are given to `remove`.
   *
   * @param stored - ids as bytes, end to end, some at a time
   * @returns false when one up to the last slot's never had a slot: then these slots are of another store
   */
  keepOnly(stored: Iterable<Uint8Array>, remove: (slot: number) => void): boolean {
    let slot = 0;
    for (const { buffer, byteOffset, byteLength } of stored) {
      const ids = new DataView(buffer, byteOffset, byteLength);
      for (let at = 0; at < byteLength; at += BARE_ID_LENGTH) {
        for (; slot < this.#length && this.ids.compare(slot, ids, at) < 0; slot++) remove(slot);
        if (slot === this.#length) return true;
        if (this.ids.compare(slot, ids, at) > 0 || !this.has(slot)) return false;
        slot++;
      }
    }
    for (; slot < this.#length; slot++) remove(slot);
    return true;
  }

  #trackMoved(slot: number): void {
    if (!this.ids.isOwn(slot)) this.#moved.set(this.memory(slot), slot);
  }
}
