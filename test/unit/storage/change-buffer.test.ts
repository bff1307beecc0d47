import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BARE_ID_LENGTH, NO_PARTITION, type SessionId } from "../../../src/lib/ids.ts";
import type { JsonText } from "../../../src/lib/json.ts";
import { stored } from "../../../src/operations/records.ts";
import type { Reader, Span, Tx } from "../../../src/storage/access.ts";
import { MAX_KEY } from "../../../src/storage/keys.ts";
import { FIRST_WATERMARK, ChangeBuffer } from "../../../src/storage/lmdb/change-buffer.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { meta, traces, TRACES_WATERMARK, vectors, type Index, type TraceRow } from "../../../src/storage/tables.ts";
import { FakeClock } from "../../support/clock.ts";
import { Chance } from "../../support/process.ts";

setDefaultTimeout(120_000);

const SEED = Number(process.env["CAIRN_TEST_SEED"] ?? 20_261_123);
const { bySession, byUser, byAgent } = traces.index;
const INDEXES: readonly Index<TraceRow>[] = [bySession, byUser, byAgent];
const SESSIONS = ["sess_0000000000aa", "sess_0000000000bb", "sess_zzzzzzzzzzzz"] as const;
const ACTIONS = ["1", "A", "a"];

let directory: string;
let clock: FakeClock;
let store: Store;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "cairn-late-"));
  clock = new FakeClock();
  store = await serve(directory);
});

afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Fewer than of a server, so that some are being written most of the time. */
const PER_SWEEP_MIN = 6_000;

/** As a server opens it, but for that. */
async function serve(at: string): Promise<Store> {
  const opened = await Store.open(at, clock);
  await opened.useChangeBuffer(PER_SWEEP_MIN);
  opened.onVectors(vectors, () => {
    throw new Error("the disk takes nothing");
  });
  return opened;
}

/** What a server finds that is started on the store as it is at this moment, of which it is told nothing else. */
async function afterACrash<Result>(look: (found: Store) => Result | Promise<Result>): Promise<Result> {
  const copy = mkdtempSync(join(tmpdir(), "cairn-late-copy-"));
  mkdirSync(join(copy, "store"));
  await store.backup(join(copy, "store"));
  const found = await serve(copy);
  try {
    return await look(found);
  } finally {
    await found.close();
    rmSync(copy, { recursive: true });
  }
}

const row = (sessionId: SessionId | undefined, userId?: string, agentId?: string): TraceRow => ({
  expiresAt: 1,
  actor: "test",
  ...(sessionId === undefined ? {} : { sessionId }),
  ...(userId === undefined ? {} : { userId }),
  ...(agentId === undefined ? {} : { agentId }),
  body: "{}" as JsonText,
});

/** Adds traces of a session. @returns their keys */
function addTraces(tx: Tx, count: number, sessionId: SessionId = SESSIONS[0]): string[] {
  return Array.from({ length: count }, () => {
    const key = `A${tx.bareId()}`;
    tx.add(traces, key, row(sessionId, "ada", "bot"));
    return key;
  });
}

/** What the transaction that writes it fails with; nothing of that is kept. */
function failing(tx: Tx): void {
  tx.putVector(vectors, "none", new Uint8Array(1));
}

const ofSession = (sessionId: string): Span => ({ from: sessionId.slice(5), to: sessionId.slice(5) + MAX_KEY });
const inSession = (reader: Reader, sessionId: string = SESSIONS[0]) =>
  reader.keys(bySession, ofSession(sessionId)).map((entry) => bySession.recordOf(entry));
const allOf = (reader: Reader, index: Index<TraceRow>) => reader.keys(index, { from: "", to: MAX_KEY }).map((key) => index.recordOf(key));
const markOf = (reader: Reader) => reader.get(meta, TRACES_WATERMARK);

