/**
 * A start on the store of an older Cairn. The older versions and the ways from them are made up here: they are the two before
 * the present one, with rows that were named otherwise.
 *
 * @module
 */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { restoreBackup } from "../../src/operations/backup.ts";
import { backupFile } from "../../src/operations/backup-source.ts";
import { examineAll } from "../../src/operations/doctor.ts";
import { withStore } from "../../src/operations/with-store.ts";
import { MAX_KEY } from "../../src/storage/keys.ts";
import { MIGRATIONS, migrationsFrom, type Migration } from "../../src/storage/lmdb/migrate.ts";
import type { Store } from "../../src/storage/lmdb/store.ts";
import { SCHEMA_VERSION, sessions } from "../../src/storage/tables.ts";
import { startCairn } from "../support/cairn.ts";
import { FakeClock } from "../support/clock.ts";
import { answersOf, refusalOf, startFilled, type Filled } from "./everything.ts";
import { inStore, makeOlder, memoryRows, ROADS, toLatest, toMiddle, webhookRows } from "./older.ts";

let scratch: string;
let directory: string;
const clock = new FakeClock();

beforeEach(() => {
  scratch = fs.mkdtempSync(join(tmpdir(), "cairn-upgrade-"));
  directory = join(scratch, "data");
});

afterEach(() => fs.rmSync(scratch, { recursive: true, force: true }));

interface Older extends Filled {
  key: string;
  answers: unknown;
}

/** The store of an older Cairn in `directory`, and what the newest one has to answer of it. */
async function older(): Promise<Older> {
  const filled = await startFilled({ directory });
  const older = { ...filled, key: filled.cairn.key, answers: await answersOf(filled.cairn, filled) };
  await filled.cairn.close();
  await makeOlder(directory, filled.cairn.clock);
  return older;
}

async function startWith(migrations: readonly Migration[], { cairn: { clock: time }, key }: Older, at = directory) {
  const cairn = await startCairn({ directory: at, clock: time, migrations });
  cairn.key = key;
  return cairn;
}

/** The migration, with a fault at its end. */
const failingIn = (migration: Migration): Migration => ({
  ...migration,
  run(tx) {
    migration.run(tx);
    throw new Error("a row cannot be read");
  },
});
/** What is told of a start that does not succeed. */
const startRefused = (migrations: readonly Migration[], before: Older) => refusalOf(startWith(migrations, before));
const backups = () => fs.readdirSync(join(directory, "backups")).toSorted();
const open = <Result>(look: (store: Store) => Result, at = directory) => inStore(at, clock, look);
/** The version of the store, and the rows that the migrations change. */
const state = (at?: string) =>
  open((store) => [store.schema, ...[memoryRows, webhookRows].map((table) => store.latest.rows(table, { from: "", to: MAX_KEY }))], at);

test("a start on an older store makes a backup, brings it up to date, and answers as if it had always been so", async () => {
  const before = await older();
  const found = await state();
  {
    await using cairn = await startWith(ROADS, before);
    expect(await answersOf(cairn, before)).toEqual(before.answers);
    expect((await examineAll(cairn.embedded)).findings).toEqual([]);
    expect(
      cairn.logged.map((line) => JSON.parse(line).message as string).filter((message) => /older|backup|migrated/.test(message)),
    ).toEqual([
      "the store is of an older Cairn: writing a backup before it is changed",
      "backup written",
      "store migrated",
      "store migrated",
    ]);
  }
  const [name = ""] = backups();
  expect(name).toMatch(new RegExp(`^before-schema-${SCHEMA_VERSION - 1}-\\d+-20260507T080000Z\\.cairn$`));
  const modes = ["backups", `backups/${name}`].map((path) => (fs.statSync(join(directory, path)).mode & 0o777).toString(8));
  expect(modes).toEqual(["700", "600"]);

  // The backup is the older store, and goes the same way when it is restored.
  const restored = join(scratch, "restored");
  expect(await restoreBackup(backupFile(join(directory, "backups", name)), restored, clock, { force: false })).toMatchObject({
    schema: SCHEMA_VERSION - 2,
    sessions: await open((store) => store.count(sessions)),
  });
  expect(await state(restored)).toEqual(found);
  await using again = await startWith(ROADS, before, restored);
  expect(await answersOf(again, before)).toEqual(before.answers);
});

