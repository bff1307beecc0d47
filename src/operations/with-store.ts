/**
 * Opens a store that is there for as long as some work takes.
 *
 * @module
 */
import { resolve } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { lockDirectory } from "../storage/lmdb/directory/directory-lock.ts";
import { Store } from "../storage/lmdb/store.ts";
import { openDatabase } from "../storage/postgres/connection/open-database.ts";
import type { PostgresStore } from "../storage/postgres/postgres-store.ts";
import type { RecordStore } from "../storage/record-store.ts";

type Work<Opened, Result> = (store: Opened) => Promise<Result>;

/** Location of a store: in the database, or else in the data directory. */
export interface StorePlace {
  readonly dataDirectory: string;
  readonly database?: string | undefined;
}

/** For work that only reads, also while a server is running. */
export function withAnyStore<Result>(
  { dataDirectory, database }: StorePlace,
  clock: Clock,
  work: Work<RecordStore, Result>,
): Promise<Result> {
  return database === undefined ? withStore(dataDirectory, clock, work) : withDatabase(database, clock, work);
}

/** For work that only reads, also while a server is running. */
export async function withStore<Result>(
  dataDirectory: string,
  clock: Clock,
  work: Work<Store, Result>,
  { onlyReads } = { onlyReads: true },
): Promise<Result> {
  const store = await Store.open(resolve(dataDirectory), clock, { onlyReads });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** For work that writes; refuses while a server, or another command of this kind, has locked the directory. */
export async function withLockedStore<Result>(dataDirectory: string, clock: Clock, work: Work<Store, Result>): Promise<Result> {
  using _ = lockDirectory(resolve(dataDirectory));
  return await withStore(dataDirectory, clock, work, { onlyReads: false });
}

/**
 * For work of any kind, also while servers are running.
 *
 * @param makes - whether a store is made in a database without one
 */
export async function withDatabase<Result>(
  url: string,
  clock: Clock,
  work: Work<PostgresStore, Result>,
  { makes } = { makes: false },
): Promise<Result> {
  const { store } = await openDatabase(url, clock, { asItIs: !makes });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
