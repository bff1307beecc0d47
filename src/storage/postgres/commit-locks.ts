/**
 * What a transaction locks before it looks whether all that was read is still so: others who would change that then wait until the
 * transaction has ended, and find out what it has written.
 *
 * ```
 * what was read                     lock                                        who waits for it
 * a row that is also written        the row, `for no key update`                who writes it, or locks it
 * a session that is not             the row, `for share`                        who writes or removes it
 * a span                            its name                                    who reads the same span to write
 * anything of a table for all       the table's name, shared by its readers     who writes any row of it
 * ```
 * Tables for all have few rows, of which nearly every commit reads some and hardly any changes one. Rows of other tables are written
 * with their session, or with all others of their kind, or never. Names are locked first and in one order, then rows in theirs.
 *
 * @module
 */
import { FIRST } from "../access.ts";
import { apiKeys, documentRemovals, erasures, provider, removals, sessions, settings, webhooks } from "../tables.ts";
import type { Write } from "../write-buffer.ts";
import type { Statement } from "./database.ts";
import { Asks, type Fetched, type SpanAsk } from "./fetched.ts";
import { LEASES, placeOf } from "./schema.ts";

const TABLES_FOR_ALL: ReadonlySet<string> = new Set(
  [apiKeys, documentRemovals, erasures, provider, removals, settings, webhooks].map(({ name }) => name),
);

/** Numbers of names, and whether they are locked against all others (1) or shared (0). */
export type NameLocks = ReadonlyMap<number, 0 | 1>;

export interface Locks {
  readonly names: NameLocks;
  readonly rows: Asks;
}

/** Whether a table is one for all, or an index of one. */
export const isForAll = (name: string): boolean => TABLES_FOR_ALL.has(tableOf(name));

/** The table of which a table or an index is. */
const tableOf = (name: string): string => name.split(".", 1)[0]!;
const numberOf = (name: string): number => Number(Bun.hash.wyhash(name) & 0xfffffffffffffn);
/** One whole table has no name of its own: everybody who writes looks whether some are empty. */
const isWhole = ({ span }: SpanAsk): boolean => span.from === FIRST.from && span.to === FIRST.to;

export function nameLocksOf({ read: { keys, spans } }: Fetched, changes: readonly Pick<Write, "table" | "key">[]): NameLocks {
  const locks = new Map<number, 0 | 1>();
  for (const ask of spans.values()) {
    const { table, span } = ask;
    if (isForAll(table)) locks.set(numberOf(tableOf(table)), 0);
    else if (!isWhole(ask)) locks.set(numberOf(`${table} ${span.from} ${span.to}`), 1);
  }
  for (const table of keys.keys()) if (isForAll(table)) locks.set(numberOf(tableOf(table)), 0);
  for (const { table } of changes) if (isForAll(table)) locks.set(numberOf(tableOf(table)), 1);
  return locks;
}

/** What makes `from` wait for the locks: a relation of one row. */
export const NAMES_LOCKED =
  "(select count(case when alone = 1 then pg_advisory_xact_lock(name)::text else pg_advisory_xact_lock_shared(name)::text end)" +
  " from unnest($1::int8[], $2::int8[]) as q(name, alone)) as locked";

/** The values of its parameters. */
export function namesLockedValues(locks: NameLocks): [names: number[], alone: number[]] {
  const sorted = Array.from(locks).sort(([a], [b]) => a - b);
  return [sorted.map(([name]) => name), sorted.map(([, alone]) => alone)];
}

/** What a commit locks, for one that locks all of it before it reads. */
export function locksOf(fetched: Fetched, changes: readonly Pick<Write, "table" | "key">[]): Locks {
  const rows = new Asks();
  const note = (table: string, key: string) => {
    if (placeOf(table).rev === "rev" && fetched.row(table, key) !== null) rows.addKey(table, key);
  };
  for (const { table, key } of changes) if (fetched.read.keys.get(table)?.has(key) === true) note(table, key);
  for (const table of Array.from(rows.keys.keys()).filter(areLockedTogether))
    for (const key of fetched.read.keys.get(table) ?? []) note(table, key);
  return { names: nameLocksOf(fetched, changes), rows };
}

export function lockStatements({ names, rows }: Locks): Statement[] {
  return [
    ...(names.size === 0 ? [] : [{ text: `select from ${NAMES_LOCKED}`, values: namesLockedValues(names) }]),
    ...Array.from(rows.keys)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([table, keys]) => ({
        text: `select count(*) from (select key from ${placeOf(table).relation} where key = any($1::text[]) order by key for no key update) as locked`,
        values: [Array.from(keys)],
      })),
  ];
}

/** How rows are locked that were read, and of which some are written or none. */
export function rowLockOf(table: string, areWritten: boolean): string {
  if (areWritten) return " for no key update of x";
  if (table === sessions.name) return " for share of x";
  // Nobody takes a lease over while a commit under it is under way; renewing it is no hindrance.
  return table === LEASES.name ? " for key share of x" : "";
}

/** Whether those that are only read are locked like those that are written: in two orders two commits could wait for each other. */
export const areLockedTogether = (table: string): boolean => table === sessions.name;
