/**
 * Removes retrievals whose time has passed. Readers hide them at once, so this task only frees space. Those of a session that has ended
 * go with its other records (`sessions/removal.ts`).
 *
 * @module
 */
import type { Log } from "../lib/log.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { numberKey } from "../storage/keys.ts";
import { retrievals } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Deps } from "../traces/record.ts";

const ROWS_PER_COMMIT = 200;
const IDLE_MS = 60_000;

export function retrievalRetention({ store }: Deps, log: Log): Task {
  const name = "retrieval retention";
  const bad = new BadRows(store, log, name);
  const { byExpiry } = retrievals.index;
  return {
    name,
    async run() {
      const now = await store.read((reader) => reader.now);
      const due = await bad.keysOfOthers(byExpiry, { from: "", to: numberKey(now + 1), limit: ROWS_PER_COMMIT });
      if (due.length === 0) return IDLE_MS;
      await bad.removeRowsOf(due, retrievals, byExpiry);
      return due.length === ROWS_PER_COMMIT ? 0 : IDLE_MS;
    },
  };
}
