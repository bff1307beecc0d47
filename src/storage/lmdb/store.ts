/**
 * The store: LMDB, and the only file that knows it.
 *
 * It holds everything that is true, and is used in scopes. `read` runs a function of one moment. A change is one `commit`: its
 * work runs inside a write transaction, so what it reads is the latest there is, and what it writes is there altogether or
 * not at all. The promise resolves when the pages are on the disk; commits that wait for the disk at the same time share one
 * flush.
 *
 * Group commit: queued works share one transaction of LMDB, and its cost. Each writes to a `WriteBuffer` until it has
 * returned, so that one that throws leaves nothing behind.
 *
 * Traps of lmdb-js (seen with lmdb 3.5.6):
 * - `overlappingSync: false`, so that a commit resolves after its flush and a start never trusts unflushed pages
 *   (`file/unsynced-marker.ts` has the exception);
 * - `childTransaction`, because `transaction` keeps the writes of a callback that throws;
 * - no `transactionSync`, and no `putSync` outside of a transaction: they abort the process on a full disk. Hence also the look at the
 *   free space first.
 *
 * @module
 */
import { accessSync, chmodSync, constants, existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { open, type Database, type RootDatabase, type Transaction } from "lmdb";
import type { CacheUses } from "../../lib/cache.ts";
import { afterNextTurn, afterThisTurn, nextTurn, type Clock } from "../../lib/clock.ts";
import { IdSource, NO_PARTITION, type BareId, type Partition, type Id, type IdPrefix } from "../../lib/ids.ts";
import type { JsonText } from "../../lib/json.ts";
import { systemReason } from "../../lib/system-errors.ts";
import type { LatestReader, Reader, Tx } from "../access.ts";
import { Announced } from "../announced.ts";
import type { Durability } from "../durability.ts";
import { MAX_KEY, successor } from "../keys.ts";
import { listRecords, type Listing } from "../list.ts";
import { newestId } from "../newest-id.ts";
import type { Page } from "../page.ts";
import type { RecordStore, WalkedIds, Wiping } from "../record-store.ts";
import { StoreError } from "../store-error.ts";
import { SCHEMA_VERSION, TABLES, TRACES_WATERMARK, VECTOR_TABLES, meta, traces, type AnyTable, type VectorTable } from "../tables.ts";
import { walkStep, type Bounds, type Filter } from "../walk.ts";
import { repeatable, runWork, settle, type QueuedCommit } from "../work.ts";
import { WriteBuffer, type TxContext, type Write } from "../write-buffer.ts";
import { changeBufferOf, newestTrace, type Step } from "./change-buffer.ts";
import { endsTransaction, keysOutOfOrder, lmdbReason } from "./disk/disk-errors.ts";
import { DiskHealth } from "./disk/disk-health.ts";
import { createFiles, DATA_FILE, LOCK_FILE, STORE_DIRECTORY } from "./file/data-file.ts";
import { assertMappable } from "./file/pages.ts";
import { clearUnsyncedMarker, hasUnsyncedMarker, setUnsyncedMarker } from "./file/unsynced-marker.ts";
import { KEY_ENCODER } from "./key-encoder.ts";
import { Databases, InsideReader, LmdbReader, Snapshot } from "./reader.ts";
import { RowCache } from "./row-cache.ts";
import { semaphoreRefusal } from "./semaphores.ts";

/** More of them wait for the next transaction, so that requests are handled in between. */
const COMMITS_PER_TRANSACTION = 128;

/** A step of overwriting free pages looks at that many: some milliseconds where they have to be written. */
const PAGES_PER_WIPE = 1_024;

/** Called inside the transaction: no reader sees that yet, and the commit may still fail. */
type VectorListener = (id: string, isPut: boolean) => void;

export class Store implements RecordStore {
  readonly directory: string;
  readonly health: DiskHealth;
  readonly #clock: Clock;
  readonly #env: RootDatabase<string, string>;
  readonly #databases: Databases;
  /** True if others see a commit before it is flushed: the file was ever written relaxed. */
  readonly #isMarked: boolean;
  /** True if a commit is done only when a flush is that comes after it. */
  readonly #flushesLater: boolean;
  #ids: IdSource | undefined;
  readonly #rows = new RowCache();
  #caching: "all" | "none" = "all";
  #readVersion: object | undefined;
  #bytesWritten = 0;
  /** Reason why LMDB refused a write of the present transaction: nothing of it may be kept, even if a callback has caught the error. */
  #refusal: { reason: unknown } | undefined;
  readonly #vectorListeners = new Map<string, VectorListener>();
  readonly #putListeners = new Map<string, (key: string) => void>();
  /** The newest trace that was committed, where entries are written late. */
  #newestTrace: BareId | undefined;
  #queue: QueuedCommit[] = [];
  /** True if a transaction is under way, or about to begin. */
  #isScheduled = false;
  onCommit: RecordStore["onCommit"] = () => undefined;
  onCommitted: RecordStore["onCommitted"] = () => undefined;

  private constructor(directory: string, clock: Clock, durability: Durability, readOnly = false) {
    this.directory = directory;
    this.#clock = clock;
    this.health = new DiskHealth(directory, clock, () => this.#readSchema());
    const path = pathIn(directory);
    // Marked, a start must not trust pages that were never flushed, and a commit resolves before its flush.
    this.#isMarked = hasUnsyncedMarker(path) && !readOnly;
    const sync = this.#isMarked ? { overlappingSync: true, separateFlushed: true, safeRestore: true } : { overlappingSync: false };
    this.#flushesLater = this.#isMarked && durability === "strict";
    this.#env = open<string, string>({ path, maxDbs: TABLES.length + VECTOR_TABLES.length + 3, encoding: "string", readOnly, ...sync });
    if (!readOnly) for (const file of [DATA_FILE, LOCK_FILE]) chmodSync(join(directory, file), 0o600);
    // Its types know of no `keyEncoder` for a table.
    const options = { keyEncoder: KEY_ENCODER } as object;
    const openTable = <Value>(name: string, encoding: "string" | "binary") => {
      // Read-only, a table that is not there is not made: an older Cairn did not have it.
      const table = this.#env.openDB<Value, string>({ ...options, name, encoding }) as Database<Value, string> | undefined;
      return table ?? (NO_TABLE as unknown as Database<Value, string>);
    };
    this.#databases = new Databases();
    for (const { name } of VECTOR_TABLES) this.#databases.vectors.set(name, openTable<Uint8Array>(name, "binary"));
    for (const { name } of TABLES) this.#databases.texts.set(name, openTable<string>(name, "string"));
  }

  /**
   * Opens the store in a data directory, or makes one.
   *
   * @param options - `older`: whether one of an older version will do, whose rows are not those of `tables.ts`; `durability`
   *   is for the server to say: all others find what it said; `onlyReads`: the caller writes nothing, so that a disk
   *   that takes nothing will do; `cachesRows`: not of use to who looks again at the whole store each time
   * @throws {DamagedStoreError} when its file must not be mapped
   * @throws {StoreError} when it cannot be opened, or was written by another version
   */
  static async open(
    directory: string,
    clock: Clock,
    {
      older = false,
      durability,
      onlyReads = false,
      cachesRows = true,
    }: { older?: boolean; durability?: Durability | undefined; onlyReads?: boolean; cachesRows?: boolean } = {},
  ): Promise<Store> {
    const path = pathIn(directory);
    assertMappable(directory);
    const readOnly = existsSync(path) && !isWritable(path);
    if (readOnly && !onlyReads) throw new StoreError(`The store in ${directory} is read-only: its files, or the disk, take no writes.`);
    if (!readOnly) {
      await Store.#createFiles(directory);
      if (durability === "relaxed") setUnsyncedMarker(path);
      else if (durability === "strict" && hasUnsyncedMarker(path)) await Store.#flush(directory, clock);
    }
    const store = Store.#opened(directory, clock, durability, readOnly);
    if (!cachesRows) store.#caching = "none";
    const isNew = !store.latest.has(meta, "schema");
    if (isNew && !readOnly) await store.commit(NO_PARTITION, (tx) => tx.put(meta, "schema", String(SCHEMA_VERSION)));
    if (isNew && readOnly) throw new StoreError(`The store in ${directory} is empty and read-only.`);
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
    const refusal = semaphoreRefusal();
    if (refusal !== undefined) throw new StoreError(`The store in ${directory} cannot be opened: ${refusal}`);
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
    return Number(this.latest.get(meta, "schema"));
  }

  read<Result>(work: (reader: LatestReader) => Result): Result {
    return work(this.latest);
  }

  /**
   * Reads what is there at each moment it is asked: for who looks again at whatever it has found, such as an index that follows
   * the store.
   */
  get latest(): LatestReader {
    return new LmdbReader(this.#databases, this.#rows, this.#caching, this.#clock);
  }

  /** An object that is another one after each commit of this process, and in each turn of the event loop: reads see others' only then. */
  get readVersion(): object {
    if (this.#readVersion === undefined) {
      this.#readVersion = {};
      afterThisTurn(() => (this.#readVersion = undefined));
    }
    return this.#readVersion;
  }

  readNewest<Result>(work: (reader: LatestReader) => Result): Result {
    this.#readVersion = undefined;
    this.#env.resetReadTxn();
    return this.read(work);
  }

  /** One page of a list, in several scopes: other requests are answered in between. */
  list<Prefix extends IdPrefix>(
    listing: Listing<Prefix>,
    page: Page<Id<Prefix>>,
    item: (reader: Reader, key: BareId, id: Id<Prefix>) => JsonText | undefined,
  ): Promise<JsonText> {
    return listRecords((work) => this.read(work), listing, page, item);
  }

  walk(table: AnyTable, filter: Filter, bounds: Omit<Bounds, "few">, limit: number): WalkedIds {
    return this.read((reader) => walkStep(reader, table, filter, bounds, limit));
  }

  snapshot(): Snapshot {
    this.refresh();
    const transaction: Transaction = this.#env.useReadTransaction();
    return new Snapshot(this.#databases, this.#rows, "none", this.#clock, transaction);
  }

  /**
   * Writes a consistent copy of the store to `data.mdb` in a directory that exists, while commits go on, here and in
   * other processes. What deleted records left free is not copied.
   */
  async backup(directory: string): Promise<void> {
    await this.#env.backup(directory, true);
  }

  get cacheUses(): Record<string, CacheUses> {
    return this.#rows.uses;
  }

  /** Number of rows of a table; read from its root page. After a crash an index can count some entries twice for a while. */
  count(table: AnyTable): number {
    return (this.#databases.ofAny(table).getStats() as { entryCount: number }).entryCount + this.#databases.changeBuffer.count(table.name);
  }

  get bytes(): number {
    return statSync(join(this.directory, DATA_FILE)).size;
  }

  /**
   * Copies keys of a table end to end, from one on, in a tenth of the time that reading each takes. Of a key as many bytes are copied as
   * `width` says; behind a shorter one come zeros.
   *
   * @returns how many there are, or as many as there is room for
   * @throws {Error} of a damaged page, also where reading on behind the last of them would lead back to them
   */
  copyKeys(table: VectorTable, from: string, into: Buffer, width: number): number {
    const transaction = this.#env.useReadTransaction() as Transaction & { address: number };
    try {
      const { db } = this.#databases.ofBytes(table) as unknown as { db: NativeTable };
      const count = db.copyKeys(into, KEY_ENCODER.writeKey(from, into, 0), width, transaction.address);
      if (count > 0 && successor(into.toString("latin1", (count - 1) * width, count * width)) <= from) throw keysOutOfOrder(table);
      return count;
    } finally {
      transaction.done();
    }
  }

  /** The pages its rows are on, in bytes: about what a backup takes. What deleted records left free is not counted. */
  get bytesUsed(): number {
    return [...this.#databases.vectors.values(), ...this.#databases.texts.values()]
      .map((database) => database.getStats() as Record<"pageSize" | "treeBranchPageCount" | "treeLeafPageCount" | "overflowPages", number>)
      .reduce((sum, pages) => sum + pages.pageSize * (pages.treeBranchPageCount + pages.treeLeafPageCount + pages.overflowPages), 0);
  }

  get bytesWritten(): number {
    return this.#bytesWritten;
  }

  /** Makes the next read see what other threads and processes have committed by now. */
  refresh(): void {
    this.#readVersion = undefined;
    this.#env.resetReadTxn();
    this.#rows.clear();
  }

  /** The newest id there is, as keys have it; undefined in a store without records. */
  newestId(): BareId | undefined {
    return newestId(this.latest);
  }

  /** Ids continue after the newest one stored, even when the clock was set back. */
  #idSource(): IdSource {
    return (this.#ids ??= new IdSource(this.#clock, { startAfter: this.newestId() }));
  }

  /** With a clock behind the newest id other processes continue after that too: what they have given is not given again. */
  #passIdsOfOthers(now: number): void {
    if (this.#ids !== undefined && this.#ids.newestMs > now) this.#ids.continueAfter(this.newestId() ?? "");
  }

  /**
   * Runs `work` inside a write transaction; resolves with its result once the commit is on the disk. When `work` throws,
   * nothing of it is kept and the promise rejects with what was thrown.
   *
   * `work` must be synchronous, because the writer waits for it, and repeatable: `Tx` says what that means.
   *
   * @param partition - of the records it writes
   * @throws {ApiError} `service_unavailable` when the disk is full or refuses the write; then nothing was written, unless
   *   it says that this is not known
   */
  async commit<Result>(partition: Partition, work: (tx: Tx) => Result): Promise<Result> {
    this.health.assertTakesChanges();
    this.onCommit();
    return new Promise<Result>((resolve, reject) => {
      this.#queue.push({ partition, run: work, resolve: resolve as (result: unknown) => void, reject, outcome: undefined });
      this.#scheduleTransaction();
    });
  }

  /**
   * In the second next turn of the event loop, before which all requests that have arrived are read: with them in the same transaction a
   * change took .90 of its CPU time at 16 connections, and no longer at one. And one after the other: of one that was handed to lmdb-js
   * meanwhile the callback would run before the answers of the last are sent, and with fewer commits.
   */
  #scheduleTransaction(): void {
    if (this.#isScheduled || this.#queue.length === 0) return;
    this.#isScheduled = true;
    afterNextTurn(() => void this.#commitQueued());
  }

  async #commitQueued(): Promise<void> {
    let commits: QueuedCommit[] | undefined;
    const written: Write[] = [];
    const announced = new Announced();
    try {
      await this.#transaction(() => {
        commits = this.#queue.splice(0, COMMITS_PER_TRANSACTION);
        const stored = this.#insideTransaction();
        this.#passIdsOfOthers(stored.now);
        for (const commit of commits) {
          const writes = this.#run(commit, stored);
          if (commit.outcome !== undefined && "thrown" in commit.outcome && endsTransaction(commit.outcome.thrown))
            throw commit.outcome.thrown;
          for (const write of writes) {
            if (this.#rows.invalidate(write)) written.push(write);
            else announced.add(write);
          }
        }
        this.#flushChangeBuffer();
      });
      this.#databases.changeBuffer.end(true);
      if (this.#newestTrace !== undefined) this.#newestTrace = announced.traces.at(-1)?.slice(1) ?? this.#newestTrace;
      this.#rows.release(written, this.#caching === "all");
      this.#notifyPuts(written);
      // Errors are thrown only now, too: their reason may be what another commit of the same transaction has written.
      for (const commit of commits ?? []) settle(commit);
    } catch (refusal) {
      this.#settleChangeBuffer();
      this.#rows.release(written, false);
      // The state of the write is not always known.
      this.#notifyPuts(written);
      for (const { reject } of commits ?? this.#queue.splice(0)) reject(refusal);
      // Streams would pass for good over what is there all the same.
      announced.traces = this.#existing(announced.traces);
      announced.hasEvents &&= announced.traces.length > 0;
    }
    this.#isScheduled = false;
    this.#scheduleTransaction();
    if (!announced.isEmpty) this.onCommitted(announced);
  }

  /**
   * A commit too large for a buffer: what `work` writes goes into the transaction at once, which no other commit shares.
   *
   * @throws {ApiError} as `commit` does
   */
  async commitExclusive<Result>(work: (tx: Tx) => Result): Promise<Result> {
    this.health.assertTakesChanges();
    let outcome: QueuedCommit["outcome"];
    try {
      await this.#transaction(() => {
        try {
          const stored = this.#insideTransaction("none");
          outcome = { result: work(new WriteBuffer(stored, this.#contextOf(NO_PARTITION, stored), (write) => this.#write(write))) };
        } catch (thrown) {
          outcome = { thrown };
          throw thrown;
        }
      });
    } catch (refusal) {
      this.#settleChangeBuffer();
      throw outcome !== undefined && "thrown" in outcome ? outcome.thrown : refusal;
    }
    this.#databases.changeBuffer.end(true);
    this.#rows.clear();
    return (outcome as { result: unknown } | undefined)?.result as Result;
  }

  /** @throws {ApiError} when the disk refuses it; then nothing was written, unless LMDB panics: then that is not known */
  async #transaction(run: () => void): Promise<void> {
    try {
      await this.health.watch(async () => {
        await this.#env.childTransaction(() => {
          run();
          if (this.#refusal !== undefined) throw this.#refusal.reason;
        });
        if (this.#flushesLater) await this.#env.flushed;
        // Marked, others may see it by now: only its flush may have failed.
      }, this.#isMarked);
    } finally {
      this.#readVersion = undefined;
      this.#refusal = undefined;
    }
  }

  /** Reads what every store has, as it is now: only a read tells that LMDB has panicked. */
  #readSchema(): void {
    this.#env.resetReadTxn();
    this.latest.get(meta, "schema");
  }

  /** Commits what is there already. @throws {ApiError} as `commit` does */
  async tryToWrite(): Promise<void> {
    await this.commit(NO_PARTITION, (tx) => tx.put(meta, "schema", tx.get(meta, "schema") ?? String(SCHEMA_VERSION)));
  }

  async probe(): Promise<void> {
    await this.tryToWrite().catch(() => undefined);
  }

  #insideTransaction(caching: "committed" | "none" = this.#caching === "all" ? "committed" : "none"): Reader {
    return new InsideReader(this.#databases, this.#rows, caching, this.#clock);
  }

  #contextOf(partition: Partition, { now }: Reader): TxContext & { rewind(): void } {
    return repeatable({ now, elapsed: this.#clock.elapsed(), partition }, () => this.#idSource());
  }

  /** @returns its writes, in order */
  #run(commit: QueuedCommit, stored: Reader): readonly Write[] {
    const writes = runWork(commit, stored, this.#contextOf(commit.partition, stored));
    const changeBuffer = this.#newestTrace === undefined ? undefined : this.#databases.changeBuffer;
    for (const write of writes) {
      if (write.value !== undefined && changeBuffer?.isOf(write.table) === true) changeBuffer.addUncommitted(write);
      else this.#write(write);
    }
    return writes;
  }

  /**
   * Has entries of late indexes gather from now on, for the process that has locked the directory: other ones read a snapshot. While
   * the disk takes nothing, entries are written with their rows, and so they are until the next start.
   *
   * @param perFlushMin - how many are written at once at least; another number than usual for tests alone
   */
  async useChangeBuffer(perFlushMin?: number): Promise<void> {
    const newest = newestTrace(this.latest);
    try {
      // The newest trace can be gone: ids that are given again from there on must not be up to the mark.
      if ((this.latest.get(meta, TRACES_WATERMARK) ?? MAX_KEY) > newest)
        await this.commit(NO_PARTITION, (tx) => tx.put(meta, TRACES_WATERMARK, newest));
    } catch {
      return;
    }
    this.#databases.changeBuffer = changeBufferOf(this.latest, perFlushMin);
    this.#newestTrace = newest;
  }

  #flushChangeBuffer(): void {
    if (this.#newestTrace !== undefined) this.#putEntries(this.#databases.changeBuffer.step(this.#newestTrace));
  }

  #putEntries({ entries, watermark }: Step): void {
    for (const { table, key } of entries) this.#write({ table, key, value: "" });
    if (watermark !== undefined) this.#write({ table: meta.name, key: TRACES_WATERMARK, value: watermark });
  }

  wipe(): Wiping {
    const state = new Float64Array(2);
    return async () => {
      this.#readVersion = undefined;
      this.#env.resetReadTxn();
      let isWiped = false;
      await this.#transaction(() => (isWiped = (this.#env as unknown as NativeStore).env.wipeFree(state, PAGES_PER_WIPE)));
      if (!isWiped) return "waits";
      return state[1] === 0 ? "done" : "more";
    };
  }

  /** Has entries follow from their rows again, which a transaction that has failed has written, or has not. */
  #settleChangeBuffer(): void {
    const { changeBuffer } = this.#databases;
    for (const entry of changeBuffer.end(false)) {
      const index = traces.indexes.find(({ name }) => name === entry.table)!;
      if (this.#existing([index.recordOf(entry.key)]).length > 0) changeBuffer.putBack(entry);
      else changeBuffer.remove(entry);
    }
  }

  /** Keys of traces written by a transaction that has failed. */
  #existing(keys: readonly string[]): string[] {
    try {
      return this.readNewest((reader) => keys.filter((key) => reader.has(traces, key)));
    } catch {
      // LMDB has panicked: this process reads nothing any more.
      return [];
    }
  }

  #write({ table, key, value }: Pick<Write, "table" | "key" | "value">): void {
    this.#vectorListeners.get(table)?.(key, value !== undefined);
    if (value === undefined) this.#databases.changeBuffer.removeUncommitted({ table, key });
    else this.#bytesWritten += value.length;
    const database = this.#databases.ofAny({ name: table }) as Database<string | Uint8Array, string>;
    try {
      // Inside a transaction, where a refusal throws. Outside of one it would end the process.
      if (value === undefined) database.removeSync(key);
      else database.putSync(key, value);
    } catch (reason) {
      this.#refusal = { reason };
      throw reason;
    }
  }

  /** Has a listener told of every vector of a table that is put or removed: one for each table. */
  onVectors({ name }: VectorTable, listener: VectorListener): void {
    this.#vectorListeners.set(name, listener);
  }

  /**
   * Has a listener told of every row of a table that was put and is not new, once readers see it; of a table whose rows are cached. One
   * for each table.
   */
  onPut({ name }: AnyTable, listener: (key: string) => void): void {
    this.#putListeners.set(name, listener);
  }

  #notifyPuts(written: readonly Write[]): void {
    for (const { table, key, value, isNew } of written) if (!isNew && value !== undefined) this.#putListeners.get(table)?.(key);
  }

  /** Takes out readers whose process is gone: the disk keeps what they saw. @returns how many there were */
  removeDeadReaders(): number {
    return this.#env.readerCheck();
  }

  async close(): Promise<void> {
    while (this.#isScheduled) await nextTurn();
    const [watermark, entries] = [this.#newestTrace, this.#databases.changeBuffer.all()];
    // If that fails the next start makes them of their rows.
    if (watermark !== undefined && entries.length > 0)
      await this.#transaction(() => this.#putEntries({ entries, watermark })).catch(() => undefined);
    await this.#env.close();
  }
}

/** An addition of our build of lmdb-js (`scripts/lmdb/wipe.patch`). */
interface NativeStore {
  env: {
    /**
     * Overwrites what free pages hold, in a transaction that has written nothing.
     *
     * @param state - zeros at first; the second one is zero at the end
     * @returns false while a reader may still see such pages
     */
    wipeFree(state: Float64Array, pagesMax: number): boolean;
  };
}

/** An addition of our build of lmdb-js (`scripts/lmdb/keys.patch`). */
interface NativeTable {
  /** @param into - begins with the key to copy from on, which has `startBytes` */
  copyKeys(into: Uint8Array, startBytes: number, width: number, transaction: number): number;
}

/** Result of reading a table that does not exist. */
const NO_TABLE = {
  db: { copyKeys: () => 0 } satisfies NativeTable,
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
