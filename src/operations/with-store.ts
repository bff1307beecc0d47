/**
 * Opens a store that is there for as long as some work takes.
 *
 * @module
 */
import { resolve } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { claim } from "../storage/claim.ts";
import { Store } from "../storage/store.ts";

/** For work that only reads, beside a running server too. */
export function withStore<Result>(dataDirectory: string, clock: Clock, work: (store: Store) => Promise<Result>): Promise<Result> {
  return withOpened(dataDirectory, clock, { onlyReads: true }, work);
}

async function withOpened<Result>(
  dataDirectory: string,
  clock: Clock,
  options: { onlyReads: boolean },
  work: (store: Store) => Promise<Result>,
): Promise<Result> {
  const store = await Store.open(resolve(dataDirectory), clock, options);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Refuses while a server, or another command of this kind, has the directory. */
export async function withClaimedStore<Result>(
  dataDirectory: string,
  clock: Clock,
  work: (store: Store) => Promise<Result>,
): Promise<Result> {
  const release = claim(resolve(dataDirectory));
  try {
    return await withOpened(dataDirectory, clock, { onlyReads: false }, work);
  } finally {
    release();
  }
}
