/**
 * Rows fetched from the database for one callback, and their reader.
 *
 * Callbacks are synchronous, and the database is far away. So a callback is run on what was fetched; what it misses is tracked and ends the
 * run, and once that was fetched too it is run again. An answer of the run in which nothing is missing holds.
 *
 * @module
 */
import { bareIdTime } from "../../../lib/ids.ts";
import { invariant } from "../../../lib/invariant.ts";
import { FIRST, NotFetched, type LatestReader, type PrefixSpan, type Span } from "../../access.ts";
import { successor } from "../../keys.ts";
import type { AnyTable, Readable, VectorTable } from "../../tables.ts";

/** A row; the entry of an index has no text. */
export interface StoredRow {
  readonly key: string;
  readonly text: string | null;
  readonly rev: number;
}

export interface SpanAsk {
  readonly table: string;
  readonly span: Span;
  /** True if the texts are wanted, or the keys alone. */
  readonly withRows: boolean;
  /** The last key alone is wanted of those that begin with the same `width` characters; all are where it is left out. */
  readonly width?: number;
}

/** Keys and spans that are to be read, or were. */
export class ReadSet {
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

  add(other: ReadSet): void {
    for (const [table, keys] of other.keys) for (const key of keys) this.addKey(table, key);
    for (const [name, ask] of other.spans) this.spans.set(name, ask);
  }
}

/** Content of an answer, of more than one may have asked for. */
export interface FoundRows {
  /** By table and key. */
  readonly rows: ReadonlyMap<string, ReadonlyMap<string, StoredRow>>;
  readonly spans: ReadonlyMap<string, readonly StoredRow[]>;
}

/**
 * Assumed rows that were not fetched for this callback: a commit finds out whether it is still so. It can be another with each
 * call, as others change it and caches are emptied.
 */
export interface KnownRows {
  /** null: there is none; undefined: it is not known. */
  row(table: string, key: string): StoredRow | null | undefined;
  span(name: string, ask: SpanAsk): readonly StoredRow[] | undefined;
}

/** A callback that still misses something after this many runs asks for something else each time. */
const RUNS_MAX = 1_000;

/** The rows of one span that were found. */
interface FoundSpan {
  readonly ask: SpanAsk;
  readonly rows: readonly StoredRow[];
}

export class FetchedRows implements KnownRows {
  readonly #known: KnownRows | undefined;
  readonly #rows = new Map<string, Map<string, StoredRow | null>>();
  readonly #spans = new Map<string, FoundSpan>();
  /** Keys that the present run has asked for and missed. */
  #missing = new ReadSet();
  /** Keys that the present run has read. */
  #read = new ReadSet();
  #runs = 0;
  /** Number of snapshots that the fetched rows are of. */
  #snapshots = 0;
  #hasUsedKnown = false;
  #length = 0;

  constructor(known?: KnownRows) {
    this.#known = known;
  }

