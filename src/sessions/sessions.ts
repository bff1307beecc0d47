/**
 * Sessions: the container of one agent's conversation.
 *
 * Its states are in `versions.ts`; what removing one takes with it is in `removal.ts`.
 *
 * @module
 */
import { textBytes } from "../lib/cache.ts";
import { bare, homeOf, homeOfUser, type SessionId } from "../lib/ids.ts";
import { jsonWith, mergeObjects, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import type { Tx } from "../storage/access.ts";
import { hashKey } from "../storage/keys.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import type { Page } from "../storage/page.ts";
import { sessions, type SessionRow } from "../storage/tables.ts";
import { posting } from "../storage/walk.ts";
import { commitFor, record, type Caller, type Deps } from "../traces/record.ts";
import { diffObjects, isEmptyDiff } from "./diff.ts";
import { laterOf, liveSession, refuseLargeMetadata, sessionJson } from "./live-session.ts";
import { removeSession } from "./removal.ts";
import { addVersion, readState, resolveVersion } from "./versions.ts";

export interface NewSession {
  agentId: string;
  userId: string | null;
  initialState: JsonText;
  metadata: JsonObject;
  ttlSeconds: number;
}

export function createSession(deps: Deps, caller: Caller, input: NewSession): Promise<JsonText> {
  deps.quotas?.refuseGrowth();
  return commitFor(deps, caller, homeOfUser(input.userId), (tx) => {
    const { id, row, json } = addSession(tx, caller, input);
    record(tx, caller, {
      action: "session.created",
      sessionId: id,
      userId: row.userId,
      details: jsonWith({ agent_id: row.agentId, user_id: row.userId }, { initial_state: input.initialState }),
      record: json,
    });
    return json;
  });
}

function addSession(tx: Tx, caller: Caller, input: NewSession): { id: SessionId; row: SessionRow; json: JsonText } {
  const id = tx.id("sess");
  const key = bare(id);
  const { now } = tx;
  const row: SessionRow = {
    agentId: input.agentId,
    userId: input.userId,
    createdAt: now,
    updatedAt: now,
    metadata: input.metadata,
    memoryCount: 0,
    turnCount: 0,
    ttlSeconds: input.ttlSeconds,
    expiresAt: now + input.ttlSeconds * 1000,
    version: 0,
  };
  tx.add(sessions, key, row);
  addVersion(tx, key, 0, { createdAt: now, actor: caller.actor, source: "initial", body: input.initialState });
  return { id, row, json: sessionJson(id, row, input.initialState) };
}

export function getSession({ store }: Deps, id: string): JsonText {
  return store.read((reader) => {
    const { id: sessionId, key, row } = liveSession(reader, id);
    // The row names the version of its state, so the answer is the same for as long as the row is.
    return reader.derived(sessions, key, row, () => sessionJson(sessionId, row, readState(reader, key, row.version)), textBytes);
  });
}

export function listSessions(
  { store, listLooksMax }: Deps,
  filter: { agentId?: string | undefined; userId?: string | undefined } & CreatedFilter,
  page: Page<SessionId>,
): Promise<JsonText> {
  const { index } = sessions;
  const postings = [
    ...(filter.agentId === undefined ? [] : [posting(index.byAgent, hashKey(filter.agentId))]),
    ...(filter.userId === undefined ? [] : [posting(index.byUser, hashKey(filter.userId))]),
  ];
  const listing = {
    prefix: "sess",
    table: sessions,
    ahead: index.ahead,
    filter: postings,
    created: filter,
    looksMax: listLooksMax,
  } as const;
  return store.list(listing, page, (reader, key, id) => {
    const row = reader.get(sessions, key);
    if (row === undefined || row.expiresAt <= reader.now || !isCreatedWithin(row.createdAt, filter)) return undefined;
    return sessionJson(id, row, readState(reader, key, row.version));
  });
}

/** Merges metadata (a null removes the key) and sets a new time to live, counted from now. What changes nothing leaves no trace. */
export function updateSession(
  deps: Deps,
  caller: Caller,
  id: string,
  changes: { metadata?: JsonObject | undefined; ttlSeconds?: number | undefined },
): Promise<JsonText> {
  return commitFor(deps, caller, homeOf(id), (tx) => {
    const { now } = tx;
    const session = liveSession(tx, id);
    const metadata = changes.metadata === undefined ? session.row.metadata : mergeObjects(session.row.metadata, changes.metadata);
    const difference = diffObjects(session.row.metadata, metadata);
    const expiresAt = changes.ttlSeconds === undefined ? session.row.expiresAt : now + changes.ttlSeconds * 1000;
    const isSame =
      isEmptyDiff(difference) &&
      expiresAt === session.row.expiresAt &&
      (changes.ttlSeconds ?? session.row.ttlSeconds) === session.row.ttlSeconds;
    if (isSame) return sessionJson(session.id, session.row, readState(tx, session.key, session.row.version));
    // A fork's may be a little over the limit, with where it was forked from: only what adds to it is refused.
    if (changes.metadata !== undefined) refuseLargeMetadata(metadata, session.row.metadata);
    const row: SessionRow = { ...session.row, metadata, updatedAt: laterOf(session.row, now) };
    if (changes.ttlSeconds !== undefined) {
      row.ttlSeconds = changes.ttlSeconds;
      row.expiresAt = expiresAt;
    }
    if (!isSmaller(row, session.row)) deps.quotas?.refuseGrowth();
    tx.put(sessions, session.key, row);
    const json = sessionJson(session.id, row, readState(tx, session.key, row.version));
    record(tx, caller, {
      action: "session.updated",
      sessionId: session.id,
      userId: row.userId,
      details: toJson({ metadata_diff: difference, ttl_seconds: changes.ttlSeconds }),
      record: json,
    });
    return json;
  });
}

/** Whether a session takes less of the store, or ends sooner. */
function isSmaller(row: SessionRow, before: SessionRow): boolean {
  return row.expiresAt < before.expiresAt || toJson(row.metadata).length < toJson(before.metadata).length;
}

/** A new session that starts from a version of another one, which stays as it is. Turns and memories are not copied. */
export function forkSession(deps: Deps, caller: Caller, id: string, version: number | undefined): Promise<JsonText> {
  deps.quotas?.refuseGrowth();
  return commitFor(deps, caller, homeOf(id), (tx) => {
    const source = liveSession(tx, id);
    const forkVersion = resolveVersion(tx, deps, source, version ?? source.row.version);
    const fork = addSession(tx, caller, {
      agentId: source.row.agentId,
      userId: source.row.userId,
      initialState: readState(tx, source.key, forkVersion),
      metadata: mergeObjects(source.row.metadata, { forked_from: source.id, forked_version: forkVersion }),
      ttlSeconds: source.row.ttlSeconds,
    });
    record(tx, caller, {
      action: "session.forked",
      sessionId: fork.id,
      userId: fork.row.userId,
      details: toJson({ source_session_id: source.id, source_session: source.id, fork_version: forkVersion }),
      record: fork.json,
    });
    return fork.json;
  });
}

/** Removes a session with its states, turns and memories; what a commit cannot hold is gone for readers and removed later. */
export function deleteSession(deps: Deps, caller: Caller, id: string, reason: string | undefined): Promise<JsonText> {
  return commitFor(deps, caller, homeOf(id), (tx) => {
    const session = liveSession(tx, id);
    const { row } = session;
    record(tx, caller, {
      action: "session.deleted",
      sessionId: session.id,
      userId: row.userId,
      details: toJson({
        session_id: session.id,
        reason: reason ?? null,
        turn_count: row.turnCount,
        memory_count: row.memoryCount,
      }),
      record: sessionJson(session.id, row, readState(tx, session.key, row.version)),
    });
    removeSession(tx, session.key, { memories: true });
    return toJson({ object: "session", id: session.id, deleted: true });
  });
}
