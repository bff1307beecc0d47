import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { NO_HOME } from "../../../src/lib/ids.ts";
import { toJson } from "../../../src/lib/json.ts";
import type { Reader } from "../../../src/storage/access.ts";
import { Store, StoreError } from "../../../src/storage/store.ts";
import { meta, outbox, sessions, turns, vectors, versions, type SessionRow } from "../../../src/storage/tables.ts";
import { FakeClock } from "../../support/clock.ts";

let directory: string;
let store: Store;

/** The works here say what they do while they do it. */
beforeAll(() => void (Store.runsWorksTwice = false));
afterAll(() => void (Store.runsWorksTwice = true));

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), "cairn-store-"));
  store = await Store.open(directory, new FakeClock());
});

afterEach(async () => {
  await store.close();
  rmSync(directory, { recursive: true, force: true });
});

const text = (body: string) => ({ shown: body, rest: "" });

test("a span is read from its start to before its end, either way round, up to its limit, inside a commit and outside", async () => {
  const key = fc.string({ unit: fc.constantFrom("0", "5", "A", "z"), minLength: 1, maxLength: 3 });
  const end = fc.oneof(key, fc.constantFrom("", "~", "z~"));
  const span = fc.record({
    from: end,
    to: end,
    limit: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
    descending: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(key, { maxLength: 25 }), fc.array(span, { minLength: 1, maxLength: 10 }), async (keys, spans) => {
      const expected = spans.map(({ from, to, limit, descending }) => {
        const within = keys.filter((one) => one >= from && one < to).toSorted();
        return (descending ? within.reverse() : within).slice(0, limit);
      });
      const look = (reader: Reader) => {
        const bounds = spans.map(({ limit, ...rest }) => (limit === undefined ? rest : { ...rest, limit }));
        const rows = bounds.map((one) => reader.rows(turns, one));
        expect(bounds.map((one) => reader.keys(turns, one))).toEqual(expected);
        expect(rows).toEqual(expected.map((within) => within.map((one) => ({ key: one, row: text(`row of ${one}`) }))));
      };
      await store.commit(NO_HOME, (tx) => {
        for (const one of keys) tx.put(turns, one, text(`row of ${one}`));
        look(tx);
      });
      store.read(look);
      expect(store.count(turns)).toBe(keys.length);
      await store.commit(NO_HOME, (tx) => {
        for (const one of keys) tx.remove(turns, one);
      });
      expect(store.count(turns)).toBe(0);
    }),
    { numRuns: 40 },
  );
});

test("a commit whose work throws keeps nothing of it, passes on what was thrown, and hinders no other", async () => {
  await store.commit(NO_HOME, (tx) => tx.put(turns, "before", text("there")));
  expect(store.latest.get(sessions, "s")).toBeUndefined();
  const thrown = new Error("no");
  const outcomes = await Promise.allSettled([
    store.commit(NO_HOME, (tx) => tx.put(turns, "beside", text("there"))),
    store.commit(NO_HOME, (tx) => {
      tx.put(turns, "a", text("never"));
      tx.remove(turns, "before");
      tx.put(meta, "name", "7");
      tx.put(sessions, "s", session(1));
      throw thrown;
    }),
    store.commit(NO_HOME, (tx) => (tx.put(turns, "after", text("there")), tx.has(turns, "a"))),
  ]);
  expect(outcomes).toEqual([
    { status: "fulfilled", value: undefined },
    { status: "rejected", reason: thrown },
    { status: "fulfilled", value: false },
  ]);
  expect(store.latest.keys(turns, { from: "", to: "~" })).toEqual(["after", "before", "beside"]);
  expect([store.latest.get(meta, "name"), store.latest.get(sessions, "s")]).toEqual([undefined, undefined]);
});

