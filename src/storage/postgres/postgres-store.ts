/**
 * The store on PostgreSQL, which several servers share.
 *
 * A callback runs on what was fetched (`read/fetched-rows.ts`): what a read was given is of one snapshot. `commit/commits.ts` makes
 * transactions of changes, each of which leaves its name in a table (`commit/commit-tokens.ts`), and `connection/outages.ts` says what is
 * done while there is no connection.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import type { BareId, Partition, Id, IdPrefix } from "../../lib/ids.ts";
import type { JsonText } from "../../lib/json.ts";
import { LIMITS } from "../../lib/limits.ts";
import type { Log } from "../../lib/log.ts";
import type { LatestReader, Reader, Tx } from "../access.ts";
import type { Durability } from "../durability.ts";
import type { Listing, ListItem } from "../list.ts";
import { newestId } from "../newest-id.ts";
import { pageOfBatches, type Page } from "../page.ts";
import type { ChangedStore, RecordStore, WalkedIds, WholeStore } from "../record-store.ts";
import { StoreError } from "../store-error.ts";
import { meta, type AnyTable } from "../tables.ts";
import type { Bounds, Filter } from "../walk.ts";
import { CertificateRows } from "./certificate-rows.ts";
import { CommitTokens } from "./commit/commit-tokens.ts";
import { Commits } from "./commit/commits.ts";
import { WholeTransaction, type WholeParts } from "./commit/whole-transaction.ts";
import { DatabaseHealth } from "./connection/database-health.ts";
import { BEGIN, BEGIN_SNAPSHOT, COMMIT, Database, DatabaseError, ROLLBACK } from "./connection/database.ts";
import type { AnswerRow, Connection, Statement } from "./connection/database.ts";
import { openingProblem } from "./connection/opening-problem.ts";
import { Outages } from "./connection/outages.ts";
import { checkServer, openSchema } from "./connection/server-check.ts";
import { ChangeFeed, feedRestart } from "./follow/change-feed.ts";
import { TraceFollower } from "./follow/trace-follower.ts";
import { PostgresLeases } from "./leases.ts";
import { FetchQueue } from "./read/fetch-queue.ts";
import { ReadSet, attemptOf, FetchedRows, RerunReader } from "./read/fetched-rows.ts";
import { listEntries, RECORDS_WALKED_MAX } from "./read/list-entries.ts";
import { listStatement } from "./read/list-statement.ts";
import { RequestsUnderWay } from "./read/request-reads.ts";
import { LEASES, RELATIONS } from "./schema.ts";
import { SharedBuckets } from "./shared-buckets.ts";
import { Sizes } from "./sizes.ts";

/** Setting against time limits of the database, for statements that take their time. */
const WITHOUT_TIME_LIMITS: readonly Statement[] = ["statement_timeout", "idle_in_transaction_session_timeout"].map((name) => ({
  text: `set local ${name} = 0`,
  values: [],
}));
/** Others read on, and a change of theirs ends before, or waits. */
const LOCK_RECORDS: readonly Statement[] = [
  { text: "set local lock_timeout = '5s'", values: [] },
  { text: `lock table ${RELATIONS.join(", ")} in share row exclusive mode`, values: [] },
];

/** A page is read at once, … */
const RECORDS_AT_ONCE = LIMITS.listMax + 1;
/** … unless that is more than this many bytes: then this many records are. */
const READ_AT_ONCE_MAX = 2 * 1024 * 1024;
const LONG_RECORDS_AT_ONCE = 25;

export class PostgresStore implements RecordStore {
  onCommit: RecordStore["onCommit"] = () => undefined;
  onCommitted: RecordStore["onCommitted"] = () => undefined;
  readonly health = new DatabaseHealth();
  readonly #sizes: Sizes;
  readonly #database: Database;
  readonly #outages: Outages;
  readonly #tokens: CommitTokens;
  readonly #fetches: FetchQueue;
  readonly #commits: Commits;
  readonly #clock: Clock;
  readonly #requests = new RequestsUnderWay();
  /** Measures how long something takes here, whatever the time is that records have. */
  readonly #timers: Clock;
  /** True if the database waits for a standby before it acknowledges a change. */
  hasStandby = false;

