/**
 * Memories that a Cairn of before has stored without entries by their content, and as past ones, get them: a request that asks for no
 * duplicates looks there, and a search for what is current leaves those out.
 *
 * Slices in the order of keys, each a commit that moves a mark: a start that is ended is continued by the next one. An embedded store is
 * backed up before the first. New memories have their entries whatever the mark says.
 *
 * @module
 */
import { ApiError, messageOf } from "../lib/errors.ts";
import { DAY_MS } from "../lib/duration.ts";
import { NO_PARTITION, type BareId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { ALL_CONTENTS, CONTENTS_MARK, memories, meta, type MemoryRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Task } from "../tasks/task.ts";

const MEMORIES_PER_COMMIT = 500;

/**
 * Completes the entries before the first request; where they cannot be written, as on a full disk, the start succeeds, and the task that
 * this gives does it later.
 *
 * @param backUp - called before anything is changed that was there
 */
export async function completedContents(store: RecordStore, log: Log, backUp: () => Promise<unknown>): Promise<Task> {
  try {
    await completeContents(store, log, backUp);
  } catch (error) {
    if (!(error instanceof ApiError) && !(error instanceof NoBackup)) throw error;
    log.error("older memories are not found by on_duplicate yet: trying again until their index can be written", { reason: error.message });
  }
  return {
    name: "contents of memories",
    async run() {
      await completeContents(store, log, backUp);
      return DAY_MS;
    },
  };
}

/** Thrown where there is no backup of what is to be changed. */
class NoBackup extends Error {
  override name = "NoBackup";
}

async function completeContents(store: RecordStore, log: Log, backUp: () => Promise<unknown>): Promise<void> {
  let mark = await store.read((reader) => reader.get(meta, CONTENTS_MARK));
  if (mark === ALL_CONTENTS) return;
  if (mark === undefined && (await store.read((reader) => slice(reader, undefined).some(({ lacksEntry }) => lacksEntry)))) {
    log.info("memories get indexes by their content and of those that are past");
    try {
      await backUp();
    } catch (error) {
      throw new NoBackup(messageOf(error), { cause: error });
    }
  }
  for (;;) {
    const last = await store.read((reader) => keysBehind(reader, mark).at(-1));
    await store.commit(NO_PARTITION, (tx) => {
      for (const { key, row, lacksEntry } of slice(tx, mark, last)) if (lacksEntry && row !== undefined) tx.add(memories, key, row);
      tx.put(meta, CONTENTS_MARK, last ?? ALL_CONTENTS);
    });
    if (last === undefined) return;
    mark = last;
  }
}

function keysBehind(reader: Reader, mark: string | undefined): string[] {
  return reader.keys(memories, { from: mark === undefined ? "" : successor(mark), to: MAX_KEY, limit: MEMORIES_PER_COMMIT });
}

/** The next memories behind a mark, up to one; those that cannot be read have no content. */
function slice(
  reader: Reader,
  mark: string | undefined,
  last: string = MAX_KEY,
): { key: BareId; row: MemoryRow | undefined; lacksEntry: boolean }[] {
  const keys = keysBehind(reader, mark).filter((key) => key <= last);
  const { byContent, past } = memories.index;
  reader.ahead(memories, keys);
  return eachFetched(keys, (key) => {
    const row = unlessUnreadable(() => reader.get(memories, key));
    const lacks = (index: typeof past, of: MemoryRow) => index.entriesOf(key, of).some((entry) => !reader.has(index, entry));
    return { key, row, lacksEntry: row !== undefined && (lacks(byContent, row) || lacks(past, row)) };
  });
}
