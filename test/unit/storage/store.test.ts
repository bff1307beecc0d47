/**
 * What only the embedded store does: its files, its caches, and commits of their own. What every store does is in `stores.test.ts`.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nextTurn } from "../../../src/lib/clock.ts";
import { NO_PARTITION } from "../../../src/lib/ids.ts";
import type { JsonText } from "../../../src/lib/json.ts";
import { checkFile } from "../../../src/operations/damage.ts";
import { stored } from "../../../src/operations/records.ts";
import type { Span, Tx } from "../../../src/storage/access.ts";
import { MAX_KEY } from "../../../src/storage/keys.ts";
import { DATA_FILE } from "../../../src/storage/lmdb/file/data-file.ts";
import { Pages } from "../../../src/storage/lmdb/file/pages.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { StoreError } from "../../../src/storage/store-error.ts";
import { meta, sessions, traces, turns, vectors, type SessionRow, type TraceRow } from "../../../src/storage/tables.ts";
import { checks } from "../../../src/storage/callback.ts";
import { FakeClock } from "../../support/clock.ts";
import { Chance } from "../../support/process.ts";

let directory: string;
let store: Store;

/** The works here say what they do while they do it. */
beforeAll(() => void (checks.runsTwice = false));
afterAll(() => void (checks.runsTwice = true));

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "cairn-store-"));
  store = await Store.open(directory, new FakeClock());
});

afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

const text = (body: string) => ({ shown: body, rest: "" });

const session = (turnCount: number): SessionRow => ({
  agentId: "a",
  userId: null,
  createdAt: 1,
  updatedAt: 1,
  metadata: {},
  memoryCount: 0,
  turnCount,
  ttlSeconds: 60,
  expiresAt: 2,
  version: 0,
});

test("another process that opens and closes the store takes no commit from it", async () => {
  await store.close();
  // More commits end while it is being opened than when each waits for the disk.
  store = await Store.open(directory, new FakeClock(), { durability: "relaxed" });
  const modules = join(import.meta.dir, "../../../src");
  const script = `
    import { systemClock } from "${modules}/lib/clock.ts";
    import { Store } from "${modules}/storage/lmdb/store.ts";
    for (let i = 0; i < 300; i++) await (await Store.open("${directory}", systemClock)).close();`;
  const child = Bun.spawn([process.execPath, "--eval", script], { stderr: "pipe" });
  let commits = 0;
  // Rows of this table are in no cache.
  const count = (tx: Tx) => tx.put(turns, "count", text(String(Number(tx.get(turns, "count")?.shown ?? 0) + 1)));
  while (child.exitCode === null) {
    await store.commit(NO_PARTITION, count);
    commits++;
    expect(store.latest.get(turns, "count")?.shown).toBe(String(commits));
  }
  expect([child.exitCode, await child.stderr.text()]).toEqual([0, ""]);
});

test("the first transaction on a copy without free pages can be a large one", async () => {
  const keys = Array.from({ length: 4_000 }, (_, i) => String(i).padStart(24, "0"));
  const all = (of: Store, note: string) =>
    of.commit(NO_PARTITION, (tx) => keys.forEach((key) => tx.put(turns, key, text(note.repeat(500)))));
  for (let i = 0; i < keys.length; i += 200)
    await store.commit(NO_PARTITION, (tx) => keys.slice(i, i + 200).forEach((key) => tx.put(turns, key, text("as it was ".repeat(100)))));
  const copy = mkdtempSync(join(tmpdir(), "cairn-copy-"));
  mkdirSync(join(copy, "store"));
  await store.backup(join(copy, "store"));
  // What fails here ends the process.
  const found = await Store.open(copy, new FakeClock());
  for (const note of ["a", "b"]) await all(found, note);
  expect(found.latest.keys(turns, { from: "", to: "~" })).toEqual(keys);
  expect(found.latest.get(turns, keys[3_999]!)?.shown).toBe("b".repeat(500));
  await found.close();
  rmSync(copy, { recursive: true });
});

