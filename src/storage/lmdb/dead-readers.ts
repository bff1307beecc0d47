/**
 * Removes the LMDB readers of processes that were killed.
 *
 * LMDB lists its readers, and keeps the pages that they see: those of deleted records are not used again, and the file grows.
 * A command that ends leaves the list; one that is killed cannot.
 *
 * @module
 */
import type { Log } from "../../lib/log.ts";
import type { Task } from "../../tasks/task.ts";
import type { Store } from "./store.ts";

const CHECK_MS = 30_000;

export function deadReaders(store: Store, log: Log): Task {
  return {
    name: "dead readers",
    run() {
      const count = store.removeDeadReaders();
      if (count > 0) log.info("removed LMDB readers of killed processes", { count });
      return Promise.resolve(CHECK_MS);
    },
  };
}
