/**
 * Validity of memories: which memories a read shows, and the links between one that supersedes and those that it superseded.
 *
 * Nothing is written when a memory becomes current or past by time alone: its row says from when and until when, also when the one that
 * supersedes it ends. Who removes that one takes the links away in the same transaction (`storage/memory-records.ts`).
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { bare, type BareId, type MemoryId } from "../lib/ids.ts";
import { toJson } from "../lib/json.ts";
import { toIso } from "../lib/time.ts";
import { isAmong } from "../sessions/shared-memories.ts";
import { eachFetched, type Reader, type Tx } from "../storage/access.ts";
import { memories, type MemoryRow } from "../storage/tables.ts";
import { record, type Caller } from "../traces/record.ts";
import { passesRowFilter } from "./filter.ts";
import { findMemory, memoryJson, preview, visibleMemories, type FoundMemory } from "./record.ts";
import { statusAt, type Shown } from "./status.ts";

/** Finds the rows of memories that a read shows. Good for one snapshot. */
export function shownMemories(reader: Reader, { rowFilter, ...shown }: Shown): ReturnType<typeof visibleMemories> {
  const find = memoriesOfStatus(reader, shown);
  if (rowFilter === undefined) return find;
  return (key) => {
    const row = find(key);
    return row !== undefined && passesRowFilter(rowFilter, row) ? row : undefined;
  };
}

function memoriesOfStatus(
  reader: Reader,
  { status = "current", asOf = reader.now, ranges = [] }: Shown,
): ReturnType<typeof visibleMemories> {
  const visible = visibleMemories(reader);
  const find = (key: BareId) => {
    const row = visible(key);
    return row !== undefined && isAmong(ranges, key, row) ? row : undefined;
  };
  if (status === "all") return find;
  return (key) => {
    const row = find(key);
    if (row === undefined) return undefined;
    const found = statusAt(row, asOf, reader.now);
    if (found === status) return row;
    // One that is hidden, as its session is being removed, supersedes nothing any more; in a fork neither does what its parent got later.
    const isFree = found === "past" && row.supersededBy !== undefined && find(bare(row.supersededBy)) === undefined;
    return isFree && statusAt(withoutLink(row), asOf, reader.now) === status ? row : undefined;
  };
}

function withoutLink({ supersededBy: _by, supersededAt: _at, supersededUntil: _until, ...row }: MemoryRow): MemoryRow {
  return row;
}

/** @throws {ApiError} `invalid_request` for a memory that would hold at no moment */
export function refuseEmptyValidity({ validFrom, validUntil }: { validFrom?: number | undefined; validUntil?: number | undefined }): void {
  if (validFrom === undefined || validUntil === undefined || validFrom < validUntil) return;
  throw new ApiError("invalid_request", `valid_until must be after valid_from, which is ${toIso(validFrom)}.`, { param: "valid_until" });
}

/**
 * The memories that a new one is to supersede.
 *
 * @param of - whose the new one is
 * @throws {ApiError} `memory_not_found` for one that is not there, or not the same owner's; `version_conflict` for one that another
 *   memory supersedes already
 */
export function toSupersede(
  reader: Reader,
  caller: Caller,
  of: Pick<MemoryRow, "userId" | "agentId">,
  ids: readonly string[],
): FoundMemory[] {
  const find = visibleMemories(reader);
  return eachFetched([...new Set(ids)], (id) => {
    const memory = inSupersedes(() => findMemory(reader, caller.owner, id));
    const { row } = memory;
    const isSameOwner = row.userId === of.userId && (row.userId !== null || row.agentId === of.agentId);
    if (!isSameOwner)
      throw new ApiError("memory_not_found", `The owner of the memory has no memory ${id.slice(0, 64)} that it could supersede.`, {
        param: "supersedes",
      });
    if (row.supersededBy !== undefined && find(bare(row.supersededBy)) !== undefined)
      throw new ApiError("version_conflict", `Memory ${id} is superseded by ${row.supersededBy} already. Nothing was changed.`, {
        param: "supersedes",
      });
    return memory;
  });
}

/** Has an error name the field in which the id was sent. */
function inSupersedes<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ApiError(error.code, error.message, { ...error.detail, param: "supersedes" });
  }
}

/** Has memories say that another one has taken their place, each with a trace and an event. */
export function supersede(tx: Tx, caller: Caller, superseded: readonly FoundMemory[], id: MemoryId, by: MemoryRow): void {
  for (const { id: oldId, key, row } of superseded) {
    const { externalId, namedWithin, ...rest } = withoutLink(row);
    const keepsName = externalId !== undefined && externalId !== by.externalId;
    const linked: MemoryRow = {
      ...rest,
      ...(keepsName ? { externalId, ...(namedWithin === undefined ? {} : { namedWithin }) } : {}),
      updatedAt: Math.max(row.updatedAt ?? row.createdAt, tx.now),
      supersededBy: id,
      ...linkOf(by),
    };
    tx.put(memories, key, linked);
    record(tx, caller, {
      action: "memory.superseded",
      sessionId: row.sessionId ?? null,
      userId: row.userId,
      agentId: row.agentId,
      ...(row.sessionId === undefined ? { recordId: key } : {}),
      details: toJson({
        memory_id: oldId,
        content_preview: preview(row.content),
        superseded_by: id,
        superseded_at: toIso(linked.supersededAt ?? tx.now),
      }),
      record: memoryJson(tx, oldId, linked),
    });
  }
}

/** From when and until when a memory supersedes others. */
function linkOf({ validFrom, createdAt, expiresAt }: MemoryRow): Pick<MemoryRow, "supersededAt" | "supersededUntil"> {
  return { supersededAt: validFrom ?? createdAt, ...(expiresAt === undefined ? {} : { supersededUntil: expiresAt }) };
}

/** Has those that a memory superseded follow a change of when it holds. */
export function moveLinks(tx: Tx, id: MemoryId, row: MemoryRow): void {
  eachFetched(row.supersedes ?? [], (old) => {
    const before = tx.get(memories, bare(old));
    if (before?.supersededBy !== id) return;
    const { supersededUntil: _, ...rest } = before;
    tx.put(memories, bare(old), { ...rest, ...linkOf(row) });
  });
}
