import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_PARTITION } from "../../src/lib/ids.ts";
import { restoreBackup, writeBackup } from "../../src/operations/backup.ts";
import { backupFile, type BackupSource } from "../../src/operations/backup-source.ts";
import { examineAll } from "../../src/operations/doctor.ts";
import { drillBackup } from "../../src/operations/drill.ts";
import { exportLines } from "../../src/operations/export.ts";
import { rebuildGraph } from "../../src/operations/graph.ts";
import { Store } from "../../src/storage/lmdb/store.ts";
import { meta } from "../../src/storage/tables.ts";
import { startCairn } from "../support/cairn.ts";
import { FakeClock } from "../support/clock.ts";
import { answersOf, startFilled, refusalOf } from "./everything.ts";

let scratch: string;
let file: string;
let target: string;
const clock = new FakeClock();

beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "cairn-backup-"));
  file = join(scratch, "backup");
  target = join(scratch, "target");
});

afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const exported = (store: Store) => Array.fromAsync(exportLines(store, { secrets: true }));

test("a restored backup answers as the store did that it was taken of, to the same key, and has nothing wrong with it", async () => {
  const filled = await startFilled();
  await using cairn = filled.cairn;
  const [answers, lines] = [await answersOf(cairn, filled), await exported(cairn.embedded)];
  const description = await writeBackup(cairn.embedded, clock, file, { force: false });
  expect({ mode: (statSync(file).mode & 0o777).toString(8), others: readdirSync(scratch) }).toEqual({ mode: "600", others: ["backup"] });

  const restored = await restoreBackup(backupFile(file), target, clock, { force: false });
  expect(restored).toMatchObject({ ...description, created_at: "2026-05-07T08:00:00.000Z" });
  await using again = await startCairn({ directory: target, clock: cairn.clock });
  again.key = cairn.key;
  expect(await answersOf(again, filled)).toEqual(answers);
  expect(await exported(again.embedded)).toEqual(lines);
  expect((await examineAll(again.embedded)).findings).toEqual([]);
});

test("a backup does not replace a file unless told to, and then whole", async () => {
  await using cairn = await startCairn();
  writeFileSync(file, "something else");
  expect(await refusalOf(writeBackup(cairn.embedded, clock, file, { force: false }))).toContain("exists already");
  expect(readFileSync(file, "utf8")).toBe("something else");
  await writeBackup(cairn.embedded, clock, file, { force: true });
  expect(readdirSync(scratch)).toEqual(["backup"]);
  await restoreBackup(backupFile(file), target, clock, { force: false });
});

const DAMAGED: { name: string; damage: (bytes: Buffer) => Uint8Array; says: string }[] = [
  { name: "is empty", damage: () => new Uint8Array(), says: "is not a Cairn backup, or it is truncated" },
  { name: "is something else", damage: () => Buffer.from("x".repeat(10_000)), says: "is not a Cairn backup, or it is truncated" },
  { name: "was cut short", damage: (bytes) => bytes.subarray(0, -1), says: "is not a Cairn backup, or it is truncated" },
  { name: "was cut short by a page", damage: (bytes) => bytes.subarray(0, -4096), says: "is not a Cairn backup, or it is truncated" },
  { name: "lacks its beginning", damage: (bytes) => bytes.subarray(4096), says: "is damaged: its length is wrong" },
  {
    name: "has one bit changed",
    damage: (bytes) => bytes.fill((bytes[5000] ?? 0) ^ 1, 5000, 5001),
    says: "is damaged: it is not what was written",
  },
  {
    name: "is of a newer Cairn",
    damage: (bytes) => Buffer.from(bytes.toString("latin1").replace('"schema":1', '"schema":9'), "latin1"),
    says: "which is newer",
  },
  {
    name: "was made of a damaged store",
    damage: (bytes) => sealed(bytes.fill(0, 4 * 4096, 5 * 4096)),
    says: "is a backup of a damaged store. Nothing was changed. Found: ",
  },
];

/** With the hash of what is in it. */
function sealed(bytes: Buffer): Uint8Array {
  const end = bytes.length - 512;
  const description = JSON.parse(bytes.subarray(end).toString()) as { sha256: string };
  description.sha256 = new Bun.CryptoHasher("sha256").update(bytes.subarray(0, end)).digest("hex");
  bytes.write(JSON.stringify(description), end);
  return bytes;
}

