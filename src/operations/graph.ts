/**
 * Checks and rebuilds the vector index on disk. It is derived, so nothing is lost with it.
 *
 * @module
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "../lib/errors.ts";
import { withPrefix, type BareId } from "../lib/ids.ts";
import type { Snapshot, Store } from "../storage/store.ts";
import { storedVector, isEmbedding, storedTerms } from "../vectors/encoding.ts";
import { isPointOf, pointsIn } from "../vectors/hnsw-index.ts";
import { Indexer } from "../vectors/indexer.ts";
import { NO_SNAPSHOT, verifySnapshot, type VerifiedSnapshot } from "../vectors/snapshot.ts";
import { GRAPH_FROM } from "../vectors/search-plan.ts";
import { digestOf, TermIndex } from "../vectors/term-index.ts";
import type { IndexOptions } from "../vectors/vector-index.ts";
import { Findings, type Finding, type OnProgress } from "./report.ts";
import { vectors } from "../storage/tables.ts";

/** A running server may replace the file while it is looked for. */
const ATTEMPTS = 5;

function graphDirectory(dataDirectory: string): string {
  return join(dataDirectory, "vectors");
}

/** Removes the index, which the next start builds again. */
export function removeGraph(dataDirectory: string): void {
  rmSync(graphDirectory(dataDirectory), { recursive: true, force: true });
}

/** Compares the graph on disk with the store. It may lack new vectors and have deleted ones. */
export async function examineGraph(store: Store, attempt = 1): Promise<{ points: number; findings: Finding[] }> {
  const verified = await verifySnapshot(graphDirectory(store.directory));
  const findings = new Findings();
  if ("reason" in verified) {
    if (verified.reason !== NO_SNAPSHOT) findings.add(`${ON_DISK} ${verified.reason}`, [], { canBeMended: true });
    return { points: 0, findings: findings.all };
  }
  try {
    const points = comparePoints(store, verified, findings);
    compareTerms(store, verified, findings);
    return { points, findings: findings.all };
  } catch (error) {
    if (attempt === ATTEMPTS || !hasCode(error, "ENOENT")) throw error;
    return examineGraph(store, attempt + 1);
  }
}

const ON_DISK = "vector index on disk:";

/** @returns how many points there are */
function comparePoints(store: Store, { graphPath, dimension, slots }: VerifiedSnapshot, findings: Findings): number {
  const points = pointsIn(graphPath, dimension);
  let point = points.next();
  // Read once the file is open: the store then knows whatever is in it.
  using reader = store.snapshot();
  let count = 0;
  for (; point.done !== true; point = points.next()) {
    const { slot, projection } = point.value;
    if (!slots.has(slot)) continue;
    const id = slots.id(slot);
    count++;
    if (isAsStored(reader, id, projection)) continue;
    findings.add(`${ON_DISK} points that are not the store's vectors`, [withPrefix("emb", id)], { canBeMended: true });
  }
  return count;
}

function compareTerms(store: Store, { terms, slots }: VerifiedSnapshot, findings: Findings): void {
  const digests = TermIndex.from(terms).digests();
  using reader = store.snapshot();
  for (let slot = 0; slot < slots.length; slot++) {
    const id = slots.id(slot);
    const bytes = slots.has(slot) ? reader.vectorBytes(vectors, id) : undefined;
    if (bytes === undefined || !isEmbedding(bytes) || digestOf(storedTerms(bytes)) === digests[slot]) continue;
    findings.add(`${ON_DISK} words that are not the store's`, [withPrefix("emb", id)], { canBeMended: true });
  }
}

function isAsStored(reader: Snapshot, id: BareId, projection: Float32Array): boolean {
  const bytes = reader.vectorBytes(vectors, id);
  // A vector that was deleted since is as it should be; one that is damaged is a finding of its own.
  return bytes === undefined || !isEmbedding(bytes) || isPointOf(projection, storedVector(bytes));
}

export interface Rebuilt {
  /** Vectors in the graph; undefined when there are too few for a server to build one. */
  indexed: number | undefined;
  /** Vectors in the store. */
  vectors: number;
  /** Number of vectors from which on a server builds a graph. */
  graphFrom: number;
  /** Whether there was a graph before. */
  removed: boolean;
}

/** Rebuilds the graph from the vectors in the store and writes it to disk, or removes it where a server would build none. */
export async function rebuildGraph(
  store: Store,
  { graphFrom = GRAPH_FROM }: Pick<IndexOptions, "graphFrom">,
  onProgress?: OnProgress,
): Promise<Rebuilt> {
  const directory = graphDirectory(store.directory);
  const removed = existsSync(directory);
  removeGraph(store.directory);
  const indexer = new Indexer(store, directory, { graphFrom });
  await indexer.start({ useSnapshot: false });
  const total = indexer.status.pending;
  const about = { vectors: total, graphFrom, removed };
  if (!indexer.hasGraph) return { indexed: undefined, ...about };
  while (indexer.step()) onProgress?.(total - indexer.status.pending, total);
  await indexer.save();
  return { indexed: indexer.status.indexed, ...about };
}
