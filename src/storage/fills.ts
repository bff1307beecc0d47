/**
 * Fills what rows of before lack, once in each store: entries of an index that is newer than they are, or what else follows from them.
 *
 * A start goes through the rows in slices, each a commit that moves a watermark in `meta`: one that is killed is continued by the next, and
 * memory is bounded however many rows there are. An embedded store is backed up before the first slice. What is written meanwhile has its
 * entries whatever the watermark says, and several servers take turns. An index is filled by its declaration in `tables.ts` (`fillRows`).
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import { ApiError, messageOf } from "../lib/errors.ts";
import { NO_PARTITION } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { Task } from "../tasks/task.ts";
import { eachFetched, type Reader, type Tx } from "./access.ts";
import { MAX_KEY, successor } from "./keys.ts";
import type { RecordStore } from "./record-store.ts";
import { ALL_FILLED, FILLED_FROM, fillMark, meta, RECORD_TABLES, type AnyTable, type Index, type Table } from "./tables.ts";
import { unlessUnreadable } from "./unreadable.ts";

const ROWS_PER_LOG_LINE = 100_000;
const RETRY_AFTER_SECONDS = 5;

export interface Fill {
  /** Names its watermark: `memories.byContent`. */
  readonly name: string;
  /** Tables with rows of before: while they are empty there is nothing to back up. */
  readonly tables: readonly AnyTable[];
  /** Completes the next rows, from a key on; run again on rows that lack nothing it changes nothing. */
  slice(tx: Tx, from: string): Slice;
}

export interface Slice {
  readonly rows: number;
  /** Position to continue at; undefined at the end. */
  readonly next: string | undefined;
}

interface Options {
  readonly store: RecordStore;
  readonly log: Log;
  /** Fills that are not of an index alone. */
  readonly others: readonly Fill[];
  /** Called before the first change of a store of before. */
  readonly backUp: () => Promise<unknown>;
}

/**
 * Fills everything before the first request; where that cannot be written, as on a full disk, the start succeeds, and the task that this
 * gives does it later.
 */
export async function fillStore(options: Options): Promise<Task> {
  const fill = async () => {
    const fills = [...INDEX_FILLS, ...options.others];
    const due = await options.store.read((reader) => fills.filter(({ name }) => reader.get(meta, fillMark(name)) !== ALL_FILLED));
    if (due.length > 0) await fillAll(options, due);
  };
  try {
    await fill();
  } catch (error) {
    if (!(error instanceof ApiError) && !(error instanceof NoBackup)) throw error;
    options.log.error("older records are not in all indexes yet: trying again until these can be written", { reason: error.message });
  }
  return {
    name: "indexes of older records",
    async run() {
      await fill();
      return DAY_MS;
    },
  };
}

/** Thrown where there is no backup of what is to be changed. */
class NoBackup extends Error {
  override name = "NoBackup";
}

async function fillAll({ store, log, backUp }: Options, due: readonly Fill[]): Promise<void> {
  const untouched = await store.read((reader) => due.filter(({ name }) => !reader.has(meta, fillMark(name))));
  const tables = new Set(untouched.flatMap((fill) => fill.tables));
  const isEmpty = await store.read((reader) => eachFetched([...tables], (table) => reader.isEmpty(table)));
  if (isEmpty.includes(false)) {
    try {
      await backUp();
    } catch (error) {
      throw new NoBackup(messageOf(error), { cause: error });
    }
  }
  // A start that is killed from now on needs no other backup.
  await store.commit(NO_PARTITION, (tx) =>
    eachFetched(untouched, ({ name }) => tx.has(meta, fillMark(name)) || tx.put(meta, fillMark(name), FILLED_FROM)),
  );
  for (const fill of due) {
    let rows = 0;
    for (let next: string | undefined = ""; next !== undefined;) {
      const slice: Slice = await store.commit(NO_PARTITION, (tx) => nextSlice(tx, fill));
      const logged = Math.floor(rows / ROWS_PER_LOG_LINE);
      rows += slice.rows;
      ({ next } = slice);
      if (Math.floor(rows / ROWS_PER_LOG_LINE) > logged) log.info("filling an index with older records", { index: fill.name, rows });
    }
    if (rows > 0) log.info("index filled with older records", { index: fill.name, rows });
  }
}

/** Continues at the watermark, wherever another server, or a start that was killed, has left it. */
function nextSlice(tx: Tx, fill: Fill): Slice {
  const mark = tx.get(meta, fillMark(fill.name));
  if (mark === ALL_FILLED) return { rows: 0, next: undefined };
  const done = fill.slice(tx, (mark ?? FILLED_FROM).slice(FILLED_FROM.length));
  tx.put(meta, fillMark(fill.name), done.next === undefined ? ALL_FILLED : FILLED_FROM + done.next);
  return done;
}

/** @returns the keys of the next rows, or entries, and the slice that they are */
export function nextKeys(reader: Reader, table: AnyTable, from: string, limit: number): Slice & { keys: string[] } {
  const keys = reader.keys(table, { from, to: MAX_KEY, limit });
  return { keys, rows: keys.length, next: keys.length < limit ? undefined : successor(keys.at(-1)!) };
}

const INDEX_FILLS: readonly Fill[] = RECORD_TABLES.flatMap((table) =>
  table.indexes.flatMap((index) => (index.fillRows === undefined ? [] : [indexFill(table, index, index.fillRows)])),
);

function indexFill(table: Table<never>, index: Index<never>, limit: number): Fill {
  return {
    name: index.name,
    tables: [table],
    slice(tx, from) {
      const { keys, ...slice } = nextKeys(tx, table, from, limit);
      tx.ahead(table, keys);
      const rows = eachFetched(keys, (key) => {
        const row = unlessUnreadable(() => tx.get(table, key));
        return { key, row, lacksEntry: row !== undefined && index.entriesOf(key, row).some((entry) => !tx.has(index, entry)) };
      });
      for (const { key, row, lacksEntry } of rows) if (lacksEntry) tx.add(table, key, row as never);
      return slice;
    },
  };
}

/** Checks whether a row may be one of before that has no entry in an index yet. */
export function mayLackEntry(reader: Reader, index: Index<never>, key: string): boolean {
  if (index.fillRows === undefined) return false;
  const mark = reader.get(meta, fillMark(index.name));
  return mark !== ALL_FILLED && (mark === undefined || key >= mark.slice(FILLED_FROM.length));
}

/** Checks whether all rows have their entries in an index. */
export function isFilled(reader: Reader, index: Index<never>): boolean {
  return reader.get(meta, fillMark(index.name)) === ALL_FILLED;
}

/** @throws {ApiError} `service_unavailable` while rows of before may have no entry in an index that a request goes by */
export function refuseUnfilled(reader: Reader, index: Index<never>, param: string): void {
  if (isFilled(reader, index)) return;
  throw new ApiError("service_unavailable", "Records of an earlier version are still being indexed. Try again.", {
    param,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}
