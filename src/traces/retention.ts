/**
 * Removes traces whose time has passed.
 *
 * Readers hide an expired trace at once, so this task only frees space; it may run late or twice. It removes whole days,
 * a bounded number of traces per commit.
 *
 * @module
 */
import { BARE_ID_LENGTH } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { BadRows } from "../storage/bad-rows.ts";
import { expiryDayKey, traceIndexKeys } from "../storage/indexes.ts";
import type { Tx } from "../storage/store.ts";
import { traces, tracesByExpiry } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import type { Records } from "./record.ts";

const TRACES_PER_COMMIT = 200;
const IDLE_MS = 60_000;

export function traceRetention(records: Records, log: Log): Task {
  const name = "trace retention";
  const bad = new BadRows(records.store, log, name);
  return {
    name,
    async run() {
      const keys = bad.keysOfOthers(tracesByExpiry, { from: "", to: expiryDayKey(records.clock.now()), limit: TRACES_PER_COMMIT });
      if (keys.length > 0) {
        await bad.commit((tx, isolate) => {
          for (const key of keys) isolate(key, () => removeTrace(tx, key));
        });
      }
      return keys.length === TRACES_PER_COMMIT ? 0 : IDLE_MS;
    },
  };
}

function removeTrace(tx: Tx, key: string): void {
  const id = key.slice(-BARE_ID_LENGTH);
  const row = tx.get(traces, id);
  if (row !== undefined) {
    for (const index of traceIndexKeys(id, row)) tx.remove(index.table, index.key);
    tx.remove(traces, id);
  }
  tx.remove(tracesByExpiry, key);
}
