/**
 * Changes of the store: each is one `commit`, whose callback runs inside a write transaction, so that what it reads is the latest there is,
 * and what it writes is there altogether or not at all. The promise resolves when the pages are on the disk; commits that wait for the
 * disk at the same time share one flush.
 *
 * Group commit: queued callbacks share one transaction of LMDB, and its cost. Each writes to a `WriteBuffer` until it has
 * returned, so that one that throws leaves nothing behind.
 *
 * @module
 */
import type { Database } from "lmdb";
import { afterNextTurn, nextTurn, type Clock } from "../../lib/clock.ts";
import { IdSource, NO_PARTITION, type BareId, type Partition } from "../../lib/ids.ts";
import type { LatestReader, Reader, Tx } from "../access.ts";
import { Announced } from "../announced.ts";
import type { AuditKey } from "../audit/audit-key.ts";
import { AuditWriter } from "../audit/audit-writer.ts";
import type { AuditChain, AuditStart } from "../audit/chain.ts";
import { MAX_KEY } from "../keys.ts";
import { newestId } from "../newest-id.ts";
import { meta, traces, TRACES_WATERMARK, type AnyTable, type VectorTable } from "../tables.ts";
import { repeatable, runCallback, settle, type QueuedCommit } from "../callback.ts";
import { WriteBuffer, type TxContext, type Write } from "../write-buffer.ts";
import { changeBufferOf, newestTrace, type Step } from "./change-buffer.ts";
import { endsTransaction } from "./disk/disk-errors.ts";
import type { DiskHealth } from "./disk/disk-health.ts";
import type { Environment } from "./environment.ts";
import { InsideReader } from "./reader.ts";
import type { RowCache } from "./row-cache.ts";

/** More of them wait for the next transaction, so that requests are handled in between. */
const COMMITS_PER_TRANSACTION = 128;

/** Called inside the transaction: no reader sees that yet, and the commit may still fail. */
export type VectorListener = (id: string, isPut: boolean) => void;

/** The store that a writer changes. */
interface Written extends Environment {
  readonly clock: Clock;
  readonly health: DiskHealth;
  readonly rows: RowCache;
  /** True if committed rows are cached. */
  readonly cachesRows: boolean;
  /** Reads what is there at each moment it is asked. */
  latest(): LatestReader;
  /** Reads what others have committed by now. */
  readNewest<Result>(callback: (reader: LatestReader) => Result): Result;
  /** Called before each change is queued. */
  onCommit(): void;
  onCommitted(announced: Announced): void;
  /** Called when a transaction has ended, however. */
  onTransaction(): void;
}

export class Writer {
  readonly #store: Written;
  #ids: IdSource | undefined;
  #bytesWritten = 0;
  /** Reason why LMDB refused a write of the present transaction: nothing of it may be kept, even if a callback has caught the error. */
  #refusal: { reason: unknown } | undefined;
  /** True if the present transaction has changed anything. */
  #hasWritten = false;
  readonly #vectorListeners = new Map<string, VectorListener>();
  readonly #putListeners = new Map<string, (key: string) => void>();
  /** The newest trace that was committed, where entries are written late. */
  #newestTrace: BareId | undefined;
  #audit: AuditWriter | undefined;
  #isSignatureDue = false;
  /** Chain of the transaction that is under way, once it has linked a trace. */
  #chain: AuditChain | undefined;
  #queue: QueuedCommit[] = [];
  /** True if a transaction is under way, or about to begin. */
  #isScheduled = false;

  constructor(store: Written) {
    this.#store = store;
  }

  get bytesWritten(): number {
    return this.#bytesWritten;
  }

  /** Ids continue after the newest one stored, even when the clock was set back. */
  #idSource(): IdSource {
    return (this.#ids ??= new IdSource(this.#store.clock, { startAfter: newestId(this.#store.latest()) }));
  }

  newId(partition: Partition): BareId {
    return this.#idSource().bare(partition);
  }

  /** With a clock behind the newest id other processes continue after that too: what they have given is not given again. */
  #passIdsOfOthers(now: number): void {
    if (this.#ids !== undefined && this.#ids.newestMs > now) this.#ids.continueAfter(newestId(this.#store.latest()) ?? "");
  }