  /** To be called before each run. */
  begin(): void {
    invariant(++this.#runs <= RUNS_MAX, "a callback that asks for something else each time it is run");
    this.#missing = new ReadSet();
    this.#read = new ReadSet();
  }

  /** Checks whether all that the present run has read was fetched at once. */
  get isOneSnapshot(): boolean {
    return this.#snapshots <= 1 && !this.#hasUsedKnown;
  }

  get hasFetched(): boolean {
    return this.#snapshots > 0;
  }

  /** Characters of the texts that were fetched. */
  get length(): number {
    return this.#length;
  }

  get missing(): ReadSet {
    return this.#missing;
  }

  get read(): ReadSet {
    return this.#read;
  }

  /** A row of the tables as the callback sees it; null where there is none. From then on `row` gives the same, so that this is checked. */
  readRow(table: string, key: string): StoredRow | null {
    this.#read.addKey(table, key);
    const fetched = this.#rows.get(table)?.get(key);
    if (fetched !== undefined) return fetched;
    const known = this.#known?.row(table, key);
    if (known !== undefined) {
      this.#hasUsedKnown = true;
      this.#note(table, key, known);
      return known;
    }
    this.#missing.addKey(table, key);
    throw new NotFetched(`${table} ${key}`);
  }

  /** Has a row fetched with whatever else the present run misses. */
  ahead(table: string, key: string): void {
    if (this.row(table, key) === undefined) this.#missing.addKey(table, key);
  }

  aheadOf(ask: SpanAsk): void {
    const name = nameOfSpan(ask);
    if (this.span(name, ask) === undefined) this.#missing.spans.set(name, ask);
  }

  /** The same without noting it; undefined when it is not known. */
  row(table: string, key: string): StoredRow | null | undefined {
    const fetched = this.#rows.get(table)?.get(key);
    return fetched === undefined ? this.#known?.row(table, key) : fetched;
  }

  /** The same of a span, ascending or descending as asked; undefined when it was not fetched yet, which is tracked. */
  readSpan(ask: SpanAsk): readonly StoredRow[] | undefined {
    const name = nameOfSpan(ask);
    this.#read.spans.set(name, ask);
    const fetched = this.#fetchedSpan(name, ask);
    if (fetched !== undefined) return fetched;
    const known = this.#known?.span(name, ask);
    if (known === undefined) {
      this.#missing.spans.set(name, ask);
      return undefined;
    }
    this.#hasUsedKnown = true;
    this.#spans.set(name, { ask, rows: known });
    return known;
  }

  /** The same without noting it. */
  span(name: string, ask: SpanAsk): readonly StoredRow[] | undefined {
    return this.#fetchedSpan(name, ask) ?? this.#known?.span(name, ask);
  }

  #fetchedSpan(name: string, ask: SpanAsk): readonly StoredRow[] | undefined {
    const own = this.#spans.get(name);
    if (own !== undefined) return own.rows;
    for (const found of this.#spans.values()) {
      const rows = partOf(found, ask);
      if (rows !== undefined) return rows;
    }
    return undefined;
  }

  /** Takes what an answer says of all that was asked for. @param snapshots - how many it is of: each statement sees one of its own */
  take(readSet: ReadSet, found: FoundRows, snapshots = 1): void {
    this.#snapshots += snapshots;
    for (const [table, keys] of readSet.keys) {
      for (const key of keys) this.#note(table, key, found.rows.get(table)?.get(key) ?? null);
    }
    for (const rows of found.rows.values()) for (const { text } of rows.values()) this.#length += text?.length ?? 0;
    for (const [name, ask] of readSet.spans) {
      const rows = found.spans.get(name) ?? [];
      this.#spans.set(name, { ask, rows });
      if (!ask.withRows) continue;
      for (const row of rows) {
        this.#note(ask.table, row.key, row);
        this.#length += row.text?.length ?? 0;
      }
    }
  }

  #note(table: string, key: string, row: StoredRow | null): void {
    let rows = this.#rows.get(table);
    if (rows === undefined) this.#rows.set(table, (rows = new Map<string, StoredRow | null>()));
    rows.set(key, row);
  }

  /** Drops what others have changed since. @param changed - keys by table */
  forget(changed: ReadonlyMap<string, ReadonlySet<string>>): void {
    for (const [table, rows] of this.#rows) {
      const keys = changed.get(table);
      if (keys !== undefined) for (const key of rows.keys()) if (keys.has(key)) rows.delete(key);
    }
    for (const [name, { ask }] of this.#spans) {
      const { from, to } = ask.span;
      for (const key of changed.get(ask.table) ?? []) if (key >= from && key < to) this.#spans.delete(name);
    }
  }
}

/** The rows that are asked for, if they are all among those of another span. */
function partOf({ ask: { table, span, withRows, width }, rows }: FoundSpan, asked: SpanAsk): readonly StoredRow[] | undefined {
  const { from, to, limit = Infinity } = asked.span;
  const isDescending = span.descending === true;
  if (width !== undefined || asked.width !== undefined) return undefined;
  if (table !== asked.table || (asked.withRows && !withRows) || isDescending !== (asked.span.descending === true)) return undefined;
  if (isDescending ? to !== span.to || from < span.from : from !== span.from || to > span.to) return undefined;
  const part = rows.filter(({ key }) => key >= from && key < to).slice(0, limit);
  const isWhole = span.limit === undefined || rows.length < span.limit || part.length < rows.length;
  return isWhole || part.length === limit ? part : undefined;
}

