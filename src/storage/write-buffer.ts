/**
 * The writes of one commit, until its callback has returned.
 *
 * Nothing reaches the store before: the writes of a callback that throws are dropped, so that many commits can share a
 * transaction without one of them spoiling it for the others. Reads see what the same callback has written before. The entries
 * of indexes are written with the rows they follow from.
 *
 * @module
 */
import { withPrefix, type BareId, type Partition, type Id, type IdPrefix } from "../lib/ids.ts";
import { FIRST, lastOfEachKey, type PrefixSpan, type Reader, type Span, type Tx, type Writable } from "./access.ts";
import type { AnyTable, Index, Readable, Table, VectorTable } from "./tables.ts";

export interface Write {
  readonly table: string;
  readonly key: string;
  /** Undefined removes. */
  readonly value: string | Uint8Array | undefined;
  /** True if the callback takes for granted that no such row is there yet. */
  readonly isNew: boolean;
  /** Row of which `value` is the stored form; of a put. */
  readonly row: unknown;
}

/** Inputs of a callback however often it is run: its time, and one id after the other. */
export interface TxContext {
  readonly now: number;
  readonly elapsed: number;
  readonly partition: Partition;
  id(partition: Partition, after?: BareId): BareId;
}

/**
 * At most this many writes are searched without `#latest`: every change asks whether there are webhooks, after its own rows, which takes
 * 0.9 µs less so.
 */
const WRITES_SEARCHED = 16;

export class WriteBuffer implements Tx {
  readonly now: number;
  readonly elapsed: number;
  readonly #stored: Reader;
  readonly #context: TxContext;
  readonly #sink: ((write: Write) => void) | undefined;
  #writes: Write[] = [];
  /** The last write of each key, by table; made when a table is read that was written before, which most commits never do. */
  #latest: Map<string, Map<string, Write>> | undefined;
  #indexed = 0;
  /** Rows of indexed tables as they were read last, by table and key: their entries are removed when others are put. */
  readonly #read = new Map<string, unknown>();

  /** @param sink - takes each write at once, for a commit too large for memory; nothing is buffered then */
  constructor(stored: Reader, context: TxContext, sink?: (write: Write) => void) {
    this.now = context.now;
    this.elapsed = context.elapsed;
    this.#stored = stored;
    this.#context = context;
    this.#sink = sink;
  }

  get recordsAtOnce(): number {
    return this.#stored.recordsAtOnce;
  }

  /** Writes, in order. */
  get writes(): readonly Write[] {
    return this.#writes;
  }

  get bytesWritten(): number {
    return this.#writes.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
  }

  /** Takes over what a callback that was run on top of this buffer has written. */
  absorb(writes: readonly Write[]): void {
    for (const write of writes) this.#writes.push(write);
  }

  bareId(partition: Partition = this.#context.partition, after?: BareId): BareId {
    return this.#context.id(partition, after);
  }

  id<Prefix extends IdPrefix>(prefix: Prefix, partition?: Partition): Id<Prefix> {
    return withPrefix(prefix, this.bareId(partition));
  }

  add<Row>(table: Writable<Row>, key: string, row: Row): void {
    for (const index of table.indexes) for (const entry of index.entriesOf(key, row)) this.#write(index, entry, "");
    if (table.indexes.length > 0) this.#note(table, key, row);
    this.#write(table, key, table.encode(row), true, row);
  }

  put<Row>(table: Writable<Row>, key: string, row: Row): void {
    if (table.indexes.length > 0) {
      const before = this.#before(table, key);
      if (before === undefined || table.hasSameEntries?.(before, row) !== true)
        for (const index of table.indexes) this.#putEntries(index, key, before, row);
      this.#note(table, key, row);
    }
    this.#write(table, key, table.encode(row), false, row);
  }

  remove<Row>(table: Writable<Row>, key: string): void {
    if (table.indexes.length > 0) {
      const before = this.#before(table, key);
      if (before === undefined) return;
      for (const index of table.indexes) for (const entry of index.entriesOf(key, before)) this.#write(index, entry, undefined);
      this.#note(table, key, undefined);
    }
    this.#write(table, key, undefined);
  }

  putVector(table: VectorTable, id: string, bytes: Uint8Array): void {
    this.#write(table, id, bytes);
  }

  removeVector(table: VectorTable, id: string): void {
    this.#write(table, id, undefined);
  }

