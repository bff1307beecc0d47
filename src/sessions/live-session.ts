/**
 * A session as operations see it: whether it is there, and its form on the wire.
 *
 * A session is gone for readers the moment its `ttl_expires_at` is reached, whether or not it has been removed yet.
 * Everything that concerns a session asks `liveSession` first.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, isId, nothingWithId, type BareId, type SessionId } from "../lib/ids.ts";
import { jsonWith, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { hasScope } from "../lib/scopes.ts";
import { toIso } from "../lib/time.ts";
import type { Reader } from "../storage/access.ts";
import { NUMBER_KEY_LENGTH } from "../storage/keys.ts";
import { mayBeOwned, type Owner } from "../storage/owner.ts";
import { isErased } from "../storage/erasure.ts";
import { sessions, type SessionRow } from "../storage/tables.ts";
import type { Deps } from "../traces/record.ts";

/** A session that has not expired. */
export interface LiveSession {
  id: SessionId;
  key: BareId;
  row: SessionRow;
}

/** @throws {ApiError} `session_not_found` for an id that was never given, is somebody else's, is deleted or has expired */
export function liveSession(reader: Reader, owner: Owner, id: string): LiveSession {
  const session = isId("sess", id) ? findLiveSession(reader, owner, id) : undefined;
  if (session !== undefined) return session;
  const message = nothingWithId("session", "sess", id, "; it may have expired or been deleted");
  throw new ApiError("session_not_found", message, { param: "session_id" });
}

/** The same, for what names its session itself; undefined where there is none. */
export function findLiveSession(reader: Reader, owner: Owner, id: SessionId): LiveSession | undefined {
  const key = bare(id);
  const row = mayBeOwned(reader, owner, sessions.index, key) ? reader.get(sessions, key) : undefined;
  return row !== undefined && isLive(reader, key, row) ? { id, key, row } : undefined;
}

/** Checks whether a session has not expired, and is not being erased with its user. */
export function isLive(reader: Reader, key: BareId, row: SessionRow): boolean {
  return row.expiresAt > reader.now && !isErased(reader, row, key);
}

/** Requested `ttl_seconds`. */
export type TimeToLive = number | "never";

/** `ttlSeconds` of a session that does not expire, … */
const NO_TTL = 0;
/** … and its `expiresAt`: the last time that a key of the store can hold. */
const NO_END = 62 ** NUMBER_KEY_LENGTH - 1;

/** End of a session in its row. */
export function lifetime(ttl: TimeToLive, now: number): Pick<SessionRow, "ttlSeconds" | "expiresAt"> {
  return ttl === "never" ? { ttlSeconds: NO_TTL, expiresAt: NO_END } : { ttlSeconds: ttl, expiresAt: now + ttl * 1000 };
}

export function timeToLive({ ttlSeconds }: SessionRow): TimeToLive {
  return ttlSeconds === NO_TTL ? "never" : ttlSeconds;
}

/** @throws {ApiError} `permission_denied` where only an admin key may ask for a session that does not expire */
export function refuseNever(
  { quotas }: Pick<Deps, "quotas">,
  { scopes }: { scopes: readonly string[] },
  ttl: TimeToLive | undefined,
): void {
  if (ttl !== "never" || quotas?.areEndlessSessionsForAll !== false || hasScope(scopes, "admin")) return;
  throw new ApiError("permission_denied", 'ttl_seconds "never" needs a key with the scope admin here (setting endless_sessions_for_all).', {
    param: "ttl_seconds",
  });
}

/** The `updatedAt` of a change: now, and never before that of an earlier change, even when the clock was set back. */
export function laterOf(before: SessionRow, now: number): number {
  return Math.max(before.updatedAt, now);
}

/** A session as the wire has it. @param more - further members */
export function sessionJson(id: SessionId, row: SessionRow, state: JsonText, more: object = {}): JsonText {
  const {
    agentId,
    userId,
    externalId,
    createdAt,
    updatedAt,
    version,
    metadata,
    memoryCount,
    turnCount,
    expiresAt,
    occurredAt,
    indexTurns,
    secrets,
  } = row;
  return jsonWith(
    {
      object: "session",
      id,
      agent_id: agentId,
      user_id: userId,
      external_id: externalId,
      created_at: toIso(createdAt),
      occurred_at: occurredAt === undefined ? undefined : toIso(occurredAt),
      updated_at: toIso(updatedAt),
    },
    { state },
    {
      state_version: version,
      metadata,
      memory_count: memoryCount,
      turn_count: turnCount,
      index_turns: indexTurns,
      secrets,
      ttl_expires_at: expiresAt === NO_END ? null : toIso(expiresAt),
      ...more,
    },
  );
}

/**
 * @param before - what it takes the place of
 * @throws {ApiError} `invalid_request` when metadata has grown over its limit by merging
 */
export function refuseLargeMetadata(metadata: JsonObject, before: JsonObject = {}): void {
  const bytes = Buffer.byteLength(toJson(metadata));
  if (bytes > LIMITS.metadataBytesMax && bytes > Buffer.byteLength(toJson(before))) {
    throw new ApiError(
      "invalid_request",
      `metadata must be at most ${LIMITS.metadataBytesMax} bytes of JSON; merged it would have ${bytes}.`,
      { param: "metadata" },
    );
  }
}
