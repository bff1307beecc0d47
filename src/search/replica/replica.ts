/**
 * A copy of what is searched, where the records are in a database: a store of LMDB in the data directory, with the same indexes on it as
 * the embedded store has. It follows the feed of the database, and knows every change that was committed before a search came.
 *
 * ```
 * cairn.vectors, their records ──load, by id──▶ replica/data.mdb ──▶ replica/vectors, replica/document-vectors
 * cairn.changes ──keys──▶ the rows as they are now ───▲
 * ```
 * Only what leads to records is in it: vectors, and rows without their texts. Whatever it finds is looked up in the database before it
 * is answered. It can be lost: without one that was closed in order, and to which the feed still reaches back, all is read again, and
 * until then searches read the database (`database-index.ts`).
 *
 * @module
 */
import { join } from "node:path";
import { nextTurn, systemClock } from "../../lib/clock.ts";
import { within } from "../../lib/deadline.ts";
import { ApiError } from "../../lib/errors.ts";
import { bare, type BareId } from "../../lib/ids.ts";
import { describeError } from "../../lib/log.ts";
import { type Collection } from "../../storage/collections.ts";
import { MAX_KEY, successor } from "../../storage/keys.ts";
import type { ChangeFeed, FeedPosition } from "../../storage/postgres/follow/change-feed.ts";
import { provider } from "../../storage/tables.ts";
import type { Task } from "../../tasks/task.ts";
import {
  COPIED,
  type CopiedCollection,
  type CopiedRow,
  CopyLost,
  isCopied,
  RECORDS_AT_ONCE,
  ReplicaCopy,
  type ReplicaOptions,
} from "./replica-copy.ts";
import type { VectorIndex } from "../vector-index.ts";

const DIRECTORY = "replica";
/** Interval at which the feed is read when no search does: so that a search finds little left to do. */
const FOLLOW_MS = 1_000;
const RETRY_MS = 10_000;
/** A search that would wait longer for the copy to follow reads the database instead. */
const FOLLOWED_MAX_MS = 2_000;

/** Lag of the copy behind the database while no search has it follow. */
export interface ReplicaState {
  /** False while it is being made: then searches of everything read the database. */
  readonly isReady: boolean;
  readonly vectors: number;
  /** Transactions that are known of and not in the copy yet. */
  readonly transactionsBehind: number;
  /** Age of the state that the copy has. */
  readonly msBehind: number;
}

export class Replica {
  /** Follows the feed, and makes the copy again where it is lost. */
  readonly task: Task;
  readonly #options: ReplicaOptions;
  readonly #feed: ChangeFeed;
  readonly #directory: string;
  #copy: ReplicaCopy | undefined;
  /** While the copy is made or opened. */
  #opening: Promise<void> | undefined;
  #following: Promise<boolean> | undefined;
  #followingNext: Promise<boolean> | undefined;
  /** While a lost copy is closed and removed: another one has the same directory. */
  #abandoning: Promise<void> | undefined;
  #isClosed = false;
  #transactionsBehind = 0;
  /** `clock.elapsed()` when the copy was last as the database was then. */
  #asOf: number;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.#feed = options.source.changeFeed();
    this.#directory = join(options.directory, DIRECTORY);
    this.#asOf = systemClock.elapsed();
    this.task = { name: "search replica", run: () => this.#run() };
  }

  /** Makes the copy, or opens the one of the last run. @returns after a while also before that is done */
  async open(): Promise<void> {
    const opening = this.#open();
    const { openMaxMs } = this.#options.index ?? {};
    await (openMaxMs === undefined ? opening : within(systemClock, openMaxMs, opening));
  }

  get state(): ReplicaState {
    return {
      isReady: this.#copy !== undefined,
      vectors: this.#copy?.vectors ?? 0,
      transactionsBehind: this.#transactionsBehind,
      msBehind: systemClock.elapsed() - this.#asOf,
    };
  }

  /** The index of a collection, when there is a copy; it knows nothing newer than that. */
  indexOf(collection: Collection): VectorIndex | undefined {
    return isCopied(collection) ? this.#copy?.indexes[collection.name] : undefined;
  }

