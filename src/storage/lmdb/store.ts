/**
 * The store: LMDB, which only the files of this folder know.
 *
 * It holds everything that is true, and is used in scopes: `read` runs a function on a snapshot, `commit` one in a write transaction
 * (`writer.ts`).
 *
 * @module
 */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Transaction } from "lmdb";
import type { CacheUses } from "../../lib/cache.ts";
import { afterThisTurn, type Clock } from "../../lib/clock.ts";
import { NO_PARTITION, type BareId, type Partition, type Id, type IdPrefix } from "../../lib/ids.ts";
import type { JsonText } from "../../lib/json.ts";
import { systemReason } from "../../lib/system-errors.ts";
import type { LatestReader, Reader, Tx } from "../access.ts";
import type { AuditKey } from "../audit/audit-key.ts";
import type { AuditStart } from "../audit/chain.ts";
import type { Durability } from "../durability.ts";
import { successor } from "../keys.ts";
import { listRecords, type Listing, type ListItem } from "../list.ts";
import { newestId } from "../newest-id.ts";
import type { Page } from "../page.ts";
import type { RecordStore, WalkedIds, Wiping } from "../record-store.ts";
import { StoreError } from "../store-error.ts";
import { SCHEMA_VERSION, meta, type AnyTable, type VectorTable } from "../tables.ts";
import { walkStep, type Bounds, type Filter } from "../walk.ts";
import { keysOutOfOrder, lmdbReason } from "./disk/disk-errors.ts";
import { DiskHealth } from "./disk/disk-health.ts";
import { isWritable, openEnvironment, pathIn, type Environment, type NativeStore, type NativeTable } from "./environment.ts";
import { createFiles, DATA_FILE } from "./file/data-file.ts";
import { assertMappable } from "./file/pages.ts";
import { clearUnsyncedMarker, hasUnsyncedMarker, setUnsyncedMarker } from "./file/unsynced-marker.ts";
import { KEY_ENCODER } from "./key-encoder.ts";
import { LmdbReader, Snapshot, type Databases } from "./reader.ts";
import { RowCache } from "./row-cache.ts";
import { semaphoreRefusal } from "./semaphores.ts";
import { Writer, type VectorListener } from "./writer.ts";

/** A step of overwriting free pages looks at that many: some milliseconds where they have to be written. */
const PAGES_PER_WIPE = 1_024;

export class Store implements RecordStore {
  readonly directory: string;
  readonly health: DiskHealth;
  readonly #clock: Clock;
  readonly #env: Environment["env"];
  readonly #databases: Databases;
  readonly #rows = new RowCache();
  readonly #writer: Writer;
  readonly #caching: "all" | "none";
  #readVersion: object | undefined;
  onCommit: RecordStore["onCommit"] = () => undefined;
  onCommitted: RecordStore["onCommitted"] = () => undefined;

  private constructor(directory: string, clock: Clock, durability: Durability, readOnly: boolean, cachesRows: boolean) {
    this.directory = directory;
    this.#clock = clock;
    this.#caching = cachesRows ? "all" : "none";
    this.health = new DiskHealth(directory, clock, () => this.#readSchema());
    const environment = openEnvironment(directory, durability, readOnly);
    this.#env = environment.env;
    this.#databases = environment.databases;
    this.#writer = new Writer({
      ...environment,
      clock,
      health: this.health,
      rows: this.#rows,
      cachesRows,
      latest: () => this.latest,
      readNewest: (callback) => this.readNewest(callback),
      onCommit: () => this.onCommit(),
      onCommitted: (announced) => this.onCommitted(announced),
      onTransaction: () => (this.#readVersion = undefined),
    });
  }

  /**
   * Opens the store in a data directory, or makes one.
   *
   * @param options - `older`: whether one of an older version will do, whose rows are not those of `tables.ts`; `durability`
   *   is for the server to say: all others find what it said; `onlyReads`: the caller writes nothing, so that a disk
   *   that takes nothing will do; `cachesRows`: not of use to a caller that looks again at the whole store each time
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
    const store = Store.#opened(directory, clock, { durability, readOnly, cachesRows });
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

  static #opened(
    directory: string,
    clock: Clock,
    {
      durability = "strict",
      readOnly = false,
      cachesRows = true,
    }: { durability?: Durability | undefined; readOnly?: boolean; cachesRows?: boolean } = {},
  ): Store {
    const refusal = semaphoreRefusal();
    if (refusal !== undefined) throw new StoreError(`The store in ${directory} cannot be opened: ${refusal}`);
    try {
      return new Store(directory, clock, durability, readOnly, cachesRows);
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

  read<Result>(callback: (reader: LatestReader) => Result): Result {
    return callback(this.latest);
  }

  /**
   * Reads what is there at each moment it is asked: for callers that look again at what they have found, such as an index that follows
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

  readNewest<Result>(callback: (reader: LatestReader) => Result): Result {
    this.#readVersion = undefined;
    this.#env.resetReadTxn();
    return this.read(callback);
  }

  /** One page of a list, in several scopes: other requests are answered in between. */
  list<Prefix extends IdPrefix>(
    listing: Listing<Prefix>,
    page: Page<Id<Prefix>>,
    item: (reader: Reader, key: BareId, id: Id<Prefix>) => ListItem,
  ): Promise<JsonText> {
    return listRecords((callback) => this.read(callback), listing, page, item);
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
   * @returns how many there are, or as many as there is space for
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
    return this.#writer.bytesWritten;
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

  /** @throws {ApiError} `service_unavailable` when the disk is full or refuses the write */
  commit<Result>(partition: Partition, callback: (tx: Tx) => Result): Promise<Result> {
    return this.#writer.commit(partition, callback);
  }

  newId(partition: Partition): BareId {
    return this.#writer.newId(partition);
  }

  /** A commit too large for a buffer. @throws {ApiError} as `commit` does */
  commitExclusive<Result>(callback: (tx: Tx) => Result): Promise<Result> {
    return this.#writer.commitExclusive(callback);
  }

  get auditKey(): AuditKey | undefined {
    return this.#writer.auditKey;
  }

  useAudit(start: AuditStart): void {
    this.#writer.useAudit(start);
  }

  signTraces(): Promise<void> {
    return this.#writer.signTraces();
  }

  /** Has entries of buffered indexes gather from now on (`Writer.useChangeBuffer`). */
  useChangeBuffer(perFlushMin?: number): Promise<void> {
    return this.#writer.useChangeBuffer(perFlushMin);
  }

  /** Registers a listener for changes of a table's vectors: one for each table. */
  onVectors(table: VectorTable, listener: VectorListener): void {
    this.#writer.onVectors(table, listener);
  }

  /** Registers a listener for rows of a table that were put again (`Writer.onPut`): one for each table. */
  onPut(table: AnyTable, listener: (key: string) => void): void {
    this.#writer.onPut(table, listener);
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

  wipe(): Wiping {
    const state = new Float64Array(2);
    return async () => {
      this.#readVersion = undefined;
      this.#env.resetReadTxn();
      let isWiped = false;
      await this.#writer.transaction(() => (isWiped = (this.#env as unknown as NativeStore).env.wipeFree(state, PAGES_PER_WIPE)));
      if (!isWiped) return "waits";
      return state[1] === 0 ? "done" : "more";
    };
  }

  /** Takes out readers whose process is gone: the disk keeps what they saw. @returns how many there were */
  removeDeadReaders(): number {
    return this.#env.readerCheck();
  }

  async close(): Promise<void> {
    await this.#writer.close();
    await this.#env.close();
  }
}