test("a store that is up to date is opened as it is: no backup, no migration", async () => {
  const before = await older();
  await (await startWith(ROADS, before)).close();
  const [only] = backups();
  const never: Migration = { ...toLatest, run: () => expect.unreachable() };
  await using cairn = await startWith([toMiddle, never], before);
  expect(backups()).toEqual([only as string]);
  expect(await answersOf(cairn, before)).toEqual(before.answers);
});

test("commands beside the server refuse an older store, say that a start brings it up to date, and leave it as it is", async () => {
  await older();
  const found = await state();
  const says = new RegExp(
    `has schema version ${SCHEMA_VERSION - 2}; this Cairn reads version ${SCHEMA_VERSION}\\. .*older Cairn: start .cairn serve.`,
  );
  expect(await refusalOf(withStore(directory, clock, () => Promise.resolve()))).toMatch(says);
  expect(await state()).toEqual(found);
});

test("a migration that fails leaves the store as it was, ends the start with what to do, and the next start succeeds", async () => {
  const before = await older();
  const found = await state();
  const said = await startRefused([failingIn(toMiddle), toLatest], before);
  expect(said).toContain(`${directory} is whole and stays at schema version ${SCHEMA_VERSION - 2}: it could not be brought to version`);
  expect(said).toContain(join(directory, "backups", backups()[0] as string));
  expect(said).toEndWith("The reason: a row cannot be read");
  expect(await state()).toEqual(found);

  await using cairn = await startWith(ROADS, before);
  expect(await answersOf(cairn, before)).toEqual(before.answers);
});

test("when the second of two migrations fails the first one stays, and the backup from before both", async () => {
  const before = await older();
  expect(await startRefused([toMiddle, failingIn(toLatest)], before)).toContain(`stays at schema version ${SCHEMA_VERSION - 1}`);
  expect(await open((store) => store.schema)).toBe(SCHEMA_VERSION - 1);

  await using cairn = await startWith(ROADS, before);
  expect(await answersOf(cairn, before)).toEqual(before.answers);
  expect(backups().map((name) => name.replace(/-\d+-\d{8}T.*/, ""))).toEqual(
    [SCHEMA_VERSION - 1, SCHEMA_VERSION].map((to) => `before-schema-${to}`),
  );
});

test("starts that fail again and again keep one backup, the newest, and nothing of one that was cut off", async () => {
  const before = await older();
  for (let start = 0; start < 3; start++) {
    before.cairn.clock.advance({ seconds: 10 });
    await startRefused([failingIn(toMiddle), toLatest], before);
    const [ofThisStore] = /^before-schema-\d+-\d+-/.exec(backups().at(-1) ?? "") ?? [];
    fs.mkdirSync(join(directory, "backups", `.${ofThisStore}${start}.cairn-abcde${start}.draft`), { mode: 0o700 });
  }
  expect(backups()).toHaveLength(2);
  await startRefused([failingIn(toMiddle), toLatest], before);
  expect(backups()).toEqual([expect.stringMatching(/^before-schema-/)]);
});

test("stores that keep their backups in one directory delete their own alone, a restored one too", async () => {
  const before = await older();
  const copy = join(scratch, "copy");
  const shared = join(scratch, "shared");
  fs.mkdirSync(shared);
  fs.symlinkSync(shared, join(directory, "backups"));
  await startRefused([failingIn(toMiddle), toLatest], before);
  const [first = ""] = fs.readdirSync(shared);
  await restoreBackup(backupFile(join(shared, first)), copy, clock, { force: false });
  fs.symlinkSync(shared, join(copy, "backups"));
  const draft = `.${first.replace(/-2026.*/, "-20260101T000000Z.cairn-abcdef.draft")}`;
  fs.mkdirSync(join(shared, draft), { mode: 0o700 });

  for (let start = 0; start < 2; start++) {
    before.cairn.clock.advance({ seconds: 10 });
    await refusalOf(startWith([failingIn(toMiddle), toLatest], before, copy));
  }
  const second = expect.stringMatching(/^before-schema-.*T080020Z\.cairn$/);
  expect(fs.readdirSync(shared)).toEqual(expect.arrayContaining([draft, first, second]));
  expect(fs.readdirSync(shared)).toHaveLength(3);

  before.cairn.clock.advance({ seconds: 10 });
  await startRefused([failingIn(toMiddle), toLatest], before);
  expect(fs.readdirSync(shared)).toEqual(expect.arrayContaining([second, expect.stringMatching(/^before-schema-.*T080030Z\.cairn$/)]));
  expect(fs.readdirSync(shared)).toHaveLength(2);
});

