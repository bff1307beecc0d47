/**
 * Removes sessions whose time has passed.
 *
 * A session is gone for readers the moment `ttl_expires_at` is reached: `liveSession` says so. This task only cleans up, so
 * running late or twice changes no answer; only the `session.expired` trace waits for it. What a session knew stays: its
 * memories are kept, unless the setting `memories_on_expiry` says otherwise; its states and turns go.
 *
 * @module
 */
import type { Settings } from "../settings/settings.ts";
import { withPrefix } from "../lib/ids.ts";
import { toJson } from "../lib/json.ts";
import type { Log } from "../lib/log.ts";
import { toIso } from "../lib/time.ts";
import { BadRows, rowOfEntry } from "../storage/bad-rows.ts";
import type { Tx } from "../storage/access.ts";
import { isErased } from "../storage/erasure.ts";
import { numberKey } from "../storage/keys.ts";
import { sessions, type RemovalRow } from "../storage/tables.ts";
import type { Task } from "../tasks/task.ts";
import { record, type Caller, type Deps } from "../traces/record.ts";
import { removeSession } from "./removal.ts";
import { sessionJson } from "./live-session.ts";
import { readState } from "./versions.ts";

/** One commit holds the request thread for a few milliseconds at most. */
const SESSIONS_PER_COMMIT = 20;
const POLL_MS = 1_000;

interface ExpiryDeps extends Deps {
  readonly settings: Pick<Settings, "values">;
  readonly log: Log;
}

export function sessionExpiry(deps: ExpiryDeps, timer: Caller): Task {
  const { store, clock, log, settings } = deps;
  const name = "session expiry";
  const bad = new BadRows(store, log, name);
  return {
    name,
    async run() {
      const due = await bad.keysOfOthers(sessions.index.byExpiry, { from: "", to: numberKey(clock.now() + 1), limit: SESSIONS_PER_COMMIT });
      if (due.length === 0) return POLL_MS;
      const removal = { memories: settings.values.memories_on_expiry === "delete" };
      await bad.commit((tx, isolate) => {
        for (const key of due) isolate(key, () => expire(tx, timer, key, removal));
      });
      return due.length === SESSIONS_PER_COMMIT ? 0 : POLL_MS;
    },
  };
}

function expire(tx: Tx, timer: Caller, expiryKey: string, removal: RemovalRow): void {
  const { byExpiry } = sessions.index;
  const key = byExpiry.recordOf(expiryKey);
  // Between the look at the index and this commit the session may have been deleted or given more time.
  const row = rowOfEntry(tx, sessions, byExpiry, expiryKey);
  if (row === undefined) return;
  // For a user who is being erased no event has the session any more.
  if (isErased(tx, row, key)) return removeSession(tx, key, { memories: true, ofUser: true });
  const id = withPrefix("sess", key);
  record(tx, timer, {
    action: "session.expired",
    sessionId: id,
    userId: row.userId,
    agentId: row.agentId,
    details: toJson({ ttl_seconds: row.ttlSeconds, last_activity: toIso(row.updatedAt) }),
    record: sessionJson(id, row, readState(tx, key, row.version)),
  });
  removeSession(tx, key, removal);
}
