/**
 * Commits to the database: those that wait at the same time are one transaction, each on top of those before it.
 *
 * The transaction has what they have read checked, and when something is another by now they are run again. Where that is unlikely a
 * commit builds on the rows as this server wrote them last; after a conflict it fetches them first, and after another one it locks them
 * before. Where it then turns out to need what others have locked, it is rolled back and begins again with that (`commit-locks.ts`).
 *
 * @module
 */
import { chance } from "../../../lib/chance.ts";
import type { Clock } from "../../../lib/clock.ts";
import { ApiError } from "../../../lib/errors.ts";
import { firstBareIdAt, IdSource, NO_PARTITION, type BareId, type Partition } from "../../../lib/ids.ts";
import { Announced } from "../../announced.ts";
import { AuditWriter } from "../../audit/audit-writer.ts";
import type { AuditStart } from "../../audit/chain.ts";
import type { RecordStore } from "../../record-store.ts";
import { repeatable, runCallback, settle, type QueuedCommit } from "../../callback.ts";
import { WriteBuffer, type Write } from "../../write-buffer.ts";
import { BEGIN, COMMIT, DatabaseError, ROLLBACK, type Connection, type Database, type Statement } from "../connection/database.ts";
import type { Outages } from "../connection/outages.ts";
import { feedStatements } from "../follow/change-feed.ts";
import type { FetchQueue } from "../read/fetch-queue.ts";
import { type ReadSet, FetchedRows, RerunReader, firstKeyOf, nameOfSpan, type KnownRows } from "../read/fetched-rows.ts";
import { knownToAny, type RequestReads, type RequestsUnderWay } from "../read/request-reads.ts";
import { SCHEMA_CHECK } from "../migrations.ts";
import { locationOf } from "../schema.ts";
import { covers, isGlobal, keepsRead, lockStatements, locksOf, namesTried } from "./commit-locks.ts";
import { CommitOrder } from "./commit-order.ts";
import { changesOf, checksOf, writesOf, type Change } from "./commit-statements.ts";
import type { CommitTokens } from "./commit-tokens.ts";
import { load, unionOf, type Expected } from "./expected-rows.ts";
import { LastRows } from "./last-rows.ts";
import { LinkedChanges, signChains } from "./linked-changes.ts";

export interface CommitOfRequest extends QueuedCommit {
  /** Rows fetched for the request that asked for it. */
  readonly request: RequestReads | undefined;
}

/** Assumptions of a run of a transaction's callbacks. */
interface ReadAssumptions {
  /** Rows that are not fetched first. */
  readonly known: KnownRows | undefined;
  /** True if what they are going to change is locked before anything is fetched. */
  readonly isPessimistic: boolean;
  /** Rows to lock, where an attempt has found out. */
  readonly expected?: Expected;
}

/** Outcome of a transaction that was not committed: something was another by then, was locked for too long, or had to be locked, too. */
type Failed = "conflict" | "locked" | Expected;

const COMMITS_PER_TRANSACTION = 32;
const TRANSACTIONS_MAX = 4;
/**
 * While a transaction goes as usual the next one begins only with that many commits: each costs server and database as much as many
 * commits do. With 64 writers that is 1.4 times the turns of beginning at once, and with 16 writers 1.5 times.
 */
const COMMITS_WORTH_ANOTHER = 24;
/** One that takes longer waits for locks, or for the database, and holds the next ones back no more. */
const USUAL_MS_MAX = 20;
/** After that many conflicts in a row the commits of a transaction are made apart, … */
const CONFLICTS_TOGETHER_MAX = 3;
/** … and after that many each is refused. */
const CONFLICTS_MAX = 50;
const CONFLICT_PAUSE_MS_MAX = 8;
/** Longer than a transaction takes on a busy machine. Nobody waits for one that is held up without end. */
const LOCK_TIMEOUT: Statement = { text: "set local lock_timeout = '500ms'", values: [] };
/** After a conflict the records of a partition are changed by other servers, too: for that long they are fetched before each change, … */
const SHARED_MS = 10_000;
/** … and after one in spite of that the rows that it was about are locked before each. */
const CONTENDED_MS = 1_000;
/** Distance of the clocks of servers allowed for the changes of a session to be in order. */
const SKEW_MS_MAX = 60_000;
/** More than a server gives in a millisecond. */
const REVISIONS_KNOWN = 1_000;

/** Dependencies of commits on the store. */
export interface CommitParts {
  readonly database: Database;
  readonly clock: Clock;
  readonly outages: Outages;
  readonly tokens: CommitTokens;
  readonly fetches: FetchQueue;
  readonly requests: RequestsUnderWay;
  /** Told of every transaction that leaves traces or events. */
  readonly onCommitted: RecordStore["onCommitted"];
}

