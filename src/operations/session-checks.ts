/**
 * Rules that hold for sessions with their versions, turns and branches.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import { BARE_ID_LENGTH, withPrefix, type BareId } from "../lib/ids.ts";
import { toJson } from "../lib/json.ts";
import { shownCount } from "../sessions/branches.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { readable } from "../storage/bad-rows.ts";
import { MAX_KEY, versionKey } from "../storage/keys.ts";
import { branches, memories, removals, sessions, turns, versions, type AnyTable, type SessionRow } from "../storage/tables.ts";
import { keysOf, type Fault, type KeyCheck, type Looked } from "./check.ts";
import { stored } from "./records.ts";

/**
 * Versions of a session end with the current one, and begin with 0, after which old ones may have been removed; turns count
 * from 1 without gaps. The session's row says which version is the current one, and how many turns and memories there are.
 */
export function* checkSession(reader: Reader, { key: session }: Looked): Generator<Fault> {
  const row = readable(() => reader.get(sessions, session));
  if (row === undefined) return;
  const example = withPrefix("sess", session);
  const correct = (right: Partial<SessionRow>) => (tx: Tx) => tx.put(sessions, session, { ...row, ...right });

  let last: number | undefined;
  let lacksVersions = false;
  for (const key of keysOf(reader, versions, session)) {
    const version = fromBase62(key.slice(BARE_ID_LENGTH));
    if (last === undefined ? version !== 0 : last !== 0 && version !== last + 1) lacksVersions = true;
    last = version;
  }
  if (last === undefined)
    yield { what: "sessions: all versions of the state are missing", example, fix: (tx) => putEmptyState(tx, session, row) };
  else if (last !== row.version)
    yield { what: "sessions: the current version is not the last one", example, fix: correct({ version: last }) };
  if (lacksVersions) yield { what: "sessions: versions of the state are missing", example };

  const numberBefore = readable(() => firstNumber(reader, session) - 1) ?? Number.NaN;
  let ownCount = 0;
  let lastTurn: string | undefined;
  for (lastTurn of keysOf(reader, turns, session)) ownCount++;
  // Of a session that lacks turns nobody knows the count.
  const lastNumber = lastTurn === undefined ? numberBefore : numberIn(reader.get(stored(turns), lastTurn) ?? "");
  if (lastNumber === numberBefore + ownCount) {
    const branch = readable(() => lastBranch(reader, session));
    const shown = branch === undefined ? row : { ...row, branch };
    const turnCount = branch === undefined ? ownCount : readable(() => shownCount(reader, { key: session, row: shown }));
    const turnNumber = branch === undefined ? undefined : lastNumber;
    if (turnCount !== undefined && (turnCount !== row.turnCount || turnNumber !== row.turnNumber || branch !== row.branch))
      yield {
        what: "sessions: the count of turns is wrong",
        example,
        fix: correct({ turnCount, turnNumber, branch } as Partial<SessionRow>),
      };
  }

  let memoryCount = 0;
  for (const _ of keysOf(reader, memories.index.bySession, session)) memoryCount++;
  if (memoryCount !== row.memoryCount) yield { what: "sessions: the count of memories is wrong", example, fix: correct({ memoryCount }) };
  if (reader.has(removals, session))
    yield { what: "removals: notes of sessions that are there", example, fix: (tx) => tx.remove(removals, session) };
}

/** The turns of a session are numbered in their order. */
export function* checkTurn(reader: Reader, { key, text, before }: Looked): Generator<Fault> {
  const session = key.slice(0, BARE_ID_LENGTH);
  const isFirst = before?.key.startsWith(session) !== true;
  if (!isFirst && numberIn(text) === numberIn(before.text) + 1) return;
  // Of a session that is gone the first turns may be removed already, and others that no fork shows.
  if (!reader.has(sessions, session)) return;
  if (isFirst && numberIn(text) === readable(() => firstNumber(reader, session))) return;
  yield {
    what: "turns: missing, or numbered wrong",
    example: `${withPrefix("turn", key.slice(BARE_ID_LENGTH))} of ${withPrefix("sess", session)}`,
  };
}

/** The number of the first turn of its own that a session has or will have. */
function firstNumber(reader: Reader, session: BareId): number {
  return (reader.get(branches, versionKey(session, 0))?.number ?? 0) + 1;
}

/** The branch that is current; undefined for a session without rows of branches. */
function lastBranch(reader: Reader, session: BareId): number | undefined {
  const [key] = reader.keys(branches, { from: session, to: session + MAX_KEY, limit: 1, descending: true });
  return key === undefined ? undefined : fromBase62(key.slice(BARE_ID_LENGTH));
}

/**
 * Turns come before a branch that says so: those of its session, or of another one. Of a session that is gone forks may show the last of
 * them alone.
 */
export function* checkBranch(reader: Reader, { key }: Looked): Generator<Fault> {
  const { before } = readable(() => reader.get(branches, key)) ?? {};
  if (before === undefined || !reader.has(sessions, key.slice(0, BARE_ID_LENGTH))) return;
  const { session, until } = before;
  if (reader.keys(turns, { from: session, to: session + until, limit: 1 }).length > 0) return;
  yield { what: "branches: the turns that come before are missing", example: withPrefix("sess", key.slice(0, BARE_ID_LENGTH)) };
}

/** Reads the number of a stored turn where `turns.ts` writes it. */
function numberIn(text: string): number {
  return Number(/\n"session_id":"[^"]*","turn_number":(\d+)/.exec(text)?.[1]);
}

/** Nobody knows the state that was lost, and without one the session can neither be read nor end. */
function putEmptyState(tx: Tx, session: BareId, row: SessionRow): void {
  tx.put(sessions, session, { ...row, version: 0 });
  tx.put(versions, versionKey(session, 0), {
    id: session,
    createdAt: row.updatedAt,
    reasoning: "The state was lost; cairn doctor --fix put an empty one in its place.",
    actor: "system",
    source: "initial",
    body: toJson({}),
  });
}

/** Versions, turns and branches have a session, a note that they are left over from one, or a fork that shows them. */
export function sessionCheck(table: AnyTable): KeyCheck {
  return function* (reader, { key }) {
    const session = key.slice(0, BARE_ID_LENGTH);
    if (reader.has(sessions, session) || reader.has(removals, session)) return;
    const isIn = (index: AnyTable) => reader.keys(index, { from: session, to: session + MAX_KEY, limit: 1 }).length > 0;
    const { byParent, byMemorySession } = branches.index;
    const isShared = table !== versions && (isIn(byParent) || (table === branches && isIn(byMemorySession)));
    if (isShared) return;
    // The first row of a session stands for all of them.
    if (reader.keys(table, { from: session, to: key, limit: 1 }).length > 0) return;
    const example = withPrefix("sess", session);
    yield { what: `${table.name}: rows of a session that is gone`, example, fix: (tx) => tx.put(removals, session, { memories: false }) };
  };
}
