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
import { bare, isId, nothingWithId, type BareId, type MemoryId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength, firstCodePoints } from "../lib/text.ts";
import { toIso } from "../lib/time.ts";
import { isAnyMemoryHidden, areMemoriesHidden } from "../sessions/removal.ts";
import type { Reader } from "../storage/access.ts";
import { hasVector } from "../storage/collections.ts";
import { isErased } from "../storage/erasure.ts";
import { mayBeOwned, type Owner } from "../storage/owner.ts";
import { memories, type MemoryRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";

/** A memory as the wire has it. The previous provider's vector counts as none. */
export function memoryJson(id: MemoryId, row: MemoryRow, generation: number): JsonText {
  const embedding = hasVector(row) && row.embedding?.generation === generation ? row.embedding : undefined;
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
    created_at: toIso(row.createdAt),
    embedding_id: embedding?.id,
    vector_available: embedding !== undefined,
  });
}

/** Members of a memory as JSON, ready to be joined with its score. */
interface MemoryMembers {
  /** Those of a search result before the score. */
  readonly beforeScore: string;
  /** Content and type alone; a slice of `beforeScore`, whose memory it shares. */
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

function membersOf({ sessionId, userId, agentId, content, type, tags, createdAt }: MemoryRow): MemoryMembers {
  const owner = `"session_id":${toJson(sessionId ?? null)},"user_id":${toJson(userId)},"agent_id":${toJson(agentId)},`;
  const shown = `"content":${toJson(content)},"type":${toJson(type)}`;
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

/** Finds the rows of memories that are there and can be read. Good for one moment. */
export function visibleMemories(reader: Reader): (key: BareId) => MemoryRow | undefined {
  const isAnyGone = isAnyMemoryHidden(reader);
  return (key) => unlessUnreadable(() => visibleMemory(reader, key, isAnyGone));
}

/** The row of a memory that is not gone, as one is whose session is being removed, or whose user erased. */
function visibleMemory(reader: Reader, key: BareId, isAnyGone = isAnyMemoryHidden(reader)): MemoryRow | undefined {
  const row = reader.get(memories, key);
  if (row === undefined || !isAnyGone) return row;
  const isRemoved = row.sessionId !== undefined && areMemoriesHidden(reader, row.sessionId);
  return isRemoved || isErased(reader, row, key) ? undefined : row;
}

export function findMemory(reader: Reader, owner: Owner, id: string): { id: MemoryId; key: BareId; row: MemoryRow } {
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
