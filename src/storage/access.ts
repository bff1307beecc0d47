/**
 * Reads and writes of the store: in scopes. `Store.read` and `Store.commit` run a function of one of these; nothing read in
 * one scope is good in the next.
 *
 * @module
 */
import type { BareId, Partition, Id, IdPrefix } from "../lib/ids.ts";
import { MAX_KEY } from "./keys.ts";
import type { AnyTable, Index, Readable, Table, VectorTable } from "./tables.ts";

/** Keys from `from` (included) to `to` (excluded), ascending unless said otherwise. */
export interface Span {
  from: string;
  to: string;
  limit?: number;
  descending?: boolean;
}

/** Ascending. */
export type PrefixSpan = Omit<Span, "descending"> & { limit: number };

/** The first key of a table, if there is one. */
export const FIRST: Span = { from: "", to: MAX_KEY, limit: 1 };

/** Thrown into a callback that reads what the store has still to fetch: then the callback is run again, and has to let it pass. */
export class NotFetched extends Error {
  override name = "NotFetched";
}

/** Has each of several reads say what is still to be fetched, instead of ending the run with the first of them. */
export function eachFetched<Item, Result>(items: readonly Item[], read: (item: Item) => Result): Result[] {
  let missing: NotFetched | undefined;
  const results = items.flatMap((item) => {
    try {
      return [read(item)];
    } catch (error) {
      if (!(error instanceof NotFetched)) throw error;
      missing = error;
      return [];
    }
  });
  if (missing !== undefined) throw missing;
  return results;
}

/**
 * Reads each item, as many of them in one scope as that should read.
 *
 * @param reading - what reads an item, in a scope
 * @yields what was read, in the order of the items
 */
export async function* eachRead<Item, Result>(
  store: { read: <Value>(callback: (reader: Reader) => Value) => Value | Promise<Value> },
  items: readonly Item[],
  reading: (reader: Reader) => (item: Item) => Result,
): AsyncGenerator<Result[], void, undefined> {
  for (let done = 0; done < items.length;) {
    const results = await store.read((reader) => eachFetched(items.slice(done, done + reader.recordsAtOnce), reading(reader)));
    yield results;
    done += results.length;
  }
}

/** `lastOfEach` where keys are near: two probes for each. */
export function lastOfEachKey(reader: Pick<Reader, "keys">, table: AnyTable, width: number, { from, to, limit }: PrefixSpan): string[] {
  const found: string[] = [];
  for (let at = from; found.length < limit;) {
    const [first] = reader.keys(table, { from: at, to, limit: 1 });
    if (first === undefined) break;
    const prefix = first.slice(0, width);
    at = prefix + MAX_KEY;
    found.push(...reader.keys(table, { from: prefix, to: at, limit: 1, descending: true }));
  }
  return found;
}

/** A snapshot of the store. */
export interface Reader {
  /** Its time, in Unix milliseconds. */
  readonly now: number;
  /** Number of records that a scope reads that can be large: all of them are held, and other requests wait or are let through. */
  readonly recordsAtOnce: number;
  get<Row>(table: Readable<Row>, key: string): Row | undefined;
  /** Says that these rows are read next, so that they are fetched together. */
  ahead(table: AnyTable, keys: Iterable<string>): void;
  /** The same of the keys of spans: each is read, or a part of it from the same end. */
  aheadOf(tables: readonly AnyTable[], span: Span): void;
  has(table: AnyTable, key: string): boolean;
  keys(table: AnyTable, span: Span): string[];
  /**
   * The last key of each of the first `limit` prefixes, ascending.
   *
   * @param width - characters of a prefix, at which `from` and `to` lie
   */
  lastOfEach(table: AnyTable, width: number, span: PrefixSpan): string[];
  rows<Row>(table: Readable<Row>, span: Span): { key: string; row: Row }[];
  isEmpty(table: AnyTable): boolean;
  /**
   * Result of `make` for a row that `get` gave, from a cache if it was made of this very row before. It may use whatever the
   * row alone decides, such as the state whose version a session's row names.
   */
  derived<Row extends object, Result>(
    table: Readable<Row>,
    key: string,
    row: Row,
    make: () => Result,
    bytesOf: (result: Result) => number,
  ): Result;
  /** A stored vector. Copy its bytes before the next read: the buffer is used again. */
  vectorBytes(table: VectorTable, id: string): Uint8Array | undefined;
}

/** A reader outside of commits. */
export interface LatestReader extends Reader {
  /** Version of a stored row, without reading it; undefined where there is none. */
  revision(table: AnyTable, key: string): number | bigint | undefined;
}

/** Writer of a table's rows, with the entries of its indexes. */
export type Writable<Row> = AnyTable &
  Pick<Table<Row>, "encode" | "decode"> &
  Partial<Pick<Table<Row>, "hasSameEntries">> & { readonly indexes: readonly Index<Row>[] };

/**
 * Access of the callback of a commit. A read sees what the callback wrote before.
 *
 * A callback can be run more than once, and has to write the same each time: its time and its ids come from here, what it gives back
 * is its result, and it changes nothing else.
 */
export interface Tx extends Reader {
  /** The time on the clock that only counts on, in milliseconds. */
  readonly elapsed: number;
  /** About what the callback has written so far. */
  readonly bytesWritten: number;
  /**
   * @param partition - of the id; that of the commit when none is given
   * @param after - the id is greater than this one, which a server whose clock is ahead may have given
   */
  bareId(partition?: Partition, after?: BareId): BareId;
  id<Prefix extends IdPrefix>(prefix: Prefix, partition?: Partition): Id<Prefix>;
  /** Writes a row that is not there yet. */
  add<Row>(table: Writable<Row>, key: string, row: Row): void;
  put<Row>(table: Writable<Row>, key: string, row: Row): void;
  remove<Row>(table: Writable<Row>, key: string): void;
  putVector(table: VectorTable, id: string, bytes: Uint8Array): void;
  removeVector(table: VectorTable, id: string): void;
}