export class Commits {
  readonly #order = new CommitOrder();
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #outages: Outages;
  readonly #tokens: CommitTokens;
  readonly #fetches: FetchQueue;
  readonly #requests: RequestsUnderWay;
  readonly #onCommitted: RecordStore["onCommitted"];
  /** Source of new ids. */
  readonly ids: IdSource;
  /** Rows that commits build on without fetching them. */
  readonly last = new LastRows();
  /** Links traces into chains, once it is set. */
  audit: AuditWriter | undefined;
  #queue: CommitOfRequest[] = [];
  #transactions = 0;
  /** The commits of those transactions that still go as usual: they have met no conflict, and are not late. */
  readonly #usual = new Set<readonly CommitOfRequest[]>();
  /** Partitions of the commits of transactions under way: others of them would only meet those in the database. */
  readonly #busyPartitions = new Set<Partition>();
  /** Time at which records of a partition were last found changed by others, and whether although they had just been fetched. */
  readonly #conflicts = new Map<Partition, { readonly at: number; readonly isContended: boolean }>();
  /** The last ones that this server has given: ids that it gives in the same millisecond are later than those of the rows. */
  readonly #revisions = new Set<number>();
  bytesWritten = 0;
  /** Number of transactions that were run again, since others had changed what they build on. */
  conflicts = 0;

  constructor({ database, clock, outages, tokens, fetches, requests, onCommitted }: CommitParts) {
    this.#database = database;
    this.#clock = clock;
    this.#outages = outages;
    this.#tokens = tokens;
    this.#fetches = fetches;
    this.#requests = requests;
    this.#onCommitted = onCommitted;
    this.ids = new IdSource(clock);
  }

