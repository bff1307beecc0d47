/**
 * Names that sessions were given by a Cairn of before, which did not note within what each is unique: a look-up finds none of them.
 * They are taken for names of their users, once in each store.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { DAY_MS } from "../lib/duration.ts";
import { NO_PARTITION, type BareId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { meta, NAMES_MARK, sessions, type SessionRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Task } from "../tasks/task.ts";

const { byExternalId } = sessions.index;
const ENTRIES_PER_COMMIT = 500;

/** Completes the names before the first request; on a full disk the start succeeds, and the task that this gives does it later. */
export async function completedNames(store: RecordStore, log: Log): Promise<Task> {
  try {
    await completeNames(store);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    log.error("names of sessions are not found by external_id yet: trying again until they can be written", { reason: error.message });
  }
  return {
    name: "names of sessions",
    async run() {
      await completeNames(store);
      return DAY_MS;
    },
  };
}

async function completeNames(store: RecordStore): Promise<void> {
  if ((await store.read((reader) => reader.get(meta, NAMES_MARK))) !== undefined) return;
  for (let from = ""; ;) {
    const entries = await store.read((reader) => reader.keys(byExternalId, { from, to: MAX_KEY, limit: ENTRIES_PER_COMMIT }));
    const keys = [...new Set(entries.map((entry) => byExternalId.recordOf(entry) as BareId))];
    if ((await store.read((reader) => incomplete(reader, keys))).length > 0)
      await store.commit(NO_PARTITION, (tx) => {
        for (const { key, row } of incomplete(tx, keys)) tx.put(sessions, key, { ...row, namedWithin: "user" });
      });
    const last = entries.at(-1);
    if (last === undefined || entries.length < ENTRIES_PER_COMMIT) break;
    from = successor(last);
  }
  await store.commit(NO_PARTITION, (tx) => tx.put(meta, NAMES_MARK, "1"));
}

/** The rows that do not say within what their name is unique. */
function incomplete(reader: Reader, keys: readonly BareId[]): { key: BareId; row: SessionRow }[] {
  const rows = eachFetched(keys, (key) => ({ key, row: unlessUnreadable(() => reader.get(sessions, key)) }));
  return rows.filter(
    (one): one is { key: BareId; row: SessionRow } => one.row?.externalId !== undefined && one.row.namedWithin === undefined,
  );
}
