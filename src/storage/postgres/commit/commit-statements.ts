/**
 * The statements of one commit: what was read is still so, and what is written.
 *
 * Rows that were read are looked at once more under locks (`commit-locks.ts`). A statement that finds something else divides by zero.
 *
 * @module
 */
import { VECTOR_TABLES } from "../../tables.ts";
import type { Write } from "../../write-buffer.ts";
import type { Statement } from "../connection/database.ts";
import { groupSpans, Parameters, spansSource, unnested } from "../read/fetch-statement.ts";
import type { FetchedRows, StoredRow } from "../read/fetched-rows.ts";
import { columnOf, locationOf, relationOf, TEXT_TABLES } from "../schema.ts";
import { rowLockOf, rowsLocked, type Locks, type RowLocks, type WhenHeld } from "./commit-locks.ts";

/** Result of a commit for one key. */
export interface Change {
  readonly table: string;
  readonly key: string;
  readonly value: Write["value"];
  /** Fails when the row is there already. */
  readonly isNew: boolean;
}

/** The last write of each key. */
export function changesOf(writes: readonly Write[]): Change[] {
  const changes = new Map<string, Change>();
  for (const { table, key, value, isNew } of writes) {
    const name = `${table} ${key}`;
    const before = changes.get(name);
    changes.set(name, { table, key, value, isNew: before === undefined ? isNew : before.isNew });
  }
  return Array.from(changes.values());
}

/**
 * @param whenHeld - `fail` where locks were taken before: a row that is not among them by now would be locked behind those that follow it
 * @returns statements that lock rows and fail unless all that was read is still as it was
 */
export function checksOf(fetched: FetchedRows, { rows: locks }: Locks, whenHeld: WhenHeld): Statement[] {
  const tables = new Set([...fetched.read.keys.keys(), ...locks.keys()]);
  return [
    ...Array.from(tables)
      .toSorted()
      .flatMap((table) => rowChecksOf(fetched, table, locks.get(table), whenHeld)),
    ...spanChecksOf(fetched),
  ];
}

const READ = unnested("q", [
  { name: "key", array: "$1::text[]" },
  { name: "rev", array: "$2::int8[]" },
]);

/**
 * A row that was read is locked by its check, unless rows of its table are locked that were not read: then one statement locks all of
 * them before, in their order.
 */
function rowChecksOf(fetched: FetchedRows, table: string, locks: RowLocks | undefined, whenHeld: WhenHeld): Statement[] {
  const { relation, column, rev } = locationOf(table);
  const found = Array.from(fetched.read.keys.get(table) ?? [], (key) => ({ key, row: fetched.row(table, key) ?? null }));
  const absent = found.filter(({ row }) => row === null).map(({ key }) => key);
  const present = found.flatMap(({ row }) => row ?? []);
  const [locked, others] = [present.filter(({ key }) => locks?.keys.has(key)), present.filter(({ key }) => locks?.keys.has(key) !== true)];
  const isApart = locks !== undefined && locked.length < locks.keys.size;
  const check = (rows: readonly StoredRow[], lock: string): Statement[] =>
    rows.length === 0
      ? []
      : [
          {
            text:
              `select 1 / (count(*) = $3)::int from (select x.${column} from ${READ} join ${relation} as x` +
              ` on x.${column} = q.key${rev === "rev" ? " and x.rev = q.rev" : ""} order by x.${column}${lock}) as same`,
            values: [rows.map(({ key }) => key), rows.map((row) => row.rev), rows.length],
          },
        ];
  return [
    ...(isApart ? [rowsLocked(table, locks, whenHeld)] : []),
    ...check(locked, rowLockOf(table, isApart ? undefined : locks?.lock, whenHeld)),
    ...check(others, ""),
    ...(absent.length === 0
      ? []
      : [{ text: `select 1 / (count(*) = 0)::int from ${relation} where ${column} = any($1::text[])`, values: [absent] }]),
  ];
}

const digestOf = (rows: readonly StoredRow[], withRows: boolean): string =>
  rows.map(({ key, rev }) => (withRows ? `${key} ${rev}` : key)).join(",");

function spanChecksOf(fetched: FetchedRows): Statement[] {
  return groupSpans(fetched.read.spans).map((group) => {
    const parameters = new Parameters();
    const { asked, found } = spansSource({ ...group, withRows: false }, parameters);
    const digest = group.withRows ? "key || ' ' || rev" : "key";
    const expected = parameters.add(group.readSet.map(([name, ask]) => digestOf(fetched.span(name, ask) ?? [], group.withRows)));
    return {
      text:
        `select 1 / (count(*) = 0)::int from ${asked} cross join lateral (select coalesce(string_agg(${digest}, ',' order by key ${group.order}), '')` +
        ` as digest from (${found}) as f) as now where now.digest <> (${expected}::text[])[q.ask + 1]`,
      values: parameters.values,
    };
  });
}

const BY_NAME = new Map(TEXT_TABLES.map((table) => [table.name, table]));
const MANY = new Set(TEXT_TABLES.flatMap((table) => table.indexes.filter((index) => index.hasMany).map((index) => index.name)));

