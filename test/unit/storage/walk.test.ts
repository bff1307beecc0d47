/**
 * The walk against the plainest answer: filter every record, newest first. The reader here is arrays that count what is
 * read of them; that the store reads the same is in `store.test.ts`.
 */
import { expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Reader, Span } from "../../../src/storage/access.ts";
import type { AnyTable } from "../../../src/storage/tables.ts";
import { matches, posting, leapfrogJoin } from "../../../src/storage/walk.ts";
import { firstBareIdAt } from "../../../src/lib/ids.ts";

const RECORDS: AnyTable = { name: "records" };
const COLOURS: AnyTable = { name: "by_colour" };
const SIZES: AnyTable = { name: "by_size" };

/** Keys of tables in order; `keysRead` counts what was handed out. */
class ArrayReader implements Reader {
  readonly recordsAtOnce = 1;
  keysRead = 0;

  ahead(): void {}
  aheadOf(): void {}
  readonly #tables = new Map<string, string[]>();

  constructor(tables: Record<string, string[]>) {
    for (const [name, keys] of Object.entries(tables)) this.#tables.set(name, keys.toSorted());
  }

  keys(table: AnyTable, { from, to, limit, descending }: Span): string[] {
    const keys = this.#keysOf(table).filter((key) => key >= from && key < to);
    if (descending === true) keys.reverse();
    const read = keys.slice(0, limit);
    this.keysRead += read.length;
    return read;
  }

  has(table: AnyTable, key: string): boolean {
    return this.#keysOf(table).includes(key);
  }

  readonly now = 0;
  get = unused;
  derived = unused;
  rows = unused;
  isEmpty = unused;
  lastOfEach = unused;
  vectorBytes = unused;

  #keysOf(table: AnyTable): string[] {
    return this.#tables.get(table.name) ?? [];
  }
}

function unused(): never {
  throw new Error("the walk reads keys alone");
}

/** Record number n; numbers are times, so later ones are newer. */
const idOf = (number: number) => firstBareIdAt(number);
const numberOf = new Map(Array.from({ length: 1_500 }, (_, number) => [idOf(number), number]));

/** A record's colours and sizes, some of them rare. The prefixes of an index are of equal length, and neighbours in order. */
interface Item {
  colours: string[];
  sizes: string[];
}

function readerOf(items: readonly Item[]): ArrayReader {
  return new ArrayReader({
    records: items.map((_, number) => idOf(number)),
    by_colour: items.flatMap(({ colours }, number) => colours.map((colour) => colour + idOf(number))),
    by_size: items.flatMap(({ sizes }, number) => sizes.map((size) => size + idOf(number))),
  });
}

/** Runs of records that are alike, so that whole chunks belong to one posting and none of the next. */
const items = fc
  .array(
    fc.record({
      colours: fc.uniqueArray(fc.constantFrom("ka", "kb", "kc")),
      sizes: fc.uniqueArray(fc.constantFrom("s1", "s2")),
      run: fc.constantFrom(1, 1, 2, 40, 200),
    }),
    {
      maxLength: 14,
    },
  )
  .map((runs) => runs.flatMap(({ run, ...item }) => Array.from({ length: run }, () => item)).slice(0, 1_500));
const bound = fc.option(fc.integer({ min: 0, max: 1_500 }), { nil: undefined });
const wanted = (values: string[]) => fc.option(fc.uniqueArray(fc.constantFrom(...values), { minLength: 1 }), { nil: undefined });

/** A walk without pauses. */
function* walk(...[reader, records, filter, bounds]: Parameters<typeof leapfrogJoin>): Generator<string> {
  for (const id of leapfrogJoin(reader, records, filter, bounds, Number.POSITIVE_INFINITY)) if (typeof id === "string") yield id;
}

test("a walk gives what filtering every record gives, newest first", () => {
  fc.assert(
    fc.property(items, wanted(["ka", "kb", "kc", "kd"]), wanted(["s1", "s2"]), bound, bound, (all, colours, sizes, from, before) => {
      const reader = readerOf(all);
      const filter = [
        ...(colours === undefined ? [] : [posting(COLOURS, ...colours)]),
        ...(sizes === undefined ? [] : [posting(SIZES, ...sizes)]),
      ];
      const bounds = { from: from === undefined ? undefined : idOf(from), before: before === undefined ? undefined : idOf(before) };
      const walked = Array.from(walk(reader, RECORDS, filter, bounds), (id) => numberOf.get(id));
      const passes = (item: Item) =>
        (colours === undefined || colours.some((colour) => item.colours.includes(colour))) &&
        (sizes === undefined || sizes.some((size) => item.sizes.includes(size)));
      const passing = all.flatMap((item, number) => (passes(item) ? [number] : []));
      const expected = passing.filter((number) => number >= (from ?? 0) && number < (before ?? Number.POSITIVE_INFINITY));
      expect(walked).toEqual(expected.toReversed());
      for (const number of [0, 1, all.length - 1, all.length]) {
        expect([number, matches(reader, filter, idOf(number))]).toEqual([number, filter.length === 0 || passing.includes(number)]);
      }
    }),
    { numRuns: 300 },
  );
});

