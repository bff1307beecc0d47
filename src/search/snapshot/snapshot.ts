/**
 * The index on disk, so that a start need not build it again. It may be lost, old or damaged: then it is built.
 *
 * ```
 * vectors/manifest.json    how many there are of what, and of each file its length and checksum
 * vectors/1a2b….tables     slots, then the index of terms
 * vectors/1a2b….hnsw       the graph
 * ```
 * Files are written under a new name and flushed; then the manifest is replaced by renaming, which is the moment the new snapshot
 * counts. Nothing is used whose length and checksum are not right (`snapshot-file.ts`). Where these do not show that it cannot be, as after
 * a fault of memory, it is not loaded, or the index is rebuilt when a search comes to it (`DamagedListsError`).
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { flush, freeBytes } from "../../lib/files.ts";
import { describeError } from "../../lib/log.ts";
import { HnswIndex, POINT_BYTES } from "../graph/hnsw-index.ts";
import type { SearchIndex } from "../search-index.ts";
import { Slots } from "../slots.ts";
import { checksumOf, isSame, PartReader, writeParts, type Checksum } from "./snapshot-file.ts";
import { TermIndex } from "../words/term-index.ts";

const FORMAT = 11;
const MANIFEST = "manifest.json";
/** More than what the links of upper levels take, by point. */
const UPPER_LINKS_BYTES = 32;
/** Left free for the store, which refuses writes when the disk is nearly full. */
const SPARE_BYTES = 256 * 1024 * 1024;

interface Manifest {
  format: number;
  /** Prefix of the names of the files. */
  name: string;
  /** The generation of the vectors. */
  generation: number;
  slots: number;
  /** The first slot that is not in the graph, and how many points that has. */
  graphEnd: number;
  points: number;
  tables: Checksum;
  graph: Checksum;
}

const tablesFile = (name: string) => `${name}.tables`;
const graphFile = (name: string) => `${name}.hnsw`;

