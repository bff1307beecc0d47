/**
 * What several servers on one PostgreSQL need besides records: its schema, one time, leases of tasks, and rate limits.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { Idempotency } from "../../../src/http/idempotency.ts";
import { KeptBytes } from "../../../src/http/kept-bytes.ts";
import { statusAndJson } from "../../../src/lib/answer.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { bareIdTime, NO_PARTITION } from "../../../src/lib/ids.ts";
import { toJson } from "../../../src/lib/json.ts";
import { createLog } from "../../../src/lib/log.ts";
import { createSession } from "../../../src/sessions/sessions.ts";
import { LeaseLost, leasedTask, type Lease } from "../../../src/storage/leases.ts";
import { DatabaseClock } from "../../../src/storage/postgres/connection/database-clock.ts";
import { Database } from "../../../src/storage/postgres/connection/database.ts";
import { migrateSchema, type SchemaMigration } from "../../../src/storage/postgres/migrations.ts";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.ts";
import { definitions } from "../../../src/storage/postgres/schema.ts";
import { StoreError } from "../../../src/storage/store-error.ts";
import { deliveries, meta, sessions, turns, users, webhookFailures, type Table } from "../../../src/storage/tables.ts";
import { Activator, type Task } from "../../../src/tasks/task.ts";
import { systemCaller } from "../../../src/traces/record.ts";
import { TurnSearches } from "../../../src/turns/turn-searches.ts";
import { addTurns } from "../../../src/turns/turns.ts";
import { openWebhooks } from "../../../src/webhooks/open.ts";
import { webhookPolicy } from "../../../src/webhooks/policy.ts";
import { createWebhook } from "../../../src/webhooks/webhooks.ts";
import { FakeClock } from "../../support/clock.ts";
import { isHere } from "../../support/platform.ts";
import { Postgres, POSTGRES } from "../../support/postgres.ts";
import { Chance } from "../../support/process.ts";
import { startReceiver, type Receiver } from "../../support/receiver.ts";

const silent = createLog({ level: "silent", pretty: false, now: () => 0, write: () => undefined });
const numbers = (length: number) => Array.from({ length }, (_, i) => i);
/** One after another: who waits for the migrations of another moves its clock. */
const inTurn = async <Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> => {
  const results: Result[] = [];
  for (const item of items) results.push(await work(item));
  return results;
};
const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

