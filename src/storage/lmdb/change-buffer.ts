/**
 * Index entries of the newest traces, which are written some time after their rows: in memory until then.
 *
 * A change leaves a trace in the indexes of its session, its user and its agent: pages that nothing else of the change is on.
 * Entries are kept here until a few thousand have gathered, and are then written in the order of their keys, some with each
 * transaction: those that lie on the same page share its cost. A flush writes all that are there when it begins, and then moves the
 * watermark: the trace up to which all have their entries. Readers see both as one.
 *
 * New entries are appended as they come, and sorted into those of their index by the next reader of it, most often the next flush.
 *
 * Nothing depends on this memory: rows are on the disk before the answer. A store that is closed has all entries; after a crash a start
 * makes those of traces behind the watermark from their rows, and so does a snapshot that another process reads.
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../../lib/ids.ts";
import type { Reader, Span } from "../access.ts";
import { MAX_KEY, successor } from "../keys.ts";
import { meta, TRACES_WATERMARK, traces } from "../tables.ts";
import { unlessUnreadable } from "../unreadable.ts";

export interface Entry {
  readonly table: string;
  readonly key: string;
}

/**
 * Number of entries at which a flush begins: those of some 8,000 changes, which a start after a crash reads. With 6,000 of them a change
 * wrote 12 % more bytes.
 */
const ENTRIES_PER_FLUSH_MIN = 24_000;
/** Written with a transaction; twice as many as it adds where that is more, so that no more than about twice the above gather. */
const ENTRIES_PER_STEP = 200;

const BUFFERED_INDEXES = traces.indexes.filter(({ isBuffered }) => isBuffered);

/** The watermark where no trace is behind it. */
export const FIRST_WATERMARK = "0".repeat(BARE_ID_LENGTH);

interface Flush {
  /** The watermark once it is done. */
  readonly watermark: BareId;
  /** The indexes still to be written, and the last entry of the first of them that was. */
  readonly indexes: string[];
  after: string;
}

/** The entries that one transaction writes, and the watermark, if these are the last of a flush. */
export interface Step {
  readonly entries: readonly Entry[];
  readonly watermark: BareId | undefined;
}

/** Entries of one index. */
interface Entries {
  /** Entries that were sorted in, in order. */
  keys: string[];
  /** Entries that were not yet, in any order; some may be in `keys` too. */
  added: string[];
}

export class ChangeBuffer {
  readonly #indexes = new Map(BUFFERED_INDEXES.map(({ name }): [string, Entries] => [name, { keys: [], added: [] }]));
  /** Additions of a transaction that has not been committed yet, until it looks at entries itself: nobody else sees the rows. */
  #pending: Entry[] = [];
  /** Additions of it that are here already, for it alone. */
  readonly #uncommitted = new Set<string>();
  /** Entries of the transaction that are here already, and those that it has removed here. */
  #changed: Entry[] = [];
  #size = 0;
  #addedSinceStep = 0;
  #flush: Flush | undefined;
  #step: Step | undefined;
  readonly #perFlushMin: number;

  constructor(perFlushMin: number = ENTRIES_PER_FLUSH_MIN) {
    this.#perFlushMin = perFlushMin;
  }

  get size(): number {
    return this.#size;
  }

  /** Number of entries of an index. */
  count(index: string): number {
    return this.#sorted(index)?.length ?? 0;
  }

  /** Checks whether entries of this index are written late. */
  isOf(index: string): boolean {
    return this.#indexes.has(index);
  }

  add({ table, key }: Entry): void {
    this.#indexes.get(table)!.added.push(key);
    this.#size++;
    this.#addedSinceStep++;
  }

  /** Adds what a transaction that has failed did not remove, or has written all the same: a flush under way may have to write it. */
  putBack(entry: Entry): void {
    this.add(entry);
    this.#sorted(entry.table);
  }

  /** Adds what a transaction has written, which alone sees it until `end`. */
  addUncommitted(entry: Entry): void {
    this.#pending.push(entry);
  }

  /** Removes what a transaction that has not been committed yet removes. */
  removeUncommitted(entry: Entry): void {
    if (!this.isOf(entry.table)) return;
    this.#addPending();
    if (this.remove(entry)) this.#changed.push(entry);
  }

