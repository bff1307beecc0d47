/**
 * Searches where several servers share a database: each has a copy of what is searched, and finds what any of them has answered.
 */
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { SQL } from "bun";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nextTurn, systemClock } from "../src/lib/clock.ts";
import { bare, NO_PARTITION } from "../src/lib/ids.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { createLog } from "../src/lib/log.ts";
import { DATA_FILE } from "../src/storage/lmdb/file/data-file.ts";
import { Store } from "../src/storage/lmdb/store.ts";
import { PostgresStore } from "../src/storage/postgres/postgres-store.ts";
import { memories, type MemoryRow } from "../src/storage/tables.ts";
import type { ToWorker } from "../src/search/protocol.ts";
import { ReplicaCopy } from "../src/search/replica/replica-copy.ts";
import { Replica } from "../src/search/replica/replica.ts";
import { startCairn, type Cairn, type Options } from "./support/cairn.ts";
import { startEmbeddingServer } from "./support/embedding-server.ts";
import { fillMemories } from "./support/fill.ts";
import { isHere } from "./support/platform.ts";
import { Postgres, POSTGRES } from "./support/postgres.ts";
import { CHESS, EMBEDDINGS, NOTES, RENT, setProvider, TEA } from "./support/providers.ts";

const REPLICA = "search replica";
const FOLLOW = "settings of other servers";