test(`every reader sees the entries of all rows and no others, at once, whatever is written, removed, fails or ends in between (seed ${SEED})`, async () => {
  const chance = new Chance(SEED);
  const rows = new Map<string, TraceRow>();
  const marks = new Set<string | undefined>();
  const seen = { failed: 0, unknown: 0, crashed: 0, removedLate: 0 };
  const oneOf = <Item>(items: readonly Item[]): Item => items[chance.below(items.length)]!;
  const entriesOf = (index: Index<TraceRow>, of: ReadonlyMap<string, TraceRow>) =>
    [...of].flatMap(([key, one]) => index.entriesOf(key, one)).toSorted();

  function spanOf(entries: readonly string[]): Span {
    const limit = chance.below(2) === 0 ? {} : { limit: 1 + chance.below(600) };
    const descending = chance.below(2) === 0 ? {} : { descending: true };
    if (entries.length === 0 || chance.below(8) === 0) return { from: "", to: MAX_KEY, ...limit, ...descending };
    const from = oneOf(entries);
    const to = chance.below(2) === 0 ? from.slice(0, -1 - BARE_ID_LENGTH) + MAX_KEY : [from, oneOf(entries)].toSorted()[1]!;
    return { from: [from, to].toSorted()[0]!, to, ...limit, ...descending };
  }

  function expectAll(reader: Reader, of: ReadonlyMap<string, TraceRow>): void {
    for (const index of INDEXES) {
      const entries = entriesOf(index, of);
      for (const span of [spanOf(entries), spanOf(entries)]) {
        const inSpan = entries.filter((entry) => entry >= span.from && entry < span.to);
        const expected = (span.descending === true ? inSpan.reverse() : inSpan).slice(0, span.limit);
        expect(reader.keys(index, span)).toEqual(expected);
      }
      if (entries.length > 0) expect(reader.has(index, oneOf(entries))).toBe(true);
      expect(reader.has(index, `${"0".repeat(2 * BARE_ID_LENGTH)}A`)).toBe(false);
    }
  }

  /** What a work writes, planned before it runs, which it does twice. */
  function plan(): (tx: Tx) => Map<string, TraceRow | undefined> {
    const added = Array.from({ length: chance.below(120) }, () => ({
      code: oneOf(ACTIONS),
      one: row(oneOf([undefined, ...SESSIONS]), oneOf([undefined, "ada", "bob"]), oneOf([undefined, "bot"])),
    }));
    const newest = [...rows.keys()].slice(-40);
    const removed = Array.from({ length: rows.size === 0 ? 0 : chance.below(12) }, () =>
      oneOf(chance.below(2) === 0 ? newest : [...rows.keys()]),
    );
    const putAgain = rows.size === 0 ? [] : [oneOf([...rows.keys()])].filter((key) => !removed.includes(key));
    return (tx) => {
      const changes = new Map<string, TraceRow | undefined>();
      for (const { code, one } of added) {
        const key = code + tx.bareId();
        tx.add(traces, key, one);
        changes.set(key, one);
      }
      for (const key of removed) {
        if (tx.get(traces, key) === undefined) continue;
        tx.remove(traces, key);
        changes.set(key, undefined);
      }
      for (const key of putAgain) {
        const found = tx.get(traces, key);
        if (found !== undefined) tx.put(traces, key, { ...found, actor: "again" });
      }
      return changes;
    };
  }

  function apply(changes: ReadonlyMap<string, TraceRow | undefined>): void {
    for (const [key, one] of changes) {
      if (one === undefined) rows.delete(key);
      else rows.set(key, one);
    }
  }

  for (let step = 0; step < 160; step++) {
    if (chance.below(3) === 0) clock.advance({ ms: 1 + chance.below(50) });
    const watch = store.health.watch.bind(store.health);
    const kind = chance.below(20);
    if (kind === 0) {
      // None of what shares the transaction is kept.
      const outcomes = await Promise.allSettled([store.commit(NO_PARTITION, plan()), store.commit(NO_PARTITION, failing)]);
      expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
      seen.failed++;
    } else if (kind === 1) {
      // It is kept, though it was said that it may not be.
      let changes = new Map<string, TraceRow | undefined>();
      const work = plan();
      store.health.watch = async (run) => {
        await run();
        throw new Error("unknown");
      };
      const outcome = await store.commit(NO_PARTITION, (tx) => (changes = work(tx))).catch((error: Error) => error.message);
      store.health.watch = watch;
      expect(outcome).toBe("unknown");
      apply(changes);
      seen.unknown++;
    } else if (kind === 2) {
      await store.close();
      store = await Store.open(directory, clock);
      // All is in its tables now.
      expectAll(store.latest, rows);
      await store.close();
      store = await serve(directory);
    } else if (kind === 3) {
      await afterACrash((found) => expectAll(found.latest, rows));
      seen.crashed++;
    } else {
      const failed = store.commit(NO_PARTITION, (tx) => {
        addTraces(tx, 3);
        throw new Error("no");
      });
      const works = Array.from({ length: 1 + chance.below(3) }, () => store.commit(NO_PARTITION, plan()));
      const [refusal, ...kept] = await Promise.allSettled([failed, ...works]);
      expect(refusal?.status).toBe("rejected");
      for (const outcome of kept) apply((outcome as PromiseFulfilledResult<Map<string, TraceRow | undefined>>).value);
    }
    marks.add(markOf(store.latest));
    expectAll(store.latest, rows);
    if (step % 7 === 0) {
      using snapshot = store.snapshot();
      expectAll(snapshot, rows);
      const before = new Map(rows);
      apply(await store.commit(NO_PARTITION, plan()));
      // It stays at its moment.
      expectAll(snapshot, before);
    }
    if (step % 5 === 0) {
      const work = plan();
      const changes = await store.commit(NO_PARTITION, (tx) => {
        const changed = work(tx);
        const after = new Map(rows);
        for (const [key, one] of changed) {
          if (one === undefined) after.delete(key);
          else after.set(key, one);
        }
        for (const index of INDEXES) expect(tx.keys(index, { from: "", to: MAX_KEY })).toEqual(entriesOf(index, after));
        return changed;
      });
      apply(changes);
    }
  }
  expect(marks.size).toBeGreaterThan(3);
  expect(Math.min(seen.failed, seen.unknown, seen.crashed)).toBeGreaterThan(2);
});

