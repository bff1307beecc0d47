/**
 * The tables of PostgreSQL, made of the same declarations as those of LMDB.
 *
 * A table has a row for each record: its key, its text, and a revision that no two commits give. An index is a column that holds the
 * record's entry, so that a DBA can read it and no second table is written; only an index of which a record can have many
 * entries is a table of its own. Keys and entries are ASCII compared by bytes, as in LMDB. The raw texts of callers are in JSON alone.
 *
 * ```
 * cairn.sessions (key, row, rev, by_agent, by_user, by_expiry, …)     cairn.sessions_by_external_id (key)
 * cairn.vectors  (key, bytes, rev)                                    cairn.commits (id, given_up, at)
 * cairn.leases   (key, row, rev, until)                               cairn.migrations (number, says, at)
 * cairn.buckets  (key, parts, at, given, full_at)                              cairn.changes (xid, rev, at, keys)
 * cairn.certificates (name, text)
 * ```
 *
 * @module
 */
import { BARE_ID_LENGTH } from "../../lib/ids.ts";
import { invariant } from "../../lib/invariant.ts";
import { snakeCase } from "../../lib/text.ts";
import {
  deliveries,
  idempotency,
  meta,
  outbox,
  PENDING_TABLES,
  RECORD_TABLES,
  SCHEMA_VERSION,
  sessions,
  traces,
  VECTOR_TABLES,
  type Index,
  type Readable,
  type Table,
  type VectorTable,
} from "../tables.ts";
import { CERTIFICATES_DEFINITION } from "./certificate-rows.ts";
import type { Statement } from "./connection/database.ts";

/** Tables whose rows are texts. */
export const TEXT_TABLES: readonly Table<unknown>[] = [...RECORD_TABLES, ...PENDING_TABLES];

/** Place of the keys of a table, or of the entries of an index. */
export interface Location {
  readonly relation: string;
  readonly column: string;
  /** Value of a key: the text of a row, bytes as text, or nothing, for an index. */
  readonly row: string;
  /** The revision, or nothing. */
  readonly rev: string;
}

export const SCHEMA = "cairn";

export const relationOf = (name: string): string => `${SCHEMA}.${snakeCase(name).replace(".", "_")}`;
/** The column of an index that is one. */
export const columnOf = ({ name }: Pick<Index, "name">): string => snakeCase(name.slice(name.indexOf(".") + 1));

const NOTHING = { row: "null::text", rev: "0::int8" };
/** Holders of leases. The rows are no records: nothing exports them. */
export const LEASES: Readable<string> = { name: "leases", decode: (value) => value };

const LOCATIONS: ReadonlyMap<string, Location> = new Map<string, Location>([
  [LEASES.name, { relation: relationOf(LEASES.name), column: "key", row: "row", rev: "rev" }],
  ...VECTOR_TABLES.map(({ name }): [string, Location] => [
    name,
    { relation: relationOf(name), column: "key", row: "encode(bytes, 'base64')", rev: "rev" },
  ]),
  ...TEXT_TABLES.flatMap((table): [string, Location][] => [
    [table.name, { relation: relationOf(table.name), column: "key", row: "row", rev: "rev" }],
    ...table.indexes.map((index): [string, Location] => [
      index.name,
      index.hasMany
        ? { relation: relationOf(index.name), column: "key", ...NOTHING }
        : { relation: relationOf(table.name), column: columnOf(index), ...NOTHING },
    ]),
  ]),
]);

/** Every table of records and of what follows from them, in the order in which commits write them. */
export const RELATIONS: readonly string[] = Array.from(
  new Set(
    [...TEXT_TABLES.flatMap((table) => [table.name, ...table.indexes.map(({ name }) => name)]), ...VECTOR_TABLES.map(({ name }) => name)]
      .toSorted()
      .map((name) => locationOf(name).relation),
  ),
);

/** @throws {InvariantError} for a name that is none */
export function locationOf(name: string): Location {
  const location = LOCATIONS.get(name);
  invariant(location !== undefined, `no table ${name}`);
  return location;
}

