/**
 * Several servers on one database: whichever is asked, it knows what any other has answered.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { erasures } from "../src/storage/tables.ts";
import { startCairn, type Cairn, type Options } from "./support/cairn.ts";
import { FakeClock } from "./support/clock.ts";
import { watch } from "./support/watch.ts";
import { startEmbeddingServer } from "./support/embedding-server.ts";
import { isHere } from "./support/platform.ts";
import { Postgres, POSTGRES } from "./support/postgres.ts";
import { EMBEDDINGS, makeVectors, openai, setProvider, TEA } from "./support/providers.ts";

const EVENTS = "traces of other servers";
const FOLLOW = "settings of other servers";

if (isHere(POSTGRES, "several servers on one database")) {
  describe("several servers on one database", () => {
    let postgres: Postgres;
    beforeAll(async () => void (postgres = await Postgres.start()));
    afterAll(() => postgres.stop());
    const start = async (options: Options = {}): Promise<Cairn> =>
      startCairn({ servers: 3, database: await postgres.migrated(), ...options });

    test("a key is refused by all from the answer of its revocation on, and one that was made is taken by all", async () => {
      await using cairn = await start();
      for (let i = 0; i < 3; i++) {
        const { id, key } = await cairn.ok(cairn.post("/v1/api_keys", { name: "n", scopes: ["read"] }, { server: i }));
        const statuses = () => Promise.all([0, 1, 2].map(async (server) => (await cairn.get("/v1/sessions", { key, server })).status));
        expect(await statuses()).toEqual([200, 200, 200]);
        await cairn.ok(cairn.delete(`/v1/api_keys/${id}`, { server: (i + 1) % 3 }));
        expect(await statuses()).toEqual([401, 401, 401]);
      }
    });

    test("after an erasure no server has the vectors of queries from before in memory any more", async () => {
      await using provider = startEmbeddingServer();
      await using cairn = await start();
      await setProvider(cairn, provider);
      await cairn.runTask(FOLLOW);
      const asked = async () => {
        const before = provider.requests.length;
        for (const server of [0, 1, 2]) await cairn.ok(cairn.post("/v1/memory/search", { query: "What is Eve's PIN?" }, { server }));
        return provider.requests.length - before;
      };
      await cairn.createSession({ user_id: "eve" });
      expect([await asked(), await asked()]).toEqual([3, 0]);
      expect(await cairn.ok(cairn.delete("/v1/users/eve"))).toMatchObject({ status: "done" });
      await cairn.runTask("erasures of other servers");
      expect([await asked(), await asked()]).toEqual([3, 0]);
      await cairn.runTask("erasures of other servers");
      expect(await asked()).toBe(0);
    });

    test("what a server makes whose clock is behind, of a user whom another one is erasing, is kept with its traces and its answers", async () => {
      const database = await postgres.migrated();
      await using ahead = await startCairn({ database, servers: 1, clock: new FakeClock("2026-05-07T08:00:05.000Z") });
      await using behind = await startCairn({ database, servers: 1, clock: new FakeClock("2026-05-07T08:00:00.000Z") });
      behind.key = ahead.key;
      // More than is erased while the request waits.
      await Promise.all(Array.from({ length: 140 }, () => ahead.createSession({ user_id: "ada" })));
      const made: { id: string; path: string; body: object; once: { headers: Record<string, string> } }[] = [];
      const make = async (cairn: Cairn, path: string, body: object): Promise<string> => {
        const once = { headers: { "Idempotency-Key": String(made.length) } };
        const { id } = await cairn.ok(cairn.post(path, body, once));
        made.push({ id, path, body, once });
        return id;
      };
      expect(await ahead.ok(ahead.delete("/v1/users/ada"))).toMatchObject({ status: "running" });
      const turn = { input: { type: "text", content: "in" }, output: { type: "text", content: "out" } };
      const sessions = [await make(behind, "/v1/sessions", { agent_id: "a", user_id: "ada" })];
      sessions.push(await make(ahead, "/v1/sessions", { agent_id: "a", user_id: "ada" }));
      sessions.push(await make(behind, `/v1/sessions/${sessions[0]}/fork`, {}));
      for (const session of sessions) {
        await make(behind, `/v1/sessions/${session}/turns`, turn);
        await make(behind, "/v1/memory", { session_id: session, content: "She takes tea." });
      }
      const traces = () => ahead.list("/v1/traces?limit=9&user_id=ada");
      const shown = () => Promise.all(sessions.map((id) => ahead.session(id)));
      const before = [await traces(), await shown()];
      while ((await ahead.count(erasures)) > 0) await ahead.runTask("user erasure");
      expect((await ahead.traces(sessions[0]!)).length).toBe(3);
      expect([(await traces()).slice(0, 1), await shown()]).toEqual([(before[0] as object[]).slice(0, 1), before[1]!]);
      for (const { id, path, body, once } of made) expect((await ahead.ok(ahead.post(path, body, once))).id).toBe(id);
    });

    test("a setting holds for every request that comes after the answer of its change, to whichever server", async () => {
      await using cairn = await start();
      const { id } = await cairn.createSession();
      const sizes = [2_000, 9_000, 1_500];
      for (const [i, max_body_bytes] of sizes.entries()) {
        await cairn.ok(cairn.patch("/v1/settings", { max_body_bytes }, { server: i }));
        for (const server of [0, 1, 2]) {
          const shown = await cairn.ok(cairn.get("/v1/settings", { server }));
          expect(shown.max_body_bytes).toMatchObject({ value: max_body_bytes, source: "setting" });
          const send = async (bytes: number) =>
            (await cairn.post(`/v1/sessions/${id}/state`, { state: { text: "x".repeat(bytes) } }, { server })).status;
          expect([await send(max_body_bytes - 200), await send(max_body_bytes)]).toEqual([200, 413]);
        }
      }
    });

    test("a setting is followed by who answers no request", async () => {
      await using cairn = await start();
      await cairn.ok(cairn.patch("/v1/settings", { region: "eu" }, { server: 0 }));
      await cairn.runTask(FOLLOW);
      for (const server of [0, 1, 2]) expect((await cairn.get("/health", { server, key: null })).body.region).toBe("eu");
    });

    test("another embedding provider is followed by all, and each searches what the others have stored", async () => {
      await using provider = startEmbeddingServer({ length: 384, unrelated: 0.5 });
      await using cairn = await start();
      const { id } = await cairn.createSession({ user_id: "user" });
      await cairn.addMemory(id, TEA);
      await setProvider(cairn, provider);
      await cairn.runTask(FOLLOW);
      await makeVectors(cairn);
      for (const server of [0, 1, 2]) {
        const { embedding } = await cairn.ok(cairn.get("/v1/settings", { server }));
        expect(embedding).toMatchObject({ provider: { value: "openai" }, state: { available: true }, vectors: { ready: 1, pending: 0 } });
        const { data } = await cairn.ok(cairn.post("/v1/memory/search", { query: TEA, session_id: id }, { server }));
        expect(data).toMatchObject([{ content: TEA, score: 1 }]);
      }
      await cairn.ok(cairn.patch("/v1/settings", { embedding: { provider: null } }, { server: 2 }));
      await cairn.runTask(FOLLOW);
      await cairn.runTask(EMBEDDINGS);
      const asked = provider.requests.length;
      for (const server of [0, 1, 2]) {
        const { data } = await cairn.ok(cairn.post("/v1/memory/search", { query: TEA, session_id: id }, { server }));
        expect(data).toMatchObject([{ content: TEA, score: 1 }]);
      }
      expect(provider.requests.length).toBe(asked);
    });

    test("one whose environment names another provider says so once", async () => {
      await using provider = startEmbeddingServer({ length: 384 });
      const database = await postgres.migrated();
      await using cairn = await startCairn({ database, servers: 1 });
      await using other = await startCairn({
        database,
        servers: 1,
        clock: cairn.clock,
        environment: { embedding: openai(provider) },
      });
      for (const one of [cairn, other, cairn]) await one.runTask(FOLLOW);
      const said = ({ logged }: Cairn) => logged.filter((line) => line.includes("another server embeds with another provider")).length;
      expect([said(cairn), said(other)]).toEqual([1, 0]);
    });

    test("a stream of events has those of all servers, each once, also of who continues", async () => {
      await using cairn = await start();
      const { id } = await cairn.createSession();
      // What is of the same millisecond comes, too.
      cairn.clock.advance({ ms: 1 });
      const stream = await watch(cairn, "", { server: 0 });
      const other = await watch(cairn, `?session_id=${id}`, { server: 1 });
      for (let i = 0; i < 9; i++) {
        await cairn.addTurn(id);
        if (i % 4 === 0) await cairn.runTask(EVENTS);
      }
      await cairn.runTask(EVENTS);
      for (const one of [stream, other]) {
        const traces = await one.traces(9);
        expect(traces.map(({ details }) => details.turn_number).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
      }
      // What is a few seconds older than the last event may come again, and nothing is missing.
      const [newest, before] = await cairn.traces(id);
      const continued = await watch(cairn, "", { server: 2, after: before.id });
      await cairn.addTurn(id, "another");
      await cairn.runTask(EVENTS);
      const [another] = await cairn.traces(id);
      expect((await continued.traces(2)).map((trace) => trace.id)).toEqual([newest.id, another.id]);
      cairn.clock.advance({ seconds: 11 });
      const later = await watch(cairn, "", { server: 0, after: another.id });
      await cairn.addTurn(id, "the last one");
      await cairn.runTask(EVENTS);
      const { details } = await later.trace();
      expect(details.turn_number).toBe(11);
    });

    test("of two servers that pop at the same time the second finds out what the first has taken, whatever either has locked by then", async () => {
      const url = await postgres.migrated();
      await using cairn = await startCairn({ servers: 2, database: url });
      await using sql = new SQL(url, { max: 1 });
      // Whoever removes documents has found them unchanged, and holds them, while somebody else has this lock.
      await sql.unsafe(
        "create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return null; end $$;" +
          "create trigger hold before delete on cairn.documents for each statement execute function hold()",
      );
      const waits = "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      const waiting = async (count: number, isOver: () => boolean) => {
        while (!isOver() && ((await sql.unsafe(waits)) as { n: number }[])[0]!.n < count) await new Promise(setImmediate);
      };
      const first = ["orders"];
      const second = ["parcels"];
      const batch = async (server: number, operations: object[]): Promise<({ value: { number: number } } | null)[]> =>
        (await cairn.ok(cairn.post("/v1/documents/batch", { user_id: "ada", operations }, { server }))).data;
      const numbers = Array.from({ length: 20 }, (_, i) => i);
      await batch(
        0,
        numbers.map((number) => ({ op: "put", namespace: number % 2 === 0 ? first : second, value: { number } })),
      );
      const popped: (number | undefined)[] = [];
      // From the second conflict on servers lock before they read, and begin again with what they then find they need.
      for (let round = 0; round < 5; round++) {
        await sql.unsafe("select pg_advisory_lock(1)");
        let ended = 0;
        const pop = async (server: number, namespaces: string[][]) => {
          const operations = namespaces.map((namespace) => ({ op: "pop", namespace }));
          popped.push(...(await batch(server, operations)).map((document) => document?.value.number));
          ended++;
        };
        const pops = [pop(round % 2, [first, second])];
        await waiting(1, () => ended > 0);
        pops.push(pop((round + 1) % 2, [second, first]));
        await waiting(2, () => ended > 0);
        expect(ended).toBe(0);
        await sql.unsafe("select pg_advisory_unlock(1)");
        await Promise.all(pops);
      }
      expect(popped.toSorted((a, b) => a! - b!)).toEqual(numbers);
    });

    test("metrics say which server runs which task, and how far its clock is ahead of the database's", async () => {
      await using cairn = await start();
      await cairn.runTask("session expiry");
      const metrics = await Promise.all([0, 1, 2].map(async (server) => (await cairn.plain("GET", "/metrics", { server })).text));
      const held = metrics.map((text) => Number(/^cairn_lease_held\{lease="session expiry"\} (\d)$/m.exec(text)?.[1]));
      expect(held.toSorted((a, b) => a - b)).toEqual([0, 0, 1]);
      for (const text of metrics) expect(text).toMatch(/^cairn_conflicts_total \d+$/m);
      expect(metrics.map((text) => Number(/^cairn_clock_offset_seconds (\d)$/m.exec(text)?.[1]))).toEqual([0, 2, 4]);
    });

    test("a key has one bucket for all", async () => {
      await using cairn = await start();
      const key = await cairn.newKey({ tier: "free" });
      const answers = await Promise.all(Array.from({ length: 210 }, () => cairn.get("/v1/sessions?limit=1", { key })));
      const counts = Object.groupBy(answers, ({ status }) => status);
      expect([counts[200]?.length, counts[429]?.length]).toEqual([200, 10]);
      const left = answers.flatMap(({ status, headers }) => (status === 200 ? [Number(headers.get("x-ratelimit-remaining"))] : []));
      expect(left.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 200 }, (_, i) => i));
    });
  });
}
