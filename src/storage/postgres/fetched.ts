/**
 * What was fetched of the database for one work, and the reader of it.
 *
 * Works are synchronous, and the database is far away. So a work is run on what was fetched; what it misses is noted and ends the run,
 * and once that was fetched too it is run again. An answer of the run in which nothing is missing holds.
 *
 * @module
 */
import { invariant } from "../../lib/invariant.ts";
import { FIRST, Unread, type Reader, type Span } from "../access.ts";
import type { AnyTable, Readable, VectorTable } from "../tables.ts";

/** A row; the entry of an index has no text. */
export interface StoredRow {
  readonly key: string;
  readonly text: string | null;
  readonly rev: number;
}

export interface SpanAsk {
  readonly table: string;
  readonly span: Span;
  /** Whether the texts are wanted, or the keys alone. */
  readonly withRows: boolean;
}

/** Keys and spans that are to be read, or were. */
export class Asks {
  /** By table. */
  readonly keys = new Map<string, Set<string>>();
  /** By what says all of one. */
  readonly spans = new Map<string, SpanAsk>();

  get isEmpty(): boolean {
    return this.keys.size === 0 && this.spans.size === 0;
  }

  addKey(table: string, key: string): void {
    const keys = this.keys.get(table);
    if (keys === undefined) this.keys.set(table, new Set([key]));
    else keys.add(key);
  }

  add(other: Asks): void {
    for (const [table, keys] of other.keys) for (const key of keys) this.addKey(table, key);
    for (const [name, ask] of other.spans) this.spans.set(name, ask);
  }
}

/** What an answer says, of more than one may have asked for. */
export interface Found {
  /** By table and key. */
  readonly rows: ReadonlyMap<string, ReadonlyMap<string, StoredRow>>;
  readonly spans: ReadonlyMap<string, readonly StoredRow[]>;
}

/** What is held for known although it was not fetched for this work: a commit finds out whether it is still so. */
export interface KnownRows {
  /** null: there is none; undefined: it is not known. */
  row(table: string, key: string): StoredRow | null | undefined;
  span(name: string): readonly StoredRow[] | undefined;
}

/** A work that still misses something after this many runs asks for something else each time. */
const RUNS_MAX = 1_000;

export class Fetched {
  readonly #known: KnownRows | undefined;
  readonly #rows = new Map<string, Map<string, StoredRow | null>>();
  readonly #spans = new Map<string, readonly StoredRow[]>();
  /** What the present run has asked for and was not there. */
  #missing = new Asks();
  /** What the present run has read. */
  #read = new Asks();
  #runs = 0;
  #fetches = 0;
  #hasUsedKnown = false;

  constructor(known?: KnownRows) {
    this.#known = known;
  }

