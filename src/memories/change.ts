/**
 * Changes of a memory that is there, inside a transaction: its members, its vector, its trace.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import { bare, type BareId, type Id, type SessionId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { toJson, type JsonObject, type JsonText } from "../lib/json.ts";
import type { Active, MadeEmbedding } from "../embeddings/embeddings.ts";
import { diffObjects, isEmptyDiff } from "../sessions/diff.ts";
import { laterOf, refuseLargeMetadata } from "../sessions/live-session.ts";
import type { Tx } from "../storage/access.ts";
import { MEMORIES } from "../storage/collections.ts";
import { memoryVersionKey } from "../storage/keys.ts";
import { generationOf, removeVector, removeVersions } from "../storage/memory-records.ts";
import { memories, memoryVersions, pendingEmbeddings, sessions, type MemoryRow, type MemoryVersionRow } from "../storage/tables.ts";
import { record, type Caller, type Quotas } from "../traces/record.ts";
import { storeVector } from "../search/store-vector.ts";
import { marks, secretsIn } from "../secrets/marks.ts";
import type { MemoryDeps } from "./deps.ts";
import { memoryJson, namedMemory, nameTaken, scopeOfNames, type FoundMemory } from "./record.ts";
import { refuseManyPins } from "./pins.ts";
import { moveLinks, refuseEmptyValidity } from "./validity.ts";

/** Changes of a memory: a member left out stays; a null clears. */
export interface MemoryChanges {
  content?: string | undefined;
  type?: string | undefined;
  tags?: string[] | undefined;
  metadata?: JsonObject | undefined;
  externalId?: string | null | undefined;
  source?: MemoryRow["source"];
  importance?: number | null | undefined;
  pinned?: boolean | undefined;
  expiresAt?: number | null | undefined;
  ttlSeconds?: number | undefined;
  validFrom?: number | null | undefined;
  validUntil?: number | null | undefined;
  /** Why, which is no change. */
  reason?: string | undefined;
}

/** Results of preparing a content before the transaction. */
export interface NewContent {
  readonly active: Active;
  readonly embedding: MadeEmbedding | undefined;
  /** Its tokens in a context; undefined where there is none. */
  readonly tokens: number | undefined;
}

interface Times {
  occurredAt?: number | undefined;
  expiresAt?: number | null | undefined;
  ttlSeconds?: number | undefined;
}

/** @throws {ApiError} `invalid_request` for times that make no sense */
export function checkTimes({ occurredAt, expiresAt, ttlSeconds }: Times, now: number): void {
  if (typeof expiresAt === "number" && ttlSeconds !== undefined)
    throw new ApiError("invalid_request", "ttl_seconds and expires_at say the same: send one of them.", { param: "ttl_seconds" });
  if (typeof expiresAt === "number" && expiresAt <= now)
    throw new ApiError("invalid_request", "expires_at must be in the future.", { param: "expires_at" });
  if (occurredAt !== undefined && occurredAt > now + DAY_MS)
    throw new ApiError("invalid_request", "occurred_at must not be more than a day ahead: it says when something happened.", {
      param: "occurred_at",
    });
}

/** End of a memory, as far as a request says it; null: never. */
export function endOf({ expiresAt, ttlSeconds }: Times, now: number): number | null | undefined {
  return ttlSeconds === undefined ? expiresAt : now + ttlSeconds * 1000;
}

/**
 * Changes a memory; what changes nothing leaves no trace.
 *
 * @param metadata - all of it, as it is to be
 * @returns what it is then, and whether it takes less of the store
 * @throws {ApiError} `already_exists` for the external id of another one
 */
export function changeMemory(
  tx: Tx,
  caller: Caller,
  quotas: Quotas | undefined,
  { id, key, row: before }: FoundMemory,
  changes: MemoryChanges,
  metadata: JsonObject,
  { active, embedding, tokens }: NewContent,
): { row: MemoryRow; json: JsonText; makesRoom: boolean } {
  const row = changedRow(before, changes, metadata, tx.now);
  if (row.validFrom !== before.validFrom || row.validUntil !== before.validUntil) refuseEmptyValidity(row);
  nameAgain(tx, caller, row, before, key);
  if (isSame(row, before)) return { row: before, json: memoryJson(tx, id, before), makesRoom: false };
  refuseLargeMetadata(row.metadata);
  const makesRoom = lengthOf(row) < lengthOf(before);
  if (!makesRoom) quotas?.refuseGrowth();
  row.updatedAt = Math.max(before.updatedAt ?? before.createdAt, tx.now);
  const contentChanged = row.content !== before.content;
  if (contentChanged) {
    delete row.tokens;
    if (tokens !== undefined) row.tokens = tokens;
    keepContent(tx, quotas, key, before);
    trackWriting(row, caller, changes.reason, tx.now);
  }
  markSecrets(row, caller, before.secrets);
  if (contentChanged && row.embed) {
    removeVector(tx, MEMORIES, before);
    delete row.embedding;
    tx.remove(pendingEmbeddings, key);
    embed(tx, active, key, row, embedding);
  }
  tx.put(memories, key, row);
  moveLinks(tx, id, row);
  if (before.pinned !== true || row.validUntil !== before.validUntil) refuseManyPins(tx, row);
  touchSession(tx, row.sessionId, 0);
  record(tx, caller, {
    action: "memory.updated",
    sessionId: row.sessionId ?? null,
    userId: row.userId,
    agentId: row.agentId,
    ...(row.sessionId === undefined ? { recordId: key } : {}),
    details: toJson({
      memory_id: id,
      content_changed: contentChanged,
      tags_changed: toJson(row.tags) !== toJson(before.tags),
      reason: changes.reason,
    }),
  });
  return { row, json: memoryJson(tx, id, row), makesRoom };
}

