/**
 * Checks and rebuilds the vector indexes on disk, one of each collection. They are derived, so nothing is lost with them.
 *
 * @module
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "../lib/errors.ts";
import { withPrefix } from "../lib/ids.ts";
import { COLLECTIONS, type Collection } from "../storage/collections.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { isEmbedding, storedPassages, storedTerms } from "../search/encoding.ts";
import { isPointOf, pointsIn } from "../search/graph/hnsw-index.ts";
import { Indexer } from "../search/indexer.ts";
import { GRAPH_FROM } from "../search/search-plan.ts";
import { NO_SNAPSHOT, OTHER_FORMAT, verifySnapshot, type VerifiedSnapshot } from "../search/snapshot/snapshot.ts";
import { digestOf } from "../search/words/term-index.ts";
import type { IndexOptions } from "../search/vector-index.ts";
import { Findings, type Finding, type OnProgress } from "./report.ts";

/** A running server may replace the file while it is looked for. */
const ATTEMPTS = 5;

const directoriesIn = (dataDirectory: string) => Object.values(COLLECTIONS).map(({ directory }) => join(dataDirectory, directory));

/** Removes the index of every collection, which the next start builds again. */
export function removeGraph(dataDirectory: string): void {
  for (const directory of directoriesIn(dataDirectory)) rmSync(directory, { recursive: true, force: true });
}

interface Examined {
  points: number;
  findings: Finding[];
}

/** Compares the graphs on disk with the store. They may lack new vectors and have deleted ones. */
export async function examineGraph(store: Store): Promise<Examined> {
  const all: Examined[] = [];
  for (const collection of Object.values(COLLECTIONS)) all.push(await examineOne(store, collection));
  return { points: all.reduce((sum, { points }) => sum + points, 0), findings: all.flatMap(({ findings }) => findings) };
}

async function examineOne(store: Store, collection: Collection, attempt = 1): Promise<Examined> {
  const verified = await verifySnapshot(join(store.directory, collection.directory));
  const findings = new Findings();
  if ("reason" in verified) {
    if (verified.reason !== NO_SNAPSHOT && verified.reason !== OTHER_FORMAT)
      findings.add(`${ON_DISK} ${verified.reason}`, [], { canBeMended: true });
    return { points: 0, findings: findings.all };
  }
  try {
    const points = comparePoints(store, collection, verified, findings);
    compareTerms(store, collection, verified, findings);
    return { points, findings: findings.all };
  } catch (error) {
    if (attempt === ATTEMPTS || !hasCode(error, "ENOENT")) throw error;
    return examineOne(store, collection, attempt + 1);
  }
}

const ON_DISK = "vector index on disk:";

/** @returns how many records there are points of: one of each of its passages */
function comparePoints(store: Store, { vectors }: Collection, { graphPath, slots }: VerifiedSnapshot, findings: Findings): number {
  const points = pointsIn(graphPath);
  let point = points.next();
  // Read once the file is open: the store then knows whatever is in it.
  using reader = store.snapshot();
  let count = 0;
  for (; point.done !== true; point = points.next()) {
    const { slot, passage, projection } = point.value;
    if (!slots.has(slot)) continue;
    const id = slots.id(slot);
    if (passage === 0) count++;
    if (isAsStored(reader.vectorBytes(vectors, id), passage, projection)) continue;
    findings.add(`${ON_DISK} points that are not the store's vectors`, [withPrefix("emb", id)], { canBeMended: true });
  }
  return count;
}

function compareTerms(store: Store, { vectors }: Collection, { terms, slots }: VerifiedSnapshot, findings: Findings): void {
  const digests = terms.digests();
  using reader = store.snapshot();
  for (let slot = 0; slot < slots.length; slot++) {
    const id = slots.id(slot);
    const bytes = slots.has(slot) ? reader.vectorBytes(vectors, id) : undefined;
    if (bytes === undefined || !isEmbedding(bytes) || digestOf(storedTerms(bytes)) === digests[slot]) continue;
    findings.add(`${ON_DISK} words that are not the store's`, [withPrefix("emb", id)], { canBeMended: true });
  }
}

function isAsStored(bytes: Uint8Array | undefined, passage: number, projection: Int8Array): boolean {
  // A vector that was deleted since is as it should be; one that is damaged is a finding of its own.
  if (bytes === undefined || !isEmbedding(bytes)) return true;
  const vector = storedPassages(bytes)[passage];
  return vector !== undefined && isPointOf(projection, vector);
}

export interface Rebuilt {
  /** Vectors in graphs; undefined when there are too few for a server to build one. */
  indexed: number | undefined;
  /** Vectors in the store. */
  vectors: number;
  /** Number of vectors from which on a server builds a graph. */
  graphFrom: number;
  /** True if there was a graph before. */
  removed: boolean;
}

/** Rebuilds the graphs from the vectors in the store and writes them to disk, or removes one where a server would build none. */
export async function rebuildGraph(
  store: Store,
  { graphFrom = GRAPH_FROM }: Pick<IndexOptions, "graphFrom">,
  onProgress?: OnProgress,
): Promise<Rebuilt> {
  const removed = directoriesIn(store.directory).some((directory) => existsSync(directory));
  removeGraph(store.directory);
  const rebuilt: Rebuilt = { indexed: undefined, vectors: 0, graphFrom, removed };
  for (const collection of Object.values(COLLECTIONS)) {
    const indexer = new Indexer(store, join(store.directory, collection.directory), { collection, graphFrom });
    await indexer.start({ useSnapshot: false });
    const total = indexer.status.pending;
    rebuilt.vectors += total;
    if (!indexer.hasGraph) continue;
    while (indexer.step()) onProgress?.(total - indexer.status.pending, total);
    await indexer.save();
    rebuilt.indexed = (rebuilt.indexed ?? 0) + indexer.status.indexed;
  }
  return rebuilt;
}