test("whoever reads after a commit has resolved sees it, however often the row was read while it was under way", async () => {
  for (let count = 1; count <= 30; count++) {
    const under = { way: true };
    const commit = store.commit(NO_PARTITION, (tx) => tx.put(sessions, "s", session(count))).then(() => (under.way = false));
    while (under.way) {
      const seen = store.latest.get(sessions, "s")?.turnCount ?? 0;
      expect([count - 1, count]).toContain(seen);
      await new Promise(setImmediate);
    }
    await commit;
    expect(store.latest.get(sessions, "s")).toEqual(session(count));
    // Inside a commit too what counts is what is stored.
    expect(await store.commit(NO_PARTITION, (tx) => (tx.put(sessions, "s", session(count)), tx.get(sessions, "s")))).toEqual(
      session(count),
    );
  }
  await store.commit(NO_PARTITION, (tx) => tx.remove(sessions, "s"));
  expect(store.latest.get(sessions, "s")).toBeUndefined();
});

test("a commit sees whether a table is empty by then, whatever commits before it have seen, written or failed to write", async () => {
  const seen: boolean[] = [];
  const look = (tx: Tx) => void seen.push(tx.isEmpty(sessions));
  const put = (tx: Tx) => tx.put(sessions, "s", session(1));
  const fail = () => {
    throw new Error("no");
  };
  for (const works of [
    // Each of them is a transaction.
    [look],
    [look, put, look],
    [look, (tx: Tx) => tx.remove(sessions, "s"), look],
    [(tx: Tx) => (put(tx), look(tx), fail()), look],
    [look],
  ])
    await Promise.allSettled(works.map((work) => store.commit(NO_PARTITION, work)));
  expect(seen).toEqual([true, true, false, false, true, false, true, true]);
  expect(store.latest.isEmpty(sessions)).toBe(true);
});

test("what is made of a row twice is given again from then on, for that row alone, not for one that was there before or came after", async () => {
  let made = 0;
  const turnsOf = (row: SessionRow | undefined) =>
    store.latest.derived(
      sessions,
      "s",
      row!,
      () => `${row!.turnCount} turns, made ${++made}`,
      (result) => result.length,
    );
  await store.commit(NO_PARTITION, (tx) => tx.put(sessions, "s", session(1)));
  const before = store.latest.get(sessions, "s");
  expect([turnsOf(before), turnsOf(before), turnsOf(before)]).toEqual(["1 turns, made 1", "1 turns, made 2", "1 turns, made 2"]);
  await store.commit(NO_PARTITION, (tx) => tx.put(sessions, "s", session(2)));
  const after = store.latest.get(sessions, "s");
  expect([turnsOf(after), turnsOf(before), turnsOf(after), turnsOf(before), turnsOf(after)]).toEqual([
    "2 turns, made 3",
    "1 turns, made 4",
    "2 turns, made 5",
    "1 turns, made 6",
    "2 turns, made 5",
  ]);
});

test("a row that is remembered and one that is not are of the same moment, however often both are read while they are written", async () => {
  for (let count = 1; count <= 300; count++) {
    const isThere = count % 2 === 1;
    const under = { way: true };
    const commit = store
      .commit(NO_PARTITION, (tx) => {
        if (isThere) {
          tx.put(sessions, "s", session(count));
          tx.put(meta, "beside", String(count));
        } else {
          tx.remove(sessions, "s");
          tx.remove(meta, "beside");
        }
      })
      .then(() => (under.way = false));
    while (under.way) {
      const seen = [
        store.latest.get(sessions, "s")?.turnCount,
        store.latest.isEmpty(sessions),
        Number(store.latest.get(meta, "beside") ?? Number.NaN),
      ];
      expect(seen).toEqual(Number.isNaN(seen[2]) ? [undefined, true, Number.NaN] : [seen[2] as number, false, seen[2] as number]);
      await new Promise(setImmediate);
    }
    await commit;
  }
});