/** Marks a memory with the kinds of secrets that it has, where it is to be. */
export function markSecrets(row: MemoryRow, { secrets }: Caller, before: readonly string[] | undefined): void {
  delete row.secrets;
  Object.assign(row, marks(secretsIn(secrets, before, () => [row.content, row.type, row.tags, row.metadata, row.reason])));
}

/** Keeps a content that a memory had, and drops those that are too many. */
function keepContent(
  tx: Tx,
  quotas: Quotas | undefined,
  memory: BareId,
  { content, actor, reason, createdAt, writtenAt, edits = 0 }: MemoryRow,
): void {
  const kept = quotas?.memoryVersionsKept ?? LIMITS.memoryVersionsKeptDefault;
  removeVersions(tx, memory, Math.max(0, edits + 1 - kept));
  if (kept === 0) return;
  const version: MemoryVersionRow = { content, writtenAt: writtenAt ?? createdAt };
  if (actor !== undefined) version.actor = actor;
  if (reason !== undefined) version.reason = reason;
  tx.add(memoryVersions, memoryVersionKey(memory, edits), version);
}

/** Notes in a row who wrote its content, when and why. */
function trackWriting(row: MemoryRow, { actor }: Caller, reason: string | undefined, now: number): void {
  row.actor = actor;
  row.writtenAt = now;
  row.edits = (row.edits ?? 0) + 1;
  if (reason === undefined) delete row.reason;
  else row.reason = reason;
}

function changedRow(before: MemoryRow, changes: MemoryChanges, metadata: JsonObject, now: number): MemoryRow {
  const row: MemoryRow = {
    ...before,
    content: changes.content ?? before.content,
    type: changes.type ?? before.type,
    tags: changes.tags ?? before.tags,
    metadata,
  };
  if (changes.source !== undefined) row.source = changes.source;
  change(row, "externalId", changes.externalId);
  change(row, "importance", changes.importance);
  change(row, "pinned", changes.pinned === false ? null : changes.pinned);
  change(row, "expiresAt", endOf(changes, now));
  change(row, "validFrom", changes.validFrom);
  change(row, "validUntil", changes.validUntil);
  if (row.supersedes !== undefined) row.validFrom ??= row.createdAt;
  return row;
}

/** Takes over what a request says of an optional member of a row. */
function change<Name extends "externalId" | "importance" | "pinned" | "expiresAt" | "validFrom" | "validUntil">(
  row: MemoryRow,
  name: Name,
  value: MemoryRow[Name] | null,
): void {
  if (value === null) delete row[name];
  else if (value !== undefined) row[name] = value;
}

/** @throws {ApiError} `already_exists` where another memory has the name */
function nameAgain(tx: Tx, { owner }: Caller, row: MemoryRow, before: MemoryRow, key: BareId): void {
  const { externalId } = row;
  if (externalId === before.externalId) return;
  if (externalId === undefined) {
    delete row.namedWithin;
    return;
  }
  row.namedWithin = scopeOfNames(owner);
  const other = namedMemory(tx, row, externalId);
  if (other !== undefined && other.key !== key) throw nameTaken(other, externalId);
}

const COMPARED = ["content", "type", "externalId", "source", "importance", "pinned", "expiresAt", "validFrom", "validUntil"] as const;

function isSame(row: MemoryRow, before: MemoryRow): boolean {
  if (COMPARED.some((name) => row[name] !== before[name]) || toJson(row.tags) !== toJson(before.tags)) return false;
  return isEmptyDiff(diffObjects(before.metadata, row.metadata));
}

/** Length of what a caller has stored with it. */
function lengthOf({ content, type, tags, metadata, externalId = "" }: MemoryRow): number {
  return content.length + type.length + toJson(tags).length + toJson(metadata).length + externalId.length;
}

/** A memory's session may have expired: then nothing happens in it any more, and once it is removed nobody counts either. */
export function touchSession(tx: Tx, sessionId: SessionId | undefined, memories: number): void {
  if (sessionId === undefined) return;
  const key = bare(sessionId);
  const row = tx.get(sessions, key);
  if (row === undefined) return;
  const updatedAt = row.expiresAt > tx.now ? laterOf(row, tx.now) : row.updatedAt;
  tx.put(sessions, key, { ...row, memoryCount: row.memoryCount + memories, updatedAt });
}

/** Gives a memory its vector and words; when there is none of the provider that is set by now, it is made later. */
export function embed(tx: Tx, active: Active, memory: BareId, row: MemoryRow, embedding: MadeEmbedding | undefined, id?: Id<"emb">): void {
  const isOfProvider = embedding !== undefined && generationOf(tx) === active.generation;
  if (!isOfProvider || embedding.isPending === true) tx.put(pendingEmbeddings, memory, "");
  if (isOfProvider) row.embedding = storeVector(tx, MEMORIES, memory, active.generation, embedding, id);
}

/** To be called after a commit that stored a vector, or left one to be made later. */
export function trackVectors(deps: MemoryDeps, embedding: MadeEmbedding | undefined): void {
  if (embedding === undefined || embedding.isPending === true) deps.backfill.wake();
  if (embedding !== undefined) deps.vectors.changed();
}