  /** @returns whether it was here */
  remove({ table, key }: Entry): boolean {
    const keys = this.#sorted(table);
    if (keys === undefined) return false;
    const at = positionOf(keys, key);
    if (keys[at] !== key) return false;
    keys.splice(at, 1);
    this.#size--;
    return true;
  }

  /** @param isInside - whether the transaction asks whose entries are uncommitted */
  has({ table, key }: Entry, isInside: boolean): boolean {
    const keys = this.#sorted(table, isInside);
    return keys !== undefined && keys[positionOf(keys, key)] === key && (isInside || !this.#uncommitted.has(key));
  }

  /** Entries of a span that a reader sees, of which the store has these keys. @param isInside - as of `has` */
  merged(table: string, span: Span, stored: string[], isInside: boolean): string[] {
    const keys = this.#sorted(table, isInside);
    if (keys === undefined) return stored;
    const { limit = Number.POSITIVE_INFINITY, descending = false } = span;
    const own = this.#within(keys, span, isInside);
    if (own.length === 0) return stored;
    const merged: string[] = [];
    for (let [i, j] = [0, 0]; merged.length < limit && (i < stored.length || j < own.length);) {
      const [one, other] = [stored[i], own[j]];
      // An entry that has just been written is in both.
      if (one === other) j++;
      const isStored = other === undefined || (one !== undefined && (one === other || one < other !== descending));
      merged.push(isStored ? stored[i++]! : own[j++]!);
    }
    return merged;
  }

  #within(keys: readonly string[], { from, to, limit = Number.POSITIVE_INFINITY, descending = false }: Span, isInside: boolean): string[] {
    const isSeen = (key: string) => isInside || !this.#uncommitted.has(key);
    const [start, end] = [positionOf(keys, from), positionOf(keys, to)];
    const own: string[] = [];
    if (descending) for (let i = end; i-- > start && own.length < limit;) if (isSeen(keys[i]!)) own.push(keys[i]!);
    if (!descending) for (let i = start; i < end && own.length < limit; i++) if (isSeen(keys[i]!)) own.push(keys[i]!);
    return own;
  }

