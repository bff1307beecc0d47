/**
 * The request thread's side of the vector index.
 *
 * The memories of a session or a user are compared here, and a set of a few memories needs no index: all of them are
 * candidates. For anything larger there is a worker, started when there are enough vectors to need it. The index is derived: the
 * store knows every vector, and whatever the worker's state, a memory is found as soon as its commit is on disk.
 *
 * @module
 */
import type { CacheUses } from "../lib/cache.ts";
import { nextTurn, systemClock } from "../lib/clock.ts";
import { within } from "../lib/deadline.ts";
import { ApiError } from "../lib/errors.ts";
import type { BareId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { MEMORIES, type Collection } from "../storage/collections.ts";
import { MAX_KEY } from "../storage/keys.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { matches, leapfrogJoin, type Filter } from "../storage/walk.ts";
import type { CandidateIndex } from "./candidate-index.ts";
import { CandidateReader, type Candidate } from "./candidates.ts";
import { Connection, type Notice } from "./connection.ts";
import { NO_BYTES, NO_STATUS, type IndexBytes, type IndexStatus } from "./index-status.ts";
import { packQuery, type Query } from "./query.ts";
import { ScopeCache } from "./scopes/scope-cache.ts";
import { FEW_MAX, GRAPH_FROM, RESIDENT_PENDING_MAX } from "./search-plan.ts";

/** At most this many filters are known to be wide. The worker falls back to brute force when few pass by now. */
const WIDE_FILTERS_MAX = 1_000;
/** Memories whose rows were put again are posted to the worker before the next search, and whenever there are this many. */
const UPDATED_MAX = 1_000;
/** To look up the largest set of a scope takes two turns, if it is not evicted meanwhile. The worker would take longer to answer. */
const READING_TURNS_MAX = 3;
/** A worker that has not finished by then is left alone; at worst the next start builds what is new in the graph. */
const CLOSE_MAX_MS = 10_000;

export interface IndexOptions {
  collection?: Collection;
  /** A graph is built from this number of vectors on; 0: always. */
  graphFrom?: number | undefined;
  newWorker?: () => Worker;
  /** True if the worker is started by the first search that needs it, as most need none. */
  isLazy?: boolean;
  /** Time that `open` waits for the graph to be loaded; without this, until it is. */
  openMaxMs?: number;
}

const theWorker = () => new Worker(new URL("./worker.ts", import.meta.url).href);

export class VectorIndex implements CandidateIndex {
  readonly #store: Store;
  readonly #log: Log;
  readonly #collection: Collection;
  readonly #graphFrom: number;
  readonly #newWorker: () => Worker;
  readonly #openMaxMs: number | undefined;
  readonly #isLazy: boolean;
  readonly #scopeCache: ScopeCache;
  /** Filters that more than a few passed when that was looked at last. */
  readonly #wideFilters = new Set<string>();
  /** Memories whose rows were put again since some were posted to the worker. */
  readonly #updated = new Set<BareId>();
  #connection: Connection | undefined;
  #status = NO_STATUS;
  #bytes = NO_BYTES;
  #isReady = false;
  /** The worker was idle when it last posted its status, and was sent no change since. */
  #isIdle = false;
  /** There was a change while the worker was busy: it may have missed it. */
  #isDirty = false;
  #hasFailed = false;
  /** Reason why the last worker ended; undefined once another one answers. */
  #problem: string | undefined;
  #isClosed = false;

  constructor(store: Store, log: Log, options: IndexOptions = {}) {
    const { collection = MEMORIES, graphFrom = GRAPH_FROM, newWorker = theWorker, openMaxMs, isLazy = false } = options;
    this.#store = store;
    this.#log = log;
    this.#collection = collection;
    this.#graphFrom = graphFrom;
    this.#newWorker = newWorker;
    this.#openMaxMs = openMaxMs;
    this.#isLazy = isLazy;
    this.#scopeCache = new ScopeCache(store, { collection });
    store.onPut(collection.records, (memory) => {
      this.#scopeCache.updated(memory);
      if (this.#updated.add(memory).size === UPDATED_MAX) this.#notifyUpdated();
    });
  }

  /**
   * Loads the graph if there are vectors enough to need one. Without it everything but search works; a search that needs it waits until
   * it is there.
   */
  async open(): Promise<void> {
    if (this.#isLazy || !this.#needsWorker()) return;
    const ready = this.#connect().ready.catch(() => undefined);
    await (this.#openMaxMs === undefined ? ready : within(systemClock, this.#openMaxMs, ready));
  }

  /** Reason why searches beyond a session, a user or a narrow filter are answered 503 at present; undefined when they are not. */
  problem(): string | undefined {
    return this.#problem;
  }

  /** Starts another worker where the last one has failed: nothing but a search would. */
  startAgain(): void {
    if (this.#problem !== undefined && this.#connection === undefined && !this.#isClosed) this.#connect();
  }

  /** The state of the index, as the worker last posted it. */
  get status(): IndexStatus {
    return this.#status;
  }

  get bytes(): IndexBytes {
    return this.#bytes;
  }

  get cacheUses(): CacheUses {
    return this.#scopeCache.uses;
  }

  /** @throws {ApiError} `service_unavailable` when the worker has failed; the next call starts a new one */
  async nearest(query: Query, filter: Filter): Promise<Candidate[]> {
    // Nobody else can answer before the worker can.
    const pendingMax = this.#isReady ? RESIDENT_PENDING_MAX : Infinity;
    for (let turns = 0; turns < READING_TURNS_MAX; turns++) {
      const found = this.#scopeCache.nearest(query, filter, pendingMax);
      if (found !== undefined) return found;
      if (!this.#scopeCache.isReading(filter)) break;
      await nextTurn();
    }
    return this.#allThatPass(query, filter) ?? this.#ask(query, filter);
  }

  changed(): void {
    this.#scopeCache.collect();
    if (this.#connection === undefined) {
      if (!this.#isClosed && !this.#isLazy && this.#needsWorker()) this.#connect();
    } else if (this.#isIdle) {
      this.#isIdle = false;
      this.#connection.send({ kind: "changed" });
    } else {
      this.#isDirty = true;
    }
  }

  /** Has the graph written to disk. */
  async save(): Promise<void> {
    await this.#connection?.call((call) => ({ kind: "save", call }));
  }

  /** Ends the worker; what is new in the graph is written to disk first. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    if (connection === undefined) return;
    const deadline = setTimeout(() => connection.abandon(`the worker did not finish within ${CLOSE_MAX_MS} ms`), CLOSE_MAX_MS);
    await connection.close();
    clearTimeout(deadline);
  }

  #needsWorker(): boolean {
    return this.#connection !== undefined || this.#store.count(this.#collection.vectors) > FEW_MAX;
  }

  /** All candidates that pass, when they are few; or when all vectors are. */
  #allThatPass(query: Query, filter: Filter): Candidate[] | undefined {
    const reader = this.#store.latest;
    const candidates = new CandidateReader(reader, this.#collection, query);
    if (!this.#needsWorker()) {
      const all = reader.keys(this.#collection.vectors, { from: "", to: MAX_KEY }).flatMap((id) => candidates.candidate(id) ?? []);
      return all.filter(({ memory }) => matches(reader, filter, memory));
    }
    const few = this.#few(filter);
    return few?.flatMap((memory) => candidates.ofMemory(memory) ?? []);
  }

  /** The memories that pass, when they are few. */
  #few(filter: Filter): BareId[] | undefined {
    if (filter.length === 0) return undefined;
    const name = JSON.stringify(filter);
    if (this.#wideFilters.has(name)) return undefined;
    const few: BareId[] = [];
    for (const id of leapfrogJoin(this.#store.latest, this.#collection.records, filter)) {
      if (typeof id === "string" && few.length < FEW_MAX) few.push(id);
      else {
        if (this.#wideFilters.size === WIDE_FILTERS_MAX) this.#wideFilters.clear();
        this.#wideFilters.add(name);
        return undefined;
      }
    }
    return few;
  }

  #notifyUpdated(): void {
    if (this.#updated.size > 0) this.#connection?.send({ kind: "updated", memories: [...this.#updated] });
    this.#updated.clear();
  }

  async #ask(query: Query, filter: Filter): Promise<Candidate[]> {
    if (this.#isClosed) throw unavailable("the index is closed");
    try {
      const packed = { query: packQuery(query), filter: JSON.stringify(filter) };
      return await this.#connect().call((call) => {
        this.#notifyUpdated();
        return { kind: "nearest", call, ...packed };
      });
    } catch (error) {
      throw unavailable(error);
    }
  }

  #connect(): Connection {
    if (this.#connection !== undefined) return this.#connection;
    const [dataDirectory, useSnapshot, graphFrom] = [this.#store.directory, !this.#hasFailed, this.#graphFrom];
    const start = { kind: "start", dataDirectory, collection: this.#collection.name, useSnapshot, graphFrom } as const;
    const connection = new Connection(
      this.#newWorker(),
      start,
      (notice) => this.#note(notice),
      () => this.#scopeCache.shared,
    );
    this.#connection = connection;
    this.#isIdle = false;
    void connection.ended.then((reason) => {
      this.#connection = undefined;
      this.#isReady = false;
      this.#status = NO_STATUS;
      this.#bytes = NO_BYTES;
      if (reason === undefined) return;
      if (this.#isClosed) {
        this.#log.warn("the vector index was not closed: the next start rebuilds what was not saved", { reason });
        return;
      }
      this.#hasFailed = true;
      this.#problem = "The vector index has failed and is being started again; searches over all memories are refused.";
      this.#log.error("vector index failed", { reason });
    });
    return connection;
  }

  #note(notice: Notice): void {
    switch (notice.kind) {
      case "ready": {
        const { rebuilding, status } = notice;
        this.#status = status;
        this.#bytes = notice.bytes;
        this.#isReady = true;
        this.#problem = undefined;
        this.#log.info("vector index ready", { indexed: status.indexed, pending: status.pending, rebuilding });
        break;
      }
      case "shared":
        this.#scopeCache.use(notice.shared);
        break;
      case "status":
        this.#status = notice.status;
        this.#bytes = notice.bytes;
        this.#isIdle = notice.idle;
        if (notice.idle && this.#isDirty) {
          this.#isDirty = false;
          this.changed();
        }
        break;
      case "warning":
        this.#log.warn(notice.message);
        break;
    }
  }
}

function unavailable(cause: unknown): ApiError {
  return new ApiError("service_unavailable", "The vector index could not answer. Try again in a moment.", { cause });
}