test("while entries are being written whoever reads sees each one of a trace that was acknowledged, once", async () => {
  const acknowledged = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 2_100));
  const marks = new Set<string | undefined>();
  while (marks.size < 2) {
    const under = { way: true };
    const commit = store.commit(NO_PARTITION, (tx) => addTraces(tx, 20)).then((keys) => ((under.way = false), keys));
    while (under.way) {
      const keys = inSession(store.latest);
      expect(keys.slice(0, acknowledged.length)).toEqual(acknowledged);
      expect(new Set(keys).size).toBe(keys.length);
      await new Promise(setImmediate);
    }
    acknowledged.push(...(await commit));
    marks.add(markOf(store.latest));
    expect(inSession(store.latest)).toEqual(acknowledged);
  }
});

test("entries are seen no earlier than their rows, but by the transaction that writes them", async () => {
  const committed = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 3));
  const spans: Span[] = [{}, { limit: 2 }, { descending: true }, { descending: true, limit: 2 }].map((how) => ({
    ...ofSession(SESSIONS[0]),
    ...how,
  }));
  const look = (reader: Reader) => spans.map((span) => reader.keys(bySession, span));
  const before = look(store.latest);
  const seen: unknown[] = [];
  const commit = store.commit(NO_PARTITION, (tx) => {
    const added = addTraces(tx, 2);
    // Before this thread learns of the commit, in a later turn of the event loop; another one may have made it by then.
    queueMicrotask(() => seen.push(look(store.latest)));
    return [added, look(tx)] as const;
  });
  const [added, inside] = await commit;
  expect(seen.at(-1)).toEqual(before);
  const all = [...committed, ...added].map((key) => bySession.entriesOf(key, row(SESSIONS[0]))[0]!);
  const after = [all, all.slice(0, 2), all.toReversed(), all.toReversed().slice(0, 2)];
  expect(inside).toEqual(after);
  expect(look(store.latest)).toEqual(after);
});

test("transactions that fail while entries are being written lose none", async () => {
  // So many are written from now on, with each transaction some.
  const keys = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 2_100));
  for (let failed = 0; failed < 3; failed++) await store.commit(NO_PARTITION, failing).catch(() => undefined);
  const found = (reader: Reader) => INDEXES.map((index) => allOf(reader, index));
  expect(found(store.latest)).toEqual([keys, keys, keys]);
  expect(await afterACrash(({ latest }) => found(latest))).toEqual([keys, keys, keys]);
});

test("a removal that fails while entries are being written leaves none behind the mark that is not in its table", async () => {
  const keys = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 2_100));
  // All of one index are written with the first of these, then some of the next one.
  for (let commits = 0; commits < 3; commits++) await store.commit(NO_PARTITION, () => undefined);
  const failed = store.commit(NO_PARTITION, (tx) => {
    tx.remove(traces, keys.at(-1)!);
    failing(tx);
  });
  expect(await failed.catch(() => "failed")).toBe("failed");
  for (let commits = 0; commits < 30; commits++) await store.commit(NO_PARTITION, () => undefined);
  expect(markOf(store.latest)).toBe(keys.at(-1)!.slice(1));
  expect(await afterACrash(({ latest }) => INDEXES.map((index) => allOf(latest, index)))).toEqual([keys, keys, keys]);
});

test("a transaction that fails while it is written leaves no entry of what it has added, and takes none", async () => {
  const keys = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 3));
  const failed = store.commit(NO_PARTITION, (tx) => {
    addTraces(tx, 2);
    tx.remove(traces, keys[0]!);
    failing(tx);
  });
  expect(await failed.catch(() => "failed")).toBe("failed");
  expect(inSession(store.latest)).toEqual(keys);
  expect(store.count(bySession)).toBe(3);
});