  /**
   * Takes the entries that a transaction is to write besides its own rows. They are here until `end` says that it was committed.
   *
   * @param newest - the newest trace of all whose entries were added
   */
  step(newest: BareId): Step {
    const limit = Math.max(ENTRIES_PER_STEP, 2 * this.#addedSinceStep);
    this.#addedSinceStep = 0;
    if (this.#flush === undefined && this.#size < this.#perFlushMin) return NO_STEP;
    this.#flush ??= { watermark: newest, indexes: [...this.#indexes.keys()], after: "" };
    const { watermark, indexes, after } = this.#flush;
    const table = indexes[0]!;
    // Entries that are added from then on need not be written before the watermark moves.
    const keys = after === "" ? this.#sorted(table)! : this.#indexes.get(table)!.keys;
    const start = positionOf(keys, after);
    const entries = keys.slice(start, start + limit).map((key) => ({ table, key }));
    const isLast = indexes.length === 1 && start + entries.length === keys.length;
    return (this.#step = { entries, watermark: isLast ? watermark : undefined });
  }

  /** All entries in order, for the last transaction. */
  all(): Entry[] {
    return [...this.#indexes.keys()].flatMap((table) => this.#sorted(table)!.map((key) => ({ table, key })));
  }

  /**
   * To be called when the transaction has ended.
   *
   * @param isKept - whether it was committed: the entries of its step are written again otherwise
   * @returns what it has added here and removed
   */
  end(isKept: boolean): readonly Entry[] {
    const [step, flush, pending] = [this.#step, this.#flush, this.#pending];
    const changed = this.#changed.length === 0 ? pending : [...this.#changed, ...pending];
    this.#uncommitted.clear();
    this.#changed = [];
    this.#pending = [];
    this.#step = undefined;
    if (isKept) for (const entry of pending) this.add(entry);
    if (isKept && step !== undefined && flush !== undefined) this.#stepped(step, flush);
    return changed;
  }

  #stepped({ entries }: Step, flush: Flush): void {
    const { keys, added } = this.#indexes.get(flush.indexes[0]!)!;
    const [first, last] = [entries[0]?.key, entries.at(-1)?.key];
    if (first !== undefined && last !== undefined) {
      const start = positionOf(keys, first);
      const removed = keys.splice(start, positionOf(keys, last + MAX_KEY) - start);
      this.#size -= entries.length;
      flush.after = last;
      if (removed.length > entries.length) {
        // Meanwhile a reader has had others sorted in between.
        const written = new Set(entries.map(({ key }) => key));
        for (const key of removed) if (!written.has(key)) added.push(key);
      }
    }
    if (positionOf(keys, flush.after) < keys.length) return;
    flush.indexes.shift();
    flush.after = "";
    if (flush.indexes.length === 0) this.#flush = undefined;
  }

  /** All keys of an index, in order; undefined for one that is not written late. @param isInside - as of `has` */
  #sorted(index: string, isInside = false): string[] | undefined {
    const entries = this.#indexes.get(index);
    if (entries === undefined) return undefined;
    if (isInside) this.#addPending();
    if (entries.added.length > 0) {
      const before = entries.keys.length + entries.added.length;
      entries.keys = withAdded(entries.keys, entries.added);
      entries.added = [];
      this.#size -= before - entries.keys.length;
    }
    return entries.keys;
  }

  #addPending(): void {
    for (const entry of this.#pending) {
      this.#changed.push(entry);
      this.#uncommitted.add(entry.key);
      this.add(entry);
    }
    this.#pending = [];
  }
}

const NO_STEP: Step = { entries: [], watermark: undefined };

/** Position of a key, or the one that it would have. */
function positionOf(keys: readonly string[], key: string): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** With more sorted keys than this for each added one, each is inserted by itself. */
const KEYS_FOR_EACH_ADDED = 64;

/** Sorts keys in, of which some may be there already. */
function withAdded(keys: string[], added: string[]): string[] {
  if (added.length * KEYS_FOR_EACH_ADDED < keys.length) {
    for (const key of added) {
      const at = positionOf(keys, key);
      if (keys[at] !== key) keys.splice(at, 0, key);
    }
    return keys;
  }
  const merged: string[] = [];
  let at = 0;
  for (const key of added.toSorted()) {
    while (at < keys.length && keys[at]! < key) merged.push(keys[at++]!);
    if (keys[at] !== key && merged.at(-1) !== key) merged.push(key);
  }
  while (at < keys.length) merged.push(keys[at++]!);
  return merged;
}

/** The entries that may not be in the store, of a reader of what is in it alone; none of a store that has no watermark. */
export function changeBufferOf(reader: Reader, perFlushMin?: number): ChangeBuffer {
  const entries = new ChangeBuffer(perFlushMin);
  const watermark = reader.get(meta, TRACES_WATERMARK);
  if (watermark === undefined) return entries;
  for (const code of codesOf(reader)) {
    for (const key of reader.keys(traces, { from: successor(code + watermark), to: code + MAX_KEY })) {
      const row = unlessUnreadable(() => reader.get(traces, key));
      if (row === undefined) continue;
      for (const index of BUFFERED_INDEXES) for (const entry of index.entriesOf(key, row)) entries.add({ table: index.name, key: entry });
    }
  }
  return entries;
}

/** The newest trace that there is. */
export function newestTrace(reader: Reader): BareId {
  const ids = Array.from(codesOf(reader), (code) => {
    const [key] = reader.keys(traces, { from: code, to: code + MAX_KEY, limit: 1, descending: true });
    return key!.slice(1);
  });
  return ids.toSorted().at(-1) ?? FIRST_WATERMARK;
}

/** Prefixes of the keys of traces: one character for each action of which there are any. */
function* codesOf(reader: Reader): Generator<string, void, undefined> {
  for (let from = ""; ; from += MAX_KEY) {
    const [first] = reader.keys(traces, { from, to: MAX_KEY, limit: 1 });
    if (first === undefined) return;
    yield (from = first.slice(0, 1));
  }
}
