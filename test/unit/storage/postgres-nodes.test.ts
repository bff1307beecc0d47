/**
 * What several servers on one PostgreSQL share besides records: its schema.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { systemClock } from "../../../src/lib/clock.ts";
import { Database } from "../../../src/storage/postgres/database.ts";
import { migrateSchema, type SchemaMigration } from "../../../src/storage/postgres/migrations.ts";
import { PostgresStore } from "../../../src/storage/postgres/postgres-store.ts";
import { DEFINITIONS } from "../../../src/storage/postgres/schema.ts";
import { StoreError } from "../../../src/storage/store.ts";
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
