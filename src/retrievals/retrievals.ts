/**
 * Finds of searches and contexts, as the log has them: in a session, or for the user or the agent of a search that named none. The rows
 * are written by `log.ts`; only feedback changes them.
 *
 * A row names memories and holds none of their texts, so that a memory that is deleted is gone from here too.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, bareIdTime, isId, nothingWithId, partitionOf, withPrefix, type BareId, type Id } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import { preview, visibleMemories } from "../memories/record.ts";
import { findLiveSession, liveSession, type LiveSession } from "../sessions/live-session.ts";
import { eachFetched, type Reader, type Span } from "../storage/access.ts";
import { isRetrievalErased } from "../storage/erasure.ts";
import { MAX_KEY } from "../storage/keys.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { EVERYBODY, isBound, isOwned, mayBeOwned, narrowed, ownedPostings, type Owner } from "../storage/owner.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { memories, retrievals, turns, type RetrievalRow } from "../storage/tables.ts";
import { posting } from "../storage/walk.ts";
import { commitFor, ofUser, record, type Caller, type Deps } from "../traces/record.ts";
import type { RetrievalLog } from "./log.ts";

export interface RetrievalDeps extends Deps {
  readonly retrievals: RetrievalLog;
}

export interface RetrievalFilter extends CreatedFilter {
  operation?: RetrievalRow["operation"] | undefined;
}

/**
 * Newest first; whatever was answered before is among them.
 *
 * @throws {ApiError} `session_not_found`
 */
export async function listRetrievals(
  deps: RetrievalDeps,
  owner: Owner,
  sessionId: string,
  filter: RetrievalFilter,
  page: Page<Id<"ret">>,
): Promise<JsonText> {
  const { store, listProbesMax: probesMax } = deps;
  const sessionNow = (reader: Reader) => liveSession(reader, owner, sessionId);
  const { key } = await store.read(sessionNow);
  await deps.retrievals.caughtUp();
  const { bySession, ahead } = retrievals.index;
  const listing = {
    prefix: "ret",
    table: retrievals,
    ahead,
    filter: [posting(bySession, key)],
    // All of a session is its owner's.
    owner: EVERYBODY,
    created: filter,
    probesMax,
    probesOf: looksOfRetrieval,
  } as const;
  return store.list(listing, page, (reader, id) => {
    const session = sessionNow(reader);
    const row = retrievalOf(reader, session, id);
    return row !== undefined && passes(id, row, filter) ? retrievalJson(reader, owner, placeOfSession(session), id, row) : undefined;
  });
}

/** Searches that named no session, newest first: all of them, or those of a user, an agent, or a user with an agent. */
export async function listSearches(
  deps: RetrievalDeps,
  owner: Owner,
  { userId, agentId, ...filter }: CreatedFilter & Owner,
  page: Page<Id<"ret">>,
): Promise<JsonText> {
  const { store, listProbesMax: probesMax } = deps;
  const narrow = narrowed(owner, { userId, agentId });
  if (narrow === undefined) return pageOf([], page.limit);
  await deps.retrievals.caughtUp();
  const { index } = retrievals;
  const listing = {
    prefix: "ret",
    table: retrievals,
    ahead: index.ahead,
    filter: isBound(narrow) ? ownedPostings(narrow, index) : [posting(index.ofNoSession, "")],
    owner,
    created: filter,
    probesMax,
    probesOf: looksOfRetrieval,
  } as const;
  return store.list(listing, page, (reader, id) => {
    const row = reader.get(retrievals, id);
    if (row === undefined || !passes(id, row, filter)) return undefined;
    return retrievalJson(reader, owner, placeOfSearch(row), id, row);
  });
}

function passes(id: BareId, row: RetrievalRow, filter: RetrievalFilter): boolean {
  if (filter.operation !== undefined && row.operation !== filter.operation) return false;
  return isCreatedWithin(createdAt(id, row), filter);
}

/** Waits for what was answered just now, so that a `retrieval_id` can be used at once. */
export async function getRetrieval(deps: RetrievalDeps, owner: Owner, id: string): Promise<JsonText> {
  await deps.retrievals.caughtUp();
  return deps.store.read((reader) => {
    const { key, row, place } = findRetrieval(reader, owner, id);
    return retrievalJson(reader, owner, place, key, row)!;
  });
}

export interface Feedback {
  useful: readonly string[];
  notUseful: readonly string[];
  note?: string | undefined;
}

