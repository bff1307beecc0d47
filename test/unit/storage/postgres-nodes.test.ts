/**
 * What several servers on one PostgreSQL need besides records: its schema and one time.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../../src/lib/clock.ts";
import { bareIdTime } from "../../../src/lib/ids.ts";
import { createLog } from "../../../src/lib/log.ts";
import { DatabaseClock } from "../../../src/storage/postgres/database-clock.ts";
import { Database } from "../../../src/storage/postgres/database.ts";
import { migrateSchema, type SchemaMigration } from "../../../src/storage/postgres/migrations.ts";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.ts";
import { DEFINITIONS } from "../../../src/storage/postgres/schema.ts";
import { StoreError } from "../../../src/storage/store.ts";
import { sessions, turns } from "../../../src/storage/tables.ts";
import { FakeClock } from "../../support/clock.ts";
import { hasPostgres, Postgres } from "../../support/postgres.ts";

const numbers = (length: number) => Array.from({ length }, (_, i) => i);
const failureOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

if (hasPostgres()) {
  let postgres: Postgres;
  let url: string;
  beforeAll(async () => void (postgres = await Postgres.start()));
  afterAll(() => postgres.stop());
  beforeEach(async () => void (url = await postgres.database()));

  const query = async (text: string): Promise<Record<string, unknown>[]> => {
    await using sql = new SQL(url);
    return Array.from((await sql.unsafe(text)) as Record<string, unknown>[]);
  };

  describe("clocks", () => {
    const session = { agentId: "a", userId: null, createdAt: 1, updatedAt: 1, metadata: {}, memoryCount: 0, turnCount: 0, ttlSeconds: 60 };

    test("changes of one session have ids and times in their order, whichever server makes them and however its clock is set", async () => {
      const clocks = [new FakeClock("2026-05-07T08:00:02.000Z"), new FakeClock("2026-05-07T08:00:00.000Z"), new FakeClock()];
      const stores = await Promise.all(clocks.map((clock) => PostgresStore.open(url, clock)));
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

  describe("migrations of the schema", () => {
    const statement = (text: string) => ({ text, values: [] });
    const making = (number: number, table: string): SchemaMigration => ({
      number,
      says: `there is ${table}`,
      run: (connection) => connection.send([statement(`create table cairn.${table} (a int)`), statement("select pg_sleep(0.05)")]),
    });
    const first: SchemaMigration = {
      number: 1,
      says: "the tables are made",
      run: (connection) => connection.send(DEFINITIONS.map(statement)),
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
      await migrated(first, making(2, "one"));
      const refused = await failureOf(PostgresStore.open(url, new FakeClock()));
      expect([refused instanceof StoreError, String(refused)]).toEqual([
        true,
        "StoreError: A newer Cairn has brought the database to schema 2; this one reads it up to schema 1. Start the newer Cairn.",
      ]);
      expect((await known()).length).toBe(2);
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