/** Runs a callback now, and lets the caller have its result or its error later. */
export function attemptOf<Result>(callback: () => Result): () => Result {
  try {
    const result = callback();
    return () => result;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

export function nameOfSpan({ table, span: { from, to, limit, descending }, withRows, width }: SpanAsk): string {
  return JSON.stringify([table, from, to, limit ?? null, descending ?? false, withRows, width ?? null]);
}

/** Key that tells whether a table is empty. */
export function firstKeyOf(table: string): SpanAsk {
  return { table, span: FIRST, withRows: false };
}

export class RerunReader implements LatestReader {
  readonly now: number;
  /** Time of the latest change by another server among the rows that were read and say so. */
  newestChangeAt = 0;
  /** The time of the newest id up to which another server is taking something away, of what was read: new ids have to be later. */
  takenUntil = 0;
  readonly #fetched: FetchedRows;
  /** True if the callback asks how many records it reads at once. */
  isToldHowMany = false;
  readonly #isOwnRevision: (rev: number) => boolean;
  readonly #recordsAtOnce: number;

  /** @param isOwnRevision - whether this server has given a row its revision */
  constructor(
    fetched: FetchedRows,
    now: number,
    { isOwnRevision = () => true, recordsAtOnce = 1 }: { isOwnRevision?: (rev: number) => boolean; recordsAtOnce?: number } = {},
  ) {
    this.#fetched = fetched;
    this.#isOwnRevision = isOwnRevision;
    this.#recordsAtOnce = recordsAtOnce;
    this.now = now;
  }

  get recordsAtOnce(): number {
    this.isToldHowMany = true;
    return this.#recordsAtOnce;
  }

  get<Row>(table: Readable<Row>, key: string): Row | undefined {
    const stored = this.#fetched.readRow(table.name, key);
    if (stored === null) return undefined;
    const row = table.decode(stored.text ?? "");
    if ((table.changedAt !== undefined || table.takenUntil !== undefined) && !this.#isOwnRevision(stored.rev)) {
      this.newestChangeAt = Math.max(this.newestChangeAt, table.changedAt?.(row) ?? 0);
      if (table.takenUntil !== undefined) this.takenUntil = Math.max(this.takenUntil, bareIdTime(table.takenUntil(row)));
    }
    return row;
  }

  ahead({ name }: AnyTable, keys: Iterable<string>): void {
    for (const key of keys) this.#fetched.ahead(name, key);
  }

  aheadOf(tables: readonly AnyTable[], span: Span): void {
    for (const { name } of tables) this.#fetched.aheadOf({ table: name, span, withRows: false });
  }

  has(table: AnyTable, key: string): boolean {
    return this.#fetched.readRow(table.name, key) !== null;
  }

  keys(table: AnyTable, span: Span): string[] {
    return this.#span({ table: table.name, span, withRows: false }).map(({ key }) => key);
  }

  lastOfEach(table: AnyTable, width: number, span: PrefixSpan): string[] {
    return this.#span({ table: table.name, span, withRows: false, width }).map(({ key }) => key);
  }

  rows<Row>(table: Readable<Row>, span: Span): { key: string; row: Row }[] {
    return this.#span({ table: table.name, span, withRows: true }).map(({ key, text }) => ({ key, row: table.decode(text ?? "") }));
  }

  /** Most tables of which this is asked are empty: the run goes to its end on that, and what it misses besides is found out with it. */
  isEmpty(table: AnyTable): boolean {
    return (this.#fetched.readSpan(firstKeyOf(table.name)) ?? []).length === 0;
  }

  derived<Row extends object, Result>(_table: Readable<Row>, _key: string, _row: Row, make: () => Result): Result {
    return make();
  }

  revision(table: AnyTable, key: string): number | undefined {
    return this.#span({ table: table.name, span: { from: key, to: successor(key), limit: 1 }, withRows: false })[0]?.rev;
  }

  vectorBytes(table: VectorTable, id: string): Uint8Array | undefined {
    const text = this.#fetched.readRow(table.name, id)?.text;
    return text === undefined || text === null ? undefined : Buffer.from(text, "base64");
  }

  #span(ask: SpanAsk): readonly StoredRow[] {
    const found = this.#fetched.readSpan(ask);
    if (found === undefined) throw new NotFetched(ask.table);
    return found;
  }
}