  private constructor(database: Database, clock: Clock, timers: Clock) {
    this.#database = database;
    this.#timers = timers;
    this.#clock = clock;
    this.#outages = new Outages(clock, this.health, () => database.transaction(this.#tokens.tokenStatements(crypto.randomUUID())));
    this.#tokens = new CommitTokens(
      database,
      () => clock.now(),
      (callback) => this.#outages.again(callback, "from now on"),
    );
    this.#fetches = new FetchQueue(database);
    this.#sizes = new Sizes(database, clock);
    this.#commits = new Commits({
      database,
      clock,
      outages: this.#outages,
      tokens: this.#tokens,
      fetches: this.#fetches,
      requests: this.#requests,
      onCommitted: (committed) => this.onCommitted(committed),
    });
    database.onConnectionChange = () => this.#outages.note();
  }

  /**
   * Opens the store in a database, or makes one there.
   *
   * @param url - one in which `databaseUrlProblem` finds nothing wrong
   * @param timers - limit how long the network may take
   * @param options - `durability`: `relaxed` also opens one that may lose what it acknowledges; `asItIs`: refuses one without a store,
   *   or with that of an older Cairn
   * @throws {StoreError} when that cannot be reached, would not keep what it acknowledges, or was written by another version
   */
  static async open(
    url: string,
    clock: Clock,
    timers: Clock = clock,
    { durability = "strict", asItIs = false }: { durability?: Durability | undefined; asItIs?: boolean } = {},
  ): Promise<PostgresStore> {
    let store: PostgresStore | undefined;
    try {
      store = new PostgresStore(new Database(url, timers), clock, timers);
      store.hasStandby = (await checkServer(store.#database, durability)).hasStandby;
      await openSchema(store.#database, clock, asItIs);
      await store.#sizes.measure();
      const startAfter = await store.read(newestId);
      if (startAfter !== undefined) store.#commits.ids.continueAfter(startAfter);
      return store;
    } catch (error) {
      await store?.close();
      throw error instanceof StoreError ? error : new StoreError(openingProblem(error, url), { cause: error });
    }
  }

  /** Runs what answers a request: what it reads is kept for the rest of it. @param reads - what is going to be read */
  request<Result>(reads: readonly ((reader: Reader) => unknown)[], callback: () => Result): Result {
    return this.#requests.run(reads, callback);
  }

  /**
   * Runs `callback` on one snapshot of the store, which sees every commit that has resolved, or in a request all that had when that
   * came. It is run several times.
   *
   * @throws {ApiError} `service_unavailable` while the database does not answer
   */
  async read<Result>(callback: (reader: LatestReader) => Result): Promise<Result> {
    const request = this.#requests.current;
    if (request === undefined) return this.readNewest(callback);
    const asked = new ReadSet();
    for (const kept of request.snapshotsAt(this.#timers.elapsed())) {
      kept.begin();
      const answer = attemptOf(() => callback(new RerunReader(kept, this.#clock.now(), { recordsAtOnce: RECORDS_AT_ONCE })));
      if (kept.missing.isEmpty) return answer();
      if (!asked.isEmpty) continue;
      asked.add(kept.read);
      asked.add(kept.missing);
    }
    asked.add(request.takeAhead());
    const { answer, fetched } = await this.#fetchFor(callback, asked);
    request.keep(fetched, this.#timers.elapsed());
    return answer();
  }

  /** The same on a snapshot that is not before the call. */
  async readNewest<Result>(callback: (reader: LatestReader) => Result): Promise<Result> {
    return (await this.#fetchFor(callback, new ReadSet())).answer();
  }

  /** @param ahead - what the callback is going to read, as far as that is known */
  async #fetchFor<Result>(
    callback: (reader: LatestReader) => Result,
    ahead: ReadSet,
    recordsAtOnce = RECORDS_AT_ONCE,
  ): Promise<{ answer: () => Result; fetched: FetchedRows }> {
    const asked = new ReadSet();
    asked.add(ahead);
    const fetched = new FetchedRows();
    const reader = new RerunReader(fetched, this.#clock.now(), { recordsAtOnce });
    for (let changes = this.#outages.changes; ;) {
      fetched.begin();
      const answer = attemptOf(() => callback(reader));
      if (fetched.missing.isEmpty) {
        if (!fetched.hasFetched || this.#outages.isPassed(changes)) return { answer, fetched };
        await this.#outages.barrier();
      }
      // All of it once more, so that all of it is of the same snapshot, and of a server that has passed the barrier.
      asked.add(fetched.missing);
      changes = this.#outages.changes;
      const isShort = reader.isToldHowMany && recordsAtOnce > LONG_RECORDS_AT_ONCE;
      const found = await this.#outages.again(() =>
        isShort ? this.#fetches.findUpTo(READ_AT_ONCE_MAX, asked) : this.#fetches.find(asked),
      );
      if (found === undefined) return this.#fetchFor(callback, ahead, LONG_RECORDS_AT_ONCE);
      fetched.take(asked, found);
    }
  }

  async walk(table: AnyTable, filter: Filter, { from, before }: Omit<Bounds, "few">, limit: number): Promise<WalkedIds> {
    const walkMax = Math.max(limit, RECORDS_WALKED_MAX);
    const { statement, walkedIn } = listStatement(table, { filter, from, before }, limit, walkMax);
    const { ids, walked, last } = walkedIn(await this.#readPassed(statement));
    if (ids.length === limit) return { ids, next: ids.at(-1) };
    return { ids, next: walked < walkMax ? undefined : last };
  }

  /** Reads by a statement of its own what no other primary can lack. */
  async #readPassed(statement: Statement): Promise<readonly AnswerRow[]> {
    for (;;) {
      const changes = this.#outages.changes;
      const answer = await this.#outages.again(() => this.#database.query(statement));
      if (this.#outages.isPassed(changes)) return answer;
      await this.#outages.barrier();
    }
  }

  count(table: AnyTable): Promise<number> {
    return this.#outages.again(() => this.#sizes.count(table));
  }

  get bytes(): number {
    return this.#sizes.bytes;
  }

  get bytesUsed(): number {
    return this.#sizes.bytes;
  }

  /** Its rows are in no cache that answers reads. */
  readonly cacheUses = {};

  async probe(): Promise<void> {
    await this.read((reader) => reader.get(meta, "schema")).catch(() => undefined);
  }

  /** Number of round trips to the database. */
  get roundTrips(): number {
    return this.#database.roundTrips;
  }

  /** Forgets the rows that it has written: other servers may have removed them since. */
  forget(): void {
    this.#commits.last.clear();
  }

  /** Number of transactions that were run again, since others had changed what they build on. */
  get conflicts(): number {
    return this.#commits.conflicts;
  }

  get bytesWritten(): number {
    return this.#commits.bytesWritten;
  }

  readonly newId = (partition: Partition): BareId => this.#commits.ids.bare(partition, this.#commits.timeOfChanges());

  /** One page of a list. */
  list<Prefix extends IdPrefix>(
    listing: Listing<Prefix>,
    page: Page<Id<Prefix>>,
    item: (reader: Reader, key: BareId, id: Id<Prefix>) => ListItem,
  ): Promise<JsonText> {
    const query = (statement: Statement) => this.#outages.again(() => this.#database.query(statement));
    return pageOfBatches(listEntries({ store: this, query }, listing, page, item), page.limit, listing.probesMax);
  }

  /**
   * Runs `callback` in a transaction that others may share; resolves with its result once that is committed. When `callback` throws,
   * nothing of it is kept and the promise rejects with what was thrown.
   *
   * @param partition - of the records it writes
   * @throws {ApiError} `service_unavailable` when the database cannot be reached; then nothing was written. `internal_error` when it
   *   went while it committed and did not come back in time: then nobody knows
   */
  async commit<Result>(partition: Partition, callback: (tx: Tx) => Result): Promise<Result> {
    this.onCommit();
    return new Promise<Result>((resolve, reject) => {
      const request = this.#requests.current;
      this.#commits.add({ partition, run: callback, resolve: resolve as (result: unknown) => void, reject, outcome: undefined, request });
    });
  }

  get auditKey(): RecordStore["auditKey"] {
    return this.#commits.audit?.key;
  }

  readonly useAudit: RecordStore["useAudit"] = (start) => this.#commits.useAudit(start);
  readonly signTraces: RecordStore["signTraces"] = () => this.#commits.signTraces();

  /** The database's time, in Unix milliseconds. @throws {DatabaseError} */
  time(): Promise<number> {
    return this.#database.time();
  }

  /**
   * Leases of tasks that one server at a time runs.
   *
   * @param holder - a name of this server that no other has, and that it had at no start before
   * @param leaseMs - how long one lasts
   */
  leases(holder: string, log: Log, leaseMs?: number): PostgresLeases {
    return new PostgresLeases(holder, {
      database: this.#database,
      clock: this.#clock,
      log,
      leaseMs,
      timeOfChanges: () => this.#commits.timeOfChanges(),
      onTaken: (name, term, rev) => this.#commits.last.note(LEASES.name, name, term, rev),
    });
  }

  /** Texts of the certificate that all servers share. */
  certificates(): CertificateRows {
    return new CertificateRows(this.#database);
  }

  /** Everything as it is now; what is deleted meanwhile frees no space in the database until it is disposed of. */
  async snapshot(): Promise<WholeStore> {
    const connection = await this.#database.reserve("takes its time");
    try {
      await this.#outages.barrier();
      await connection.send([BEGIN_SNAPSHOT, ...WITHOUT_TIME_LIMITS]);
    } catch (error) {
      connection.release();
      throw error;
    }
    return new WholeTransaction(this.#wholeParts(connection), async () => {
      await connection.send([ROLLBACK]).catch(() => undefined);
      connection.release();
    });
  }

  /**
   * Runs `callback` in one transaction: others see what it changes once all of it is committed, and change no record before.
   *
   * @throws {StoreError} while others go on changing records
   * @throws {ApiError} as `commit` does
   */
  async alone<Result>(callback: (store: ChangedStore) => Promise<Result>): Promise<Result> {
    const connection = await this.#database.reserve("takes its time");
    let isOpen = true;
    try {
      await connection.send([BEGIN, ...WITHOUT_TIME_LIMITS]);
      await connection.send(LOCK_RECORDS).catch((error: unknown) => {
        throw new StoreError(`Records of the database are being changed: ${messageOf(error)}.`, { cause: error });
      });
      const result = await callback(new WholeTransaction(this.#wholeParts(connection)));
      const name = crypto.randomUUID();
      await connection.send(feedRestart(this.#clock.now()));
      isOpen = false;
      if (!(await this.#tokens.settled(name, () => connection.send([...this.#tokens.tokenStatements(name), COMMIT]))))
        throw new StoreError("The connection to the database was lost. Nothing was changed.");
      return result;
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error;
      throw new StoreError(`The database failed: ${error.message}. Nothing was changed.`, { cause: error });
    } finally {
      if (isOpen) await connection.send([ROLLBACK]).catch(() => undefined);
      connection.release();
    }
  }

  /** Has the database look at its tables again, to plan queries by what is in them now. */
  async analyze(): Promise<void> {
    await this.#database.query({ text: `analyze ${RELATIONS.join(", ")}`, values: [] });
  }

  #wholeParts(connection: Connection): WholeParts {
    const now = this.#commits.timeOfChanges();
    return {
      connection,
      now,
      elapsed: this.#clock.elapsed(),
      ids: this.#commits.ids,
      newRevision: () => this.#commits.newRevision(),
    };
  }

  /** Buckets of tokens that all servers take from. */
  readonly buckets = (): SharedBuckets =>
    new SharedBuckets((statement) => this.#outages.again(() => this.#database.query(statement)), this.#clock);

  /** Finds traces that other servers commit. */
  readonly traceFollower = (): TraceFollower =>
    new TraceFollower((statement) => this.#outages.again(() => this.#database.query(statement)), this.#clock);

  /** Commits of all servers to the records that are searched. */
  changeFeed(): ChangeFeed {
    return new ChangeFeed({
      read: (statement) => this.#readPassed(statement),
      change: (statements) => this.#outages.again(() => this.#database.transaction(statements)),
      connections: () => this.#outages.changes,
      now: () => this.#clock.now(),
    });
  }

  async close(): Promise<void> {
    await this.#commits.signTraces().catch(() => undefined);
    await this.#database.close();
  }
}
