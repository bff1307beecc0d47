/**
 * Events of a session in one list: its turns, the versions of its state with what changed in each, its memories, what was
 * found for a query, and the sessions that were forked from it.
 *
 * All of these have ids of one source, so that merging them by id gives the order in which they were committed, and an id is a
 * cursor for all. Turns and memories that were given a time of their own stand there instead (`turns/order.ts`, `memories/newest.ts`).
 * It owns no data.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import { bare, BARE_ID_LENGTH, withPrefix, type BareId, type Id } from "../lib/ids.ts";
import { jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import { hasEnded, memoryJson } from "../memories/record.ts";
import { looksOfRetrieval, placeOfSession, retrievalJson, retrievalOf, type RetrievalDeps } from "../retrievals/retrievals.ts";
import { allRanges, isIn, shownRanges, type Range } from "../sessions/branches.ts";
import { isLive, liveSession, type LiveSession } from "../sessions/live-session.ts";
import { shownMemoryRanges, type MemoryRange } from "../sessions/shared-memories.ts";
import { changedVersion, versionsInOrder } from "../sessions/versions.ts";
import { eachFetched, eachRead, type Reader, type Span } from "../storage/access.ts";
import { MAX_KEY, successor, NUMBER_KEY_LENGTH, timeKey, turnKey } from "../storage/keys.ts";
import type { Owner } from "../storage/owner.ts";
import { pageOfBatches, type PageEntry, type Page } from "../storage/page.ts";
import { memories, provider, PROVIDER_KEY, retrievals, sessions, turns, type AnyTable } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { cut, ENTRIES_LOOKED_AT, placeOfId, spansOf, timedTurns } from "../turns/order.ts";
import { shownTurns } from "../turns/shown.ts";
import { TIMELINE_KINDS } from "./kinds.ts";

type Kind = (typeof TIMELINE_KINDS)[number];

export interface TimelinePage extends Page<Id<"entry">> {
  kinds?: readonly Kind[] | undefined;
  order: "asc" | "desc";
  status: "current" | "all";
}

/** A record in the timeline. */
interface TimelinePosition {
  readonly kind: Kind;
  readonly id: BareId;
  /** Sorts by time, then by id. */
  readonly at: string;
  /** The number of a version. */
  readonly version?: number;
  /** The key of a turn, which may be of another session. */
  readonly key?: string;
}

/** Start and direction of a walk along one kind of record. */
interface Walk {
  /** The place before the first one. */
  readonly after: string | undefined;
  readonly descending: boolean;
  readonly status: "current" | "all";
  /** Number that is found at once. */
  readonly atOnce: number;
}

/** At least this many places are found in a scope, unless the page takes fewer; a few at a time are read, so that others are answered. */
const PLACES_AT_ONCE_MIN = 25;
/** Reading and comparing this many characters takes as long as a look at an index. */
const CHARACTERS_PER_LOOK = 200;

/** @throws {ApiError} `session_not_found` */
export async function getTimeline(
  { store, listProbesMax, retrievals: log }: RetrievalDeps,
  owner: Owner,
  id: string,
  { kinds = TIMELINE_KINDS, order, status, limit, startingAfter }: TimelinePage,
): Promise<JsonText> {
  const descending = order === "desc";
  if (kinds.includes("retrieval")) await log.caughtUp();
  async function* found(): AsyncGenerator<PageEntry[], void, undefined> {
    // Comparing two versions of a large state takes tens of milliseconds, and a page that is full with that never yields.
    await nextTurn();
    let after: string | undefined;
    for (;;) {
      const { places, isEnd } = await store.read((reader) => {
        const session = liveSession(reader, owner, id);
        const atOnce = Math.min(limit + 1, Math.max(PLACES_AT_ONCE_MIN, reader.recordsAtOnce));
        const find = (from: string | undefined) => nextPlaces(reader, session, kinds, { after: from, descending, status, atOnce });
        const found =
          after !== undefined || startingAfter === undefined ? find(after) : placesAfter(reader, session, bare(startingAfter), find);
        return { places: found, isEnd: found.length < atOnce };
      });
      const read = eachRead(store, places, (reader) => {
        const session = liveSession(reader, owner, id);
        if (kinds.includes("memory")) reader.ahead(provider, [PROVIDER_KEY]);
        return (place) => entriesOf(place, unlessUnreadable(() => RECORD_OF[place.kind](reader, session, place, owner)) ?? GONE);
      });
      for await (const entries of read) yield entries.flat();
      after = places.at(-1)?.at;
      if (isEnd) return;
    }
  }
  return pageOfBatches(found(), limit, listProbesMax);
}

