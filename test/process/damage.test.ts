import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  closeSync,
  cpSync,
  existsSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DATA_FILE, readDataFile } from "../../src/storage/lmdb/file/data-file.ts";
import { Pages } from "../../src/storage/lmdb/file/pages.ts";
import { numberedTexts } from "../support/fill.ts";
import { Chance, failed, inTurns, KEY, runCairn, scratchDirectory, startProcess, type Ended } from "../support/process.ts";

const PAGE_BYTES = 4_096;
const MEMORIES = 300;
const SESSIONS = 20;

/** Two of a store with something in every table, and a backup of it. */
const scratch = scratchDirectory();
const whole = join(scratch.path, "whole");
const backup = join(scratch.path, "backup.cairn");
let rows: ReadonlyMap<string, number>;

beforeAll(async () => {
  await using server = await startProcess({ dataDirectory: whole });
  const make = (path: string, body: object) => server.ok(server.post(path, body, { "Idempotency-Key": crypto.randomUUID() }));
  await make("/v1/webhooks", { url: "http://127.0.0.1:9/in", events: ["session.created"] });
  const ids: string[] = [];
  for (let i = 0; i < SESSIONS; i++) {
    const { id } = await make("/v1/sessions", { agent_id: `agent ${i}`, user_id: "user", initial_state: { text: "x".repeat(i * 900) } });
    ids.push(id);
    await make(`/v1/sessions/${id}/state`, { state: { step: i } });
    await make(`/v1/sessions/${id}/turns`, { input: { type: "text", content: "in" }, output: { type: "text", content: "out" } });
  }
  const texts = numberedTexts(MEMORIES).entries();
  await inTurns([...texts], 8, ([i, content]) => make("/v1/memory", { session_id: ids[i % SESSIONS], content, type: `type ${i % 7}` }));
  await server.stop();
  const made = await runCairn(["backup", backup, "--data-dir", whole]);
  if (made.code !== 0) throw new Error(made.stderr);
  rows = rowsIn(whole);
});
afterAll(() => scratch[Symbol.dispose]());

function rowsIn(dataDirectory: string): Map<string, number> {
  using pages = new Pages(join(dataDirectory, DATA_FILE));
  return new Map(pages.tables().map((table) => [table.name, [...pages.rows(table)].length]));
}

/** One row of a table: that of a key, or the first. */
function rowOf(dataDirectory: string, name: string, key?: string): { key: string; page: number } {
  using pages = new Pages(join(dataDirectory, DATA_FILE));
  const table = pages.tables().find((candidate) => candidate.name === name);
  for (const row of table === undefined ? [] : pages.rows(table)) if (key === undefined || row.key === key) return row;
  throw new Error(`no such row of ${name}`);
}

type Damage = (file: string, chance: Chance) => void;

/** Writes over pages of the file, which whoever has it open sees at once; only over those that `work` changes. */
function change(path: string, work: (bytes: Buffer) => void): void {
  const [before, bytes] = [readFileSync(path), readFileSync(path)];
  work(bytes);
  const file = openSync(path, "r+");
  for (let at = 0; at < bytes.length; at += PAGE_BYTES) {
    const page = bytes.subarray(at, at + PAGE_BYTES);
    if (!page.equals(before.subarray(at, at + PAGE_BYTES))) writeSync(file, page, 0, page.length, at);
  }
  closeSync(file);
}

/** Where the tables are, and how many rows each has: without it nobody can say what is lost. The root and what it leads to. */
function namesPages(file: string): number[] {
  const found = readDataFile(file);
  const { root = 0, depth = 0 } = found.kind === "whole" ? found.meta.trees.names : {};
  if (depth < 2) return [root];
  const bytes = readFileSync(file).subarray(root * PAGE_BYTES, (root + 1) * PAGE_BYTES);
  return [root, ...nodesOf(bytes).map((node) => bytes.readUInt32LE(node))];
}

/** Where the entries of a page begin. */
function nodesOf(page: Buffer): number[] {
  return Array.from({ length: page.readUInt16LE(20) >> 1 }, (_, i) => PAGE_HEAD_BYTES + page.readUInt16LE(PAGE_HEAD_BYTES + 2 * i));
}
const PAGE_HEAD_BYTES = 24;

