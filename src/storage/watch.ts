/**
 * Watches whether the store can be read and takes changes.
 *
 * Commits remember how the last one ended, and readiness asks for that; nothing is written while all is well. After a
 * failure this task writes once every two seconds, so that readiness comes back without waiting for a client's change.
 *
 * @module
 */
import type { Log } from "../lib/log.ts";
import type { Task } from "../tasks/task.ts";
import type { Store } from "./store.ts";

const LOOK_MS = 2_000;

/** @param onChange - called with why the store fails when it begins to, and with undefined when it works again */
export function storeWatch(store: Store, log: Log, onChange: (problem: string | undefined) => void): Task {
  let known: string | undefined;
  const look = () => {
    const problem = store.problem();
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
      // Then the server is stopping, and has said why.
      if (!store.hasPanicked && look() !== undefined) {
        await store.tryToWrite().catch(() => undefined);
        look();
      }
      return LOOK_MS;
    },
  };
}
