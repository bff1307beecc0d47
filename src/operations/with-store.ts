/**
 * Opens a store that is there for as long as some work takes.
 *
 * @module
 */
import { resolve } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { lockDirectory } from "../storage/directory-lock.ts";
import { Store } from "../storage/store.ts";

type Work<Result> = (store: Store) => Promise<Result>;

/** For work that only reads, also while a server is running. */
export async function withStore<Result>(
  dataDirectory: string,
  clock: Clock,
  work: Work<Result>,
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
export async function withLockedStore<Result>(dataDirectory: string, clock: Clock, work: Work<Result>): Promise<Result> {
  using _ = lockDirectory(resolve(dataDirectory));
  return await withStore(dataDirectory, clock, work, { onlyReads: false });
}