test("a committed session is cached as it is in the store: the last of a transaction, none of one that failed or that removed it", async () => {
  store.onVectors(vectors, () => {
    throw new Error("the transaction fails");
  });
  const read = () => store.read((reader) => reader.get(sessions, "aa"));
  const missed = () => store.cacheUses["sessions"]!.misses;
  const put = (count: number, fails = false) =>
    store.commit(NO_PARTITION, (tx) => {
      tx.put(sessions, "aa", session(count));
      if (fails) throw new Error("this work fails");
    });
  await Promise.all([put(1), put(2), put(3)]);
  const missedBefore = missed();
  expect(read()).toEqual(session(3));
  expect(missed()).toBe(missedBefore);
  await put(4, true).catch(() => undefined);
  expect(read()).toEqual(session(3));
  await Promise.allSettled([put(5), store.commit(NO_PARTITION, (tx) => tx.putVector(vectors, "aa", new Uint8Array(1)))]);
  expect(read()).toEqual(session(3));
  await Promise.all([put(6), store.commit(NO_PARTITION, (tx) => tx.remove(sessions, "aa"))]);
  expect(read()).toBeUndefined();
});

test("a moment of the store ends with the turn of the event loop, with a commit of its own, and when the newest is read", async () => {
  const first = store.readVersion;
  await Promise.resolve();
  expect(store.readVersion).toBe(first);
  await nextTurn();
  await nextTurn();
  const second = store.readVersion;
  expect(second).not.toBe(first);
  store.readNewest(() => undefined);
  expect(store.readVersion).not.toBe(second);
  const watch = store.health.watch.bind(store.health);
  const seen: object[] = [];
  store.health.watch = async (run, isMarked) => {
    await watch(run, isMarked);
    seen.push(store.readVersion);
  };
  await store.commit(NO_PARTITION, (tx) => tx.put(sessions, "aa", session(1)));
  expect(seen.length).toBe(1);
  expect(store.readVersion).not.toBe(seen[0]!);
});

test("a session that is written as its text is parsed by who reads it", async () => {
  const row = session(1);
  await store.commit(NO_PARTITION, (tx) => tx.put(stored(sessions), "aa", JSON.stringify(row)));
  expect(store.read((reader) => reader.get(sessions, "aa"))).toEqual(row);
});

test("a store of a newer version is refused with what to do, and left as it is", async () => {
  await store.commit(NO_PARTITION, (tx) => tx.put(meta, "schema", "2"));
  await store.close();
  const refused: unknown = await Store.open(directory, new FakeClock()).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(StoreError);
  expect(String(refused)).toMatch(/schema version 2.*written by a newer Cairn: start that one/);
  const again: unknown = await Store.open(directory, new FakeClock()).catch((error: unknown) => error);
  expect(again).toBeInstanceOf(StoreError);
  const path = join(directory, "store");
  rmSync(path, { recursive: true });
  store = await Store.open(directory, new FakeClock());
  expect(store.latest.get(meta, "schema")).toBe("1");
});

test("nobody but the owner can read the files", () => {
  for (const file of ["data.mdb", "lock.mdb"]) expect([file, statSync(join(directory, "store", file)).mode & 0o777]).toEqual([file, 0o600]);
});

test("a commit of its own is all there, or nothing of it when its work throws, and what was remembered is read again", async () => {
  const before = { ...session(1), agentId: "before" };
  await store.commit(NO_PARTITION, (tx) => tx.put(sessions, "s", before));
  expect(store.latest.get(sessions, "s")).toEqual(before);
  const thrown = new Error("no");
  const outcomes = await Promise.allSettled([
    store.commitExclusive((tx) => {
      tx.put(sessions, "s", { ...before, agentId: "never" });
      tx.put(turns, "a", text("never"));
      throw thrown;
    }),
    store.commit(NO_PARTITION, (tx) => tx.put(turns, "b", text("beside"))),
    store.commitExclusive((tx) => {
      tx.put(sessions, "s", { ...before, agentId: "after" });
      for (let i = 0; i < 2_000; i++) tx.put(turns, `c${String(i).padStart(4, "0")}`, text(String(i)));
      tx.remove(turns, "c0007");
      return tx.rows(turns, { from: "c0006", to: "c0009" }).map(({ key }) => key);
    }),
  ]);
  expect(outcomes).toEqual([
    { status: "rejected", reason: thrown },
    { status: "fulfilled", value: undefined },
    { status: "fulfilled", value: ["c0006", "c0008"] },
  ]);
  expect([
    store.latest.get(sessions, "s")?.agentId,
    store.latest.has(turns, "a"),
    store.latest.has(turns, "b"),
    store.count(turns),
  ]).toEqual(["after", false, true, 2_000]);
});

