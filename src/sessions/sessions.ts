/**
 * Sessions: the container of one agent's conversation.
 *
 * Its states are in `versions.ts`; what removing one takes with it is in `removal.ts`.
 *
 * @module
 */
import { Existing, type Answered, type AnswerJson } from "../lib/answer.ts";
import { textBytes } from "../lib/cache.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, partitionOf, homeOfUser, isId, withPrefix, type SessionId } from "../lib/ids.ts";
import { invariant } from "../lib/invariant.ts";
import { refuseFuture } from "../lib/occurred-at.ts";
import { jsonWith, mergeObjects, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { isErased } from "../storage/erasure.ts";
import { externalIdKey, ownNameKey } from "../storage/keys.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { narrowed, ownedPostings, ownerOfNew, type Owner } from "../storage/owner.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { sessions, type SessionRow, type TurnIndex } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { trackUser } from "../storage/user-names.ts";
import { posting, leapfrogJoin } from "../storage/walk.ts";
import { marks, secretsIn, secretsOfBoth } from "../secrets/marks.ts";
import { commitFor, ofUser, record, type Caller, type Deps } from "../traces/record.ts";
import { withTurnsOfParent, type TurnsOfFork } from "./branches.ts";
import { diffObjects, isEmptyDiff } from "./diff.ts";
import {
  isLive,
  laterOf,
  lifetime,
  liveSession,
  refuseLargeMetadata,
  sessionJson,
  timeToLive,
  type LiveSession,
  type TimeToLive,
} from "./live-session.ts";
import { removeSession } from "./removal.ts";
import { listedSession, type SessionPart } from "./listed-session.ts";
import { withMemoriesOfParent, type MemoriesOfFork } from "./shared-memories.ts";
import { addVersion, readState, resolveVersion, secretsOf } from "./versions.ts";

export interface NewSession {
  agentId: string;
  userId: string | null;
  externalId?: string | undefined;
  /** Within what the external id is unique; the user unless given. */
  namedWithin?: SessionRow["namedWithin"];
  initialState: JsonText;
  metadata: JsonObject;
  ttlSeconds: TimeToLive;
  occurredAt?: number | undefined;
  indexTurns?: TurnIndex | undefined;
  forkedFrom?: SessionRow["forkedFrom"];
  /** Kinds of secrets that its state is marked with, and those that its metadata may have, of the session it is forked from. */
  secrets?: { readonly ofState: string[] | undefined; readonly before: string[] | undefined };
}

/** Action where a live session has the external id of a new one. */
type IfExists = "error" | "return";

/**
 * @returns an `Existing` where there is one of that external id and it is to be returned
 * @throws {ApiError} `already_exists` where there is one and it is not
 */
export async function createSession(
  deps: Deps,
  caller: Caller,
  asked: Omit<NewSession, "namedWithin"> & { ifExists: IfExists },
): Promise<AnswerJson> {
  const { userId = null } = ownerOfNew(caller.owner, { userId: asked.userId ?? undefined, agentId: asked.agentId });
  const input = { ...asked, userId, namedWithin: scopeOfNames(caller.owner) };
  // Most often it is there, and then nothing is to be committed but an answer that is kept.
  const existing = await deps.store.read((reader) => existingSession(reader, input));
  if (existing !== undefined && caller.once === undefined) return existing.json;
  return commitFor<AnswerJson>(deps, caller, homeOfUser(input.userId), (tx) => {
    const other = existingSession(tx, input);
    if (other !== undefined) return other;
    refuseFuture(input.occurredAt, tx.now, "occurred_at");
    deps.quotas?.refuseGrowth();
    const { id, row, json } = addSession(tx, caller, input);
    const { agentId, userId, externalId } = row;
    record(tx, caller, {
      action: "session.created",
      sessionId: id,
      userId,
      agentId,
      details: jsonWith({ agent_id: agentId, user_id: userId, external_id: externalId }, { initial_state: input.initialState }),
      record: json,
    });
    return ofUser(row, json);
  });
}

/** Within what the names that a key gives are unique. */
function scopeOfNames({ agentId }: Owner): "user" | "agent" {
  return agentId === undefined ? "user" : "agent";
}

/** The live session of the same user that has the external id of a new one. */
function existingSession(reader: Reader, input: NewSession & { ifExists: IfExists }): Answered<Existing> | undefined {
  const session = input.externalId === undefined ? undefined : namedSession(reader, input, input.externalId);
  if (session === undefined) return undefined;
  const { id, key, row } = session;
  if (input.ifExists === "return") return ofUser(row, new Existing(sessionJson(id, row, readState(reader, key, row.version))));
  throw new ApiError("already_exists", `Session ${id} has the external_id ${toJson(input.externalId)} already. Nothing was changed.`, {
    param: "external_id",
  });
}

/**
 * Returns the live session that a user has by a name: for a key that is bound to an agent that of the agent, for others the one whose
 * name is the user's, or else the agent's. So no key can name a session by which those who ask for another user's, or by a key without
 * an agent for another agent's, are misled.
 */
function namedSession(
  reader: Reader,
  { userId, agentId, namedWithin }: Pick<NewSession, "userId" | "namedWithin"> & Pick<Owner, "agentId">,
  externalId: string,
): LiveSession | undefined {
  const { byExternalId } = sessions.index;
  const ofAgent = ownNameKey(externalId, userId, agentId);
  const names = namedWithin === "agent" ? [ofAgent] : [ownNameKey(externalId, userId), ofAgent];
  let found: LiveSession | undefined;
  // Besides these, only sessions that have expired and are not removed yet have the name still: they are few.
  for (const key of leapfrogJoin(reader, byExternalId, [posting(byExternalId, ...names)])) {
    if (typeof key !== "string") continue;
    const row = reader.get(sessions, key);
    if (row === undefined || !isLive(reader, key, row)) continue;
    if (found === undefined || row.namedWithin === "user") found = { id: withPrefix("sess", key), key, row };
  }
  return found;
}

function addSession(tx: Tx, caller: Caller, input: NewSession): { id: SessionId; row: SessionRow; json: JsonText } {
  const id = tx.id("sess");
  const key = bare(id);
  invariant(!isErased(tx, input, key), "a new session is later than what is being erased");
  const { now } = tx;
  const { secrets: parent } = input;
  const ofState = parent === undefined ? secretsIn(caller.secrets, undefined, () => JSON.parse(input.initialState)) : parent.ofState;
  const ofMetadata = secretsIn(caller.secrets, parent?.before, () => input.metadata);
  const row: SessionRow = {
    agentId: input.agentId,
    userId: input.userId,
    ...(input.externalId === undefined ? {} : { externalId: input.externalId, namedWithin: input.namedWithin ?? "user" }),
    createdAt: now,
    ...(input.occurredAt === undefined ? {} : { occurredAt: input.occurredAt }),
    updatedAt: now,
    metadata: input.metadata,
    memoryCount: 0,
    turnCount: 0,
    ...lifetime(input.ttlSeconds, now),
    version: 0,
    ...(input.indexTurns === undefined ? {} : { indexTurns: input.indexTurns }),
    ...(input.forkedFrom === undefined ? {} : { forkedFrom: input.forkedFrom }),
    ...marks(secretsOfBoth(ofState, ofMetadata)),
  };
  tx.add(sessions, key, row);
  trackUser(tx, input.userId);
  addVersion(tx, key, 0, { createdAt: now, actor: caller.actor, source: "initial", ...marks(ofState), body: input.initialState });
  return { id, row, json: sessionJson(id, row, input.initialState) };
}

export function getSession({ store }: Deps, owner: Owner, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const { id: sessionId, key, row } = liveSession(reader, owner, id);
    // The row names the version of its state, so the answer is the same for as long as the row is.
    return reader.derived(sessions, key, row, () => sessionJson(sessionId, row, readState(reader, key, row.version)), textBytes);
  });
}