function entriesOf({ kind, id: place }: TimelinePosition, { json, length }: RecordRead): PageEntry[] {
  const id = withPrefix("entry", place);
  const passed = { passed: id, probes: 1 + length / CHARACTERS_PER_LOOK };
  return json === undefined ? [passed] : [{ id, json: jsonWith({ object: "timeline_entry", id, kind }, { [kind]: json }) }, passed];
}

/** Places after an entry. Hardly any is a memory with a time of its own, whose row comes with the places after its id. */
function placesAfter<Places>(reader: Reader, session: LiveSession, id: BareId, find: (from: string) => Places): Places {
  reader.ahead(memories, [id]);
  const places = find(placeOf(reader, session, id));
  const occurredAt = unlessUnreadable(() => reader.get(memories, id)?.occurredAt);
  return occurredAt === undefined ? places : find(timeKey(occurredAt) + id);
}

/** Position of an entry: that of a turn with a time of its own there, any other at its id. */
function placeOf(reader: Reader, session: LiveSession, id: BareId): string {
  const { timedFrom } = session.row;
  if (timedFrom === undefined || id < timedFrom) return placeOfId(id);
  const range = allRanges(reader, session).find((one) => isIn(one, id));
  const time = range && unlessUnreadable(() => reader.get(turns, turnKey(range.session, id))?.more?.time);
  return time === undefined ? placeOfId(id) : timeKey(time) + id;
}

/** Range of ids whose records are before or after a position. */
function idAt(place: string): BareId {
  const [time, id] = [place.slice(0, NUMBER_KEY_LENGTH), place.slice(NUMBER_KEY_LENGTH)];
  if (id.startsWith(time)) return id;
  return time < id ? time + MAX_KEY : time;
}

/** The next places of all kinds, merged. */
function nextPlaces(reader: Reader, session: LiveSession, kinds: readonly Kind[], walk: Walk): TimelinePosition[] {
  const streams = kinds.flatMap((kind) => placesOf(reader, session, kind, walk));
  const heads = eachFetched(streams, (stream) => stream.next().value as TimelinePosition | undefined);
  const places: TimelinePosition[] = [];
  while (places.length < walk.atOnce) {
    let next: number | undefined;
    for (const [index, head] of heads.entries()) {
      const best = next === undefined ? undefined : heads[next];
      if (head !== undefined && (best === undefined || head.at < best.at !== walk.descending)) next = index;
    }
    if (next === undefined) break;
    places.push(heads[next]!);
    heads[next] = streams[next]!.next().value as TimelinePosition | undefined;
  }
  return places;
}

type TimelinePositions = Generator<TimelinePosition, void, undefined>;

function placesOf(reader: Reader, session: LiveSession, kind: Kind, walk: Walk): TimelinePositions[] {
  const after = walk.after === undefined ? undefined : idAt(walk.after);
  if (kind === "version") return [versionPlaces(reader, session, { ...walk, after })];
  if (kind === "memory")
    return shownMemoryRanges(reader, session).flatMap((range) => [
      memoryPlaces(reader, range, { ...walk, after }),
      timedMemoryPlaces(reader, range, walk),
    ]);
  if (kind !== "turn") return [places(reader, kind, { session: session.key, until: MAX_KEY }, { ...walk, after })];
  const { timedFrom } = session.row;
  const shown = walk.status === "all" ? allRanges(reader, session) : shownRanges(reader, session);
  if (timedFrom === undefined) return [turnPlaces(reader, shown, { ...walk, after })];
  const ranges = [...shown];
  const timed = [...cut(ranges, timedFrom, "from")];
  const owners = new Set(timed.map((range) => range.session));
  return [
    turnPlaces(reader, cut(ranges, timedFrom, "before"), { ...walk, after }),
    ...owners.values().map((owner) => timedPlaces(reader, owner, timed, walk)),
  ];
}

function* versionPlaces(reader: Reader, session: LiveSession, walk: Walk): TimelinePositions {
  for (const place of versionsInOrder(reader, session, walk)) yield { kind: "version", at: placeOfId(place.id), ...place };
}

function* places(reader: Reader, kind: Exclude<Kind, "version" | "turn" | "memory">, range: MemoryRange, walk: Walk): TimelinePositions {
  const ids = idsIn(reader, TABLE_OF[kind], range, walk);
  // They say which memories are read.
  if (kind === "retrieval") reader.ahead(retrievals, ids);
  for (const id of ids) yield { kind, id, at: placeOfId(id) };
}

