/**
 * Memories: what an agent is to remember, with the vector that finds it.
 *
 * @module
 */
import type { RecordFilter } from "../filters/filter.ts";
import { Existing, type AnswerJson } from "../lib/answer.ts";
import { partitionOf, homeOfUser, type MemoryId } from "../lib/ids.ts";
import { jsonArray, jsonWith, mergeObjects, toJson, type JsonText } from "../lib/json.ts";
import { countQuoted } from "../embeddings/builtin/token-count.ts";
import { BACKGROUND } from "../embeddings/embeddings.ts";
import { liveSession } from "../sessions/live-session.ts";
import { memoriesIn, shownMemoryRanges, type MemoryRange } from "../sessions/shared-memories.ts";
import type { Reader, Tx } from "../storage/access.ts";
import { MEMORIES } from "../storage/collections.ts";
import { hashKey, MAX_KEY } from "../storage/keys.ts";
import { toIso } from "../lib/time.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { removeRecord } from "../storage/memory-records.ts";
import { narrowed, ownedPostings, type Owner } from "../storage/owner.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { memories, memoryVersions } from "../storage/tables.ts";
import { posting, type Filter } from "../storage/walk.ts";
import { commitFor, ofUser, record, type Caller, type Deps } from "../traces/record.ts";
import { changeMemory, checkTimes, trackVectors, touchSession, type MemoryChanges } from "./change.ts";
import { createMemories, memoriesCreated, prepareMemories, type NewMemory } from "./create.ts";
import type { MemoryDeps } from "./deps.ts";
import { passesRowFilter, postingsOf, rowFilterOf, rowsAtOnce, rowsComparedBy } from "./filter.ts";
import { findMemory, memoryJson, preview, refuseLongContent, supersededBy, type FoundMemory } from "./record.ts";
import type { Shown } from "./status.ts";
import { shownMemories } from "./validity.ts";

export async function addMemory(deps: MemoryDeps, caller: Caller, input: NewMemory): Promise<AnswerJson> {
  const partition = homeOfNew(caller, input);
  const prepared = await prepareMemories(deps, caller, [input]);
  const answer = await commitFor(deps, caller, partition, (tx) => {
    const { row, json, isNew } = createMemories(tx, caller, prepared)[0]!;
    return ofUser<AnswerJson>(row, isNew ? json : new Existing(json));
  });
  memoriesCreated(deps, prepared);
  return answer;
}

/** Adds all of them or none. */
export async function addMemories(deps: MemoryDeps, caller: Caller, inputs: readonly NewMemory[]): Promise<JsonText> {
  const partition = homeOfNew(caller, inputs[0]!);
  const prepared = await prepareMemories(deps, caller, inputs, "memories");
  const answer = await commitFor(deps, caller, partition, (tx) => {
    const created = createMemories(tx, caller, prepared);
    const users = new Set(created.flatMap(({ row }) => row.userId ?? []));
    const json = jsonWith({ object: "list" }, { data: jsonArray(created.map((one) => one.json)) });
    return { json, users: Array.from(users, hashKey), asksForRoom: "always" as const };
  });
  memoriesCreated(deps, prepared);
  return answer;
}

/** Partition of the records of a new memory: with its session's, or with its user's. */
function homeOfNew({ owner }: Caller, { sessionId, userId }: NewMemory): string {
  return sessionId === undefined ? homeOfUser(owner.userId ?? userId ?? null) : partitionOf(sessionId);
}

export function getMemory({ store }: Deps, owner: Owner, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const memory = findMemory(reader, owner, id);
    return memoryJson(reader, memory.id, memory.row);
  });
}

/** Contents that a memory has and had, newest first. */
export function memoryHistory({ store }: Deps, owner: Owner, id: string): JsonText | Promise<JsonText> {
  return store.read((reader) => {
    const { key, row } = findMemory(reader, owner, id);
    const before = row.edits === undefined ? [] : reader.rows(memoryVersions, { from: key, to: key + MAX_KEY, descending: true });
    const present = { ...row, writtenAt: row.writtenAt ?? row.createdAt };
    const data = [present, ...before.map((version) => version.row)].map(({ content, writtenAt, actor = null, reason = null }) => {
      return { content, written_at: toIso(writtenAt), actor, reason };
    });
    return toJson({ object: "list", data, supersedes: row.supersedes ?? [], superseded_by: supersededBy(reader, row) });
  });
}

export interface MemoryFilter {
  sessionId?: string | undefined;
  userId?: string | undefined;
  agentId?: string | undefined;
  type?: string | undefined;
  /** Any of them. */
  types?: readonly string[] | undefined;
  tags?: readonly string[] | undefined;
  /** True if any of the tags will do, unless given. */
  tagsMatch?: "any" | "all" | undefined;
  /** Filter of members, of which indexes answer a part. */
  filter?: RecordFilter | undefined;
}

/** Scope of memories to look among. */
export interface MemoryScope {
  readonly filter: Filter;
  /** Session, where they are of one. */
  readonly ranges?: readonly MemoryRange[] | undefined;
  /** Prefixes under which they are in the index by time. */
  readonly times?: readonly string[];
}