test("whoever stops early has what a whole walk begins with", () => {
  fc.assert(
    fc.property(items, fc.nat(50), (all, count) => {
      const filter = [posting(COLOURS, "ka", "kb"), posting(SIZES, "s1")];
      const whole = [...walk(readerOf(all), RECORDS, filter)];
      const first: string[] = [];
      for (const id of walk(readerOf(all), RECORDS, filter)) {
        if (first.length === count) break;
        first.push(id);
      }
      expect(first).toEqual(whole.slice(0, count));
    }),
    { numRuns: 100 },
  );
});

test("a walk costs about what its rarest condition has, not what the others have", () => {
  // One in five hundred is large; all are red.
  const all = Array.from({ length: 1_500 }, (_, number) => ({ colours: ["ka"], sizes: number % 500 === 7 ? ["s2"] : ["s1"] }));
  const reader = readerOf(all);
  const walked = Array.from(walk(reader, RECORDS, [posting(COLOURS, "ka"), posting(SIZES, "s2")]), (id) => numberOf.get(id));
  expect(walked).toEqual([1_007, 507, 7]);
  // The three themselves, and of the others a chunk of 32 at the start and a few at each of them: not the 1,500.
  expect(reader.keysRead).toBeLessThanOrEqual(3 + 32 + 3 * 4);
});

test("where each second of many ids would do, they are read in large chunks; where each hundredth, a few at a time", () => {
  const reads = (every: number) => {
    const reader = readerOf(Array.from({ length: 6_000 }, (_, i) => ({ colours: ["ka"], sizes: [i % every === 0 ? "s1" : "s2"] })));
    let chunks = 0;
    const keys = reader.keys.bind(reader);
    reader.keys = (table, span) => (chunks++, keys(table, span));
    expect([...walk(reader, RECORDS, [posting(COLOURS, "ka"), posting(SIZES, "s1")])].length).toBe(6_000 / every);
    return { chunks, keys: reader.keysRead };
  };
  const each2nd = reads(2);
  expect(each2nd.chunks).toBeLessThan(60);
  const each100th = reads(100);
  // Sixty ids, and of the others two to four for each.
  expect(each100th.keys).toBeLessThan(60 + 32 + 60 * 5);
});

test("a walk in steps says after so many looks that it has not come to the end, and goes on from there", () => {
  const apart = readerOf(
    Array.from({ length: 1_000 }, (_, i) => ({ colours: [i % 2 === 0 ? "ka" : "kb"], sizes: [i % 2 === 0 && i > 1 ? "s2" : "s1"] })),
  );
  const both = [posting(COLOURS, "ka"), posting(SIZES, "s1")];
  const pausesIn = (probes: number) => {
    const found = Array.from(leapfrogJoin(apart, RECORDS, both, {}, probes));
    expect(found.flatMap((id) => (typeof id === "string" ? [numberOf.get(id)] : []))).toEqual([0]);
    return found.length - 1;
  };
  const pauses = pausesIn(100);
  expect(pauses).toBeGreaterThan(5);
  expect(pausesIn(200)).toBeLessThanOrEqual(Math.ceil(pauses / 2));
  expect(pausesIn(100_000)).toBe(0);
  // With many ranges to look at a step is a longer one.
  const many = [posting(COLOURS, "ka", ...Array.from({ length: 63 }, (_, i) => `k${i}`)), posting(SIZES, "s1")];
  expect(Array.from(leapfrogJoin(apart, RECORDS, many, {}, 100)).length).toBeGreaterThan(20 * pauses);
});

test("the first page of a long list is not paid for by its length", () => {
  const reader = readerOf(Array.from({ length: 1_500 }, () => ({ colours: ["ka"], sizes: ["s1"] })));
  const pages = walk(reader, RECORDS, [posting(COLOURS, "ka")]);
  const first = Array.from({ length: 21 }, () => numberOf.get(String(pages.next().value)));
  expect(first).toEqual(Array.from({ length: 21 }, (_, i) => 1_499 - i));
  expect(reader.keysRead).toBe(32);
  // Who reads on reads more at a time: the next chunk has 64.
  for (let i = 21; i < 33; i++) pages.next();
  expect(reader.keysRead).toBe(32 + 64);
});

test("a condition that nothing meets ends the walk, and a posting without prefixes is such a one", () => {
  const reader = readerOf([{ colours: ["ka"], sizes: ["s1"] }]);
  expect([...walk(reader, RECORDS, [posting(COLOURS, "ka"), posting(SIZES, "s9")])]).toEqual([]);
  expect([...walk(reader, RECORDS, [posting(COLOURS)])]).toEqual([]);
  expect(matches(reader, [posting(COLOURS)], idOf(0))).toBe(false);
});

test("the same prefix twice is once", () => {
  expect(posting(COLOURS, "ka", "kb", "ka")).toEqual({ table: "by_colour", prefixes: ["ka", "kb"] });
});
