/**
 * Removes the LMDB readers of processes that were killed.
 *
 * Who reads the store stands in it with what it sees, and as long as it does the disk keeps that: pages of deleted records
 * are not used again and the file grows. A command that ends takes itself out; one that is killed cannot.
 *
 * @module
 */
import type { Log } from "../lib/log.ts";
import type { Task } from "../tasks/task.ts";
import type { Store } from "./store.ts";

const IDLE_MS = 30_000;

export function deadReaders(store: Store, log: Log): Task {
  return {
    name: "dead readers",
    run() {
      const count = store.removeDeadReaders();
      if (count > 0) log.info("removed LMDB readers of killed processes", { count });
      return Promise.resolve(IDLE_MS);
    },
  };
}