  /** Settles it once it is committed, or cannot be. */
  add(commit: CommitOfRequest): void {
    this.#queue.push(commit);
    queueMicrotask(() => this.#startTransactions());
  }

  #startTransactions(): void {
    while (this.#transactions < TRANSACTIONS_MAX && this.#queue.length > 0) {
      const commits: CommitOfRequest[] = [];
      const left: CommitOfRequest[] = [];
      for (const commit of this.#queue) {
        const isNext = commits.length < COMMITS_PER_TRANSACTION && !this.#busyPartitions.has(commit.partition);
        (isNext ? commits : left).push(commit);
      }
      const enough = this.#usual.size === 0 ? 1 : COMMITS_WORTH_ANOTHER;
      if (commits.length < enough) return;
      this.#queue = left;
      this.#transactions++;
      this.#usual.add(commits);
      const cancel = this.#clock.timer(USUAL_MS_MAX, () => this.#holdBackNoMore(commits));
      for (const { partition } of commits) this.#busyPartitions.add(partition);
      void this.#commitTogether(commits).finally(() => {
        cancel();
        this.#transactions--;
        this.#usual.delete(commits);
        for (const { partition } of commits) this.#busyPartitions.delete(partition);
        this.#startTransactions();
      });
    }
  }

  #holdBackNoMore(commits: readonly CommitOfRequest[]): void {
    if (this.#usual.delete(commits)) this.#startTransactions();
  }

  /** Settles all of them; never rejects. */
  async #commitTogether(commits: readonly CommitOfRequest[]): Promise<void> {
    try {
      let assumptions = this.#assumptionsOf(commits);
      for (let conflicts = 0; ; conflicts++) {
        if (conflicts >= CONFLICTS_MAX)
          throw new ApiError("service_unavailable", "Too many changes of the same records at once. Nothing was changed.");
        if (conflicts > 1) await this.#clock.sleep(chance() * CONFLICT_PAUSE_MS_MAX);
        const failed = await this.#outages.again(() => this.#attempt(commits, assumptions));
        if (failed === undefined) break;
        this.conflicts++;
        this.#holdBackNoMore(commits);
        if (commits.length > 1 && (failed === "locked" || conflicts + 1 >= CONFLICTS_TOGETHER_MAX)) return await this.#commitApart(commits);
        assumptions = this.#assumptionsAfter(failed, assumptions, commits);
      }
      // Errors are thrown only now, too: their reason may be what another commit of the same transaction has written.
      for (const commit of commits) settle(commit);
    } catch (error) {
      for (const { reject } of commits) reject(error);
    }
  }

  /** Makes those of one partition after each other, and of others at the same time: who waits for a record holds nobody else up. */
  async #commitApart(commits: readonly CommitOfRequest[]): Promise<void> {
    const inOrder = async (some: readonly CommitOfRequest[]) => {
      for (const commit of some) await this.#commitTogether([commit]);
    };
    await Promise.all(
      Map.groupBy(commits, ({ partition }) => partition)
        .values()
        .map(inOrder),
    );
  }

  /** As much is taken for granted as the last conflicts leave likely. */
  #assumptionsOf(commits: readonly CommitOfRequest[]): ReadAssumptions {
    const now = this.#clock.elapsed();
    let known: KnownRows | undefined = this.#knownTo(commits);
    let isPessimistic = false;
    for (const conflict of new Set(commits.map(({ partition }) => this.#conflicts.get(partition)))) {
      if (conflict === undefined || now - conflict.at >= SHARED_MS) continue;
      known = undefined;
      isPessimistic ||= conflict.isContended && now - conflict.at < CONTENDED_MS;
    }
    return { known, isPessimistic };
  }

  #assumptionsAfter(failed: Failed, { known }: ReadAssumptions, commits: readonly CommitOfRequest[]): ReadAssumptions {
    if (typeof failed === "object") return { known: undefined, isPessimistic: true, expected: failed };
    const isContended = known === undefined;
    this.#trackConflict(commits, isContended);
    return { known: undefined, isPessimistic: isContended };
  }

  #trackConflict(commits: readonly CommitOfRequest[], isContended: boolean): void {
    const conflict = { at: this.#clock.elapsed(), isContended };
    for (const { partition } of commits) this.#conflicts.set(partition, conflict);
  }

  /** Checks whether a row that is to be written differs from what this server has written last: without locks there would be a conflict. */
  #areChangedByOthers(changes: readonly Change[], fetched: FetchedRows): boolean {
    return changes.some(({ table, key }) => {
      const [last, found] = [this.last.row(table, key), fetched.row(table, key)];
      return last !== undefined && found !== undefined && last?.rev !== found?.rev;
    });
  }

  /** Rows that this server has written last and that the requests have read; others may have changed it. */
  #knownTo(commits: readonly CommitOfRequest[]): KnownRows {
    return knownToAny([this.last, ...new Set(commits.flatMap(({ request }) => request ?? []))]);
  }

  /**
   * Runs commits as one transaction.
   *
   * @returns undefined once they are committed
   * @throws {DatabaseError} when nothing of it was written
   */
  async #attempt(
    commits: readonly CommitOfRequest[],
    { known, isPessimistic, expected: found }: ReadAssumptions,
  ): Promise<Failed | undefined> {
    const expected = isPessimistic ? (found ?? (await this.#expectedOf(commits))) : undefined;
    const connection = expected === undefined ? undefined : await this.#database.reserve();
    const connectionChanges = this.#outages.changes;
    let isOpen = false;
    const fence = this.ids.bare(NO_PARTITION);
    this.#order.begin(fence);
    let written: readonly Change[] = [];
    let beyond: Expected | undefined;
    const linked = new LinkedChanges(this.audit);
    const fetched = new FetchedRows(known);
    try {
      if (connection !== undefined && expected !== undefined) {
        isOpen = true;
        await load(expected.read, fetched, connection, [BEGIN, LOCK_TIMEOUT, ...lockStatements(expected.locks)]);
      }
      const unlinked = changesOf(await this.#runAll(commits, fetched, connection));
      if (unlinked.length === 0 && fetched.isOneSnapshot && this.#outages.isPassed(connectionChanges)) return undefined;
      const locks = locksOf(fetched, unlinked);
      const changes = linked.of(unlinked, this.#clock.now());
      if (expected !== undefined && !covers(expected.locks, locks)) beyond = unionOf(expected, { read: fetched.read, locks });
      const token = crypto.randomUUID();
      const rev = this.newRevision();
      const statements = [
        ...(expected === undefined ? [] : namesTried(expected.locks.names, locks.names)),
        ...this.#tokens.tokenStatements(token, expected === undefined ? locks.names : undefined),
        ...checksOf(fetched, locks, expected === undefined ? "wait" : "fail"),
        ...writesOf(changes, fetched, rev),
        ...feedStatements(changes, rev, this.#clock.now()),
        SCHEMA_CHECK,
      ];
      isOpen = false;
      linked.outcome = "unknown";
      const committed = await this.#tokens.settled(token, async () => {
        if (connection === undefined) await this.#database.transaction([LOCK_TIMEOUT, ...statements]);
        else await connection.send([...statements, COMMIT]);
      });
      linked.outcome = committed ? "committed" : "rolled back";
      if (expected !== undefined && this.#areChangedByOthers(changes, fetched)) this.#trackConflict(commits, true);
      if (committed) this.#remember((written = changes), fetched, rev);
      else this.#forget(fetched.read);
      return committed ? undefined : "conflict";
    } catch (error) {
      if (!(error instanceof DatabaseError) || error.kind !== "conflict") throw error;
      linked.outcome = "rolled back";
      this.#forget(fetched.read);
      return beyond ?? (error.isLocked ? "locked" : "conflict");
    } finally {
      linked.end();
      this.#tell(fence, written);
      if (isOpen) await connection?.send([ROLLBACK]).catch(() => undefined);
      connection?.release();
    }
  }

  readonly useAudit = (start: AuditStart): void => void (this.audit = new AuditWriter(start));

  /** Signs what is linked. @throws {DatabaseError} */
  async signTraces(): Promise<void> {
    const parts = { database: this.#database, first: LOCK_TIMEOUT, now: this.#clock.now(), newRevision: () => this.newRevision() };
    if (this.audit !== undefined) await signChains(this.audit, parts);
  }

  /** Finds it out as if nothing had changed since this server has seen it. */
  async #expectedOf(commits: readonly CommitOfRequest[]): Promise<Expected> {
    const fetched = new FetchedRows(this.#knownTo(commits));
    const changes = changesOf(await this.#runAll(commits, fetched, undefined));
    return { read: fetched.read, locks: locksOf(fetched, changes) };
  }

  /** Tells others in this process of a transaction that has ended. */
  #tell(fence: BareId, changes: readonly Change[]): void {
    for (const { value } of changes) this.bytesWritten += value?.length ?? 0;
    const announced = new Announced();
    for (const change of changes) announced.add(change);
    const due = this.#order.end(fence, announced.traces);
    if (due.length > 0 || announced.hasEvents) this.#onCommitted({ traces: due, hasEvents: announced.hasEvents });
  }

  /** Runs callbacks one on top of the other until nothing that they read is missing. @returns what they have written */
  async #runAll(commits: readonly CommitOfRequest[], fetched: FetchedRows, connection: Connection | undefined): Promise<readonly Write[]> {
    const elapsed = this.#clock.elapsed();
    for (let now = this.timeOfChanges(); ;) {
      const contexts = commits.map(({ partition }) => repeatable({ now, elapsed, partition }, () => this.ids));
      const reader = new RerunReader(fetched, now, { isOwnRevision: (rev) => this.#revisions.has(rev) });
      const idsFrom = Math.max(now, this.ids.newestMs);
      for (;;) {
        fetched.begin();
        const batch = new WriteBuffer(reader, contexts[0]!);
        for (const [i, commit] of commits.entries()) {
          contexts[i]!.rewind();
          batch.absorb(runCallback(commit, batch, contexts[i]!));
        }
        const { missing } = fetched;
        if (!missing.isEmpty) {
          await this.#load(missing, fetched, connection);
          continue;
        }
        const { newestChangeAt, takenUntil } = reader;
        if (takenUntil >= idsFrom) {
          this.ids.continueAfter(firstBareIdAt(takenUntil + 1));
          now = Math.max(now, this.timeOfChanges());
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
  timeOfChanges(): number {
    const now = this.#clock.now();
    const { newestMs } = this.ids;
    return newestMs > now + SKEW_MS_MAX ? now : Math.max(now, newestMs);
  }

  /** 52 bits by chance: a row that went and came back has another, too. */
  newRevision(): number {
    const rev = 1 + Math.floor(chance() * 2 ** 52);
    if (this.#revisions.size === REVISIONS_KNOWN) for (const oldest of this.#revisions.keys().take(1)) this.#revisions.delete(oldest);
    this.#revisions.add(rev);
    return rev;
  }

  async #load(readSet: ReadSet, fetched: FetchedRows, connection?: Connection): Promise<void> {
    if (connection === undefined) fetched.take(readSet, await this.#fetches.find(readSet));
    else await load(readSet, fetched, connection);
  }

  /** Forgets rows that an uncommitted transaction has read: they may differ by now. */
  #forget({ keys, spans }: ReadSet): void {
    for (const [table, some] of keys) for (const key of some) this.last.delete(table, key);
    for (const { table } of spans.values()) this.last.deleteSpansOf(table);
  }

  /** Rows that the next commits build on. */
  #remember(changes: readonly Change[], fetched: FetchedRows, rev: number): void {
    const { keys, spans } = fetched.read;
    for (const [table, some] of keys) {
      if (keepsRead(table)) for (const key of some) this.last.trackRow(table, key, fetched.row(table, key) ?? null);
    }
    for (const [name, ask] of spans) {
      if (isGlobal(ask.table) || name === nameOfSpan(firstKeyOf(ask.table)))
        this.last.trackSpan(name, ask.table, fetched.span(name, ask) ?? []);
    }
    for (const { table, key, value } of changes) if (locationOf(table).rev === "rev") this.last.note(table, key, value, rev);
    for (const table of new Set(changes.map((change) => change.table))) this.last.deleteSpansOf(table);
    this.#requests.forget(changes);
  }
}