for (const { name, damage, says } of DAMAGED) {
  test(`a backup that ${name} is not restored, and the store that is there stays`, async () => {
    const cairn = await startCairn({ directory: target });
    const session = await cairn.createSession();
    await writeBackup(cairn.embedded, clock, file, { force: false });
    await cairn.close();
    writeFileSync(file, damage(readFileSync(file)));
    expect(await refusalOf(restoreBackup(backupFile(file), target, clock, { force: true }))).toContain(says);
    expect(existsSync(join(target, "incoming"))).toBe(false);
    await using after = await startCairn({ directory: target, clock: cairn.clock });
    after.key = cairn.key;
    expect(await after.session(session.id)).toEqual(session);
  });
}

test("a restore replaces a store only when told to, never one that is served, and takes its vector index along", async () => {
  const filled = await startFilled();
  await using cairn = filled.cairn;
  await writeBackup(cairn.embedded, clock, file, { force: false });
  const lines = await exported(cairn.embedded);

  const other = await startCairn({ directory: target });
  const session = await other.createSession();
  await other.addMemory(session.id, "A memory of the other store");
  expect(await refusalOf(restoreBackup(backupFile(file), target, clock, { force: true }))).toContain("Another Cairn is using");
  await other.close();
  const store = await Store.open(target, clock);
  await rebuildGraph(store, { graphFrom: 0 });
  await store.close();
  expect(await refusalOf(restoreBackup(backupFile(file), target, clock, { force: false }))).toContain("There is a store in");
  expect(existsSync(join(target, "vectors"))).toBe(true);

  await restoreBackup(backupFile(file), target, clock, { force: true });
  expect(existsSync(join(target, "vectors"))).toBe(false);
  const restored = await Store.open(target, clock);
  expect(await exported(restored)).toEqual(lines);
  await restored.close();
});

test("a drill leaves nothing, not even of one that was killed, and refuses while another one runs", async () => {
  const cairn = await startCairn({ directory: target });
  await cairn.createSession();
  await writeBackup(cairn.embedded, clock, file, { force: false });
  const drill = join(target, "drill");
  const [begun, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const held: BackupSource = {
    ...backupFile(file),
    async *read(from = 0) {
      yield* backupFile(file).read(from);
      if (from === 0) begun.resolve();
      if (from === 0) await goesOn.promise;
    },
  };
  const first = drillBackup(held, target, clock);
  await begun.promise;
  expect(await refusalOf(drillBackup(backupFile(file), target, clock))).toContain("Another drill is running");
  // A server that starts meanwhile lets it be.
  await cairn.restart();
  goesOn.resolve();
  expect(await first).toMatchObject({ sessions: 1, examination: { findings: [] } });
  expect(existsSync(drill)).toBe(false);

  const killed = () => mkdirSync(join(drill, "data", "store"), { recursive: true });
  killed();
  expect((await drillBackup(backupFile(file), target, clock)).sessions).toBe(1);
  expect(existsSync(drill)).toBe(false);
  killed();
  await cairn.restart();
  expect(existsSync(drill)).toBe(false);
  await cairn.close();
  killed();
  await restoreBackup(backupFile(file), target, clock, { force: true });
  expect(existsSync(drill)).toBe(false);
});

test("a restore without space for it says so before it writes anything", async () => {
  const bytes = 2 ** 50;
  const description = JSON.stringify({ cairn_backup: 1, cairn: "0.1.0", schema: 1, created_at: "", bytes, sha256: "" });
  const source: BackupSource = {
    name: "a large one",
    size: () => Promise.resolve(bytes + 512),
    async *read(from = 0) {
      expect(from).toBe(bytes);
      yield Buffer.from(description.padEnd(512));
    },
  };
  expect(await refusalOf(restoreBackup(source, target, clock, { force: false }))).toMatch(
    /no space .*: 1,125,\d{3},\d{3} MB are needed on the disk/,
  );
  expect(readdirSync(target)).toEqual(["serve.lock"]);
  expect(await refusalOf(drillBackup(source, scratch, clock))).toContain("There is no space");
});

test("a restore that was killed leaves nothing that the next one minds", async () => {
  const cairn = await startCairn();
  await writeBackup(cairn.embedded, clock, file, { force: false });
  await cairn[Symbol.asyncDispose]();
  await restoreBackup(backupFile(file), target, clock, { force: false });
  // As it is in the middle of one.
  const draft = await Store.open(join(target, "incoming"), clock);
  await draft.commit(NO_PARTITION, (tx) => tx.put(meta, "name", "7"));
  await draft.close();
  await restoreBackup(backupFile(file), target, clock, { force: true });
  expect(readdirSync(target).toSorted()).toEqual(["serve.lock", "store"]);
});
