/**
 * The writes of one commit, until its callback has returned.
 *
 * Nothing reaches the store before: the writes of a callback that throws are dropped, so that many commits can share a
 * transaction without one of them spoiling it for the others. Reads see what the same callback has written before.
 *
 * @module
 */
import { FIRST, type Reader, type Span, type Tx } from "./access.ts";
import { vectors, type AnyTable, type Table } from "./tables.ts";

export interface Write {
  readonly table: string;
  readonly key: string;
  /** Undefined removes. */
  readonly value: string | Uint8Array | undefined;
}

export class WriteBuffer implements Tx {
  readonly #stored: Reader;
  #writes: Write[] = [];
  /** The last write of each key, by table; made when something is read after a write, which most commits never do. */
  #latest = new Map<string, Map<string, Write>>();
  #indexed = 0;

  constructor(stored: Reader) {
    this.#stored = stored;
  }

  /** Returns what was written, in order, and clears the buffer. */
  take(): Write[] {
    const writes = this.#writes;
    this.#writes = [];
    this.#indexed = 0;
    if (this.#latest.size > 0) this.#latest = new Map();
    return writes;
  }

  put<Row>(table: Table<Row>, key: string, row: Row): void {
    this.#writes.push({ table: table.name, key, value: table.encode(row) });
  }

  remove(table: AnyTable, key: string): void {
    this.#writes.push({ table: table.name, key, value: undefined });
  }

  putVector(memory: string, bytes: Uint8Array): void {
    this.#writes.push({ table: vectors.name, key: memory, value: bytes });
  }

  removeVector(memory: string): void {
    this.remove(vectors, memory);
  }

  get<Row>(table: Pick<Table<Row>, "name" | "decode">, key: string): Row | undefined {
    const write = this.#of(table)?.get(key);
    if (write === undefined) return this.#stored.get(table, key);
    return typeof write.value === "string" ? table.decode(write.value) : undefined;
  }

  has(table: AnyTable, key: string): boolean {
    const write = this.#of(table)?.get(key);
    return write === undefined ? this.#stored.has(table, key) : write.value !== undefined;
  }

  keys(table: AnyTable, span: Span): string[] {
    const { from, to, limit, descending } = span;
    const own = new Map<string, Write>();
    for (const [key, write] of this.#of(table) ?? []) if (key >= from && key < to) own.set(key, write);
    if (own.size === 0) return this.#stored.keys(table, span);
    const put = Array.from(own).flatMap(([key, { value }]) => (value === undefined ? [] : [key]));
    // As many more as were removed: then whatever lies beyond the last of them is beyond the limit too.
    const stored = this.#stored.keys(table, limit === undefined ? span : { ...span, limit: limit + own.size - put.length });
    const keys = [...stored.filter((key) => !own.has(key)), ...put].toSorted();
    return (descending === true ? keys.reverse() : keys).slice(0, limit);
  }

  rows<Row>(table: Table<Row>, span: Span): { key: string; row: Row }[] {
    if (this.#of(table) === undefined) return this.#stored.rows(table, span);
    return this.keys(table, span).map((key) => ({ key, row: this.get(table, key) as Row }));
  }

  isEmpty(table: AnyTable): boolean {
    return this.#of(table) === undefined ? this.#stored.isEmpty(table) : this.keys(table, FIRST).length === 0;
  }

  vectorBytes(memory: string): Uint8Array | undefined {
    const write = this.#of(vectors)?.get(memory);
    if (write === undefined) return this.#stored.vectorBytes(memory);
    return typeof write.value === "string" ? undefined : write.value;
  }

  #of({ name }: AnyTable): Map<string, Write> | undefined {
    for (; this.#indexed < this.#writes.length; this.#indexed++) {
      const write = this.#writes[this.#indexed] as Write;
      let table = this.#latest.get(write.table);
      if (table === undefined) this.#latest.set(write.table, (table = new Map<string, Write>()));
      table.set(write.key, write);
    }
    return this.#latest.get(name);
  }
}
