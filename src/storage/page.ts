/**
 * One page of a list, as the wire has it.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import type { Id } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { UTF8_BYTES_PER_UNIT_MAX } from "../lib/text.ts";
import { jsonArray, jsonWith, type JsonText } from "../lib/json.ts";
import { eachFetched, type Reader, type Span } from "./access.ts";
import { successor } from "./keys.ts";
import type { Index, Readable } from "./tables.ts";
import { unlessUnreadable } from "./unreadable.ts";
import { PROBES_PER_TURN } from "./walk.ts";

interface Item {
  id: string;
  json: JsonText;
}

/** Progress of the search for records without finding one, and its cost. */
interface Passed {
  passed: string;
  probes: number;
}

export type PageEntry = Item | Passed;

/** Characters of records that a page may hold while other requests are let through. */
const HELD_LENGTH_MAX = 64 * 1024;

export interface Page<AnyId extends string = Id> {
  /** At most this many records. */
  limit: number;
  /** The last id of the page before; its record need not exist any more. */
  startingAfter?: AnyId | undefined;
}

/** A page of these records: at most `limit`, and fewer when they are large. */
export function pageOf(records: Iterable<Item>, limit: number): JsonText {
  const page = new PageBuilder(limit);
  for (const record of records) if (page.add(record) === "ended") break;
  return page.json;
}

/**
 * The same of records that take long to find: other requests are let through in between, and after `probesMax` probes the page ends,
 * even if it is empty. Its `last_id` is then the id up to which everything was looked at. A page that has much already ends
 * instead of waiting for its turn: thousands of lists can be waiting at the same time.
 */
export async function pageOfBatches(
  batches: Iterable<Iterable<PageEntry>> | AsyncIterable<Iterable<PageEntry>>,
  limit: number,
  probesMax: number = LIMITS.listProbesMax,
): Promise<JsonText> {
  const page = new PageBuilder(limit, probesMax);
  for await (const batch of batches) {
    for (const record of batch) {
      const state = page.add(record);
      if (state === "ended") return page.json;
      if (state === "paused") await nextTurn();
    }
  }
  return page.json;
}

class PageBuilder {
  readonly #limit: number;
  readonly #probesMax: number;
  readonly #records: Item[] = [];
  /** Characters of all of them; bytes of the first `#counted`. */
  #length = 0;
  #bytes = 0;
  #counted = 0;
  #probes = 0;
  #looksSinceTurn = 0;
  #hasMore = false;
  /** Position of the search when it ended the page. */
  #passed: string | undefined;

  constructor(limit: number, probesMax = Infinity) {
    this.#limit = limit;
    this.#probesMax = probesMax;
  }

  /** @returns whether the page ends before this record or place, or other requests are to be let through behind it */
  add(found: PageEntry): "ended" | "paused" | undefined {
    const state = "json" in found ? this.#addRecord(found) : this.#pass(found);
    this.#hasMore = state === "ended";
    return state;
  }

  #addRecord(record: Item): "ended" | undefined {
    if (this.#records.length === this.#limit || this.#isFull()) return "ended";
    this.#records.push(record);
    this.#length += record.json.length;
    return undefined;
  }

  #pass({ passed, probes }: Passed): "ended" | "paused" | undefined {
    this.#probes += probes;
    this.#looksSinceTurn += probes;
    const isTurnOver = this.#looksSinceTurn >= PROBES_PER_TURN;
    if (this.#probes >= this.#probesMax || (isTurnOver && this.#length > HELD_LENGTH_MAX)) {
      this.#passed = passed;
      return "ended";
    }
    if (!isTurnOver) return undefined;
    this.#looksSinceTurn = 0;
    return "paused";
  }

  /** Bytes are counted where characters leave a doubt: on most pages they need not be. */
  #isFull(): boolean {
    if (this.#length * UTF8_BYTES_PER_UNIT_MAX <= LIMITS.pageBytesMax) return false;
    for (const { json } of this.#records.slice(this.#counted)) this.#bytes += Buffer.byteLength(json);
    this.#counted = this.#records.length;
    return this.#bytes > LIMITS.pageBytesMax;
  }

  /** The list envelope. `first_id` and `last_id` are null on an empty page, unless the search for records ended it. */
  get json(): JsonText {
    const ends = { first_id: this.#records[0]?.id ?? null, last_id: this.#passed ?? this.#records.at(-1)?.id ?? null };
    const data = jsonArray(this.#records.map((record) => record.json));
    return jsonWith({ object: "list" }, { data }, { has_more: this.#hasMore, ...ends });
  }
}

/** At least this many rows are read at once: all that most pages need, and not much more than a page of large ones may hold. */
const ROWS_AT_ONCE_MIN = 25;

/** The rows of a span; undefined in the place of one that cannot be read. */
export function rowsOrGaps<Row>(reader: Reader, table: Readable<Row>, span: Span): { key: string; row: Row | undefined }[] {
  const rows = unlessUnreadable(() => reader.rows(table, span));
  return rows ?? eachFetched(reader.keys(table, span), (key) => ({ key, row: unlessUnreadable(() => reader.get(table, key)) }));
}

/** The rows of a span that can be read, from either end, read as they are asked for. */
export function rowsOf<Row>(reader: Reader, table: Readable<Row>, span: Omit<Span, "limit">, atMost: number): Generator<KeyedRow<Row>> {
  return inPieces(reader, span, atMost, (piece) => rowsOrGaps(reader, table, piece).map(({ key, row }) => ({ at: key, key, row })));
}

/** The same of rows whose entries in an index are in a span. */
export function rowsOfEntries<Row>(
  reader: Reader,
  table: Readable<Row>,
  index: Index<Row>,
  span: Omit<Span, "limit">,
  atMost: number,
): Generator<KeyedRow<Row>> {
  return inPieces(reader, span, atMost, (piece) =>
    eachFetched(reader.keys(index, piece), (entry) => {
      const key = index.recordOf(entry);
      return { at: entry, key, row: unlessUnreadable(() => reader.get(table, key)) };
    }),
  );
}

interface KeyedRow<Row> {
  key: string;
  row: Row;
}

/** @param read - gives the rows of a piece of the span with their places in it; a row is undefined where it cannot be read */
function* inPieces<Row>(
  reader: Reader,
  span: Omit<Span, "limit">,
  atMost: number,
  read: (piece: Span) => { at: string; key: string; row: Row | undefined }[],
): Generator<KeyedRow<Row>> {
  let { from, to } = span;
  for (let left = atMost; left > 0;) {
    const limit = Math.min(left, Math.max(ROWS_AT_ONCE_MIN, reader.recordsAtOnce));
    const rows = read({ ...span, from, to, limit });
    for (const { key, row } of rows) {
      if (row === undefined) continue;
      yield { key, row };
      left--;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return;
    if (span.descending === true) to = last.at;
    else from = successor(last.at);
  }
}