export interface SessionFilter extends CreatedFilter {
  agentId?: string | undefined;
  userId?: string | undefined;
  externalId?: string | undefined;
  /** True if no user stands for sessions without one, instead of those of all. With an external id it is a look-up of that name. */
  exactUser?: boolean | undefined;
  /** Id of a session, which may be gone. */
  forkedFrom?: string | undefined;
  include?: readonly SessionPart[] | undefined;
  /** True for those that are marked with secrets alone, false for the others. */
  hasSecrets?: boolean | undefined;
}

export async function listSessions(
  { store, listProbesMax }: Deps,
  owner: Owner,
  filter: SessionFilter,
  page: Page<SessionId>,
): Promise<JsonText> {
  const { index } = sessions;
  const { externalId, forkedFrom } = filter;
  const narrow = narrowed(owner, filter);
  if (narrow === undefined || (forkedFrom !== undefined && !isId("sess", forkedFrom))) return pageOf([], page.limit);
  if (externalId !== undefined && filter.exactUser === true) {
    const name = { userId: narrow.userId ?? null, agentId: narrow.agentId, namedWithin: scopeOfNames(owner) };
    return store.read((reader) => pageOf(foundByName(reader, name, externalId, filter, page), page.limit));
  }
  const areOfNobody = filter.exactUser === true && narrow.userId === undefined;
  const postings = [
    ...ownedPostings(narrow, index),
    ...(externalId === undefined ? [] : [posting(index.byExternalId, externalIdKey(externalId, narrow.userId, narrow.agentId))]),
    ...(forkedFrom === undefined ? [] : [posting(index.byForkedFrom, bare(forkedFrom))]),
  ];
  const listing = {
    prefix: "sess",
    table: sessions,
    ahead: index.ahead,
    filter: postings,
    owner,
    created: filter,
    probesMax: listProbesMax,
  } as const;
  return store.list(listing, page, (reader, key, id) => {
    const row = reader.get(sessions, key);
    if (row === undefined || !isLive(reader, key, row) || !isCreatedWithin(row.createdAt, filter)) return undefined;
    if (areOfNobody && row.userId !== null) return undefined;
    if (filter.hasSecrets !== undefined && filter.hasSecrets !== (row.secrets !== undefined)) return undefined;
    return listedSession(reader, { id, key, row }, filter.include);
  });
}

