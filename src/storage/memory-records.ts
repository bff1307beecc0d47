/**
 * The records of one memory: its row and its vector. Here because deleting a session removes them too.
 *
 * A vector has an id of its own, which no other one ever has: new content gets a new vector. It says which memory it is of, and
 * of which generation: each change of the provider starts a new one, and vectors of others compare with nothing.
 *
 * @module
 */
import { bare, type BareId } from "../lib/ids.ts";
import type { Reader, Tx } from "./access.ts";
import { memories, pendingEmbeddings, provider, PROVIDER_KEY, type MemoryRow } from "./tables.ts";

/** The generation of the vectors that can be compared: those of the provider that is set. */
export function generationOf(reader: Reader): number {
  return reader.get(provider, PROVIDER_KEY)?.generation ?? 0;
}

/** The id of a memory's vector, if it has one. */
export function vectorIdOf(reader: Reader, memory: BareId): BareId | undefined {
  const id = reader.get(memories, memory)?.embedding?.id;
  return id === undefined ? undefined : bare(id);
}

export function removeVector(tx: Tx, { embedding }: MemoryRow): void {
  if (embedding !== undefined) tx.removeVector(bare(embedding.id));
}

export function removeMemoryRecords(tx: Tx, memory: BareId): void {
  const row = tx.get(memories, memory);
  if (row === undefined) return;
  removeVector(tx, row);
  tx.remove(pendingEmbeddings, memory);
  tx.remove(memories, memory);
}
