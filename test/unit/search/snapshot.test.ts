import { describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DIMENSION_MAX, PASSAGES_MAX } from "../../../src/embeddings/embedder.ts";
import { NO_PARTITION } from "../../../src/lib/ids.ts";
import { provider, PROVIDER_KEY } from "../../../src/storage/tables.ts";
import { Indexer } from "../../../src/search/indexer.ts";
import { POINT_BYTES } from "../../../src/search/graph/hnsw-index.ts";
import { resealGraph, resealTables, type Tables } from "./resealed.ts";
import { type StoredVectors, chance, dot, finished, queryFor, storedVectors, unitVector } from "./stored-vectors.ts";

// What is compared is much, and the machine may be busy with other tests.
setDefaultTimeout(600_000);

const COUNT = 150;

const directoryOf = ({ directory }: StoredVectors) => join(directory, "vectors");
const manifestOf = (vectors: StoredVectors) => join(directoryOf(vectors), "manifest.json");
const readManifest = (vectors: StoredVectors) => JSON.parse(readFileSync(manifestOf(vectors), "utf8"));
const graphOf = (vectors: StoredVectors) => join(directoryOf(vectors), `${readManifest(vectors).name}.hnsw`);
const tablesOf = (vectors: StoredVectors) => join(directoryOf(vectors), `${readManifest(vectors).name}.tables`);
const filesOf = (name: string) => new Set([`${name}.hnsw`, `${name}.tables`, "manifest.json"]);

/** What a promise is rejected with. */
const refused = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

/** A store with an index that was built and saved. */
async function saved(seed: number): Promise<{ vectors: StoredVectors; random: () => number; indexer: Indexer }> {
  const vectors = await storedVectors();
  const random = chance(seed);
  await vectors.add(Array.from({ length: COUNT }, () => unitVector(random)));
  const indexer = new Indexer(vectors.store, directoryOf(vectors));
  await indexer.start();
  while (indexer.step());
  await indexer.save();
  return { vectors, random, indexer };
}

/** Starts another indexer on the same files, and checks that it finds what brute force finds, before and after it is built. */
async function restartFrom(vectors: StoredVectors, random: () => number): Promise<{ reason: string | undefined; pending: number }> {
  const indexer = new Indexer(vectors.store, directoryOf(vectors));
  const reason = await indexer.start();
  const { pending } = indexer.status;
  const check = () => {
    for (let i = 0; i < 5; i++) {
      const query = unitVector(random);
      const found = finished(indexer.nearest(queryFor(query, 20), [])).map(({ memory }) => memory);
      expect(new Set(found)).toEqual(new Set(vectors.exact(query, [], 20)));
    }
  };
  check();
  while (indexer.step());
  check();
  expect(indexer.status).toMatchObject({ indexed: vectors.stored.length, pending: 0 });
  return { reason, pending };
}

function change(file: string, at: (length: number) => number): void {
  const bytes = readFileSync(file);
  const position = at(bytes.length);
  bytes[position]! ^= 0x10;
  writeFileSync(file, bytes);
}

function rewriteManifest(vectors: StoredVectors, changes: Record<string, unknown>): void {
  writeFileSync(manifestOf(vectors), JSON.stringify({ ...readManifest(vectors), ...changes }));
}

/** Where in the tables the index of terms begins: after an id of the vector, one of its memory and a bit for each slot. */
const termsAt = (vectors: StoredVectors) => readManifest(vectors).slots * 24 + Math.ceil(readManifest(vectors).slots / 8);

const DAMAGED = "the snapshot is damaged";
const UNREADABLE = "the manifest of the snapshot cannot be read";

