/**
 * The records of one memory, indexed document or indexed turn: its row and its vector. Here because deleting a session removes them too.
 *
 * A vector has an id that no other one ever has: new content gets a new vector. One that is made with its record has the
 * record's id, so that it is found without reading the row. It says which record it is of, and of which generation: each change
 * of the provider starts a new one, and vectors of others compare with nothing.
 *
 * @module
 */
import { bare, withPrefix, type BareId } from "../lib/ids.ts";
import type { Reader, Tx } from "./access.ts";
import type { Collection, EmbeddedRow } from "./collections.ts";
import { readable } from "./bad-rows.ts";
import { MAX_KEY, memoryVersionKey } from "./keys.ts";
import { memories, memoryVersions, provider, PROVIDER_KEY, type MemoryRow } from "./tables.ts";

/** The generation of the vectors that can be compared: those of the provider that is set. */
export function generationOf(reader: Reader): number {
  return reader.get(provider, PROVIDER_KEY)?.generation ?? 0;
}

/** A record's vector, if it has one. Its bytes are valid until the next read. */
export function vectorOf(
  reader: Reader,
  { records, vectors: table }: Collection,
  record: BareId,
): { id: BareId; bytes: Uint8Array } | undefined {
  const own = reader.vectorBytes(table, record);
  if (own !== undefined) return { id: record, bytes: own };
  const { embedding } = reader.get(records, record) ?? {};
  const id = embedding === undefined ? undefined : bare(embedding.id);
  const bytes = id === undefined ? undefined : reader.vectorBytes(table, id);
  return id === undefined || bytes === undefined ? undefined : { id, bytes };
}

export function removeVector(tx: Tx, { vectors }: Collection, { embedding }: EmbeddedRow): void {
  if (embedding !== undefined) tx.removeVector(vectors, bare(embedding.id));
}

export function removeRecord(tx: Tx, collection: Collection, record: BareId): void {
  const row = tx.get(collection.records, record);
  if (row === undefined) return;
  removeVector(tx, collection, row);
  tx.remove(collection.pending, record);
  tx.remove(collection.records, record);
  if ("edits" in row) removeVersions(tx, record);
  if ("supersedes" in row) releaseSuperseded(tx, record, row as MemoryRow);
}

/** Removes contents that a memory had: all, or the oldest up to the one of a number. */
export function removeVersions(tx: Tx, memory: BareId, until?: number): void {
  const to = until === undefined ? memory + MAX_KEY : memoryVersionKey(memory, until);
  for (const key of tx.keys(memoryVersions, { from: memory, to })) tx.remove(memoryVersions, key);
}

/** Makes current again what a deleted memory superseded. */
function releaseSuperseded(tx: Tx, record: BareId, { supersedes = [] }: MemoryRow): void {
  for (const old of supersedes) {
    const before = readable(() => tx.get(memories, bare(old)));
    if (before?.supersededBy !== withPrefix("mem", record)) continue;
    const { supersededBy: _by, supersededAt: _at, supersededUntil: _until, ...rest } = before;
    tx.put(memories, bare(old), rest);
  }
}