if (isHere(POSTGRES, "what several servers on one database share")) {
  let postgres: Postgres;
  let url: string;
  beforeAll(async () => void (postgres = await Postgres.start()));
  afterAll(() => postgres.stop());
  beforeEach(async () => void (url = await postgres.migrated()));

  const query = async (text: string): Promise<Record<string, unknown>[]> => {
    await using sql = new SQL(url);
    return Array.from((await sql.unsafe(text)) as Record<string, unknown>[]);
  };

  describe("clocks", () => {
    const session = { agentId: "a", userId: null, createdAt: 1, updatedAt: 1, metadata: {}, memoryCount: 0, turnCount: 0, ttlSeconds: 60 };

    test("changes of one session have ids and times in their order, whichever server makes them and however its clock is set", async () => {
      const clocks = [new FakeClock("2026-05-07T08:00:02.000Z"), new FakeClock("2026-05-07T08:00:00.000Z"), new FakeClock()];
      const stores = await inTurn(clocks, (clock) => PostgresStore.open(url, clock));
      const key = await stores[0]!.commit("aa", (tx) => {
        const made = tx.bareId();
        tx.add(sessions, made, { ...session, expiresAt: 2 ** 41, version: 0, createdAt: tx.now, updatedAt: tx.now });
        return made;
      });
      const addTurn = (store: PostgresStore) =>
        store.commit("aa", (tx) => {
          const row = tx.get(sessions, key)!;
          const turnCount = row.turnCount + 1;
          tx.put(sessions, key, { ...row, turnCount, updatedAt: Math.max(row.updatedAt, tx.now) });
          const id = tx.bareId();
          tx.add(turns, key + id, { shown: String(tx.now), rest: String(turnCount) });
          return { turnCount, id, now: tx.now };
        });
      const made: Awaited<ReturnType<typeof addTurn>>[] = [];
      for (let i = 0; i < 24; i++) {
        made.push(await addTurn(stores[i % 3]!));
        clocks[i % 2]!.advance({ ms: i % 5 });
      }
      made.push(...(await Promise.all(stores.flatMap((store) => [store, store, store, store].map(addTurn)))));
      const inOrder = made.toSorted((a, b) => a.turnCount - b.turnCount);
      expect(inOrder.map(({ turnCount }) => turnCount)).toEqual(numbers(36).map((i) => i + 1));
      expect(inOrder.map(({ id }) => id)).toEqual(inOrder.map(({ id }) => id).toSorted());
      const times = inOrder.map(({ now }) => now);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(inOrder.filter(({ id, now }) => bareIdTime(id) !== now)).toEqual([]);
      // It has been led a few milliseconds ahead, not by the difference for each change.
      expect(times.at(-1)! - clocks[0]!.now()).toBeLessThan(100);
      for (const store of stores) await store.close();
    });

    test("a row that says it will be changed in an hour sets no clock", async () => {
      const clock = new FakeClock();
      const store = await PostgresStore.open(url, clock);
      const other = await PostgresStore.open(url, clock);
      await other.commit("aa", (tx) =>
        tx.add(sessions, "s", { ...session, expiresAt: 2 ** 41, version: 0, updatedAt: clock.now() + 3_600_000 }),
      );
      expect(await store.commit("aa", (tx) => [tx.get(sessions, "s")?.agentId, tx.now])).toEqual(["a", clock.now()]);
      await store.close();
      await other.close();
    });

    test("a server's clock shows the database's time, as far as the way there lets it be known, and never steps back a little", async () => {
      const own = new FakeClock("2026-05-07T08:00:00.000Z");
      const theirs = new FakeClock("2026-05-07T08:00:02.000Z");
      let way: readonly [there: number, back: number] = [0, 0];
      const clock = new DatabaseClock(own, async () => {
        const [there, back] = way;
        own.advance({ ms: there });
        theirs.advance({ ms: there });
        const time = theirs.now();
        own.advance({ ms: back });
        theirs.advance({ ms: back });
        return time;
      });
      expect(clock.now()).toBe(own.now());
      await clock.measure();
      expect([clock.now() - theirs.now(), clock.offsetMs]).toEqual([0, -2_000]);
      // What a slow answer leaves open changes nothing.
      way = [3_000, 0];
      await clock.measure();
      way = [0, 3_000];
      await clock.measure();
      expect(clock.now() - theirs.now()).toBe(0);
      // Somebody sets the clock of this system, …
      own.set(own.now() - 3_600_000);
      expect([clock.now() - theirs.now(), clock.offsetMs]).toEqual([0, -3_602_000]);
      // … and now that of the database.
      way = [0, 0];
      const shown = clock.now();
      theirs.set(theirs.now() - 5_000);
      await clock.measure();
      expect(clock.now()).toBe(shown);
      for (const one of [own, theirs]) one.advance({ ms: 5_001 });
      expect([clock.now() - shown, clock.now() - theirs.now()]).toEqual([1, 0]);
      theirs.set(theirs.now() - 3_600_000);
      await clock.measure();
      expect(clock.now() - theirs.now()).toBe(0);
    });

    test("the time of the database is the one its machine has", async () => {
      const database = new Database(url, systemClock);
      const before = Date.now();
      const time = await database.time();
      await database.close();
      expect(time).toBeGreaterThan(before - 2);
      expect(time).toBeLessThan(Date.now() + 2);
    });

    test("a system whose clock is wrong is told of once in the log, until it has been right again", async () => {
      const own = new FakeClock();
      const clock = new DatabaseClock(own, () => Promise.resolve(Date.parse("2026-05-07T08:00:00.000Z") + own.elapsed()));
      const lines: Record<string, unknown>[] = [];
      const log = createLog({
        level: "warn",
        pretty: false,
        now: () => own.now(),
        write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
      });
      const task = clock.task(log);
      const run = async (setTo: number) => {
        own.set(Date.parse("2026-05-07T08:00:00.000Z") + own.elapsed() + setTo);
        await task.run();
        return lines.length;
      };
      expect([await run(0), await run(2_000), await run(2_000), await run(0), await run(-3_000)]).toEqual([0, 1, 1, 1, 2]);
      expect(lines.map((line) => line["ahead_ms"])).toEqual([2_000, -3_000]);
    });
  });

  describe("leases", () => {
    const NAMES = ["expiry", "outbox"];
    /** A server with a clock and leases of its own. */
    const startServer = async (name: string) => {
      const clock = new FakeClock();
      const store = await PostgresStore.open(url, clock);
      const leases = store.leases(name, silent);
      for (const lease of NAMES) leases.join(lease);
      return { name, clock, store, leases };
    };
    type Server = Awaited<ReturnType<typeof startServer>>;
    const advance = (servers: readonly Server[], time: { ms?: number; seconds?: number }) => {
      for (const { clock } of servers) clock.advance(time);
    };
    /** Writes under a lease who it was, after all that was written before. */
    const write = ({ name, store }: Server, lease: Lease) =>
      store.commit(NO_PARTITION, (tx) => {
        lease.check(tx);
        const count = Number(tx.get(meta, "counter") ?? "0") + 1;
        tx.put(meta, "counter", String(count));
        tx.add(turns, String(count).padStart(6, "0"), { shown: name, rest: tx.bareId() });
        return name;
      });
    const msUntilTaken = async ({ clock, leases }: Server) => {
      for (let passedMs = 0; ;) {
        const waitMs = await leases.task.run();
        if (leases.held.length > 0) return passedMs;
        clock.advance({ ms: waitMs });
        passedMs += waitMs;
      }
    };
    const written = ({ store }: Server) => store.read((reader) => reader.rows(turns, { from: "", to: "~" }).map(({ row }) => row));

    test("one server holds a lease for as long as it renews it, and another takes it over within 15 seconds of its end", async () => {
      const servers = await inTurn(["a", "b"], startServer);
      const [a, b] = servers as [Server, Server];
      await a.leases.task.run();
      await b.leases.task.run();
      for (let i = 0; i < 6; i++) {
        expect([a.leases.held, b.leases.held]).toEqual([NAMES, []]);
        advance(servers, { seconds: 5 });
        await a.leases.task.run();
        await b.leases.task.run();
      }
      // From here on nothing is heard of the first one.
      const killedMs = await msUntilTaken(b);
      expect([killedMs > 8_000, killedMs <= 15_000]).toEqual([true, true]);
      for (const { store } of servers) await store.close();
    });

    test("a server that is held up knows before the end that it has lost its leases, and commits nothing under them later", async () => {
      const servers = await inTurn(["a", "b"], startServer);
      const [a, b] = servers as [Server, Server];
      await a.leases.task.run();
      const lease = a.leases.find("outbox")!;
      expect(await write(a, lease)).toBe("a");
      a.clock.advance({ seconds: 13 });
      expect([lease.signal.aborted, a.leases.held]).toEqual([true, []]);
      // Its clock stands still while that of the other one moves: it believes to hold the lease.
      b.clock.advance({ seconds: 16 });
      await b.leases.task.run();
      expect(await write(b, b.leases.find("outbox")!)).toBe("b");
      expect(await failureOf(write(a, lease))).toBeInstanceOf(LeaseLost);
      expect((await written(a)).map(({ shown }) => shown)).toEqual(["a", "b"]);
      for (const { store } of servers) await store.close();
    });

    test("a server that ends gives its leases to the next one at once, whose changes get later ids", async () => {
      const servers = await inTurn(["a", "b"], startServer);
      const [a, b] = servers as [Server, Server];
      a.clock.advance({ seconds: 2 });
      await a.leases.task.run();
      const lease = a.leases.find("expiry")!;
      await write(a, lease);
      await a.leases.release();
      expect([lease.signal.aborted, a.leases.held]).toEqual([true, []]);
      await a.leases.task.run();
      expect(a.leases.held).toEqual([]);
      await msUntilTaken(b);
      expect(b.clock.now() - a.clock.now()).toBeLessThanOrEqual(1_000);
      await write(b, b.leases.find("expiry")!);
      const ids = (await written(a)).map(({ rest }) => rest);
      expect(ids).toEqual(ids.toSorted());
      for (const { store } of servers) await store.close();
    });

    test("without the database a lease is kept until its end is near, and a server ends that cannot give it back", async () => {
      const [a, b] = (await inTurn(["a", "b"], startServer)) as [Server, Server];
      for (const { leases, store } of [a, b]) {
        await leases.task.run();
        await store.close();
      }
      expect([await a.leases.task.run(), a.leases.held]).toEqual([1_000, NAMES]);
      a.clock.advance({ seconds: 12 });
      expect(a.leases.held).toEqual([]);
      await a.leases.release();
    });

    test("a lease that could not be renewed in time is taken again, as another term of it", async () => {
      const server = await startServer("a");
      await server.leases.task.run();
      const first = server.leases.find("outbox")!;
      server.clock.advance({ seconds: 14 });
      expect(server.leases.held).toEqual([]);
      await server.leases.task.run();
      expect(await failureOf(write(server, first))).toBeInstanceOf(LeaseLost);
      expect(await write(server, server.leases.find("outbox")!)).toBe("a");
      await server.store.close();
    });

    test("however servers are held up, what they commit under a lease is in the order of its terms", async () => {
      const seed = Number(process.env["CAIRN_TEST_SEED"] ?? "1");
      const chance = new Chance(seed);
      const servers = await inTurn(["a", "b", "c"], startServer);
      const refused: string[] = [];
      for (let round = 0; round < 40; round++) {
        await Promise.all(
          servers.map(async (server, i) => {
            // One at a time is held up for half a minute, and others are now and then.
            const isHeldUp = Math.floor(round / 6) % 3 === i;
            if (!isHeldUp && chance.below(10) < 9) await server.leases.task.run();
            const lease = server.leases.find("outbox");
            const all = lease === undefined ? [] : [write(server, lease), write(server, lease)];
            // The clock moves on while it commits, and others may take the lease.
            server.clock.advance({ ms: 4_000 + chance.below(2_000) });
            for (const one of all) {
              const failed = await failureOf(one);
              if (failed !== undefined) refused.push((failed as Error).name);
            }
          }),
        );
      }
      expect({ seed, refused: refused.filter((name) => name !== "LeaseLost") }).toEqual({ seed, refused: [] });
      const rows = await written(servers[0]!);
      const terms = rows.filter(({ shown }, i) => shown !== rows[i - 1]?.shown);
      expect({ seed, several: terms.length > 1 && rows.length > 10 }).toEqual({ seed, several: true });
      const ids = rows.map(({ rest }) => rest);
      expect({ seed, ids }).toEqual({ seed, ids: ids.toSorted() });
      for (const { store } of servers) await store.close();
    });

    test("a task runs on the server that holds its lease, and what it does is kept only while it holds it", async () => {
      const servers = await inTurn(["a", "b"], startServer);
      const [a, b] = servers as [Server, Server];
      let runs = 0;
      const taskOf = ({ leases, store, name }: Server, beforeCommit: () => Promise<void>) =>
        leasedTask(leases, store, (leased) => ({
          name: "expiry",
          run: async () => {
            runs++;
            await beforeCommit();
            await leased.commit(NO_PARTITION, (tx) => tx.put(meta, "ran", name));
            return 7;
          },
        }));
      const ran = () => a.store.read((reader) => reader.get(meta, "ran"));
      await a.leases.task.run();
      await b.leases.task.run();
      expect([await taskOf(b, async () => undefined).run(), runs]).toEqual([1_000, 0]);
      expect([await taskOf(a, async () => undefined).run(), await ran()]).toEqual([7, "a"]);
      const heldUp = taskOf(a, async () => {
        b.clock.advance({ seconds: 16 });
        await b.leases.task.run();
        expect(await taskOf(b, async () => undefined).run()).toBe(7);
      });
      expect([await heldUp.run(), await ran()]).toEqual([1_000, "b"]);
      for (const { store } of servers) await store.close();
    });
  });

  describe("shared rate limits", () => {
    const RATE = { perMinute: 60, burst: 50 };
    const openAll = async (clocks: readonly FakeClock[]) => {
      const stores = await inTurn(clocks, (clock) => PostgresStore.open(url, clock));
      return {
        buckets: stores.map((store) => store.buckets()),
        [Symbol.asyncDispose]: async () => void (await Promise.all(stores.map((store) => store.close()))),
      };
    };

    test("a burst over several servers is given exactly as many tokens as there are, and is told what is left", async () => {
      const clocks = [new FakeClock(), new FakeClock(), new FakeClock()];
      await using servers = await openAll(clocks);
      const { buckets } = servers;
      const burst = async () => Promise.all(buckets.flatMap((one) => numbers(40).map(() => one.takeOfKey("key", RATE))));
      const levels = await burst();
      const given = levels.filter(({ allowed }) => allowed);
      // Each token once: 49 left, 48, … 0.
      expect(given.map(({ remaining }) => remaining).toSorted((a, b) => b - a)).toEqual(numbers(50).map((i) => 49 - i));
      expect(levels.find(({ allowed }) => !allowed)).toEqual({ allowed: false, remaining: 0, fullInMs: 50_000, nextInMs: 1_000 });
      // Two more after two seconds, whichever server they are asked of; another key has its own.
      for (const clock of clocks) clock.advance({ ms: 2_000 });
      expect((await burst()).filter(({ allowed }) => allowed).length).toBe(2);
      expect(await buckets[1]!.takeOfKey("other", RATE)).toMatchObject({ allowed: true, remaining: 49 });
    });

    test("a server whose clock is behind gives nobody more", async () => {
      const [behind, ahead] = [new FakeClock("2026-05-07T08:00:00.000Z"), new FakeClock("2026-05-07T08:00:02.000Z")];
      await using servers = await openAll([behind, ahead]);
      const { buckets } = servers;
      for (const i of numbers(50)) expect((await buckets[i % 2]!.takeOfKey("key", RATE)).allowed).toBe(true);
      // The first ones were given at the earlier time: since then two have come.
      const more = await Promise.all(numbers(10).map((i) => buckets[i % 2]!.takeOfKey("key", RATE)));
      expect(more.filter(({ allowed }) => allowed).length).toBeLessThanOrEqual(2);
    });

    test("from a large bucket a busy server takes tokens on stock, and all together never give more than it holds", async () => {
      const rate = { perMinute: 60_000, burst: 20_000 };
      const clocks = [new FakeClock(), new FakeClock()];
      await using servers = await openAll(clocks);
      const { buckets } = servers;
      const statements = async () => Number((await query("select sum(parts) as parts from cairn.buckets"))[0]?.["parts"]) / 60_000;
      // Nobody has asked often yet: it is exact.
      expect((await buckets[0]!.takeOfKey("key", rate)).remaining).toBe(19_999);
      expect(await statements()).toBe(19_999);
      await Promise.all(buckets.flatMap((one) => numbers(300).map(() => one.takeOfKey("key", rate))));
      for (const clock of clocks) clock.advance({ ms: 1_000 });
      // The second is over in which that was, and the bucket full again.
      expect(await buckets[0]!.takeOfKey("key", rate)).toMatchObject({ allowed: true, remaining: 19_999 });
      expect(await statements()).toBe(20_000 - 1 - 200);
      for (const i of numbers(200)) expect((await buckets[0]!.takeOfKey("key", rate)).remaining).toBe(19_998 - i);
      expect(await statements()).toBe(20_000 - 201);
      let given = 201;
      for (let refused = 0; refused < 2;) {
        refused = 0;
        for (const one of buckets) {
          const levels = await Promise.all(numbers(2_000).map(() => one.takeOfKey("key", rate)));
          given += levels.filter(({ allowed }) => allowed).length;
          if (levels.some(({ allowed }) => !allowed)) refused++;
        }
      }
      expect(given).toBe(20_000);
    });

    test("the row of a bucket that has been full for a minute is removed, and none that is not", async () => {
      const clock = new FakeClock();
      await using servers = await openAll([clock]);
      const [buckets] = servers.buckets;
      const removal = buckets!.removal();
      const rows = async () => (await query("select key from cairn.buckets order by key")).map(({ key }) => key);
      await buckets!.takeOfKey("soon full", { perMinute: 60, burst: 5 });
      await buckets!.takeOfKey("late full", { perMinute: 1, burst: 5 });
      for (const [seconds, left] of [
        [60, ["late full", "soon full"]],
        [1, ["late full"]],
        [58, ["late full"]],
        [1, []],
      ] as const) {
        clock.advance({ seconds });
        expect(await removal.run()).toBe(60_000);
        expect(await rows()).toEqual(left as unknown as string[]);
      }
      expect((await buckets!.takeOfKey("soon full", { perMinute: 60, burst: 5 })).remaining).toBe(4);
    });

    test("a bucket is full again when the database has lost it", async () => {
      await using servers = await openAll([new FakeClock()]);
      const [buckets] = servers.buckets;
      const small = { perMinute: 1, burst: 1 };
      expect([(await buckets!.takeOfKey("key", small)).allowed, (await buckets!.takeOfKey("key", small)).allowed]).toEqual([true, false]);
      await query("truncate cairn.buckets");
      expect((await buckets!.takeOfKey("key", small)).allowed).toBe(true);
    });
  });

  describe("webhooks", () => {
    const system = systemCaller(() => 1);
    const withoutIndex = {
      settings: { values: { index_turns: "off" as const, index_turns_share: 1 } },
      turnVectors: { changed: () => undefined },
      turnBackfill: new Activator(),
      turnSearches: new TurnSearches(new FakeClock()),
    };
    /** A server with the tasks that make deliveries, which a test runs by hand. */
    const startServer = async (name: string) => {
      const clock = new FakeClock();
      const store = await PostgresStore.open(url, clock);
      const leases = store.leases(name, silent);
      const policy = webhookPolicy(false, "30s", "5s,5m");
      const hooks = openWebhooks({ store, clock, log: silent, random: () => 0.5, system, leases }, () => policy, {});
      const [outbox, deliveries] = hooks.tasks as [Task, Task];
      return {
        store,
        clock,
        hooks,
        leases,
        deps: { store, clock, webhooks: hooks.webhooks, ...withoutIndex },
        /** What its timers do in a second. */
        async step() {
          await leases.task.run();
          await outbox.run();
          await deliveries.run();
          clock.advance({ seconds: 1 });
        },
        async close() {
          await hooks.stop();
          await store.close();
        },
      };
    };
    type Server = Awaited<ReturnType<typeof startServer>>;
    const logTurns = async (servers: readonly Server[], sessionIds: readonly string[], from: number, to: number) => {
      for (let i = from; i < to; i++)
        await Promise.all(
          sessionIds.map((id, at) =>
            addTurns(servers[(i + at) % servers.length]!.deps, system, id, [
              {
                input: { type: "text", content: String(i) },
                output: { type: "text", content: "" },
                metadata: {},
                stateBefore: null,
                stateAfter: null,
              },
            ]),
          ),
        );
    };
    const begin = async (servers: readonly Server[], receiver: Receiver) => {
      const { deps } = servers[0]!;
      await createWebhook(deps, system, { url: receiver.url, events: ["turn.added"], description: null, enabled: true });
      return inTurn(numbers(3), async () => {
        const session = await createSession(deps, system, {
          agentId: "a",
          userId: null,
          initialState: toJson({}),
          metadata: {},
          ttlSeconds: 86_400,
          ifExists: "error",
        });
        return (JSON.parse(statusAndJson(session, 201).json) as { id: string }).id;
      });
    };
    /** The numbers of the turns of a session, as the receiver was told of them. */
    const told = (receiver: Receiver, session: string): number[] =>
      receiver.events.filter(({ data }) => data.session_id === session).map(({ data }) => Number(data.input.content));

    test("each event is delivered once and in the order of its session, whichever server has made the change", async () => {
      await using receiver = startReceiver();
      const servers = await inTurn(["a", "b"], startServer);
      const sessionIds = await begin(servers, receiver);
      await logTurns(servers, sessionIds, 0, 8);
      while (receiver.received.length < 24) for (const server of servers) await server.step();
      for (const id of sessionIds) expect(told(receiver, id)).toEqual(numbers(8));
      for (let i = 0; i < 3; i++) for (const server of servers) await server.step();
      expect(receiver.received.length).toBe(24);
      expect(servers.map(({ leases }) => leases.held.length)).toEqual([3, 0]);
      for (const server of servers) await server.close();
    });

    test("when the server is gone that makes deliveries another one makes what is left, in order, and nothing is lost", async () => {
      await using receiver = startReceiver();
      const servers = await inTurn(["a", "b"], startServer);
      const [a, b] = servers as [Server, Server];
      const sessionIds = await begin(servers, receiver);
      await logTurns(servers, sessionIds, 0, 2);
      // The receiver answers some, and holds the first of what comes then.
      const held = Promise.withResolvers<Response>();
      receiver.reply = (_, count) => (count > 3 ? held.promise : new Response("ok"));
      while (receiver.received.length < 6) await a.step();
      await logTurns([b], sessionIds, 2, 6);
      // Nothing is heard of the first one any more. It ends its attempts before the other one can begin.
      a.clock.advance({ seconds: 12 });
      await Promise.all(a.hooks.webhooks.inFlight);
      receiver.reply = () => new Response("ok");
      const before = receiver.received.length;
      for (let i = 0; i < 10; i++) await b.step();
      expect(receiver.received.length).toBe(before);
      while (!sessionIds.every((id) => told(receiver, id).includes(5))) await b.step();
      // What the first one was about to deliver came again, and nothing earlier after anything later.
      for (const id of sessionIds) expect(told(receiver, id)).toEqual([0, 1, 1, 2, 3, 4, 5]);
      held.resolve(new Response("ok"));
      for (const server of servers) await server.close();
    });

    test("a server whose attempt is answered after it has lost its lease records nothing, and the attempt is made again", async () => {
      await using receiver = startReceiver();
      const servers = await inTurn(["a", "b"], startServer);
      const [a, b] = servers as [Server, Server];
      const [session = ""] = await begin(servers, receiver);
      await logTurns([a], [session], 0, 1);
      const held = Promise.withResolvers<Response>();
      receiver.reply = (_, count) => (count === 1 ? held.promise : new Response("ok"));
      while (receiver.received.length < 1) await a.step();
      // The clock of the first one stands still: it believes to hold the lease.
      while (receiver.received.length < 2) await b.step();
      await Promise.all(b.hooks.webhooks.inFlight);
      held.resolve(new Response("ok"));
      await Promise.all(a.hooks.webhooks.inFlight);
      expect([a.hooks.webhooks.outcomes.delivered, b.hooks.webhooks.outcomes.delivered]).toEqual([0, 1]);
      const rows = await b.store.read((reader) => reader.rows(deliveries, { from: "", to: "~" }));
      expect(rows.map(({ row }) => [row.status, row.attempts])).toEqual([["delivered", 1]]);
      for (const server of servers) await server.close();
    });
  });

  describe("idempotency", () => {
    test("of requests with one key that several servers get at the same time one makes the change, and all give its answer", async () => {
      const clock = new FakeClock();
      const stores = await inTurn(numbers(3), () => PostgresStore.open(url, clock));
      let works = 0;
      const send = (store: PostgresStore, idempotencyKey: string, body = "{}") =>
        new Idempotency(store, { refuseGrowth() {} }, new KeptBytes(clock)).run(
          { method: "POST", path: "/v1/x", body: Buffer.from(body), presentedKey: "crn_key", limitsId: "key_x", idempotencyKey },
          201,
          async (once) => {
            works++;
            return store.commit(NO_PARTITION, (tx) => {
              once.claim(tx);
              const id = tx.bareId();
              tx.add(turns, id, { shown: "made", rest: "" });
              const answer = toJson({ id });
              once.save(tx, { json: answer, users: [], asksForRoom: "always" }, { hasSecret: false });
              return answer;
            });
          },
        );
      for (const key of ["one", "two", "three"]) {
        const answers = await Promise.all(stores.flatMap((store) => numbers(5).map(() => send(store, key))));
        expect(new Set(answers.map(({ answer }) => answer)).size).toBe(1);
        expect(answers.filter(({ replayed }) => !replayed).length).toBe(1);
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
      }
      // More than one has worked, and dropped it.
      expect(works).toBeGreaterThan(3);
      expect((await stores[0]!.read((reader) => reader.keys(turns, { from: "", to: "~" }))).length).toBe(3);
      expect(await failureOf(send(stores[1]!, "one", "other"))).toMatchObject({ code: "invalid_request" });
      for (const store of stores) await store.close();
    });
  });

  describe("migrations of the schema", () => {
    // In a database in which there is none.
    beforeEach(async () => void (url = await postgres.database()));

    const statement = (text: string) => ({ text, values: [] });
    const making = (number: number, table: string): SchemaMigration => ({
      number,
      says: `there is ${table}`,
      run: (connection) => connection.send([statement(`create table cairn.${table} (a int)`), statement("select pg_sleep(0.05)")]),
    });
    const first: SchemaMigration = {
      number: 1,
      says: "the tables are made",
      run: (connection) => connection.send(definitions("pglz").map(statement)),
    };
    const migrated = async (...migrations: SchemaMigration[]) => {
      const database = new Database(url, systemClock);
      try {
        await migrateSchema(database, systemClock, migrations);
      } finally {
        await database.close();
      }
    };
    const known = () => query("select number, says from cairn.migrations order by number");

    test("each that is due is run once, in order, however many servers start at the same time", async () => {
      const two = [first, making(2, "one")];
      await Promise.all(numbers(3).map(() => migrated(...two)));
      expect(await known()).toEqual([
        { number: 1, says: "the tables are made" },
        { number: 2, says: "there is one" },
      ]);
      const four = [...two, making(3, "two"), making(4, "three")];
      await Promise.all(numbers(3).map(() => migrated(...four)));
      expect((await known()).map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    });

    test("one that fails leaves nothing of itself and of those before it, and the next start runs all of them", async () => {
      const failing = { number: 3, says: "fails", run: () => Promise.reject(new Error("no room")) };
      await migrated(first);
      expect(String(await failureOf(migrated(first, making(2, "one"), failing)))).toContain("no room");
      expect((await known()).length).toBe(1);
      await migrated(first, making(2, "one"));
      expect((await known()).length).toBe(2);
    });

    test("a schema that a newer Cairn has made is refused by its number, and left as it is", async () => {
      await migrated(first, making(99, "one"));
      const refused = await failureOf(PostgresStore.open(url, new FakeClock()));
      expect(refused).toBeInstanceOf(StoreError);
      expect(String(refused)).toMatch(
        /^StoreError: A newer Cairn has brought the database to schema 99; this one reads it up to schema \d+\. Start the newer Cairn\.$/,
      );
      expect((await known()).length).toBe(2);
    });

    test("a server that runs while a newer Cairn migrates the database writes nothing from then on, says why, and is read", async () => {
      const store = await PostgresStore.open(url, new FakeClock());
      await store.commit("aa", (tx) => tx.put(users, "A".repeat(22), { userId: "ada", seenAt: 1 }));
      expect(store.health.problem()).toBeUndefined();
      await query("insert into cairn.migrations (number, says, at) values (99, 'of a newer one', 0)");
      const says = "A newer Cairn has migrated the database, so this server only reads it. Start the newer Cairn in its place.";
      for (const partition of ["aa", "bb"] as const) {
        const refused = await failureOf(store.commit(partition, (tx) => tx.put(users, "B".repeat(22), { userId: "bob", seenAt: 1 })));
        expect(refused).toMatchObject({ code: "service_unavailable", message: `${says} Nothing was changed.` });
      }
      expect(await store.readNewest((reader) => reader.rows(users, { from: "", to: "~" }).map(({ row }) => row.userId))).toEqual(["ada"]);
      expect(store.health.problem()).toBe(says);
      await store.close();
    });

    test("a migration waits for what is written without it", async () => {
      await migrated(first);
      const writing = await new SQL(url).reserve();
      await writing.unsafe("begin; select from cairn.migrations where number > 1");
      let isDone = false;
      const migration = migrated(first, making(2, "one")).then(() => (isDone = true));
      const waiting = "select count(*) > 0 as waits from pg_locks where not granted";
      while ((await query(waiting))[0]?.["waits"] !== true) await Bun.sleep(1);
      expect(isDone).toBe(false);
      await writing.unsafe("commit");
      await migration;
      expect(await known()).toHaveLength(2);
      await writing.release();
    });

    test("a database of before gets the tables that came later, and a new one has them from the beginning", async () => {
      const rows = [
        { table: webhookFailures, key: "0VQk3aB4x1Zy", row: { hours: [], last: { at: 1, status: null, error: "No answer." } } },
        { table: users, key: "A".repeat(22), row: { userId: "ada", seenAt: 1 } },
      ] as unknown as readonly { table: Table<unknown>; key: string; row: unknown }[];
      await migrated(first);
      for (const { table } of rows) await query(`drop table cairn.${table.name}`);
      await query("drop table cairn.branches_by_memory_session");
      const store = await PostgresStore.open(url, new FakeClock());
      for (const { table, key, row } of rows) {
        await store.commit(NO_PARTITION, (tx) => tx.put(table, key, row));
        expect(await store.read((reader) => reader.get(table, key))).toEqual(row);
      }
      await store.close();
      const brought = await known();
      expect(brought.map(({ number }) => number)).toEqual(brought.map((_, i) => i + 1));
      expect(brought.length).toBeGreaterThan(rows.length);
      await query("drop schema cairn cascade");
      await (await PostgresStore.open(url, new FakeClock())).close();
      expect(await known()).toEqual(brought);
    });

    test("a schema of the same name that somebody else has made is refused, and an empty one is used", async () => {
      await query("create schema cairn");
      await query("create table cairn.sessions (id int)");
      expect(String(await failureOf(PostgresStore.open(url, new FakeClock())))).toContain('a schema "cairn" that no Cairn has made');
      expect((await query("select relname from pg_class where relnamespace = 'cairn'::regnamespace")).length).toBe(1);
      await query("drop table cairn.sessions");
      await (await PostgresStore.open(url, new FakeClock())).close();
    });

    test("a schema that has lost a column is refused by the column's name", async () => {
      await migrated(first);
      await query("alter table cairn.memories drop column by_user");
      expect(String(await failureOf(PostgresStore.open(url, new FakeClock())))).toContain("has lost the column memories.by_user");
    });
  });
}