test("keys are copied end to end from one on, shorter ones with zeros behind them, as many as there is room for", async () => {
  const keys = ["aaaa", "bbbb", "cc", "ddddd", "eeee"];
  await store.commit(NO_PARTITION, (tx) => {
    for (const key of keys) tx.putVector(vectors, key, Uint8Array.of(1));
  });
  const copied = (from: string, room: number) => {
    const into = Buffer.alloc(room, "?");
    const count = store.copyKeys(vectors, from, into, 4);
    return [count, into.toString("latin1", 0, 4 * count)];
  };
  expect(copied("", 23)).toEqual([5, "aaaabbbbcc\0\0ddddeeee"]);
  expect(copied("bbb", 14)).toEqual([3, "bbbbcc\0\0dddd"]);
  expect(copied("bbbb", 11)).toEqual([2, "bbbbcc\0\0"]);
  expect(copied("eeee!", 20)).toEqual([0, ""]);
  expect(copied("bbbb!", 400)[0]).toBe(3);
  await store.commit(NO_PARTITION, (tx) => tx.removeVector(vectors, "bbbb"));
  expect(copied("", 16)).toEqual([4, "aaaacc\0\0ddddeeee"]);
});

test("keys that a damaged page has out of order are damage: reading on behind them would never end", async () => {
  await store.commit(NO_PARTITION, (tx) => {
    for (const key of ["k1aa", "k2aa", "k3aa", "k4aa", "k5aa"]) {
      tx.put(turns, key, text("row"));
      tx.putVector(vectors, key, Uint8Array.of(1));
    }
  });
  const all: Span = { from: "", to: MAX_KEY };
  const read = (span: Span) => store.latest.keys(turns, span).join();
  const damaged = "MDB_CORRUPTED: keys of turns are out of order";
  const ids = Buffer.alloc(8);
  expect(read(all)).toBe("k1aa,k2aa,k3aa,k4aa,k5aa");

  overwriteKey("k4aa", "k0aa");
  store.refresh();
  expect(read({ ...all, limit: 3 })).toBe("k1aa,k2aa,k3aa");
  for (const span of [all, { from: "k2b", to: "k5" }, { ...all, limit: 4 }, { ...all, limit: 3, descending: true }]) {
    expect(() => read(span)).toThrow(damaged);
    expect(() => store.latest.rows(turns, span)).toThrow(damaged);
  }
  expect(store.copyKeys(vectors, "k1b", ids, 4)).toBe(2);
  expect(() => store.copyKeys(vectors, "k2b", ids, 4)).toThrow("keys of vectors are out of order");
});

test("a snapshot that cannot find the entries still to be written says so each time they are asked for, and has all else", async () => {
  const trace: TraceRow = { expiresAt: 1, actor: "system", sessionId: "sess_0000000000aa", body: "{}" as JsonText };
  await store.useChangeBuffer();
  await store.commit(NO_PARTITION, (tx) => {
    for (const key of ["k1", "k2", "k3", "k4", "k5"]) tx.add(traces, `A${"0".repeat(9)}${key}`, trace);
    tx.put(turns, "turn", text("row"));
  });
  overwriteKey(`A${"0".repeat(9)}k4`, `A${"0".repeat(9)}k0`);
  using snapshot = store.snapshot();
  for (let i = 0; i < 2; i++) {
    expect(() => snapshot.keys(traces.index.bySession, { from: "", to: MAX_KEY })).toThrow("keys of traces are out of order");
    expect(() => snapshot.has(traces.index.bySession, "a")).toThrow("keys of traces are out of order");
    expect([snapshot.keys(turns, { from: "", to: MAX_KEY }), snapshot.has(turns, "turn")]).toEqual([["turn"], true]);
  }
});

