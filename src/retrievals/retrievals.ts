/**
 * Results of searches and contexts in a session, as the log has it. The rows are written by `log.ts` alone and never change.
 *
 * A row names memories and holds none of their texts, so that a memory that is deleted is gone from here too.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, bareIdTime, isId, nothingWithId, withPrefix, type BareId, type Id } from "../lib/ids.ts";
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
import type { Deps } from "../traces/record.ts";
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

/** @throws {ApiError} `resource_not_found`, also for one of a session that has ended or is somebody else's */
export function getRetrieval({ store }: Deps, owner: Owner, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const json = isId("ret", id) ? visibleRetrieval(reader, owner, bare(id)) : undefined;
    if (json !== undefined) return json;
    throw new ApiError("resource_not_found", nothingWithId("retrieval", "ret", id), { param: "retrieval_id" });
  });
}

function visibleRetrieval(reader: Reader, owner: Owner, id: BareId): JsonText | undefined {
  const row = reader.get(retrievals, id);
  // A session is looked for in any case: what is somebody else's takes the same reads as what is not there.
  const session = findLiveSession(reader, owner, row?.sessionId ?? withPrefix("sess", id));
  return row && session && retrievalJson(reader, owner, session, id, row);
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
  const { userId, agentId: sessionAgent } = session.row;
  const found = eachFetched(row.memories, ({ id: memory, score, agentId = sessionAgent }) => {
    // A context finds memories of other agents too, which a key that is bound to this one does not see.
    if (!isOwned(owner, { userId: userId ?? undefined, agentId: agentId ?? undefined })) return [];
    const content = mayBeOwned(reader, owner, memories.index, bare(memory)) ? find(bare(memory))?.content : undefined;
    return [{ id: memory, score, content_preview: content === undefined ? null : preview(content) }];
  });
  return toJson({
    object: "retrieval",
    id: withPrefix("ret", id),
    session_id: session.id,
    operation: row.operation,
    query: row.query,
    limit: row.limit,
    threshold: row.threshold,
    filtered: row.filtered === true,
    memories: found.flat(),
    actor: row.actor,
    turn_id: turnAfter(reader, session.key, id),
    created_at: toIso(createdAt(id, row)),
  });
}

function firstAfter(session: BareId, id: BareId): Span {
  return { from: session + id, to: session + MAX_KEY, limit: 1 };
}

/** The turn that came of it: the first one that was added after it. */
function turnAfter(reader: Reader, session: BareId, id: BareId): Id<"turn"> | null {
  const [key] = reader.keys(turns, firstAfter(session, id));
  return key === undefined ? null : withPrefix("turn", key.slice(session.length));
}
