/**
 * Locks of a transaction before it looks whether all that was read is still so: others who would change that then wait until the
 * transaction has ended, and find out what it has written.
 *
 * ```
 * what was read                     lock                                        who waits for it
 * a row that is also written        the row, `for no key update`                who writes it, or locks it
 * a session that is not             the row, `for share`                        who writes or removes it
 * a span                            its name                                    who reads the same span to write
 * anything of a global table        the table's name, shared by its readers     who writes any row of it
 * ```
 * Global tables have few rows, of which nearly every commit reads some and hardly any changes one. Rows of other tables are written
 * with their session, or with all others of their kind, or never.
 *
 * All transactions lock in one order, so that none of two that wait for each other waits for good: names first, then rows by table and
 * key, and then what is written. Of that only a row that is new can make one wait, whose key another is putting: these are put in the
 * same order. Index entries need no lock: a transaction that writes one has locked its row, or puts it. A transaction that finds out that
 * it needs more than it has locked does not wait for that: where another one holds it, it is rolled back and begins again with both. So
 * is one that would have to wait for a row when it has locked before it read: another has put that row after the locks of its table, so it
 * is not locked although its key was expected.
 *
 * @module
 */
import { FIRST } from "../../access.ts";
import { RECORD_TABLES, sessions, VECTOR_TABLES } from "../../tables.ts";
import type { Write } from "../../write-buffer.ts";
import type { Statement } from "../connection/database.ts";
import type { FetchedRows, SpanAsk } from "../read/fetched-rows.ts";
import { LEASES, locationOf } from "../schema.ts";

const GLOBAL_TABLES: ReadonlySet<string> = new Set(RECORD_TABLES.filter(({ isGlobal }) => isGlobal === true).map(({ name }) => name));

/**
 * Vectors are put once, under an id that each run of a change draws for itself, and then at most removed: no run would ever have locked
 * the one that it puts.
 */
const PUT_ONCE: ReadonlySet<string> = new Set(VECTOR_TABLES.map(({ name }) => name));

/** Numbers of names, and whether they are locked against all others (1) or shared (0). */
export type NameLocks = ReadonlyMap<number, 0 | 1>;

/** `written`: against all that write or lock the row; `read`: against those that write it. */
type RowLock = "written" | "read";

/** Reaction of a statement to a row that it would lock and another transaction holds. */
export type WhenHeld = "wait" | "fail";

export interface RowLocks {
  readonly lock: RowLock;
  readonly keys: ReadonlySet<string>;
}

export interface Locks {
  readonly names: NameLocks;
  /** By table. */
  readonly rows: ReadonlyMap<string, RowLocks>;
}

const KEPT_READ: ReadonlySet<string> = new Set(RECORD_TABLES.filter(({ keepsRead }) => keepsRead === true).map(({ name }) => name));

/** Checks whether commits build on what was read of a table, or index, last. */
export const keepsRead = (name: string): boolean => isGlobal(name) || KEPT_READ.has(name);

/** Checks whether a table is global, or an index of one that is. */
export const isGlobal = (name: string): boolean => GLOBAL_TABLES.has(tableOf(name));

/** The table of which a table or an index is. */
const tableOf = (name: string): string => name.split(".", 1)[0]!;
const numberOf = (name: string): number => Number(Bun.hash.wyhash(name) & 0xfffffffffffffn);
/**
 * A span from the start of its table has no name of its own: every commit looks whether some tables are empty, and tasks look for what is
 * due up to the present time, which is another for each run.
 */
const isFromTheStart = ({ span }: SpanAsk): boolean => span.from === FIRST.from;

function nameLocksOf({ read: { keys, spans } }: FetchedRows, changes: readonly Pick<Write, "table" | "key">[]): NameLocks {
  const locks = new Map<number, 0 | 1>();
  for (const ask of spans.values()) {
    const { table, span } = ask;
    if (isGlobal(table)) locks.set(numberOf(tableOf(table)), 0);
    else if (!isFromTheStart(ask)) locks.set(numberOf(`${table} ${span.from} ${span.to}`), 1);
  }
  for (const table of keys.keys()) if (isGlobal(table)) locks.set(numberOf(tableOf(table)), 0);
  for (const { table } of changes) if (isGlobal(table)) locks.set(numberOf(tableOf(table)), 1);
  return locks;
}

/** Part of `from` that waits for the locks: a relation of one row. */
export const NAMES_LOCKED =
  "(select count(case when alone = 1 then pg_advisory_xact_lock(name)::text else pg_advisory_xact_lock_shared(name)::text end)" +
  " from unnest($1::int8[], $2::int8[]) as q(name, alone)) as locked";

