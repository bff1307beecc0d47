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
  /** The session whose turns they are, where one was named. */
  readonly session: LiveSession | undefined;
}

/**
 * Returns what the turns pass that are asked for, and perhaps some that are not shown; undefined when none can be the owner's.
 *
 * @throws {ApiError} `session_not_found` when the filter names no live session
 */
export function scopeOf(reader: Reader, owner: Owner, filter: TurnFilter): TurnScope | undefined {
  const session = filter.sessionId === undefined ? undefined : liveSession(reader, owner, filter.sessionId);
  const narrow = narrowed(owner, filter);
  if (narrow === undefined) return undefined;
  const owned = ownedPostings(narrow, indexedTurns.index);
  if (session === undefined) return { filter: owned, session };
  const of = Array.from(shownRanges(reader, session), (range) => range.session);
  return { filter: [posting(indexedTurns.index.bySession, ...of, session.key), ...owned], session };
}

interface ShownTurn {
  readonly row: TurnRow;
  readonly json: JsonText;
}

/** Sessions that show a turn of another one which are looked at for one that is there. */
const FORKS_LOOKED_AT = 20;

/** Reads turns that are shown, as the session of a filter shows them, or else their own, or a fork of it. */
export function shownTurnReader(reader: Reader, owner: Owner, { sessionId }: TurnFilter): (turn: BareId) => ShownTurn | undefined {
  const asked = sessionId === undefined ? undefined : liveSession(reader, owner, sessionId);
  const ranges = asked && [...shownRanges(reader, asked)];
  return (turn) =>
    unlessUnreadable(() => {
      const indexed = reader.get(indexedTurns, turn);
      if (indexed === undefined) return undefined;
      const { session: key } = indexed;
      const isShown = (range: Range) => range.session === key && isIn(range, turn);
      const session = asked === undefined ? sessionThatShows(reader, owner, key, turn) : ranges!.some(isShown) ? asked : undefined;
      const row = session && reader.get(turns, turnKey(key, turn));
      return session && row && { row, json: shownTurns(reader, session)(turnKey(key, turn), row) };
    });
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
