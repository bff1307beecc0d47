/**
 * The store: LMDB, and the only file that knows it.
 *
 * It holds everything that is true. A change is one `commit`: its callback runs inside a write transaction, so what it
 * reads is the latest there is, and what it writes is there altogether or not at all. The promise resolves when the
 * pages are on the disk; commits that wait for the disk at the same time share one flush.
 *
 * What lmdb-js needs to be told (seen with lmdb 3.5.6):
 * - `overlappingSync: false`, so that a commit resolves after its flush and a start never trusts unflushed pages;
 * - `childTransaction`, because `transaction` keeps the writes of a callback that throws;
 * - no `transactionSync` or `putSync`: they abort the process on a full disk. Hence also the look at the free space first.
 *
 * @module
 */
import { chmodSync, mkdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { open, type Database, type RootDatabase, type Transaction } from "lmdb";
import type { Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { SCHEMA_VERSION, TABLES, meta, vectors, type AnyTable, type Table } from "./tables.ts";

/** Keys from `from` (included) to `to` (excluded), ascending unless said otherwise. */
export interface Span {
  from: string;
  to: string;
  limit?: number;
  descending?: boolean;
}

/** What can be read, inside a commit and outside. Reads outside see every commit that has resolved. */
export interface Reader {
  get<Row>(table: Pick<Table<Row>, "name" | "decode">, key: string): Row | undefined;
  has(table: AnyTable, key: string): boolean;
  keys(table: AnyTable, span: Span): string[];
  rows<Row>(table: Table<Row>, span: Span): { key: string; row: Row }[];
  /** The bytes stored for a memory's vector. Copy them before the next read: the buffer is used again. */
  vectorBytes(memory: string): Uint8Array | undefined;
}

/** What a commit's callback can do. A read sees what the callback wrote before. */
export interface Tx extends Reader {
  put<Row>(table: Table<Row>, key: string, row: Row): void;
  remove(table: AnyTable, key: string): void;
  putVector(memory: string, bytes: Uint8Array): void;
  removeVector(memory: string): void;
}

/** The whole store as it is at one moment, whatever is committed meanwhile. As long as it is held the disk keeps what it shows. */
export interface Snapshot extends Reader, Disposable {
  /** Every row as the text it is stored as, in the order of keys; across awaits too. */
  entries(table: AnyTable, from?: string): Iterable<{ key: string; text: string }>;
  /** Every key, in order. */
  allKeys(table: AnyTable): Iterable<string>;
}

/** Below this a commit is refused: LMDB has to be able to write the pages of everything that waits (64 MiB). */
const FREE_BYTES_MIN = 64 * 1024 * 1024;
const FREE_SPACE_CHECK_MS = 500;

export class StoreError extends Error {
  override name = "StoreError";
}

type TextDatabase = Database<string, string>;
type ByteDatabase = Database<Uint8Array, string>;

export class Store implements Reader {
  readonly directory: string;
  readonly #clock: Clock;
  readonly #env: RootDatabase<string, string>;
  readonly #databases = new Map<string, TextDatabase>();
  readonly #vectors: ByteDatabase;
  readonly #tx: Tx;
  #spaceCheckedAt = Number.NEGATIVE_INFINITY;
  #spaceRefusal: ApiError | undefined;

  private constructor(directory: string, clock: Clock) {
    this.directory = directory;
    this.#clock = clock;
    const path = join(directory, "store");
    mkdirSync(path, { recursive: true, mode: 0o700 });
    this.#env = open<string, string>({ path, maxDbs: TABLES.length + 4, overlappingSync: false, encoding: "string" });
    for (const file of ["data.mdb", "lock.mdb"]) chmodSync(join(path, file), 0o600);
    for (const table of TABLES) this.#databases.set(table.name, this.#env.openDB<string, string>({ name: table.name, encoding: "string" }));
    this.#vectors = this.#env.openDB<Uint8Array, string>({ name: vectors.name, encoding: "binary" });
    this.#tx = {
      get: (table, key) => this.get(table, key),
      has: (table, key) => this.has(table, key),
      keys: (table, span) => this.keys(table, span),
      rows: (table, span) => this.rows(table, span),
      vectorBytes: (memory) => this.vectorBytes(memory),
      // Inside a transaction these are done at once; their promises say nothing more.
      put: (table, key, row) => void this.#database(table).put(key, table.encode(row)),
      remove: (table, key) => void this.#database(table).remove(key),
      putVector: (memory, bytes) => void this.#vectors.put(memory, bytes),
      removeVector: (memory) => void this.#vectors.remove(memory),
    };
  }

  /**
   * Opens the store in a data directory, or makes one.
   *
   * @throws {StoreError} when the store was written by a newer version
   */
  static async open(directory: string, clock: Clock): Promise<Store> {
    const store = new Store(directory, clock);
    const found = store.get(meta, "schema");
    if (found === undefined) {
      await store.commit((tx) => tx.put(meta, "schema", String(SCHEMA_VERSION)));
    } else if (Number(found) !== SCHEMA_VERSION) {
      await store.close();
      throw new StoreError(
        `The store in ${directory} has schema version ${found}; this Cairn reads version ${SCHEMA_VERSION}. It was written by a newer Cairn: start that one.`,
      );
    }
    return store;
  }

  get<Row>(table: Pick<Table<Row>, "name" | "decode">, key: string): Row | undefined {
    const text = this.#database(table).get(key);
    return text === undefined ? undefined : table.decode(text);
  }

  has(table: AnyTable, key: string): boolean {
    return this.#database(table).doesExist(key);
  }

  keys(table: AnyTable, span: Span): string[] {
    return Array.from(this.#database(table).getKeys(toRange(span)));
  }

  rows<Row>(table: Table<Row>, span: Span): { key: string; row: Row }[] {
    return Array.from(this.#database(table).getRange(toRange(span)), ({ key, value }) => ({ key, row: table.decode(value) }));
  }

  vectorBytes(memory: string): Uint8Array | undefined {
    return viewOf(this.#vectors.getBinaryFast(memory));
  }

  /** Everything as it is now. To be disposed of soon: what is deleted meanwhile frees no room on the disk. */
  snapshot(): Snapshot {
    this.refresh();
    const transaction: Transaction = this.#env.useReadTransaction();
    const range = (span: Span) => ({ ...toRange(span), transaction });
    return {
      get: (table, key) => {
        const text = this.#database(table).get(key, { transaction });
        return text === undefined ? undefined : table.decode(text);
      },
      has: (table, key) => this.#database(table).get(key, { transaction }) !== undefined,
      keys: (table, span) => Array.from(this.#database(table).getKeys(range(span))),
      rows: (table, span) =>
        Array.from(this.#database(table).getRange(range(span)), ({ key, value }) => ({ key, row: table.decode(value) })),
      vectorBytes: (memory) => viewOf(this.#vectors.get(memory, { transaction })),
      entries: (table, from = "") =>
        this.#database(table)
          .getRange({ start: from, transaction })
          .map(({ key, value }) => ({ key, text: value })),
      allKeys: (table) => (table === vectors ? this.#vectors : this.#database(table)).getKeys({ start: "", transaction }),
      [Symbol.dispose]: () => transaction.done(),
    };
  }

  /**
   * Writes a consistent copy of the store to `data.mdb` in a directory that exists, while commits go on, here and in
   * other processes. What deleted records left free is not copied.
   */
  async backup(directory: string): Promise<void> {
    await this.#env.backup(directory, true);
  }

  /** How many rows a table has; read from its root page. */
  count(table: AnyTable): number {
    const database = table === vectors ? this.#vectors : this.#database(table);
    return (database.getStats() as { entryCount: number }).entryCount;
  }

  /** Makes the next read see what other threads and processes have committed by now. */
  refresh(): void {
    this.#env.resetReadTxn();
  }

  /**
   * Runs `work` inside a write transaction; resolves with its result once the commit is on the disk. When `work` throws,
   * nothing of it is kept and the promise rejects with what was thrown.
   *
   * `work` must be synchronous: the writer waits for it.
   *
   * @throws {ApiError} `service_unavailable` when the disk is full or refuses the write; then nothing was written
   */
  async commit<Result>(work: (tx: Tx) => Result): Promise<Result> {
    this.#refuseWithoutSpace();
    let thrown: { error: unknown } | undefined;
    try {
      return await this.#env.childTransaction(() => {
        try {
          return work(this.#tx);
        } catch (error) {
          thrown = { error };
          throw error;
        }
      });
    } catch (error) {
      if (thrown !== undefined) throw thrown.error;
      // The reason arrives in a promise of its own, which would end the process if nobody listened.
      const reason: unknown = await Promise.resolve((error as { commitError?: unknown }).commitError).then(
        () => error,
        (cause: unknown) => cause,
      );
      this.#spaceCheckedAt = Number.NEGATIVE_INFINITY;
      throw new ApiError("service_unavailable", "The change could not be written to the disk. Nothing was changed.", { cause: reason });
    }
  }

  async close(): Promise<void> {
    await this.#env.close();
  }

  #refuseWithoutSpace(): void {
    const now = this.#clock.elapsed();
    if (now - this.#spaceCheckedAt >= FREE_SPACE_CHECK_MS) {
      this.#spaceCheckedAt = now;
      const { bavail, bsize } = statfsSync(this.directory);
      this.#spaceRefusal =
        bavail * bsize >= FREE_BYTES_MIN
          ? undefined
          : new ApiError(
              "service_unavailable",
              "The disk is nearly full (less than 64 MiB free). Nothing was changed; reading still works.",
            );
    }
    if (this.#spaceRefusal !== undefined) throw this.#spaceRefusal;
  }

  #database(table: AnyTable): TextDatabase {
    const database = this.#databases.get(table.name);
    if (database === undefined) throw new StoreError(`no table ${table.name}`);
    return database;
  }
}

/** lmdb's buffer is longer than what it holds, and of its properties only `length` says how much that is. */
function viewOf(bytes: Uint8Array | undefined): Uint8Array | undefined {
  return bytes && new Uint8Array(bytes.buffer as ArrayBuffer, bytes.byteOffset, bytes.length);
}

function toRange({ from, to, limit, descending }: Span) {
  const bounds =
    descending === true ? { start: to, end: from, reverse: true, exclusiveStart: true, inclusiveEnd: true } : { start: from, end: to };
  return limit === undefined ? bounds : { ...bounds, limit };
}
