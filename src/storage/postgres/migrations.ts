/**
 * Migration of the schema in a database to the one that this Cairn reads: by numbered migrations, each of which the database remembers.
 *
 * All that are due are one transaction, which only one of several servers that start at the same time can open: it holds a lock of the
 * database, and the others look again until it has ended. A migration only adds, so that servers of the version before can still read;
 * what nobody uses any more is removed by one of a later version. Once there is nothing to do, the relations that the tables declare
 * have to be there: a schema that somebody else made, or changed, is refused and left as it is. A server of a version before that still
 * runs reads on and writes nothing any more.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import { StoreError } from "../store-error.ts";
import {
  activity,
  auditChains,
  auditRemovals,
  auditSegments,
  branches,
  indexedTurns,
  memoryVersions,
  pendingTurns,
  turnIndexing,
  turnVectors,
  users,
  webhookFailures,
  type Table,
} from "../tables.ts";
import { CERTIFICATES_DEFINITION } from "./certificate-rows.ts";
import { BEGIN, COMMIT, ROLLBACK, type Connection, type Database, type Statement } from "./connection/database.ts";
import { DECLARED_COLUMNS, definitionOf, definitionOfVectors, definitions, relationOf, type Compression } from "./schema.ts";

export interface SchemaMigration {
  /** One more than that of the migration before; the first is 1. */
  readonly number: number;
  /** Change for a DBA: `sessions are indexed by color`. */
  readonly says: string;
  /** Changes the schema inside the transaction of all migrations; nothing is changed when it throws. */
  run(connection: Connection): Promise<unknown>;
}

/** A database has no store, which may be in another one. */
export class NoStoreError extends StoreError {
  override name = "NoStoreError";
}

const HAS_LZ4 = plain("select 'lz4' = any(enumvals) as lz4 from pg_settings where name = 'default_toast_compression'");

async function compressionOf(connection: Connection): Promise<Compression> {
  const [rows] = await connection.send([HAS_LZ4]);
  return rows?.[0]?.["lz4"] === true ? "lz4" : "pglz";
}

/** Makes a table that the first migration did not make when it ran: in a new database it has made all that are declared now. */
async function makeMissing(connection: Connection, table: Table<unknown>): Promise<unknown> {
  const [rows] = await connection.send([plain(`select to_regclass('${relationOf(table.name)}') is null as missing`)]);
  if (rows?.[0]?.["missing"] !== true) return undefined;
  return connection.send(definitionOf(table, await compressionOf(connection)).map(plain));
}