  /**
   * The index of a collection, which knows every change that was committed before the call; undefined while there is none, and when it
   * would take too long.
   *
   * @throws {ApiError} `service_unavailable` while the database does not answer
   */
  async followed(collection: Collection): Promise<VectorIndex | undefined> {
    if (this.#copy === undefined) return undefined;
    return (await within(systemClock, FOLLOWED_MAX_MS, this.#follow())) === true ? this.indexOf(collection) : undefined;
  }

  /** The id in the database of a vector that an index has found. */
  originalId(collection: Collection, record: BareId, id: BareId): BareId | undefined {
    const copy = this.#copy;
    let row: CopiedRow | undefined;
    try {
      row = copy?.store.latest.get(collection.records, record);
    } catch (error) {
      if (copy !== undefined) void this.#lose(copy, describeError(error));
    }
    if (row?.embedding === undefined || bare(row.embedding.id) !== id) return undefined;
    return row.original === undefined ? id : bare(row.original);
  }

  /** Has the copy made again that an index is of. */
  lose(index: VectorIndex, reason: string): void {
    const copy = this.#copy;
    if (copy !== undefined && Object.values(copy.indexes).includes(index)) void this.#lose(copy, reason);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#opening;
    await Promise.allSettled([this.#following, this.#followingNext]);
    await this.#abandoning;
    const copy = this.#copy;
    this.#copy = undefined;
    try {
      await copy?.close();
    } catch (error) {
      this.#options.log.warn("could not keep the search replica: the next start makes it again", { error: describeError(error) });
    }
  }

  async #run(): Promise<number> {
    if (this.#copy === undefined) {
      await this.#open();
      return this.#copy === undefined ? RETRY_MS : FOLLOW_MS;
    }
    for (const index of Object.values(this.#copy.indexes)) index.startAgain();
    try {
      await this.#follow();
    } catch (error) {
      // That the database does not answer is known by then.
      if (!(error instanceof ApiError)) throw error;
    }
    return FOLLOW_MS;
  }

  /** Never rejects. */
  #open(): Promise<void> {
    this.#opening ??= this.#openCopy()
      .catch((error: unknown) => this.#options.log.warn("could not make the search replica", { error: describeError(error) }))
      .finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #openCopy(): Promise<void> {
    await this.#abandoning;
    if (this.#isClosed || this.#copy !== undefined) return;
    const copy = (await this.#savedCopy()) ?? (await this.#newCopy());
    if (copy === undefined) return;
    this.#copy = copy;
    await Promise.all(Object.values(copy.indexes).map((index) => index.open()));
  }

  /** The copy of the last run, with all that was changed since. */
  async #savedCopy(): Promise<ReplicaCopy | undefined> {
    let copy: ReplicaCopy | undefined;
    try {
      copy = await ReplicaCopy.saved(this.#directory, this.#options);
      if (copy !== undefined) await this.#catchUp(copy);
      return copy;
    } catch (error) {
      await copy?.abandon();
      if (error instanceof ApiError) throw error;
      this.#options.log.info("cannot use the search replica of the last run: making it again", { reason: describeError(error) });
      return undefined;
    }
  }

  async #newCopy(): Promise<ReplicaCopy | undefined> {
    const { log } = this.#options;
    const began = systemClock.elapsed();
    const position = await this.#feed.begin();
    if (position === undefined) throw new Error("a transaction is under way in the database that is older than its feed of changes");
    const copy = await ReplicaCopy.empty(this.#directory, position, this.#options);
    try {
      await copy.takeProvider();
      for (const collection of COPIED) await this.#load(copy, collection);
      if (!this.#isClosed) await this.#catchUp(copy);
    } catch (error) {
      await copy.abandon();
      throw error;
    }
    if (this.#isClosed) {
      // Part of it may be missing.
      await copy.abandon();
      return undefined;
    }
    log.info("search replica made", { vectors: copy.vectors, seconds: Math.round((systemClock.elapsed() - began) / 100) / 10 });
    return copy;
  }

  /** In the order of vectors' ids, so that hardly any gets another one. */
  async #load(copy: ReplicaCopy, collection: CopiedCollection): Promise<void> {
    const { source } = this.#options;
    for (let from = ""; !this.#isClosed;) {
      const ids = await source.readNewest((reader) => reader.keys(collection.vectors, { from, to: MAX_KEY, limit: RECORDS_AT_ONCE }));
      const last = ids.at(-1);
      if (last === undefined) return;
      await copy.load(collection, ids);
      from = successor(last);
      await nextTurn();
    }
  }

  /** Resolves once all is in the copy that was committed before the call; with false when the copy is lost. */
  #follow(): Promise<boolean> {
    // A look that is under way may have begun before the last commit.
    this.#followingNext ??= (async () => {
      await this.#following?.catch(() => undefined);
      this.#followingNext = undefined;
      this.#following = this.#followOnce();
      return this.#following;
    })();
    return this.#followingNext;
  }

  async #followOnce(): Promise<boolean> {
    const copy = this.#copy;
    if (copy === undefined || this.#isClosed) return false;
    try {
      await this.#catchUp(copy);
      return true;
    } catch (error) {
      if (!(error instanceof CopyLost)) throw error;
      await this.#lose(copy, error.message);
      return false;
    }
  }

  /** Never rejects. */
  async #lose(copy: ReplicaCopy, reason: string): Promise<void> {
    if (this.#copy !== copy) return this.#abandoning;
    const { log } = this.#options;
    log.warn("rebuilding search replica", { reason });
    this.#copy = undefined;
    this.#abandoning = copy
      .abandon()
      .catch((error: unknown) => log.warn("could not remove the search replica", { error: describeError(error) }))
      .finally(() => (this.#abandoning = undefined));
    return this.#abandoning;
  }

  async #catchUp(copy: ReplicaCopy): Promise<void> {
    const began = systemClock.elapsed();
    let position: FeedPosition | undefined;
    for (let after: number | undefined; ;) {
      const page = await this.#feed.since(copy.position, after);
      if (page === undefined) throw new CopyLost("the feed of changes does not reach back to it");
      position ??= page.position;
      this.#transactionsBehind = page.transactions;
      if (page.keys.has(provider.name)) await copy.takeProvider();
      for (const collection of COPIED) {
        const records = page.keys.get(collection.records.name);
        if (records !== undefined) await copy.take(collection, Array.from(records));
      }
      after = page.last;
      if (after === undefined) break;
      // The rest is given again from the position before.
      if (this.#isClosed) return;
    }
    this.#transactionsBehind = 0;
    this.#asOf = began;
    copy.position = position;
  }
}