test("inside a commit every read is of the store with what was written so far laid over it", async () => {
  const key = fc.string({ unit: fc.constantFrom("0", "5", "A"), minLength: 1, maxLength: 2 });
  const step = fc.oneof(
    fc.record({ do: fc.constant("put" as const), key }),
    fc.record({ do: fc.constant("remove" as const), key }),
    fc.record({ do: fc.constant("get" as const), key }),
    fc.record({ do: fc.constant("keys" as const), from: key, to: key, limit: fc.integer({ min: 1, max: 4 }), descending: fc.boolean() }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(key),
      fc.array(fc.array(step, { maxLength: 15 }), { minLength: 1, maxLength: 4 }),
      async (stored, works) => {
        const model = new Map(stored.map((one) => [one, text("stored")]));
        await store.commit(NO_HOME, (tx) => {
          for (const one of tx.keys(turns, { from: "", to: "~" })) tx.remove(turns, one);
          for (const one of stored) tx.put(turns, one, text("stored"));
        });
        // Works that share a transaction: each lays its own over what those before it have left.
        await Promise.all(
          works.map((steps, work) =>
            store.commit(NO_HOME, (tx) => {
              for (const [at, one] of steps.entries()) {
                if (one.do === "put") {
                  tx.put(turns, one.key, text(`${work} ${at}`));
                  model.set(one.key, text(`${work} ${at}`));
                } else if (one.do === "remove") {
                  tx.remove(turns, one.key);
                  model.delete(one.key);
                } else if (one.do === "get") {
                  expect([tx.get(turns, one.key), tx.has(turns, one.key)]).toEqual([model.get(one.key), model.has(one.key)]);
                } else {
                  const within = Array.from(model.keys())
                    .filter((id) => id >= one.from && id < one.to)
                    .toSorted();
                  const expected = (one.descending ? within.reverse() : within).slice(0, one.limit);
                  expect(tx.keys(turns, one)).toEqual(expected);
                  expect(tx.rows(turns, one)).toEqual(
                    expected.map((id) => ({ key: id, row: model.get(id) as { shown: string; rest: string } })),
                  );
                }
              }
            }),
          ),
        );
        expect(store.latest.rows(turns, { from: "", to: "~" })).toEqual(
          Array.from(model, ([id, row]) => ({ key: id, row })).toSorted((a, b) => (a.key < b.key ? -1 : 1)),
        );
      },
    ),
    { numRuns: 60 },
  );
});

test("the entries of indexes are those of the rows, whatever was read, added, put and removed before in a work", async () => {
  const key = fc.constantFrom("a", "b").map((one) => one.repeat(12));
  const row = fc.record({ agentId: fc.constantFrom("x", "y"), userId: fc.constantFrom("u", "v", null), expiresAt: fc.nat(2) });
  const step = fc.oneof(
    fc.record({ do: fc.constant("put" as const), key, row }),
    fc.record({ do: fc.constant("remove" as const), key }),
    fc.record({ do: fc.constant("get" as const), key }),
  );
  const sessionOf = (given: object) => ({ ...given, createdAt: 0 }) as SessionRow;
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(step, { maxLength: 8 }), { minLength: 1, maxLength: 3 }), async (works) => {
      await Promise.all(
        works.map((steps) =>
          store.commit(NO_HOME, (tx) => {
            for (const one of steps) {
              if (one.do === "get") tx.get(sessions, one.key);
              else if (one.do === "remove") tx.remove(sessions, one.key);
              else if (tx.has(sessions, one.key)) tx.put(sessions, one.key, sessionOf(one.row));
              else tx.add(sessions, one.key, sessionOf(one.row));
            }
          }),
        ),
      );
      const ALL = { from: "", to: "~" };
      const rows = store.latest.rows(sessions, ALL);
      for (const index of sessions.indexes) {
        const entries = rows.flatMap((one) => index.entriesOf(one.key, one.row)).toSorted();
        expect({ index: index.name, entries: store.latest.keys(index, ALL) }).toEqual({ index: index.name, entries });
      }
    }),
  );
});

test("more commits at once than one transaction takes are all there, in order, and each sees the ones before", async () => {
  const seen = await Promise.all(
    Array.from({ length: 1_000 }, (_, i) =>
      store.commit(NO_HOME, (tx) => {
        tx.put(turns, String(i).padStart(4, "0"), text(String(i)));
        const before = Number(tx.get(meta, "counter") ?? "0");
        tx.put(meta, "counter", String(before + 1));
        return before;
      }),
    ),
  );
  expect(seen).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
  expect(store.count(turns)).toBe(1_000);
});

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

test("whoever reads after a commit has resolved sees it, however often the row was read while it was under way", async () => {
  for (let count = 1; count <= 30; count++) {
    const under = { way: true };
    const commit = store.commit(NO_HOME, (tx) => tx.put(sessions, "s", session(count))).then(() => (under.way = false));
    while (under.way) {
      const seen = store.latest.get(sessions, "s")?.turnCount ?? 0;
      expect([count - 1, count]).toContain(seen);
      await new Promise(setImmediate);
    }
    await commit;
    expect(store.latest.get(sessions, "s")).toEqual(session(count));
    // Inside a commit too what counts is what is stored.
    expect(await store.commit(NO_HOME, (tx) => (tx.put(sessions, "s", session(count)), tx.get(sessions, "s")))).toEqual(session(count));
  }
  await store.commit(NO_HOME, (tx) => tx.remove(sessions, "s"));
  expect(store.latest.get(sessions, "s")).toBeUndefined();
});