/** The values of its parameters. */
export function namesLockedValues(locks: NameLocks): [names: number[], alone: number[]] {
  const sorted = Array.from(locks).sort(([a], [b]) => a - b);
  return [sorted.map(([name]) => name), sorted.map(([, alone]) => alone)];
}

/** Statements that lock names beyond those that are locked, and fail where another transaction holds one: waiting would be out of order. */
export function namesTried(locked: NameLocks, needed: NameLocks): Statement[] {
  const beyond = new Map(Array.from(needed).filter(([name, alone]) => (locked.get(name) ?? -1) < alone));
  if (beyond.size === 0) return [];
  const tried = "case when alone = 1 then pg_try_advisory_xact_lock(name) else pg_try_advisory_xact_lock_shared(name) end";
  const text = `select 1 / bool_and(${tried})::int from unnest($1::int8[], $2::int8[]) as q(name, alone)`;
  return [{ text, values: namesLockedValues(beyond) }];
}

/** Locks of a commit: rows that it has read and are there, and rows that it writes and may be there. */
export function locksOf(fetched: FetchedRows, changes: readonly Pick<Write, "table" | "key" | "isNew" | "value">[]): Locks {
  const rows = new Map<string, { lock: RowLock; keys: Set<string> }>();
  const note = (table: string, key: string, lock: RowLock) => {
    const tracked = rows.get(table);
    if (tracked === undefined) rows.set(table, { lock, keys: new Set([key]) });
    else tracked.keys.add(key);
  };
  for (const { table, key, value, isNew } of changes) {
    if (!hasRevision(table)) continue;
    const isRead = fetched.read.keys.get(table)?.has(key) === true;
    const isPutOnce = PUT_ONCE.has(table) && value !== undefined;
    if (isRead ? fetched.row(table, key) !== null : !isNew && !isPutOnce) note(table, key, "written");
  }
  for (const [table, keys] of fetched.read.keys) {
    // In a table of which rows are written all are locked alike: in two orders two commits could wait for each other.
    if (READ_LOCKS.has(table)) for (const key of keys) if (fetched.row(table, key) !== null) note(table, key, "read");
  }
  return { names: nameLocksOf(fetched, changes), rows };
}

/** Checks whether `locks` has all that `others` needs. */
export function covers(locks: Locks, others: Locks): boolean {
  const isNameLocked = ([name, alone]: readonly [number, 0 | 1]) => (locks.names.get(name) ?? -1) >= alone;
  const areRowsLocked = ([table, { lock, keys }]: readonly [string, RowLocks]) => {
    const own = locks.rows.get(table);
    return own !== undefined && (own.lock === "written" || own.lock === lock) && Array.from(keys).every((key) => own.keys.has(key));
  };
  return Array.from(others.names).every(isNameLocked) && Array.from(others.rows).every(areRowsLocked);
}

export function union(one: Locks, other: Locks): Locks {
  const names = new Map(one.names);
  for (const [name, alone] of other.names) if (names.get(name) !== 1) names.set(name, alone);
  const rows = new Map(one.rows);
  for (const [table, { lock, keys }] of other.rows) {
    const own = rows.get(table);
    rows.set(table, own === undefined ? { lock, keys } : { lock: own.lock === "written" ? own.lock : lock, keys: own.keys.union(keys) });
  }
  return { names, rows };
}

export function lockStatements({ names, rows }: Locks): Statement[] {
  return [
    ...(names.size === 0 ? [] : [{ text: `select from ${NAMES_LOCKED}`, values: namesLockedValues(names) }]),
    ...Array.from(rows)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([table, locks]) => rowsLocked(table, locks)),
  ];
}

/** @param whenHeld - for a row that another transaction holds */
export function rowsLocked(table: string, { lock, keys }: RowLocks, whenHeld: WhenHeld = "wait"): Statement {
  const { relation } = locationOf(table);
  return {
    text: `select count(*) from (select from ${relation} as x where key = any($1::text[]) order by key${rowLockOf(table, lock, whenHeld)}) as locked`,
    values: [Array.from(keys)],
  };
}

/** The clause with which a statement locks rows `x`. */
export function rowLockOf(table: string, lock: RowLock | undefined, whenHeld: WhenHeld): string {
  if (lock === undefined) return "";
  return (lock === "written" ? " for no key update of x" : READ_LOCKS.get(table)!) + (whenHeld === "fail" ? " nowait" : "");
}

/** Lock of rows that are read and not written. */
const READ_LOCKS: ReadonlyMap<string, string> = new Map([
  [sessions.name, " for share of x"],
  // Nobody takes a lease over while a commit under it is under way; renewing it is no hindrance.
  [LEASES.name, " for key share of x"],
]);

const hasRevision = (table: string): boolean => locationOf(table).rev === "rev";