/** In order. While nothing is released the first makes what the tables declare now. */
const MIGRATIONS: readonly SchemaMigration[] = [
  {
    number: 1,
    says: "the tables are made",
    run: async (connection) => connection.send(definitions(await compressionOf(connection)).map(plain)),
  },
  {
    number: 2,
    says: "failed attempts of webhooks are counted",
    run: (connection) => makeMissing(connection, webhookFailures),
  },
  {
    number: 3,
    says: "kept answers and deliveries are found by the users whose content they show",
    run: (connection) =>
      connection.send([
        plain('create table if not exists cairn.idempotency_by_user (key text collate "C" primary key)'),
        plain('alter table cairn.deliveries add column if not exists by_user text collate "C"'),
        plain("create index if not exists deliveries_by_user_idx on cairn.deliveries (by_user) where by_user is not null"),
      ]),
  },
  {
    number: 4,
    says: "users are listed by name and by when they were seen",
    run: (connection) => makeMissing(connection, users),
  },
  {
    number: 5,
    says: "turns are found by their external ids and by when they happened",
    run: (connection) =>
      connection.send(
        ["by_external_id", "by_time"].flatMap((column) => [
          plain(`alter table cairn.turns add column if not exists ${column} text collate "C"`),
          plain(`create index if not exists turns_${column}_idx on cairn.turns (${column}) where ${column} is not null`),
        ]),
      ),
  },
  {
    number: 6,
    says: "memories are found by their external ids and by when they expire",
    run: (connection) =>
      connection.send([
        plain('create table if not exists cairn.memories_by_external_id (key text collate "C" primary key)'),
        plain('alter table cairn.memories add column if not exists by_expiry text collate "C"'),
        plain("create index if not exists memories_by_expiry_idx on cairn.memories (by_expiry) where by_expiry is not null"),
      ]),
  },
  {
    number: 7,
    says: "rollbacks hide turns, and forks show those of other sessions",
    run: (connection) => makeMissing(connection, branches),
  },
  {
    number: 8,
    says: "forks show the memories of other sessions",
    run: (connection) =>
      connection.send([plain('create table if not exists cairn.branches_by_memory_session (key text collate "C" primary key)')]),
  },
  {
    number: 9,
    says: "documents are listed by their last change",
    run: (connection) =>
      connection.send([
        plain('alter table cairn.documents add column if not exists by_change text collate "C"'),
        plain("create index if not exists documents_by_change_idx on cairn.documents (by_change) where by_change is not null"),
      ]),
  },
  {
    number: 10,
    says: "memories are found by what they say",
    run: (connection) =>
      connection.send([
        plain('alter table cairn.memories add column if not exists by_content text collate "C"'),
        plain("create index if not exists memories_by_content_idx on cairn.memories (by_content) where by_content is not null"),
      ]),
  },
  {
    number: 11,
    says: "memories that are past for good are known by an index",
    run: (connection) =>
      connection.send([
        plain('alter table cairn.memories add column if not exists past text collate "C"'),
        plain("create index if not exists memories_past_idx on cairn.memories (past) where past is not null"),
      ]),
  },
  {
    number: 12,
    says: "pinned memories are found by their owner",
    run: (connection) =>
      connection.send([
        plain('alter table cairn.memories add column if not exists pinned text collate "C"'),
        plain("create index if not exists memories_pinned_idx on cairn.memories (pinned) where pinned is not null"),
      ]),
  },
  {
    number: 13,
    says: "contents that memories had are kept",
    run: (connection) => makeMissing(connection, memoryVersions),
  },
  {
    number: 14,
    says: "memories are found by their metadata",
    run: (connection) =>
      connection.send([plain('create table if not exists cairn.memories_by_metadata (key text collate "C" primary key)')]),
  },
  {
    number: 15,
    says: "memories that belong to no user have an entry among those by user",
    run: () => Promise.resolve(),
  },
  {
    number: 16,
    says: "searches of no session are found by their users and agents",
    run: (connection) =>
      connection.send(
        ["of_no_session", "by_user", "by_agent"].flatMap((column) => [
          plain(`alter table cairn.retrievals add column if not exists ${column} text collate "C"`),
          plain(`create index if not exists retrievals_${column}_idx on cairn.retrievals (${column}) where ${column} is not null`),
        ]),
      ),
  },
  {
    number: 17,
    says: "turns are searched",
    run: async (connection) => {
      for (const table of [indexedTurns, turnIndexing, pendingTurns]) await makeMissing(connection, table);
      await connection.send(definitionOfVectors(turnVectors, "if not exists").map(plain));
    },
  },
  {
    number: 18,
    says: "memories are found by when they happened",
    run: (connection) =>
      connection.send([
        plain('alter table cairn.memories add column if not exists timed text collate "C"'),
        plain("create index if not exists memories_timed_idx on cairn.memories (timed) where timed is not null"),
        plain('create table if not exists cairn.memories_by_time (key text collate "C" primary key)'),
      ]),
  },
  {
    number: 19,
    says: "searches are found by other users whom they show",
    run: (connection) =>
      connection.send([plain('create table if not exists cairn.retrievals_by_other (key text collate "C" primary key)')]),
  },
  {
    number: 20,
    says: "what servers have seen is kept by the hour, day and week",
    run: (connection) => makeMissing(connection, activity),
  },
  {
    number: 21,
    says: "servers share a certificate",
    run: (connection) => connection.send([plain(CERTIFICATES_DEFINITION)]),
  },
  {
    number: 22,
    says: "traces form chains of hashes",
    run: async (connection) => {
      for (const table of [auditChains, auditSegments, auditRemovals]) await makeMissing(connection, table);
    },
  },
];

/**
 * Fails once a newer Cairn has migrated the schema: what this one writes would lack entries of new indexes. The last statement of a
 * transaction, it also locks the table of migrations until the end, so that a migration waits for what is written without it.
 */
export const SCHEMA_CHECK: Statement = {
  text: "select ('schema ' || number)::int from cairn.migrations where number > $1::int8",
  values: [MIGRATIONS.at(-1)!.number],
};
const LOCK_MIGRATIONS = plain("lock table cairn.migrations in access exclusive mode");

