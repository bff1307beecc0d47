/**
 * Indexes the newest turns that a search is about, while the background has not come to all of them.
 *
 * So the first search of a session finds its turns at once, also in a large store. A search looks at a bounded number of turns; where there
 * are more, it says that it is partial.
 *
 * @module
 */
import { BARE_ID_LENGTH, withPrefix, type BareId } from "../lib/ids.ts";
import { shownRanges, type Range } from "../sessions/branches.ts";
import { eachRead, type Reader } from "../storage/access.ts";
import { narrowed, ownedPostings, type Owner } from "../storage/owner.ts";
import { indexedTurns, sessions, turns } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { indexTurns, isIndexedFor } from "./index-task.ts";
import type { TurnDeps } from "./indexed-turns.ts";
import type { TurnFilter, TurnScope } from "./scope.ts";

/** Turns that are looked at, which takes some milliseconds, and indexed where they are not, which takes some tenths of a second. */
const TURNS_MAX = 1_000;
const SESSIONS_AT_ONCE = 100;

/** @returns true if every turn that the search is about is indexed */
export async function catchUp(deps: TurnDeps, owner: Owner, filter: TurnFilter, scope: TurnScope): Promise<boolean> {
  const { store, settings, turnSearches } = deps;
  const index = settings.values.index_turns;
  if (turnSearches.isReady(index)) return true;
  if (index === "words") await turnSearches.began(store);
  if (await store.read((reader) => isIndexedFor(reader, index))) {
    turnSearches.becameReady(index);
    return true;
  }
  return turnSearches.inTurn(async () => {
    let left = TURNS_MAX;
    for await (const ranges of scope.session === undefined ? rangesOf(deps, owner, filter) : [scope.ranges]) {
      const keys = await store.read((reader) => newestKeys(reader, ranges, left + 1));
      const missing = await store.read((reader) => withoutIndex(reader, keys.slice(0, left)));
      await indexTurns(deps, index, missing);
      if (keys.length > left) return false;
      left -= keys.length;
    }
    return true;
  });
}

/** Ranges of turns that the sessions of an owner show, the newest sessions first. */
async function* rangesOf({ store }: TurnDeps, owner: Owner, filter: TurnFilter): AsyncGenerator<readonly Range[]> {
  const narrow = narrowed(owner, filter);
  if (narrow === undefined) return;
  const postings = ownedPostings(narrow, sessions.index);
  for (let before: BareId | undefined, isEnd = false; !isEnd;) {
    const { ids, next } = await store.walk(sessions, postings, { before }, SESSIONS_AT_ONCE);
    for await (const ranges of eachRead(store, ids, (reader) => (session) => rangesOfSession(reader, session))) yield ranges.flat();
    before = next;
    isEnd = next === undefined;
  }
}

function rangesOfSession(reader: Reader, key: BareId): Range[] {
  const row = unlessUnreadable(() => reader.get(sessions, key));
  return row === undefined ? [] : [...shownRanges(reader, { id: withPrefix("sess", key), key, row })];
}

function newestKeys(reader: Reader, ranges: readonly Range[], limit: number): string[] {
  const spans = ranges.map(({ session, from, until }) => ({ from: session + from, to: session + until, limit, descending: true }));
  for (const span of spans) reader.aheadOf([turns], span);
  const keys: string[] = [];
  for (const span of spans) {
    keys.push(...reader.keys(turns, span).slice(0, limit - keys.length));
    if (keys.length === limit) break;
  }
  return keys;
}

function withoutIndex(reader: Reader, keys: readonly string[]): string[] {
  reader.ahead(
    indexedTurns,
    keys.map((key) => key.slice(BARE_ID_LENGTH)),
  );
  return keys.filter((key) => !reader.has(indexedTurns, key.slice(BARE_ID_LENGTH)));
}
