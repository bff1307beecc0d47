/**
 * The store: LMDB, and the only file that knows it.
 *
 * It holds everything that is true. A change is one `commit`: its callback runs inside a write transaction, so what it
 * reads is the latest there is, and what it writes is there altogether or not at all. The promise resolves when the
 * pages are on the disk; commits that wait for the disk at the same time share one flush.
 *
 * Group commit: queued callbacks share one transaction of LMDB, and its cost. Each writes to a `WriteBuffer` until it has
 * returned, so that one that throws leaves nothing behind.
 *
 * What lmdb-js needs to be told (seen with lmdb 3.5.6):
 * - `overlappingSync: false`, so that a commit resolves after its flush and a start never trusts unflushed pages
 *   (`durability.ts` has the exception);
 * - `childTransaction`, because `transaction` keeps the writes of a callback that throws;
 * - no `transactionSync` or `putSync`: they abort the process on a full disk. Hence also the look at the free space first;
 * - a value with `start`, `end` and `address` is written from there: one piece of memory serves for all of them.
 *
 * @module
 */
import { accessSync, chmodSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { open, type Database, type RootDatabase, type Transaction } from "lmdb";
import type { Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { systemReason } from "../lib/system-errors.ts";
import { UTF8_BYTES_PER_UNIT_MAX } from "../lib/text.ts";
import { FIRST, type Reader, type Span, type Tx } from "./access.ts";
import { createFiles, DATA_FILE, LOCK_FILE, STORE_DIRECTORY } from "./data-file.ts";
import { clearUnsyncedMarker, hasUnsyncedMarker, setUnsyncedMarker, type Durability } from "./durability.ts";
import { KEY_ENCODER } from "./keys.ts";
import { assertMappable } from "./pages.ts";
import { hasFreeSpace, isOfLmdb, isPanic, lmdbReason, diskReason, unavailable } from "./disk-errors.ts";
import { RowCache } from "./row-cache.ts";
import { SCHEMA_VERSION, TABLES, labels, meta, vectors, type AnyTable, type Table } from "./tables.ts";
import { WriteBuffer, type Write } from "./write-buffer.ts";

export type { Reader, Span, Tx } from "./access.ts";

/** The whole store as it is at one moment, whatever is committed meanwhile. As long as it is held the disk keeps what it shows. */
export interface Snapshot extends Reader, Disposable {
  /** Every row as the text it is stored as, in the order of keys; across awaits too. */
  entries(table: AnyTable, from?: string): Iterable<{ key: string; text: string }>;
  /** Every key, in order. */
  allKeys(table: AnyTable): Iterable<string>;
}

/** One `commit` of a caller's, which no transaction has run yet. */
interface QueuedCommit {
  readonly run: (tx: Tx) => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
  outcome: { result: unknown } | { thrown: unknown } | undefined;
}

/** More of them wait for the next transaction, so that requests are handled in between. */
const COMMITS_PER_TRANSACTION = 128;

const FREE_SPACE_CHECK_MS = 500;
const NEARLY_FULL = "The disk is nearly full (less than 64 MiB free).";
/** A commit that takes longer holds up all others: readiness fails. */
const STALLED_COMMIT_SECONDS = 5;
const PANIC = "The disk has failed; nothing can be read or written until Cairn is started again.";

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
  /** Whether others see a commit before it is flushed: the file was ever written relaxed. */
  readonly #isMarked: boolean;
  /** Whether a commit is done only when a flush is that comes after it. */
  readonly #flushesLater: boolean;
  /** Reads and writes of the transaction that is open. */
  readonly #direct: Tx = {
    get: (table, key) => this.#stored(table, key),
    has: (table, key) => this.has(table, key),
    keys: (table, span) => this.keys(table, span),
    rows: (table, span) => this.rows(table, span),
    isEmpty: (table) => this.keys(table, FIRST).length === 0,
    vectorBytes: (memory) => this.vectorBytes(memory),
    put: (table, key, row) => this.#write({ table: table.name, key, value: table.encode(row) }),
    remove: (table, key) => this.#write({ table: table.name, key, value: undefined }),
    putVector: (memory, bytes) => this.#write({ table: vectors.name, key: memory, value: bytes }),
    removeVector: (memory) => this.#write({ table: vectors.name, key: memory, value: undefined }),
  };
  readonly #buffer = new WriteBuffer(this.#direct);
  readonly #rows = new RowCache();
  #bytesWritten = 0;
  #queue: QueuedCommit[] = [];
  #spaceCheckedAt = Number.NEGATIVE_INFINITY;
  #hasRoom = true;
  /** Why the last commit failed; undefined once one has succeeded. */
  #writeProblem: string | undefined;
  /** Transactions whose end is not known yet, oldest first: after a panic LMDB never tells. */
  readonly #inFlight = new Set<{ startedAt: number; reject: (reason: unknown) => void }>();
  #panic: ApiError | undefined;
  readonly #panicked = Promise.withResolvers<void>();
  /** Called inside the transaction for every removed label: no reader sees that yet, and the commit may still fail. */
  onLabelRemoved: (key: string) => void = () => undefined;

  private constructor(directory: string, clock: Clock, durability: Durability, readOnly = false) {
    this.directory = directory;
    this.#clock = clock;
    const path = pathIn(directory);
    // Marked, a start must not trust pages that were never flushed, and a commit resolves before its flush.
    this.#isMarked = hasUnsyncedMarker(path) && !readOnly;
    const sync = this.#isMarked ? { overlappingSync: true, separateFlushed: true, safeRestore: true } : { overlappingSync: false };
    this.#flushesLater = this.#isMarked && durability === "strict";
    this.#env = open<string, string>({ path, maxDbs: TABLES.length + 4, encoding: "string", readOnly, ...sync });
    if (!readOnly) for (const file of [DATA_FILE, LOCK_FILE]) chmodSync(join(directory, file), 0o600);
    // Its types know of no `keyEncoder` for a table.
    const options = { keyEncoder: KEY_ENCODER } as object;
    const openTable = <Value>(name: string, encoding: "string" | "binary") => {
      // Read-only, a table that is not there is not made: an older Cairn did not have it.
      const table = this.#env.openDB<Value, string>({ ...options, name, encoding }) as Database<Value, string> | undefined;
      return table ?? (NO_TABLE as unknown as Database<Value, string>);
    };
    for (const { name } of TABLES) this.#databases.set(name, openTable<string>(name, "string"));
    this.#vectors = openTable<Uint8Array>(vectors.name, "binary");
  }

  /**
   * Opens the store in a data directory, or makes one.
   *
   * @param options - `older`: whether one of an older version will do, whose rows are not those of `tables.ts`; `durability`
   *   is for the server to say: all others find what it said; `onlyReads`: the caller writes nothing, so that a disk
   *   that takes nothing will do
   * @throws {DamagedStoreError} when its file must not be mapped
   * @throws {StoreError} when it cannot be opened, or was written by another version
   */
  static async open(
    directory: string,
    clock: Clock,
    { older = false, durability, onlyReads = false }: { older?: boolean; durability?: Durability | undefined; onlyReads?: boolean } = {},
  ): Promise<Store> {
    const path = pathIn(directory);
    assertMappable(directory);
    const readOnly = existsSync(path) && !isWritable(path);
    if (readOnly && !onlyReads)
      throw new StoreError(`The store in ${directory} must not be written to: its files, or the disk, are read-only.`);
    if (!readOnly) {
      await Store.#createFiles(directory);
      if (durability === "relaxed") setUnsyncedMarker(path);
      else if (durability === "strict" && hasUnsyncedMarker(path)) await Store.#flush(directory, clock);
    }
    const store = Store.#opened(directory, clock, durability, readOnly);
    if (!store.has(meta, "schema") && !readOnly) await store.commit((tx) => tx.put(meta, "schema", String(SCHEMA_VERSION)));
    if (readOnly && !store.has(meta, "schema")) throw new StoreError(`The store in ${directory} is empty, and must not be written to.`);
    const { schema } = store;
    if (schema === SCHEMA_VERSION || (older && schema < SCHEMA_VERSION)) return store;
    await store.close();
    const advice =
      schema < SCHEMA_VERSION
        ? "It was written by an older Cairn: start `cairn serve`, which makes a backup and brings it up to date."
        : "It was written by a newer Cairn: start that one.";
    throw new StoreError(`The store in ${directory} has schema version ${schema}; this Cairn reads version ${SCHEMA_VERSION}. ${advice}`);
  }

  static async #createFiles(directory: string): Promise<void> {
    try {
      await createFiles(directory);
    } catch (error) {
      throw new StoreError(`The files of the store in ${directory} cannot be made: ${systemReason(error)}.`, { cause: error });
    }
  }

  static #opened(directory: string, clock: Clock, durability: Durability = "strict", readOnly = false): Store {
    try {
      return new Store(directory, clock, durability, readOnly);
    } catch (error) {
      if (error instanceof StoreError) throw error;
      throw new StoreError(`The store in ${directory} cannot be opened: ${lmdbReason(error)}. cairn doctor says more.`, { cause: error });
    }
  }

  /** Makes a file that was written relaxed one that is as any other; the next start does when the disk takes nothing now. */
  static async #flush(directory: string, clock: Clock): Promise<void> {
    const store = Store.#opened(directory, clock);
    let isFlushed = true;
    // Only a commit settles which state is the last.
    await store.tryToWrite().catch(() => (isFlushed = false));
    await store.close();
    if (isFlushed) clearUnsyncedMarker(pathIn(directory));
  }

  /** The schema version of its rows. */
  get schema(): number {
    return Number(this.get(meta, "schema"));
  }

  get<Row>(table: Pick<Table<Row>, "name" | "decode">, key: string): Row | undefined {
    const rows = this.#rows.of(table.name);
    if (rows === undefined) return this.#stored(table, key);
    const cached = rows.get(key);
    if (cached !== undefined) return cached.row as Row | undefined;
    const text = this.#database(table).get(key);
    const row = text === undefined ? undefined : table.decode(text);
    this.#rows.set(table.name, key, text, row);
    return row;
  }

  /** What `make` gives for a row that `get` gave, cached with it; see `RowCache.derived`. */
  derived<Row extends object, Result>(
    table: Table<Row>,
    key: string,
    row: Row,
    make: () => Result,
    bytesOf: (result: Result) => number,
  ): Result {
    return this.#rows.derived(table, key, row, make, bytesOf);
  }

  #stored<Row>(table: Pick<Table<Row>, "name" | "decode">, key: string): Row | undefined {
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

  isEmpty(table: AnyTable): boolean {
    const known = this.#rows.isEmpty(table.name);
    if (known !== undefined) return known;
    const isEmpty = this.keys(table, FIRST).length === 0;
    this.#rows.setEmpty(table.name, isEmpty);
    return isEmpty;
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
      isEmpty: (table) => Array.from(this.#database(table).getKeys(range(FIRST))).length === 0,
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

  /** The pages its rows are on, in bytes: about what a backup takes. What deleted records left free is not counted. */
  get bytesUsed(): number {
    return [this.#vectors, ...this.#databases.values()]
      .map((database) => database.getStats() as Record<"pageSize" | "treeBranchPageCount" | "treeLeafPageCount" | "overflowPages", number>)
      .reduce((sum, pages) => sum + pages.pageSize * (pages.treeBranchPageCount + pages.treeLeafPageCount + pages.overflowPages), 0);
  }

  /** Bytes, or characters of texts, of all rows written since the store was opened. */
  get bytesWritten(): number {
    return this.#bytesWritten;
  }

  /** Makes the next read see what other threads and processes have committed by now. */
  refresh(): void {
    this.#env.resetReadTxn();
    this.#rows.clear();
  }

  /**
   * Runs `work` inside a write transaction; resolves with its result once the commit is on the disk. When `work` throws,
   * nothing of it is kept and the promise rejects with what was thrown.
   *
   * `work` must be synchronous: the writer waits for it.
   *
   * @throws {ApiError} `service_unavailable` when the disk is full or refuses the write; then nothing was written, unless
   *   it says that this is not known
   */
  async commit<Result>(work: (tx: Tx) => Result): Promise<Result> {
    this.#refuseWhatMustFail();
    return new Promise<Result>((resolve, reject) => {
      this.#queue.push({ run: work, resolve: resolve as (result: unknown) => void, reject, outcome: undefined });
      // The first one in the queue has scheduled a transaction already.
      if (this.#queue.length === 1) this.#scheduleTransaction();
    });
  }

  /** In a microtask, since a transaction that begins inside another would be a part of it. */
  #scheduleTransaction(): void {
    queueMicrotask(() => void this.#commitQueued());
  }

  async #commitQueued(): Promise<void> {
    let commits: QueuedCommit[] | undefined;
    const written: Write[] = [];
    try {
      await this.#transaction(() => {
        commits = this.#queue.splice(0, COMMITS_PER_TRANSACTION);
        if (this.#queue.length > 0) this.#scheduleTransaction();
        for (const commit of commits) {
          for (const write of this.#run(commit)) {
            this.#rows.invalidate(write);
            written.push(write);
          }
        }
      });
      this.#rows.release(written);
      // Errors are thrown only now, too: their reason may be what another commit of the same transaction has written.
      for (const { outcome, resolve, reject } of commits ?? []) {
        if (outcome !== undefined && "thrown" in outcome) reject(outcome.thrown);
        else resolve(outcome?.result);
      }
    } catch (refusal) {
      this.#rows.release(written);
      for (const { reject } of commits ?? this.#queue.splice(0)) reject(refusal);
    }
  }

  /**
   * A commit too large for a buffer: what `work` writes goes into the transaction at once, which no other commit shares.
   *
   * @throws {ApiError} as `commit` does
   */
  async commitExclusive<Result>(work: (tx: Tx) => Result): Promise<Result> {
    this.#refuseWhatMustFail();
    let outcome: QueuedCommit["outcome"];
    try {
      await this.#transaction(() => {
        try {
          outcome = { result: work(this.#direct) };
        } catch (thrown) {
          outcome = { thrown };
          throw thrown;
        }
      });
    } catch (refusal) {
      throw outcome !== undefined && "thrown" in outcome ? outcome.thrown : refusal;
    }
    this.#rows.clear();
    return (outcome as { result: unknown } | undefined)?.result as Result;
  }

  /** @throws {ApiError} when the disk refuses it; then nothing was written, unless LMDB panics: then that is not known */
  async #transaction(run: () => void): Promise<void> {
    try {
      await this.#untilPanic(this.#env.childTransaction(run));
      if (this.#flushesLater) await this.#env.flushed;
      this.#writeProblem = undefined;
    } catch (error) {
      if (error instanceof ApiError) throw error;
      // The reason arrives in a promise of its own, which would end the process if nobody listened.
      const cause: unknown = await Promise.resolve((error as { commitError?: unknown }).commitError).then(
        () => error,
        (reason: unknown) => reason,
      );
      this.#spaceCheckedAt = Number.NEGATIVE_INFINITY;
      const reason = diskReason(cause, this.directory);
      if (isOfLmdb(cause)) {
        this.#writeProblem = reason;
        this.#lookForPanic();
      }
      if (this.hasPanicked) throw outcomeUnknown(PANIC, cause);
      // Others may see it by now: only its flush may have failed.
      throw this.#isMarked ? outcomeUnknown(`${reason} Reading still works.`, cause) : unavailable(reason, cause);
    }
  }

  #untilPanic<Result>(promise: Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const transaction = { startedAt: this.#clock.elapsed(), reject };
      this.#inFlight.add(transaction);
      void promise.then(resolve, reject).finally(() => this.#inFlight.delete(transaction));
    });
  }

  /** Whether LMDB can do nothing more in this process: it has to end. */
  get hasPanicked(): boolean {
    return this.#panic !== undefined;
  }

  /** Resolves when it has. */
  get panicked(): Promise<void> {
    return this.#panicked.promise;
  }

  /** Reads what every store has, as it is now: only a read tells that LMDB has panicked. */
  #lookForPanic(): void {
    try {
      this.#env.resetReadTxn();
      this.#stored(meta, "schema");
    } catch (error) {
      this.#panicIf(error);
    }
  }

  #panicIf(error: unknown): void {
    if (this.#panic !== undefined || !isPanic(error)) return;
    this.#panic = new ApiError("service_unavailable", `${PANIC} Nothing was changed.`, { cause: error });
    for (const { reject } of this.#inFlight) reject(outcomeUnknown(PANIC, error));
    this.#panicked.resolve();
  }

  /** Why reads or commits fail at present, as far as that is known; a full disk is looked for. */
  problem(): string | undefined {
    if (this.#panic !== undefined) return PANIC;
    try {
      this.#stored(meta, "schema");
    } catch (error) {
      const refused = this.refusalOfRead(error);
      return this.hasPanicked ? PANIC : (refused ?? (error as Error)).message;
    }
    const [oldest] = this.#inFlight;
    const seconds = oldest === undefined ? 0 : Math.floor((this.#clock.elapsed() - oldest.startedAt) / 1000);
    if (seconds >= STALLED_COMMIT_SECONDS) return `A change has been waiting for the disk for ${seconds} s.`;
    return this.#isNearlyFull() ? NEARLY_FULL : this.#writeProblem;
  }

  /** The answer when LMDB threw this from a read; undefined when it did not. */
  refusalOfRead(error: unknown): ApiError | undefined {
    if (!isOfLmdb(error)) return undefined;
    this.#panicIf(error);
    return this.#panic ?? new ApiError("service_unavailable", "The store cannot be read.", { cause: error });
  }

  /** Commits what is there already. @throws {ApiError} as `commit` does */
  async tryToWrite(): Promise<void> {
    await this.commit((tx) => tx.put(meta, "schema", tx.get(meta, "schema") ?? String(SCHEMA_VERSION)));
  }

  /** @returns its writes to tables whose rows are cached */
  #run(commit: QueuedCommit): Write[] {
    try {
      commit.outcome = { result: commit.run(this.#buffer) };
    } catch (thrown) {
      commit.outcome = { thrown };
      this.#buffer.take();
      return [];
    }
    const writes = this.#buffer.take();
    for (const write of writes) this.#write(write);
    return writes.filter(({ table }) => this.#rows.has(table));
  }

  /** Inside a transaction this is done at once; the promise says nothing more. */
  #write({ table, key, value }: Write): void {
    const database = (table === vectors.name ? this.#vectors : this.#database({ name: table })) as Database<string | Uint8Array, string>;
    if (value !== undefined) {
      this.#bytesWritten += value.length;
      return void database.put(key, bytesOf(value));
    }
    void database.remove(key);
    if (table === labels.name) this.onLabelRemoved(key);
  }

  /** Takes out readers whose process is gone: the disk keeps what they saw. @returns how many there were */
  removeDeadReaders(): number {
    return this.#env.readerCheck();
  }

  async close(): Promise<void> {
    await this.#env.close();
  }

  #refuseWhatMustFail(): void {
    if (this.#panic !== undefined) throw this.#panic;
    if (this.#isNearlyFull()) throw unavailable(NEARLY_FULL);
  }

  #isNearlyFull(): boolean {
    const now = this.#clock.elapsed();
    if (now - this.#spaceCheckedAt >= FREE_SPACE_CHECK_MS) {
      this.#spaceCheckedAt = now;
      this.#hasRoom = hasFreeSpace(this.directory);
    }
    return !this.#hasRoom;
  }

  #database(table: AnyTable): TextDatabase {
    const database = this.#databases.get(table.name);
    if (database === undefined) throw new StoreError(`no table ${table.name}`);
    return database;
  }
}

/** The answer to a change whose commit failed too late to say that nothing of it is there. */
function outcomeUnknown(reason: string, cause: unknown): ApiError {
  const advice = "It is not known whether the change was kept: send it again with the same Idempotency-Key.";
  return new ApiError("service_unavailable", `${reason} ${advice}`, { cause });
}

/** What is read of a table that is not there. */
const NO_TABLE = {
  get: () => undefined,
  getBinaryFast: () => undefined,
  doesExist: () => false,
  getKeys: () => [],
  getRange: () => [],
  getStats: () => ({ entryCount: 0, pageSize: 0, treeBranchPageCount: 0, treeLeafPageCount: 0, overflowPages: 0 }),
};

function pathIn(directory: string): string {
  return join(directory, STORE_DIRECTORY);
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    const file = join(path, "data.mdb");
    if (existsSync(file)) accessSync(file, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Keeps the pages of the store as they are at this moment from being used again, whatever is committed meanwhile, for who
 * reads the file itself. None of them is read.
 */
export function pinPages(directory: string): AsyncDisposable {
  const env = open<string, string>({ path: pathIn(directory), readOnly: true, encoding: "string" });
  const transaction: Transaction = env.useReadTransaction();
  return {
    async [Symbol.asyncDispose]() {
      transaction.done();
      await env.close();
    },
  };
}

/** Where a value stands as bytes while it is written: for lmdb-js each buffer is a new one to be looked up. */
const room: Buffer & { start?: number; end?: number } = Buffer.alloc(256 * 1024);
const NOTHING = new Uint8Array(0);

/** The bytes of a value, good until the next one is asked for. */
function bytesOf(value: string | Uint8Array): Uint8Array {
  if (value.length === 0) return NOTHING;
  if (value.length * UTF8_BYTES_PER_UNIT_MAX > room.length) return typeof value === "string" ? Buffer.from(value) : value;
  room.start = 0;
  if (typeof value === "string") {
    room.end = room.write(value, 0);
  } else {
    room.set(value);
    room.end = value.length;
  }
  return room;
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
