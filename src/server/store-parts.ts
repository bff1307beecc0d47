/**
 * Opens the store, and what depends on where its rows are: the embedded one in the data directory, or a database that several servers
 * share.
 *
 * @module
 */
import { auditTask, startAudit } from "../audit/start.ts";
import type { KeyBuckets } from "../lib/bucket.ts";
import { bounded, type Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { holdsStore } from "../operations/store-file.ts";
import { openUpToDate } from "../operations/upgrade.ts";
import { CertificateFiles, type CertificateStore } from "../storage/certificate-store.ts";
import { DOCUMENTS, MEMORIES, TURNS } from "../storage/collections.ts";
import type { Durability } from "../storage/durability.ts";
import { EVERY_LEASE, leasedTask, type Leases } from "../storage/leases.ts";
import { deadReaders } from "../storage/lmdb/dead-readers.ts";
import { makePrivate } from "../storage/lmdb/directory/data-directory.ts";
import type { Migration } from "../storage/lmdb/migrate.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { openDatabase } from "../storage/postgres/connection/open-database.ts";
import type { TraceFollower } from "../storage/postgres/follow/trace-follower.ts";
import type { RecordStore } from "../storage/record-store.ts";
import type { Task } from "../tasks/task.ts";
import type { Forgetful } from "../users/forgetting.ts";
import type { CandidateIndex } from "../search/candidate-index.ts";
import { DatabaseIndex } from "../search/database-index.ts";
import { indexWatch } from "../search/index-watch.ts";
import { Replica, type ReplicaState } from "../search/replica/replica.ts";
import { VectorIndex, type IndexOptions } from "../search/vector-index.ts";

export interface StoreOptions {
  /** The URL of a database; the embedded store without one. */
  readonly database?: string | undefined;
  /** Reads the time of the database; a test has its own. */
  readonly databaseTime?: () => Promise<number>;
  /** Duration of a lease in the database; those of a test outlive the jumps of its clock. */
  readonly leaseMs?: number;
  readonly index?: IndexOptions;
  /** Migrations of the store of an older Cairn; a test has its own. */
  readonly migrations?: readonly Migration[];
  readonly durability?: Durability;
}

/** Standing of this server among those that share a database, for metrics. */
export interface SharedState {
  /** Leases that it holds: 1 or 0, by name. */
  leases(): Record<string, number>;
  /** Lead of its system's clock over the database's. */
  clockOffsetMs(): number;
  /** Number of its transactions that were run again, since another server had changed what they build on. */
  conflicts(): number;
  /** The copy of what is searched. */
  replica(): ReplicaState;
}

export interface StoreParts {
  readonly store: RecordStore;
  /** The same where it is the embedded one, for what only that has. */
  readonly embedded: Store | undefined;
  /** The time of its records. */
  readonly clock: Clock;
  readonly leases: Leases;
  readonly certificateStore: CertificateStore;
  /** Parts for several servers that share it. */
  readonly buckets: KeyBuckets | undefined;
  readonly follower: TraceFollower | undefined;
  readonly servers: SharedState | undefined;
  readonly vectors: CandidateIndex;
  readonly documentVectors: CandidateIndex;
  readonly turnVectors: CandidateIndex;
  readonly tasks: readonly Task[];
  /** Caches of what others may remove. */
  readonly forgetful: readonly Forgetful[];
  /** Makes the indexes ready for searches. */
  openIndexes(): Promise<void>;
  /** To be called once all tasks have ended: other servers take over what this one did alone. */
  release(): Promise<void>;
}

/** @param opened - closes what is opened here */
export async function openStoreParts(
  opened: AsyncDisposableStack,
  directory: string,
  clock: Clock,
  log: Log,
  options: StoreOptions,
): Promise<StoreParts> {
  if (options.database !== undefined) return databaseParts(opened, options.database, directory, clock, log, options);
  const store = opened.adopt(await openUpToDate(directory, bounded(clock), log, options), (open) => open.close());
  makePrivate(directory);
  const unsigned = await startAudit(store, directory, { isServer: true }, log);
  const vectors = opened.adopt(new VectorIndex(store, log, options.index), (open) => open.close());
  const documentVectors = opened.adopt(new VectorIndex(store, log, { ...options.index, collection: DOCUMENTS }), (open) => open.close());
  const turnIndex = new VectorIndex(store, log, { ...options.index, collection: TURNS, isLazy: true });
  const turnVectors = opened.adopt(turnIndex, (open) => open.close());
  return {
    store,
    embedded: store,
    clock,
    leases: EVERY_LEASE,
    certificateStore: new CertificateFiles(directory),
    buckets: undefined,
    follower: undefined,
    servers: undefined,
    vectors,
    documentVectors,
    turnVectors,
    tasks: [deadReaders(store, log), auditTask(store, unsigned), indexWatch([vectors, documentVectors, turnVectors])],
    forgetful: [],
    openIndexes: async () => void (await Promise.all([vectors.open(), documentVectors.open()])),
    release: () => Promise.resolve(),
  };
}

async function databaseParts(
  opened: AsyncDisposableStack,
  url: string,
  directory: string,
  own: Clock,
  log: Log,
  { databaseTime: time, leaseMs, durability, index }: StoreOptions,
): Promise<StoreParts> {
  const { store, clock } = await openDatabase(url, own, { time, durability });
  opened.adopt(store, (open) => open.close());
  if (holdsStore(directory)) log.warn("the data directory contains a store, but the database is served", { data: directory });
  if (durability !== "relaxed" && !store.hasStandby)
    log.warn(
      "the database names no synchronous standby: a server that takes its place can lack the last changes. One whose disk is replicated needs none",
    );
  const unsigned = await startAudit(store, directory, { isServer: true }, log);
  const buckets = store.buckets();
  // No other server has had that name.
  const leases = store.leases(crypto.randomUUID(), log, leaseMs);
  const replica = opened.adopt(new Replica({ source: store, directory, clock, log, index }), (open) => open.close());
  const vectors = new DatabaseIndex({ store, replica, collection: MEMORIES, compared: MEMORIES.scopes });
  const documentVectors = new DatabaseIndex({ store, replica, collection: DOCUMENTS, compared: [] });
  const turnVectors = new DatabaseIndex({ store, replica, collection: TURNS, compared: TURNS.scopes });
  return {
    store,
    embedded: undefined,
    clock,
    leases,
    certificateStore: store.certificates(),
    buckets,
    follower: store.traceFollower(),
    servers: {
      leases: () => leases.states,
      clockOffsetMs: () => clock.offsetMs,
      conflicts: () => store.conflicts,
      replica: () => replica.state,
    },
    vectors,
    documentVectors,
    turnVectors,
    forgetful: [store, vectors, documentVectors, turnVectors],
    tasks: [leases.task, clock.task(log), replica.task, auditTask(store, unsigned), leasedTask(leases, store, () => buckets.removal())],
    openIndexes: () => replica.open(),
    release: () => leases.release(),
  };
}