const DAMAGES: { name: string; damage: (vectors: StoredVectors) => unknown; reason: string }[] = [
  { name: "the directory is gone", damage: (v) => rmSync(directoryOf(v), { recursive: true }), reason: "there is no snapshot" },
  {
    name: "the directory is a file",
    damage: (v) => (rmSync(directoryOf(v), { recursive: true }), writeFileSync(directoryOf(v), "")),
    reason: "there is no snapshot",
  },
  { name: "the manifest is gone", damage: (v) => rmSync(manifestOf(v)), reason: "there is no snapshot" },
  { name: "the manifest is empty", damage: (v) => writeFileSync(manifestOf(v), ""), reason: UNREADABLE },
  { name: "the manifest is no JSON", damage: (v) => writeFileSync(manifestOf(v), '{"format":1,'), reason: UNREADABLE },
  { name: "the manifest is null", damage: (v) => writeFileSync(manifestOf(v), "null"), reason: UNREADABLE },
  { name: "the manifest is zeros", damage: (v) => writeFileSync(manifestOf(v), Buffer.alloc(300)), reason: UNREADABLE },
  { name: "the manifest names files elsewhere", damage: (v) => rewriteManifest(v, { name: "../store/data" }), reason: UNREADABLE },
  { name: "the manifest says nothing of slots", damage: (v) => rewriteManifest(v, { slots: undefined }), reason: UNREADABLE },
  { name: "the manifest says that there are more slots", damage: (v) => rewriteManifest(v, { slots: COUNT * 1_000 }), reason: DAMAGED },
  {
    name: "the manifest says that the graph has more slots",
    damage: (v) => rewriteManifest(v, { graphEnd: COUNT + 1 }),
    reason: UNREADABLE,
  },
  {
    name: "the manifest is of another format",
    damage: (v) => rewriteManifest(v, { format: 1 }),
    reason: "the snapshot is of another format",
  },
  {
    name: "the manifest has another checksum",
    damage: (v) => rewriteManifest(v, { graph: { ...readManifest(v).graph, xxh3: "0".repeat(16) } }),
    reason: DAMAGED,
  },
  { name: "the tables are gone", damage: (v) => rmSync(tablesOf(v)), reason: "the files of the snapshot cannot be read" },
  { name: "the tables are cut short", damage: (v) => truncateSync(tablesOf(v), 1_000), reason: DAMAGED },
  { name: "a byte of the tables is changed", damage: (v) => change(tablesOf(v), (length) => length >> 1), reason: DAMAGED },
  { name: "the tables have one byte more", damage: (v) => writeFileSync(tablesOf(v), "x", { flag: "a" }), reason: DAMAGED },
  { name: "a length in the tables is changed", damage: (v) => change(tablesOf(v), () => termsAt(v) + 4), reason: DAMAGED },
  {
    name: "the highest byte of a length in the tables is changed",
    damage: (v) => change(tablesOf(v), () => termsAt(v) + 15),
    reason: DAMAGED,
  },
  { name: "the file is gone", damage: (v) => rmSync(graphOf(v)), reason: "the files of the snapshot cannot be read" },
  { name: "the file is empty", damage: (v) => truncateSync(graphOf(v), 0), reason: DAMAGED },
  { name: "the file is cut short", damage: (v) => truncateSync(graphOf(v), 10_000), reason: DAMAGED },
  { name: "the file lacks its last byte", damage: (v) => truncateSync(graphOf(v), statSync(graphOf(v)).size - 1), reason: DAMAGED },
  { name: "the file has one byte more", damage: (v) => writeFileSync(graphOf(v), "x", { flag: "a" }), reason: DAMAGED },
  { name: "a byte of the header is changed", damage: (v) => change(graphOf(v), () => 17), reason: DAMAGED },
  { name: "a byte in the middle is changed", damage: (v) => change(graphOf(v), (length) => length >> 1), reason: DAMAGED },
  { name: "the last byte is changed", damage: (v) => change(graphOf(v), (length) => length - 1), reason: DAMAGED },
];

/** The length of hnswlib's header. */
const HEADER_BYTES = 96;
const UNSOUND_GRAPH = "the snapshot does not load: Error: Hnswlib Error: Index seems to be corrupted or unsupported";