/** Keeps what the caller says of a retrieval; it takes the place of what was said before. */
export async function giveFeedback(deps: RetrievalDeps, caller: Caller, id: string, feedback: Feedback): Promise<JsonText> {
  const { note } = feedback;
  await deps.retrievals.caughtUp();
  return commitFor(deps, caller, partitionOf(id), (tx) => {
    const { key, row: before, place } = findRetrieval(tx, caller.owner, id);
    const found = foundBy(caller.owner, place, before);
    const useful = ratedIn(found, feedback.useful, "useful");
    const notUseful = ratedIn(found, feedback.notUseful, "not_useful");
    const both = notUseful.find((one) => useful.includes(one));
    if (both !== undefined)
      throw new ApiError("invalid_request", `not_useful must not name what useful names; got ${both} in both.`, { param: "not_useful" });
    const row = { ...before, feedback: { at: tx.now, useful, notUseful, ...(note === undefined ? {} : { note }) } };
    tx.put(retrievals, key, row);
    const { session, userId, agentId } = place;
    const of = session === undefined ? { sessionId: null, recordId: key } : { sessionId: session.id };
    const details = toJson({ retrieval_id: id, ...ratedOf(place, before, useful, notUseful) });
    record(tx, caller, { action: "retrieval.rated", ...of, userId, agentId, details });
    const { json, users, asksForRoom } = ofUser(place, retrievalJson(tx, caller.owner, place, key, row)!, "if large");
    return { json, users: [...users, ...(row.others ?? [])], asksForRoom };
  });
}

/** Details of a trace: ids of its own user's and agent's alone, as its readers may see no others and no other's erasure finds it. */
function ratedOf(place: RetrievalPlace, row: RetrievalRow, useful: readonly FoundId[], notUseful: readonly FoundId[]): object {
  const { memories: found, pinned = [], turns: shown = [], others } = row;
  const own = [...found, ...pinned].filter(
    ({ userId, agentId }) => userId === undefined && (agentId === undefined || place.agentId === null),
  );
  const named = new Set<string>(own.map(({ id }) => id));
  if (place.userId !== null || others === undefined) for (const id of shown) named.add(id);
  const [helped, not] = [useful, notUseful].map((ids) => ids.filter((id) => named.has(id))) as [FoundId[], FoundId[]];
  const unnamed = useful.length + notUseful.length - helped.length - not.length;
  return { useful: helped, not_useful: not, ...(unnamed === 0 ? {} : { unnamed_count: unnamed }) };
}

/** Ids of what a retrieval found, as far as an owner sees it. */
function foundBy(owner: Owner, place: RetrievalPlace, { memories: found, pinned = [], turns: shown = [] }: RetrievalRow): FoundIds {
  const seen = [...found, ...pinned].filter((memory) => isLoggedFor(owner, place, memory));
  return new Map<string, FoundId>([...seen.map(({ id }) => id), ...shown].map((id) => [id, id]));
}

/** @throws {ApiError} `invalid_request` for what the retrieval has not found */
function ratedIn(found: FoundIds, ids: readonly string[], param: string): FoundId[] {
  return [...new Set(ids)].map((id) => {
    const known = found.get(id);
    if (known !== undefined) return known;
    const message = `${param} must name memories or turns that the retrieval found; got ${id.slice(0, 64)}.`;
    throw new ApiError("invalid_request", message, { param });
  });
}
type FoundId = Id<"mem" | "turn">;
type FoundIds = ReadonlyMap<string, FoundId>;

/** Checks whether a key may see a memory of the log: a bound key sees none of other users and agents, which others may have found. */
export function isLoggedFor(owner: Owner, place: RetrievalPlace, { userId = place.userId, agentId = place.agentId }: LoggedOwner): boolean {
  return isOwned(owner, { userId: userId ?? undefined, agentId: agentId ?? undefined });
}
type LoggedOwner = Pick<RetrievalRow["memories"][number], "userId" | "agentId">;

/** Place of a retrieval: a session, or the user and the agent of a search without one. */
export interface RetrievalPlace {
  readonly session?: LiveSession;
  readonly userId: string | null;
  readonly agentId: string | null;
}

export function placeOfSession(session: LiveSession): RetrievalPlace {
  return { session, userId: session.row.userId, agentId: session.row.agentId };
}

function placeOfSearch({ userId, agentId }: RetrievalRow): RetrievalPlace {
  return { userId: userId ?? null, agentId: agentId ?? null };
}

export interface FoundRetrieval {
  readonly key: BareId;
  readonly row: RetrievalRow;
  readonly place: RetrievalPlace;
}