/**
 * Postings of the memories that a filter asks for; undefined when none of them can be the owner's.
 *
 * @throws {ApiError} `session_not_found` when the filter names no live session
 */
export function memoryScope(reader: Reader, owner: Owner, filter: MemoryFilter): MemoryScope | undefined {
  const { byType, byTag } = memories.index;
  const postings = [];
  const ranges = filter.sessionId === undefined ? undefined : shownMemoryRanges(reader, liveSession(reader, owner, filter.sessionId));
  if (ranges !== undefined) postings.push(memoriesIn(ranges));
  const narrow = narrowed(owner, filter);
  if (narrow === undefined) return undefined;
  postings.push(...ownedPostings(narrow, memories.index));
  if (filter.type !== undefined) postings.push(posting(byType, hashKey(filter.type)));
  if (filter.types !== undefined && filter.types.length > 0) postings.push(posting(byType, ...filter.types.map(hashKey)));
  const tags = (filter.tags ?? []).map(hashKey);
  if (filter.tagsMatch === "all") postings.push(...tags.map((tag) => posting(byTag, tag)));
  else if (tags.length > 0) postings.push(posting(byTag, ...tags));
  if (filter.filter !== undefined) postings.push(...postingsOf(reader, filter.filter));
  return { filter: postings, ranges };
}

export async function listMemories(
  { store, listProbesMax }: Deps,
  owner: Owner,
  filter: MemoryFilter & CreatedFilter & Shown,
  page: Page<MemoryId>,
): Promise<JsonText> {
  const scope = await store.read((reader) => memoryScope(reader, owner, filter));
  if (scope === undefined) return pageOf([], page.limit);
  const rowFilter = filter.filter && rowFilterOf({ filter: filter.filter });
  const { ahead } = memories.index;
  const listing = {
    prefix: "mem",
    table: memories,
    ahead,
    filter: scope.filter,
    owner,
    created: filter,
    probesMax: listProbesMax,
    readAtOnce: filter.filter && rowsAtOnce(filter.filter),
  } as const;
  return store.list(listing, page, (reader, key, id) => {
    const row = shownMemories(reader, { ...filter, ranges: scope.ranges })(key);
    if (row === undefined || !isCreatedWithin(row.createdAt, filter)) return undefined;
    const json = () => memoryJson(reader, id, row);
    if (rowFilter === undefined) return json();
    return { json: passesRowFilter(rowFilter, row) ? json() : undefined, rows: rowsComparedBy(rowFilter, row) };
  });
}

/** Leaves no trace of a request that changes nothing. */
export async function updateMemory(deps: MemoryDeps, caller: Caller, id: string, changes: MemoryChanges): Promise<JsonText> {
  const current = await deps.store.read((reader) => {
    const memory = findMemory(reader, caller.owner, id);
    checkTimes(changes, reader.now);
    return memory;
  });
  if (changes.content !== undefined) refuseLongContent(changes.content);
  const { active } = deps.embeddings;
  const embedding =
    changes.content === undefined || changes.content === current.row.content || !current.row.embed
      ? undefined
      : await deps.embeddings.embedMemory(active, changes.content, caller.limitsId ?? BACKGROUND.limitsId);
  const tokens = changes.content === undefined ? undefined : await countQuoted(changes.content);
  const answer = await commitFor(deps, caller, partitionOf(id), (tx) => {
    const memory = findMemory(tx, caller.owner, id);
    const { metadata: before } = memory.row;
    const metadata = changes.metadata === undefined ? before : mergeObjects(before, changes.metadata);
    const { row, json, makesRoom } = changeMemory(tx, caller, deps.quotas, memory, changes, metadata, { active, embedding, tokens });
    return ofUser(row, json, makesRoom ? "if large" : "always");
  });
  if (changes.content !== undefined) trackVectors(deps, embedding);
  return answer;
}

export async function deleteMemory(deps: MemoryDeps, caller: Caller, id: string, reason: string | undefined): Promise<JsonText> {
  const answer = await commitFor(deps, caller, partitionOf(id), (tx) => {
    const memory = findMemory(tx, caller.owner, id);
    removeMemory(tx, caller, memory, reason);
    return ofUser(memory.row, toJson({ object: "memory", id: memory.id, deleted: true }), "never");
  });
  deps.vectors.changed();
  return answer;
}

export function removeMemory(tx: Tx, caller: Caller, { id, key, row }: FoundMemory, reason: string | undefined): void {
  const { sessionId, userId, agentId } = row;
  removeRecord(tx, MEMORIES, key);
  touchSession(tx, sessionId, -1);
  record(tx, caller, {
    action: "memory.deleted",
    sessionId: sessionId ?? null,
    userId,
    agentId,
    ...(sessionId === undefined ? { recordId: key } : {}),
    details: toJson({ memory_id: id, content_preview: preview(row.content), reason: reason ?? null }),
  });
}
