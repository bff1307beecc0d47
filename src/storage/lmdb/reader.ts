/**
 * Reads the tables of LMDB, as they are now or as one of its transactions sees them.
 *
 * @module
 */
import type { Database, Transaction } from "lmdb";
import type { Clock } from "../../lib/clock.ts";
import { FIRST, lastOfEachKey, type LatestReader, type PrefixSpan, type Reader, type Span } from "../access.ts";
import { successor, KEY } from "../keys.ts";
import type { WholeRow, WholeStore } from "../record-store.ts";
import type { AnyTable, Readable, VectorTable } from "../tables.ts";
import { ChangeBuffer, changeBufferOf } from "./change-buffer.ts";
import { keysOutOfOrder } from "./disk/disk-errors.ts";
import type { RowCache } from "./row-cache.ts";

export type TextDatabase = Database<string, string>;
export type ByteDatabase = Database<Uint8Array, string>;

/** The tables that are open, by name. */
export class Databases {
  readonly texts = new Map<string, TextDatabase>();
  readonly vectors = new Map<string, ByteDatabase>();
  /** Entries that are not in their tables yet. */
  changeBuffer = new ChangeBuffer();

  /** @throws {Error} for a name that is none */
  of({ name }: AnyTable): TextDatabase {
    const database = this.texts.get(name);
    if (database === undefined) throw new Error(`no table ${name}`);
    return database;
  }

  /** @throws {Error} for a name that is none */
  ofBytes({ name }: VectorTable): ByteDatabase {
    const database = this.vectors.get(name);
    if (database === undefined) throw new Error(`no table ${name}`);
    return database;
  }

  /** The same for a table whose rows may be bytes, for what concerns keys alone. */
  ofAny(table: AnyTable): TextDatabase | ByteDatabase {
    return this.texts.get(table.name) ?? this.ofBytes(table as VectorTable);
  }
}

/**
 * Use of the cache by a reader. `all`: rows that are read are cached; `committed`: inside a transaction, where only rows that
 * no commit in flight has written are in the cache, and nothing is added but which tables are empty; `none`: another
 * snapshot than the latest.
 */
type Caching = "all" | "committed" | "none";

export class LmdbReader implements LatestReader {
  readonly recordsAtOnce = 1;
  readonly #clock: Clock;
  #now: number | undefined;
  readonly #databases: Databases;
  readonly #rows: RowCache;
  readonly #caching: Caching;
  /** An option of calls of lmdb-js; undefined is cheaper than an empty one. */
  protected readonly at: { transaction: Transaction } | undefined;

  constructor(databases: Databases, rows: RowCache, caching: Caching, clock: Clock, transaction?: Transaction) {
    this.#clock = clock;
    this.#databases = databases;
    this.#rows = rows;
    this.#caching = caching;
    this.at = transaction === undefined ? undefined : { transaction };
  }

