/**
 * The vector index on disk: whether it is of this store's vectors, and how to rebuild it. It is derived, so nothing here
 * is ever lost.
 *
 * @module
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "../lib/errors.ts";
import { numberKey } from "../storage/keys.ts";
import type { Snapshot, Store } from "../storage/store.ts";
import { labels, meta } from "../storage/tables.ts";
import { isEmbedding, storedVector } from "../vectors/encoding.ts";
import { isPointOf, pointsIn } from "../vectors/hnsw.ts";
import { Indexer } from "../vectors/indexer.ts";
import { NO_SNAPSHOT, verifySnapshot } from "../vectors/snapshot.ts";
import { GRAPH_FROM, type IndexOptions } from "../vectors/vector-index.ts";
import { EXAMPLES_MAX, type Finding, type OnProgress } from "./report.ts";

/** A running server may replace the file while it is looked for. */
const ATTEMPTS = 5;

function graphDirectory(dataDirectory: string): string {
  return join(dataDirectory, "vectors");
}

/** The next start builds it. */
export function removeGraph(dataDirectory: string): void {
  rmSync(graphDirectory(dataDirectory), { recursive: true, force: true });
}

/** What is wrong with the graph on disk. That it lacks new vectors, or has deleted ones, is as it should be. */
export async function examineGraph(store: Store, attempt = 1): Promise<{ points: number; findings: Finding[] }> {
  const verified = await verifySnapshot(graphDirectory(store.directory));
  if ("reason" in verified) return { points: 0, findings: verified.reason === NO_SNAPSHOT ? [] : [finding(verified.reason, [])] };
  try {
    return compareGraph(store, verified);
  } catch (error) {
    if (attempt === ATTEMPTS || !hasCode(error, "ENOENT")) throw error;
    return examineGraph(store, attempt + 1);
  }
}

function compareGraph(store: Store, { path, removed }: { path: string; removed: Set<number> }): { points: number; findings: Finding[] } {
  const points = pointsIn(path);
  let point = points.next();
  // Not before the file is open: then the store knows whatever is in it.
  using reader = store.snapshot();
  const next = Number(reader.get(meta, "nextLabel") ?? "0");
  let count = 0;
  let wrong = 0;
  const examples: string[] = [];
  for (; point.done !== true; point = points.next()) {
    const { label, vector } = point.value;
    if (!removed.has(label)) count++;
    if (label < next && isAsStored(reader, label, removed.has(label), vector)) continue;
    if (wrong++ < EXAMPLES_MAX) examples.push(`label ${label}`);
  }
  return { points: count, findings: wrong === 0 ? [] : [finding("points that are not the store's vectors", examples, wrong)] };
}

function isAsStored(reader: Snapshot, label: number, isRemoved: boolean, vector: Float32Array): boolean {
  const memory = reader.get(labels, numberKey(label));
  if (memory === undefined || isRemoved) return memory === undefined;
  const bytes = reader.vectorBytes(memory);
  // A vector that is missing or damaged is a finding of its own.
  return bytes === undefined || !isEmbedding(bytes) || isPointOf(vector, storedVector(bytes));
}

function finding(reason: string, examples: string[], count = 1): Finding {
  return { what: `vector index on disk: ${reason}`, count, examples, canBeMended: true };
}

export interface Rebuilt {
  /** How many are in it; undefined when there are too few for a server to build one. */
  indexed: number | undefined;
  /** How many there are. */
  vectors: number;
  /** From how many on there is one. */
  graphFrom: number;
  /** Whether there was one before, which is gone. */
  removed: boolean;
  /** What was said of vectors that cannot be in it. */
  warnings: string[];
}

/** Rebuilds the graph from the vectors in the store, and writes it to disk; where a server would build none, there is none then. */
export async function rebuildGraph(
  store: Store,
  { graphFrom = GRAPH_FROM }: Pick<IndexOptions, "graphFrom">,
  onProgress?: OnProgress,
): Promise<Rebuilt> {
  const directory = graphDirectory(store.directory);
  const removed = existsSync(directory);
  removeGraph(store.directory);
  const warnings: string[] = [];
  const indexer = new Indexer(store, directory, { graphFrom, warn: (message) => warnings.push(message) });
  await indexer.start({ useSnapshot: false });
  const total = indexer.status.pending;
  const about = { vectors: total, graphFrom, removed, warnings };
  if (!indexer.hasGraph) return { indexed: undefined, ...about };
  while (indexer.step()) onProgress?.(total - indexer.status.pending, total);
  await indexer.save();
  return { indexed: indexer.status.indexed, ...about };
}