test("without room for the backup the start is refused before anything is changed, and says how much is needed and where", async () => {
  const before = await older();
  const real = fs.statfsSync;
  const full = spyOn(fs, "statfsSync").mockImplementation(((path: string) => ({ ...real(path), bsize: 1, bavail: 50_000_000 })) as never);
  const said = await startRefused(ROADS, before);
  full.mockRestore();
  expect(said).toMatch(/ and 50 MB are free\. Nothing was changed\. Make space, or make .*backups a link to a directory/);
  const needed = Number(/That needs (\d+) MB in .*backups,/.exec(said)?.[1]) * 1e6;
  expect([backups(), await open((store) => store.schema)]).toEqual([[], SCHEMA_VERSION - 2]);

  // The other way out that was named.
  fs.rmdirSync(join(directory, "backups"));
  fs.mkdirSync(join(scratch, "elsewhere"));
  fs.symlinkSync(join(scratch, "elsewhere"), join(directory, "backups"));
  await using cairn = await startWith(ROADS, before);
  expect(await answersOf(cairn, before)).toEqual(before.answers);
  const [backup = ""] = fs.readdirSync(join(scratch, "elsewhere"));
  const left = needed - fs.statSync(join(scratch, "elsewhere", backup)).size;
  // What a commit wants to be free, more or less the root pages and a rounding.
  expect(Math.abs(left - 64 * 1024 * 1024)).toBeLessThan(1.1e6);
});

test("a store from which no migration leads on is refused by name", async () => {
  const before = await older();
  expect(await startRefused([toLatest], before)).toContain(
    `cannot make version ${SCHEMA_VERSION - 1} of an older store. Start an older Cairn first`,
  );
  expect([await open((store) => store.schema), fs.existsSync(join(directory, "backups"))]).toEqual([SCHEMA_VERSION - 2, false]);
});

test("the migrations there are lead one by one to the schema version there is", () => {
  const first = MIGRATIONS[0]?.to ?? SCHEMA_VERSION + 1;
  expect(migrationsFrom(first - 1, MIGRATIONS)).toEqual([...MIGRATIONS]);
});

const KILLED: { name: string; where: string; leaves: number }[] = [
  { name: "before the first migration", where: "before", leaves: SCHEMA_VERSION - 2 },
  { name: "in the first migration, when all is written", where: "first", leaves: SCHEMA_VERSION - 2 },
  { name: "in the second migration, when all is written", where: "second", leaves: SCHEMA_VERSION - 1 },
];

for (const { name, where, leaves } of KILLED) {
  test(`a kill -9 ${name} leaves a whole version, and the next start goes on from there`, async () => {
    const before = await older();
    const found = await state();
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "older.ts"), directory, where], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    expect({ stderr: await new Response(child.stderr).text(), code: await child.exited, signal: child.signalCode }).toEqual({
      stderr: "",
      code: 137,
      signal: "SIGKILL",
    });
    const [schema, ...rows] = await state();
    expect(schema).toBe(leaves);
    if (leaves === found[0]) expect(rows).toEqual(found.slice(1));
    expect(backups()).toHaveLength(1);

    await using cairn = await startWith(ROADS, before);
    expect(await answersOf(cairn, before)).toEqual(before.answers);
    expect((await examineAll(cairn.embedded)).findings).toEqual([]);
  });
}
