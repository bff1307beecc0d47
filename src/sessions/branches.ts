/**
 * Turns of a session that are shown.
 *
 * The turns that a version of the state has seen are a path in a tree: each comes after the one that was the last to be shown when it
 * was logged. A rollback that hides turns goes back on that path, so that the next turn grows from there; a fork grows from a turn of
 * another session. A *branch* begins at each of these: it has the turns of its session from its start on, and before them come those
 * of another branch up to an id. So nothing is marked, moved or copied, however many turns there are, and a later rollback finds the
 * other paths as they were. A session without rollbacks that hide, which is no fork with turns, has no row for its only branch.
 *
 * All records of a user have ids of one source: ids rise along a path, also from a session to its forks.
 *
 * @module
 */
import { BARE_ID_LENGTH, partitionOf, type BareId } from "../lib/ids.ts";
import { fromBase62 } from "../lib/base62.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { MAX_KEY, successor, versionKey } from "../storage/keys.ts";
import { branches, sessions, turns, versionHeads, type BranchRow, type SessionRow } from "../storage/tables.ts";
import type { LiveSession } from "./live-session.ts";

/** Turns of a session with ids from one on and before another. */
export interface Range {
  readonly session: BareId;
  readonly from: BareId;
  readonly until: string;
}

/** A place on a path: the turns of a branch before an id, and all before them from another id on. */
interface End {
  readonly session: BareId;
  readonly branch: number;
  readonly until: string;
  readonly floor: BareId | "";
}

/** Substitute for the row of the only branch of a session. */
function branchAt(reader: Reader, session: BareId, branch: number): BranchRow {
  return reader.get(branches, versionKey(session, branch)) ?? { start: session, count: 0, number: 0 };
}

/** The branches on a path from its end on, each with the ids of it that are on the path. */
function* pathFrom(reader: Reader, end: End): Generator<{ end: End; row: BranchRow; range: Range }, void, undefined> {
  for (let at: End | undefined = end; at !== undefined;) {
    const row: BranchRow = branchAt(reader, at.session, at.branch);
    const from = row.start > at.floor ? row.start : at.floor;
    yield { end: at, row, range: { session: at.session, from, until: at.until } };
    const { before, from: first = "" } = row;
    const floor: BareId | "" = first > at.floor ? first : at.floor;
    at = before === undefined || before.until <= floor ? undefined : { ...before, floor };
  }
}

function presentEnd({ key, row }: Pick<LiveSession, "key" | "row">): End {
  return { session: key, branch: row.branch ?? 0, until: MAX_KEY, floor: "" };
}

/** The ranges of the turns that are shown, newest first, read as they are asked for. */
export function* shownRanges(reader: Reader, session: LiveSession): Generator<Range, void, undefined> {
  if (session.row.branch === undefined) yield { session: session.key, from: session.key, until: MAX_KEY };
  else for (const { range } of pathFrom(reader, presentEnd(session))) if (range.from < range.until) yield range;
}

/** The same with all that the session has hidden. */
export function* allRanges(reader: Reader, session: LiveSession): Generator<Range, void, undefined> {
  const { key, row } = session;
  yield { session: key, from: key, until: MAX_KEY };
  const first = row.branch === undefined ? undefined : reader.get(branches, versionKey(key, 0));
  if (first?.before === undefined) return;
  for (const { range } of pathFrom(reader, { ...first.before, floor: first.from ?? "" })) if (range.from < range.until) yield range;
}

/** Checks whether a turn is in a range. */
export function isIn({ from, until }: Range, id: BareId): boolean {
  return id >= from && id < until;
}

/** Time of the rollback that has hidden a turn of a session; undefined for one that is shown. */
export function hiddenAt(reader: Reader, { key, row }: LiveSession, id: BareId): number | undefined {
  if (row.branch === undefined || isOnPath(reader, presentEnd({ key, row }), id)) return undefined;
  // It was shown when it was logged: so one of the rollbacks since was the last before which it was.
  for (let { branch } = row; ;) {
    const { at, was, start } = branchAt(reader, key, branch);
    if (was === undefined || isOnPath(reader, { session: key, branch: was, until: start, floor: "" }, id)) return at;
    branch = was;
  }
}

/** Checks whether a turn of a session is on a path that ends there. */
function isOnPath(reader: Reader, end: End, id: BareId): boolean {
  for (const { row, range } of pathFrom(reader, end)) {
    if (range.session !== end.session || id >= range.until) return false;
    if (id >= row.start) return id >= range.from;
  }
  return false;
}

/** Records of a session with ids from this one on are later than a version that is not the current one. */
function endOfVersion(reader: Reader, session: BareId, version: number): BareId {
  const next = reader.get(versionHeads, versionKey(session, version + 1));
  // Of a Cairn that did not write it down nobody knows: nothing counts as of that version then.
  return next?.id ?? reader.get(versionHeads, versionKey(session, version))?.until ?? session;
}

/** End of the turns of a version that were shown while it was current. */
function endAt(reader: Reader, { key, row }: LiveSession, version: number, now: BareId): End {
  const until = version === row.version ? now : endOfVersion(reader, key, version);
  if (row.branch === undefined) return { session: key, branch: 0, until, floor: "" };
  const [last] = reader.keys(branches, { from: key, to: successor(versionKey(key, version)), limit: 1, descending: true });
  return { session: key, branch: last === undefined ? 0 : fromBase62(last.slice(BARE_ID_LENGTH)), until, floor: "" };
}

/** The last turn of a path, where it has any. */
interface Last {
  readonly id: BareId;
  readonly number: number;
  /** Number of turns of the path. */
  readonly count: number;
  readonly end: End;
}

