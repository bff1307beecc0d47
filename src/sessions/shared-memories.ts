/**
 * Memories that a fork shows besides its own: those that the sessions before it had when it was made.
 *
 * They are not copied: a memory is one record, of one owner, wherever it is shown, so that an edit or a deletion of it is seen in the
 * fork, too. What the parent gets later is not the fork's. The row of the fork's first branch names the sessions, each with an id before
 * which their memories are: ids of all records of a user rise.
 *
 * @module
 */
import { BARE_ID_LENGTH, bare, type BareId } from "../lib/ids.ts";
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { MAX_KEY, versionKey } from "../storage/keys.ts";
import { branches, memories, removals, sessions, type BranchRow, type MemoryRow, type SessionRow } from "../storage/tables.ts";
import { posting, type Posting } from "../storage/walk.ts";
import type { LiveSession } from "./live-session.ts";

/** Memories of a session with ids before another one. */
export interface MemoryRange {
  readonly session: BareId;
  readonly until: string;
}

/** The row of the first branch, which a fork and a session that was deleted have for their memories. */
const firstBranch = (session: BareId): string => versionKey(session, 0);

/** Sessions whose memories a session shows: its own first, and those that it began with. */
export function shownMemoryRanges(reader: Reader, { key, row }: Pick<LiveSession, "key" | "row">): MemoryRange[] {
  const own = { session: key, until: MAX_KEY };
  const isFork = row.forkedFrom !== undefined && row.branch !== undefined;
  return [own, ...((isFork ? reader.get(branches, firstBranch(key))?.memories : undefined) ?? [])];
}

/** A posting that all of these pass, and perhaps later ones, which `isAmong` tells apart. */
export function memoriesIn(ranges: readonly MemoryRange[]): Posting {
  return posting(memories.index.bySession, ...ranges.map(({ session }) => session));
}

/** Checks whether a memory that passes is in the ranges. */
export function isAmong(ranges: readonly MemoryRange[], key: BareId, { sessionId }: Pick<MemoryRow, "sessionId">): boolean {
  const range = sessionId === undefined ? undefined : ranges.find(({ session }) => session === bare(sessionId));
  return range === undefined || key < range.until;
}

export type MemoriesOfFork = "none" | "session";

/**
 * Has a fork begin with the memories that its parent shows.
 *
 * @returns its row, which is written
 * @throws {ApiError} `invalid_request` for a fork of too many forks that each had memories of their own
 */
export function withMemoriesOfParent(tx: Tx, fork: LiveSession, parent: LiveSession, wanted: MemoriesOfFork): SessionRow {
  if (wanted === "none") return fork.row;
  const [, ...before] = shownMemoryRanges(tx, parent);
  const ranges = parent.row.memoryCount === 0 ? before : [{ session: parent.key, until: fork.key }, ...before];
  if (ranges.length === 0) return fork.row;
  if (ranges.length > LIMITS.forkMemorySessionsMax)
    throw new ApiError(
      "invalid_request",
      `memories can be those of at most ${LIMITS.forkMemorySessionsMax} sessions, one forked from another.`,
      {
        param: "memories",
      },
    );
  const key = firstBranch(fork.key);
  const begun: BranchRow = tx.get(branches, key) ?? { start: fork.key, count: 0, number: 0 };
  const { turnNumber = 0 } = fork.row;
  const row: SessionRow = { ...fork.row, branch: 0, turnNumber };
  tx.put(branches, key, { ...begun, memories: ranges });
  tx.put(sessions, fork.key, row);
  return row;
}

const sharedSpan = (session: BareId) => ({ from: session, to: session + MAX_KEY, limit: 1, descending: true });

/** Has what `sharedMemoriesEnd` reads come with the next trip to a database. */
export function sharedMemoriesAhead(reader: Reader, session: BareId): void {
  reader.aheadOf([branches.index.byMemorySession], sharedSpan(session));
}

/** Memories of a session before this id are shown by forks; undefined where none are. */
export function sharedMemoriesEnd(reader: Reader, session: BareId): BareId | undefined {
  const [last] = reader.keys(branches.index.byMemorySession, sharedSpan(session));
  return last?.slice(BARE_ID_LENGTH, 2 * BARE_ID_LENGTH);
}

/** Notes of a deleted session that forks show memories of it still: once none does, these go. */
export function trackDeletion(tx: Tx, session: BareId): void {
  const key = firstBranch(session);
  const row = tx.get(branches, key) ?? { start: session, count: 0, number: 0 };
  if (row.isDeleted !== true) tx.put(branches, key, { ...row, isDeleted: true });
}

/** Looks again at what is left of a deleted session, since one that showed something of it goes. */
export function removeAgain(tx: Tx, session: BareId): void {
  if (tx.has(sessions, session) || tx.has(removals, session)) return;
  tx.put(removals, session, { memories: tx.get(branches, firstBranch(session))?.isDeleted === true });
}
