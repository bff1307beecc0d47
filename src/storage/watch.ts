/**
 * Watches whether the store can be read and takes changes.
 *
 * Readiness asks how the last commit ended, and nothing is written while all is well. After a failure this task writes once
 * every two seconds, so that readiness returns without waiting for a client's change.
 *
 * @module
 */
import type { Log } from "../lib/log.ts";
import type { Task } from "../tasks/task.ts";
import type { RecordStore } from "./record-store.ts";

const CHECK_MS = 2_000;

/** @param onChange - called with why the store fails when it begins to, and with undefined when it works again */
export function storeWatch(store: RecordStore, log: Log, onChange: (problem: string | undefined) => void): Task {
  let known: string | undefined;
  const check = () => {
    const problem = store.health.problem();
    if (problem !== known) {
      if (problem !== undefined) log.warn("the store fails; the server is not ready", { reason: problem });
      else log.info("the store works again");
      onChange(problem);
    }
    known = problem;
    return problem;
  };
  return {
    name: "store watch",
    async run() {
      // After a panic the server is stopping, and has said why.
      if (!store.health.hasPanicked && check() !== undefined) {
        await store.probe();
        check();
      }
      return CHECK_MS;
    },
  };
}