/** Memories at their ids, but for those with a time of their own. */
function* memoryPlaces(reader: Reader, range: MemoryRange, walk: Walk): TimelinePositions {
  const { byTime, timed } = memories.index;
  const anyTimed = { from: range.session, to: range.session + MAX_KEY, limit: 1 };
  let { after } = walk;
  for (let looked = 0; looked < ENTRIES_LOOKED_AT; looked += walk.atOnce) {
    reader.aheadOf([byTime], anyTimed);
    const ids = idsIn(reader, TABLE_OF.memory, range, { ...walk, after });
    const isTimed = reader.keys(byTime, anyTimed).length === 0 ? [] : eachFetched(ids, (id) => reader.has(timed, id));
    for (const [i, id] of ids.entries()) if (!isTimed[i]) yield { kind: "memory", id, at: placeOfId(id) };
    if (ids.length < walk.atOnce) return;
    after = ids.at(-1);
  }
}

/** Memories of a session with a time of their own, in the order of it. */
function* timedMemoryPlaces(reader: Reader, { session, until }: MemoryRange, { after, descending, atOnce }: Walk): TimelinePositions {
  const { byTime } = memories.index;
  let span: Span = {
    from: descending || after === undefined ? session : successor(session + after),
    to: session + (descending && after !== undefined ? after : MAX_KEY),
    limit: atOnce,
    descending,
  };
  for (let looked = 0; looked < ENTRIES_LOOKED_AT; looked += atOnce) {
    const entries = reader.keys(byTime, span);
    for (const entry of entries) {
      const id = byTime.recordOf(entry);
      if (id < until) yield { kind: "memory", id, at: entry.slice(session.length) };
    }
    const last = entries.at(-1);
    if (last === undefined || entries.length < atOnce) return;
    span = descending ? { ...span, to: last } : { ...span, from: successor(last) };
  }
}

function* turnPlaces(reader: Reader, ranges: Iterable<Range>, walk: Walk): TimelinePositions {
  let left = walk.atOnce;
  for (const span of spansOf(ranges, walk)) {
    for (const key of reader.keys(turns, { ...span, limit: left })) {
      const id = key.slice(BARE_ID_LENGTH);
      yield { kind: "turn", id, at: placeOfId(id), key };
      left--;
    }
    if (left === 0) return;
  }
}

function* timedPlaces(reader: Reader, owner: BareId, ranges: readonly Range[], walk: Walk): TimelinePositions {
  for (const { at, key } of timedTurns(reader, owner, ranges, walk)) yield { kind: "turn", id: at.slice(NUMBER_KEY_LENGTH), at, key };
}

/** Index of the ids of a kind under that of the session. */
const TABLE_OF: Record<Exclude<Kind, "version" | "turn">, AnyTable> = {
  memory: memories.index.bySession,
  retrieval: retrievals.index.bySession,
  fork: sessions.index.byForkedFrom,
};

function idsIn(reader: Reader, table: AnyTable, { session, until }: MemoryRange, { after, descending, atOnce }: Walk): BareId[] {
  const cursor = session + (after ?? "");
  const span = {
    from: descending || after === undefined ? session : successor(cursor),
    to: session + (descending && after !== undefined && after < until ? after : until),
    limit: atOnce,
    descending,
  };
  return span.from < span.to ? reader.keys(table, span).map((key) => key.slice(session.length)) : [];
}

interface RecordRead {
  /** The record as the wire has it; undefined where it is gone by now. */
  readonly json: JsonText | undefined;
  /** Characters that were read for it. */
  readonly length: number;
}

const GONE: RecordRead = { json: undefined, length: 0 };
const read = (json: JsonText): RecordRead => ({ json, length: json.length });

const RECORD_OF: Record<Kind, (reader: Reader, session: LiveSession, place: TimelinePosition, owner: Owner) => RecordRead> = {
  turn(reader, session, { key = "" }) {
    const row = reader.get(turns, key);
    return row === undefined ? GONE : read(shownTurns(reader, session)(key, row));
  },
  version: (reader, session, { version = 0 }) => changedVersion(reader, session.key, version) ?? GONE,
  memory(reader, _, { id }) {
    const row = reader.get(memories, id);
    return row === undefined || hasEnded(row, reader.now) ? GONE : read(memoryJson(reader, withPrefix("mem", id), row));
  },
  retrieval(reader, session, { id }, owner) {
    const row = retrievalOf(reader, session, id);
    const json = row && retrievalJson(reader, owner, placeOfSession(session), id, row);
    // Memories were read for it, too.
    return json === undefined ? GONE : { json, length: looksOfRetrieval(json) * CHARACTERS_PER_LOOK };
  },
  fork(reader, _, { id }) {
    const row = reader.get(sessions, id);
    if (row?.forkedFrom === undefined || !isLive(reader, id, row)) return GONE;
    return read(toJson({ session_id: withPrefix("sess", id), version: row.forkedFrom.version, created_at: toIso(row.createdAt) }));
  },
};
