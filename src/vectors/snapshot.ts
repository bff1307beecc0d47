/**
 * The graph on disk, so that a start need not build it again. It may be lost, old or damaged: then it is built.
 *
 * ```
 * vectors/manifest.json   { format, file, bytes, sha256, dimension, generation, ids }
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
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { describeError } from "../lib/log.ts";
import { HnswIndex } from "./hnsw-index.ts";

const FORMAT = 2;
const MANIFEST = "manifest.json";
const REMOVED = "-".repeat(BARE_ID_LENGTH);
/** A vector, 33 links and a label, and some more for the upper levels. */
const POINT_BYTES = DIMENSION * Float32Array.BYTES_PER_ELEMENT + 33 * 4 + 8 + 32;
/** Left free for the store, which refuses writes when the disk is nearly full. */
const SPARE_BYTES = 256 * 1024 * 1024;

interface Manifest {
  format: number;
  file: string;
  bytes: number;
  sha256: string;
  dimension: number;
  /** The generation of the vectors. */
  generation: number;
  /** The ids of the points' vectors in the order of labels, end to end; of a removed one dashes. */
  ids: string;
}

/** @throws {Error} when the disk did not take all of it; the snapshot before then stays */
export async function saveSnapshot(directory: string, index: HnswIndex, generation: number): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  assertSpace(directory, index.ids.length * POINT_BYTES);
  const file = `${randomUUID()}.hnsw`;
  const path = join(directory, file);
  const draft = join(directory, `${file}.manifest`);
  try {
    const ids = index.ids.map((id) => id ?? REMOVED).join("");
    await index.save(path);
    await flush(path);
    const manifest: Manifest = { format: FORMAT, file, ...(await digest(path)), dimension: DIMENSION, generation, ids };
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

/** A snapshot whose file is whole. */
export interface VerifiedSnapshot {
  path: string;
  generation: number;
  /** By label; undefined for a removed point. */
  ids: (BareId | undefined)[];
}

export const NO_SNAPSHOT = "there is no snapshot";

/** The last snapshot, or why there is none to go on from. */
export async function loadSnapshot(directory: string, generation: number): Promise<HnswIndex | { reason: string }> {
  const verified = await verifySnapshot(directory);
  if ("reason" in verified) return verified;
  if (verified.generation !== generation) return { reason: "the snapshot is of another provider's vectors" };
  try {
    return HnswIndex.load(verified.path, verified.ids);
  } catch (error) {
    return { reason: `the snapshot does not load: ${describeError(error)}` };
  }
}

/** The file of the last snapshot, found whole, and the ids of its points. */
export async function verifySnapshot(directory: string): Promise<VerifiedSnapshot | { reason: string }> {
  const manifestFile = Bun.file(join(directory, MANIFEST));
  if (!(await manifestFile.exists())) return { reason: NO_SNAPSHOT };
  const manifest: unknown = await manifestFile.json().catch(() => undefined);
  if (!isManifest(manifest)) return { reason: "the manifest of the snapshot cannot be read" };
  if (manifest.format !== FORMAT || manifest.dimension !== DIMENSION) return { reason: "the snapshot is of another format" };
  const path = join(directory, manifest.file);
  const found = await digest(path).catch(() => undefined);
  if (found === undefined) return { reason: "the file of the snapshot cannot be read" };
  if (found.bytes !== manifest.bytes || found.sha256 !== manifest.sha256) return { reason: "the snapshot is damaged" };
  return { path, generation: manifest.generation, ids: idsOf(manifest) };
}

function isManifest(value: unknown): value is Manifest {
  if (typeof value !== "object" || value === null) return false;
  const { file, ids } = value as Partial<Manifest>;
  return typeof file === "string" && /^[0-9a-f-]+\.hnsw$/.test(file) && typeof ids === "string" && ids.length % BARE_ID_LENGTH === 0;
}

function idsOf({ ids }: Manifest): (BareId | undefined)[] {
  return Array.from({ length: ids.length / BARE_ID_LENGTH }, (_, label) => {
    const id = ids.slice(label * BARE_ID_LENGTH, (label + 1) * BARE_ID_LENGTH);
    return id === REMOVED ? undefined : id;
  });
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
