/**
 * What happened in a session, in one list: its turns, the versions of its state with what changed in each, its memories, what was
 * found for a query, and the sessions that were forked from it.
 *
 * All of these have ids of one source, so that merging them by id gives the order in which they were committed, and an id is a
 * cursor for all. It owns no data.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import { bare, withPrefix, type BareId, type Id } from "../lib/ids.ts";
import { jsonWith, toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import { memoryJson } from "../memories/memories.ts";
import { looksOfRetrieval, retrievalJson, retrievalOf, type RetrievalDeps } from "../retrievals/retrievals.ts";
import { isLive, liveSession, type LiveSession } from "../sessions/live-session.ts";
import { changedVersion, versionsInOrder } from "../sessions/versions.ts";
import { eachFetched, eachRead, type Reader } from "../storage/access.ts";
import { AFTER_ALL, behind, turnKey } from "../storage/keys.ts";
import { generationOf } from "../storage/memory-records.ts";
import type { Owner } from "../storage/owner.ts";
import { pageOfBatches, type Found, type Page } from "../storage/page.ts";
import { memories, provider, PROVIDER_KEY, retrievals, sessions, turns, type AnyTable } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { turnJson } from "../turns/turns.ts";
import { TIMELINE_KINDS } from "./kinds.ts";

type Kind = (typeof TIMELINE_KINDS)[number];

export interface TimelinePage extends Page<Id<"entry">> {
  kinds?: readonly Kind[] | undefined;
  order: "asc" | "desc";
}

/** A record in the timeline. */
interface Place {
  readonly kind: Kind;
  readonly id: BareId;
  /** The number of a version. */
  readonly version?: number;
}

/** Where a walk along one kind of record begins, and which way it goes. */
interface Walk {
  readonly after: BareId | undefined;
  readonly descending: boolean;
  /** How many are found at once. */
  readonly atOnce: number;
}

/** At least this many places are found in a scope, unless the page takes fewer; a few at a time are read, so that others are answered. */
const PLACES_AT_ONCE_MIN = 25;
/** Reading and comparing this many characters takes as long as a look at an index. */
const CHARACTERS_PER_LOOK = 200;

/** @throws {ApiError} `session_not_found` */
export async function getTimeline(
  { store, listLooksMax, retrievals: log }: RetrievalDeps,
  owner: Owner,
  id: string,
  { kinds = TIMELINE_KINDS, order, limit, startingAfter }: TimelinePage,
): Promise<JsonText> {
  const descending = order === "desc";
  if (kinds.includes("retrieval")) await log.caughtUp();
  async function* found(): AsyncGenerator<Found[], void, undefined> {
    // Comparing two versions of a large state takes tens of milliseconds, and a page that is full with that never yields.
    await nextTurn();
    let after = startingAfter === undefined ? undefined : bare(startingAfter);
    for (;;) {
      const from = { after, descending };
      const { places, isEnd } = await store.read((reader) => {
        const atOnce = Math.min(limit + 1, Math.max(PLACES_AT_ONCE_MIN, reader.recordsAtOnce));
        const found = nextPlaces(reader, liveSession(reader, owner, id), kinds, { ...from, atOnce });
        return { places: found, isEnd: found.length < atOnce };
      });
      const read = eachRead(store, places, (reader) => {
        const session = liveSession(reader, owner, id);
        if (kinds.includes("memory")) reader.ahead(provider, [PROVIDER_KEY]);
        return (place) => entriesOf(place, unlessUnreadable(() => RECORD_OF[place.kind](reader, session, place, owner)) ?? GONE);
      });
      for await (const entries of read) yield entries.flat();
      after = places.at(-1)?.id;
      if (isEnd) return;
    }
  }
  return pageOfBatches(found(), limit, listLooksMax);
}

function entriesOf({ kind, id: place }: Place, { json, length }: RecordRead): Found[] {
  const id = withPrefix("entry", place);
  const passed = { passed: id, looks: 1 + length / CHARACTERS_PER_LOOK };
  return json === undefined ? [passed] : [{ id, json: jsonWith({ object: "timeline_entry", id, kind }, { [kind]: json }) }, passed];
}

/** The next places of all kinds, merged by their ids. */
function nextPlaces(reader: Reader, session: LiveSession, kinds: readonly Kind[], walk: Walk): Place[] {
  const streams = kinds.map((kind) => placesOf(reader, session, kind, walk));
  const heads = eachFetched(streams, (stream) => stream.next().value as Place | undefined);
  const places: Place[] = [];
  while (places.length < walk.atOnce) {
    let next: number | undefined;
    for (const [index, head] of heads.entries()) {
      const best = next === undefined ? undefined : heads[next];
      if (head !== undefined && (best === undefined || head.id < best.id !== walk.descending)) next = index;
    }
    if (next === undefined) break;
    places.push(heads[next]!);
    heads[next] = streams[next]!.next().value as Place | undefined;
  }
  return places;
}

function* placesOf(reader: Reader, session: LiveSession, kind: Kind, walk: Walk): Generator<Place, void, undefined> {
  if (kind === "version") for (const place of versionsInOrder(reader, session, walk)) yield { kind, ...place };
  else {
    const ids = idsIn(reader, TABLE_OF[kind], session.key, walk);
    // They say which memories are read.
    if (kind === "retrieval") reader.ahead(retrievals, ids);
    for (const id of ids) yield { kind, id };
  }
}

/** Where the ids of a kind are found under that of the session. */
const TABLE_OF: Record<Exclude<Kind, "version">, AnyTable> = {
  turn: turns,
  memory: memories.index.bySession,
  retrieval: retrievals.index.bySession,
  fork: sessions.index.byForkedFrom,
};

function idsIn(reader: Reader, table: AnyTable, session: BareId, { after, descending, atOnce }: Walk): BareId[] {
  const cursor = session + (after ?? "");
  const span = {
    from: descending || after === undefined ? session : behind(cursor),
    to: descending && after !== undefined ? cursor : session + AFTER_ALL,
    limit: atOnce,
    descending,
  };
  return reader.keys(table, span).map((key) => key.slice(session.length));
}

interface RecordRead {
  /** The record as the wire has it; undefined where it is gone by now. */
  readonly json: JsonText | undefined;
  /** Characters that were read for it. */
  readonly length: number;
}

const GONE: RecordRead = { json: undefined, length: 0 };
const read = (json: JsonText): RecordRead => ({ json, length: json.length });

const RECORD_OF: Record<Kind, (reader: Reader, session: LiveSession, place: Place, owner: Owner) => RecordRead> = {
  turn(reader, session, { id }) {
    const row = reader.get(turns, turnKey(session.key, id));
    return row === undefined ? GONE : read(turnJson(row));
  },
  version: (reader, session, { version = 0 }) => changedVersion(reader, session.key, version) ?? GONE,
  memory(reader, _, { id }) {
    const row = reader.get(memories, id);
    return row === undefined ? GONE : read(memoryJson(withPrefix("mem", id), row, generationOf(reader)));
  },
  retrieval(reader, session, { id }, owner) {
    const row = retrievalOf(reader, session, id);
    const json = row && retrievalJson(reader, owner, session, id, row);
    // Memories were read for it, too.
    return json === undefined ? GONE : { json, length: looksOfRetrieval(json) * CHARACTERS_PER_LOOK };
  },
  fork(reader, _, { id }) {
    const row = reader.get(sessions, id);
    if (row?.forkedFrom === undefined || !isLive(reader, id, row)) return GONE;
    return read(toJson({ session_id: withPrefix("sess", id), version: row.forkedFrom.version, created_at: toIso(row.createdAt) }));
  },
};
