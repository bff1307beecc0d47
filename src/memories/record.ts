/**
 * A memory as operations see it: whether it is there, and its form on the wire.
 *
 * A memory belongs to a user, to an agent, or to both. One of a session has the session's, outlives a session that expires, and goes
 * with one that is deleted; one without a session is no session's concern.
 *
 * @module
 */
import { textBytes } from "../lib/cache.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, isId, nothingWithId, withPrefix, type BareId, type MemoryId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength, firstCodePoints } from "../lib/text.ts";
import { isoOrNull, toIso } from "../lib/time.ts";
import { isAnyMemoryHidden, isHiddenWithSession } from "../sessions/removal.ts";
import type { Reader } from "../storage/access.ts";
import { hasVector } from "../storage/collections.ts";
import { isErased } from "../storage/erasure.ts";
import { generationOf } from "../storage/memory-records.ts";
import { ownNameKey } from "../storage/keys.ts";
import { mayBeOwned, type Owner } from "../storage/owner.ts";
import { memories, type MemoryRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { leapfrogJoin, posting } from "../storage/walk.ts";

/** A memory as the wire has it. The previous provider's vector counts as none. */
export function memoryJson(reader: Reader, id: MemoryId, row: MemoryRow): JsonText {
  const embedding = hasVector(row) && row.embedding?.generation === generationOf(reader) ? row.embedding : undefined;
  const superseded = supersededBy(reader, row);
  return toJson({
    object: "memory",
    id,
    session_id: row.sessionId ?? null,
    user_id: row.userId,
    agent_id: row.agentId,
    content: row.content,
    type: row.type,
    tags: row.tags,
    metadata: row.metadata,
    external_id: row.externalId ?? null,
    source: row.source ?? "agent",
    importance: row.importance ?? null,
    pinned: row.pinned === true,
    occurred_at: isoOrNull(row.occurredAt ?? null),
    created_at: toIso(row.createdAt),
    updated_at: toIso(row.updatedAt ?? row.createdAt),
    expires_at: isoOrNull(row.expiresAt ?? null),
    valid_from: isoOrNull(row.validFrom ?? null),
    valid_until: isoOrNull(row.validUntil ?? null),
    supersedes: row.supersedes ?? [],
    superseded_by: superseded,
    superseded_at: isoOrNull(superseded === null ? null : (row.supersededAt ?? null)),
    secrets: row.secrets,
    embedding_id: embedding?.id,
    vector_available: embedding !== undefined,
  });
}

/** The memory that has taken the place of one; null once that is gone, whenever it is removed. */
export function supersededBy(reader: Reader, { supersededBy: by, supersededUntil = Number.POSITIVE_INFINITY }: MemoryRow): MemoryId | null {
  if (by === undefined || supersededUntil <= reader.now) return null;
  return isAnyMemoryHidden(reader) && visibleMemories(reader)(bare(by)) === undefined ? null : by;
}

/** Members of a memory as JSON, ready to be joined with its score. */
interface MemoryMembers {
  /** Members of a search result before the score. */
  readonly beforeScore: string;
  /** Content, type and source alone; a slice of `beforeScore`, whose memory it shares. */
  readonly content: string;
  readonly createdAt: string;
}

/**
 * Cached with the row: a search for ten memories takes 50 µs so, and 65 µs without. Joined, since a template is put together
 * each time it becomes part of another one.
 */
export function memoryMembers(reader: Reader, key: BareId, row: MemoryRow): MemoryMembers {
  return reader.derived(memories, key, row, () => membersOf(row), bytesOfMembers);
}

function membersOf({ sessionId, userId, agentId, content, type, source = "agent", tags, createdAt }: MemoryRow): MemoryMembers {
  const owner = `"session_id":${toJson(sessionId ?? null)},"user_id":${toJson(userId)},"agent_id":${toJson(agentId)},`;
  const shown = `"content":${toJson(content)},"type":${toJson(type)},"source":"${source}"`;
  const beforeScore = [owner, shown, ',"tags":', toJson(tags), ',"score":'].join("");
  return {
    beforeScore,
    content: beforeScore.slice(owner.length, owner.length + shown.length),
    createdAt: [',"created_at":"', toIso(createdAt), '"'].join(""),
  };
}

function bytesOfMembers({ beforeScore, createdAt }: MemoryMembers): number {
  return MEMBERS_BYTES + textBytes(beforeScore) + textBytes(createdAt);
}
/** The object, and the slice. */
const MEMBERS_BYTES = 120;

/** Checks whether a memory has expired: it is gone from that moment on, whenever it is removed. */
export function hasEnded({ expiresAt }: Pick<MemoryRow, "expiresAt">, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}

/** Finds the rows of memories that are there and can be read. Good for one snapshot. */
export function visibleMemories(reader: Reader): (key: BareId) => MemoryRow | undefined {
  const isAnyGone = isAnyMemoryHidden(reader);
  return (key) => unlessUnreadable(() => visibleMemory(reader, key, isAnyGone));
}

/** The row of a memory that is not gone, as one is whose session is being removed, or whose user erased. */
function visibleMemory(reader: Reader, key: BareId, isAnyGone = isAnyMemoryHidden(reader)): MemoryRow | undefined {
  const row = reader.get(memories, key);
  if (row === undefined || hasEnded(row, reader.now)) return undefined;
  if (!isAnyGone) return row;
  return isHiddenWithSession(reader, key, row.sessionId) || isErased(reader, row, key) ? undefined : row;
}

/** A memory that is there. */
export interface FoundMemory {
  id: MemoryId;
  key: BareId;
  row: MemoryRow;
}

/** @throws {ApiError} `memory_not_found` */
export function findMemory(reader: Reader, owner: Owner, id: string): FoundMemory {
  if (isId("mem", id)) {
    const row = mayBeOwned(reader, owner, memories.index, bare(id)) ? visibleMemory(reader, bare(id)) : undefined;
    if (row !== undefined) return { id, key: bare(id), row };
  }
  throw new ApiError("memory_not_found", nothingWithId("memory", "mem", id), { param: "memory_id" });
}

/** @throws {ApiError} `content_too_large` */
export function refuseLongContent(content: string): void {
  const length = codePointLength(content);
  if (length > LIMITS.memoryContentLengthMax) {
    throw new ApiError("content_too_large", `content must be at most ${LIMITS.memoryContentLengthMax} characters; it has ${length}.`, {
      param: "content",
    });
  }
}

export function preview(content: string): string {
  return firstCodePoints(content, LIMITS.contentPreviewLength);
}

/** Owner of a memory, as keys name owners. */
export function ownerNames({ userId, agentId }: Pick<MemoryRow, "userId" | "agentId">): Owner {
  return { ...(userId === null ? {} : { userId }), ...(agentId === null ? {} : { agentId }) };
}

/** Within what the names that a key gives are unique. */
export function scopeOfNames({ agentId }: Owner): NonNullable<MemoryRow["namedWithin"]> {
  return agentId === undefined ? "owner" : "agent";
}

/** Owner of a name. */
export type NameOwner = Pick<MemoryRow, "userId" | "agentId" | "namedWithin">;

/**
 * Returns the memory that an owner has by a name: for a key that is bound to an agent that of the agent, for others the one whose name is
 * the user's, or else the agent's. So no key can name a memory that others take for their own.
 */
export function namedMemory(reader: Reader, { userId, agentId, namedWithin }: NameOwner, externalId: string): FoundMemory | undefined {
  const { byExternalId } = memories.index;
  const ofAgent = ownNameKey(externalId, userId, agentId ?? undefined);
  const names = namedWithin === "agent" || userId === null ? [ofAgent] : [ownNameKey(externalId, userId), ofAgent];
  const find = visibleMemories(reader);
  let found: FoundMemory | undefined;
  // Besides these, only memories that have expired and are not removed yet have the name still: they are few.
  for (const key of leapfrogJoin(reader, byExternalId, [posting(byExternalId, ...names)])) {
    const row = typeof key === "string" ? find(key) : undefined;
    if (typeof key !== "string" || row === undefined) continue;
    if (found === undefined || row.namedWithin === "owner") found = { id: withPrefix("mem", key), key, row };
  }
  return found;
}

export function nameTaken({ id }: FoundMemory, externalId: string): ApiError {
  return new ApiError("already_exists", `Memory ${id} has the external_id ${toJson(externalId)} already. Nothing was changed.`, {
    param: "external_id",
  });
}