test("what has no key is left out, however few are asked for: it is no record, and hides none", async () => {
  const keys = ["k1aa", "k2aa", "k3aa", "k4aa", "k5aa"];
  await store.commit(NO_PARTITION, (tx) => {
    for (const key of keys) tx.put(turns, key, text(key));
  });
  for (const [i, damaged] of ["k2\xffa", "k3\x02a", "k5a~"].entries()) overwriteKey([1, 2, 4].map((at) => keys[at]!)[i]!, damaged);
  store.refresh();
  for (const limit of [undefined, 1, 2, 3]) {
    for (const descending of [false, true]) {
      const span = { from: "", to: MAX_KEY, descending, ...(limit === undefined ? {} : { limit }) };
      const found = (descending ? ["k4aa", "k1aa"] : ["k1aa", "k4aa"]).slice(0, limit);
      expect({ ...span, found: store.latest.keys(turns, span) }).toEqual({ ...span, found });
      expect(store.latest.rows(turns, span)).toEqual(found.map((key) => ({ key, row: text(key) })));
    }
  }
  using pages = new Pages(join(directory, DATA_FILE));
  for (const table of pages.tables()) expect([...pages.rows(table)].length).toBe(table.entries);
  expect(pages.damage.map(({ reason }) => reason)).toEqual(Array(3).fill("a key has characters that no key has"));
});

test("a page on which two entries have the same bytes is damaged: to write to it as if each had its own ended the process", async () => {
  await store.commit(NO_PARTITION, (tx) => {
    for (const key of ["k1aa", "k2aa", "k3aa"]) tx.put(turns, key, text("row"));
  });
  await store.close();
  overwrite("k1aa", (bytes, at) => {
    const entries = Math.floor(at / PAGE_BYTES) * PAGE_BYTES + PAGE_HEAD_BYTES;
    bytes.copyWithin(entries + 2, entries, entries + 2);
  });
  using pages = new Pages(join(directory, DATA_FILE));
  for (const table of pages.tables()) expect([...pages.rows(table)].length).toBe(table.name === "turns" ? 0 : table.entries);
  expect(pages.damage.map(({ reason }) => reason)).toEqual(["entries of it overlap"]);
  store = await Store.open(directory, new FakeClock());
  expect(() => store.latest.get(turns, "k1aa")).toThrow("MDB_CORRUPTED");
  await expect(store.commit(NO_PARTITION, (tx) => tx.remove(turns, "k1aa"))).rejects.toThrow("Nothing was changed");
});

const PAGE_BYTES = 4096;
const PAGE_HEAD_BYTES = 24;

/** As a failing disk does it, wherever the file has these bytes. */
function overwrite(found: string, change: (bytes: Buffer, at: number) => void): void {
  const path = join(directory, DATA_FILE);
  const bytes = readFileSync(path);
  for (let at = bytes.indexOf(found, 0, "latin1"); at !== -1; at = bytes.indexOf(found, at + 1, "latin1")) change(bytes, at);
  const file = openSync(path, "r+");
  writeSync(file, bytes);
  closeSync(file);
}

function overwriteKey(before: string, after: string): void {
  overwrite(before, (bytes, at) => bytes.write(after, at, "latin1"));
}

const isInFile = (part: string) => readFileSync(join(directory, DATA_FILE)).includes(part);
const keyOf = (number: number) => String(number).padStart(24, "0");

/** Overwrites to the end, while nobody reads. */
async function wipeAll(): Promise<void> {
  const wipe = store.wipe();
  for (let state = await wipe(); state !== "done"; state = await wipe()) await nextTurn();
}

