/**
 * The graph on disk, so that a start need not build it again. It may be lost, old or damaged: then it is built.
 *
 * ```
 * vectors/manifest.json   { format, file, bytes, sha256, dimension }
 * vectors/1a2b….hnsw      the graph that the manifest names
 * ```
 * The graph is written to a file of a new name and flushed; then the manifest is replaced by renaming, which is the moment
 * the new snapshot counts. hnswlib crashes on a damaged file, so nothing is loaded whose length and SHA-256 are not right.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { DIMENSION } from "../embeddings/embedder.ts";
import { Graph } from "./hnsw.ts";

const FORMAT = 1;
const MANIFEST = "manifest.json";

interface Manifest {
  format: number;
  file: string;
  bytes: number;
  sha256: string;
  dimension: number;
}

/** @throws {Error} when the disk did not take all of it; the snapshot before then stays */
export async function saveSnapshot(directory: string, graph: Graph): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = `${randomUUID()}.hnsw`;
  const path = join(directory, file);
  try {
    await graph.save(path);
    // hnswlib reports success whatever happens: the file must say what the graph does.
    await flush(path);
    const { bytes, sha256 } = await digest(path);
    if (bytes < graph.size * DIMENSION * Float32Array.BYTES_PER_ELEMENT) throw new Error(`the snapshot was cut short at ${bytes} bytes`);
    const manifest: Manifest = { format: FORMAT, file, bytes, sha256, dimension: DIMENSION };
    const temporary = join(directory, `${file}.manifest`);
    await Bun.write(temporary, JSON.stringify(manifest));
    await flush(temporary);
    await rename(temporary, join(directory, MANIFEST));
    await flush(directory);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
  await removeOthers(directory, file);
}

export type Loaded = { graph: Graph } | { reason: string };

/** The graph of the last snapshot, or why there is none. */
export async function loadSnapshot(directory: string): Promise<Loaded> {
  const manifestFile = Bun.file(join(directory, MANIFEST));
  if (!(await manifestFile.exists())) return { reason: "there is no snapshot" };
  const manifest: unknown = await manifestFile.json().catch(() => undefined);
  if (!isManifest(manifest)) return { reason: "the manifest of the snapshot cannot be read" };
  if (manifest.format !== FORMAT || manifest.dimension !== DIMENSION) return { reason: "the snapshot is of another format" };
  const path = join(directory, manifest.file);
  const found = await digest(path).catch(() => undefined);
  if (found === undefined) return { reason: "the file of the snapshot is missing" };
  if (found.bytes !== manifest.bytes || found.sha256 !== manifest.sha256) return { reason: "the snapshot is damaged" };
  return { graph: Graph.load(path) };
}

function isManifest(value: unknown): value is Manifest {
  const manifest = value as Partial<Manifest> | null | undefined;
  return typeof manifest === "object" && manifest !== null && /^[0-9a-f-]+\.hnsw$/.test(String(manifest.file)) && typeof manifest.bytes === "number";
}

/** Reads in pieces and lets other work through between them. */
async function digest(path: string): Promise<{ bytes: number; sha256: string }> {
  const hasher = new Bun.CryptoHasher("sha256");
  let bytes = 0;
  for await (const chunk of Bun.file(path).stream()) {
    hasher.update(chunk);
    bytes += chunk.byteLength;
  }
  return { bytes, sha256: hasher.digest("hex") };
}

async function flush(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function removeOthers(directory: string, keep: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name !== keep && name !== MANIFEST) await rm(join(directory, name), { force: true });
  }
}
