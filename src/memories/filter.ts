/**
 * Filters of memories: the members that one may name, what its rows are compared by, and which part of one indexes answer.
 *
 * @module
 */
import type { Comparison, Members, RecordFilter } from "../filters/filter.ts";
import { NUMBER, TEXT, TEXTS, TIME, TRUTH, type Operand } from "../filters/kinds.ts";
import { bare, isId, type BareId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import type { Reader } from "../storage/access.ts";
import { isFilled } from "../storage/fills.ts";
import { hashKey } from "../storage/keys.ts";
import { isCreatedWithin, type CreatedFilter } from "../storage/list.ts";
import { equalityPrefixes } from "../storage/metadata-index.ts";
import { memories, type MemoryRow } from "../storage/tables.ts";
import { posting, type Posting } from "../storage/walk.ts";

export const MEMORY_MEMBERS: Members = {
  metadata: "object",
  type: TEXT,
  tags: TEXTS,
  user_id: TEXT,
  agent_id: TEXT,
  session_id: TEXT,
  external_id: TEXT,
  source: TEXT,
  importance: NUMBER,
  pinned: TRUTH,
  secrets: TEXTS,
  created_at: TIME,
  occurred_at: TIME,
  valid_from: TIME,
  valid_until: TIME,
};

/** Comparisons of rows, besides those that the indexes of a search answer; of one request. */
export interface RowFilter {
  readonly filter?: RecordFilter | undefined;
  readonly created: CreatedFilter;
  readonly compared: ComparedRows;
}

/** Rows that a request has compared: each once, however often it searches, and only as many as one request may. */
export class ComparedRows {
  readonly #passing = new Map<BareId, boolean>();
  #left: number = LIMITS.memoryRowsMax;

  /** True if no others may be compared. */
  get isSpent(): boolean {
    return this.#left <= 0;
  }

  /** Result of comparing a memory; undefined where it was not compared. */
  get(memory: BareId): boolean | undefined {
    return this.#passing.get(memory);
  }

  /** @param rows - number of rows that the comparison counts as */
  note(memory: BareId, isPassing: boolean, rows: number): void {
    this.#passing.set(memory, isPassing);
    this.#left -= rows;
  }
}

/** Returns what rows are compared with; undefined where every row passes. */
export function rowFilterOf({ filter, createdAfter, createdBefore }: CreatedFilter & Pick<RowFilter, "filter">): RowFilter | undefined {
  if (filter === undefined && createdAfter === undefined && createdBefore === undefined) return undefined;
  return { filter, created: { createdAfter, createdBefore }, compared: new ComparedRows() };
}

export function passesRowFilter({ filter, created }: RowFilter, row: MemoryRow): boolean {
  return isCreatedWithin(row.createdAt, created) && filter?.passes(membersOf(row)) !== false;
}

function membersOf(row: MemoryRow): Record<string, unknown> {
  return {
    metadata: row.metadata,
    type: row.type,
    tags: row.tags,
    user_id: row.userId ?? undefined,
    agent_id: row.agentId ?? undefined,
    session_id: row.sessionId,
    external_id: row.externalId,
    source: row.source ?? "agent",
    importance: row.importance,
    pinned: row.pinned === true,
    secrets: row.secrets,
    created_at: row.createdAt,
    occurred_at: row.occurredAt,
    valid_from: row.validFrom,
    valid_until: row.validUntil,
  };
}

/** Characters gone through that a request counts as another row. */
export const CHARACTERS_PER_ROW = 5_000;

/** Rows that are compared between two turns of the event loop. */
export const ROWS_AT_ONCE = 100;

/** Number of rows to compare at once while nothing is known of them: few where all of each is gone through. */
export function rowsAtOnce({ weight }: RecordFilter): number {
  return Math.max(1, Math.floor(ROWS_AT_ONCE / weight ** 2));
}

/** Number of rows that a comparison counts as: more where long metadata is gone through, or a long filter compared. */
export function rowsComparedBy({ filter }: RowFilter, row: MemoryRow): number {
  if (filter === undefined) return 1;
  const passes = filter.weight === 1 ? 0 : filter.weight * JSON.stringify(row.metadata).length;
  return 1 + (passes + filter.length) / CHARACTERS_PER_ROW;
}

/** The postings that all memories have which pass a filter; none of an index that a start has still to fill. */
export function postingsOf(reader: Reader, { required }: RecordFilter): Posting[] {
  const { byMetadata } = memories.index;
  const postings = required.flatMap(postingsOfComparison);
  if (!postings.some(({ table }) => table === byMetadata.name) || isFilled(reader, byMetadata)) return postings;
  return postings.filter(({ table }) => table !== byMetadata.name);
}

function postingsOfComparison({ path, operator, operand }: Comparison): Posting[] {
  const { byTag, byMetadata } = memories.index;
  if (path === "tags") {
    if (operator === "$all") return (operand as string[]).map((tag) => posting(byTag, hashKey(tag)));
    if (operator === "$contains") return [posting(byTag, hashKey(operand as string))];
    return operator === "$in" ? [posting(byTag, ...(operand as string[]).map(hashKey))] : [];
  }
  if (operator !== "$eq" && operator !== "$in") return [];
  const values = operator === "$eq" ? [operand] : (operand as Operand[]);
  if (path.startsWith(METADATA)) {
    const prefixes = equalityPrefixes(path.slice(METADATA.length), values);
    return prefixes === undefined ? [] : [posting(byMetadata, ...prefixes)];
  }
  const of = Object.hasOwn(INDEXED, path) ? INDEXED[path] : undefined;
  return of === undefined ? [] : [posting(of.index, ...(values as string[]).flatMap(of.keys))];
}

const METADATA = "metadata.";

const hashed = (text: string): string[] => [hashKey(text)];
const INDEXED: Readonly<Record<string, { index: (typeof memories.index)["byType"]; keys: (text: string) => string[] }>> = {
  type: { index: memories.index.byType, keys: hashed },
  user_id: { index: memories.index.byUser, keys: hashed },
  agent_id: { index: memories.index.byAgent, keys: hashed },
  session_id: { index: memories.index.bySession, keys: (id) => (isId("sess", id) ? [bare(id)] : []) },
};