/** Damage anywhere but there. */
const changing =
  (work: (bytes: Buffer, chance: Chance) => void): Damage =>
  (file, chance) => {
    const pages = namesPages(file);
    change(file, (bytes) => {
      const names = pages.map((page) => Buffer.from(bytes.subarray(page * PAGE_BYTES, (page + 1) * PAGE_BYTES)));
      work(bytes, chance);
      for (const [i, page] of pages.entries()) names[i]!.copy(bytes, page * PAGE_BYTES);
    });
  };
const pageAt = (bytes: Buffer, chance: Chance) => (2 + chance.below(bytes.length / PAGE_BYTES - 2)) * PAGE_BYTES;
/** Where most pages have what leads to their entries. */
const HEAD_BYTES = 400;

const DAMAGES: { name: string; damage: Damage; isMapped: boolean }[] = [
  { name: "is empty", damage: (file) => truncateSync(file, 0), isMapped: false },
  { name: "is missing", damage: (file) => rmSync(file), isMapped: false },
  { name: "has lost its second half", damage: changingLength(0.5), isMapped: false },
  { name: "has zeros where it begins", damage: changing((bytes) => bytes.fill(0, 0, 3 * PAGE_BYTES)), isMapped: false },
  { name: "has another first meta page", damage: changing((bytes) => bytes.fill(7, 20, 100)), isMapped: false },
  { name: "has another second meta page", damage: changing((bytes) => bytes.fill(7, PAGE_BYTES + 20, PAGE_BYTES + 100)), isMapped: false },
  {
    name: "has zeros in the middle",
    damage: changing((bytes) => bytes.fill(0, bytes.length / 2, bytes.length / 2 + 32 * PAGE_BYTES)),
    isMapped: true,
  },
  {
    name: "has zeros where the names of its tables are",
    damage: (file) => {
      const pages = namesPages(file);
      change(file, (bytes) => {
        for (const page of pages) bytes.fill(0, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
      });
    },
    isMapped: true,
  },
  {
    name: "has random pages",
    damage: changing((bytes, chance) => {
      for (let i = 0; i < 40; i++)
        for (let at = pageAt(bytes, chance), end = at + PAGE_BYTES; at < end; at++) bytes[at] = chance.below(256);
    }),
    isMapped: true,
  },
  {
    name: "has random bytes in the heads of pages",
    damage: changing((bytes, chance) => {
      for (let i = 0; i < 300; i++) bytes[pageAt(bytes, chance) + chance.below(HEAD_BYTES)] = chance.below(256);
    }),
    isMapped: true,
  },
  {
    name: "has random bytes anywhere",
    damage: changing((bytes, chance) => {
      for (let i = 0; i < 2_000; i++) bytes[2 * PAGE_BYTES + chance.below(bytes.length - 2 * PAGE_BYTES)] = chance.below(256);
    }),
    isMapped: true,
  },
  {
    name: "is a named pipe",
    damage: (file) => {
      rmSync(file);
      Bun.spawnSync(["mkfifo", "-m", "600", file]);
    },
    isMapped: false,
  },
];

function changingLength(share: number): Damage {
  return (file) => truncateSync(file, Math.floor((readFileSync(file).length * share) / PAGE_BYTES) * PAGE_BYTES);
}

/** A command that meets damage ends by itself, and says in sentences what it has met. */
function expectEndedWell(args: readonly string[], { code, stdout, stderr }: Ended): void {
  const said = stdout + stderr;
  expect({
    args,
    code,
    crash: /crashed|panic|Assertion|Segmentation|ReferenceError|MDB_[A-Z]+|\bE[A-Z]{4,}:|^ +at .*:\d+/m.exec(said)?.[0],
  }).toEqual({
    args,
    code: code === 0 ? 0 : 1,
    crash: undefined,
  });
  if (code === 1) expect({ args, said }).toEqual({ args, said: expect.stringMatching(/[a-z]{3,} [a-z]{2,} .*[a-z]\.?/) });
}

for (const [seed, { name, damage, isMapped }] of DAMAGES.entries()) {
  test(`a store whose file ${name} ends no command by a signal, and each says what it met or is right`, async () => {
    using directory = scratchDirectory();
    const damaged = directory.at("damaged");
    const at = (file: string) => directory.at(file);
    const renew = () => {
      rmSync(damaged, { recursive: true, force: true });
      cpSync(whole, damaged, { recursive: true });
      damage(join(damaged, DATA_FILE), new Chance(seed + 1));
    };
    renew();
    const run = async (...args: string[]) => {
      const ended = await runCairn([...args, "--data-dir", damaged]);
      expectEndedWell(args, ended);
      return ended;
    };
    expect((await run("doctor")).code).toBe(1);
    const salvaged = await run("export", at("salvaged"), "--salvage");
    const exported = await run("export");
    if (exported.code === 0) expect(exported.stdout.trimEnd().split("\n").length).toBe(recordCount(rows) + 2);
    const written = await run("backup", at("copy"));
    expect([written.code, readdirSync(directory.path).filter((file) => file.includes("copy"))]).toEqual([1, []]);
    await run("keys", "list");
    await run("keys", "create");
    if (!isMapped) expect((await run("serve", "--port", "0")).code).toBe(1);
    else {
      renew();
      await serveOn(damaged);
    }
    expectSaved(salvaged, at("salvaged"));
    if (existsSync(at("salvaged"))) {
      expect(await runCairn(["import", at("salvaged"), "--data-dir", at("imported")])).toMatchObject({ code: 0, stderr: "" });
      expect(rowsIn(at("imported")).get("memories") ?? 0).toBe(linesOf(at("salvaged"), "memories"));
    }
    expect(await runCairn(["restore", backup, "--force", "--data-dir", damaged])).toMatchObject({ code: 0, stderr: "" });
    expect((await run("doctor")).stdout).toStartWith("Nothing is wrong: ");
  });
}

test("a server on a store in which the name of an index is damaged writes where it can, and ends when it is told to", async () => {
  using directory = scratchDirectory();
  cpSync(whole, directory.at("damaged"), { recursive: true });
  change(join(directory.at("damaged"), DATA_FILE), (bytes) => {
    const name = "traces.byUser\0";
    for (let at = bytes.indexOf(name); at !== -1; at = bytes.indexOf(name, at + 1)) bytes[at + 2] = 1;
  });
  await serveOn(directory.at("damaged"));
});

test("a server on a store whose list of free pages names pages in use ends when it is told to, whatever it has written over", async () => {
  for (let seed = 1; seed <= LISTS_OF_FREE_PAGES; seed++) {
    using directory = scratchDirectory();
    cpSync(whole, directory.at("damaged"), { recursive: true });
    nameUsedPagesAsFree(directory.at(join("damaged", DATA_FILE)), new Chance(seed));
    await using server = await startProcess({ dataDirectory: directory.at("damaged") });
    await inTurns([...Array(SESSIONS_MADE).keys()], 4, async (i) => {
      const { status } = await server.post("/v1/sessions", { agent_id: `agent ${i}`, user_id: "user" });
      expect([201, 401, 429, 500, 503]).toContain(status);
    });
    expect({ seed, code: await server.stop() }).toEqual({ seed, code: 0 });
  }
}, 600_000);
/** What is written over is drawn: each has one of about four. */
const LISTS_OF_FREE_PAGES = 10;
const SESSIONS_MADE = 200;

/** Each entry of the list has a number of 8 bytes as its key, then how many pages it names, and these from the last to the first. */
function nameUsedPagesAsFree(file: string, chance: Chance): void {
  const found = readDataFile(file);
  const { root = 0, depth = 0 } = found.kind === "whole" ? found.meta.trees.free : {};
  expect(depth).toBe(1);
  change(file, (bytes) => {
    const page = bytes.subarray(root * PAGE_BYTES, (root + 1) * PAGE_BYTES);
    for (const node of nodesOf(page)) {
      const at = node + 2 * 8;
      const count = Number(page.readBigUInt64LE(at));
      const pages = new Set<number>();
      while (pages.size < count) pages.add(2 + chance.below(bytes.length / PAGE_BYTES - 2));
      for (const [i, number] of [...pages].toSorted((a, b) => b - a).entries()) page.writeBigUInt64LE(BigInt(number), at + 8 + 8 * i);
    }
  });
}

/** A server that starts on it answers, whatever the answer, until it is told to stop; one that does not says why. */
async function serveOn(dataDirectory: string): Promise<void> {
  let server;
  try {
    server = await startProcess({ dataDirectory });
  } catch (error) {
    expectEndedWell(["serve"], {
      code: Number(/ended with code (\d+)/.exec(String(error))?.[1]),
      stdout: "",
      stderr: String(error).split("\n")[0] ?? "",
    });
    return;
  }
  await using started = server;
  // Not read as JSON: the text of a row that is shown as it is stored can be damaged on a page that is whole otherwise.
  const ask = async (path: string, body?: object) => {
    const headers = { "X-API-Key": KEY, "Content-Type": "application/json" };
    const init = body === undefined ? { headers } : { method: "POST", headers, body: JSON.stringify(body) };
    const answer = await fetch(started.address + path, init);
    return { path, status: answer.status, text: await answer.text() };
  };
  const answers = await Promise.all([
    ...["sessions", "memory", "traces", "webhooks", "api_keys", "settings"].map((path) => ask(`/v1/${path}`)),
    ask("/v1/memory/search", { query: "parcel", threshold: 0 }),
    ask("/v1/sessions", { agent_id: "agent" }),
    ask("/health/live"),
  ]);
  // The row of the key that asks can be, too, or one that is asked for.
  expect(answers.filter(({ status }) => ![200, 201, 401, 500, 503].includes(status))).toEqual([]);
  expect(await started.stop()).toBe(0);
}

function linesOf(path: string, table: string): number {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line.startsWith(`{"table":"${table}"`)).length;
}