/** With checksums that do not show it. */
const UNSOUND: typeof DAMAGES = [
  ...[
    { name: "a link leads to no point", change: (graph: Buffer) => void graph.writeUInt32LE(1e6, HEADER_BYTES + 4) },
    { name: "a point has more links than there is room for", change: (graph: Buffer) => void graph.writeUInt16LE(500, HEADER_BYTES) },
    { name: "a search would begin at no point", change: (graph: Buffer) => void graph.writeUInt32LE(1e6, 52) },
    { name: "a search would begin on a level that is not there", change: (graph: Buffer) => void graph.writeUInt32LE(9, 48) },
    { name: "there are more points than the graph has room for", change: (graph: Buffer) => void graph.writeBigUInt64LE(10n, 8) },
    { name: "there is room for more points than there is memory", change: (graph: Buffer) => void graph.writeBigUInt64LE(2n ** 33n, 8) },
    { name: "a point is too long for its vector", change: (graph: Buffer) => void graph.writeBigUInt64LE(2n ** 40n, 40) },
    {
      name: "two points have one label",
      // The one of the second slot.
      change: (graph: Buffer) => void graph.writeBigUInt64LE(BigInt(PASSAGES_MAX), HEADER_BYTES + POINT_BYTES - 8),
    },
    {
      name: "a label is no slot",
      change: (graph: Buffer) => void graph.writeBigUInt64LE(2n ** 40n, HEADER_BYTES + COUNT * POINT_BYTES - 8),
    },
    {
      name: "a link of an upper level leads to a point that is not on it",
      change: (graph: Buffer) => {
        const upper = upperLinksIn(graph);
        const low = upper.findIndex(({ length }) => length === 0);
        graph.writeUInt32LE(low, upper.find(({ length }) => length > 0)!.at + 4);
      },
    },
    {
      name: "links of upper levels are of no level",
      change: (graph: Buffer) => Buffer.concat([graph.subarray(0, -4), Buffer.of(3, 0, 0, 0), graph.subarray(-3)]),
    },
  ].map(({ name, change }) => ({ name, damage: (v: StoredVectors) => resealGraph(directoryOf(v), change), reason: UNSOUND_GRAPH })),
  ...[
    { name: "a table of terms has no end for who looks for one that is not there", change: ({ parts }: Tables) => void parts[0]!.fill(1) },
    { name: "a table of terms is missing", change: (tables: Tables) => removePart(tables, 0, 4) },
    { name: "there are no blocks of postings", change: (tables: Tables) => removePart(tables, 64, 8) },
    {
      name: "terms lead to more vectors than there are",
      change: ({ header }: Tables) => void header.writeUInt32LE(header.readUInt32LE(12) + 1, 12),
    },
  ].map(({ name, change }) => ({ name, damage: (v: StoredVectors) => resealTables(directoryOf(v), change), reason: DAMAGED })),
];

/** @param countAt - where in the header it says how many parts of its kind there are */
function removePart(tables: Tables, index: number, countAt: number): void {
  tables.parts.splice(index, 1);
  tables.lengths = Buffer.concat([tables.lengths.subarray(0, 4 * index), tables.lengths.subarray(4 * index + 4)]);
  tables.header.writeUInt32LE(tables.header.readUInt32LE(countAt) - 1, countAt);
}

/** Where in a graph the links of upper levels of each point are, and their length in bytes. */
function upperLinksIn(graph: Buffer): { at: number; length: number }[] {
  let at = HEADER_BYTES + COUNT * POINT_BYTES;
  return Array.from({ length: COUNT }, () => {
    const length = graph.readUInt32LE(at);
    const links = { at: at + 4, length };
    at += 4 + length;
    return links;
  });
}

describe("a start goes on from the store alone when", () => {
  for (const { name, damage, reason } of [...DAMAGES, ...UNSOUND]) {
    test(name, async () => {
      const { vectors, random } = await saved(1);
      await using _ = vectors;
      await damage(vectors);
      expect(await restartFrom(vectors, random)).toEqual({ reason, pending: COUNT });
    });
  }
});

test("a start has room for the rows that it reads, and for few others", async () => {
  const { vectors } = await saved(11);
  await using _ = vectors;
  const indexer = new Indexer(vectors.store, directoryOf(vectors));
  await indexer.start();
  while (indexer.step());
  const places = 16_384 * 16;
  expect(indexer.bytes.rows).toBeLessThan(places + (COUNT + 3) * DIMENSION_MAX);
});