test("what is made of a row is given again for that row alone, not for one that was there before or came after", async () => {
  let made = 0;
  const turnsOf = (row: SessionRow | undefined) =>
    store.latest.derived(
      sessions,
      "s",
      row!,
      () => `${row!.turnCount} turns, made ${++made}`,
      (result) => result.length,
    );
  await store.commit(NO_HOME, (tx) => tx.put(sessions, "s", session(1)));
  const before = store.latest.get(sessions, "s");
  expect([turnsOf(before), turnsOf(before)]).toEqual(["1 turns, made 1", "1 turns, made 1"]);
  await store.commit(NO_HOME, (tx) => tx.put(sessions, "s", session(2)));
  const after = store.latest.get(sessions, "s");
  expect([turnsOf(after), turnsOf(before), turnsOf(after)]).toEqual(["2 turns, made 2", "1 turns, made 3", "2 turns, made 2"]);
});

test("a row that is remembered and one that is not are of the same moment, however often both are read while they are written", async () => {
  for (let count = 1; count <= 300; count++) {
    const isThere = count % 2 === 1;
    const under = { way: true };
    const commit = store
      .commit(NO_HOME, (tx) => {
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

test("a text of any length is stored as it is", async () => {
  const lengths = [0, 1, 4_095, 80_000, 90_000, 300_000, 2_000_000, 3];
  const textOf = (length: number) =>
    "ü🫖€a"
      .repeat(length)
      .slice(0, length * 2)
      .toWellFormed();
  await store.commit(NO_HOME, (tx) => lengths.forEach((length) => tx.put(turns, String(length), text(textOf(length)))));
  const hashes = lengths.map((length) => [length, Bun.hash(store.latest.get(turns, String(length))?.shown ?? "")]);
  expect(hashes).toEqual(lengths.map((length) => [length, Bun.hash(textOf(length))]));
});

test("rows come back as they were put, whatever is in them", async () => {
  const body = toJson({ __proto__: null, "\ud800": "\n\r\u2028\u0000", "🫖": ["\\n", '"'], n: -0.5 });
  const version = { id: "0VQk3aB4x1Zq", createdAt: 5, actor: "crn_1234", source: "update" as const, reasoning: "two\nlines", body };
  const event = { types: ["turn.added"], webhooks: [], createdAt: 5, sessionId: null, trace: "t", body: toJson("a\nb") };
  await store.commit(NO_HOME, (tx) => {
    tx.put(versions, "v", version);
    tx.put(outbox, "e", event);
    tx.put(turns, "t", { shown: '"id":"t"', rest: '"line":"a\\nb"' });
  });
  expect([store.latest.get(versions, "v"), store.latest.get(outbox, "e"), store.latest.get(turns, "t")]).toEqual([
    version,
    event,
    { shown: '"id":"t"', rest: '"line":"a\\nb"' },
  ]);
});

test("a vector's bytes are exactly those that were stored, also after longer and shorter ones", async () => {
  const bytesOf = (length: number) => Uint8Array.from({ length }, (_, i) => (i * 31 + length) % 256);
  const lengths = [6_160, 6_148, 46_144, 8, 6_160, 200_000, 4];
  await store.commit(NO_HOME, (tx) => {
    for (const length of lengths) tx.putVector(vectors, `v${length}`, bytesOf(length));
  });
  for (const length of lengths) {
    const read = store.latest.vectorBytes(vectors, `v${length}`);
    expect([length, read?.length, read?.byteLength, Bun.hash(Uint8Array.from(read ?? []))]).toEqual([
      length,
      length,
      length,
      Bun.hash(bytesOf(length)),
    ]);
  }
  await store.commit(NO_HOME, (tx) => tx.removeVector(vectors, "v8"));
  expect([store.latest.vectorBytes(vectors, "v8"), store.count(vectors)]).toEqual([undefined, new Set(lengths).size - 1]);
});

test("a store of a newer version is refused with what to do, and left as it is", async () => {
  await store.commit(NO_HOME, (tx) => tx.put(meta, "schema", "2"));
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
  await store.commit(NO_HOME, (tx) => tx.put(sessions, "s", before));
  expect(store.latest.get(sessions, "s")).toEqual(before);
  const thrown = new Error("no");
  const outcomes = await Promise.allSettled([
    store.commitExclusive((tx) => {
      tx.put(sessions, "s", { ...before, agentId: "never" });
      tx.put(turns, "a", text("never"));
      throw thrown;
    }),
    store.commit(NO_HOME, (tx) => tx.put(turns, "b", text("beside"))),
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

test("a work that does something else when it is run again fails, and leaves nothing behind", async () => {
  Store.runsWorksTwice = true;
  let runs = 0;
  const commit = store.commit(NO_HOME, (tx) => tx.put(turns, "a", text(`run ${++runs}`)));
  expect(await commit.catch(String)).toContain("wrote something else");
  expect(store.latest.get(turns, "a")).toBeUndefined();
  const id = await store.commit(NO_HOME, (tx) => {
    const made = tx.id("turn");
    tx.put(turns, made, text(`${tx.now} ${tx.elapsed}`));
    return made;
  });
  expect(store.latest.has(turns, id)).toBe(true);
  Store.runsWorksTwice = false;
});
