/**
 * What every store does, wherever its rows are: each test runs on LMDB and, where there is one, on PostgreSQL.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { firstBareIdAt, NO_PARTITION, type BareId } from "../../../src/lib/ids.ts";
import { toJson } from "../../../src/lib/json.ts";
import type { Reader } from "../../../src/storage/access.ts";
import { hashKey } from "../../../src/storage/keys.ts";
import type { Listing } from "../../../src/storage/list.ts";
import { Store } from "../../../src/storage/lmdb/store.ts";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.ts";
import type { RecordStore } from "../../../src/storage/record-store.ts";
import {
  memories,
  meta,
  outbox,
  sessions,
  traces,
  turns,
  vectors,
  versions,
  type AnyTable,
  type MemoryRow,
  type SessionRow,
} from "../../../src/storage/tables.ts";
import { posting } from "../../../src/storage/walk.ts";
import { FakeClock } from "../../support/clock.ts";
import { isHere } from "../../support/platform.ts";
import { Postgres, POSTGRES } from "../../support/postgres.ts";

const HAS_POSTGRES = isHere(POSTGRES, "what every store does");
let postgres: Postgres;
/** Opens an empty store. */
const STORES: Record<string, () => Promise<{ store: RecordStore; remove: () => void }>> = {
  async LMDB() {
    const directory = mkdtempSync(join(tmpdir(), "cairn-store-"));
    const store = await Store.open(directory, new FakeClock());
    return { store, remove: () => rmSync(directory, { recursive: true, force: true }) };
  },
  ...(HAS_POSTGRES
    ? { PostgreSQL: async () => ({ store: await PostgresStore.open(await postgres.migrated(), new FakeClock()), remove: () => undefined }) }
    : {}),
};

beforeAll(async () => {
  if (HAS_POSTGRES) postgres = await Postgres.start();
});
afterAll(() => {
  if (HAS_POSTGRES) postgres.stop();
});

const ALL = { from: "", to: "~" };
const text = (body: string) => ({ shown: body, rest: "" });
const NOBODY = {};