/** @throws {ApiError} `resource_not_found`, also for one of a session that has ended or is somebody else's */
export function findRetrieval(reader: Reader, owner: Owner, id: string): FoundRetrieval {
  const key = isId("ret", id) ? bare(id) : undefined;
  const row = key === undefined ? undefined : reader.get(retrievals, key);
  const place = key === undefined ? undefined : placeIn(reader, owner, key, row);
  if (key !== undefined && row !== undefined && place !== undefined && row.expiresAt > reader.now) return { key, row, place };
  throw new ApiError("resource_not_found", nothingWithId("retrieval", "ret", id), { param: "retrieval_id" });
}

/** Both kinds of places are looked for in any case: what is somebody else's takes the same reads as what is not there. */
function placeIn(reader: Reader, owner: Owner, key: BareId, row: RetrievalRow | undefined): RetrievalPlace | undefined {
  const session = findLiveSession(reader, owner, row?.sessionId ?? withPrefix("sess", key));
  const isOwn = mayBeOwned(reader, owner, retrievals.index, key);
  const isOfSearch = isOwn && row !== undefined && row.sessionId === undefined;
  if (row === undefined || (session === undefined && !isOfSearch) || isRetrievalErased(reader, row, key)) return undefined;
  return session === undefined ? placeOfSearch(row) : placeOfSession(session);
}

/** Each memory in it was read, which takes as long as some ten looks. */
const CHARACTERS_PER_LOOK = 8;

/** Number of index reads that reading it took, by the length that its memories give it. */
export function looksOfRetrieval({ length }: JsonText): number {
  return length / CHARACTERS_PER_LOOK;
}

export function createdAt(id: BareId, { at }: RetrievalRow): number {
  return at ?? bareIdTime(id);
}

/** The row of a session's retrieval; what shows it is fetched with that. */
export function retrievalOf(reader: Reader, session: LiveSession, id: BareId): RetrievalRow | undefined {
  reader.aheadOf([turns], firstAfter(session.key, id));
  return reader.get(retrievals, id);
}

/** A retrieval as the wire has it; undefined for one whose time has passed, or that is being erased. */
export function retrievalJson(reader: Reader, owner: Owner, place: RetrievalPlace, id: BareId, row: RetrievalRow): JsonText | undefined {
  if (row.expiresAt <= reader.now || isRetrievalErased(reader, row, id)) return undefined;
  const find = visibleMemories(reader);
  const at = createdAt(id, row);
  const { session, userId } = place;
  const seen = row.memories.filter((memory) => isLoggedFor(owner, place, memory));
  const found = eachFetched(seen, ({ id: memory, score }) => {
    const now = mayBeOwned(reader, owner, memories.index, bare(memory)) ? find(bare(memory)) : undefined;
    if (now === undefined) return { id: memory, score, content_preview: null, status: "gone" };
    const status = (now.updatedAt ?? now.createdAt) > at ? "changed" : "unchanged";
    return { id: memory, score, content_preview: preview(now.content), status };
  });
  const { turns: turnIds = [], stateVersion = null, request = null } = row;
  return toJson({
    object: "retrieval",
    id: withPrefix("ret", id),
    session_id: session?.id ?? null,
    user_id: userId,
    agent_id: place.agentId,
    operation: row.operation,
    query: row.query,
    limit: row.limit,
    threshold: row.threshold,
    filtered: row.filtered === true,
    request,
    memories: found,
    state_version: stateVersion,
    turns: turnIds,
    feedback: feedbackOf(row, foundBy(owner, place, row)),
    actor: row.actor,
    turn_id: session === undefined ? null : turnAfter(reader, session.key, id),
    created_at: toIso(at),
  });
}

function feedbackOf({ feedback }: RetrievalRow, found: FoundIds): object | null {
  if (feedback === undefined) return null;
  const { useful, notUseful, note = null, at } = feedback;
  const seen = (ids: readonly string[]) => ids.filter((id) => found.has(id));
  return { useful: seen(useful), not_useful: seen(notUseful), note, created_at: toIso(at) };
}

function firstAfter(session: BareId, id: BareId): Span {
  return { from: session + id, to: session + MAX_KEY, limit: 1 };
}

/** The turn that came of it: the first one that was added after it. */
function turnAfter(reader: Reader, session: BareId, id: BareId): Id<"turn"> | null {
  const [key] = reader.keys(turns, firstAfter(session, id));
  return key === undefined ? null : withPrefix("turn", key.slice(session.length));
}