test("with relaxed durability what was removed is overwritten in the file once that is flushed", async () => {
  await store.close();
  store = await Store.open(directory, new FakeClock(), { durability: "relaxed" });
  for (const i of [1, 2, 3]) await store.commit(NO_PARTITION, (tx) => tx.put(turns, keyOf(i), text(`secret-${i}-`)));
  await store.commit(NO_PARTITION, (tx) => tx.remove(turns, keyOf(2)));
  await store.commit(NO_PARTITION, (tx) => tx.put(turns, keyOf(4), text("others")));
  await wipeAll();
  expect([1, 2, 3].filter((i) => isInFile(`secret-${i}-`))).toEqual([1, 3]);
});

test("what was removed is overwritten in the file, but for what somebody can still read, whom that waits for", async () => {
  const numbers = Array.from({ length: 300 }, (_, i) => i);
  // On pages with others, and on pages of their own.
  const bodyOf = (i: number) => `secret-${i}-`.repeat(i % 7 === 0 ? 1_500 : 3);
  await store.commit(NO_PARTITION, (tx) => numbers.forEach((i) => tx.add(turns, keyOf(i), text(bodyOf(i)))));
  await store.commit(NO_PARTITION, (tx) => numbers.forEach((i) => tx.put(turns, keyOf(i), text(`${bodyOf(i)} again`))));
  {
    using snapshot = store.snapshot();
    await store.commit(NO_PARTITION, (tx) => numbers.forEach((i) => i !== 77 && tx.remove(turns, keyOf(i))));
    await store.commit(NO_PARTITION, (tx) => tx.put(turns, keyOf(1_000), text("others")));
    expect(await store.wipe()()).toBe("waits");
    expect(numbers.filter((i) => snapshot.get(turns, keyOf(i))?.shown !== `${bodyOf(i)} again`)).toEqual([]);
    expect(isInFile("secret-1-")).toBe(true);
  }
  await store.commit(NO_PARTITION, (tx) => tx.put(turns, keyOf(1_001), text("others")));
  await wipeAll();
  expect(numbers.filter((i) => isInFile(`secret-${i}-`))).toEqual([77]);
  expect(store.read((reader) => reader.get(turns, keyOf(77)))).toEqual(text(`${bodyOf(77)} again`));
  expect(checkFile(join(directory, DATA_FILE), { decode: false }).findings).toEqual([]);
});

test("overwriting between changes made by chance takes nothing away, and leaves nothing of what went", async () => {
  const chance = new Chance(7);
  const model = new Map<string, string>();
  const gone = new Set<string>();
  for (let round = 0; round < 120; round++) {
    const changed = new Map<string, string | undefined>();
    for (let i = 0; i < 12; i++) {
      const key = keyOf(chance.below(60));
      changed.set(
        key,
        chance.below(3) === 0 ? undefined : `row-${round}-${i}-`.repeat(1 + chance.below(chance.below(2) === 0 ? 20 : 1_200)),
      );
    }
    await store.commit(NO_PARTITION, (tx) => {
      for (const [key, body] of changed) {
        if (body === undefined) tx.remove(turns, key);
        else tx.put(turns, key, text(body));
      }
    });
    for (const [key, body] of changed) {
      const before = model.get(key);
      if (before !== undefined) gone.add(/^row-\d+-\d+-/.exec(before)![0]);
      if (body === undefined) model.delete(key);
      else model.set(key, body);
    }
    if (round % 3 === 0) await store.wipe()();
  }
  for (let i = 0; i < 2; i++) await store.commit(NO_PARTITION, (tx) => tx.put(turns, keyOf(1_000 + i), text("others")));
  await wipeAll();
  const stored = store.read((reader) => reader.rows(turns, { from: "", to: keyOf(100) }));
  expect(Object.fromEntries(stored.map(({ key, row }) => [key, row.shown]))).toEqual(Object.fromEntries(model));
  expect(gone.size).toBeGreaterThan(500);
  expect([...gone].filter(isInFile)).toEqual([]);
  expect(checkFile(join(directory, DATA_FILE), { decode: false }).findings).toEqual([]);
});
