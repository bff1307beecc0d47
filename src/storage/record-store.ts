/**
 * Interface of every store, wherever its rows are.
 *
 * @module
 */
import type { CacheUses } from "../lib/cache.ts";
import type { ApiError } from "../lib/errors.ts";
import type { BareId, Partition, Id, IdPrefix } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import type { LatestReader, Reader, Tx } from "./access.ts";
import type { Listing, ListItem } from "./list.ts";
import type { Page } from "./page.ts";
import type { AuditKey } from "./audit/audit-key.ts";
import type { AuditStart } from "./audit/chain.ts";
import type { AnyTable } from "./tables.ts";
import type { Bounds, Filter } from "./walk.ts";

export interface RecordStore {
  /** True if it can be read and takes changes, and why not. */
  readonly health: StoreHealth;
  /** Bytes that it takes on disk, and those of them that hold records, as they were counted last. */
  readonly bytes: number;
  readonly bytesUsed: number;
  /** Bytes, or characters of texts, of all rows written since the store was opened. */
  readonly bytesWritten: number;
  /** Hits and misses of caches, by table. */
  readonly cacheUses: Record<string, CacheUses>;
  /** Another object whenever `read` may see something else; undefined where that is not known. */
  readonly readVersion?: object;
  /** Key that signs chains of traces, where this process writes any. */
  readonly auditKey: AuditKey | undefined;
  /** Has each trace linked into a chain from now on. */
  useAudit(start: AuditStart): void;
  /** Signs what this process has linked so far. */
  signTraces(): Promise<void>;
  /** Called before a commit is queued: what is committed in this call comes before it, with lower ids. */
  onCommit: () => void;
  /** Called after commits of this process. */
  onCommitted: (changes: CommittedChanges) => void;
  /**
   * Runs what answers a request, where that makes its reads quicker.
   *
   * @param reads - what it is going to read, as far as that is known: each is a read of its own
   */
  request?<Result>(reads: readonly ((reader: Reader) => unknown)[], callback: () => Result): Result;
  /** Runs `callback` on one snapshot, which sees every commit that has resolved; perhaps several times. */
  read<Result>(callback: (reader: LatestReader) => Result): Result | Promise<Result>;
  /** The same with all that other processes have committed by now: a reader can be a few milliseconds behind them. */
  readNewest<Result>(callback: (reader: LatestReader) => Result): Result | Promise<Result>;
  /**
   * Runs `callback`; resolves with its result once what it has written is durable. When `callback` throws, nothing of it is kept and the
   * promise rejects with what was thrown.
   *
   * @param partition - of the records it writes
   */
  commit<Result>(partition: Partition, callback: (tx: Tx) => Result): Promise<Result>;
  /** Gives an id for a record that a later commit writes: greater than those of all commits of this process before. */
  newId(partition: Partition): BareId;
  /** One page of a list. */
  list<Prefix extends IdPrefix>(
    listing: Listing<Prefix>,
    page: Page<Id<Prefix>>,
    item: (reader: Reader, key: BareId, id: Id<Prefix>) => ListItem,
  ): Promise<JsonText>;
  /** Some of the ids that pass a filter, newest first: at most `limit`, and fewer when they take long to find. */
  walk(table: AnyTable, filter: Filter, bounds: Omit<Bounds, "few">, limit: number): WalkedIds | Promise<WalkedIds>;
  /** Number of rows of a table, or of entries of an index; of a large one perhaps an estimate. */
  count(table: AnyTable): number | Promise<number>;
  /** All of it as it is now, for commands. To be disposed of soon: what is deleted meanwhile frees no space on the disk. */
  snapshot(): WholeStore | Promise<WholeStore>;
  /**
   * Begins to overwrite what the store's file still holds of rows that are removed by now. Left out where that is not in the hands of
   * this process: a database keeps it until it vacuums.
   */
  wipe?(): Wiping;
  /** Finds out whether it works again after it has failed. */
  probe(): Promise<void>;
  close(): Promise<void>;
}

/** Takes the next step of overwriting, in milliseconds. `waits`: somebody still reads the store as it was. */
export type Wiping = () => Promise<"done" | "more" | "waits">;

/** A snapshot of the whole store, whatever is committed meanwhile. */
export interface WholeStore extends AsyncDisposable {
  /** True if indexes that have one entry of a row at most are columns of the row: then `rowBatches` gives them along with it. */
  readonly hasIndexColumns: boolean;
  /** Every row of a table of texts, in the order of keys. */
  rowBatches(table: AnyTable): Iterable<readonly WholeRow[]> | AsyncIterable<readonly WholeRow[]>;
  /** Every key of a table, or entry of an index, in order. */
  keyBatches(table: AnyTable): Iterable<readonly string[]> | AsyncIterable<readonly string[]>;
  /** Runs `callback` on each item, perhaps several times, until nothing that it reads is missing. @returns what it gave, in order */
  readEach<Item, Result>(items: readonly Item[], callback: (reader: Reader, item: Item) => Result): Result[] | Promise<Result[]>;
}

/** A row as the text it is stored as. */
export interface WholeRow {
  readonly key: string;
  readonly text: string;
  /** Values of the columns of its indexes, by the names of the indexes: null is no entry. */
  readonly columns?: Readonly<Record<string, string | null>>;
}

/** Changes to the whole store, by commands. */
export type ChangedStore = Pick<RecordStore, "commit" | "snapshot" | "count">;

/** A step of a walk. */
export interface WalkedIds {
  readonly ids: readonly BareId[];
  /** The next step begins `before` this one; undefined at the end. */
  readonly next: BareId | undefined;
}

/** Writes of commits of this process that the event feed and the webhooks follow. */
export interface CommittedChanges {
  /** The keys of the traces that they wrote, in the order of their ids. */
  readonly traces: readonly string[];
  /** True if there are events for webhooks. */
  readonly hasEvents: boolean;
}

export interface StoreHealth {
  /** True if nothing can be done in this process any more: it has to end. */
  readonly hasPanicked: boolean;
  /** Reason why reads or commits fail at present, as far as that is known. */
  problem(): string | undefined;
  /** The answer when the store threw this from a read; undefined when it did not. */
  readFailure(error: unknown): ApiError | undefined;
  /** Checks whether an error says that nothing can be done in this process any more. */
  isPanic(error: unknown): boolean;
  /** True if logs that nobody waits for may be written. */
  readonly hasRoomForLogs: boolean;
}