function recordCount(counts: ReadonlyMap<string, number>): number {
  const records = ["settings", "provider", "api_keys", "sessions", "versions", "turns", "memories", "traces", "outbox", "webhooks"];
  return [...records, "payloads", "deliveries", "idempotency", "removals"].reduce((sum, name) => sum + (counts.get(name) ?? 0), 0);
}

/** Every row is in the file, or counted among those left out. */
function expectSaved({ code, stderr }: Ended, file: string): void {
  if (!existsSync(file)) return expect(code).toBe(1);
  for (const table of ["memories", "sessions", "traces"]) {
    if (stderr.includes(`${table}: the table`)) continue;
    const leftOut = Number(new RegExp(`^${table}: (\\d+) of`, "m").exec(stderr)?.[1] ?? 0);
    expect({ table, rows: linesOf(file, table) + leftOut }).toEqual({ table, rows: rows.get(table) as number });
  }
}

test("rows of a table whose number of rows is damaged are saved, and nobody counts by it what is lost", async () => {
  using directory = scratchDirectory();
  const damaged = directory.at("damaged");
  cpSync(whole, damaged, { recursive: true });
  const bytes = readFileSync(join(damaged, DATA_FILE));
  const name = "traces\0";
  // Behind the name of a table: padding, flags, depth and three counts of pages, 32 bytes in all.
  for (let at = bytes.indexOf(name); at !== -1; at = bytes.indexOf(name, at + 1)) bytes.writeBigUInt64LE(2n ** 47n, at + name.length + 32);
  writeFileSync(join(damaged, DATA_FILE), bytes);
  const { code, stderr } = await runCairn(["export", directory.at("saved"), "--salvage", "--data-dir", damaged]);
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining("\ntraces: the table has a damaged number of rows, so it is not known how many are left out\n"),
  });
  expect(linesOf(directory.at("saved"), "traces")).toBe(rows.get("traces") as number);
});

