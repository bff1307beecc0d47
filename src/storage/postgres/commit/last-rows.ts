/**
 * Rows as this server wrote them last, and what its last commits read of the tables that nearly every commit reads.
 *
 * Others may have changed them since. So no read is answered from here: a commit builds on them instead of fetching them first, and
 * finds out in its transaction whether they are still so.
 *
 * @module
 */
import { Cache, textBytes } from "../../../lib/cache.ts";
import type { Write } from "../../write-buffer.ts";
import type { KnownRows, StoredRow } from "../read/fetched-rows.ts";

const BYTES_MAX = 16 * 1024 * 1024;
/** Larger ones are hardly ever what the next commit builds on. */
const ROW_LENGTH_MAX = 16_384;
const SPANS_MAX = 100;

export class LastRows implements KnownRows {
  readonly #rows = new Cache<{ readonly row: StoredRow | null }>(BYTES_MAX);
  /** By what asks for them, of few tables. */
  readonly #spans = new Map<string, { readonly table: string; readonly rows: readonly StoredRow[] }>();

  row(table: string, key: string): StoredRow | null | undefined {
    return this.#rows.get(`${table} ${key}`)?.row;
  }

  span(name: string): readonly StoredRow[] | undefined {
    return this.#spans.get(name)?.rows;
  }

  trackSpan(name: string, table: string, rows: readonly StoredRow[]): void {
    if (this.#spans.size === SPANS_MAX) for (const oldest of this.#spans.keys().take(1)) this.#spans.delete(oldest);
    this.#spans.set(name, { table, rows });
  }

  trackRow(table: string, key: string, row: StoredRow | null): void {
    const length = row?.text?.length ?? 0;
    if (length <= ROW_LENGTH_MAX) this.#rows.set(`${table} ${key}`, { row }, 2 * length);
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

  clear(): void {
    this.#rows.clear();
    this.#spans.clear();
  }

  /** To be called when any key of a table is another. */
  deleteSpansOf(table: string): void {
    for (const [name, span] of this.#spans) if (span.table === table) this.#spans.delete(name);
  }
}
