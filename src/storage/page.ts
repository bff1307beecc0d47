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
import { behind } from "./keys.ts";
import type { Readable } from "./tables.ts";
import { unlessUnreadable } from "./unreadable.ts";
import { LOOKS_PER_TURN } from "./walk.ts";

interface Item {
  id: string;
  json: JsonText;
}

/** How far the search for records has come without finding one, and what that took. */
interface Passed {
  passed: string;
  looks: number;
}

export type Found = Item | Passed;

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
  const page = new Gathered(limit);
  for (const record of records) if (!page.takes(record)) return page.json(true);
  return page.json(false);
}

/**
 * The same of records that take long to find: other requests are let through in between, and after `looksMax` looks the page ends,
 * even if it is empty. Its `last_id` is then the id up to which everything was looked at. A page that has much already ends
 * instead of waiting for its turn: thousands of lists can be waiting at the same time.
 */
export async function pageOfSteps(records: Iterable<Found>, limit: number, looksMax: number = LIMITS.listLooksMax): Promise<JsonText> {
  const page = new SteppedPage(limit, looksMax);
  for (const record of records) {
    const state = page.add(record);
    if (state === "ended") return page.answer;
    if (state === "paused") await nextTurn();
  }
  return page.json(false);
}

/** The same of records that are read in pieces. */
export async function pageOfPieces(
  pieces: AsyncIterable<readonly Found[]>,
  limit: number,
  looksMax: number = LIMITS.listLooksMax,
): Promise<JsonText> {
  const page = new SteppedPage(limit, looksMax);
  for await (const piece of pieces) {
    for (const record of piece) {
      const state = page.add(record);
      if (state === "ended") return page.answer;
      if (state === "paused") await nextTurn();
    }
  }
  return page.json(false);
}

class Gathered {
  readonly #limit: number;
  readonly #records: Item[] = [];
  /** Characters of all of them; bytes of the first `counted`. */
  #length = 0;
  #bytes = 0;
  #counted = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** False for the first one that is too much. */
  takes(record: Item): boolean {
    if (this.#records.length === this.#limit || this.#isFull()) return false;
    this.#records.push(record);
    this.#length += record.json.length;
    return true;
  }

  /** Bytes are counted where characters leave a doubt: on most pages they need not be. */
  #isFull(): boolean {
    if (this.#length * UTF8_BYTES_PER_UNIT_MAX <= LIMITS.pageBytesMax) return false;
    for (const { json } of this.#records.slice(this.#counted)) this.#bytes += Buffer.byteLength(json);
    this.#counted = this.#records.length;
    return this.#bytes > LIMITS.pageBytesMax;
  }

  get isHeavy(): boolean {
    return this.#length > HELD_LENGTH_MAX;
  }

  json(hasMore: boolean, lastId?: string): JsonText {
    return listOf(this.#records, hasMore, lastId);
  }
}

class SteppedPage extends Gathered {
  readonly #looksMax: number;
  #looks = 0;
  #sinceTurn = 0;
  /** How far the search had come when it ended the page. */
  #passed: string | undefined;

  constructor(limit: number, looksMax: number) {
    super(limit);
    this.#looksMax = looksMax;
  }

  add(record: Found): "ended" | "paused" | undefined {
    if ("json" in record) return this.takes(record) ? undefined : "ended";
    this.#looks += record.looks;
    this.#sinceTurn += record.looks;
    const isDue = this.#sinceTurn >= LOOKS_PER_TURN;
    if (this.#looks >= this.#looksMax || (isDue && this.isHeavy)) {
      this.#passed = record.passed;
      return "ended";
    }
    if (!isDue) return undefined;
    this.#sinceTurn = 0;
    return "paused";
  }

  /** The page that was ended. */
  get answer(): JsonText {
    return this.json(true, this.#passed);
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
export function* rowsOf<Row>(
  reader: Reader,
  table: Readable<Row>,
  span: Omit<Span, "limit">,
  atMost: number,
): Generator<{ key: string; row: Row }> {
  let { from, to } = span;
  for (let left = atMost; left > 0;) {
    const limit = Math.min(left, Math.max(ROWS_AT_ONCE_MIN, reader.recordsAtOnce));
    const rows = rowsOrGaps(reader, table, { ...span, from, to, limit });
    for (const { key, row } of rows) {
      if (row === undefined) continue;
      yield { key, row };
      left--;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return;
    if (span.descending === true) to = last.key;
    else from = behind(last.key);
  }
}

/** The list envelope. `first_id` and `last_id` are null on an empty page, unless the search for records stopped at a `lastId`. */
function listOf(records: readonly Item[], hasMore: boolean, lastId = records.at(-1)?.id): JsonText {
  const data = jsonArray(records.map((item) => item.json));
  return jsonWith({ object: "list" }, { data }, { has_more: hasMore, first_id: records[0]?.id ?? null, last_id: lastId ?? null });
}
