/**
 * Keeps one bad row from stopping a task for all others.
 *
 * A task works on several rows in one commit. When the work on one of them throws, the commit is made again without it; the
 * row is logged once and left alone until the next start. `cairn doctor` says what is wrong with it.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { NO_PARTITION } from "../lib/ids.ts";
import { invariant } from "../lib/invariant.ts";
import { describeError, type Log } from "../lib/log.ts";
import { NotFetched, type Reader, type Span, type Tx, type Writable } from "./access.ts";
import { LeaseLost } from "./leases.ts";
import type { RecordStore } from "./record-store.ts";
import type { AnyTable, Index, Readable } from "./tables.ts";

/** With more of them it is not the rows that are bad: then the task fails, and is tried again. */
const BAD_ROWS_MAX = 1_000;

/** Runs the work on one row; not at all for one that is known to be bad. */
export type Isolate = (key: string, callback: () => void) => void;

export class BadRows {
  readonly #store: RecordStore;
  readonly #log: Log;
  readonly #task: string;
  readonly #keys = new Set<string>();

  /** @param task - its name, for the log */
  constructor(store: RecordStore, log: Log, task: string) {
    this.#store = store;
    this.#log = log;
    this.#task = task;
  }

  has(key: string): boolean {
    return this.#keys.has(key);
  }

  /** The first keys of a span that are not those of bad rows. */
  async keysOfOthers(table: AnyTable, span: Span & { limit: number }): Promise<string[]> {
    const keys = await this.#store.read((reader) => reader.keys(table, { ...span, limit: span.limit + this.#keys.size }));
    return (this.#keys.size === 0 ? keys : keys.filter((key) => !this.#keys.has(key))).slice(0, span.limit);
  }

  /** One commit, made again without each row whose work throws. */
  async commit<Result>(callback: (tx: Tx, isolate: Isolate) => Result): Promise<Result> {
    for (;;) {
      const current: { key?: string } = {};
      const missing: NotFetched[] = [];
      const isolate: Isolate = (key, step) => {
        if (this.#keys.has(key)) return;
        current.key = key;
        try {
          step();
        } catch (error) {
          if (!(error instanceof NotFetched)) throw error;
          // Rows that the others need are fetched with those that this one needs.
          missing.push(error);
        }
        delete current.key;
      };
      try {
        return await this.#store.commit(NO_PARTITION, (tx) => {
          delete current.key;
          missing.length = 0;
          const result = callback(tx, isolate);
          const [first] = missing;
          if (first !== undefined) throw first;
          return result;
        });
      } catch (error) {
        if (current.key === undefined) throw error;
        this.note(current.key, error);
      }
    }
  }

  /** Removes, in one commit, the rows that still have these entries of an index. */
  async removeRowsOf<Row>(entries: readonly string[], table: Writable<Row>, index: Index<Row>): Promise<void> {
    await this.commit((tx, isolate) => {
      for (const entry of entries) {
        isolate(entry, () => {
          if (rowOfEntry(tx, table, index, entry) !== undefined) tx.remove(table, index.recordOf(entry));
        });
      }
    });
  }

  /**
   * Leaves a row alone from now on.
   *
   * @throws what was thrown, when it is not the row's fault
   */
  note(key: string, error: unknown): void {
    if (this.#keys.has(key)) return;
    if (error instanceof ApiError || error instanceof LeaseLost || this.#store.health.isPanic(error) || this.#keys.size >= BAD_ROWS_MAX)
      throw error;
    this.#keys.add(key);
    this.#log.error("skipped a row that cannot be processed: cairn doctor says what is wrong with it", {
      task: this.#task,
      key,
      error: describeError(error),
    });
  }
}

/** Runs a callback on rows that passes over those that cannot be processed, and leaves them to who remembers them. */
export function passingOver<Result>(callback: (isolate: Isolate) => Result): Result {
  const missing: NotFetched[] = [];
  const result = callback((_, step) => {
    try {
      step();
    } catch (error) {
      if (error instanceof NotFetched) missing.push(error);
    }
  });
  const [first] = missing;
  if (first !== undefined) throw first;
  return result;
}

/**
 * The row of an entry that an earlier scope has found; undefined where the row has lost the entry since.
 *
 * @throws for an entry that no row accounts for, so that a task leaves it alone like a bad row
 */
export function rowOfEntry<Row>(reader: Reader, table: Readable<Row>, index: Index<Row>, entry: string): Row | undefined {
  if (!reader.has(index, entry)) return undefined;
  const key = index.recordOf(entry);
  const row = reader.get(table, key);
  invariant(row !== undefined && index.entriesOf(key, row).includes(entry), "an index entry of no row");
  return row;
}

/** Row that is read, or undefined for one that cannot be read. */
export function readable<Row>(read: () => Row | undefined, onUnreadable: (error: unknown) => void = () => undefined): Row | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof NotFetched) throw error;
    onUnreadable(error);
    return undefined;
  }
}
