/**
 * Rows of a few tables as they were last read outside commits, and what was made of them.
 *
 * Readers see a commit a moment before this thread learns of it, so that a row read before must not be used with one read
 * after. Hence a commit removes the rows it writes from the cache while its callback runs (`invalidate`), and none of them is
 * cached again until its outcome is known (`release`). Only tables that no other process writes while a server runs can be cached.
 *
 * @module
 */
import { Cache, type CacheUses, parsedBytes } from "../lib/cache.ts";
import { CACHE_BYTES_MAX } from "../lib/limits.ts";
import { documentRemovals, erasures, memories, provider, removals, sessions, webhooks, type Readable } from "./tables.ts";

/** A larger one costs so much to send that making it hardly counts. */
const DERIVED_BYTES_MAX = 32_768;

/** A row as it was read: undefined where there is none. */
interface CachedRow {
  readonly row: unknown;
  /** Made of the row, for `derived`. */
  derived: unknown;
}

/** A row, an index entry or whatever else a commit writes. */
interface Written {
  readonly table: string;
  readonly key: string;
}

export class RowCache {
  readonly #tables = new Map<string, Cache<CachedRow>>([
    [sessions.name, new Cache(CACHE_BYTES_MAX.sessions)],
    [memories.name, new Cache(CACHE_BYTES_MAX.memories)],
    [removals.name, new Cache(CACHE_BYTES_MAX.removals)],
    [erasures.name, new Cache(CACHE_BYTES_MAX.erasures)],
    [webhooks.name, new Cache(CACHE_BYTES_MAX.webhooks)],
    [documentRemovals.name, new Cache(CACHE_BYTES_MAX.documentRemovals)],
    [provider.name, new Cache(CACHE_BYTES_MAX.provider)],
  ]);
  /** Whether a table has no rows, by name. */
  readonly #isEmpty = new Map<string, boolean>();
  /** Tables and keys that commits in flight have written, with the number of those commits. */
  readonly #uncacheable = new Map<string, number>();

  /** How rows were found, by table. */
  get uses(): Record<string, CacheUses> {
    return Object.fromEntries(Array.from(this.#tables, ([table, cache]) => [table, cache.uses]));
  }

  /** Whether rows of a table are cached. */
  has(table: string): boolean {
    return this.#tables.has(table);
  }

  /** The cached rows of a table, `{ row: undefined }` where it is known that there is none; undefined for a table that is not cached. */
  of(table: string): { get(key: string): { readonly row: unknown } | undefined } | undefined {
    return this.#tables.get(table);
  }

  /** @param text - the row as it is stored; undefined when there is none */
  set(table: string, key: string, text: string | undefined, row: unknown): void {
    if (this.#uncacheable.size > 0 && this.#uncacheable.has(table + key)) return;
    this.#tables.get(table)?.set(key, { row, derived: undefined }, text === undefined ? 0 : parsedBytes(text, row));
  }

  /**
   * What `make` gives for a row, from the cache if it was made of this very row before. It may use whatever the row alone
   * decides, such as the state whose version a session's row names.
   */
  derived<Row extends object, Result>(
    table: Readable<Row>,
    key: string,
    row: Row,
    make: () => Result,
    bytesOf: (result: Result) => number,
  ): Result {
    const cached = this.#tables.get(table.name)?.peek(key);
    if (cached?.row !== row) return make();
    if (cached.derived !== undefined) return cached.derived as Result;
    const result = make();
    const bytes = bytesOf(result);
    if (bytes <= DERIVED_BYTES_MAX && this.#tables.get(table.name)?.grow(key, bytes) === true) cached.derived = result;
    return result;
  }

  isEmpty(table: string): boolean | undefined {
    return this.#isEmpty.get(table);
  }

  setEmpty(table: string, isEmpty: boolean): void {
    if (this.#tables.has(table) && !this.#uncacheable.has(table)) this.#isEmpty.set(table, isEmpty);
  }

  /** To be called for each row that a commit writes, before any reader can see it; each is cacheable again after `release`. */
  invalidate({ table, key }: Written): void {
    this.#tables.get(table)?.delete(key);
    this.#isEmpty.delete(table);
    for (const name of [table, table + key]) this.#uncacheable.set(name, (this.#uncacheable.get(name) ?? 0) + 1);
  }

  release(writes: readonly Written[]): void {
    for (const { table, key } of writes) {
      for (const name of [table, table + key]) {
        const left = (this.#uncacheable.get(name) ?? 0) - 1;
        if (left > 0) this.#uncacheable.set(name, left);
        else this.#uncacheable.delete(name);
      }
    }
  }

  clear(): void {
    for (const rows of this.#tables.values()) rows.clear();
    this.#isEmpty.clear();
  }
}