  /** To be called before each run. */
  begin(): void {
    invariant(++this.#runs <= RUNS_MAX, "a work that asks for something else each time it is run");
    this.#missing = new Asks();
    this.#read = new Asks();
  }

  /** Whether all that the present run has read was fetched at once. */
  get isOneMoment(): boolean {
    return this.#fetches <= 1 && !this.#hasUsedKnown;
  }

  get missing(): Asks {
    return this.#missing;
  }

  get read(): Asks {
    return this.#read;
  }

  /** A row of the tables as the work sees it; null where there is none. */
  row(table: string, key: string): StoredRow | null {
    const found = this.peek(table, key);
    this.#read.addKey(table, key);
    if (found !== undefined) {
      this.#hasUsedKnown ||= this.#rows.get(table)?.has(key) !== true;
      return found;
    }
    this.#missing.addKey(table, key);
    throw new Unread(`${table} ${key}`);
  }

  /** Has a row fetched with whatever else the present run misses. */
  ahead(table: string, key: string): void {
    if (this.peek(table, key) === undefined) this.#missing.addKey(table, key);
  }

  /** The same without noting it; undefined when it is not known. */
  peek(table: string, key: string): StoredRow | null | undefined {
    const fetched = this.#rows.get(table)?.get(key);
    return fetched === undefined ? this.#known?.row(table, key) : fetched;
  }

  /** The rows of a span, ascending or descending as asked; undefined when they were not fetched yet, which is noted. */
  span(ask: SpanAsk): readonly StoredRow[] | undefined {
    const name = nameOfSpan(ask);
    this.#read.spans.set(name, ask);
    const found = this.peekSpan(name);
    if (found === undefined) this.#missing.spans.set(name, ask);
    else this.#hasUsedKnown ||= !this.#spans.has(name);
    return found;
  }

  peekSpan(name: string): readonly StoredRow[] | undefined {
    return this.#spans.get(name) ?? this.#known?.span(name);
  }

  /** Takes what an answer says of all that was asked for. */
  take(asks: Asks, found: Found): void {
    this.#fetches++;
    for (const [table, keys] of asks.keys) {
      let rows = this.#rows.get(table);
      if (rows === undefined) this.#rows.set(table, (rows = new Map<string, StoredRow | null>()));
      for (const key of keys) rows.set(key, found.rows.get(table)?.get(key) ?? null);
    }
    for (const name of asks.spans.keys()) this.#spans.set(name, found.spans.get(name) ?? []);
  }
}

/** Runs a work now, and lets the caller have its result or its error later. */
export function attemptOf<Result>(work: () => Result): () => Result {
  try {
    const result = work();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

export function nameOfSpan({ table, span: { from, to, limit, descending }, withRows }: SpanAsk): string {
  return JSON.stringify([table, from, to, limit ?? null, descending ?? false, withRows]);
}

/** What tells whether a table is empty. */
export function firstOf(table: string): SpanAsk {
  return { table, span: FIRST, withRows: false };
}

export class FetchedReader implements Reader {
  readonly now: number;
  /** When the row was changed that another server was the last to change, of those that were read and say so. */
  newestChangeAt = 0;
  readonly #fetched: Fetched;
  readonly #isOwnRevision: (rev: number) => boolean;

  /** @param isOwnRevision - whether this server has given a row its revision */
  constructor(fetched: Fetched, now: number, isOwnRevision: (rev: number) => boolean = () => true) {
    this.#fetched = fetched;
    this.#isOwnRevision = isOwnRevision;
    this.now = now;
  }

  get<Row>(table: Readable<Row>, key: string): Row | undefined {
    const stored = this.#fetched.row(table.name, key);
    if (stored === null) return undefined;
    const row = table.decode(stored.text ?? "");
    const { updatedAt } = row as { updatedAt?: unknown };
    if (typeof updatedAt === "number" && updatedAt > this.newestChangeAt && !this.#isOwnRevision(stored.rev))
      this.newestChangeAt = updatedAt;
    return row;
  }

  ahead({ name }: AnyTable, keys: Iterable<string>): void {
    for (const key of keys) this.#fetched.ahead(name, key);
  }

  has(table: AnyTable, key: string): boolean {
    return this.#fetched.row(table.name, key) !== null;
  }

  keys(table: AnyTable, span: Span): string[] {
    return this.#span({ table: table.name, span, withRows: false }).map(({ key }) => key);
  }

  rows<Row>(table: Readable<Row>, span: Span): { key: string; row: Row }[] {
    return this.#span({ table: table.name, span, withRows: true }).map(({ key, text }) => ({ key, row: table.decode(text ?? "") }));
  }

  /** Most tables of which this is asked are empty: the run goes to its end on that, and what it misses besides is found out with it. */
  isEmpty(table: AnyTable): boolean {
    return (this.#fetched.span(firstOf(table.name)) ?? []).length === 0;
  }

  derived<Row extends object, Result>(_table: Readable<Row>, _key: string, _row: Row, make: () => Result): Result {
    return make();
  }

  vectorBytes(table: VectorTable, id: string): Uint8Array | undefined {
    const text = this.#fetched.row(table.name, id)?.text;
    return text === undefined || text === null ? undefined : Buffer.from(text, "base64");
  }

  #span(ask: SpanAsk): readonly StoredRow[] {
    const found = this.#fetched.span(ask);
    if (found === undefined) throw new Unread(ask.table);
    return found;
  }
}