test("of a transaction that was kept although that is not known the traces are told, and of one that was not none", async () => {
  const told: string[] = [];
  store.onCommitted = ({ traces: keys }) => told.push(...keys);
  const watch = store.health.watch.bind(store.health);
  store.health.watch = async (run) => {
    await run();
    throw new Error("unknown");
  };
  let keys: string[] = [];
  await store.commit(NO_PARTITION, (tx) => (keys = addTraces(tx, 2))).catch(() => undefined);
  store.health.watch = watch;
  await Promise.allSettled([store.commit(NO_PARTITION, (tx) => addTraces(tx, 2)), store.commit(NO_PARTITION, failing)]);
  expect(told).toEqual(keys);
});

test("traces that are put again, as those of an erased user are, leave the mark where it is", async () => {
  const keys = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 20));
  await store.commit(NO_PARTITION, (tx) => tx.put(traces, keys[0]!, { ...tx.get(traces, keys[0]!)!, actor: "again" }));
  await store.close();
  store = await serve(directory);
  expect(markOf(store.latest)).toBe(keys.at(-1)!.slice(1));
});

test("a row that cannot be read keeps neither a server from starting nor others from being found", async () => {
  const [bad, ...others] = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 3));
  await store.commit(NO_PARTITION, (tx) => tx.put(stored(traces), bad!, "{"));
  const found = (reader: Reader) => inSession(reader).filter((key) => key !== bad);
  using snapshot = store.snapshot();
  expect(found(snapshot)).toEqual(others);
  expect(await afterACrash(({ latest }) => found(latest))).toEqual(others);
});

test("entries that were never written are removed with their rows, before and after a crash", async () => {
  const [first, ...others] = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 20));
  await store.commit(NO_PARTITION, (tx) => tx.remove(traces, first!));
  expect(inSession(store.latest)).toEqual(others);
  await afterACrash(async (found) => {
    expect(inSession(found.latest)).toEqual(others);
    await found.commit(NO_PARTITION, (tx) => {
      for (const key of others) tx.remove(traces, key);
    });
    expect(inSession(found.latest)).toEqual([]);
  });
});

test("as long as there are few, entries are only in memory, and a store that is closed has them all", async () => {
  const keys = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 20));
  expect(markOf(store.latest)).toBe(FIRST_WATERMARK);
  expect(store.count(bySession)).toBe(20);
  await store.close();
  store = await Store.open(directory, clock);
  expect(inSession(store.latest)).toEqual(keys);
  expect(markOf(store.latest)).toBe(keys.at(-1)!.slice(1));
});

test("ids that are given again after the newest traces were removed and the clock was set back lose no entry in a crash", async () => {
  const keys = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 20));
  await store.close();
  store = await serve(directory);
  await store.commit(NO_PARTITION, (tx) => {
    for (const key of keys.slice(1)) tx.remove(traces, key);
  });
  await store.close();
  clock.advance({ days: -1 });
  store = await serve(directory);
  const [again] = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 1));
  expect(again! < keys.at(-1)!).toBe(true);
  expect(await afterACrash((found) => inSession(found.latest))).toEqual([keys[0]!, again!]);
});

test("a server that is started while the disk takes nothing writes entries with their rows", async () => {
  await store.close();
  rmSync(directory, { recursive: true });
  store = await Store.open(directory, clock);
  const watch = store.health.watch.bind(store.health);
  store.health.watch = () => Promise.reject(new Error("the disk takes nothing"));
  await store.useChangeBuffer(PER_SWEEP_MIN);
  store.health.watch = watch;
  const keys = await store.commit(NO_PARTITION, (tx) => addTraces(tx, 20));
  expect(markOf(store.latest)).toBeUndefined();
  expect(await afterACrash((found) => inSession(found.latest))).toEqual(keys);
});