/** @throws {Error} when the disk did not take all of it; the snapshot before then stays */
export async function saveSnapshot(directory: string, index: SearchIndex, graph: HnswIndex): Promise<void> {
  const { generation, graphEnd } = index;
  const { points } = graph;
  const slots = index.slots.length;
  const parts = [...index.slots.parts(), ...index.terms.parts()];
  // All within this turn, for then the next vector may be ingested while the graph is written.
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const name = randomUUID();
  const tablesPath = join(directory, tablesFile(name));
  const graphPath = join(directory, graphFile(name));
  const draft = join(directory, `${name}.manifest`);
  try {
    assertSpace(directory, points * (POINT_BYTES + UPPER_LINKS_BYTES) + parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
    const tables = writeParts(tablesPath, parts);
    await graph.save(graphPath);
    await flush(tablesPath);
    await flush(graphPath);
    const checksums = { tables, graph: await checksumOf(graphPath) };
    const manifest: Manifest = { format: FORMAT, name, generation, slots, graphEnd, points, ...checksums };
    await Bun.write(draft, JSON.stringify(manifest));
    await flush(draft);
    await rename(draft, join(directory, MANIFEST));
  } catch (error) {
    await Promise.all([tablesPath, graphPath, draft].map((path) => rm(path, { force: true }))).catch(() => undefined);
    throw error;
  }
  await flush(directory);
  await removeOthers(directory, name);
}

/** Removes the last snapshot, of an index that has no graph any more. */
export async function removeSnapshot(directory: string): Promise<void> {
  await rm(join(directory, MANIFEST), { force: true });
  if (existsSync(directory)) await removeOthers(directory, MANIFEST);
}

/** Part of an index in a snapshot. hnswlib takes the longest: its part comes later. */
export interface LoadedSnapshot {
  slots: Slots;
  terms: TermIndex;
  graphEnd: number;
  graph: Promise<HnswIndex | { reason: string }>;
}

export const NO_SNAPSHOT = "there is no snapshot";
/** Another version has written it: the next start builds the index again. */
export const OTHER_FORMAT = "the snapshot is of another format";
const UNREADABLE = "the files of the snapshot cannot be read";
const DAMAGED = "the snapshot is damaged";

/** The last snapshot, or why there is none to go on from. @param signal - that it will not be needed */
export async function loadSnapshot(
  directory: string,
  generation: number,
  signal?: AbortSignal,
): Promise<LoadedSnapshot | { reason: string }> {
  const manifest = await readManifest(directory);
  if ("reason" in manifest) return manifest;
  if (manifest.generation !== generation) return { reason: "the snapshot is of another provider's vectors" };
  const reason = await graphProblem(directory, manifest, signal);
  if (reason !== undefined) return { reason };
  const graph = HnswIndex.load(join(directory, graphFile(manifest.name)), manifest.points).catch(notLoaded);
  const tables = readTables(directory, manifest);
  if ("reason" in tables) {
    const loaded = await graph;
    if (loaded instanceof HnswIndex) loaded.release();
    return tables;
  }
  return { ...tables, graphEnd: manifest.graphEnd, graph };
}

function notLoaded(error: unknown): { reason: string } {
  return { reason: `the snapshot does not load: ${describeError(error)}` };
}

/** A snapshot whose files are whole. */
export interface VerifiedSnapshot {
  graphPath: string;
  generation: number;
  graphEnd: number;
  points: number;
  slots: Slots;
  terms: TermIndex;
}

/** The last snapshot, found whole. */
export async function verifySnapshot(directory: string): Promise<VerifiedSnapshot | { reason: string }> {
  const manifest = await readManifest(directory);
  if ("reason" in manifest) return manifest;
  const reason = await graphProblem(directory, manifest);
  if (reason !== undefined) return { reason };
  const tables = readTables(directory, manifest);
  if ("reason" in tables) return tables;
  return { ...manifest, ...tables, graphPath: join(directory, graphFile(manifest.name)) };
}

async function readManifest(directory: string): Promise<Manifest | { reason: string }> {
  const file = Bun.file(join(directory, MANIFEST));
  if (!(await file.exists())) return { reason: NO_SNAPSHOT };
  const manifest: unknown = await file.json().catch(() => undefined);
  if (!isManifest(manifest)) return { reason: "the manifest of the snapshot cannot be read" };
  return manifest.format === FORMAT ? manifest : { reason: OTHER_FORMAT };
}

async function graphProblem(directory: string, { name, graph }: Manifest, signal?: AbortSignal): Promise<string | undefined> {
  const found = await checksumOf(join(directory, graphFile(name)), signal).catch(() => undefined);
  if (found === undefined) return UNREADABLE;
  return isSame(found, graph) ? undefined : DAMAGED;
}

function readTables(directory: string, { name, slots, tables }: Manifest): { slots: Slots; terms: TermIndex } | { reason: string } {
  try {
    using file = new PartReader(join(directory, tablesFile(name)));
    const read = { slots: Slots.read(file, slots), terms: TermIndex.read(file) };
    const isWhole = isSame(file.checksum, tables) && file.left === 0 && read.terms.slots <= slots;
    return isWhole ? read : { reason: DAMAGED };
  } catch (error) {
    // The parts are not as long as they say.
    return { reason: error instanceof RangeError ? DAMAGED : UNREADABLE };
  }
}

/** Another format's is one too, whatever else it says. */
function isManifest(value: unknown): value is Manifest {
  if (typeof value !== "object" || value === null) return false;
  const { format, name, generation, slots, graphEnd, points, tables, graph } = value as Partial<Manifest>;
  if (Number.isInteger(format) && format !== FORMAT) return true;
  const isCounted = [generation, slots, graphEnd, points].every((count) => Number.isInteger(count) && count! >= 0);
  return (
    isCounted &&
    graphEnd! <= slots! &&
    typeof name === "string" &&
    /^[0-9a-f-]+$/.test(name) &&
    typeof tables === "object" &&
    typeof graph === "object"
  );
}

function assertSpace(directory: string, bytes: number): void {
  const free = freeBytes(directory);
  if (free < bytes + SPARE_BYTES)
    throw new Error(`the disk has ${free} bytes free; ${bytes} for the snapshot would leave too few for the store`);
}

/** Removes what earlier snapshots and attempts left. What cannot be removed now is tried again with the next one. */
async function removeOthers(directory: string, kept: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(kept) && name !== MANIFEST) await rm(join(directory, name), { force: true }).catch(() => undefined);
  }
}
