/**
 * Slots that pass the filters that are searched with again and again, a bit each: asking that takes nanoseconds, where looking a memory
 * up in the indexes takes two microseconds, and a search asks about thousands. Where all that pass are compared they are listed from here:
 * of 50,000 memories with a filter that 4,953 pass a search takes 0.30 of what it takes with a walk through the indexes.
 *
 * They are read once, from the second search on, in steps between searches. What was read stays right: ids rise, so what is new has a
 * later slot than all that were read, and is looked up; and so is a memory whose row was put since.
 *
 * @module
 */
import { CACHE_BYTES_MAX } from "../lib/limits.ts";
import type { BareId } from "../lib/ids.ts";
import type { Reader } from "../storage/access.ts";
import type { AnyTable } from "../storage/tables.ts";
import { matches, leapfrogJoin, type Filter, type Pause } from "../storage/walk.ts";
import type { Slots } from "./slots.ts";

export interface FilterBitmapsOptions {
  /** Bounds the bits of all filters together. */
  bytesMax: number;
  /** Filters that are known by name, whether their slots were read or not. */
  filtersMax: number;
  /** A filter whose slots take more probes of indexes than this is not kept. */
  probesMax: number;
  /** Number of rows put after which all is read again. */
  updatedMax: number;
  /** Number of new slots from which they are read too. */
  newMax: number;
}

const DEFAULTS: FilterBitmapsOptions = {
  bytesMax: CACHE_BYTES_MAX.filterBitmaps,
  filtersMax: 1_000,
  probesMax: 2_000_000,
  updatedMax: 10_000,
  newMax: 250,
};

const USES_MIN = 2;
const PROBES_PER_STEP = 1_000;
const NEW_PER_STEP = 200;

/** Known part of a filter. */
export interface Passing {
  /** The share of the slots that pass, about. */
  readonly share: number;
  /** Checks whether a slot passes; undefined when that has to be looked up. */
  has(slot: number): boolean | undefined;
  /** All that pass, in order. @param passes - whether one does that has to be looked up */
  all(slots: Slots, passes: (slot: number) => boolean): Uint32Array;
}

interface Entry {
  readonly filter: Filter;
  uses: number;
  bits: Uint8Array;
  /** Slots before this were read, once `walk` is undefined. */
  end: number;
  count: number;
  probes: number;
  /** Progress of reading; undefined when it has come to the end, or has not begun. */
  walk: Generator<BareId | Pause, void, undefined> | undefined;
  state: "unread" | "reading" | "read" | "refused";
}

export class FilterBitmaps {
  readonly #records: AnyTable;
  readonly #options: FilterBitmapsOptions;
  /** The least recently used one comes first. */
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;
  /** Slots of memories whose rows were put since anything was read. */
  readonly #updated = new Set<number>();
  /** Filters to read, one after the other. */
  #queue: Entry[] = [];

