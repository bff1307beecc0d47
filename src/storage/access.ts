/**
 * How the store is read and written, inside a commit and outside: see `store.ts`.
 *
 * @module
 */
import { AFTER_ALL } from "./keys.ts";
import type { AnyTable, Table } from "./tables.ts";

/** Keys from `from` (included) to `to` (excluded), ascending unless said otherwise. */
export interface Span {
  from: string;
  to: string;
  limit?: number;
  descending?: boolean;
}

/** The first key of a table, if there is one. */
export const FIRST: Span = { from: "", to: AFTER_ALL, limit: 1 };

/** What can be read, inside a commit and outside. Reads outside see every commit that has resolved. */
export interface Reader {
  get<Row>(table: Pick<Table<Row>, "name" | "decode">, key: string): Row | undefined;
  has(table: AnyTable, key: string): boolean;
  keys(table: AnyTable, span: Span): string[];
  rows<Row>(table: Table<Row>, span: Span): { key: string; row: Row }[];
  isEmpty(table: AnyTable): boolean;
  /** The bytes stored for a memory's vector. Copy them before the next read: the buffer is used again. */
  vectorBytes(memory: string): Uint8Array | undefined;
}

/** What a commit's callback can do. A read sees what the callback wrote before. */
export interface Tx extends Reader {
  put<Row>(table: Table<Row>, key: string, row: Row): void;
  remove(table: AnyTable, key: string): void;
  putVector(memory: string, bytes: Uint8Array): void;
  removeVector(memory: string): void;
}
