/**
 * Memories: what an agent is to remember, with the vector that finds it.
 *
 * A memory belongs to its session and to that session's user. It outlives a session that expires, and goes with one that
 * is deleted. The vector is made before the transaction; what the transaction finds changed meanwhile wins.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import { textBytes } from "../lib/cache.ts";
import { ApiError } from "../lib/errors.ts";
import type { FairSemaphore } from "../lib/fair-semaphore.ts";
import { bare, homeOf, isId, nothingWithId, withPrefix, type BareId, type Id, type MemoryId, type SessionId } from "../lib/ids.ts";
import { mergeObjects, toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Log } from "../lib/log.ts";
import { codePointLength, firstCodePoints } from "../lib/text.ts";
import { toIso } from "../lib/time.ts";
import { BACKGROUND, type Active, type Embeddings, type MadeEmbedding } from "../embeddings/embeddings.ts";
import { diffObjects, isEmptyDiff } from "../sessions/diff.ts";
import { isAnyMemoryHidden, areMemoriesHidden } from "../sessions/removal.ts";
import { laterOf, liveSession, refuseLargeMetadata } from "../sessions/live-session.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { hasVector, MEMORIES } from "../storage/collections.ts";
import { isErased } from "../storage/erasure.ts";
import { hashKey } from "../storage/keys.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { generationOf, removeRecord, removeVector } from "../storage/memory-records.ts";
import { mayBeOwned, narrowed, ownedPostings, type Owner } from "../storage/owner.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { memories, pendingEmbeddings, sessions, type MemoryRow } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import { posting, type Filter } from "../storage/walk.ts";
import type { Activator } from "../tasks/task.ts";
import type { RetrievalLog } from "../retrievals/log.ts";
import { commitFor, ofUser, record, type Caller, type Deps } from "../traces/record.ts";
import type { CandidateIndex } from "../vectors/candidate-index.ts";
import { storeVector } from "../vectors/store-vector.ts";

/** What operations on memories need besides the store. */
export interface MemoryDeps extends Deps {
  readonly embeddings: Embeddings;
  readonly vectors: CandidateIndex;
  /** Limits how many searches hold candidates and results, by API key. */
  readonly searches: FairSemaphore;
  /** Told what searches and contexts have found. */
  readonly retrievals: RetrievalLog;
  readonly log: Log;
  /** Has pending vectors made soon. */
  readonly backfill: Activator;
}

export interface NewMemory {
  sessionId: string;
  content: string;
  type: string;
  tags: string[];
  metadata: JsonObject;
  embed: boolean;
}

export async function addMemory(deps: MemoryDeps, caller: Caller, input: NewMemory): Promise<JsonText> {
  deps.quotas?.refuseGrowth();
  await deps.store.read((reader) => liveSession(reader, caller.owner, input.sessionId));
  refuseLongContent(input.content);
  const { active } = deps.embeddings;
  const embedding = input.embed
    ? await deps.embeddings.embedMemory(active, input.content, caller.limitsId ?? BACKGROUND.limitsId)
    : undefined;
  const answer = await commitFor(deps, caller, homeOf(input.sessionId), (tx) => {
    const session = liveSession(tx, caller.owner, input.sessionId);
    const id = tx.id("mem");
    const key = bare(id);
    const row: MemoryRow = {
      sessionId: session.id,
      userId: session.row.userId,
      agentId: session.row.agentId,
      content: input.content,
      type: input.type,
      tags: input.tags,
      metadata: input.metadata,
      createdAt: tx.now,
      embed: input.embed,
    };
    // Made with its memory, the vector is as new as the memory's id.
    if (input.embed) embed(tx, active, key, row, embedding, withPrefix("emb", key));
    tx.add(memories, key, row);
    tx.put(sessions, session.key, { ...session.row, memoryCount: session.row.memoryCount + 1, updatedAt: laterOf(session.row, tx.now) });
    const json = memoryJson(id, row, generationOf(tx));
    record(tx, caller, {
      action: "memory.created",
      sessionId: session.id,
      userId: row.userId,
      agentId: row.agentId,
      details: toJson({
        memory_id: id,
        content_preview: preview(row.content),
        type: row.type,
        tags: row.tags,
        embedded: hasVector(row),
      }),
      record: json,
    });
    return ofUser(row, json);
  });
  if (input.embed) noteVectors(deps, embedding);
  return answer;
}

/** Gives a memory its vector and words; when there is none of the provider that is set by now, it is made later. */
function embed(tx: Tx, active: Active, memory: BareId, row: MemoryRow, embedding: MadeEmbedding | undefined, id?: Id<"emb">): void {
  const isOfProvider = embedding !== undefined && generationOf(tx) === active.generation;
  if (!isOfProvider || embedding.isPending === true) tx.put(pendingEmbeddings, memory, "");
  if (isOfProvider) row.embedding = storeVector(tx, MEMORIES, memory, active.generation, embedding, id);
}

/** To be called after a commit that stored a vector, or left one to be made later. */
function noteVectors(deps: MemoryDeps, embedding: MadeEmbedding | undefined): void {
  if (embedding === undefined || embedding.isPending === true) deps.backfill.wake();
  if (embedding !== undefined) deps.vectors.changed();
}

/** A memory as the wire has it. The previous provider's vector counts as none. */
export function memoryJson(id: MemoryId, row: MemoryRow, generation: number): JsonText {
  const embedding = hasVector(row) && row.embedding?.generation === generation ? row.embedding : undefined;
  return toJson({
    object: "memory",
    id,
    session_id: row.sessionId,
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

function membersOf({ sessionId, content, type, tags, createdAt }: MemoryRow): MemoryMembers {
  const session = `"session_id":"${sessionId}",`;
  const shown = `"content":${toJson(content)},"type":${toJson(type)}`;
  const beforeScore = [session, shown, ',"tags":', toJson(tags), ',"score":'].join("");
  return {
    beforeScore,
    content: beforeScore.slice(session.length, session.length + shown.length),
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
  return areMemoriesHidden(reader, row.sessionId) || isErased(reader, row, key) ? undefined : row;
}

function findMemory(reader: Reader, owner: Owner, id: string): { id: MemoryId; key: BareId; row: MemoryRow } {
  if (isId("mem", id)) {
    const row = mayBeOwned(reader, owner, memories.index, bare(id)) ? visibleMemory(reader, bare(id)) : undefined;
    if (row !== undefined) return { id, key: bare(id), row };
  }
  throw new ApiError("memory_not_found", nothingWithId("memory", "mem", id), { param: "memory_id" });
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
  const narrow = narrowed(owner, { userId: filter.userId });
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
      sessionId: row.sessionId,
      userId: row.userId,
      agentId: row.agentId,
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
      sessionId: memory.row.sessionId,
      userId: memory.row.userId,
      agentId: memory.row.agentId,
      details: toJson({ memory_id: memory.id, content_preview: preview(memory.row.content), reason: reason ?? null }),
    });
    return ofUser(memory.row, toJson({ object: "memory", id: memory.id, deleted: true }), "never");
  });
  deps.vectors.changed();
  return answer;
}

/** A memory's session may have expired: then nothing happens in it any more, and once it is removed nobody counts either. */
function touchSession(tx: Tx, sessionId: SessionId, memories: number): void {
  const key = bare(sessionId);
  const row = tx.get(sessions, key);
  if (row === undefined) return;
  const updatedAt = row.expiresAt > tx.now ? laterOf(row, tx.now) : row.updatedAt;
  tx.put(sessions, key, { ...row, memoryCount: row.memoryCount + memories, updatedAt });
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