  constructor(records: AnyTable, options: Partial<FilterBitmapsOptions> = {}) {
    this.#records = records;
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Checks whether there is anything to read. */
  get isBehind(): boolean {
    return this.#queue.length > 0;
  }

  /** Notes that a filter is searched with. */
  use(filter: Filter, slots: Slots): void {
    const name = nameOf(filter);
    const entry = this.#entries.get(name) ?? { ...NEW, filter, bits: NO_BITS };
    // Deleted and set again to be the last.
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    entry.uses++;
    if (entry.state === "unread" && entry.uses >= USES_MIN) this.#begin(entry, slots);
    if (entry.state === "read" && slots.length - entry.end > this.#options.newMax && !this.#queue.includes(entry)) this.#queue.push(entry);
    this.#evict();
  }

  /** Known part of a filter, until something is read or cleared. */
  of(filter: Filter): Passing | undefined {
    const entry = this.#entries.get(nameOf(filter));
    if (entry?.state !== "read") return undefined;
    const { bits, count, end } = entry;
    const updated = this.#updated;
    const has = (slot: number) =>
      slot >= end || (updated.size > 0 && updated.has(slot)) ? undefined : (bits[slot >> 3]! & (1 << (slot & 7))) !== 0;
    const all = (slots: Slots, passes: (slot: number) => boolean): Uint32Array => {
      const found: number[] = [];
      for (let byte = 0; byte << 3 < end; byte++) {
        if (bits[byte] === 0) continue;
        for (let slot = byte << 3, behind = Math.min(slot + 8, end); slot < behind; slot++)
          if (has(slot) === true && slots.has(slot)) found.push(slot);
      }
      for (const slot of updated) if (slot < end && slots.has(slot) && passes(slot)) found.push(slot);
      for (let slot = end; slot < slots.length; slot++) if (slots.has(slot) && passes(slot)) found.push(slot);
      return Uint32Array.from(found).sort();
    };
    return { share: count / Math.max(1, end), has, all };
  }

  #begin(entry: Entry, slots: Slots): void {
    entry.state = "reading";
    entry.end = slots.length;
    this.#resize(entry, slots.length);
    this.#queue.push(entry);
  }

  /**
   * Reads some of what there is to read.
   *
   * @param slotOf - the slot of a memory's vector
   * @returns whether there was anything
   */
  step(reader: Reader, slots: Slots, slotOf: (memory: BareId) => number | undefined): boolean {
    const [entry] = this.#queue;
    if (entry === undefined) return false;
    const isDone = entry.state === "reading" ? this.#walk(entry, reader, slotOf) : this.#readNew(entry, reader, slots);
    if (isDone) this.#queue.shift();
    return true;
  }

  #walk(entry: Entry, reader: Reader, slotOf: (memory: BareId) => number | undefined): boolean {
    entry.walk ??= leapfrogJoin(reader, this.#records, entry.filter, {}, PROBES_PER_STEP);
    for (let given = 0; given < PROBES_PER_STEP; given++) {
      const { done, value } = entry.walk.next();
      if (done === true) {
        entry.walk = undefined;
        entry.state = "read";
        return true;
      }
      const probes = typeof value === "string" ? 1 : value.probes;
      entry.probes += probes;
      if (entry.probes > this.#options.probesMax) {
        this.#forget(entry, "refused");
        return true;
      }
      if (typeof value !== "string") return false;
      const slot = slotOf(value);
      if (slot !== undefined && slot < entry.end) this.#put(entry, slot);
    }
    return false;
  }

  /** Reads the slots that came since. */
  #readNew(entry: Entry, reader: Reader, slots: Slots): boolean {
    const end = Math.min(slots.length, entry.end + NEW_PER_STEP);
    this.#resize(entry, slots.length);
    for (; entry.end < end; entry.end++) {
      if (slots.has(entry.end) && matches(reader, entry.filter, slots.memory(entry.end))) this.#put(entry, entry.end);
    }
    return entry.end === slots.length;
  }

  #put(entry: Entry, slot: number): void {
    const bit = 1 << (slot & 7);
    if ((entry.bits[slot >> 3]! & bit) === 0) entry.count++;
    entry.bits[slot >> 3]! |= bit;
  }

  #resize(entry: Entry, slots: number): void {
    const bytes = Math.ceil(slots / 8);
    if (bytes <= entry.bits.length) return;
    const bits = new Uint8Array(bytes);
    bits.set(entry.bits);
    this.#bytes += bytes - entry.bits.length;
    entry.bits = bits;
  }

  /**
   * The row of a memory was put again: what passed or not may be otherwise now. To be told once readers see it.
   *
   * @param slot - of its vector
   */
  updated(slot: number): void {
    this.#updated.add(slot);
    if (this.#updated.size > this.#options.updatedMax) this.clear();
  }

  /** Has all be read again. */
  clear(): void {
    for (const entry of this.#entries.values()) this.#forget(entry, "unread");
    this.#updated.clear();
    this.#queue = [];
  }

  #forget(entry: Entry, state: Entry["state"]): void {
    this.#bytes -= entry.bits.length;
    Object.assign(entry, { ...NEW, bits: NO_BITS, state, uses: entry.uses });
  }

  #evict(): void {
    for (const [name, entry] of this.#entries) {
      if (this.#entries.size <= this.#options.filtersMax && (this.#bytes <= this.#options.bytesMax || this.#entries.size === 1)) return;
      this.#entries.delete(name);
      this.#forget(entry, "refused");
      this.#queue = this.#queue.filter((one) => one !== entry);
    }
  }
}

function nameOf(filter: Filter): string {
  return JSON.stringify(filter);
}

const NO_BITS = new Uint8Array(0);
const NEW = { uses: 0, end: 0, count: 0, probes: 0, walk: undefined, state: "unread" } as const;
