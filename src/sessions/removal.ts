/**
 * Removal of what belongs to a session: its row at once, then its states, turns, retrievals and documents, and memories
 * unless it expired.
 *
 * A session can hold more than one commit should remove. So the row goes first, in the commit of the change, with as
 * many of its records as fit; a note in `removals` says that there are more, and the task takes them in pieces. Readers
 * see nothing of them meanwhile: states, turns, retrievals and documents hang on the row, and of memories `isHiddenWithSession` says it.
 *
 * Turns and memories that forks show stay, without a session and without a note, until the last of these forks is removed, which writes the
 * note again.
 *
 * @module
 */
import { bare, BARE_ID_LENGTH, type BareId, type SessionId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { eachFetched, FIRST, type Reader, type Tx } from "../storage/access.ts";
import { BadRows, readable } from "../storage/bad-rows.ts";
import { MEMORIES, TURNS } from "../storage/collections.ts";
import { DocumentWriter } from "../storage/document-records.ts";
import { MAX_KEY } from "../storage/keys.ts";
import { isAnyErased } from "../storage/erasure.ts";
import { removeRecord } from "../storage/memory-records.ts";
import {
  branches,
  documents,
  indexedTurns,
  memories,
  removals,
  retrievals,
  sessions,
  turns,
  versions,
  type AnyTable,
  type RemovalRow,
} from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Deps } from "../traces/record.ts";
import { parentsOf, sharedRange, type Range } from "./branches.ts";
import { trackDeletion, removeAgain, sharedMemoriesAhead, sharedMemoriesEnd } from "./shared-memories.ts";
import type { Task } from "../tasks/task.ts";

const RECORDS_PER_COMMIT = 200;
const IDLE_MS = 1_000;

/**
 * Removes the session's row and what fits of its records; the caller has written the trace. What comes
 * after a memory that cannot be read is left to the task.
 */
export function removeSession(tx: Tx, session: BareId, removal: RemovalRow): void {
  tx.remove(sessions, session);
  if (readable(() => removeSomeRecords(tx, session, removal)) !== true) tx.put(removals, session, removal);
}

/** Checks whether a memory is gone with its session, although its record may still be there. */
export function isHiddenWithSession(reader: Reader, memory: BareId, sessionId: SessionId | undefined): boolean {
  const session = sessionId === undefined ? undefined : bare(sessionId);
  const removal = session === undefined ? undefined : reader.get(removals, session);
  if (session === undefined || removal?.memories !== true) return false;
  const end = removal.ofUser === true ? undefined : sharedMemoriesEnd(reader, session);
  return end === undefined || memory >= end;
}

/** Checks whether there may be such memories at all, or those of a user who is being erased. */
export function isAnyMemoryHidden(reader: Reader): boolean {
  return !reader.isEmpty(removals) || isAnyErased(reader);
}

/** Takes the next piece of what removed sessions left. */
export function sessionRemoval({ store }: Deps, log: Log): Task {
  const name = "session removal";
  const bad = new BadRows(store, log, name);
  return {
    name,
    async run() {
      const [session] = await bad.keysOfOthers(removals, { ...FIRST, limit: 1 });
      if (session === undefined) return IDLE_MS;
      await bad.commit((tx, isolate) => isolate(session, () => void removeLeftovers(tx, session)));
      return 0;
    },
  };
}

/** Takes the next piece of what a removed session left. @returns whether nothing is left */
export function removeLeftovers(tx: Tx, session: BareId): boolean {
  const removal = tx.get(removals, session);
  const isAll = removal === undefined || removeSomeRecords(tx, session, removal);
  if (isAll) tx.remove(removals, session);
  return isAll;
}

/** Tables whose keys begin with the session's, for all that is a session's. */
const OWNED = [versions, turns, branches, retrievals.index.bySession, memories.index.bySession, documents.index.bySession];
const OWNED_BUT_MEMORIES = OWNED.filter((table) => table !== memories.index.bySession);

/** The keys of the turns of a session but those in a range. */
function outside(session: BareId, shared: Range | undefined): { from: string; until: string }[] {
  const all = { from: session, until: session + MAX_KEY };
  if (shared === undefined) return [all];
  return [
    { ...all, from: session + shared.until },
    { ...all, until: session + shared.from },
  ];
}

/** Removes what it showed of another session, too, where that one is gone and nobody else shows it. */
function removeBranch(tx: Tx, key: string): void {
  const row = tx.get(branches, key);
  tx.remove(branches, key);
  for (const parent of row === undefined ? [] : parentsOf(key, row)) removeAgain(tx, parent);
}

/** One that cannot be read goes, too: its entries lead nowhere then. */
function removeTurn(tx: Tx, key: string): void {
  const isReadable = unlessUnreadable(() => tx.get(turns, key)) !== undefined;
  tx.remove(isReadable ? turns : { ...turns, indexes: [] }, key);
  removeRecord(tx, TURNS, key.slice(BARE_ID_LENGTH));
}

/** @returns whether nothing is left */
function removeSomeRecords(tx: Tx, session: BareId, removal: RemovalRow): boolean {
  let budget = RECORDS_PER_COMMIT;
  if (removal.memories) sharedMemoriesAhead(tx, session);
  tx.aheadOf(removal.memories ? OWNED : OWNED_BUT_MEMORIES, { from: session, to: session + MAX_KEY, limit: budget });
  const owned = (table: AnyTable, from = "") => {
    const keys = budget === 0 ? [] : tx.keys(table, { from: session + from, to: session + MAX_KEY, limit: budget });
    budget -= keys.length;
    return keys;
  };
  for (const key of owned(versions)) tx.remove(versions, key);
  const shared = sharedRange(tx, session);
  for (const { from, until } of outside(session, shared)) {
    const keys = budget === 0 ? [] : tx.keys(turns, { from, to: until, limit: budget });
    budget -= keys.length;
    tx.ahead(turns, keys);
    tx.ahead(
      indexedTurns,
      keys.map((key) => key.slice(session.length)),
    );
    eachFetched(keys, (key) => removeTurn(tx, key));
  }
  if (shared === undefined) for (const key of owned(branches)) removeBranch(tx, key);
  for (const key of owned(retrievals.index.bySession)) tx.remove(retrievals, key.slice(session.length));
  if (removal.memories) {
    const shown = removal.ofUser === true ? undefined : sharedMemoriesEnd(tx, session);
    if (shown !== undefined) trackDeletion(tx, session);
    const keys = owned(memories.index.bySession, shown).map((entry) => entry.slice(session.length));
    tx.ahead(memories, keys);
    eachFetched(keys, (key) => removeRecord(tx, MEMORIES, key));
  }
  const writer = new DocumentWriter(tx);
  const { bySession } = documents.index;
  const keys = owned(bySession).map((entry) => bySession.recordOf(entry));
  tx.ahead(documents, keys);
  for (const key of keys) writer.remove(key);
  writer.flush();
  return budget > 0;
}
