/**
 * Rows of a few tables as they were last read outside commits, or last committed, and what was made of them.
 *
 * Readers see a commit a little before this thread learns of it, so that a row read before must not be used with one read
 * after. Hence a commit removes the rows it writes from the cache while its callback runs (`invalidate`), and none of them is
 * cached again until its outcome is known (`release`). Only tables that no other process writes while a server runs can be cached.
 * Nobody changes a row in place, neither one that was read nor one that was written.
 *
 * @module
 */
import { Cache, type CacheUses, parsedBytes } from "../../lib/cache.ts";
import { RECORD_TABLES, type Readable } from "../tables.ts";
import type { Write } from "../write-buffer.ts";

/** A larger one costs so much to send that making it hardly counts. */
const DERIVED_BYTES_MAX = 32_768;

/** A row as it was read: undefined where there is none. */
interface CachedRow {
  readonly row: unknown;
  /** Made of the row, for `derived`. */
  derived: unknown;
  /** True if `derived` was asked for it before. */
  wasDerived: boolean;
}

/** Write of a commit: a row of a cached table, or something else. */
type Written = Pick<Write, "table" | "key" | "value" | "row">;

class CachedTable {
  readonly rows: Cache<CachedRow>;
  /** True if rows are cached that were committed, and not read since. */
  readonly keepsCommitted: boolean;
  /** True if it has no rows, where that is known. */
  isEmpty: boolean | undefined;
  /** Keys that commits in flight have written, with the number of those commits. */
  readonly uncacheable = new Map<string, number>();

  constructor(bytesMax: number, keepsCommitted: boolean) {
    this.rows = new Cache(bytesMax);
    this.keepsCommitted = keepsCommitted;
  }

  set(key: string, text: string | undefined, row: unknown): void {
    if (this.uncacheable.size > 0 && this.uncacheable.has(key)) return;
    this.rows.set(key, { row, derived: undefined, wasDerived: false }, text === undefined ? 0 : parsedBytes(text, row));
  }
}

export class RowCache {
  readonly #tables = new Map(
    RECORD_TABLES.flatMap(({ name, cachedBytesMax, keepsCommitted }) =>
      cachedBytesMax === undefined ? [] : [[name, new CachedTable(cachedBytesMax, keepsCommitted === true)] as const],
    ),
  );

  /** Hits and misses by table. */
  get uses(): Record<string, CacheUses> {
    return Object.fromEntries(Array.from(this.#tables, ([table, { rows }]) => [table, rows.uses]));
  }

  /** The cached rows of a table, `{ row: undefined }` where it is known that there is none; undefined for a table that is not cached. */
  of(table: string): { get(key: string): { readonly row: unknown } | undefined } | undefined {
    return this.#tables.get(table)?.rows;
  }

  /** @param text - the row as it is stored; undefined when there is none */
  set(table: string, key: string, text: string | undefined, row: unknown): void {
    this.#tables.get(table)?.set(key, text, row);
  }

  /**
   * As `Reader.derived`, from the cache if it was made of this very row twice before. To keep what is made the first time would cost as
   * much as it saves where few rows come again: reading sessions drawn at random from 40,000 takes .95 of the processor time without.
   */
  derived<Row extends object, Result>(
    table: Readable<Row>,
    key: string,
    row: Row,
    make: () => Result,
    bytesOf: (result: Result) => number,
  ): Result {
    const rows = this.#tables.get(table.name)?.rows;
    const cached = rows?.peek(key);
    if (cached?.row !== row) return make();
    if (cached.derived !== undefined) return cached.derived as Result;
    const result = make();
    if (!cached.wasDerived) {
      cached.wasDerived = true;
      return result;
    }
    const bytes = bytesOf(result);
    if (bytes <= DERIVED_BYTES_MAX && rows?.grow(key, bytes) === true) cached.derived = result;
    return result;
  }

  isEmpty(table: string): boolean | undefined {
    return this.#tables.get(table)?.isEmpty;
  }

  setEmpty(table: string, isEmpty: boolean): void {
    const cached = this.#tables.get(table);
    if (cached?.uncacheable.size === 0) cached.isEmpty = isEmpty;
  }

  /**
   * To be called for each row that a commit writes, before any reader can see it; each is cacheable again after `release`.
   *
   * @returns whether its table is cached
   */
  invalidate({ table, key }: Written): boolean {
    const cached = this.#tables.get(table);
    if (cached === undefined) return false;
    cached.rows.delete(key);
    cached.isEmpty = undefined;
    cached.uncacheable.set(key, (cached.uncacheable.get(key) ?? 0) + 1);
    return true;
  }

  /** @param isCommitted - whether they are known to be what the store has now */
  release(writes: readonly Written[], isCommitted: boolean): void {
    for (const { table, key, value, row } of writes) {
      const cached = this.#tables.get(table);
      if (cached === undefined) continue;
      const left = (cached.uncacheable.get(key) ?? 0) - 1;
      if (left > 0) {
        cached.uncacheable.set(key, left);
        continue;
      }
      cached.uncacheable.delete(key);
      // Of those that write the same key only the last comes here. A row that was written as its text is parsed by who reads it.
      if (isCommitted && cached.keepsCommitted && typeof value === "string" && typeof row === "object") cached.set(key, value, row);
    }
  }

  clear(): void {
    for (const cached of this.#tables.values()) {
      cached.rows.clear();
      cached.isEmpty = undefined;
    }
  }
}
