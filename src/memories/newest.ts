/**
 * The newest memories of a session or an owner, by when they happened.
 *
 * Ids are in the order of creation, and so is every other index. Where some memories were given a time of their own (`occurred_at`), these
 * come from the index by time, the others by their ids, and both are merged.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import type { BareId } from "../lib/ids.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { MAX_KEY, NUMBER_KEY_LENGTH, userTimeKey } from "../storage/keys.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { memories } from "../storage/tables.ts";
import { except, matches } from "../storage/walk.ts";
import { ENTRIES_LOOKED_AT, placeOfId } from "../turns/order.ts";
import { newestFiltered, passingOf, type Newest } from "./filtered.ts";
import type { MemoryScope } from "./memories.ts";
import type { Shown } from "./status.ts";
import { shownMemories } from "./validity.ts";

const ENTRIES_AT_ONCE = 100;

/** Prefixes in the index by time of the memories of a session, … */
export function timesOfSessions(sessions: readonly { readonly session: BareId }[]): string[] {
  return sessions.map(({ session }) => session);
}

/** … and of those of a user, and of nobody with an agent. */
export function timesOfOwners(userId: string | null, agentId: string | undefined): string[] {
  return [...(userId === null ? [] : [userTimeKey(userId, null)]), ...(agentId === undefined ? [] : [userTimeKey(null, agentId)])];
}

/** Up to `limit` of a scope, newest first. */
export async function newestMemories(store: RecordStore, scope: MemoryScope, limit: number, shown: Shown): Promise<Newest> {
  if (limit === 0) return { keys: [], isPartial: false };
  // At the same time: hardly any scope has one with a time of its own.
  const [timed, all] = await Promise.all([newestTimed(store, scope, limit, shown), newestCreated(store, scope, limit, shown)]);
  if (timed === undefined) return all;
  const { filter } = scope;
  const others = await newestCreated(store, { ...scope, filter: [...filter, except(memories.index.timed)] }, limit, shown);
  const places = [...timed.places, ...others.keys.map(placeOfId)].sort().reverse().slice(0, limit);
  return { keys: places.map(idOfPlace), isPartial: timed.isPartial || others.isPartial };
}

/** Up to `limit`, the last created first. Where many are passed over, as their session is being removed, others are answered in between. */
async function newestCreated(store: RecordStore, { filter, ranges }: MemoryScope, limit: number, shown: Shown): Promise<Newest> {
  const { rowFilter } = shown;
  if (rowFilter !== undefined) return newestFiltered(store, { postings: filter, shown: { ...shown, ranges, rowFilter } }, limit);
  const keys: BareId[] = [];
  for (let before: BareId | undefined; ;) {
    const { ids, next } = await store.walk(memories, filter, { before }, limit - keys.length);
    if (ids.length > 0) keys.push(...(await store.read((reader) => shownOf(reader, ids, { ...shown, ranges }))));
    if (keys.length === limit || next === undefined) return { keys, isPartial: false };
    before = next;
    await nextTurn();
  }
}

interface NewestTimed {
  /** Places in the index by time, newest first. */
  readonly places: readonly string[];
  readonly isPartial: boolean;
}

/** Up to `limit` of those with a time of their own, the last that happened first; undefined where the scope has none. */
async function newestTimed(store: RecordStore, scope: MemoryScope, limit: number, shown: Shown): Promise<NewestTimed | undefined> {
  const found: string[] = [];
  let before = MAX_KEY;
  for (let looked = 0; looked < ENTRIES_LOOKED_AT; looked += ENTRIES_AT_ONCE) {
    const places = await store.read((reader) => placesBefore(reader, scope.times ?? [], before));
    if (looked === 0 && places.length === 0) return undefined;
    const { ids, isCut } = await shownIn(store, scope, places.map(idOfPlace), shown);
    const passing = new Set(ids);
    found.push(...places.filter((place) => passing.has(idOfPlace(place))));
    if (found.length >= limit) return { places: found.slice(0, limit), isPartial: false };
    if (isCut || places.length < ENTRIES_AT_ONCE) return { places: found, isPartial: isCut };
    before = places.at(-1)!;
    await nextTurn();
  }
  return { places: found, isPartial: true };
}

async function shownIn(store: RecordStore, { filter, ranges }: MemoryScope, ids: readonly BareId[], shown: Shown) {
  const { rowFilter } = shown;
  const within = await store.read((reader) => {
    const found = eachFetched(ids, (id) => (matches(reader, filter, id) ? [id] : [])).flat();
    return rowFilter === undefined ? shownOf(reader, found, { ...shown, ranges }) : found;
  });
  if (rowFilter === undefined) return { ids: within, isCut: false };
  return passingOf(store, within, { ...shown, ranges, rowFilter });
}

function shownOf(reader: Reader, ids: readonly BareId[], shown: Shown): BareId[] {
  reader.ahead(memories, ids);
  const find = shownMemories(reader, shown);
  return ids.filter((id) => find(id) !== undefined);
}

/** Places of the next memories under any of some prefixes, newest first. */
function placesBefore(reader: Reader, prefixes: readonly string[], before: string): string[] {
  const { byTime } = memories.index;
  const span = (prefix: string) => ({ from: prefix, to: prefix + before, limit: ENTRIES_AT_ONCE, descending: true });
  return eachFetched(prefixes, (prefix) => reader.keys(byTime, span(prefix)).map((entry) => entry.slice(prefix.length)))
    .flat()
    .sort()
    .reverse()
    .slice(0, ENTRIES_AT_ONCE);
}

function idOfPlace(place: string): BareId {
  return place.slice(NUMBER_KEY_LENGTH);
}
