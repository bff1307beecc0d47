/**
 * Memories: what an agent is to remember, with the vector that finds it.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import { bare, homeOf, homeOfUser, type BareId, type MemoryId, type SessionId } from "../lib/ids.ts";
import { mergeObjects, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { BACKGROUND } from "../embeddings/embeddings.ts";
import { diffObjects, isEmptyDiff } from "../sessions/diff.ts";
import { laterOf, liveSession, refuseLargeMetadata } from "../sessions/live-session.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { MEMORIES } from "../storage/collections.ts";
import { hashKey } from "../storage/keys.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { generationOf, removeRecord, removeVector } from "../storage/memory-records.ts";
import { narrowed, ownedPostings, type Owner } from "../storage/owner.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { memories, pendingEmbeddings, sessions, type MemoryRow } from "../storage/tables.ts";
import { posting, type Filter } from "../storage/walk.ts";
import { commitFor, ofUser, record, type Caller, type Deps } from "../traces/record.ts";
import { createMemories, embed, memoriesCreated, noteVectors, prepareMemories, type NewMemory } from "./create.ts";
import type { MemoryDeps } from "./deps.ts";
import { findMemory, memoryJson, preview, refuseLongContent, visibleMemories } from "./record.ts";

export async function addMemory(deps: MemoryDeps, caller: Caller, input: NewMemory): Promise<JsonText> {
  const home = homeOfNew(caller, input);
  const prepared = await prepareMemories(deps, caller, [input]);
  const answer = await commitFor(deps, caller, home, (tx) => {
    const [created] = createMemories(tx, caller, prepared);
    return ofUser(created!.row, created!.json);
  });
  memoriesCreated(deps, prepared);
  return answer;
}

/** Where the records of a new memory lie: with its session's, or with its user's. */
function homeOfNew({ owner }: Caller, { sessionId, userId }: NewMemory): string {
  return sessionId === undefined ? homeOfUser(owner.userId ?? userId ?? null) : homeOf(sessionId);
}

export function getMemory({ store }: Deps, owner: Owner, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const memory = findMemory(reader, owner, id);
    return memoryJson(memory.id, memory.row, generationOf(reader));
  });
}

export interface MemoryFilter {
  sessionId?: string | undefined;
  userId?: string | undefined;
  agentId?: string | undefined;
  type?: string | undefined;
  /** Any of them. */
  types?: readonly string[] | undefined;
  /** Any of them. */
  tags?: readonly string[] | undefined;
}

/**
 * What passes are the memories that a filter asks for; undefined when none of them can be the owner's.
 *
 * @throws {ApiError} `session_not_found` when the filter names no live session
 */
export function memoryPostings(reader: Reader, owner: Owner, filter: MemoryFilter): Filter | undefined {
  const { bySession, byType, byTag } = memories.index;
  const postings = [];
  if (filter.sessionId !== undefined) postings.push(posting(bySession, liveSession(reader, owner, filter.sessionId).key));
  const narrow = narrowed(owner, filter);
  if (narrow === undefined) return undefined;
  postings.push(...ownedPostings(narrow, memories.index));
  if (filter.type !== undefined) postings.push(posting(byType, hashKey(filter.type)));
  if (filter.types !== undefined && filter.types.length > 0) postings.push(posting(byType, ...filter.types.map(hashKey)));
  if (filter.tags !== undefined && filter.tags.length > 0) postings.push(posting(byTag, ...filter.tags.map(hashKey)));
  return postings;
}

export async function listMemories(
  { store, listLooksMax }: Deps,
  owner: Owner,
  filter: MemoryFilter & CreatedFilter,
  page: Page<MemoryId>,
): Promise<JsonText> {
  const postings = await store.read((reader) => memoryPostings(reader, owner, filter));
  if (postings === undefined) return pageOf([], page.limit);
  const { ahead } = memories.index;
  const listing = { prefix: "mem", table: memories, ahead, filter: postings, owner, created: filter, looksMax: listLooksMax } as const;
  return store.list(listing, page, (reader, key, id) => {
    const row = visibleMemories(reader)(key);
    return row !== undefined && isCreatedWithin(row.createdAt, filter) ? memoryJson(id, row, generationOf(reader)) : undefined;
  });
}

/**
 * Up to `limit` of one session or user. Where many are passed over, as their session is being removed, other requests are answered
 * in between.
 */
export async function newestMemories({ store }: Deps, scope: Filter, limit: number): Promise<BareId[]> {
  const found: BareId[] = [];
  if (limit === 0) return found;
  for (let before: BareId | undefined; ;) {
    const { ids, next } = await store.walk(memories, scope, { before }, limit - found.length);
    if (ids.length > 0) {
      const visible = await store.read((reader) => {
        reader.ahead(memories, ids);
        const find = visibleMemories(reader);
        return ids.filter((key) => find(key) !== undefined);
      });
      found.push(...visible);
    }
    if (found.length === limit || next === undefined) return found;
    before = next;
    await nextTurn();
  }
}

