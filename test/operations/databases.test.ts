/**
 * Export, import and doctor of a store in a database, and between that and the embedded one.
 */
import { SQL } from "bun";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NO_PARTITION } from "../../src/lib/ids.ts";
import { examineAll, repairAll } from "../../src/operations/doctor.ts";
import { exportLines } from "../../src/operations/export.ts";
import { importIntoDatabase, importLines } from "../../src/operations/import.ts";
import { stored } from "../../src/operations/records.ts";
import { PostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import { relationOf } from "../../src/storage/postgres/schema.ts";
import type { RecordStore } from "../../src/storage/record-store.ts";
import { memories, sessions, TABLES, turns, vectors, VECTOR_TABLES } from "../../src/storage/tables.ts";
import { startCairn } from "../support/cairn.ts";
import { FakeClock } from "../support/clock.ts";
import { isHere } from "../support/platform.ts";
import { Postgres, POSTGRES } from "../support/postgres.ts";
import { all, contents, firstKey, kinds, MENDED, NOT_MENDED, VECTOR_LOST, WITH_JSON } from "./damages.ts";
import { answersOf, refusalOf, startFilled, type Filled } from "./everything.ts";

const exported = (store: RecordStore) => Array.fromAsync(exportLines(store, { secrets: true }));

async function* asFile(lines: readonly string[], chunkBytes = 100_000): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  for (let at = 0; at < bytes.byteLength; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

if (isHere(POSTGRES, "commands on a database")) {
  describe("commands on a database", () => {
    let postgres: Postgres;
    let scratch: string;
    /** An embedded store with something in every table, and all of it as lines. */
    let filled: Filled;
    let lines: string[];
    /** A database with the same, of which others are copies. */
    let template: string;

    beforeAll(async () => {
      scratch = mkdtempSync(join(tmpdir(), "cairn-databases-"));
      postgres = await Postgres.start();
      filled = await startFilled();
      lines = await exported(filled.cairn.embedded);
      template = await postgres.migrated();
      await using store = await opened(template);
      await importIntoDatabase(asFile(lines), store);
    });
    afterAll(async () => {
      await filled.cairn[Symbol.asyncDispose]();
      postgres.stop();
      rmSync(scratch, { recursive: true, force: true });
    });

    const opened = async (url: string) => {
      const store = await PostgresStore.open(url, new FakeClock());
      return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
    };
    const copy = () => postgres.database(new URL(template).pathname.slice(1));
    const change = async (url: string, text: string) => {
      await using sql = new SQL(url);
      return (await sql.unsafe(text)) as unknown as Record<string, unknown>[];
    };

    test("the database that these tests read has rows in every table", async () => {
      await using store = await opened(template);
      const counts = await Promise.all(
        [...TABLES, ...VECTOR_TABLES].map(async (table) => ({ table: table.name, rows: await store.count(table) })),
      );
      expect(counts.filter(({ rows }) => rows === 0)).toEqual([]);
    });

    test("an export of the embedded store that was imported into a database exports as the same lines, and answers the same to the same key", async () => {
      const database = await copy();
      await using cairn = await startCairn({ database, clock: filled.cairn.clock });
      expect(cairn.key).toBe("");
      cairn.key = filled.cairn.key;
      expect(await exported(cairn.service.store)).toEqual(lines);
      expect(await answersOf(cairn, filled)).toEqual(await answersOf(filled.cairn, filled));
      expect(await cairn.findings()).toEqual([]);
    });

    test("an export of a database that was imported into the embedded store exports as the same lines, and answers the same", async () => {
      const { cairn, ...ids } = await startFilled({ database: await postgres.migrated() });
      await using _ = cairn;
      const directory = join(scratch, "embedded");
      const fromDatabase = await exported(cairn.service.store);
      const answers = await answersOf(cairn, ids);
      const imported = await importLines(asFile(fromDatabase), directory, new FakeClock());
      expect(imported).toEqual({ records: fromDatabase.length - 2, setAgain: [], left: [] });
      await using again = await startCairn({ directory, clock: cairn.clock });
      again.key = cairn.key;
      expect(await exported(again.embedded)).toEqual(fromDatabase);
      expect(await answersOf(again, ids)).toEqual(answers);
    });

    test("others see nothing of an import before all of it is there", async () => {
      const database = await postgres.migrated();
      await using store = await opened(database);
      await using other = await opened(database);
      const counts: number[] = [];
      const source = (async function* () {
        for await (const piece of asFile(lines)) {
          yield piece;
          counts.push(await other.count(sessions));
        }
      })();
      await importIntoDatabase(source, store);
      expect(new Set(counts)).toEqual(new Set([0]));
      expect(await other.count(sessions)).toBe(await store.count(sessions));
      expect(await exported(other)).toEqual(lines);
    });

    test("an import that is refused at its end leaves nothing, and the right one can follow", async () => {
      await using store = await opened(await postgres.migrated());
      // More than one batch.
      const large = lines.findIndex((line) => line.startsWith('{"table":"turns"'));
      const turn = JSON.parse(lines[large]!) as { row: { rest: object } };
      const padded = JSON.stringify({ ...turn, row: { ...turn.row, rest: { ...turn.row.rest, padding: "x".repeat(3_000_000) } } });
      const wrong = [...lines.slice(0, large), padded, ...lines.slice(large + 1, -1), lines[1]!, lines.at(-1)!];
      expect(await refusalOf(importIntoDatabase(asFile(wrong), store))).toContain(
        `Line ${lines.length} cannot be imported: there was a row`,
      );
      expect(await refusalOf(importIntoDatabase(asFile(lines.slice(0, -1)), store))).toContain("the end is missing");
      const counts = await Promise.all(TABLES.map((table) => store.count(table)));
      // That of the schema.
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(1);
      expect(await importIntoDatabase(asFile(lines), store)).toMatchObject({ records: lines.length - 2 });
    });

    test("an import of a session without its versions names the line", async () => {
      await using store = await opened(await postgres.migrated());
      const without = lines.filter((line) => !line.startsWith('{"table":"versions"'));
      without[without.length - 1] = JSON.stringify({ end: without.length - 2 });
      const first = without.findIndex((line) => line.startsWith('{"table":"sessions"')) + 1;
      expect(await refusalOf(importIntoDatabase(asFile(without), store))).toContain(
        `Line ${first} cannot be imported: sessions: all versions of the state are missing`,
      );
    });

    test("a salvaged export is repaired while it is imported", async () => {
      await using store = await opened(await postgres.migrated());
      const salvaged = lines.filter((line) => !line.startsWith('{"table":"versions"'));
      salvaged[0] = JSON.stringify({ ...JSON.parse(salvaged[0]!), salvaged: true });
      salvaged[salvaged.length - 1] = JSON.stringify({ end: salvaged.length - 2 });
      expect(await importIntoDatabase(asFile(salvaged), store)).toMatchObject({ left: [] });
      expect((await examineAll(store)).findings).toEqual([]);
    });

    test("an import into a database with records is refused and changes nothing", async () => {
      const database = await postgres.migrated();
      await using cairn = await startCairn({ database });
      const session = await cairn.createSession();
      await using store = await opened(database);
      expect(await refusalOf(importIntoDatabase(asFile(lines), store))).toContain(
        "There are records in the database already (provider, api_keys, sessions, versions, traces, audit_chains)",
      );
      expect(await cairn.session(session.id)).toEqual(session);
    });

    test("an export shows one moment, however much is written while it is read", async () => {
      await using cairn = await startCairn({ database: await postgres.migrated() });
      const session = await cairn.createSession();
      for (let i = 0; i < 20; i++) await cairn.addMemory(session.id, `Memory ${i}`);
      const { store } = cairn.service;
      const expected = await exported(store);
      const read: string[] = [];
      for await (const line of exportLines(store, { secrets: true })) {
        read.push(line);
        if (read.length % 10 !== 0) continue;
        await cairn.addMemory(session.id, "Written meanwhile");
        await cairn.setState(session.id, { written: read.length });
      }
      expect(read).toEqual(expected);
    });

    test("rows of any size and number are exported", async () => {
      await using store = await opened(await postgres.migrated());
      const count = 1_201;
      const key = (i: number) => `${"0".repeat(12)}${i.toString().padStart(12, "0")}`;
      await store.commit(NO_PARTITION, (tx) => {
        for (let i = 0; i < count; i++)
          tx.add(stored(turns), key(i), `"id":"${i % 400 === 1 ? "x".repeat(1_500_000) : i}"\n"session_id":"sess_"`);
      });
      const read = (await exported(store)).slice(1, -1).map((line) => (JSON.parse(line) as { key: string }).key);
      expect(read).toEqual(Array.from({ length: count }, (_, i) => key(i)));
    });

    test("what the records say how to repair is found, and repaired to what it was", async () => {
      await using store = await opened(await copy());
      const before = await contents(store);
      for (const [name, damage, ...finds] of MENDED) {
        await store.commit(NO_PARTITION, damage);
        const { found, left } = await repairAll(store);
        expect({ name, found: kinds(found), left }).toEqual({ name, found: finds.toSorted(), left: [] });
      }
      expect(await contents(store)).toEqual(before);
    });

    test("vectors that are lost are found, and wait to be made again", async () => {
      for (const [name, damage, ...finds] of VECTOR_LOST) {
        await using store = await opened(await copy());
        await store.commit(NO_PARTITION, damage);
        expect({ name, kinds: kinds((await examineAll(store)).findings) }).toEqual({ name, kinds: finds });
        expect((await repairAll(store)).left).toEqual([]);
      }
    });

    test("what no record says how to repair is found, and said to be still wrong after repairing, which changes nothing", async () => {
      // What is wrong in a row by itself is the same in every store.
      for (const [name, damage, ...finds] of NOT_MENDED.filter(([name]) => !name.startsWith("a backup number"))) {
        await using store = await opened(await copy());
        await store.commit(NO_PARTITION, damage);
        const before = await contents(store);
        const { findings } = await examineAll(store);
        expect({ name, kinds: kinds(findings), canBeMended: findings.some(({ canBeMended }) => canBeMended) }).toEqual({
          name,
          kinds: finds,
          canBeMended: false,
        });
        expect((await repairAll(store)).left).toEqual(findings);
        expect(await contents(store)).toEqual(before);
      }
    });

    test("rows of every table that cannot be read are found, and stay as they are", async () => {
      const database = await copy();
      await using store = await opened(database);
      const damaged: Record<string, Record<string, unknown>[]> = {};
      for (const { name } of WITH_JSON) {
        const first = `(select min(key) from ${relationOf(name)})`;
        const text = `update ${relationOf(name)} set row = left(row, -3) where key = ${first} returning key, row`;
        damaged[name] = await change(database, text);
      }
      const finds = WITH_JSON.map(({ name }) => `${name}: rows that cannot be read`);
      expect(kinds((await examineAll(store)).findings)).toEqual(expect.arrayContaining(finds));
      expect(kinds((await repairAll(store)).left)).toEqual(expect.arrayContaining(finds));
      for (const { name } of WITH_JSON)
        expect([name, await change(database, `select key, row from ${relationOf(name)} order by key limit 1`)]).toEqual([
          name,
          damaged[name] ?? [],
        ]);
    });

    test("columns and entries that do not follow from their rows are found, and repaired to what they were", async () => {
      const database = await copy();
      await using store = await opened(database);
      const before = await contents(store);
      await change(
        database,
        "update cairn.sessions set by_agent = 'a' || substr(by_agent, 2) where key = (select min(key) from cairn.sessions)",
      );
      await change(database, "update cairn.sessions set by_user = null");
      await change(database, "update cairn.memories set ahead = key where ahead is null");
      await change(database, "delete from cairn.memories_by_tag where key = (select min(key) from cairn.memories_by_tag)");
      await change(database, "insert into cairn.sessions_by_external_id (key) values ('nobody')");
      const finds = [
        "memories.ahead: not what the row says",
        "memories.byTag: entries missing",
        "sessions.byAgent: not what the row says",
        "sessions.byExternalId: entries of nothing",
        "sessions.byUser: not what the row says",
      ];
      const { findings, rows, points } = await examineAll(store);
      expect({ findings: kinds(findings), hasRows: rows > 500, points }).toEqual({ findings: finds, hasRows: true, points: undefined });
      expect(await repairAll(store)).toMatchObject({ left: [] });
      expect(await contents(store)).toEqual(before);
    });

    test("a store is repaired while a server changes it", async () => {
      const database = await copy();
      await using cairn = await startCairn({ database, clock: filled.cairn.clock });
      cairn.key = filled.cairn.key;
      await using store = await opened(database);
      const { id } = await cairn.createSession();
      await store.commit(NO_PARTITION, (tx) => {
        for (const { key, row } of tx.rows(sessions, all))
          if (`sess_${key}` !== id) tx.put(sessions, key, { ...row, turnCount: row.turnCount + 7 });
        tx.removeVector(vectors, firstKey(tx, vectors));
      });
      const repaired = new AbortController();
      const turnsAdded = (async () => {
        for (let i = 1; !repaired.signal.aborted; i++) await cairn.addTurn(id, `${i}`);
      })();
      await repairAll(store).finally(() => repaired.abort());
      await turnsAdded;
      expect((await repairAll(store)).left).toEqual([]);
      expect((await examineAll(store)).findings).toEqual([]);
      await cairn.runTask("embeddings");
      expect(await cairn.count(memories)).toBeGreaterThan(0);
    });
  });
}