function lastOf(reader: Reader, from: End): Last | undefined {
  let count: number | undefined;
  for (const { end, row, range } of pathFrom(reader, from)) {
    const [key] = turnsIn(reader, range, { limit: 1, descending: true });
    if (key !== undefined) {
      const number = numberOf(reader, key);
      return { id: key.slice(BARE_ID_LENGTH), number, count: count ?? row.count + number - row.number, end };
    }
    count ??= row.count;
  }
  return undefined;
}

/** Keys of the turns in a range. */
function turnsIn(reader: Reader, { session, from, until }: Range, how: { limit: number; descending: boolean }): string[] {
  return from < until ? reader.keys(turns, { from: session + from, to: session + until, ...how }) : [];
}

/** The number of a turn, which `turns.ts` writes there. */
function numberOf(reader: Reader, key: string): number {
  return Number(/^"session_id":"[^"]*","turn_number":(\d+)/.exec(reader.get(turns, key)?.rest ?? "")?.[1]);
}

/** Part of a branch's row about what comes before it. */
function partBefore(last: Last | undefined, floor: BareId | "" = last?.end.floor ?? ""): Pick<BranchRow, "before" | "from"> {
  if (last === undefined) return {};
  const { session, branch, until } = last.end;
  return { before: { session, branch, until }, ...(floor === "" ? {} : { from: floor }) };
}

/** Begins a branch after the turns that were shown while a version was current, unless they are those that are shown now. */
export function withTurnsOf(tx: Tx, session: LiveSession, version: number): LiveSession {
  const { id, key, row } = session;
  const start = tx.bareId(partitionOf(id));
  const then = lastOf(tx, endAt(tx, session, version, start));
  const now = lastOf(tx, { ...presentEnd(session), until: start });
  if (then?.id === now?.id) return session;
  const number = row.turnNumber ?? row.turnCount;
  const count = then?.count ?? 0;
  const branch = row.version + 1;
  tx.add(branches, versionKey(key, branch), { start, ...partBefore(then), count, number, at: tx.now, was: row.branch ?? 0 });
  return { id, key, row: { ...row, branch, turnCount: count, turnNumber: number } };
}

export type TurnsOfFork = number | "none" | "all";

/** Has a fork begin with turns of its parent. @returns its row, which is written */
export function withTurnsOfParent(tx: Tx, fork: LiveSession, parent: LiveSession, version: number, wanted: TurnsOfFork): SessionRow {
  if (wanted === "none" || wanted === 0) return fork.row;
  const end = endAt(tx, parent, version, fork.key);
  const last = lastOf(tx, end);
  if (last === undefined) return fork.row;
  const newest = wanted === "all" || wanted >= last.count ? undefined : newestOf(tx, last.end, wanted);
  const count = newest === undefined ? last.count : (wanted as number);
  const { timedFrom } = parent.row;
  const row: SessionRow = {
    ...fork.row,
    branch: 0,
    turnCount: count,
    turnNumber: last.number,
    ...(timedFrom === undefined || timedFrom > last.id ? {} : { timedFrom }),
  };
  tx.add(branches, versionKey(fork.key, 0), { start: fork.key, ...partBefore(last, newest), count, number: last.number });
  tx.put(sessions, fork.key, row);
  return row;
}

/** The id of the oldest of the newest turns of a path that has more. */
function newestOf(reader: Reader, end: End, count: number): BareId {
  let left = count;
  let oldest: BareId = end.session;
  for (const { range } of pathFrom(reader, end)) {
    const keys = turnsIn(reader, range, { limit: left, descending: true });
    oldest = keys.at(-1)?.slice(BARE_ID_LENGTH) ?? oldest;
    left -= keys.length;
    if (left === 0) break;
  }
  return oldest;
}

/** Number of its own turns that a session has logged. */
export function ownTurnCount(reader: Reader, key: BareId, { branch, turnCount, turnNumber = turnCount }: SessionRow): number {
  return branch === undefined ? turnCount : turnNumber - branchAt(reader, key, 0).number;
}

/** Number of turns that are shown, as the rows of turns and branches have it. */
export function shownCount(reader: Reader, session: Pick<LiveSession, "key" | "row">): number {
  return lastOf(reader, presentEnd(session))?.count ?? 0;
}

/** More referring branches than that are not looked at for the first turn that they show. */
const REFERENCES_READ = 100;

/** Turns of a session, which may be deleted, that branches of other sessions show; undefined where they show none. */
export function sharedRange(reader: Reader, session: BareId): Range | undefined {
  const { byParent } = branches.index;
  const span = { from: session, to: session + MAX_KEY, limit: REFERENCES_READ, descending: true };
  const entries = reader.keys(byParent, span);
  const [last] = entries;
  if (last === undefined) return undefined;
  const until = last.slice(BARE_ID_LENGTH, 2 * BARE_ID_LENGTH);
  if (entries.length === REFERENCES_READ) return { session, from: session, until };
  const firsts = entries.map((entry) => reader.get(branches, byParent.recordOf(entry))?.from ?? session);
  return { session, from: firsts.reduce((one, other) => (one < other ? one : other)), until };
}

/** The other sessions whose turns or memories a session shows by a row. */
export function parentsOf(key: string, { before, memories = [] }: BranchRow): BareId[] {
  const all = new Set([...(before === undefined ? [] : [before.session]), ...memories.map(({ session }) => session)]);
  all.delete(key.slice(0, BARE_ID_LENGTH));
  return [...all];
}
