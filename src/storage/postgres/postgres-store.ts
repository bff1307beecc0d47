/**
 * The store on PostgreSQL, which several servers share.
 *
 * A work runs on what was fetched (`fetched.ts`). What a read was given is of one moment. Commits that wait at the same time are one
 * transaction, each on top of those before it; the transaction has what they have read checked, and when something is another by now
 * they are run again. Where that is unlikely a commit builds on the rows as this server wrote them last; after a conflict it fetches
 * them first, and after another one it locks them before.
 *
 * Each transaction leaves its name in a table (`transaction-names.ts`). After a connection was lost or opened, a row is committed before
 * anything is answered that was only read: a primary that came back shows what no standby has, until it has that row.
 *
 * @module
 */
import { chance } from "../../lib/chance.ts";
import type { Clock } from "../../lib/clock.ts";
import { ApiError, messageOf } from "../../lib/errors.ts";
import { bare, firstBareIdAt, IdSource, NO_HOME, withPrefix, type BareId, type Home, type Id, type IdPrefix } from "../../lib/ids.ts";
import type { JsonText } from "../../lib/json.ts";
import type { Log } from "../../lib/log.ts";
import { eachFetched, type Reader, type Tx } from "../access.ts";
import { foundAt, stretchesOf, type Listing } from "../list.ts";
import type { Durability } from "../durability.ts";
import { newestId } from "../newest-id.ts";
import { pageOfPieces, type Found, type Page } from "../page.ts";
import type { ChangedStore, RecordStore, WalkedIds, WholeStore } from "../record-store.ts";
import { Store, StoreError } from "../store.ts";
import { meta, outbox, traces, type AnyTable } from "../tables.ts";
import type { Bounds, Filter } from "../walk.ts";
import { unlessUnreadable } from "../unreadable.ts";
import { repeatable, runWork, settle, type QueuedCommit } from "../work.ts";
import { WriteBuffer, type Write } from "../write-buffer.ts";
import { ChangeFeed, feedRestart, feedStatements } from "./change-feed.ts";
import { CommitOrder } from "./commit-order.ts";
import { isForAll, lockStatements, locksOf, nameLocksOf, type Locks } from "./commit-locks.ts";
import { changesOf, checksOf, writesOf, type Change } from "./commit-statements.ts";
import {
  BEGIN,
  BEGIN_SNAPSHOT,
  COMMIT,
  Database,
  DatabaseError,
  ROLLBACK,
  type AnswerRow,
  type Connection,
  type Statement,
} from "./database.ts";
import { DatabaseHealth } from "./database-health.ts";
import { FetchQueue } from "./fetch-queue.ts";
import { Fetch } from "./fetch-statement.ts";
import { Asks, attemptOf, Fetched, FetchedReader, firstOf, nameOfSpan, type KnownRows } from "./fetched.ts";
import { LastRows } from "./last-rows.ts";
import { listStatement } from "./list-statement.ts";
import { PostgresLeases } from "./leases.ts";
import { openingProblem } from "./opening-problem.ts";
import { knownToAny, RequestsUnderWay, type RequestReads } from "./request-reads.ts";
import { LEASES, placeOf, RELATIONS } from "./schema.ts";
import { SharedBuckets } from "./shared-buckets.ts";
import { checkServer, openSchema } from "./server-check.ts";
import { Sizes } from "./sizes.ts";
import { TraceFollower } from "./trace-follower.ts";
import { TransactionNames } from "./transaction-names.ts";
import { WholeTransaction, type WholeParts } from "./whole-transaction.ts";

interface CommitOfRequest extends QueuedCommit {
  /** What was fetched for the request that asked for it. */
  readonly request: RequestReads | undefined;
}

/** What the works of a transaction are run on. */
interface Basis {
  /** What is not fetched first. */
  readonly known: KnownRows | undefined;
  /** Whether what they are going to change is locked before anything is fetched. */
  readonly locksFirst: boolean;
}