test("no backup or export is written among Cairn's own files or over them, even with --force", async () => {
  using directory = scratchDirectory();
  cpSync(whole, directory.path, { recursive: true });
  const before = readFileSync(directory.at(DATA_FILE));
  for (const file of ["store/backup", "store/data.mdb", "serve.lock", "vectors/backup", "store/../store/data.mdb"]) {
    for (const command of ["backup", "export"]) {
      const ended = await runCairn([command, `${directory.path}/${file}`, "--force", "--data-dir", directory.path]);
      expect(ended).toMatchObject(failed(expect.stringContaining("is where Cairn keeps its own files")));
    }
  }
  expect(readFileSync(directory.at(DATA_FILE)).equals(before)).toBe(true);
  expect(readdirSync(directory.at("store")).toSorted()).toEqual(["data.mdb", "lock.mdb"]);
  expect(await runCairn(["backup", directory.at("today"), "--data-dir", directory.path])).toMatchObject({ code: 0 });
});

test("doctor --fix goes on from the one whole meta page, without what the last commit changed at most", async () => {
  using directory = scratchDirectory();
  for (const page of [0, 1]) {
    const damaged = directory.at(`damaged-${page}`);
    cpSync(whole, damaged, { recursive: true });
    change(join(damaged, DATA_FILE), (bytes) => bytes.fill(0, page * PAGE_BYTES, page * PAGE_BYTES + 200));
    const doctor = (...flags: string[]) => runCairn(["doctor", ...flags, "--data-dir", damaged]);
    expect((await doctor()).stderr).toContain(`${DATA_FILE} has a damaged meta page (page ${page}). Nothing was changed. Stop the server`);
    expect((await doctor("--fix")).stdout).toContain(
      `${DATA_FILE} has a damaged meta page (page ${page}): it is repaired from the other one.`,
    );
    expect((await doctor()).stdout).toStartWith("Nothing is wrong: ");
    expect(readDataFile(join(damaged, DATA_FILE)).kind).toBe("whole");
    expect(rowsIn(damaged).get("memories")).toBe(rows.get("memories") as number);
    await using server = await startProcess({ dataDirectory: damaged });
    await server.createSession();
  }
});

