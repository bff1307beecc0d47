/**
 * The records of one memory: its row and its vector. Here because deleting a session removes them too.
 *
 * Labels are numbers that rise with every vector ever made and are never given twice. That is all the vector index needs
 * to keep up: what is above the last label it knows is new, and a point whose label is gone is deleted. It is also what
 * tells vectors of different providers apart: a change of provider sets `firstLabel`, and smaller labels are of a previous one.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { numberKey } from "./keys.ts";
import type { Reader, Tx } from "./store.ts";
import { labels, memories, meta, owed } from "./tables.ts";

/** Stores a vector under a new label, which goes into the last four of its bytes, and gives that. */
export function putVector(tx: Tx, memory: BareId, bytes: Uint8Array): number {
  const label = nextLabelOf(tx);
  tx.put(meta, "nextLabel", String(label + 1));
  tx.put(labels, numberKey(label), memory);
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(bytes.byteLength - LABEL_BYTES, label, true);
  tx.putVector(memory, bytes);
  return label;
}

export const LABEL_BYTES = 4;

/** The label that the next vector gets. */
export function nextLabelOf(reader: Reader): number {
  return Number(reader.get(meta, "nextLabel") ?? "0");
}

/** Vectors with smaller labels are of a provider that is no longer set, and compare with nothing. */
export function firstLabelOf(reader: Reader): number {
  return Number(reader.get(meta, "firstLabel") ?? "0");
}

export function removeVector(tx: Tx, memory: BareId, label: number): void {
  tx.remove(labels, numberKey(label));
  tx.removeVector(memory);
}

export function removeMemoryRecords(tx: Tx, memory: BareId): void {
  const row = tx.get(memories, memory);
  if (row === undefined) return;
  if (row.embedding !== undefined) removeVector(tx, memory, row.embedding.label);
  tx.remove(owed, memory);
  tx.remove(memories, memory);
}
