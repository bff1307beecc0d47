/**
 * Declaration of a table: its key, the text of its rows, and its indexes, whose entries follow from the rows.
 *
 * @module
 */
import type { TSchema } from "@sinclair/typebox";
import { bareIdTime, BARE_ID_LENGTH, type BareId } from "../../lib/ids.ts";
import { rowsOfTable } from "../unreadable.ts";

/** Any table or index, for what concerns keys alone. */
export interface AnyTable {
  readonly name: string;
}

/** Keys that follow from the rows of a table. */
export interface Index<Row = unknown> extends AnyTable {
  /** True if a row can have more than one entry. */
  readonly hasMany: boolean;
  /** True if entries of new rows are written some time after them (`lmdb/change-buffer.ts`). */
  readonly isBuffered: boolean;
  /** Number of rows that a start takes into it in one commit, where stores of before lack it (`fills.ts`); undefined where none does. */
  readonly fillRows: number | undefined;
  /** The entries of a row. */
  entriesOf(key: string, row: Row): readonly string[];
  /** The key of the row that an entry is of. */
  recordOf(entry: string): string;
}

/** Part of a table that reading its rows needs. */
export interface Readable<Row> extends AnyTable, RowTimes<Row> {
  decode(text: string): Row;
}

/** Time that new ids and times have to follow where another server, whose clock is ahead, has written the row. */
interface RowTimes<Row> {
  /** Time of the row's last change. */
  changedAt?(row: Row): number | undefined;
  /** The id up to which the row says that records are being taken away. */
  takenUntil?(row: Row): BareId;
}

/** Duties of a store for the rows of a table besides keeping them. */
export interface Traits<Row> extends RowTimes<Row> {
  /** Announcement of each new row once it is committed: its key, to those who follow traces, or that there are events. */
  readonly notifies?: "traces" | "events";
  /** Bytes of rows that the embedded store caches, if any. */
  readonly cachedBytesMax?: number;
  /** True if it caches what was committed, and not read since: each change reads such a row, and is most often followed by others. */
  readonly keepsCommitted?: true;
  /** True if a server on a database builds commits on what it has read of it: commits read a row again and again, and few change it. */
  readonly keepsRead?: true;
  /** True if it has few rows, of which nearly every commit reads some and hardly any changes one. */
  readonly isGlobal?: true;
}

/** A table and how its rows become text. */
export interface Table<Row, IndexName extends string = string> extends Readable<Row>, Traits<Row> {
  encode(row: Row): string;
  readonly index: Readonly<Record<IndexName, Index<Row>>>;
  readonly indexes: readonly Index<Row>[];
  /** Checks whether two rows of a key certainly have the same entries. */
  hasSameEntries(before: Row, row: Row): boolean;
  /** Shape of keys. */
  readonly key: RegExp;
  /** Shape of rows in an export. */
  readonly schema: TSchema;
  /** JSON of a stored text, for an export. */
  toExport(stored: string): string;
  /** The stored text of a parsed JSON value of an export. */
  fromExport(value: unknown): string;
}

export type Codec<Row> = Pick<Table<Row>, "encode" | "decode" | "toExport" | "fromExport"> & Traits<Row>;
/** The entry of a row, if it has one, or all of them. */
type EntryOf<Row> = (key: string, row: Row) => string | undefined;
type IndexDeclaration<Row> = { readonly record?: (entry: string) => string; readonly isBuffered?: true; readonly fillRows?: number } & (
  | { readonly of: EntryOf<Row>; readonly hasMany?: never }
  | { readonly of: (key: string, row: Row) => readonly string[] | undefined; readonly hasMany: true }
);

/** A table whose rows are bytes, not text: `Tx` has calls of their own for them. */
export interface VectorTable extends AnyTable {
  readonly isOfBytes: true;
}

export const lastId = (entry: string) => entry.slice(-BARE_ID_LENGTH);
export const sessionOf = (key: string): BareId => key.slice(0, BARE_ID_LENGTH);

/** @param indexed - the fields that decide the entries of a row; left out where any may */
export function table<Row, Name extends string = never, Indexed extends keyof Row = keyof Row>(
  name: string,
  key: RegExp,
  schema: TSchema,
  codec: Codec<Row>,
  declared: Record<Name, IndexDeclaration<Pick<Row, Indexed>> | EntryOf<Pick<Row, Indexed>>> = {} as never,
  indexed?: readonly Indexed[],
): Table<Row, Name> {
  const index = Object.fromEntries(
    Object.entries<IndexDeclaration<Pick<Row, Indexed>> | EntryOf<Pick<Row, Indexed>>>(declared).map(([indexName, declaration]) => {
      const {
        of,
        record = lastId,
        hasMany = false,
        isBuffered = false,
        fillRows,
      } = typeof declaration === "function" ? { of: declaration } : declaration;
      const entriesOf = (recordKey: string, row: Row) => {
        const entries = of(recordKey, row);
        return entries === undefined ? [] : typeof entries === "string" ? [entries] : entries;
      };
      return [indexName, { name: `${name}.${indexName}`, entriesOf, recordOf: record, hasMany, isBuffered, fillRows }];
    }),
  ) as Record<Name, Index<Row>>;
  const hasSameEntries = (before: Row, row: Row) => indexed?.every((field) => before[field] === row[field]) === true;
  return { name, key, schema, ...codec, decode: rowsOfTable(name, codec.decode), index, indexes: Object.values(index), hasSameEntries };
}

/** Number of rows taken into a new index in one commit: small ones, … */
export const FILL_ROWS = 500;
/** … and those that can be a megabyte. */
export const FILL_ROWS_LARGE = 25;

export const ID = /^[0-9A-Za-z]{12}$/;
export const TWO_IDS = /^[0-9A-Za-z]{24}$/;
export const HASH = /^[\w-]{22}$/;
export const SHA256 = /^[0-9a-f]{64}$/;
export const SHA256_LENGTH = 64;
export const CURRENT = /^current$/;

/** An id that is later than its record's time: the clock was set back since an earlier id was made. */
export function ahead(id: BareId, createdAt: number, entry: string = id): string | undefined {
  return bareIdTime(id) > createdAt ? entry : undefined;
}