const COMMITS_PER_TRANSACTION = 32;
const TRANSACTIONS_MAX = 4;
/** After that many conflicts in a row the commits of a transaction are made one by one, … */
const CONFLICTS_TOGETHER_MAX = 3;
/** … and after that many each is refused. */
const CONFLICTS_MAX = 50;
const CONFLICT_PAUSE_MS_MAX = 8;
/** After a conflict the records of a home are changed by other servers, too: for that long they are fetched before each change, … */
const SHARED_MS = 10_000;
/** … and after one in spite of that the rows that it was about are locked before each. */
const CONTENDED_MS = 1_000;
/** A database that fails over is back by then. */
const OUTAGE_MS_MAX = 20_000;
const OUTAGE_PAUSE_MS = 100;
/** How far the clocks of servers may be apart for the changes of a session to be in order. */
const SKEW_MS_MAX = 60_000;
/** More than a server gives in a millisecond. */
const REVISIONS_KNOWN = 1_000;
/** How many records one statement of a list looks at, at first and once few of them have passed. */
const RECORDS_WALKED_MIN = 100;
const RECORDS_WALKED_MAX = 1_000;
/** What takes its time may not be ended for that by what the database says of others. */
const WITHOUT_TIME_LIMITS: readonly Statement[] = ["statement_timeout", "idle_in_transaction_session_timeout"].map((name) => ({
  text: `set local ${name} = 0`,
  values: [],
}));
/** Others read on, and a change of theirs ends before, or waits. */
const LOCK_RECORDS: readonly Statement[] = [
  { text: "set local lock_timeout = '5s'", values: [] },
  { text: `lock table ${RELATIONS.join(", ")} in share row exclusive mode`, values: [] },
];

export class PostgresStore implements RecordStore {
  readonly recordsAtOnce = 25;
  onCommit: RecordStore["onCommit"] = () => undefined;
  onCommitted: RecordStore["onCommitted"] = () => undefined;
  readonly health = new DatabaseHealth();
  readonly #sizes: Sizes;
  readonly #order = new CommitOrder();
  readonly #database: Database;
  readonly #names: TransactionNames;
  readonly #fetches: FetchQueue;
  readonly #clock: Clock;
  #ids: IdSource;
  readonly #last = new LastRows();
  readonly #requests = new RequestsUnderWay();
  /** Measures how long something takes here, whatever the time is that records have. */
  readonly #timers: Clock;
  #queue: CommitOfRequest[] = [];
  #transactions = 0;
  /** Homes of the commits of transactions under way: others of them would only meet those in the database. */
  readonly #busyHomes = new Set<Home>();
  /** When records of a home were last found to be changed by others, and whether although they had just been fetched. */
  readonly #conflicts = new Map<Home, { readonly at: number; readonly isContended: boolean }>();
  /** The last ones that this server has given: ids that it gives in the same millisecond are later than those of the rows. */
  readonly #revisions = new Set<number>();
  #bytesWritten = 0;
  /** How many transactions were run again, since others had changed what they build on. */
  conflicts = 0;
  /** Whether the database waits for a standby before it acknowledges a change. */
  hasStandby = false;
  /** How often a connection was opened or lost, and how often that was when the last barrier began. */
  #connectionChanges = 1;
  #changesPassed = 0;
  #barrierUnderWay: Promise<void> | undefined;

