/**
 * Among which turns a search or a list looks, and which of them a session shows.
 *
 * @module
 */
import { BARE_ID_LENGTH, withPrefix, type BareId } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import { hiddenAt, isIn, shownRanges, type Range } from "../sessions/branches.ts";
import { findLiveSession, liveSession, type LiveSession } from "../sessions/live-session.ts";
import type { Reader } from "../storage/access.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { MAX_KEY, successor, turnKey } from "../storage/keys.ts";
import { narrowed, ownedPostings, type Owner } from "../storage/owner.ts";
import { branches, indexedTurns, turns, type TurnRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { posting, type Filter } from "../storage/walk.ts";
import { shownTurns } from "./shown.ts";

export interface TurnFilter {
  readonly sessionId?: string | undefined;
  readonly userId?: string | undefined;
  readonly agentId?: string | undefined;
}

export interface TurnScope {
  readonly filter: Filter;
  /** The session whose turns they are, where one was named, and where they stand. */
  readonly session: LiveSession | undefined;
  readonly ranges: readonly Range[];
}

/**
 * Returns what the turns pass that are asked for, and perhaps some that are not shown; undefined when none can be the owner's. The store is
 * read for a session alone.
 *
 * @throws {ApiError} `session_not_found` when the filter names no live session
 */
export async function scopeOf(store: Pick<RecordStore, "read">, owner: Owner, filter: TurnFilter): Promise<TurnScope | undefined> {
  const narrow = narrowed(owner, filter);
  const owned = narrow && ownedPostings(narrow, indexedTurns.index);
  const { sessionId } = filter;
  if (sessionId === undefined) return owned && { filter: owned, session: undefined, ranges: [] };
  return store.read((reader) => {
    const session = liveSession(reader, owner, sessionId);
    const ranges = [...shownRanges(reader, session)];
    const of = ranges.map((range) => range.session);
    return owned && { filter: [posting(indexedTurns.index.bySession, ...of, session.key), ...owned], session, ranges };
  });
}

export interface ShownTurn {
  readonly row: TurnRow;
  readonly json: JsonText;
  /** The session that shows it. */
  readonly session: LiveSession;
}

/** Sessions that show a turn of another one which are looked at for one that is there. */
const FORKS_LOOKED_AT = 20;

/**
 * Reads turns that are shown, as the session of a filter shows them, or else their own, or a fork of it.
 *
 * @param ranges - where a turn of the session stood a moment ago: it is read from there together with the session
 */
export function shownTurnReader(
  reader: Reader,
  owner: Owner,
  { sessionId }: TurnFilter,
  ranges: readonly Range[],
): (turn: BareId) => ShownTurn | undefined {
  if (sessionId === undefined) return (turn) => unlessUnreadable(() => shownAnywhere(reader, owner, turn));
  const ofSession = () => {
    const session = liveSession(reader, owner, sessionId);
    return { session, ranges: [...shownRanges(reader, session)], shown: shownTurns(reader, session) };
  };
  let known: ReturnType<typeof ofSession> | undefined;
  return (turn) =>
    unlessUnreadable(() => {
      const key = keyIn(ranges, turn);
      if (key !== undefined) reader.ahead(turns, [key]);
      const { session, ranges: now, shown } = (known ??= ofSession());
      const present = keyIn(now, turn);
      const row = present === undefined ? undefined : reader.get(turns, present);
      return row && { row, json: shown(present!, row), session };
    });
}

/** The key of a turn within ranges of sessions, each of which has other turns. */
function keyIn(ranges: readonly Range[], turn: BareId): string | undefined {
  const range = ranges.find((one) => isIn(one, turn));
  return range && turnKey(range.session, turn);
}

function shownAnywhere(reader: Reader, owner: Owner, turn: BareId): ShownTurn | undefined {
  const indexed = reader.get(indexedTurns, turn);
  if (indexed === undefined) return undefined;
  const key = turnKey(indexed.session, turn);
  reader.ahead(turns, [key]);
  const session = sessionThatShows(reader, owner, indexed.session, turn);
  const row = session && reader.get(turns, key);
  return session && row && { row, json: shownTurns(reader, session)(key, row), session };
}

function sessionThatShows(reader: Reader, owner: Owner, key: BareId, turn: BareId): LiveSession | undefined {
  const own = findLiveSession(reader, owner, withPrefix("sess", key));
  if (own !== undefined && hiddenAt(reader, own, turn) === undefined) return own;
  const { byParent } = branches.index;
  const entries = reader.keys(byParent, { from: key + successor(turn), to: key + MAX_KEY, limit: FORKS_LOOKED_AT });
  for (const fork of new Set(entries.map((entry) => byParent.recordOf(entry).slice(0, BARE_ID_LENGTH)))) {
    const session = findLiveSession(reader, owner, withPrefix("sess", fork));
    if (session === undefined) continue;
    for (const range of shownRanges(reader, session)) if (range.session === key && isIn(range, turn)) return session;
  }
  return undefined;
}