export interface MemoryChanges {
  content?: string | undefined;
  type?: string | undefined;
  tags?: string[] | undefined;
  metadata?: JsonObject | undefined;
}

/** What changes nothing leaves no trace. */
export async function updateMemory(deps: MemoryDeps, caller: Caller, id: string, changes: MemoryChanges): Promise<JsonText> {
  const current = await deps.store.read((reader) => findMemory(reader, caller.owner, id));
  if (changes.content !== undefined) refuseLongContent(changes.content);
  const { active } = deps.embeddings;
  const embedding =
    changes.content === undefined || changes.content === current.row.content || !current.row.embed
      ? undefined
      : await deps.embeddings.embedMemory(active, changes.content, caller.limitsId ?? BACKGROUND.limitsId);
  const answer = await commitFor(deps, caller, homeOf(id), (tx) => {
    const { id: memoryId, key, row: before } = findMemory(tx, caller.owner, id);
    const row: MemoryRow = {
      ...before,
      content: changes.content ?? before.content,
      type: changes.type ?? before.type,
      tags: changes.tags ?? before.tags,
      metadata: changes.metadata === undefined ? before.metadata : mergeObjects(before.metadata, changes.metadata),
    };
    if (isSame(row, before)) return ofUser(before, memoryJson(memoryId, before, generationOf(tx)));
    refuseLargeMetadata(row.metadata);
    const makesRoom = lengthOf(row) < lengthOf(before);
    if (!makesRoom) deps.quotas?.refuseGrowth();
    const contentChanged = row.content !== before.content;
    if (contentChanged && row.embed) {
      removeVector(tx, MEMORIES, before);
      delete row.embedding;
      tx.remove(pendingEmbeddings, key);
      embed(tx, active, key, row, embedding);
    }
    tx.put(memories, key, row);
    touchSession(tx, row.sessionId, 0);
    record(tx, caller, {
      action: "memory.updated",
      sessionId: row.sessionId ?? null,
      userId: row.userId,
      agentId: row.agentId,
      ...(row.sessionId === undefined ? { recordId: key } : {}),
      details: toJson({
        memory_id: memoryId,
        content_changed: contentChanged,
        tags_changed: toJson(row.tags) !== toJson(before.tags),
      }),
    });
    return ofUser(row, memoryJson(memoryId, row, generationOf(tx)), makesRoom ? "if large" : "always");
  });
  if (changes.content !== undefined) noteVectors(deps, embedding);
  return answer;
}

function isSame(row: MemoryRow, before: MemoryRow): boolean {
  if (row.content !== before.content || row.type !== before.type || toJson(row.tags) !== toJson(before.tags)) return false;
  return isEmptyDiff(diffObjects(before.metadata, row.metadata));
}

/** How much a caller has stored with it. */
function lengthOf({ content, type, tags, metadata }: MemoryRow): number {
  return content.length + type.length + toJson(tags).length + toJson(metadata).length;
}

export async function deleteMemory(deps: MemoryDeps, caller: Caller, id: string, reason: string | undefined): Promise<JsonText> {
  const answer = await commitFor(deps, caller, homeOf(id), (tx) => {
    const memory = findMemory(tx, caller.owner, id);
    removeRecord(tx, MEMORIES, memory.key);
    touchSession(tx, memory.row.sessionId, -1);
    record(tx, caller, {
      action: "memory.deleted",
      sessionId: memory.row.sessionId ?? null,
      userId: memory.row.userId,
      agentId: memory.row.agentId,
      ...(memory.row.sessionId === undefined ? { recordId: memory.key } : {}),
      details: toJson({ memory_id: memory.id, content_preview: preview(memory.row.content), reason: reason ?? null }),
    });
    return ofUser(memory.row, toJson({ object: "memory", id: memory.id, deleted: true }), "never");
  });
  deps.vectors.changed();
  return answer;
}

/** A memory's session may have expired: then nothing happens in it any more, and once it is removed nobody counts either. */
function touchSession(tx: Tx, sessionId: SessionId | undefined, memories: number): void {
  if (sessionId === undefined) return;
  const key = bare(sessionId);
  const row = tx.get(sessions, key);
  if (row === undefined) return;
  const updatedAt = row.expiresAt > tx.now ? laterOf(row, tx.now) : row.updatedAt;
  tx.put(sessions, key, { ...row, memoryCount: row.memoryCount + memories, updatedAt });
}