const OF_BYTES = new Set(VECTOR_TABLES.map(({ name }) => name));

/** @param rev - the revision of all rows that are written */
export function writesOf(changes: readonly Change[], fetched: FetchedRows, rev: number): Statement[] {
  return Array.from(Map.groupBy(changes, ({ table }) => table))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([name, all]) => {
      const sorted = all.toSorted((a, b) => (a.key < b.key ? -1 : 1));
      const removed = sorted.filter(({ value }) => value === undefined).map(({ key }) => key);
      const put = sorted.filter(({ value }) => value !== undefined);
      const relation = relationOf(name);
      const removal = removed.length === 0 ? [] : [{ text: `delete from ${relation} where key = any($1::text[])`, values: [removed] }];
      const keys = (some: readonly Change[]) => some.map(({ key }) => key);
      if (MANY.has(name)) {
        const entries = put.length === 0 ? [] : [insertion(relation, [{ name: "key", type: "text", values: keys(put) }], "do nothing")];
        return [...removal, ...entries];
      }
      if (OF_BYTES.has(name)) {
        const columns = [
          { name: "key", type: "text", values: keys(put) },
          { name: "bytes", type: "bytea", values: put.map(({ value }) => value as Uint8Array) },
        ];
        return [...removal, ...(put.length === 0 ? [] : [insertion(relation, columns, "update", rev)])];
      }
      const table = BY_NAME.get(name);
      // The entry of an index that is a column is written with its row.
      if (table === undefined) return [];
      const columnsOf = (some: readonly Change[]) => [
        { name: "key", type: "text", values: keys(some) },
        { name: "row", type: "text", values: some.map(({ value }) => value as string) },
        ...table.indexes
          .filter((index) => !index.hasMany)
          .map((index) => ({
            name: columnOf(index),
            type: "text",
            // No entry is empty; an array of null alone would have no type.
            values: some.map(({ key, value }) => index.entriesOf(key, table.decode(value as string))[0] ?? ""),
          })),
      ];
      // Rows that were read exist, or do not: the checks say so. Of others nothing is known.
      const known = (change: Change) => fetched.read.keys.get(name)?.has(change.key) === true;
      const isThere = (change: Change) => known(change) && fetched.row(name, change.key) !== null;
      const [there, others] = [put.filter(isThere), put.filter((change) => !isThere(change))];
      return [
        ...removal,
        ...(there.length === 0 ? [] : [update(relation, columnsOf(there), rev)]),
        ...runsOf(others, (change) => (change.isNew || known(change) ? "fail" : "update")).map(([otherwise, some]) =>
          insertion(relation, columnsOf(some), otherwise, rev),
        ),
      ];
    });
}

/** Groups of writes that follow each other and are of one kind: the keys of all stay in their order (`commit-locks.ts`). */
function runsOf<Item, Kind>(items: readonly Item[], kindOf: (item: Item) => Kind): [Kind, Item[]][] {
  const runs: [Kind, Item[]][] = [];
  for (const item of items) {
    const kind = kindOf(item);
    const last = runs.at(-1);
    if (last?.[0] === kind) last[1].push(item);
    else runs.push([kind, [item]]);
  }
  return runs;
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly values: readonly string[] | readonly Uint8Array[];
}

const isEntry = ({ name }: Column) => name !== "key" && name !== "row" && name !== "bytes";
const valueOf = (column: Column) => (isEntry(column) ? `nullif(w.${column.name}, '')` : `w.${column.name}`);

/** The columns as a relation `w`; `rev` is the first parameter. */
function given(columns: readonly Column[], first: number): string {
  return `unnest(${columns.map(({ type }, i) => `$${first + i}::${type}[]`).join(", ")}) as w(${columns.map(({ name }) => name).join(", ")})`;
}

function insertion(relation: string, columns: readonly Column[], otherwise: "fail" | "do nothing" | "update", rev?: number): Statement {
  const hasRevision = rev !== undefined;
  const names = [...columns.map(({ name }) => name), ...(hasRevision ? ["rev"] : [])];
  const values = [...columns.map(valueOf), ...(hasRevision ? ["$1::int8"] : [])];
  const conflict =
    otherwise === "fail"
      ? ""
      : otherwise === "do nothing"
        ? " on conflict do nothing"
        : ` on conflict (key) do update set ${names
            .slice(1)
            .map((name) => `${name} = excluded.${name}`)
            .join(", ")}`;
  return {
    text: `insert into ${relation} (${names.join(", ")}) select ${values.join(", ")} from ${given(columns, hasRevision ? 2 : 1)}${conflict}`,
    values: [...(hasRevision ? [rev] : []), ...columns.map((column) => column.values)],
  };
}

function update(relation: string, columns: readonly Column[], rev: number): Statement {
  const set = columns.slice(1).map((column) => `${column.name} = ${valueOf(column)}`);
  return {
    text: `update ${relation} as x set ${[...set, "rev = $1::int8"].join(", ")} from ${given(columns, 2)} where x.key = w.key`,
    values: [rev, ...columns.map((column) => column.values)],
  };
}