test("however many entries each transaction adds, those that wait stay within a bound, and each is written before the mark passes it", () => {
  const late = new ChangeBuffer(PER_SWEEP_MIN);
  const written = new Set<string>();
  const isWritten = (id: string) => INDEXES.every(({ name }) => written.has(name + id));
  const idOf = (number: number) => String(number).padStart(8, "0");
  let next = 0;
  let unmarked = 0;
  for (let round = 0; round < 150; round++) {
    const newest = idOf(next);
    for (let i = 0; i < 300; i++) {
      const id = idOf(next++);
      // In an order that has nothing to do with that of the traces.
      for (const { name } of INDEXES) late.add({ table: name, key: `${Bun.hash.xxHash32(id).toString(16).padStart(8, "0")}${id}` });
    }
    const { entries, watermark: mark } = late.step(newest);
    const isKept = round % 10 !== 9;
    if (isKept) for (const { table, key } of entries) written.add(table + key.slice(8));
    late.end(isKept);
    if (mark !== undefined && isKept) {
      const ids = Array.from({ length: Number(mark) - unmarked }, (_, i) => idOf(unmarked + i));
      expect(ids.filter((id) => !isWritten(id))).toEqual([]);
      unmarked = Number(mark);
    }
    expect(late.size).toBeLessThan(15_000);
  }
  expect(unmarked).toBeGreaterThan(30_000);
});

test(`what is sorted in late is seen in order, by whoever may see it, between any two steps of a transaction (seed ${SEED})`, () => {
  const chance = new Chance(SEED);
  const late = new ChangeBuffer(PER_SWEEP_MIN);
  const { name: table } = bySession;
  /** As the store has it, and as readers have to see it: outside the transaction under way, and inside. */
  let [written, outside, inside] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const randomKey = () => String(chance.below(40_000)).padStart(8, "0");
  const inOrder = (keys: Iterable<string>) => Array.from(keys).toSorted();

  function look(isInside: boolean, stored: ReadonlySet<string> = written): void {
    const [from, to] = [randomKey(), chance.below(4) === 0 ? MAX_KEY : randomKey()].toSorted() as [string, string];
    const within = (keys: Iterable<string>) => inOrder(keys).filter((key) => key >= from && key < to);
    const expected = isInside ? inside : outside;
    expect(late.merged(table, { from, to }, within(stored), isInside)).toEqual(within(expected));
    const key = randomKey();
    expect(late.has({ table, key }, isInside) || stored.has(key)).toBe(expected.has(key));
  }

  for (let round = 0; round < 500; round++) {
    inside = new Set(outside);
    const removes = chance.below(4) === 0;
    for (let i = chance.below(120); i > 0; i--) {
      const known = removes && chance.below(3) === 0 ? Array.from(inside)[chance.below(inside.size)] : undefined;
      const key = known ?? randomKey();
      if (!removes && inside.has(key)) continue;
      if (inside.has(key)) {
        late.removeUncommitted({ table, key });
        inside.delete(key);
      } else {
        late.addUncommitted({ table, key });
        inside.add(key);
      }
      // As the store does not remove what is not there, of those that a transaction removes it shows none inside.
      if (chance.below(100) === 0) look(true, new Set([...written].filter((one) => inside.has(one))));
    }
    const { entries } = late.step("0".repeat(BARE_ID_LENGTH));
    // What a transaction removes nobody sees any more, whatever becomes of it.
    if (!removes && chance.below(3) === 0) look(false);
    // Of one that has failed, too, what it wrote can be there.
    const [isKept, isThere] = [chance.below(8) > 0, chance.below(2) === 0];
    if (isKept || isThere) {
      written = new Set([...written, ...entries.map(({ key }) => key)].filter((key) => inside.has(key)));
      outside = inside;
    }
    for (const entry of late.end(isKept)) {
      if (isKept) continue;
      if (outside.has(entry.key)) late.putBack(entry);
      else late.remove(entry);
    }
    if (chance.below(6) === 0) look(false);
  }
  expect(written.size).toBeGreaterThan(2_000);
});

test("an entry that a reader has sorted in among those that are being written is not taken for written", () => {
  const late = new ChangeBuffer(PER_SWEEP_MIN);
  const { name: table } = bySession;
  const step = () => late.step("0".repeat(BARE_ID_LENGTH)).entries;
  const add = (...keys: string[]) => {
    for (const key of keys) late.addUncommitted({ table, key });
    late.end(true);
  };
  const many = Array.from({ length: 6_000 }, (_, i) => `${10_000 + i}`);
  add(...many.slice(1));
  expect(step()).toEqual([]);
  add(many[0]!);
  // Not from the beginning of an index on, where all are sorted in.
  expect(step().length).toBe(200);
  late.end(true);
  const entries = step();
  late.end(false);
  const key = `${entries[100]!.key}b`;
  add(key);
  expect(step()).toContainEqual(entries[101]!);
  expect(late.has({ table, key }, false)).toBe(true);
  late.end(true);
  expect(late.has(entries[100]!, false)).toBe(false);
  expect(late.has({ table, key }, false)).toBe(true);
  expect(late.count(table)).toBe(late.size);
});
