/**
 * Removes memories whose time has passed, in slices.
 *
 * A memory is gone for readers the moment `expires_at` is reached (`record.ts`). This task only cleans up, so that running late or twice
 * changes no answer; only the `memory.expired` trace waits for it.
 *
 * @module
 */
import { withPrefix } from "../lib/ids.ts";
import { toJson } from "../lib/json.ts";
import { isoOrNull } from "../lib/time.ts";
import { isHiddenWithSession } from "../sessions/removal.ts";
import type { Tx } from "../storage/access.ts";
import { BadRows, rowOfEntry } from "../storage/bad-rows.ts";
import { MEMORIES } from "../storage/collections.ts";
import { isErased } from "../storage/erasure.ts";
import { timeKey } from "../storage/keys.ts";
import { removeRecord } from "../storage/memory-records.ts";
import { memories } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { record, type Caller } from "../traces/record.ts";
import { touchSession } from "./change.ts";
import type { MemoryDeps } from "./deps.ts";
import { memoryJson, preview } from "./record.ts";

/** One commit holds the request thread for a few milliseconds at most. */
const MEMORIES_PER_COMMIT = 50;
const POLL_MS = 1_000;

export function memoryExpiry({ store, clock, log, vectors }: MemoryDeps, timer: Caller): Task {
  const name = "memory expiry";
  const bad = new BadRows(store, log, name);
  return {
    name,
    async run() {
      const span = { from: "", to: timeKey(clock.now() + 1), limit: MEMORIES_PER_COMMIT };
      const due = await bad.keysOfOthers(memories.index.byExpiry, span);
      if (due.length === 0) return POLL_MS;
      await bad.commit((tx, isolate) => {
        for (const entry of due) isolate(entry, () => expire(tx, timer, entry));
      });
      vectors.changed();
      return due.length === MEMORIES_PER_COMMIT ? 0 : POLL_MS;
    },
  };
}

function expire(tx: Tx, timer: Caller, entry: string): void {
  const { byExpiry } = memories.index;
  const key = byExpiry.recordOf(entry);
  // Between the look at the index and this commit it may have been deleted or given more time.
  const row = rowOfEntry(tx, memories, byExpiry, entry);
  if (row === undefined) return;
  removeRecord(tx, MEMORIES, key);
  // A hidden memory has no trace and no event any more.
  if (isErased(tx, row, key) || isHiddenWithSession(tx, key, row.sessionId)) return;
  touchSession(tx, row.sessionId, -1);
  const id = withPrefix("mem", key);
  record(tx, timer, {
    action: "memory.expired",
    sessionId: row.sessionId ?? null,
    userId: row.userId,
    agentId: row.agentId,
    ...(row.sessionId === undefined ? { recordId: key } : {}),
    details: toJson({ memory_id: id, content_preview: preview(row.content), expires_at: isoOrNull(row.expiresAt ?? null) }),
    record: memoryJson(tx, id, row),
  });
}