/** The session that `if_exists: return` gives for a name, unless the list leaves it out. Its agent may be another one than who asks. */
function foundByName(
  reader: Reader,
  name: Parameters<typeof namedSession>[1],
  externalId: string,
  filter: SessionFilter,
  { startingAfter }: Page<SessionId>,
): { id: SessionId; json: JsonText }[] {
  return (
    unlessUnreadable(() => {
      const session = namedSession(reader, name, externalId);
      if (session === undefined) return [];
      const { id, key, row } = session;
      const isListed =
        isCreatedWithin(row.createdAt, filter) &&
        (startingAfter === undefined || key < bare(startingAfter)) &&
        (filter.forkedFrom === undefined || filter.forkedFrom === row.forkedFrom?.sessionId) &&
        (filter.hasSecrets === undefined || filter.hasSecrets === (row.secrets !== undefined));
      return isListed ? [{ id, json: listedSession(reader, session, filter.include).json }] : [];
    }) ?? []
  );
}

/** Merges metadata (a null removes the key) and sets a new time to live, counted from now. What changes nothing leaves no trace. */
export function updateSession(
  deps: Deps,
  caller: Caller,
  id: string,
  changes: { metadata?: JsonObject | undefined; ttlSeconds?: TimeToLive | undefined },
): Promise<JsonText> {
  return commitFor(deps, caller, partitionOf(id), (tx) => {
    const { now } = tx;
    const session = liveSession(tx, caller.owner, id);
    const metadata = changes.metadata === undefined ? session.row.metadata : mergeObjects(session.row.metadata, changes.metadata);
    const difference = diffObjects(session.row.metadata, metadata);
    const { ttlSeconds, expiresAt } = changes.ttlSeconds === undefined ? session.row : lifetime(changes.ttlSeconds, now);
    const isSame = isEmptyDiff(difference) && expiresAt === session.row.expiresAt && ttlSeconds === session.row.ttlSeconds;
    if (isSame) return ofUser(session.row, sessionJson(session.id, session.row, readState(tx, session.key, session.row.version)));
    // A fork's may be a little over the limit, with where it was forked from: only what adds to it is refused.
    if (changes.metadata !== undefined) refuseLargeMetadata(metadata, session.row.metadata);
    const { secrets: marked, ...before } = session.row;
    const ofState = marked && secretsOf(tx, session.key, session.row.version);
    const secrets = secretsOfBoth(
      ofState,
      secretsIn(caller.secrets, marked, () => metadata),
    );
    const row: SessionRow = { ...before, metadata, updatedAt: laterOf(session.row, now), ttlSeconds, expiresAt, ...marks(secrets) };
    const makesRoom = isSmaller(row, session.row);
    if (!makesRoom) deps.quotas?.refuseGrowth();
    tx.put(sessions, session.key, row);
    const json = sessionJson(session.id, row, readState(tx, session.key, row.version));
    record(tx, caller, {
      action: "session.updated",
      sessionId: session.id,
      userId: row.userId,
      agentId: row.agentId,
      details: toJson({ metadata_diff: difference, ttl_seconds: changes.ttlSeconds }),
      record: json,
    });
    return ofUser(row, json, makesRoom ? "if large" : "always");
  });
}

