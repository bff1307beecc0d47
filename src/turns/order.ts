/**
 * The turns of a session in the order of their ids, or in that in which they happened.
 *
 * Both are the same unless some were given a time of their own (`occurred_at`). From the first of these on the turns of the session, and
 * of its forks, are in an index by time; those before it stay in the order of their ids.
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { isIn, shownRanges, type Range } from "../sessions/branches.ts";
import type { LiveSession } from "../sessions/live-session.ts";
import type { Reader } from "../storage/access.ts";
import { MAX_KEY, successor, NUMBER_KEY_LENGTH } from "../storage/keys.ts";
import { rowsOf } from "../storage/page.ts";
import { turns, type TurnRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";

interface KeyedTurn {
  readonly key: string;
  readonly row: TurnRow;
}

export interface Walk {
  /** Only turns behind it. */
  readonly after: string | undefined;
  readonly descending: boolean;
}

/** The spans of keys of the turns in ranges, in the order of a walk. */
export function* spansOf(
  ranges: Iterable<Range>,
  { after, descending }: Walk,
): Generator<{ from: string; to: string; descending: boolean }> {
  for (const { session, from, until } of descending ? ranges : [...ranges].reverse()) {
    const low = !descending && after !== undefined && after >= from ? successor(after) : from;
    const high = descending && after !== undefined && after < until ? after : until;
    if (low < high) yield { from: session + low, to: session + high, descending };
  }
}

/** The turns in ranges, which come newest first, as far as they can be read. */
export function* turnsIn(reader: Reader, ranges: Iterable<Range>, walk: Walk, atMost: number): Generator<KeyedTurn> {
  let left = atMost;
  for (const span of spansOf(ranges, walk)) {
    for (const turn of rowsOf(reader, turns, span, left)) {
      yield turn;
      left--;
    }
    if (left <= 0) return;
  }
}

/** The part of ranges before an id, or from it on. */
export function* cut(ranges: Iterable<Range>, at: string, side: "before" | "from"): Generator<Range> {
  for (const { session, from, until } of ranges) {
    const part = side === "before" ? { from, until: until < at ? until : at } : { from: from > at ? from : at, until };
    if (part.from < part.until) yield { session, ...part };
  }
}

/**
 * Entries of the index by time that are looked at for one context, or one piece of a timeline. Those of what is not shown are passed
 * over: a rollback may have hidden turns, or they came in a session after its fork.
 */
export const ENTRIES_LOOKED_AT = 10_000;
const ENTRIES_AT_ONCE = 100;

/** A turn in the index by time: where it stands there, and its key. */
interface Timed {
  readonly at: string;
  readonly key: string;
}

/** The turns of one session that are shown and have a time, in the order of it. */
export function* timedTurns(reader: Reader, session: BareId, ranges: readonly Range[], { after, descending }: Walk): Generator<Timed> {
  const { byTime } = turns.index;
  const own = ranges.filter((range) => range.session === session);
  let from = session + (descending || after === undefined ? "" : successor(after));
  let to = session + (descending && after !== undefined ? after : MAX_KEY);
  for (let looked = 0; looked < ENTRIES_LOOKED_AT; looked += ENTRIES_AT_ONCE) {
    const entries = reader.keys(byTime, { from, to, limit: ENTRIES_AT_ONCE, descending });
    for (const entry of entries) {
      const at = entry.slice(BARE_ID_LENGTH);
      if (own.some((range) => isIn(range, at.slice(NUMBER_KEY_LENGTH)))) yield { at, key: byTime.recordOf(entry) };
    }
    const last = entries.at(-1);
    if (last === undefined || entries.length < ENTRIES_AT_ONCE) return;
    if (descending) to = last;
    else from = successor(last);
  }
}

/** A stream of turns in the order of places, which sort by time and then by id. */
interface Head {
  readonly at: string;
  readonly key: string;
  readonly row: TurnRow;
}

/** The newest turns that are shown and can be read, newest first, read as they are asked for. */
export function* newestTurns(reader: Reader, session: LiveSession, after: BareId, limit: number): Generator<{ id: BareId; row: TurnRow }> {
  const { timedFrom } = session.row;
  const walk = { after: undefined, descending: true };
  const idOf = (key: string): BareId => key.slice(BARE_ID_LENGTH);
  if (timedFrom === undefined) {
    const ranges = after === "" ? shownRanges(reader, session) : cut(shownRanges(reader, session), successor(after), "from");
    for (const { key, row } of turnsIn(reader, ranges, walk, limit)) yield { id: idOf(key), row };
    return;
  }
  const ranges = [...shownRanges(reader, session)];
  const timed = [...cut(ranges, timedFrom, "from")];
  const streams = [
    untimedHeads(turnsIn(reader, cut(ranges, timedFrom, "before"), walk, limit)),
    ...new Set(timed.map((range) => range.session)).values().map((one) => timedHeads(reader, timedTurns(reader, one, timed, walk))),
  ];
  const heads = streams.map((stream) => stream.next().value);
  for (let left = limit; left > 0; left--) {
    const next = newestOf(heads);
    if (next === undefined) return;
    const { key, row } = heads[next]!;
    yield { id: idOf(key), row };
    heads[next] = streams[next]!.next().value;
  }
}

/** The place of the newest of some heads. */
function newestOf(heads: readonly (Head | undefined)[]): number | undefined {
  let newest: number | undefined;
  for (const [i, head] of heads.entries()) if (head !== undefined && (newest === undefined || head.at > heads[newest]!.at)) newest = i;
  return newest;
}

function* untimedHeads(rows: Iterable<KeyedTurn>): Generator<Head, undefined> {
  for (const { key, row } of rows) yield { at: placeOfId(key.slice(BARE_ID_LENGTH)), key, row };
}

function* timedHeads(reader: Reader, entries: Iterable<Timed>): Generator<Head, undefined> {
  for (const { at, key } of entries) {
    const row = unlessUnreadable(() => reader.get(turns, key));
    if (row !== undefined) yield { at, key, row };
  }
}

/** The place of a record whose time is that of its id. */
export function placeOfId(id: BareId): string {
  return id.slice(0, NUMBER_KEY_LENGTH) + id;
}