  /** Time of the first request for it: many reads need no time. */
  get now(): number {
    return (this.#now ??= this.#clock.now());
  }

  get<Row>(table: Readable<Row>, key: string): Row | undefined {
    const cached = this.#caching === "none" ? undefined : this.#rows.of(table.name)?.get(key);
    if (cached !== undefined) return cached.row as Row | undefined;
    const text = this.databases.of(table).get(key, this.at);
    const row = text === undefined ? undefined : table.decode(text);
    if (this.#caching === "all") this.#rows.set(table.name, key, text, row);
    return row;
  }

  /** Nothing is fetched from here: the file is mapped. */
  ahead(): void {}

  aheadOf(): void {}

  has(table: AnyTable, key: string): boolean {
    if (this.#databases.changeBuffer.isOf(table.name) && this.changeBuffer.has({ table: table.name, key }, this.isInside)) return true;
    const database = this.databases.ofAny(table);
    return this.at === undefined ? database.doesExist(key) : database.get(key, this.at) !== undefined;
  }

  keys(table: AnyTable, span: Span): string[] {
    const read = (some: Span) => Array.from(this.databases.ofAny(table).getKeys(this.#range(some)));
    const keys = soundOnes(table, span, read, (key) => key);
    return this.#databases.changeBuffer.isOf(table.name) ? this.changeBuffer.merged(table.name, span, keys, this.isInside) : keys;
  }

  /** Checks whether it reads inside a transaction, and sees what that has written. */
  protected get isInside(): boolean {
    return false;
  }

  protected get databases(): Databases {
    return this.#databases;
  }

  /** Rows that this reader sees. */
  protected get changeBuffer(): ChangeBuffer {
    return this.#databases.changeBuffer;
  }

  lastOfEach(table: AnyTable, width: number, span: PrefixSpan): string[] {
    return lastOfEachKey(this, table, width, span);
  }

  rows<Row>(table: Readable<Row>, span: Span): { key: string; row: Row }[] {
    const read = (some: Span) => Array.from(this.databases.of(table).getRange(this.#range(some)));
    const entries = soundOnes(table, span, read, ({ key }) => key);
    return entries.map(({ key, value }) => ({ key, row: table.decode(value) }));
  }

  isEmpty(table: AnyTable): boolean {
    const known = this.#caching === "none" ? undefined : this.#rows.isEmpty(table.name);
    if (known !== undefined) return known;
    const isEmpty = this.keys(table, FIRST).length === 0;
    // A change asks this of two tables that nearly always are, and looking costs as much as reading its session.
    if (this.#caching !== "none") this.#rows.setEmpty(table.name, isEmpty);
    return isEmpty;
  }

  derived<Row extends object, Result>(
    table: Readable<Row>,
    key: string,
    row: Row,
    make: () => Result,
    bytesOf: (result: Result) => number,
  ): Result {
    return this.#caching === "all" ? this.#rows.derived(table, key, row, make, bytesOf) : make();
  }

  revision(table: AnyTable, key: string): number | bigint | undefined {
    const bytes = this.databases.of(table).getBinaryFast(key);
    return bytes && Bun.hash(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length));
  }

  vectorBytes(table: VectorTable, id: string): Uint8Array | undefined {
    const database = this.databases.ofBytes(table);
    const bytes = this.at === undefined ? database.getBinaryFast(id) : database.get(id, this.at);
    // The buffer of lmdb-js is longer than what it holds, and of its properties only `length` says how much that is.
    return bytes && new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length);
  }

  #range({ from, to, limit, descending }: Span) {
    const bounds =
      descending === true ? { start: to, end: from, reverse: true, exclusiveStart: true, inclusiveEnd: true } : { start: from, end: to };
    return { ...bounds, ...this.at, ...(limit === undefined ? {} : { limit }) };
  }
}

/**
 * Entries of a span without those that have no key: a damaged one, which would be taken for an id. To read on behind the last of some
 * keys would never end if these led back.
 *
 * @throws {Error} of a damaged page, for keys that are not in order or not of the span
 */
function soundOnes<Item>(table: AnyTable, span: Span, read: (span: Span) => Item[], keyOf: (item: Item) => string): Item[] {
  const found: Item[] = [];
  for (let left = span; ;) {
    const items = read(left);
    const end = checkOrder(table, left, items, keyOf);
    const sound = items.filter((item) => KEY.test(keyOf(item)));
    const missing = items.length - sound.length;
    if (missing === 0 && found.length === 0) return items;
    found.push(...sound);
    if (missing === 0 || items.length !== left.limit) return found;
    left = { ...left, ...(left.descending === true ? { to: end } : { from: successor(end) }), limit: missing };
  }
}

/** @returns the last key */
function checkOrder<Item>(table: AnyTable, { from, to, descending }: Span, items: readonly Item[], keyOf: (item: Item) => string): string {
  let [low, high] = [from, to];
  for (const [i, item] of items.entries()) {
    const key = keyOf(item);
    if (key >= high || key < low || (key === low && i > 0 && descending !== true)) throw keysOutOfOrder(table);
    if (descending === true) high = key;
    else low = key;
  }
  return descending === true ? high : low;
}

/** Reads inside a transaction, and sees what it has written. */
export class InsideReader extends LmdbReader {
  protected override get isInside(): boolean {
    return true;
  }
}

const ITEMS_PER_BATCH = 1_000;
const LENGTH_PER_BATCH = 256 * 1024;

/** A snapshot of the whole store, whatever is committed meanwhile. As long as it is held the disk keeps what it shows. */
export class Snapshot extends LmdbReader implements Disposable, WholeStore {
  readonly hasIndexColumns = false;
  #changeBuffer: ChangeBuffer | undefined;

  /** Entries of its own snapshot, whichever process has still to write them. */
  protected override get changeBuffer(): ChangeBuffer {
    if (this.#changeBuffer !== undefined) return this.#changeBuffer;
    // Reads that find them have none.
    this.#changeBuffer = new ChangeBuffer();
    try {
      return (this.#changeBuffer = changeBufferOf(this));
    } catch (error) {
      this.#changeBuffer = undefined;
      throw error;
    }
  }

  rowBatches(table: AnyTable): Iterable<readonly WholeRow[]> {
    const entries = this.databases.of(table).getRange({ start: "", ...this.at });
    return batchesOf(
      entries.map(({ key, value }) => ({ key, text: value })),
      ({ text }) => text.length,
    );
  }

  keyBatches(table: AnyTable): Iterable<readonly string[]> {
    return batchesOf(this.databases.ofAny(table).getKeys({ start: "", ...this.at }), (key) => key.length);
  }

  readEach<Item, Result>(items: readonly Item[], callback: (reader: Reader, item: Item) => Result): Result[] {
    return items.map((item) => callback(this, item));
  }

  [Symbol.dispose](): void {
    this.at?.transaction.done();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this[Symbol.dispose]());
  }
}

function* batchesOf<Item>(items: Iterable<Item>, lengthOf: (item: Item) => number): Generator<Item[], void, undefined> {
  let batch: Item[] = [];
  let length = 0;
  for (const item of items) {
    batch.push(item);
    length += lengthOf(item);
    if (batch.length < ITEMS_PER_BATCH && length < LENGTH_PER_BATCH) continue;
    yield batch;
    batch = [];
    length = 0;
  }
  yield batch;
}
