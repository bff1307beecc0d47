/**
 * Rows as this server wrote them last, and what it found out last about which tables are empty.
 *
 * Others may have changed them since. So no read is answered from here: a commit builds on them instead of fetching them first, and
 * finds out in its transaction whether they are still so.
 *
 * @module
 */
import { Cache, textBytes } from "../../lib/cache.ts";
import type { Write } from "../write-buffer.ts";
import type { KnownRows, StoredRow } from "./fetched.ts";

const BYTES_MAX = 16 * 1024 * 1024;
/** Larger ones are hardly ever what the next commit builds on. */
const ROW_LENGTH_MAX = 16_384;

export class LastRows implements KnownRows {
  readonly #rows = new Cache<{ readonly row: StoredRow | null }>(BYTES_MAX);
  /** By what asks for them; there are few tables of which that is asked. */
  readonly #firstKeys = new Map<string, readonly StoredRow[]>();

  row(table: string, key: string): StoredRow | null | undefined {
    return this.#rows.get(`${table} ${key}`)?.row;
  }

  span(name: string): readonly StoredRow[] | undefined {
    return this.#firstKeys.get(name);
  }

  /** To be called with what the tables were found to begin with. */
  noteSpan(name: string, rows: readonly StoredRow[]): void {
    this.#firstKeys.set(name, rows);
  }

  note(table: string, key: string, value: Write["value"], rev: number): void {
    const name = `${table} ${key}`;
    if (value === undefined) this.#rows.set(name, { row: null }, 0);
    else if (typeof value === "string" && value.length <= ROW_LENGTH_MAX)
      this.#rows.set(name, { row: { key, text: value, rev } }, textBytes(value));
    else this.#rows.delete(name);
  }

  delete(table: string, key: string): void {
    this.#rows.delete(`${table} ${key}`);
  }

  deleteSpan(name: string): void {
    this.#firstKeys.delete(name);
  }
}