  private constructor(database: Database, clock: Clock, timers: Clock) {
    this.#database = database;
    this.#timers = timers;
    this.#names = new TransactionNames(
      database,
      () => clock.now(),
      (work) => this.#again(work),
    );
    this.#fetches = new FetchQueue(database);
    this.#clock = clock;
    this.#sizes = new Sizes(database, clock);
    this.#ids = new IdSource(clock);
    database.onConnectionChange = () => void this.#connectionChanges++;
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
      store.#ids = new IdSource(clock, { startAfter });
      return store;
    } catch (error) {
      await store?.close();
      throw error instanceof StoreError ? error : new StoreError(openingProblem(error, url), { cause: error });
    }
  }

  /** Runs what answers a request: what it reads is kept for the rest of it. @param reads - what is going to be read */
  request<Result>(reads: readonly ((reader: Reader) => unknown)[], work: () => Result): Result {
    return this.#requests.run(reads, work);
  }

  /**
   * Runs `work` on one moment of the store, which sees every commit that has resolved, or in a request all that had when that came. It
   * is run several times.
   *
   * @throws {ApiError} `service_unavailable` while the database does not answer
   */
  async read<Result>(work: (reader: Reader) => Result): Promise<Result> {
    const request = this.#requests.current;
    if (request === undefined) return this.readNewest(work);
    const asked = new Asks();
    for (const kept of request.momentsAt(this.#timers.elapsed())) {
      kept.begin();
      const answer = attemptOf(() => work(new FetchedReader(kept, this.#clock.now())));
      if (kept.missing.isEmpty) return answer();
      if (!asked.isEmpty) continue;
      asked.add(kept.read);
      asked.add(kept.missing);
    }
    asked.add(request.takeAhead());
    const { answer, fetched } = await this.#fetchFor(work, asked);
    request.keep(fetched, this.#timers.elapsed());
    return answer();
  }

  /** The same on a moment that is not before the call. */
  async readNewest<Result>(work: (reader: Reader) => Result): Promise<Result> {
    return (await this.#fetchFor(work, new Asks())).answer();
  }

  /** @param asked - what the work is going to read, as far as that is known; more is added */
  async #fetchFor<Result>(work: (reader: Reader) => Result, asked: Asks): Promise<{ answer: () => Result; fetched: Fetched }> {
    const fetched = new Fetched();
    const reader = new FetchedReader(fetched, this.#clock.now());
    for (let changes = this.#connectionChanges; ;) {
      fetched.begin();
      const answer = attemptOf(() => work(reader));
      if (fetched.missing.isEmpty) {
        if (!fetched.hasFetched || this.#isPassed(changes)) return { answer, fetched };
        await this.#barrier();
      }
      // All of it once more, so that all of it is of the same moment, and of a server that has passed the barrier.
      asked.add(fetched.missing);
      changes = this.#connectionChanges;
      await this.#again(() => this.#load(asked, fetched));
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
      const changes = this.#connectionChanges;
      const answer = await this.#again(() => this.#database.query(statement));
      if (this.#isPassed(changes)) return answer;
      await this.#barrier();
    }
  }

  count(table: AnyTable): Promise<number> {
    return this.#again(() => this.#sizes.count(table));
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

  /** How often the database was asked something and its answer waited for. */
  get roundTrips(): number {
    return this.#database.roundTrips;
  }

  get bytesWritten(): number {
    return this.#bytesWritten;
  }

  /** One page of a list: its ids are found by one statement, and what is shown of them is read together. */
  list<Prefix extends IdPrefix>(
    listing: Listing<Prefix>,
    { limit, startingAfter }: Page<Id<Prefix>>,
    item: (reader: Reader, key: BareId, id: Id<Prefix>) => JsonText | undefined,
  ): Promise<JsonText> {
    return pageOfPieces(this.#found(listing, limit, startingAfter, item), limit, listing.looksMax);
  }

  async *#found<Prefix extends IdPrefix>(
    listing: Listing<Prefix>,
    limit: number,
    startingAfter: Id<Prefix> | undefined,
    item: (reader: Reader, key: BareId, id: Id<Prefix>) => JsonText | undefined,
  ): AsyncGenerator<Found[], void, undefined> {
    // One more than fits says whether there is another page.
    const atOnce = limit + 1;
    for (const stretch of stretchesOf(listing, startingAfter === undefined ? undefined : bare(startingAfter))) {
      let { before } = stretch;
      for (let walkMax = Math.max(atOnce, RECORDS_WALKED_MIN); ; walkMax = RECORDS_WALKED_MAX) {
        const { statement, walkedIn } = listStatement(listing.table, { ...stretch, before }, atOnce, walkMax);
        const { ids, walked, last } = walkedIn(await this.#again(() => this.#database.query(statement)));
        for (let i = 0; i < ids.length; i += this.recordsAtOnce) {
          const some = ids.slice(i, i + this.recordsAtOnce);
          const texts = await this.read((reader) =>
            eachFetched(some, (id) => unlessUnreadable(() => item(reader, id, withPrefix(listing.prefix, id)))),
          );
          yield some.flatMap((id, at): Found[] => {
            const json = texts[at];
            const found = foundAt(listing, id, json);
            const looks = json === undefined ? 0 : (listing.looksOf?.(json) ?? 0);
            return looks === 0 ? [found] : [found, { passed: withPrefix(listing.prefix, id), looks }];
          });
        }
        if (ids.length === atOnce) {
          before = ids.at(-1);
          continue;
        }
        if (walked < walkMax || last === undefined) break;
        before = last;
        yield [foundAt(listing, last, undefined, walked)];
      }
    }
  }

  /**
   * Runs `work` in a transaction that others may share; resolves with its result once that is committed. When `work` throws,
   * nothing of it is kept and the promise rejects with what was thrown.
   *
   * @param home - of the records it writes
   * @throws {ApiError} `service_unavailable` when the database cannot be reached; then nothing was written. `internal_error` when it
   *   went while it committed and did not come back in time: then nobody knows
   */
  async commit<Result>(home: Home, work: (tx: Tx) => Result): Promise<Result> {
    this.onCommit();
    return new Promise<Result>((resolve, reject) => {
      const request = this.#requests.current;
      this.#queue.push({ home, run: work, resolve: resolve as (result: unknown) => void, reject, outcome: undefined, request });
      queueMicrotask(() => this.#startTransactions());
    });
  }

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
      timeOfChanges: () => this.#timeOfChanges(),
      onTaken: (name, term, rev) => this.#last.note(LEASES.name, name, term, rev),
    });
  }

  /** Everything as it is now; what is deleted meanwhile frees no room in the database until it is disposed of. */
  async snapshot(): Promise<WholeStore> {
    const connection = await this.#database.reserve("takes its time");
    try {
      await this.#barrier();
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
   * Runs `work` in one transaction: others see what it changes once all of it is committed, and change no record before.
   *
   * @throws {StoreError} while others go on changing records
   * @throws {ApiError} as `commit` does
   */
  async alone<Result>(work: (store: ChangedStore) => Promise<Result>): Promise<Result> {
    const connection = await this.#database.reserve("takes its time");
    let isOpen = true;
    try {
      await connection.send([BEGIN, ...WITHOUT_TIME_LIMITS]);
      await connection.send(LOCK_RECORDS).catch((error: unknown) => {
        throw new StoreError(`Records of the database are being changed: ${messageOf(error)}.`, { cause: error });
      });
      const result = await work(new WholeTransaction(this.#wholeParts(connection)));
      const name = crypto.randomUUID();
      await connection.send(feedRestart(this.#clock.now()));
      isOpen = false;
      if (!(await this.#names.settled(name, () => connection.send([...this.#names.naming(name), COMMIT]))))
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
    const now = this.#timeOfChanges();
    return {
      connection,
      now,
      elapsed: this.#clock.elapsed(),
      ids: this.#ids,
      newRevision: () => this.#newRevision(),
    };
  }

  /** Buckets of tokens that all servers take from. */
  buckets(): SharedBuckets {
    return new SharedBuckets((statement) => this.#again(() => this.#database.query(statement)), this.#clock);
  }

  /** Finds traces that other servers commit. */
  traceFollower(): TraceFollower {
    return new TraceFollower((statement) => this.#again(() => this.#database.query(statement)), this.#clock);
  }

  /** What all servers commit of the records that are searched. */
  changeFeed(): ChangeFeed {
    return new ChangeFeed({
      read: (statement) => this.#readPassed(statement),
      change: (statements) => this.#again(() => this.#database.transaction(statements)),
      connections: () => this.#connectionChanges,
      now: () => this.#clock.now(),
    });
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  #startTransactions(): void {
    while (this.#transactions < TRANSACTIONS_MAX && this.#queue.length > 0) {
      const commits: CommitOfRequest[] = [];
      const left: CommitOfRequest[] = [];
      for (const commit of this.#queue) {
        const isNext = commits.length < COMMITS_PER_TRANSACTION && !this.#busyHomes.has(commit.home);
        (isNext ? commits : left).push(commit);
      }
      if (commits.length === 0) return;
      this.#queue = left;
      this.#transactions++;
      for (const { home } of commits) this.#busyHomes.add(home);
      void this.#commitTogether(commits).finally(() => {
        this.#transactions--;
        for (const { home } of commits) this.#busyHomes.delete(home);
        this.#startTransactions();
      });
    }
  }

  /** Settles all of them; never rejects. */
  async #commitTogether(commits: readonly CommitOfRequest[]): Promise<void> {
    try {
      let basis = this.#basisOf(commits);
      for (let conflicts = 0; ; conflicts++) {
        if (conflicts >= CONFLICTS_TOGETHER_MAX && commits.length > 1) {
          for (const commit of commits) await this.#commitTogether([commit]);
          return;
        }
        if (conflicts >= CONFLICTS_MAX)
          throw new ApiError("service_unavailable", "Too many changes of the same records at once. Nothing was changed.");
        if (conflicts > 1) await this.#clock.sleep(chance() * CONFLICT_PAUSE_MS_MAX);
        if (await this.#again(() => this.#attempt(commits, basis))) break;
        this.conflicts++;
        basis = { known: undefined, locksFirst: basis.known === undefined };
        const conflict = { at: this.#clock.elapsed(), isContended: basis.locksFirst };
        for (const { home } of commits) this.#conflicts.set(home, conflict);
      }
      // Errors are thrown only now, too: their reason may be what another commit of the same transaction has written.
      for (const commit of commits) settle(commit);
    } catch (error) {
      for (const { reject } of commits) reject(error);
    }
  }

  /** As much is taken for granted as the last conflicts leave likely. */
  #basisOf(commits: readonly CommitOfRequest[]): Basis {
    const now = this.#clock.elapsed();
    let known: KnownRows | undefined = this.#knownTo(commits);
    let locksFirst = false;
    for (const conflict of new Set(commits.map(({ home }) => this.#conflicts.get(home)))) {
      if (conflict === undefined || now - conflict.at >= SHARED_MS) continue;
      known = undefined;
      locksFirst ||= conflict.isContended && now - conflict.at < CONTENDED_MS;
    }
    return { known, locksFirst };
  }

  /** What this server has written last and what the requests have read; others may have changed it. */
  #knownTo(commits: readonly CommitOfRequest[]): KnownRows {
    return knownToAny([this.#last, ...new Set(commits.flatMap(({ request }) => request ?? []))]);
  }

  /**
   * Runs commits as one transaction.
   *
   * @returns whether they are committed; false when something was another by then
   * @throws {DatabaseError} when nothing of it was written
   */
  async #attempt(commits: readonly CommitOfRequest[], { known, locksFirst }: Basis): Promise<boolean> {
    const expected = locksFirst ? await this.#expectedOf(commits) : undefined;
    const connection = expected === undefined ? undefined : await this.#database.reserve();
    const connectionChanges = this.#connectionChanges;
    let isOpen = false;
    const fence = this.#ids.bare(NO_HOME);
    this.#order.begin(fence);
    let written: readonly Change[] = [];
    try {
      const fetched = new Fetched(known);
      if (connection !== undefined && expected !== undefined) {
        isOpen = true;
        const fetch = new Fetch(expected.read);
        const locking = [BEGIN, ...lockStatements(expected.locks)];
        const answers = await connection.send([...locking, ...fetch.apart]);
        fetched.take(expected.read, fetch.foundIn(answers.slice(locking.length).flat()));
      }
      const changes = changesOf(await this.#runAll(commits, fetched, connection));
      if (changes.length === 0 && fetched.isOneMoment && this.#isPassed(connectionChanges)) return true;
      const name = crypto.randomUUID();
      const rev = this.#newRevision();
      const statements = [
        ...this.#names.naming(name, nameLocksOf(fetched, changes)),
        ...checksOf(fetched, changes),
        ...writesOf(changes, fetched, rev),
        ...feedStatements(changes, rev, this.#clock.now()),
      ];
      isOpen = false;
      const committed = await this.#names.settled(name, async () => {
        if (connection === undefined) await this.#database.transaction(statements);
        else await connection.send([...statements, COMMIT]);
      });
      this.#remember(committed, changes, fetched, rev);
      if (committed) written = changes;
      return committed;
    } catch (error) {
      // A deadlock is met by the locks, before anything else.
      if (error instanceof DatabaseError && error.kind === "conflict") return false;
      throw error;
    } finally {
      this.#tell(fence, written);
      if (isOpen) await connection?.send([ROLLBACK]).catch(() => undefined);
      connection?.release();
    }
  }

  /** What commits will read and lock, most likely: as if nothing had changed since this server has seen it. */
  async #expectedOf(commits: readonly CommitOfRequest[]): Promise<{ read: Asks; locks: Locks }> {
    const fetched = new Fetched(this.#knownTo(commits));
    const changes = changesOf(await this.#runAll(commits, fetched, undefined));
    return { read: fetched.read, locks: locksOf(fetched, changes) };
  }

  /** Tells others in this process of a transaction that has ended. */
  #tell(fence: BareId, changes: readonly Change[]): void {
    for (const { value } of changes) this.#bytesWritten += value?.length ?? 0;
    const isPut = ({ value }: Change) => value !== undefined;
    const traced = changes.filter((change) => change.table === traces.name && isPut(change)).map(({ key }) => key);
    const hasEvents = changes.some((change) => change.table === outbox.name && isPut(change));
    const due = this.#order.end(fence, traced);
    if (due.length > 0 || hasEvents) this.onCommitted({ traces: due, hasEvents });
  }

  /** Runs works one on top of the other until nothing that they read is missing. @returns what they have written */
  async #runAll(commits: readonly CommitOfRequest[], fetched: Fetched, connection: Connection | undefined): Promise<readonly Write[]> {
    const elapsed = this.#clock.elapsed();
    for (let now = this.#timeOfChanges(); ;) {
      const moments = commits.map(({ home }) => repeatable({ now, elapsed, home }, () => this.#ids));
      const reader = new FetchedReader(fetched, now, (rev) => this.#revisions.has(rev));
      const idsFrom = Math.max(now, this.#ids.newestMs);
      for (;;) {
        fetched.begin();
        const batch = new WriteBuffer(reader, moments[0]!);
        for (const [i, commit] of commits.entries()) {
          moments[i]!.rewind();
          batch.absorb(runWork(commit, batch, moments[i]!, Store.runsWorksTwice));
        }
        const { missing } = fetched;
        if (!missing.isEmpty) {
          await this.#load(missing, fetched, connection);
          continue;
        }
        const { newestChangeAt, takenUntil } = reader;
        if (takenUntil >= idsFrom) {
          this.#ids.continueAfter(firstBareIdAt(takenUntil + 1));
          now = Math.max(now, this.#timeOfChanges());
          break;
        }
        if (newestChangeAt < now || newestChangeAt > this.#clock.now() + SKEW_MS_MAX) return batch.writes;
        // Another server, whose clock is ahead, has changed what this changes now: it is later than that.
        now = newestChangeAt + 1;
        break;
      }
    }
  }

  /** The present time, or that of the newest id where the clock is a little behind it: then ids and times agree. */
  #timeOfChanges(): number {
    const now = this.#clock.now();
    const { newestMs } = this.#ids;
    return newestMs > now + SKEW_MS_MAX ? now : Math.max(now, newestMs);
  }

  /** 52 bits by chance: a row that went and came back has another, too. */
  #newRevision(): number {
    const rev = 1 + Math.floor(chance() * 2 ** 52);
    if (this.#revisions.size === REVISIONS_KNOWN) for (const oldest of this.#revisions.keys().take(1)) this.#revisions.delete(oldest);
    this.#revisions.add(rev);
    return rev;
  }

  async #load(asks: Asks, fetched: Fetched, connection?: Connection): Promise<void> {
    if (connection === undefined) return fetched.take(asks, await this.#fetches.find(asks));
    const fetch = new Fetch(asks);
    fetched.take(asks, fetch.foundIn((await connection.send(fetch.apart)).flat()));
  }

  /** What the next commits build on. */
  #remember(committed: boolean, changes: readonly Change[], fetched: Fetched, rev: number): void {
    const { keys, spans } = fetched.read;
    if (!committed) {
      for (const [table, some] of keys) for (const key of some) this.#last.delete(table, key);
      for (const { table } of spans.values()) this.#last.deleteSpansOf(table);
      return;
    }
    for (const [table, some] of keys) {
      if (isForAll(table)) for (const key of some) this.#last.noteRow(table, key, fetched.row(table, key) ?? null);
    }
    for (const [name, ask] of spans) {
      if (isForAll(ask.table) || name === nameOfSpan(firstOf(ask.table)))
        this.#last.noteSpan(name, ask.table, fetched.span(name, ask) ?? []);
    }
    for (const { table, key, value } of changes) if (placeOf(table).rev === "rev") this.#last.note(table, key, value, rev);
    for (const table of new Set(changes.map((change) => change.table))) this.#last.deleteSpansOf(table);
    this.#requests.forget(changes);
  }

  /** Whether no connection was opened or lost since there were that many changes of them, and the barrier was passed after the last. */
  #isPassed(changes: number): boolean {
    return this.#changesPassed === changes && this.#connectionChanges === changes;
  }

  /** To be passed before what was only read is answered, by the server that has read it. */
  async #barrier(): Promise<void> {
    while (this.#changesPassed !== this.#connectionChanges) {
      this.#barrierUnderWay ??= this.#passBarrier().finally(() => (this.#barrierUnderWay = undefined));
      await this.#barrierUnderWay;
    }
  }

  async #passBarrier(): Promise<void> {
    const changes = this.#connectionChanges;
    await this.#again(() => this.#database.transaction(this.#names.naming(crypto.randomUUID())));
    this.#changesPassed = changes;
  }

  /** Does what changes nothing, or what a caller knows not to have been done, again while there is no connection. */
  async #again<Result>(work: () => Promise<Result>): Promise<Result> {
    const startedAt = this.#clock.elapsed();
    for (;;) {
      try {
        const result = await work();
        this.health.note(undefined);
        return result;
      } catch (error) {
        if (!(error instanceof DatabaseError)) throw error;
        this.health.note(error);
        if (error.isOutOfRoom) throw unavailable("The database has no room.", error);
        if (error.kind !== "lost" && error.kind !== "unsent") throw error;
        if (this.#clock.elapsed() - startedAt >= OUTAGE_MS_MAX) throw unavailable("The database does not answer.", error);
        await this.#clock.sleep(OUTAGE_PAUSE_MS);
      }
    }
  }
}

function unavailable(reason: string, cause: DatabaseError): ApiError {
  return new ApiError("service_unavailable", `${reason} Nothing was changed.`, { cause });
}