/** Another server takes the time of its migrations. */
const LOCKED_PAUSE_MS = 100;

function plain(text: string): Statement {
  return { text, values: [] };
}

const LOCK = plain("select pg_try_advisory_xact_lock(hashtext('cairn schema')) as locked");
/** A schema without relations may have been made for Cairn, by somebody who may make one. */
const LOOK = plain(
  "select to_regclass('cairn.migrations') is not null as known, " +
    "exists (select from pg_class where relnamespace = to_regnamespace('cairn')) as used",
);
const NEWEST = plain("select coalesce(max(number), 0) as number from cairn.migrations");
const BEGINNING = [
  plain("create schema if not exists cairn"),
  plain("create table if not exists cairn.migrations (number int primary key, says text not null, at bigint not null)"),
];
const COLUMNS = plain(
  "select c.relname || '.' || a.attname as name from pg_class c join pg_attribute a on a.attrelid = c.oid " +
    "where c.relnamespace = to_regnamespace('cairn') and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped",
);

/**
 * Runs the migrations that are due; waits while another server does.
 *
 * @param migrations - those of this Cairn; a test has its own
 * @throws {StoreError} for a schema that is newer, or no Cairn's
 * @throws {DatabaseError}
 */
export async function migrateSchema(database: Database, clock: Clock, migrations = MIGRATIONS): Promise<void> {
  while ((await dueIn((statement) => database.query(statement), migrations)).length > 0) {
    if (!(await migrate(database, clock, migrations))) await clock.sleep(LOCKED_PAUSE_MS);
  }
  await checkColumns(database);
}

/**
 * The same for a command that uses the store that is there: it changes no schema.
 *
 * @throws {StoreError} also where there is none, or that of an older Cairn
 * @throws {DatabaseError}
 */
export async function checkSchema(database: Database, migrations = MIGRATIONS): Promise<void> {
  const { length } = await dueIn((statement) => database.query(statement), migrations);
  if (length === migrations.length) throw new NoStoreError("There is no store in the database. Say where it is with --store.");
  if (length > 0)
    throw new StoreError("The store in the database was written by an older Cairn: start `cairn serve`, which brings it up to date.");
  await checkColumns(database);
}

async function checkColumns(database: Database): Promise<void> {
  const there = new Set((await database.query(COLUMNS)).map(({ name }) => name));
  const missing = DECLARED_COLUMNS.find((column) => !there.has(column));
  if (missing !== undefined) throw new StoreError(`The database is damaged: its schema "cairn" has lost the column ${missing}.`);
}

/** @returns whether it was this server that held the lock */
async function migrate(database: Database, clock: Clock, migrations: readonly SchemaMigration[]): Promise<boolean> {
  const connection = await database.reserve("takes its time");
  let isOpen = false;
  try {
    isOpen = true;
    const [, lock] = await connection.send([BEGIN, LOCK]);
    if (lock?.[0]?.["locked"] !== true) return false;
    const due = await dueIn(async (statement) => (await connection.send([statement])).flat(), migrations);
    await connection.send(BEGINNING);
    for (const migration of due) await migration.run(connection);
    await connection.send([LOCK_MIGRATIONS]);
    for (const { number, says } of due) {
      const text = "insert into cairn.migrations (number, says, at) values ($1::int8, $2, $3::int8)";
      await connection.send([{ text, values: [number, says, clock.now()] }]);
    }
    await connection.send([COMMIT]);
    isOpen = false;
    return true;
  } finally {
    if (isOpen) await connection.send([ROLLBACK]).catch(() => undefined);
    connection.release();
  }
}

async function dueIn(
  query: (statement: Statement) => ReturnType<Database["query"]>,
  migrations: readonly SchemaMigration[],
): Promise<readonly SchemaMigration[]> {
  const [look] = await query(LOOK);
  if (look?.["known"] !== true) {
    if (look?.["used"] === true)
      throw new StoreError('The database has a schema "cairn" that no Cairn has made. Give Cairn a database of its own.');
    return migrations;
  }
  const [newest] = await query(NEWEST);
  const number = Number(newest?.["number"]);
  const last = migrations.at(-1)?.number ?? 0;
  if (number > last)
    throw new StoreError(
      `A newer Cairn has brought the database to schema ${number}; this one reads it up to schema ${last}. Start the newer Cairn.`,
    );
  return migrations.filter((migration) => migration.number > number);
}