test("a server under which pages of memories are damaged answers 503 for those and goes on", async () => {
  using directory = scratchDirectory();
  cpSync(whole, directory.path, { recursive: true });
  await using server = await startProcess({ dataDirectory: directory.path });
  const session = await server.createSession({ initial_state: { step: 1 } });
  const { key, page } = rowOf(directory.path, "memories");
  change(directory.at(DATA_FILE), (bytes) => bytes.fill(0xff, page * PAGE_BYTES, (page + 1) * PAGE_BYTES));
  expect(await server.get(`/v1/memory/mem_${key}`)).toMatchObject({ status: 503, body: { error: { code: "service_unavailable" } } });
  expect(await server.get(`/v1/sessions/${session.id}`)).toMatchObject({ status: 200, body: { state: { step: 1 } } });
  expect((await runCairn(["doctor", "--data-dir", directory.path])).stdout).toContain("damaged pages of memories: 1");
  expect(await server.stop()).toBe(0);
});

test("a command that needs a row that cannot be read says so, and that doctor says which", async () => {
  using directory = scratchDirectory();
  cpSync(whole, directory.path, { recursive: true });
  const keys = (...args: string[]) => runCairn(["keys", ...args, "--data-dir", directory.path]);
  const [{ id }] = JSON.parse((await keys("list", "--json")).stdout);
  const { page } = rowOf(directory.path, "api_keys");
  change(join(directory.path, DATA_FILE), (bytes) => {
    bytes[bytes.indexOf('"scopes"', page * PAGE_BYTES)] = 0;
  });
  expect(await keys("list")).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(await keys("roll", id)).toEqual({
    code: 1,
    stdout: "",
    stderr: "cairn: The store cannot be read or changed: a row of api_keys cannot be read. cairn doctor says what is damaged.\n",
  });
  expect((await runCairn(["doctor", "--data-dir", directory.path])).stdout).toContain("api_keys: rows that cannot be read: 1");
});

test("a key with a byte beyond ASCII is a damaged row, and no failure of the executable", async () => {
  using directory = scratchDirectory();
  cpSync(whole, directory.path, { recursive: true });
  await using server = await startProcess({ dataDirectory: directory.path });
  const [newest] = (await server.ok(server.get("/v1/sessions?limit=1"))).data;
  await server.stop();
  const key = newest.id.slice("sess_".length);
  const { page } = rowOf(directory.path, "sessions", key);
  change(directory.at(DATA_FILE), (bytes) => {
    bytes[bytes.indexOf(key + '{"agentId"', page * PAGE_BYTES) + key.length - 1] = 0xc3;
  });
  const { code, stdout } = await runCairn(["doctor", "--data-dir", directory.path]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: expect.stringContaining("sessions: ") as string });
  expect(stdout).not.toContain("ReferenceError");
});