test("a whole snapshot is all that a start needs", async () => {
  const { vectors, random } = await saved(2);
  await using _ = vectors;
  expect(await restartFrom(vectors, random)).toEqual({ reason: undefined, pending: 0 });
});

test("a start finds what is nearest before it has read the numbers of all vectors, and when it has read some", async () => {
  await using vectors = await storedVectors();
  const random = chance(12);
  await vectors.add(Array.from({ length: 900 }, () => unitVector(random)));
  const before = new Indexer(vectors.store, directoryOf(vectors));
  await before.start();
  while (before.step());
  await before.save();
  const indexer = new Indexer(vectors.store, directoryOf(vectors));
  await indexer.start();
  do {
    for (let i = 0; i < 3; i++) {
      const query = unitVector(random);
      const found = finished(indexer.nearest(queryFor(query, 20), []));
      expect(new Set(found.map(({ memory }) => memory))).toEqual(new Set(vectors.exact(query, [], 20)));
      for (const { memory, cosine } of found) {
        const { vector } = vectors.stored.find((one) => one.memory === memory)!;
        expect(cosine).toBeCloseTo(dot(query, vector), 2);
      }
    }
  } while (indexer.step());
});

test("a start builds only the difference to what was added, deleted and changed since the snapshot", async () => {
  const { vectors, random } = await saved(3);
  await using _ = vectors;
  const removed = vectors.stored.slice(10, 30);
  await vectors.remove(removed);
  await vectors.add(Array.from({ length: 7 }, () => unitVector(random)));
  for (const one of vectors.stored.slice(50, 55)) await vectors.replace(one, unitVector(random));
  expect(await restartFrom(vectors, random)).toEqual({ reason: undefined, pending: 12 });
});

test("points that were removed before the snapshot stay removed, start after start", async () => {
  const { vectors, random, indexer } = await saved(4);
  await using _ = vectors;
  await vectors.remove(vectors.stored.slice(0, 20));
  indexer.sweep();
  while (indexer.step());
  await indexer.save();
  await vectors.remove(vectors.stored.slice(0, 20));
  const next = new Indexer(vectors.store, directoryOf(vectors));
  expect(await next.start()).toBeUndefined();
  expect(next.status).toEqual({ indexed: 110, pending: 0, removed: 40, unsaved: 20 });
  await next.save();
  expect(await restartFrom(vectors, random)).toEqual({ reason: undefined, pending: 0 });
});

test("no snapshot is left of an index of which nothing is left", async () => {
  const { vectors, random, indexer } = await saved(5);
  await using _ = vectors;
  await vectors.remove(vectors.stored);
  indexer.sweep();
  while (indexer.step());
  await indexer.save();
  expect(indexer.status).toEqual({ indexed: 0, pending: 0, removed: 0, unsaved: 0 });
  expect(readdirSync(directoryOf(vectors))).toEqual([]);
  await vectors.add(Array.from({ length: 5 }, () => unitVector(random)));
  expect(await restartFrom(vectors, random)).toEqual({ reason: "there is no snapshot", pending: 5 });
});

test("of another store's snapshot nothing is found", async () => {
  const one = await saved(6);
  const other = await saved(7);
  await using _ = one.vectors;
  await using __ = other.vectors;
  rmSync(directoryOf(one.vectors), { recursive: true });
  cpSync(directoryOf(other.vectors), directoryOf(one.vectors), { recursive: true });
  // Where its vectors are all older than the store's, it is gone on from without them.
  expect([undefined, "the snapshot is of another store"]).toContain((await restartFrom(one.vectors, one.random)).reason);
});

