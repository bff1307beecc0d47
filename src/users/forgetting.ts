/**
 * Empties caches that may have texts of a user who was erased: queries with their vectors, turns, names, and on a database the rows that
 * this server has written. Whose they are is not known of all, so it is the caches of all: they fill again within seconds.
 *
 * The server that ends an erasure knows of it by its own commit. The others find its trace.
 *
 * @module
 */
import { MAX_KEY, hashKey } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { traces } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { actionCode, actionOf } from "../traces/events.ts";

const LOOK_MS = 1_000;
/** Traces, the newest first: a server whose clock is a little behind gives an id that is not the newest. */
const ERASURES_COMPARED = 16;

/** Caches that keep texts of users in memory beyond a commit. */
export interface Forgetful {
  forget(): void;
}

export function forgetAll(caches: readonly Forgetful[]): void {
  hashKey.clear();
  for (const cache of caches) cache.forget();
}

/** Checks whether an erasure has ended with a commit. @param keys - of its traces */
export function endsErasure(keys: readonly string[]): boolean {
  return keys.some((key) => actionOf(key) === "user.erased");
}

/** Finds erasures that other servers have ended. */
export function erasureWatch(store: RecordStore, caches: readonly Forgetful[]): Task {
  const code = actionCode("user.erased");
  const span = { from: code, to: code + MAX_KEY, limit: ERASURES_COMPARED, descending: true };
  let known = "";
  return {
    name: "erasures of other servers",
    async run() {
      const newest = (await store.read((reader) => reader.keys(traces, span))).join(" ");
      if (newest !== known) forgetAll(caches);
      known = newest;
      return LOOK_MS;
    },
  };
}
