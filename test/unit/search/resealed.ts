/**
 * Snapshots that say what cannot be, with checksums that do not show it.
 *
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checksumOf, writeParts } from "../../../src/search/snapshot/snapshot-file.ts";

/** Of a snapshot of fewer vectors than the ids of one part. */
export interface Tables {
  /** In this order: `key, tables, chunks, slots`, and the lengths of what follows. */
  header: Buffer;
  lengths: Buffer;
  /** The tables of terms, and the chunks of blocks. */
  parts: Buffer[];
}

/** Changes the tables of the snapshot in a directory. */
export function resealTables(directory: string, change: (tables: Tables) => void): void {
  const manifest = readManifest(directory);
  const path = join(directory, `${manifest.name}.tables`);
  const bytes = readFileSync(path);
  let at = 0;
  const take = (length: number) => bytes.subarray(at, (at += length));
  const slots = [take(24 * manifest.slots), take(Math.ceil(manifest.slots / 8))];
  const header = take(16);
  const lengths = take(4 * (header.readUInt32LE(4) + header.readUInt32LE(8)));
  const parts = Array.from({ length: lengths.length / 4 }, (_, i) => take(lengths.readUInt32LE(4 * i)));
  const tables = { header, lengths, parts };
  change(tables);
  writeManifest(directory, { ...manifest, tables: writeParts(path, [...slots, tables.header, tables.lengths, ...tables.parts]) });
}

/** Changes the graph of the snapshot in a directory. */
export async function resealGraph(directory: string, change: (graph: Buffer) => Buffer | void): Promise<void> {
  const manifest = readManifest(directory);
  const path = join(directory, `${manifest.name}.hnsw`);
  const bytes = readFileSync(path);
  writeFileSync(path, change(bytes) ?? bytes);
  writeManifest(directory, { ...manifest, graph: await checksumOf(path) });
}

function readManifest(directory: string): { name: string; slots: number } {
  return JSON.parse(readFileSync(join(directory, "manifest.json"), "utf8"));
}

function writeManifest(directory: string, manifest: object): void {
  writeFileSync(join(directory, "manifest.json"), JSON.stringify(manifest));
}
