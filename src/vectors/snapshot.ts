/**
 * The graph on disk, so that a start need not build it again. It may be lost, old or damaged: then it is built.
 *
 * ```
 * vectors/manifest.json   { format, file, bytes, sha256, dimension, removed }
 * vectors/1a2b….hnsw      the graph that the manifest names
 * ```
 * The graph is written to a file of a new name and flushed; then the manifest is replaced by renaming, which is the moment
 * the new snapshot counts. hnswlib crashes on a damaged file, so nothing is loaded whose length and SHA-256 are not right.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { DIMENSION } from "../embeddings/embedder.ts";
import { digest, flush, freeBytes } from "../lib/files.ts";
import { describeError } from "../lib/log.ts";
import { Graph } from "./hnsw.ts";

const FORMAT = 1;
const MANIFEST = "manifest.json";
/** A vector, 33 links and a label, and some more for the upper levels. */
const POINT_BYTES = DIMENSION * Float32Array.BYTES_PER_ELEMENT + 33 * 4 + 8 + 32;
/** Left free for the store, which refuses writes when the disk is nearly full. */
const SPARE_BYTES = 256 * 1024 * 1024;

/** The graph of an index, and of its points' labels those that can be found and those that are removed. */
export interface Snapshot {
  graph: Graph;
  live: Set<number>;
  removed: Set<number>;
}

interface Manifest {
  format: number;
  file: string;
  bytes: number;
  sha256: string;
  dimension: number;
  /** hnswlib knows which points are removed, but does not tell. */
  removed: number[];
}

/** @throws {Error} when the disk did not take all of it; the snapshot before then stays */
export async function saveSnapshot(directory: string, { graph, removed }: Snapshot): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  assertSpace(directory, graph.size * POINT_BYTES);
  const file = `${randomUUID()}.hnsw`;
  const path = join(directory, file);
  const draft = join(directory, `${file}.manifest`);
  try {
    await graph.save(path);
    await flush(path);
    const manifest: Manifest = { format: FORMAT, file, ...(await digest(path)), dimension: DIMENSION, removed: [...removed] };
    await Bun.write(draft, JSON.stringify(manifest));
    await flush(draft);
    await rename(draft, join(directory, MANIFEST));
  } catch (error) {
    await Promise.all([rm(path, { force: true }), rm(draft, { force: true })]).catch(() => undefined);
    throw error;
  }
  await flush(directory);
  await removeOthers(directory, file);
}

export const NO_SNAPSHOT = "there is no snapshot";

/** The last snapshot, or why there is none to go on from. */
export async function loadSnapshot(directory: string): Promise<Snapshot | { reason: string }> {
  const verified = await verifySnapshot(directory);
  if ("reason" in verified) return verified;
  try {
    const graph = Graph.load(verified.path);
    const { removed } = verified;
    return { graph, live: new Set(graph.labels().filter((label) => !removed.has(label))), removed };
  } catch (error) {
    return { reason: `the snapshot does not load: ${describeError(error)}` };
  }
}

/** The file of the last snapshot, found whole, and the labels of its removed points. */
export async function verifySnapshot(directory: string): Promise<{ path: string; removed: Set<number> } | { reason: string }> {
  const manifestFile = Bun.file(join(directory, MANIFEST));
  if (!(await manifestFile.exists())) return { reason: NO_SNAPSHOT };
  const manifest: unknown = await manifestFile.json().catch(() => undefined);
  if (!isManifest(manifest)) return { reason: "the manifest of the snapshot cannot be read" };
  if (manifest.format !== FORMAT || manifest.dimension !== DIMENSION) return { reason: "the snapshot is of another format" };
  const path = join(directory, manifest.file);
  const found = await digest(path).catch(() => undefined);
  if (found === undefined) return { reason: "the file of the snapshot cannot be read" };
  if (found.bytes !== manifest.bytes || found.sha256 !== manifest.sha256) return { reason: "the snapshot is damaged" };
  return { path, removed: new Set(manifest.removed) };
}

function isManifest(value: unknown): value is Manifest {
  if (typeof value !== "object" || value === null) return false;
  const { file, removed } = value as Partial<Manifest>;
  return typeof file === "string" && /^[0-9a-f-]+\.hnsw$/.test(file) && Array.isArray(removed) && removed.every(Number.isSafeInteger);
}

function assertSpace(directory: string, bytes: number): void {
  const free = freeBytes(directory);
  if (free < bytes + SPARE_BYTES)
    throw new Error(`the disk has ${free} bytes free; ${bytes} for the snapshot would leave too few for the store`);
}

/** What earlier snapshots and attempts left. What cannot be removed now is tried again with the next one. */
async function removeOthers(directory: string, keep: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name !== keep && name !== MANIFEST) await rm(join(directory, name), { force: true }).catch(() => undefined);
  }
}