  get<Row>(table: Readable<Row>, key: string): Row | undefined {
    const write = this.#of(table)?.get(key);
    const row =
      write === undefined ? this.#stored.get(table, key) : typeof write.value === "string" ? table.decode(write.value) : undefined;
    if ("indexes" in table && (table as Table<Row>).indexes.length > 0) this.#note(table, key, row);
    return row;
  }

  ahead(table: AnyTable, keys: Iterable<string>): void {
    this.#stored.ahead(table, keys);
  }

  aheadOf(tables: readonly AnyTable[], span: Span): void {
    this.#stored.aheadOf(tables, span);
  }

  has(table: AnyTable, key: string): boolean {
    const write = this.#of(table)?.get(key);
    return write === undefined ? this.#stored.has(table, key) : write.value !== undefined;
  }

  keys(table: AnyTable, span: Span): string[] {
    const { from, to, limit, descending } = span;
    const own = new Map<string, Write>();
    for (const [key, write] of this.#of(table) ?? []) if (key >= from && key < to) own.set(key, write);
    if (own.size === 0) return this.#stored.keys(table, span);
    const put = Array.from(own).flatMap(([key, { value }]) => (value === undefined ? [] : [key]));
    // As many more as were removed: then whatever lies beyond the last of them is beyond the limit too.
    const stored = this.#stored.keys(table, limit === undefined ? span : { ...span, limit: limit + own.size - put.length });
    const keys = [...stored.filter((key) => !own.has(key)), ...put].toSorted();
    return (descending === true ? keys.reverse() : keys).slice(0, limit);
  }

  lastOfEach(table: AnyTable, width: number, span: PrefixSpan): string[] {
    return lastOfEachKey(this, table, width, span);
  }

  rows<Row>(table: Readable<Row>, span: Span): { key: string; row: Row }[] {
    if (this.#of(table) === undefined) return this.#stored.rows(table, span);
    return this.keys(table, span).map((key) => ({ key, row: this.get(table, key) as Row }));
  }

  isEmpty(table: AnyTable): boolean {
    return this.#of(table) === undefined ? this.#stored.isEmpty(table) : this.keys(table, FIRST).length === 0;
  }

  derived<Row extends object, Result>(_table: Readable<Row>, _key: string, _row: Row, make: () => Result): Result {
    return make();
  }

  vectorBytes(table: VectorTable, id: string): Uint8Array | undefined {
    const write = this.#of(table)?.get(id);
    if (write === undefined) return this.#stored.vectorBytes(table, id);
    return typeof write.value === "string" ? undefined : write.value;
  }

  #write({ name }: AnyTable, key: string, value: Write["value"], isNew = false, row?: unknown): void {
    const write = { table: name, key, value, isNew, row };
    if (this.#sink === undefined) this.#writes.push(write);
    else this.#sink(write);
  }

  #putEntries<Row>(index: Index<Row>, key: string, before: Row | undefined, row: Row): void {
    const old = before === undefined ? [] : index.entriesOf(key, before);
    const entries = index.entriesOf(key, row);
    for (const entry of old) if (!entries.includes(entry)) this.#write(index, entry, undefined);
    for (const entry of entries) if (!old.includes(entry)) this.#write(index, entry, "");
  }

  /** The row as this callback sees it, which has most often read it just before. */
  #before<Row>(table: Writable<Row>, key: string): Row | undefined {
    const name = table.name + key;
    return this.#read.has(name) ? (this.#read.get(name) as Row | undefined) : this.get(table, key);
  }

  #note({ name }: AnyTable, key: string, row: unknown): void {
    if (this.#sink === undefined) this.#read.set(name + key, row);
  }

  /** The last writes of a table, if there are any. */
  #of({ name }: AnyTable): Map<string, Write> | undefined {
    if (this.#indexed === 0 && this.#writes.length <= WRITES_SEARCHED && !this.#writes.some(({ table }) => table === name))
      return undefined;
    this.#latest ??= new Map<string, Map<string, Write>>();
    for (; this.#indexed < this.#writes.length; this.#indexed++) {
      const write = this.#writes[this.#indexed]!;
      let table = this.#latest.get(write.table);
      if (table === undefined) this.#latest.set(write.table, (table = new Map<string, Write>()));
      table.set(write.key, write);
    }
    return this.#latest.get(name);
  }
}

/** Checks whether two runs of a callback have written the same. */
export function areSameWrites(writes: readonly Write[], others: readonly Write[]): boolean {
  return writes.length === others.length && writes.every((write, i) => Bun.deepEquals(write, others[i]));
}
