/**
 * Finds of searches and contexts in a session, as the log has them. The rows are written by `log.ts`; only feedback changes them.
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
import { MAX_KEY } from "../storage/keys.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { EVERYBODY, isOwned, mayBeOwned, type Owner } from "../storage/owner.ts";
import type { Page } from "../storage/page.ts";
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
    if (row === undefined || !isCreatedWithin(createdAt(id, row), filter)) return undefined;
    if (filter.operation !== undefined && row.operation !== filter.operation) return undefined;
    return retrievalJson(reader, owner, session, id, row);
  });
}

/** Waits for what was answered just now, so that a `retrieval_id` can be used at once. */
export async function getRetrieval(deps: RetrievalDeps, owner: Owner, id: string): Promise<JsonText> {
  await deps.retrievals.caughtUp();
  return deps.store.read((reader) => {
    const { key, row, session } = findRetrieval(reader, owner, id);
    return retrievalJson(reader, owner, session, key, row)!;
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
    const { key, row: before, session } = findRetrieval(tx, caller.owner, id);
    const useful = foundIn(before, feedback.useful, "useful");
    const notUseful = foundIn(before, feedback.notUseful, "not_useful");
    const both = notUseful.find((one) => useful.includes(one));
    if (both !== undefined)
      throw new ApiError("invalid_request", `not_useful must not name what useful names; got ${both} in both.`, { param: "not_useful" });
    const row = { ...before, feedback: { at: tx.now, useful, notUseful, ...(note === undefined ? {} : { note }) } };
    tx.put(retrievals, key, row);
    const { userId, agentId } = session.row;
    const details = toJson({ retrieval_id: id, useful, not_useful: notUseful });
    record(tx, caller, { action: "retrieval.rated", sessionId: session.id, userId, agentId, details });
    return ofUser(session.row, retrievalJson(tx, caller.owner, session, key, row)!, "if large");
  });
}

/** @throws {ApiError} `invalid_request` for a memory that the retrieval has not found */
function foundIn({ memories: found }: RetrievalRow, ids: readonly string[], param: string): Id<"mem">[] {
  return [...new Set(ids)].map((id) => {
    const memory = found.find((one) => one.id === id);
    if (memory !== undefined) return memory.id;
    throw new ApiError("invalid_request", `${param} must name memories that the retrieval found; got ${id.slice(0, 64)}.`, { param });
  });
}

interface FoundRetrieval {
  readonly key: BareId;
  readonly row: RetrievalRow;
  readonly session: LiveSession;
}

/** @throws {ApiError} `resource_not_found`, also for one of a session that has ended or is somebody else's */
function findRetrieval(reader: Reader, owner: Owner, id: string): FoundRetrieval {
  const key = isId("ret", id) ? bare(id) : undefined;
  const row = key === undefined ? undefined : reader.get(retrievals, key);
  // A session is looked for in any case: what is somebody else's takes the same reads as what is not there.
  const session = key === undefined ? undefined : findLiveSession(reader, owner, row?.sessionId ?? withPrefix("sess", key));
  if (key !== undefined && row !== undefined && session !== undefined && row.expiresAt > reader.now) return { key, row, session };
  throw new ApiError("resource_not_found", nothingWithId("retrieval", "ret", id), { param: "retrieval_id" });
}

/** Each memory in it was read, which takes as long as some ten looks. */
const CHARACTERS_PER_LOOK = 8;

/** Number of index reads that reading it took, by the length that its memories give it. */
export function looksOfRetrieval({ length }: JsonText): number {
  return length / CHARACTERS_PER_LOOK;
}

function createdAt(id: BareId, { at }: RetrievalRow): number {
  return at ?? bareIdTime(id);
}

/** The row of a session's retrieval; what shows it is fetched with that. */
export function retrievalOf(reader: Reader, session: LiveSession, id: BareId): RetrievalRow | undefined {
  reader.aheadOf([turns], firstAfter(session.key, id));
  return reader.get(retrievals, id);
}

/** A retrieval as the wire has it; undefined for one whose time has passed. */
export function retrievalJson(reader: Reader, owner: Owner, session: LiveSession, id: BareId, row: RetrievalRow): JsonText | undefined {
  if (row.expiresAt <= reader.now) return undefined;
  const find = visibleMemories(reader);
  const at = createdAt(id, row);
  const { userId, agentId: sessionAgent } = session.row;
  const found = eachFetched(row.memories, ({ id: memory, score, agentId = sessionAgent }) => {
    // A context finds memories of other agents too, which a key that is bound to this one does not see.
    if (!isOwned(owner, { userId: userId ?? undefined, agentId: agentId ?? undefined })) return [];
    const now = mayBeOwned(reader, owner, memories.index, bare(memory)) ? find(bare(memory)) : undefined;
    if (now === undefined) return [{ id: memory, score, content_preview: null, status: "gone" }];
    const status = (now.updatedAt ?? now.createdAt) > at ? "changed" : "unchanged";
    return [{ id: memory, score, content_preview: preview(now.content), status }];
  });
  const { turns: turnIds = [], stateVersion = null, request = null } = row;
  return toJson({
    object: "retrieval",
    id: withPrefix("ret", id),
    session_id: session.id,
    operation: row.operation,
    query: row.query,
    limit: row.limit,
    threshold: row.threshold,
    filtered: row.filtered === true,
    request,
    memories: found.flat(),
    state_version: stateVersion,
    turns: turnIds,
    feedback: feedbackOf(row),
    actor: row.actor,
    turn_id: turnAfter(reader, session.key, id),
    created_at: toIso(at),
  });
}

function feedbackOf({ feedback }: RetrievalRow): object | null {
  if (feedback === undefined) return null;
  const { useful, notUseful, note = null, at } = feedback;
  return { useful, not_useful: notUseful, note, created_at: toIso(at) };
}

function firstAfter(session: BareId, id: BareId): Span {
  return { from: session + id, to: session + MAX_KEY, limit: 1 };
}

/** The turn that came of it: the first one that was added after it. */
function turnAfter(reader: Reader, session: BareId, id: BareId): Id<"turn"> | null {
  const [key] = reader.keys(turns, firstAfter(session, id));
  return key === undefined ? null : withPrefix("turn", key.slice(session.length));
}