/** The id that an entry ends with. */
export const idOfEntry = (entry: string): string => `right(${entry}, ${BARE_ID_LENGTH})`;
/** The id of a record that is listed: its key, or what that ends with. */
export const idOfRecord = (table: string, key: string): string => (WITH_ID_LAST.has(table) ? idOfEntry(key) : key);
const WITH_ID_LAST: ReadonlySet<string> = new Set([traces.name, deliveries.name]);

/** Rows that change often leave space on their page for their next version, … */
const STORAGE: Readonly<Record<string, string>> = {
  [sessions.name]: "fillfactor = 70",
  // … and what dies young is swept often.
  [outbox.name]: "autovacuum_vacuum_scale_factor = 0.02",
  [idempotency.name]: "autovacuum_vacuum_scale_factor = 0.02",
};

/** Statements that make a table with its indexes. */
export function definitionOf(table: Table<unknown>, compression: Compression): string[] {
  const relation = relationOf(table.name);
  const columns = table.indexes.filter((index) => !index.hasMany).map(columnOf);
  const storage = STORAGE[table.name];
  return [
    `create table ${relation} (key text collate "C" primary key, row text compression ${compression} not null, rev bigint not null${columns
      .map((column) => `, ${column} text collate "C"`)
      .join("")})${storage === undefined ? "" : ` with (${storage})`}`,
    ...columns.map((column) => `create index on ${relation} (${column}) where ${column} is not null`),
    ...table.indexes
      .filter((index) => index.hasMany)
      .map((index) => `create table ${relationOf(index.name)} (key text collate "C" primary key)`),
    ...(table.name === traces.name ? [`create index on ${relation} (${idOfRecord(table.name, "key")})`] : []),
  ];
}

/** Statements that make a table of bytes. */
export const definitionOfVectors = ({ name }: VectorTable, where: "" | "if not exists" = ""): string[] => [
  `create table ${where} ${relationOf(name)} (key text collate "C" primary key, bytes bytea not null, rev bigint not null)`,
  `alter table ${relationOf(name)} alter bytes set storage external`,
];

/** Compression of rows of more than 2 KB: by lz4 in a third of the time, where the server was built with it. */
export type Compression = "lz4" | "pglz";

/** Statements that make everything in an empty schema. */
export const definitions = (compression: Compression): readonly string[] => [
  ...TEXT_TABLES.flatMap((table) => definitionOf(table, compression)),
  ...VECTOR_TABLES.flatMap((table) => definitionOfVectors(table)),
  `create table ${relationOf(LEASES.name)} (key text collate "C" primary key, row text not null, rev bigint not null, until bigint not null)`,
  // A crash of the database empties it: then the buckets are full.
  'create unlogged table cairn.buckets (key text collate "C" primary key, parts float8 not null, at bigint not null, given float8 not null, full_at bigint not null) with (fillfactor = 50)',
  CERTIFICATES_DEFINITION,
  "create table cairn.commits (id uuid primary key, given_up boolean not null, at bigint not null)",
  "create index on cairn.commits (at)",
  // Not unique: after a dump was restored, numbers of its cluster can come once more.
  "create table cairn.changes (xid xid8 not null, rev bigint not null, at bigint not null, keys text not null) with (autovacuum_vacuum_scale_factor = 0.02)",
  "create index on cairn.changes (xid)",
  "insert into cairn.changes (xid, rev, at, keys) values (pg_current_xact_id(), (random() * 2 ^ 52)::int8, 0, '')",
  `insert into ${relationOf(meta.name)} (key, row, rev) values ('schema', '${SCHEMA_VERSION}', 1)`,
];

/** Each key, row and index of the declared tables has to be there: `sessions.by_agent`. */
export const DECLARED_COLUMNS: readonly string[] = Array.from(LOCATIONS.values(), ({ relation, column }) => [
  `${relation.slice(relation.indexOf(".") + 1)}.${column}`,
]).flat();

export const READ_VERSION: Statement = { text: "select row from cairn.meta where key = 'schema'", values: [] };