for (const [name, open] of Object.entries(STORES)) {
  describe(`the store on ${name}`, () => {
    let store: RecordStore;
    let remove: () => void;

    beforeEach(async () => {
      ({ store, remove } = await open());
    });
    afterEach(async () => {
      await store.close();
      remove();
    });

    const keysOf = async (table: AnyTable) => store.read((reader) => reader.keys(table, ALL));

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
            return { keys: bounds.map((one) => reader.keys(turns, one)), rows: bounds.map((one) => reader.rows(turns, one)) };
          };
          const rows = expected.map((within) => within.map((one) => ({ key: one, row: text(`row of ${one}`) })));
          const inside = await store.commit(NO_PARTITION, (tx) => {
            for (const one of keys) tx.put(turns, one, text(`row of ${one}`));
            return look(tx);
          });
          expect(inside).toEqual({ keys: expected, rows });
          expect(await store.read(look)).toEqual({ keys: expected, rows });
          await store.commit(NO_PARTITION, (tx) => {
            for (const one of keys) tx.remove(turns, one);
          });
          expect(await keysOf(turns)).toEqual([]);
        }),
        { numRuns: 40 },
      );
    });

    test("a commit whose work throws keeps nothing of it, passes on what was thrown, and hinders no other", async () => {
      await store.commit(NO_PARTITION, (tx) => tx.put(turns, "before", text("there")));
      const thrown = new Error("no");
      const outcomes = await Promise.allSettled([
        store.commit(NO_PARTITION, (tx) => tx.put(turns, "beside", text("there"))),
        store.commit(NO_PARTITION, (tx) => {
          tx.put(turns, "a", text("never"));
          tx.remove(turns, "before");
          tx.put(meta, "name", "7");
          tx.put(sessions, "s", session({ turnCount: 1 }));
          throw thrown;
        }),
        store.commit(NO_PARTITION, (tx) => (tx.put(turns, "after", text("there")), tx.has(turns, "a"))),
      ]);
      expect(outcomes).toEqual([
        { status: "fulfilled", value: undefined },
        { status: "rejected", reason: thrown },
        { status: "fulfilled", value: false },
      ]);
      expect(await keysOf(turns)).toEqual(["after", "before", "beside"]);
      expect(await store.read((reader) => [reader.get(meta, "name"), reader.get(sessions, "s")])).toEqual([undefined, undefined]);
    });

    test("inside a commit every read is of the store with what was written so far laid over it", async () => {
      const key = fc.string({ unit: fc.constantFrom("0", "5", "A"), minLength: 1, maxLength: 2 });
      const step = fc.oneof(
        fc.record({ do: fc.constant("put" as const), key }),
        fc.record({ do: fc.constant("remove" as const), key }),
        fc.record({ do: fc.constant("get" as const), key }),
        fc.record({
          do: fc.constant("keys" as const),
          from: key,
          to: key,
          limit: fc.integer({ min: 1, max: 4 }),
          descending: fc.boolean(),
        }),
      );
      await fc.assert(
        fc.asyncProperty(
          fc.uniqueArray(key),
          fc.array(fc.array(step, { maxLength: 15 }), { minLength: 1, maxLength: 4 }),
          async (stored, works) => {
            await store.commit(NO_PARTITION, (tx) => {
              for (const one of tx.keys(turns, ALL)) tx.remove(turns, one);
              for (const one of stored) tx.put(turns, one, text("stored"));
            });
            const model = new Map(stored.map((one) => [one, text("stored")]));
            const expected: unknown = works.map((steps, work) =>
              steps.map((one, at) => {
                if (one.do === "put") return void model.set(one.key, text(`${work} ${at}`));
                if (one.do === "remove") return void model.delete(one.key);
                if (one.do === "get") return [model.get(one.key), model.has(one.key)];
                const within = Array.from(model.keys())
                  .filter((id) => id >= one.from && id < one.to)
                  .toSorted();
                const keys = (one.descending ? within.reverse() : within).slice(0, one.limit);
                return [keys, keys.map((id) => ({ key: id, row: model.get(id) }))];
              }),
            );
            // Works that share a transaction: each lays its own over what those before it have left.
            const seen: unknown = await Promise.all(
              works.map((steps, work) =>
                store.commit(NO_PARTITION, (tx) =>
                  steps.map((one, at) => {
                    if (one.do === "put") return tx.put(turns, one.key, text(`${work} ${at}`));
                    if (one.do === "remove") return tx.remove(turns, one.key);
                    if (one.do === "get") return [tx.get(turns, one.key), tx.has(turns, one.key)];
                    return [tx.keys(turns, one), tx.rows(turns, one)];
                  }),
                ),
              ),
            );
            expect(seen).toEqual(expected);
            expect(await store.read((reader) => reader.rows(turns, ALL))).toEqual(
              Array.from(model, ([id, row]) => ({ key: id, row })).toSorted((a, b) => (a.key < b.key ? -1 : 1)),
            );
          },
        ),
        { numRuns: 60 },
      );
    });

    test("the entries of indexes are those of the rows, whatever was read, added, put and removed before in a work", async () => {
      const key = fc.constantFrom("a", "b").map((one) => one.repeat(12));
      const row = fc.record({
        agentId: fc.constantFrom("x", "y"),
        userId: fc.constantFrom("u", "v", null),
        expiresAt: fc.nat(2),
        externalId: fc.constantFrom("e", "f", undefined),
        createdAt: fc.constantFrom(1, 4e12),
        forkedFrom: fc.constantFrom({ sessionId: "sess_cccccccccccc" as const, version: 1 }, undefined),
        turnCount: fc.nat(1),
      });
      const step = fc.oneof(
        fc.record({ do: fc.constant("put" as const), key, row }),
        fc.record({ do: fc.constant("remove" as const), key }),
        fc.record({ do: fc.constant("get" as const), key }),
      );
      await fc.assert(
        fc.asyncProperty(fc.array(fc.array(step, { maxLength: 8 }), { minLength: 1, maxLength: 3 }), async (works) => {
          await Promise.all(
            works.map((steps) =>
              store.commit(NO_PARTITION, (tx) => {
                for (const one of steps) {
                  if (one.do === "get") tx.get(sessions, one.key);
                  else if (one.do === "remove") tx.remove(sessions, one.key);
                  else if (tx.has(sessions, one.key)) tx.put(sessions, one.key, session(one.row as Partial<SessionRow>));
                  else tx.add(sessions, one.key, session(one.row as Partial<SessionRow>));
                }
              }),
            ),
          );
          const rows = await store.read((reader) => reader.rows(sessions, ALL));
          for (const index of sessions.indexes) {
            const entries = rows.flatMap((one) => index.entriesOf(one.key, one.row)).toSorted();
            expect({ index: index.name, entries: await keysOf(index) }).toEqual({ index: index.name, entries });
            const found = await store.read((reader) => [...entries, "none"].map((entry) => reader.has(index, entry)));
            expect(found).toEqual([...entries.map(() => true), false]);
          }
        }),
        { numRuns: 60 },
      );
    });

    test("more commits at once than one transaction takes are all there, in order, and each sees the ones before", async () => {
      const seen = await Promise.all(
        Array.from({ length: 1_000 }, (_, i) =>
          store.commit(NO_PARTITION, (tx) => {
            tx.put(turns, String(i).padStart(4, "0"), text(String(i)));
            const before = Number(tx.get(meta, "counter") ?? "0");
            tx.put(meta, "counter", String(before + 1));
            return before;
          }),
        ),
      );
      expect(seen).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
      expect((await keysOf(turns)).length).toBe(1_000);
    });

    test("a read sees every commit that has resolved, and of one under way all or nothing", async () => {
      for (let count = 1; count <= 20; count++) {
        const under = { way: true };
        const isThere = count % 2 === 1;
        const commit = store
          .commit(NO_PARTITION, (tx) => {
            if (isThere) {
              tx.put(sessions, "s", session({ turnCount: count }));
              tx.put(meta, "beside", String(count));
            } else {
              tx.remove(sessions, "s");
              tx.remove(meta, "beside");
            }
          })
          .then(() => (under.way = false));
        const look = (reader: Reader): unknown[] => [
          reader.isEmpty(sessions),
          reader.get(sessions, "s")?.turnCount,
          reader.get(meta, "beside"),
        ];
        const there = (number: number): unknown[] => (number % 2 === 1 ? [false, number, String(number)] : [true, undefined, undefined]);
        while (under.way) {
          expect<unknown[]>([there(count - 1), there(count)]).toContainEqual(await store.read(look));
          await new Promise(setImmediate);
        }
        await commit;
        expect(await store.read(look)).toEqual(there(count));
      }
    });

    test("a text of any length is stored as it is", async () => {
      const lengths = [0, 1, 4_095, 80_000, 90_000, 300_000, 2_000_000, 3];
      const textOf = (length: number) =>
        "ü🫖€a"
          .repeat(length)
          .slice(0, length * 2)
          .toWellFormed();
      await store.commit(NO_PARTITION, (tx) => lengths.forEach((length) => tx.put(turns, String(length), text(textOf(length)))));
      const hashes = await store.read((reader) =>
        lengths.map((length) => [length, Bun.hash(reader.get(turns, String(length))?.shown ?? "")]),
      );
      expect(hashes).toEqual(lengths.map((length) => [length, Bun.hash(textOf(length))]));
    });

    test("rows come back as they were put, whatever is in them", async () => {
      const body = toJson({ __proto__: null, "\ud800": "\n\r\u2028\u0000", "🫖": ["\\n", '"', "{}", "NULL", "'"], n: -0.5 });
      const version = { id: "0VQk3aB4x1Zq", createdAt: 5, actor: "crn_1234", source: "update" as const, reasoning: "two\nlines", body };
      const event = { types: ["turn.added"], webhooks: [], createdAt: 5, sessionId: null, trace: "t", body: toJson({ text: "a\nb" }) };
      const turn = { shown: '"id":"t"', rest: '"line":"a\\nb"' };
      await store.commit(NO_PARTITION, (tx) => {
        tx.put(versions, "v", version);
        tx.put(outbox, "e", event);
        tx.put(turns, "t", turn);
        tx.put(turns, "null", { shown: "NULL", rest: "{\\" });
      });
      const found = await store.read((reader) => [
        reader.get(versions, "v"),
        reader.get(outbox, "e"),
        reader.get(turns, "t"),
        reader.get(turns, "null"),
      ]);
      expect(found).toEqual([version, event, turn, { shown: "NULL", rest: "{\\" }]);
    });

    test("the revision of a row is the same until the row is another, however long it is", async () => {
      const revisions = () => store.read((reader) => ["short", "long", "none"].map((key) => reader.revision(turns, key)));
      const put = (key: string, shown: string) => store.commit(NO_PARTITION, (tx) => tx.put(turns, key, { shown, rest: "" }));
      await put("short", "a");
      await put("long", "ü".repeat(300_000));
      const first = await revisions();
      expect(first.map((revision) => revision !== undefined)).toEqual([true, true, false]);
      expect(await revisions()).toEqual(first);
      await put("long", `${"ü".repeat(299_999)}u`);
      const second = await revisions();
      expect([second[0] === first[0], second[1] === first[1]]).toEqual([true, false]);
      await store.commit(NO_PARTITION, (tx) => tx.remove(turns, "short"));
      expect(await revisions()).toEqual([undefined, second[1], undefined]);
    });

    test("a vector's bytes are exactly those that were stored, also after longer and shorter ones", async () => {
      const bytesOf = (length: number) => Uint8Array.from({ length }, (_, i) => (i * 31 + length) % 256);
      const lengths = [6_160, 6_148, 46_144, 8, 6_160, 200_000, 4];
      await store.commit(NO_PARTITION, (tx) => {
        for (const length of lengths) tx.putVector(vectors, `v${length}`, bytesOf(length));
      });
      for (const length of lengths) {
        const read = await store.read((reader) => reader.vectorBytes(vectors, `v${length}`)?.slice());
        expect([length, read?.length, Bun.hash(read ?? "")]).toEqual([length, length, Bun.hash(bytesOf(length))]);
      }
      await store.commit(NO_PARTITION, (tx) => tx.removeVector(vectors, "v8"));
      expect(await store.read((reader) => reader.vectorBytes(vectors, "v8"))).toBeUndefined();
      expect((await keysOf(vectors)).length).toBe(new Set(lengths).size - 1);
    });

    test("a work that does something else when it is run again fails, and leaves nothing behind", async () => {
      let runs = 0;
      const commit = store.commit(NO_PARTITION, (tx) => tx.put(turns, "a", text(`run ${++runs}`)));
      expect(await commit.catch(String)).toContain("wrote something else");
      expect(await keysOf(turns)).toEqual([]);
      const id = await store.commit(NO_PARTITION, (tx) => {
        const made = tx.id("turn");
        tx.put(turns, made, text(`${tx.now} ${tx.elapsed}`));
        return made;
      });
      expect(await keysOf(turns)).toEqual([id]);
    });

    test("ids rise from commit to commit, and name the home that the commit was given", async () => {
      const made = await Promise.all(
        Array.from({ length: 200 }, (_, i) => store.commit(`${i % 9}x`, (tx) => [tx.bareId(), tx.bareId("zz")])),
      );
      const ids = made.flat();
      expect(new Set(ids).size).toBe(400);
      expect(ids.map((id) => id.slice(-2))).toEqual(made.flatMap((_, i) => [`${i % 9}x`, "zz"]));
      for (let home = 0; home < 9; home++) {
        const own = made.filter((_, i) => i % 9 === home).flat();
        expect(own).toEqual(own.toSorted());
      }
    });

    test("the pages of a list together have each record that passes once, newest first, whatever the filter and the times", async () => {
      const count = 60;
      const pick = <Value>(values: readonly Value[], i: number) => values[i % values.length] as Value;
      const rows = Array.from({ length: count }, (_, i) => {
        // The clock was set back for some: their ids are later than their times.
        const createdAt = 1_000 + i * 10 - (i % 7 === 3 ? 200 : 0);
        const id: BareId = firstBareIdAt(1_000 + i * 10);
        const tags: string[] = ["a", "b", "c"].filter((_tag, n) => (i >> n) % 2 === 0);
        return {
          id,
          row: memory({
            createdAt,
            tags,
            userId: pick(["u", "v", null], i),
            type: pick(["x", "y"], i >> 1),
            agentId: pick(["g", "h"], i >> 2),
          }),
        };
      });
      await store.commit(NO_PARTITION, (tx) => {
        for (const { id, row } of rows) tx.add(memories, id, row);
      });
      const { byUser, byType, byTag, byAgent, ahead } = memories.index;
      const time = fc.option(fc.integer({ min: 900, max: 1_700 }), { nil: undefined });
      const given = fc.record({
        user: fc.option(fc.constantFrom("u", "v", "nobody"), { nil: undefined }),
        agent: fc.option(fc.constantFrom("g", "h"), { nil: undefined }),
        types: fc.option(fc.uniqueArray(fc.constantFrom<string[]>("x", "y", "z"), { minLength: 1 }), { nil: undefined }),
        tags: fc.uniqueArray(fc.constantFrom("a", "b", "c", "d")),
        anyTag: fc.option(fc.uniqueArray(fc.constantFrom<string[]>("a", "b", "d"), { minLength: 1 }), { nil: undefined }),
        createdAfter: time,
        createdBefore: time,
        limit: fc.integer({ min: 1, max: 30 }),
      });
      await fc.assert(
        fc.asyncProperty(given, async ({ user, agent, types, tags, anyTag, createdAfter, createdBefore, limit }) => {
          const listing: Listing<"mem"> = {
            prefix: "mem",
            table: memories,
            ahead,
            filter: [
              ...(anyTag === undefined ? [] : [posting(byTag, ...anyTag.map(hashKey))]),
              ...(types === undefined ? [] : [posting(byType, ...types.map(hashKey))]),
              ...tags.map((tag) => posting(byTag, hashKey(tag))),
              ...(user === undefined ? [] : [posting(byUser, hashKey(user))]),
              ...(agent === undefined ? [] : [posting(byAgent, hashKey(agent))]),
            ],
            owner: NOBODY,
            created: { createdAfter, createdBefore },
          };
          const passes = ({ createdAt }: MemoryRow) =>
            (createdAfter === undefined || createdAt > createdAfter) && (createdBefore === undefined || createdAt < createdBefore);
          const expected = rows
            .filter(
              ({ row }) =>
                passes(row) &&
                (user === undefined || row.userId === user) &&
                (agent === undefined || row.agentId === agent) &&
                (types === undefined || types.includes(row.type)) &&
                tags.every((tag) => row.tags.includes(tag)) &&
                (anyTag === undefined || anyTag.some((tag) => row.tags.includes(tag))),
            )
            .map(({ id }) => `mem_${id}`)
            .reverse();
          const found: string[] = [];
          for (let startingAfter: `mem_${string}` | undefined; ;) {
            const page = JSON.parse(
              await store.list(listing, { limit, startingAfter }, (reader, key, id) => {
                const row = reader.get(memories, key);
                return row !== undefined && passes(row) ? toJson({ id }) : undefined;
              }),
            ) as { data: { id: string }[]; has_more: boolean; last_id: `mem_${string}` };
            found.push(...page.data.map(({ id }) => id));
            if (!page.has_more) break;
            startingAfter = page.last_id;
          }
          expect(found).toEqual(expected);
        }),
        { numRuns: 60 },
      );
    });

    test("a list of few among many finds them page by page, however little a page may look at", async () => {
      const ids = Array.from({ length: 2_400 }, (_, i) => firstBareIdAt(5_000 + i));
      const isRare = (i: number) => i % 1_100 === 7;
      await store.commit(NO_PARTITION, (tx) => {
        for (const [i, id] of ids.entries())
          tx.add(memories, id, memory({ userId: "u", type: isRare(i) ? "rare" : "x", createdAt: 5_000 + i }));
      });
      const { byUser, byType, byTag, ahead } = memories.index;
      const pagesOf = async (filter: Listing<"mem">["filter"], probesMax: number) => {
        const listing: Listing<"mem"> = { prefix: "mem", table: memories, ahead, filter, owner: NOBODY, created: {}, probesMax };
        const found: string[] = [];
        for (let pages = 1, startingAfter: `mem_${string}` | undefined; ; pages++) {
          const page = JSON.parse(await store.list(listing, { limit: 2, startingAfter }, (_, __, id) => toJson({ id }))) as {
            data: { id: string }[];
            has_more: boolean;
            last_id: `mem_${string}`;
          };
          found.push(...page.data.map(({ id }) => id));
          if (!page.has_more) return { found, pages };
          startingAfter = page.last_id;
        }
      };
      const rare = ids.filter((_, i) => isRare(i)).reverse();
      const filter = [posting(byUser, hashKey("u")), posting(byType, hashKey("rare"), hashKey("none"))];
      for (const probesMax of [50_000, 500]) {
        const { found, pages } = await pagesOf(filter, probesMax);
        expect(found).toEqual(rare.map((id) => `mem_${id}`));
        expect(pages).toBeLessThan(10);
      }
      expect((await pagesOf([posting(byUser, hashKey("u")), posting(byTag, hashKey("none"))], 500)).found).toEqual([]);
    });

    test("traces are listed by time across their actions, by one of these, and by session", async () => {
      const sessionIds = ["0VQk3aB4x100", "0VQk3aB4x200"];
      const all = Array.from({ length: 40 }, (_, i) => ({
        key: `${"abc"[i % 3]}${firstBareIdAt(5_000 + i)}`,
        session: sessionIds[(i >> 1) % 2]!,
      }));
      await store.commit(NO_PARTITION, (tx) => {
        for (const { key, session: of } of all)
          tx.add(traces, key, { expiresAt: 9, actor: "a", sessionId: `sess_${of}`, body: toJson({}) } as never);
      });
      const listed = async (filter: Listing<"trace">["filter"]) => {
        const listing: Listing<"trace"> = { prefix: "trace", table: traces, ahead: traces.index.ahead, filter, owner: NOBODY, created: {} };
        const ids: string[] = [];
        for (let startingAfter: `trace_${string}` | undefined; ;) {
          const page = JSON.parse(await store.list(listing, { limit: 7, startingAfter }, (_, __, id) => toJson({ id }))) as {
            data: { id: string }[];
            has_more: boolean;
            last_id: `trace_${string}`;
          };
          ids.push(...page.data.map(({ id }) => id));
          if (!page.has_more) return ids;
          startingAfter = page.last_id;
        }
      };
      const expected = (passes: (one: (typeof all)[number]) => boolean) =>
        all
          .filter(passes)
          .map(({ key }) => `trace_${key.slice(1)}`)
          .reverse();
      expect(await listed([posting(traces, "a", "b", "c")])).toEqual(expected(() => true));
      expect(await listed([posting(traces, "b")])).toEqual(expected(({ key }) => key.startsWith("b")));
      const [own = ""] = sessionIds;
      expect(await listed([posting(traces.index.bySession, own), posting(traces, "a", "c")])).toEqual(
        expected(({ key, session: of }) => of === own && !key.startsWith("b")),
      );
    });
  });
}

function session(given: Partial<SessionRow>): SessionRow {
  const row = { agentId: "a", userId: null, createdAt: 1, updatedAt: 1, metadata: {}, memoryCount: 0, turnCount: 0, ttlSeconds: 60 };
  return { ...row, expiresAt: 2, version: 0, ...given };
}

function memory(given: Partial<MemoryRow>): MemoryRow {
  const row = { sessionId: "sess_0VQk3aB4x1Zq" as const, userId: null, agentId: "a", content: "c", type: "x", tags: [], metadata: {} };
  return { ...row, createdAt: 1, embed: false, ...given };
}