/** Checks whether a session takes less of the store, or ends sooner. */
function isSmaller(row: SessionRow, before: SessionRow): boolean {
  return row.expiresAt < before.expiresAt || toJson(row.metadata).length < toJson(before.metadata).length;
}

export interface Fork {
  version?: number | undefined;
  turns: TurnsOfFork;
  memories: MemoriesOfFork;
}

/** A new session that starts from a version of another one, which stays as it is. Turns and memories are shown, not copied. */
export function forkSession(deps: Deps, caller: Caller, id: string, { version, turns, memories }: Fork): Promise<JsonText> {
  deps.quotas?.refuseGrowth();
  return commitFor(deps, caller, partitionOf(id), (tx) => {
    const source = liveSession(tx, caller.owner, id);
    const forkVersion = resolveVersion(tx, deps, source, version ?? source.row.version);
    const {
      id: forkId,
      row,
      json: plain,
    } = addSession(tx, caller, {
      agentId: source.row.agentId,
      userId: source.row.userId,
      initialState: readState(tx, source.key, forkVersion),
      metadata: mergeObjects(source.row.metadata, { forked_from: source.id, forked_version: forkVersion }),
      forkedFrom: { sessionId: source.id, version: forkVersion },
      ttlSeconds: timeToLive(source.row),
      occurredAt: source.row.occurredAt,
      indexTurns: source.row.indexTurns,
      secrets: { ofState: secretsOf(tx, source.key, forkVersion), before: source.row.secrets },
    });
    const begun = { id: forkId, key: bare(forkId), row };
    const withTurns = withTurnsOfParent(tx, begun, source, forkVersion, turns);
    const shown = withMemoriesOfParent(tx, { ...begun, row: withTurns }, source, memories);
    const json = shown === row ? plain : sessionJson(forkId, shown, readState(tx, bare(forkId), 0));
    const fork = { id: forkId, row: shown, json };
    record(tx, caller, {
      action: "session.forked",
      sessionId: fork.id,
      userId: fork.row.userId,
      agentId: fork.row.agentId,
      details: toJson({
        source_session_id: source.id,
        source_session: source.id,
        fork_version: forkVersion,
        turns: turns === "none" ? undefined : turns,
        memories: memories === "none" ? undefined : memories,
      }),
      record: fork.json,
    });
    return ofUser(fork.row, fork.json);
  });
}

/** Removes a session with its states, turns and memories; what a commit cannot hold is gone for readers and removed later. */
export function deleteSession(deps: Deps, caller: Caller, id: string, reason: string | undefined): Promise<JsonText> {
  return commitFor(deps, caller, partitionOf(id), (tx) => {
    const session = liveSession(tx, caller.owner, id);
    const { row } = session;
    record(tx, caller, {
      action: "session.deleted",
      sessionId: session.id,
      userId: row.userId,
      agentId: row.agentId,
      details: toJson({
        session_id: session.id,
        reason: reason ?? null,
        turn_count: row.turnCount,
        memory_count: row.memoryCount,
      }),
      record: sessionJson(session.id, row, readState(tx, session.key, row.version)),
    });
    removeSession(tx, session.key, { memories: true });
    return ofUser(row, toJson({ object: "session", id: session.id, deleted: true }), "never");
  });
}