if (isHere(POSTGRES, "what several servers on one database find")) {
  describe("searches on several servers", () => {
    let postgres: Postgres;
    beforeAll(async () => void (postgres = await Postgres.start()));
    afterAll(() => postgres.stop());

    const start = async (options: Options = {}): Promise<{ cairn: Cairn; database: string }> => {
      const database = options.database ?? (await postgres.migrated());
      return { cairn: await startCairn({ servers: 3, ...options, database }), database };
    };
    /** What a search of all memories finds, best first, on each server. */
    const foundBy = (cairn: Cairn, query: string, more: Record<string, unknown> = {}): Promise<string[][]> =>
      Promise.all(
        cairn.services.map(async (_, server) => {
          const { data } = await cairn.ok(cairn.post("/v1/memory/search", { query, threshold: 0.9, ...more }, { server }));
          return data.map(({ content }: { content: string }) => content);
        }),
      );
    const onAll = <Value>(value: Value): Value[] => [value, value, value];
    const run = async (database: string, text: string, values: unknown[] = []): Promise<any[]> => {
      await using sql = new SQL(database);
      return Array.from(await sql.unsafe(text, values));
    };
    const gauge = async (cairn: Cairn, name: string, server: number): Promise<number> => {
      const { text } = await cairn.plain("GET", "/metrics", { server });
      return Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1]);
    };
    const replicas = (cairn: Cairn, what: string): Promise<number[]> =>
      Promise.all(cairn.services.map((_, server) => gauge(cairn, `cairn_search_replica_${what}`, server)));
    const timesLogged = (cairn: Cairn, message: string) => cairn.logged.filter((line) => line.includes(message)).length;
    const MADE = "search replica made";

    test("what one has answered all find at once: what was added, how it was changed, and that it was deleted", async () => {
      const { cairn: opened } = await start();
      await using cairn = opened;
      const { id } = await cairn.createSession();
      for (const [server, content] of [TEA, CHESS, RENT].entries()) {
        const memory = await cairn.ok(cairn.post("/v1/memory", { session_id: id, content }, { server }));
        expect(await foundBy(cairn, content)).toEqual(onAll([content]));
        const other = (server + 1) % 3;
        await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { tags: ["new"], type: "fact" }, { server: other }));
        expect(await foundBy(cairn, content, { tags: ["new"], type: "fact" })).toEqual(onAll([content]));
        expect(await foundBy(cairn, content, { type: "general" })).toEqual(onAll([]));
        await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: `${content} So it was.` }, { server }));
        expect(await foundBy(cairn, `${content} So it was.`, { type: "fact" })).toEqual(onAll([`${content} So it was.`]));
        await cairn.delete(`/v1/memory/${memory.id}`, { server: other });
        expect(await foundBy(cairn, content, { threshold: 0 })).toEqual(onAll([]));
      }
      expect(await replicas(cairn, "vectors")).toEqual([0, 0, 0]);
    });

    test("documents that one has put are found by all, and are gone for all", async () => {
      const { cairn: opened } = await start();
      await using cairn = opened;
      const put = (key: string, value: object, server: number) =>
        cairn.ok(
          cairn.post("/v1/documents/batch", { operations: [{ op: "put", namespace: ["notes"], key, value, index: true }] }, { server }),
        );
      const found = () =>
        Promise.all(
          [0, 1, 2].map(async (server) => {
            const operations = [{ op: "search", namespace: ["notes"], query: TEA, threshold: 0.9 }];
            const { data } = await cairn.ok(cairn.post("/v1/documents/query", { operations }, { server }));
            return data[0].data.map(({ key }: { key: string }) => key);
          }),
        );
      await put("tea", { text: TEA }, 0);
      await put("rent", { text: RENT }, 1);
      expect(await found()).toEqual(onAll(["tea"]));
      await put("tea", { text: CHESS }, 2);
      expect(await found()).toEqual(onAll([]));
    });

    test("among hundreds the best is found by each, wherever it was added, while the index takes them in and afterwards", async () => {
      const { cairn: opened } = await start();
      await using cairn = opened;
      const session = await cairn.createSession();
      await fillMemories(cairn, session, NOTES(300));
      for (const [server, content] of [TEA, CHESS, RENT].entries()) {
        await cairn.ok(cairn.post("/v1/memory", { session_id: session.id, content }, { server }));
        expect(await foundBy(cairn, content, { limit: 1 })).toEqual(onAll([content]));
      }
      expect(await foundBy(cairn, NOTES(300)[123]!, { limit: 1 })).toEqual(onAll([NOTES(300)[123]!]));
      expect(await replicas(cairn, "vectors")).toEqual([303, 303, 303]);
    });

    test("what a transaction puts that began before others, and ends after they were searched, is found", async () => {
      const { cairn: opened, database } = await start();
      await using cairn = opened;
      const session = await cairn.createSession();
      const { id } = session;
      await fillMemories(cairn, session, NOTES(150));
      const tea = await cairn.addMemory(id, TEA);
      const key = tea.id.slice("mem_".length);
      await run(database, "create table kept as select * from cairn.memories where key = $1", [key]);
      await run(database, "create table kept_vectors as select * from cairn.vectors where key = $1", [key]);
      await cairn.delete(`/v1/memory/${tea.id}`);
      expect(await foundBy(cairn, TEA)).toEqual(onAll([]));
      await using late = new SQL(database, { max: 1 });
      await late.unsafe("begin");
      await late.unsafe("select pg_current_xact_id()");
      await cairn.addMemory(id, CHESS);
      expect(await foundBy(cairn, CHESS)).toEqual(onAll([CHESS]));
      await late.unsafe("insert into cairn.memories select * from kept");
      await late.unsafe("insert into cairn.vectors select * from kept_vectors");
      await late.unsafe(`insert into cairn.changes values (pg_current_xact_id(), 1, ${cairn.clock.now()}, 'm${key}')`);
      expect(await foundBy(cairn, TEA)).toEqual(onAll([]));
      await cairn.addMemory(id, RENT);
      expect(await foundBy(cairn, RENT)).toEqual(onAll([RENT]));
      await late.unsafe("commit");
      expect(await foundBy(cairn, TEA)).toEqual(onAll([TEA]));
      // In the copies it has another id than in the database, and is changed and deleted like any other.
      await cairn.ok(cairn.patch(`/v1/memory/${tea.id}`, { tags: ["late"] }));
      expect(await foundBy(cairn, TEA, { tags: ["late"] })).toEqual(onAll([TEA]));
      await cairn.delete(`/v1/memory/${tea.id}`);
      await foundBy(cairn, TEA);
      expect(await replicas(cairn, "vectors")).toEqual([152, 152, 152]);
    });

    test("another provider's vectors take the place of those before, on all", async () => {
      await using provider = startEmbeddingServer({ length: 384, unrelated: 0.5 });
      const { cairn: opened } = await start();
      await using cairn = opened;
      const { id } = await cairn.createSession();
      for (const content of [TEA, CHESS]) await cairn.addMemory(id, content);
      expect(await foundBy(cairn, TEA)).toEqual(onAll([TEA]));
      await setProvider(cairn, provider);
      await cairn.runTask(FOLLOW);
      await cairn.runTask(EMBEDDINGS);
      expect(await foundBy(cairn, TEA)).toEqual(onAll([TEA]));
      await cairn.addMemory(id, RENT);
      expect(await foundBy(cairn, RENT)).toEqual(onAll([RENT]));
      await cairn.ok(cairn.patch("/v1/settings", { embedding: { provider: null } }));
      await cairn.runTask(FOLLOW);
      await cairn.runTask(EMBEDDINGS);
      expect(await foundBy(cairn, CHESS)).toEqual(onAll([CHESS]));
      expect(await replicas(cairn, "vectors")).toEqual([3, 3, 3]);
    });

    test("of a user that was erased no copy keeps anything", async () => {
      const { cairn: opened } = await start();
      await using cairn = opened;
      const [ada, bob] = [await cairn.createSession({ user_id: "ada" }), await cairn.createSession({ user_id: "bob" })];
      await cairn.addMemory(ada.id, TEA);
      await cairn.addMemory(bob.id, CHESS);
      expect(await foundBy(cairn, TEA)).toEqual(onAll([TEA]));
      // What is erased has an earlier id.
      cairn.clock.advance({ seconds: 1 });
      expect((await cairn.delete("/v1/users/ada")).status).toBeLessThan(300);
      expect(await foundBy(cairn, TEA, { threshold: 0 })).toEqual(onAll([CHESS]));
      await cairn.runTask("user erasure");
      await cairn.runTask(REPLICA);
      expect(await replicas(cairn, "vectors")).toEqual([1, 1, 1]);
    });

    test("one to whose place the feed does not reach back any more makes its copy again, and answers meanwhile", async () => {
      const { cairn: opened, database } = await start();
      await using cairn = opened;
      const { id } = await cairn.createSession();
      const { id: tea } = await cairn.addMemory(id, TEA);
      expect(await foundBy(cairn, TEA)).toEqual(onAll([TEA]));
      await cairn.delete(`/v1/memory/${tea}`);
      for (const content of [CHESS, RENT]) await cairn.addMemory(id, content);
      await run(database, "delete from cairn.changes where xid < (select max(xid) from cairn.changes)");
      for (const content of [CHESS, RENT]) expect(await foundBy(cairn, content)).toEqual(onAll([content]));
      expect(await replicas(cairn, "ready")).toEqual([0, 0, 0]);
      await cairn.runTask(REPLICA);
      expect(await replicas(cairn, "ready")).toEqual([1, 1, 1]);
      expect(await replicas(cairn, "vectors")).toEqual([2, 2, 2]);
      for (const content of [CHESS, RENT]) expect(await foundBy(cairn, content)).toEqual(onAll([content]));
      expect(timesLogged(cairn, MADE)).toBe(6);
    });

    test("one that was away continues with its copy where the feed reaches back, and makes it again where not or where it is damaged", async () => {
      const { cairn: opened, database } = await start();
      await using other = opened;
      await using cairn = await startCairn({ database, servers: 1, clock: other.clock });
      cairn.key = other.key;
      const { id } = await other.createSession();
      const { id: tea } = await other.addMemory(id, TEA);
      const found = async (query: string) => (await foundBy(cairn, query))[0];
      expect(await found(TEA)).toEqual([TEA]);
      await cairn.close();
      await other.delete(`/v1/memory/${tea}`);
      await other.addMemory(id, CHESS);
      await cairn.open();
      expect([await found(TEA), await found(CHESS)]).toEqual([[], [CHESS]]);
      expect([timesLogged(cairn, MADE), await gauge(cairn, "cairn_search_replica_vectors", 0)]).toEqual([1, 1]);
      await cairn.close();
      await other.addMemory(id, RENT);
      await other.addMemory(id, TEA);
      await run(database, "delete from cairn.changes where xid < (select max(xid) from cairn.changes)");
      await cairn.open();
      expect([await found(RENT), await found(TEA)]).toEqual([[RENT], [TEA]]);
      expect([timesLogged(cairn, MADE), await gauge(cairn, "cairn_search_replica_vectors", 0)]).toEqual([2, 3]);
      await cairn.close();
      writeFileSync(join(cairn.directory, "replica", "position.json"), "{");
      await cairn.open();
      expect([await found(RENT), timesLogged(cairn, MADE)]).toEqual([[RENT], 3]);
    });

    test("one with a row that cannot be read is made again, and searches are answered meanwhile", async () => {
      const { cairn: opened } = await start({ servers: 1 });
      await using cairn = opened;
      const found = async (query: string) => (await foundBy(cairn, query))[0];
      const { id } = await cairn.createSession();
      const [tea, chess] = [await cairn.addMemory(id, TEA), await cairn.addMemory(id, CHESS)];
      expect(await found(TEA)).toEqual([TEA]);
      await cairn.close();
      const copy = await Store.open(join(cairn.directory, "replica"), systemClock, { durability: "relaxed" });
      const damage = { ...memories, indexes: [], encode: () => "{" };
      for (const memory of [tea, chess]) await copy.commit(NO_PARTITION, (tx) => tx.put(damage, bare(memory.id), {} as MemoryRow));
      await copy.close();
      await cairn.open();
      expect([await found(TEA), await found(CHESS)]).toEqual([[TEA], [CHESS]]);
      await cairn.runTask(REPLICA);
      await cairn.ok(cairn.patch(`/v1/memory/${tea.id}`, { tags: ["green"] }));
      expect([await found(TEA), await found(CHESS)]).toEqual([[TEA], [CHESS]]);
      await cairn.runTask(REPLICA);
      expect([await replicas(cairn, "ready"), await replicas(cairn, "vectors")]).toEqual([[1], [2]]);
      expect(timesLogged(cairn, MADE)).toBe(2);
    });

    test("one is made again once the last one is closed, which had the same directory, and is kept", async () => {
      const held: (() => void)[] = [];
      let isHeld = false;
      /** One that is not told yet that it is to end. */
      const newWorker = (): Worker => {
        const worker = new Worker(new URL("../src/search/worker.ts", import.meta.url).href);
        const post = worker.postMessage.bind(worker);
        worker.postMessage = (message: ToWorker) => {
          if (isHeld && message.kind === "close") held.push(() => post(message));
          else post(message);
        };
        return worker;
      };
      const { cairn: opened, database } = await start({ servers: 1, index: { newWorker } });
      await using cairn = opened;
      const session = await cairn.createSession();
      await fillMemories(cairn, session, NOTES(150));
      await cairn.addMemory(session.id, TEA);
      const found = async (query: string) => (await foundBy(cairn, query, { limit: 1 }))[0];
      expect(await found(TEA)).toEqual([TEA]);
      for (const content of [CHESS, RENT]) await cairn.addMemory(session.id, content);
      await run(database, "delete from cairn.changes where xid < (select max(xid) from cairn.changes)");
      isHeld = true;
      const runs = [cairn.runTaskOnce(REPLICA)];
      while (held.length === 0) await nextTurn();
      isHeld = false;
      runs.push(cairn.runTaskOnce(REPLICA));
      for (const content of [TEA, CHESS, RENT, TEA, CHESS, RENT]) expect(await found(content)).toEqual([content]);
      for (const release of held) release();
      await Promise.all(runs);
      await cairn.runTask(REPLICA);
      expect(existsSync(join(cairn.directory, "replica", DATA_FILE))).toBe(true);
      for (const content of [TEA, CHESS, RENT]) expect(await found(content)).toEqual([content]);
      expect([await replicas(cairn, "ready"), await replicas(cairn, "vectors")]).toEqual([[1], [153]]);
    });

    test("a copy is opened once: not again from where it was, when a power cut brought back the file that says so", async () => {
      const { cairn: opened, database } = await start({ servers: 1 });
      await using cairn = opened;
      const { id } = await cairn.createSession();
      await cairn.addMemory(id, TEA);
      expect(await foundBy(cairn, TEA)).toEqual([[TEA]]);
      await cairn.close();
      const directory = join(cairn.directory, "replica");
      const position = readFileSync(join(directory, "position.json"));
      const source = await PostgresStore.open(database, systemClock);
      await using _ = { [Symbol.asyncDispose]: () => source.close() };
      const options = {
        source,
        directory,
        clock: systemClock,
        log: createLog({ level: "error", pretty: false, write: () => undefined, now: () => 0 }),
      };
      const copy = await ReplicaCopy.saved(directory, options);
      expect(copy?.vectors).toBe(1);
      await copy?.store.close();
      writeFileSync(join(directory, "position.json"), position);
      expect(await ReplicaCopy.saved(directory, options)).toBeUndefined();
    });

    test("without a copy a few searches compare what is more than one look finds, and of one key half of them; the others wait", async () => {
      const { cairn: opened } = await start({ servers: 1 });
      await using cairn = opened;
      const session = await cairn.createSession({ user_id: "ada" });
      await fillMemories(cairn, session, NOTES(600));
      const { store } = cairn.service;
      const lost = [
        spyOn(Replica.prototype, "indexOf").mockReturnValue(undefined),
        spyOn(Replica.prototype, "followed").mockResolvedValue(undefined),
      ];
      const walk = store.walk.bind(store);
      let under = 0;
      let most = 0;
      const walking = spyOn(store, "walk").mockImplementation(async (table, filter, bounds, limit) => {
        // The first look is everybody's.
        if (bounds.before === undefined) return walk(table, filter, bounds, limit);
        most = Math.max(most, ++under);
        const found = await walk(table, filter, bounds, limit);
        under--;
        return found;
      });
      const [query] = NOTES(600);
      const search = async (key: string, more: object) =>
        (await cairn.ok(cairn.post("/v1/memory/search", { query, limit: 1, threshold: 0.9, ...more }, { key }))).data.length;
      const all = (key: string) => Array.from({ length: 30 }, (_, i) => search(key, i % 2 === 0 ? {} : { user_id: "ada" }));
      expect(new Set(await Promise.all(all(cairn.key)))).toEqual(new Set([1]));
      expect(most).toBeLessThanOrEqual(LIMITS.searchesOfKeyAtOnceMax);
      const keys = await Promise.all([1, 2, 3].map(() => cairn.newKey()));
      expect(new Set(await Promise.all(keys.flatMap(all)))).toEqual(new Set([1]));
      expect(most).toBeLessThanOrEqual(LIMITS.searchesAtOnceMax);
      for (const spy of [...lost, walking]) spy.mockRestore();
    });

    test("a copy that was closed while it was made is made again, whole", async () => {
      const { cairn: opened, database } = await start();
      await using other = opened;
      const session = await other.createSession();
      await fillMemories(other, session, NOTES(600));
      await using cairn = await startCairn({ database, servers: 1, clock: other.clock, index: { openMaxMs: 1 } });
      cairn.key = other.key;
      await cairn.close();
      await cairn.open();
      const [last] = NOTES(600).slice(-1);
      expect(await foundBy(cairn, last!, { limit: 1 })).toEqual([[last!]]);
      await cairn.runTask(REPLICA);
      expect(await replicas(cairn, "vectors")).toEqual([600]);
      expect(await foundBy(cairn, last!, { limit: 1 })).toEqual([[last!]]);
    });

    test("metrics say how far a copy is behind", async () => {
      const { cairn: opened } = await start();
      await using cairn = opened;
      const { id } = await cairn.createSession();
      await cairn.addMemory(id, TEA);
      await cairn.runTask(REPLICA);
      expect(await replicas(cairn, "lag_transactions")).toEqual([0, 0, 0]);
      for (const seconds of await replicas(cairn, "lag_seconds")) expect(seconds).toBeGreaterThan(0);
      expect(await replicas(cairn, "vectors")).toEqual([1, 1, 1]);
    });
  });
}