  /**
   * Runs `callback` inside a write transaction; resolves with its result once the commit is on the disk. When `callback` throws,
   * nothing of it is kept and the promise rejects with what was thrown.
   *
   * `callback` must be synchronous, because the writer waits for it, and repeatable: `Tx` says what that means.
   *
   * @param partition - of the records it writes
   * @throws {ApiError} `service_unavailable` when the disk is full or refuses the write; then nothing was written, unless
   *   it says that this is not known
   */
  async commit<Result>(partition: Partition, callback: (tx: Tx) => Result): Promise<Result> {
    this.#store.health.assertTakesChanges();
    this.#store.onCommit();
    return new Promise<Result>((resolve, reject) => {
      this.#queue.push({ partition, run: callback, resolve: resolve as (result: unknown) => void, reject, outcome: undefined });
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
      await this.transaction(() => {
        commits = this.#queue.splice(0, COMMITS_PER_TRANSACTION);
        const stored = this.#insideTransaction();
        this.#passIdsOfOthers(stored.now);
        for (const commit of commits) {
          const writes = this.#run(commit, stored);
          if (commit.outcome !== undefined && "thrown" in commit.outcome && endsTransaction(commit.outcome.thrown))
            throw commit.outcome.thrown;
          for (const write of writes) {
            if (this.#store.rows.invalidate(write)) written.push(write);
            else announced.add(write);
          }
        }
        this.#signLinked(stored.now);
        this.#flushChangeBuffer();
      });
      this.#giveChain("committed");
      this.#store.databases.changeBuffer.end(true);
      if (this.#newestTrace !== undefined) this.#newestTrace = announced.traces.at(-1)?.slice(1) ?? this.#newestTrace;
      this.#store.rows.release(written, this.#store.cachesRows);
      this.#notifyPuts(written);
      // Errors are thrown only now, too: their reason may be what another commit of the same transaction has written.
      for (const commit of commits ?? []) settle(commit);
    } catch (refusal) {
      this.#giveChain("unknown");
      this.#settleChangeBuffer();
      this.#store.rows.release(written, false);
      // The state of the write is not always known.
      this.#notifyPuts(written);
      for (const { reject } of commits ?? this.#queue.splice(0)) reject(refusal);
      // Streams would pass for good over what is there all the same.
      announced.traces = this.#existing(announced.traces);
      announced.hasEvents &&= announced.traces.length > 0;
    }
    this.#isScheduled = false;
    this.#scheduleTransaction();
    if (!announced.isEmpty) this.#store.onCommitted(announced);
  }

  /**
   * A commit too large for a buffer: what `callback` writes goes into the transaction at once, which no other commit shares.
   *
   * @throws {ApiError} as `commit` does
   */
  async commitExclusive<Result>(callback: (tx: Tx) => Result): Promise<Result> {
    this.#store.health.assertTakesChanges();
    let outcome: QueuedCommit["outcome"];
    try {
      await this.transaction(() => {
        try {
          const stored = this.#insideTransaction("none");
          outcome = { result: callback(new WriteBuffer(stored, this.#contextOf(NO_PARTITION, stored), (write) => this.#write(write))) };
        } catch (thrown) {
          outcome = { thrown };
          throw thrown;
        }
      });
    } catch (refusal) {
      this.#settleChangeBuffer();
      throw outcome !== undefined && "thrown" in outcome ? outcome.thrown : refusal;
    }
    this.#store.databases.changeBuffer.end(true);
    this.#store.rows.clear();
    return (outcome as { result: unknown } | undefined)?.result as Result;
  }

  /** @throws {ApiError} when the disk refuses it; then nothing was written, unless LMDB panics: then that is not known */
  async transaction(run: () => void): Promise<void> {
    try {
      await this.#store.health.watch(async () => {
        let hasWritten = false;
        await this.#store.env.childTransaction(() => {
          this.#hasWritten = false;
          run();
          hasWritten = this.#hasWritten;
          if (this.#refusal !== undefined) throw this.#refusal.reason;
        });
        if (this.#store.flushesLater) await this.#store.env.flushed;
        return hasWritten;
        // Marked, others may see it by now: only its flush may have failed.
      }, this.#store.isMarked);
    } finally {
      this.#store.onTransaction();
      this.#refusal = undefined;
    }
  }

  #insideTransaction(caching: "committed" | "none" = this.#store.cachesRows ? "committed" : "none"): Reader {
    return new InsideReader(this.#store.databases, this.#store.rows, caching, this.#store.clock);
  }

  #contextOf(partition: Partition, { now }: Reader): TxContext & { rewind(): void } {
    return repeatable({ now, elapsed: this.#store.clock.elapsed(), partition }, () => this.#idSource());
  }

  /** @returns its writes, in order */
  #run(commit: QueuedCommit, stored: Reader): readonly Write[] {
    const writes = runCallback(commit, stored, this.#contextOf(commit.partition, stored));
    const changeBuffer = this.#newestTrace === undefined ? undefined : this.#store.databases.changeBuffer;
    for (const write of writes) {
      if (write.value !== undefined && changeBuffer?.isOf(write.table) === true) changeBuffer.addUncommitted(write);
      else if (this.#audit !== undefined && write.isNew && write.table === traces.name) this.#writeLinked(write, this.#audit, stored.now);
      else this.#write(write);
    }
    return writes;
  }

  #writeLinked(write: Write, audit: AuditWriter, now: number): void {
    this.#chain ??= audit.take(now);
    for (const linked of this.#chain.link(write, now)) this.#write(linked);
  }

  #giveChain(outcome: "committed" | "unknown"): void {
    if (this.#chain !== undefined) this.#audit?.give(this.#chain, outcome);
    this.#chain = undefined;
  }

  get auditKey(): AuditKey | undefined {
    return this.#audit?.key;
  }

  /** Has each trace linked into a chain from now on. */
  useAudit(start: AuditStart): void {
    this.#audit = new AuditWriter(start);
  }

  /** Signs what is linked so far. @throws {ApiError} as `commit` does */
  async signTraces(): Promise<void> {
    if (this.#chain === undefined && this.#audit?.hasUnsigned !== true) return;
    this.#isSignatureDue = true;
    await this.commit(NO_PARTITION, () => undefined);
  }

  #signLinked(now: number): void {
    if (!this.#isSignatureDue) return;
    this.#chain ??= this.#audit?.takeUnsigned();
    if (this.#chain?.isUnsigned === true) this.#write(this.#chain.sign(now));
    this.#isSignatureDue = false;
  }

  /**
   * Has entries of late indexes gather from now on, for the process that has locked the directory: other ones read a snapshot. While
   * the disk takes nothing, entries are written with their rows, and so they are until the next start.
   *
   * @param perFlushMin - how many are written at once at least; another number than usual for tests alone
   */
  async useChangeBuffer(perFlushMin?: number): Promise<void> {
    const newest = newestTrace(this.#store.latest());
    try {
      // The newest trace can be gone: ids that are given again from there on must not be up to the watermark.
      if ((this.#store.latest().get(meta, TRACES_WATERMARK) ?? MAX_KEY) > newest)
        await this.commit(NO_PARTITION, (tx) => tx.put(meta, TRACES_WATERMARK, newest));
    } catch {
      return;
    }
    this.#store.databases.changeBuffer = changeBufferOf(this.#store.latest(), perFlushMin);
    this.#newestTrace = newest;
  }

  #flushChangeBuffer(): void {
    if (this.#newestTrace !== undefined) this.#putEntries(this.#store.databases.changeBuffer.step(this.#newestTrace));
  }

  #putEntries({ entries, watermark }: Step): void {
    for (const { table, key } of entries) this.#write({ table, key, value: "" });
    if (watermark !== undefined) this.#write({ table: meta.name, key: TRACES_WATERMARK, value: watermark });
  }

  /** Has entries follow from their rows again, which a transaction that has failed has written, or has not. */
  #settleChangeBuffer(): void {
    const { changeBuffer } = this.#store.databases;
    for (const entry of changeBuffer.end(false)) {
      const index = traces.indexes.find(({ name }) => name === entry.table)!;
      if (this.#existing([index.recordOf(entry.key)]).length > 0) changeBuffer.putBack(entry);
      else changeBuffer.remove(entry);
    }
  }

  /** Keys of traces written by a transaction that has failed. */
  #existing(keys: readonly string[]): string[] {
    try {
      return this.#store.readNewest((reader) => keys.filter((key) => reader.has(traces, key)));
    } catch {
      // LMDB has panicked: this process reads nothing any more.
      return [];
    }
  }

  #write({ table, key, value }: Pick<Write, "table" | "key" | "value">): void {
    this.#vectorListeners.get(table)?.(key, value !== undefined);
    if (value === undefined) this.#store.databases.changeBuffer.removeUncommitted({ table, key });
    else this.#bytesWritten += value.length;
    const database = this.#store.databases.ofAny({ name: table }) as Database<string | Uint8Array, string>;
    try {
      // Inside a transaction, where a refusal throws. Outside of one it would end the process.
      if (value !== undefined) database.putSync(key, value);
      if (value !== undefined || database.removeSync(key)) this.#hasWritten = true;
    } catch (reason) {
      this.#refusal = { reason };
      throw reason;
    }
  }

  /** Registers a listener for vectors of a table that are put or removed: one for each table. */
  onVectors({ name }: VectorTable, listener: VectorListener): void {
    this.#vectorListeners.set(name, listener);
  }

  /**
   * Registers a listener for rows of a table that were put and are not new, called once readers see them; of a table whose rows are
   * cached. One for each table.
   */
  onPut({ name }: AnyTable, listener: (key: string) => void): void {
    this.#putListeners.set(name, listener);
  }

  #notifyPuts(written: readonly Write[]): void {
    for (const { table, key, value, isNew } of written) if (!isNew && value !== undefined) this.#putListeners.get(table)?.(key);
  }

  /** Waits for what is queued, signs what is linked, and writes the entries that were to be written late. */
  async close(): Promise<void> {
    await this.signTraces().catch(() => undefined);
    while (this.#isScheduled) await nextTurn();
    const [watermark, entries] = [this.#newestTrace, this.#store.databases.changeBuffer.all()];
    // If that fails the next start makes them of their rows.
    if (watermark !== undefined && entries.length > 0)
      await this.transaction(() => this.#putEntries({ entries, watermark })).catch(() => undefined);
  }
}
