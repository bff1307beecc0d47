/**
 * The file of the store as LMDB opens it, with a database for each table and index.
 *
 * Traps of lmdb-js (seen with lmdb 3.5.6):
 * - `overlappingSync: false`, so that a commit resolves after its flush and a start never trusts unflushed pages
 *   (`file/unsynced-marker.ts` has the exception);
 * - `childTransaction`, because `transaction` keeps the writes of a callback that throws;
 * - no `transactionSync`, and no `putSync` outside of a transaction: they abort the process on a full disk. Hence also the look at the
 *   free space first.
 *
 * @module
 */
import { accessSync, chmodSync, constants, existsSync } from "node:fs";
import { join } from "node:path";
import { open, type Database, type RootDatabase, type Transaction } from "lmdb";
import type { Durability } from "../durability.ts";
import { TABLES, VECTOR_TABLES } from "../tables.ts";
import { DATA_FILE, LOCK_FILE, STORE_DIRECTORY } from "./file/data-file.ts";
import { hasUnsyncedMarker } from "./file/unsynced-marker.ts";
import { KEY_ENCODER } from "./key-encoder.ts";
import { Databases } from "./reader.ts";

export interface Environment {
  readonly env: RootDatabase<string, string>;
  readonly databases: Databases;
  /** True if others see a commit before it is flushed: the file was ever written relaxed. */
  readonly isMarked: boolean;
  /** True if a commit is done only when a flush is that comes after it. */
  readonly flushesLater: boolean;
}

export function openEnvironment(directory: string, durability: Durability, readOnly: boolean): Environment {
  const path = pathIn(directory);
  // Marked, a start must not trust pages that were never flushed, and a commit resolves before its flush.
  const isMarked = hasUnsyncedMarker(path) && !readOnly;
  const sync = isMarked ? { overlappingSync: true, separateFlushed: true, safeRestore: true } : { overlappingSync: false };
  const env = open<string, string>({ path, maxDbs: TABLES.length + VECTOR_TABLES.length + 3, encoding: "string", readOnly, ...sync });
  if (!readOnly) for (const file of [DATA_FILE, LOCK_FILE]) chmodSync(join(directory, file), 0o600);
  // Its types know of no `keyEncoder` for a table.
  const options = { keyEncoder: KEY_ENCODER } as object;
  const openTable = <Value>(name: string, encoding: "string" | "binary") => {
    // Read-only, a table that is not there is not made: an older Cairn did not have it.
    const table = env.openDB<Value, string>({ ...options, name, encoding }) as Database<Value, string> | undefined;
    return table ?? (NO_TABLE as unknown as Database<Value, string>);
  };
  const databases = new Databases();
  for (const { name } of VECTOR_TABLES) databases.vectors.set(name, openTable<Uint8Array>(name, "binary"));
  for (const { name } of TABLES) databases.texts.set(name, openTable<string>(name, "string"));
  return { env, databases, isMarked, flushesLater: isMarked && durability === "strict" };
}

export function pathIn(directory: string): string {
  return join(directory, STORE_DIRECTORY);
}

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    const file = join(path, "data.mdb");
    if (existsSync(file)) accessSync(file, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** An addition of our build of lmdb-js (`scripts/lmdb/wipe.patch`). */
export interface NativeStore {
  env: {
    /**
     * Overwrites what free pages hold, in a transaction that has written nothing.
     *
     * @param state - zeros at first; the second one is zero at the end
     * @returns false while a reader may still see such pages
     */
    wipeFree(state: Float64Array, pagesMax: number): boolean;
  };
}

/** An addition of our build of lmdb-js (`scripts/lmdb/keys.patch`). */
export interface NativeTable {
  /** @param into - begins with the key to copy from on, which has `startBytes` */
  copyKeys(into: Uint8Array, startBytes: number, width: number, transaction: number): number;
}

/** Result of reading a table that does not exist. */
const NO_TABLE = {
  db: { copyKeys: () => 0 } satisfies NativeTable,
  get: () => undefined,
  getBinaryFast: () => undefined,
  doesExist: () => false,
  getKeys: () => [],
  getRange: () => [],
  getStats: () => ({ entryCount: 0, pageSize: 0, treeBranchPageCount: 0, treeLeafPageCount: 0, overflowPages: 0 }),
};

/**
 * Keeps the pages of the store as they are at this moment from being used again, whatever is committed meanwhile, for
 * callers that read the file itself. None of them is read.
 */
export function pinPages(directory: string): AsyncDisposable {
  const env = open<string, string>({ path: pathIn(directory), readOnly: true, encoding: "string" });
  const transaction: Transaction = env.useReadTransaction();
  return {
    async [Symbol.asyncDispose]() {
      transaction.done();
      await env.close();
    },
  };
}