test("of a snapshot that knows more than the store, as after putting a backup back, only what is stored is found", async () => {
  const { vectors, random, indexer } = await saved(8);
  await using _ = vectors;
  const backup = join(vectors.directory, "backup");
  await vectors.store.close();
  cpSync(join(vectors.directory, "store"), backup, { recursive: true });
  const before = [...vectors.stored];
  await vectors.open();
  const later = new Indexer(vectors.store, directoryOf(vectors));
  await later.start();
  await vectors.add(Array.from({ length: 10 }, () => unitVector(random)));
  later.catchUp();
  while (later.step());
  await later.save();
  await vectors.store.close();
  rmSync(join(vectors.directory, "store"), { recursive: true });
  renameSync(backup, join(vectors.directory, "store"));
  await vectors.open();
  vectors.stored = before;
  expect(indexer.status.indexed).toBe(COUNT);
  expect(await restartFrom(vectors, random)).toEqual({ reason: undefined, pending: 0 });
});

test("a snapshot that cannot be written leaves the one before, and the next one is written whole", async () => {
  const { vectors, random, indexer } = await saved(9);
  await using _ = vectors;
  const before = readManifest(vectors);
  await vectors.add(Array.from({ length: 5 }, () => unitVector(random)));
  indexer.catchUp();
  while (indexer.step());
  const aside = join(vectors.directory, "aside");
  renameSync(directoryOf(vectors), aside);
  writeFileSync(directoryOf(vectors), "in the way");
  expect(await refused(indexer.save())).toMatchObject({ code: "EEXIST" });
  expect(indexer.status.unsaved).toBe(5);
  rmSync(directoryOf(vectors));
  renameSync(aside, directoryOf(vectors));
  expect(readManifest(vectors)).toEqual(before);
  expect(await restartFrom(vectors, random)).toEqual({ reason: undefined, pending: 5 });
  await indexer.save();
  expect(indexer.status.unsaved).toBe(0);
  expect(await restartFrom(vectors, random)).toEqual({ reason: undefined, pending: 0 });
});

test("a manifest that cannot be put in place leaves no half of a snapshot behind", async () => {
  const { vectors, random, indexer } = await saved(10);
  await using _ = vectors;
  const { name } = readManifest(vectors);
  await vectors.add([unitVector(random)]);
  indexer.catchUp();
  while (indexer.step());
  const manifest = readFileSync(manifestOf(vectors));
  rmSync(manifestOf(vectors));
  // Nothing can be renamed onto a directory that has something in it.
  mkdirSync(join(manifestOf(vectors), "something"), { recursive: true });
  expect(await refused(indexer.save())).toMatchObject({ code: "EISDIR" });
  expect(new Set(readdirSync(directoryOf(vectors)))).toEqual(filesOf(name));
  rmSync(manifestOf(vectors), { recursive: true });
  writeFileSync(manifestOf(vectors), manifest);
  expect(await restartFrom(vectors, random)).toEqual({ reason: undefined, pending: 1 });
});

test("nothing is left of earlier snapshots and attempts once a new one counts", async () => {
  const { vectors, random, indexer } = await saved(11);
  await using _ = vectors;
  writeFileSync(join(directoryOf(vectors), "0000.hnsw"), "an attempt that a crash cut short");
  const { name: before } = readManifest(vectors);
  await vectors.add([unitVector(random)]);
  indexer.catchUp();
  while (indexer.step());
  await indexer.save();
  const { name } = readManifest(vectors);
  expect(name).not.toBe(before);
  expect(new Set(readdirSync(directoryOf(vectors)))).toEqual(filesOf(name));
});

test("nothing is written when nothing has changed", async () => {
  const { vectors, indexer } = await saved(12);
  await using _ = vectors;
  rmSync(directoryOf(vectors), { recursive: true });
  await indexer.save();
  expect(existsSync(directoryOf(vectors))).toBe(false);
});

test("a snapshot of another provider's vectors is not gone on from", async () => {
  const { vectors, random } = await saved(13);
  await using _ = vectors;
  await vectors.store.commit(NO_PARTITION, (tx) => tx.put(provider, PROVIDER_KEY, { identity: "another", generation: 1 }));
  vectors.stored = [];
  await vectors.add(Array.from({ length: 7 }, () => unitVector(random)));
  expect(await restartFrom(vectors, random)).toMatchObject({ reason: "the snapshot is of another provider's vectors" });
});
