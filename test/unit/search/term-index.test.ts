import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { FINGERPRINT } from "../../../src/embeddings/embedder.ts";
import { madeEmbedder } from "../../support/made-embedder.ts";
import { DamagedListsError, PostingLists } from "../../../src/search/words/posting-lists.ts";
import { digestOf, TermIndex } from "../../../src/search/words/term-index.ts";
import { sourceOf } from "./part-source.ts";
import type { QueryWords } from "../../../src/search/words/term-search.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { chance } from "./stored-vectors.ts";

/** The terms of memories by slot. */
type Stored = ReadonlyMap<number, readonly number[]>;
interface Word {
  weight: number;
  term: number;
}

const words = (...terms: number[]): Word[] => terms.map((term) => ({ weight: 1, term }));
/** From here on no other test has a term. */
const RARE = 0x80000000;

function queryOf(asked: readonly Word[]): QueryWords {
  const sorted = asked.toSorted((a, b) => a.term - b.term);
  return { ids: Uint32Array.from(sorted, ({ term }) => term), weights: Float64Array.from(sorted, ({ weight }) => weight) };
}

/** As they are stored: ascending, a fingerprint at the end. */
const storedTerms = (terms: readonly number[]): Uint32Array => Uint32Array.from(terms.length === 0 ? [] : [...terms, FINGERPRINT]).sort();

function indexOf(stored: Stored): TermIndex {
  const index = TermIndex.empty();
  for (const [slot, terms] of stored) index.add(slot, storedTerms(terms));
  return index;
}

/** Scores everything. @returns the slots of the best, the newest first */
function exhaustive(stored: Stored, asked: readonly Word[], limit: number, passes: (slot: number) => boolean = () => true): number[] {
  const total = asked.reduce((sum, { weight }) => sum + weight, 0);
  const scored = Array.from(stored, ([slot, terms]) => {
    const have = new Set(terms);
    const score = asked.reduce(
      (all, { weight, term }) => all + (have.has(term) ? Math.max(1, Math.round((2 ** 24 * weight) / total)) : 0),
      0,
    );
    return { slot, score };
  });
  const best = scored.filter(({ slot, score }) => score > 0 && passes(slot)).sort((a, b) => b.score - a.score || b.slot - a.slot);
  return newestFirst(best.slice(0, limit).map(({ slot }) => slot));
}

const newestFirst = (slots: Iterable<number>): number[] => Array.from(slots).sort((a, b) => b - a);

const filterOf = (passes: (slot: number) => boolean = () => true) => ({ passes, cost: 0 });

/** The best that an index finds, the newest first, and the slots of what it finds besides. */
function search(index: TermIndex, asked: readonly Word[], limit: number, passes?: (slot: number) => boolean) {
  const slots = index.search(queryOf(asked), limit, filterOf(passes));
  expect(new Set(slots).size).toBe(slots.length);
  return { best: newestFirst(slots.subarray(0, limit)), others: Array.from(slots.subarray(limit)) };
}

/** The slots of all that an index finds, the newest first. */
const slotsFound = (index: TermIndex, asked: readonly Word[], limit: number, passes?: (slot: number) => boolean): number[] =>
  newestFirst(index.search(queryOf(asked), limit, filterOf(passes)));

/** Terms of which a few are in many memories and many in few: the smaller the number, the more common. */
const term = fc.double({ min: 0, max: 1, noNaN: true }).map((x) => Math.floor(60 ** x));
const queryWords = (minLength: number, maxLength: number, of = term): fc.Arbitrary<Word[]> =>
  fc.uniqueArray(fc.record({ weight: fc.double({ min: 0.01, max: 1, noNaN: true }), term: of }), {
    minLength,
    maxLength,
    selector: (word) => word.term,
  });
/** Slots far apart, so that they are in several windows and their distances take several bytes. */
const memoriesOf = (distanceMax: number): fc.Arbitrary<Stored> =>
  fc
    .array(fc.tuple(fc.integer({ min: 1, max: distanceMax }), fc.uniqueArray(term, { minLength: 1, maxLength: 12 })), { maxLength: 120 })
    .map((memories) => {
      let slot = -1;
      return new Map(memories.map(([distance, terms]) => [(slot += distance), terms]));
    });
const memories = fc.oneof(memoriesOf(1), memoriesOf(300), memoriesOf(20_000));

describe("what covers most of a query", () => {
  test("is found as by scoring everything, of equal ones the newest", () => {
    fc.assert(
      fc.property(memories, queryWords(1, 8), fc.integer({ min: 1, max: 20 }), (stored, asked, limit) => {
        expect(search(indexOf(stored), asked, limit).best).toEqual(exhaustive(stored, asked, limit));
      }),
      { numRuns: 400 },
    );
  });

  test("is found among what passes a filter and was not removed, also after it was written and read", () => {
    fc.assert(
      fc.property(
        memories,
        queryWords(1, 4),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 2, max: 5 }),
        (stored, asked, share, removed) => {
          const index = indexOf(stored);
          const passes = (slot: number) => slot % share === 0;
          const left = new Map([...stored].filter(([slot]) => slot % removed !== 0));
          const expected = exhaustive(left, asked, 10, passes);
          for (const one of [index, readAgain(index)]) {
            const { best, others } = search(one, asked, 10, (slot) => left.has(slot) && passes(slot));
            expect(best).toEqual(expected);
            expect(others.filter((slot) => !left.has(slot) || !passes(slot))).toEqual([]);
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  test("is the same whatever was searched for before", () => {
    fc.assert(
      fc.property(memoriesOf(3_000), fc.array(queryWords(1, 5), { minLength: 2 }), (stored, queries) => {
        const index = indexOf(stored);
        for (const asked of queries) {
          expect(search(index, asked, 3).best).toEqual(exhaustive(stored, asked, 3));
        }
      }),
      { numRuns: 50 },
    );
  });

  test("is found by all words of a query that has very many", () => {
    fc.assert(
      fc.property(memories, queryWords(60, 200, fc.integer({ min: 1, max: 1_000 })), (stored, asked) => {
        expect(slotsFound(indexOf(stored), asked, 200)).toEqual(exhaustive(stored, asked, 200));
      }),
      { numRuns: 100 },
    );
  });

  test("a text is found by its own words", () => {
    const texts = Object.values(MEMORIES);
    const index = TermIndex.empty();
    for (const [slot, text] of texts.entries()) index.add(slot, madeEmbedder.embedMemory(text).terms);
    for (const text of texts) {
      const found = index.search(madeEmbedder.embedQuery(text).lexical, 3, filterOf());
      expect(Array.from(found, (slot) => texts[slot]!)).toContain(text);
    }
  });

  test("symbols are found by symbols", () => {
    const index = TermIndex.empty();
    for (const [slot, text] of ["Party on Friday 🎉", "🎉🎉", "Lunch on Friday"].entries())
      index.add(slot, madeEmbedder.embedMemory(text).terms);
    const found = index.search(madeEmbedder.embedQuery("🎉").lexical, 5, filterOf());
    expect(found.sort()).toEqual(Uint32Array.of(0, 1));
  });
});

describe("a rare word", () => {
  const COMMON = [1, 2, 3];
  const many = (count: number): Map<number, number[]> => new Map(Array.from({ length: count }, (_, slot) => [slot, COMMON]));

  test("leads to the memories that have it, however little it is of the query", () => {
    const stored = many(2_000).set(500, [RARE, 50, 51, 52]).set(20, [RARE, 3]);
    const { best, others } = search(indexOf(stored), words(...COMMON, RARE), 100);
    expect([best.length, others]).toEqual([100, [500, 20]]);
  });

  test("leads to the one among what passes a filter that has it", () => {
    const stored = many(2_000);
    for (let slot = 0; slot < 60; slot++) stored.set(slot, [RARE, 50, 51, 52]);
    const index = indexOf(stored);
    const asked = words(...COMMON, RARE);
    expect(search(index, asked, 10).others).toEqual([]);
    expect(search(index, asked, 10, (slot) => slot >= 59).others).toEqual([59]);
  });

  test("leads there from a query of thousands of words too", () => {
    const stored = many(100).set(50, [RARE, 50]);
    const asked = words(...Array.from({ length: 3_000 }, (_, i) => 100 + i), ...COMMON, RARE);
    expect(slotsFound(indexOf(stored), asked, 10)).toContain(50);
  });
});

describe("what a search looks at", () => {
  const SIZE = 100_000;
  const random = chance(3);
  /** As in texts, the n-th most common term is in a share of 1 in n of them. */
  const stored: Stored = new Map(
    Array.from({ length: SIZE }, (_, slot) => [slot, [...new Set(Array.from({ length: 12 }, () => Math.floor(20_000 ** random())))]]),
  );
  const index = indexOf(stored);

  test("is little beside the postings of its words, and what it finds is the same", () => {
    const asked = [3, 40, 300, 2_000, 15_000].map((one, i): Word => ({ weight: [0.2, 0.5, 0.8, 0.9, 1][i]!, term: one }));
    const terms = new Set(asked.map((word) => word.term));
    let postings = 0;
    for (const have of stored.values()) for (const one of have) if (terms.has(one)) postings++;
    expect(search(index, asked, 50).best).toEqual(exhaustive(stored, asked, 50));
    expect(index.probes).toBeLessThan(postings / 5);
  });

  test("is all of it where older memories cover less than the newest", () => {
    const fading = new Map(Array.from({ length: SIZE }, (_, slot) => [slot, slot >= SIZE - 280 ? [5, 6] : slot % 50 === 0 ? [5] : [7]]));
    const found = search(indexOf(fading), words(5, 6), 600).best;
    expect(found).toEqual(exhaustive(fading, words(5, 6), 600));
    expect(found).toHaveLength(600);
  });

  test("is bounded when all memories have all words, and those of rare words are found still", () => {
    const same = TermIndex.empty();
    const [terms, more] = [
      storedTerms(Array.from({ length: 20 }, (_, i) => i)),
      storedTerms([...Array.from({ length: 20 }, (_, i) => i), 99]),
    ];
    for (let slot = 0; slot < 140_000; slot++) same.add(slot, slot === 7 ? more : terms);
    const asked: Word[] = Array.from({ length: 20 }, (_, i) => ({ weight: 1, term: i }));
    expect(slotsFound(same, [...asked, ...words(99)], 10, (slot) => slot === 7)).toEqual([7]);
    expect(same.probes).toBeLessThan(900_000);
  });

  test("is bounded when all memories have all of hundreds of words", () => {
    const same = TermIndex.empty();
    const terms = Array.from({ length: 250 }, (_, i) => i);
    for (let slot = 0; slot < 14_000; slot++) same.add(slot, storedTerms(terms));
    expect(slotsFound(same, words(...terms), 10, (slot) => slot === 7)).toEqual([7]);
    expect(same.probes).toBeGreaterThan(1_600_000);
    expect(same.probes).toBeLessThan(1_600_000 + 14_000);
  });

  test("is bounded when the filter is dear and lets nothing through of what has the words, but for rare ones", () => {
    const same = TermIndex.empty();
    for (let slot = 0; slot < 100_000; slot++) same.add(slot, storedTerms(slot === 9 ? [5, 6] : [5]));
    let asked = 0;
    const filter = { passes: (slot: number) => (asked++, slot === 9), cost: 100 };
    expect(same.search(queryOf(words(5, 6)), 3, filter)).toEqual(Uint32Array.of(9));
    expect(asked).toBeLessThan(10_000);
    asked = 0;
    expect(same.same(FINGERPRINT, 3, filter)).toEqual([]);
    expect(asked).toBeLessThan(10_000);
  });

  test("of one word that all have, is the newest", () => {
    const same = TermIndex.empty();
    for (let slot = 0; slot < 200_000; slot++) same.add(slot, storedTerms([5]));
    expect(slotsFound(same, words(5), 3)).toEqual([199_999, 199_998, 199_997]);
    expect(same.probes).toBeLessThan(40_000);
  });

  test("takes some five bytes a posting, whatever the terms", () => {
    const postings = [...stored.values()].reduce((sum, { length }) => sum + length, 0);
    expect(index.bytes / postings).toBeLessThan(5);
    const once = TermIndex.empty();
    for (let slot = 0; slot < 1_000; slot++) once.add(slot, storedTerms(Array.from({ length: 100 }, (_, i) => RARE + 100 * slot + i)));
    expect(once.bytes / 100_000).toBeLessThan(32);
  });
});

test("a memory of 10,000 terms is found by each of them, and terms that are near each other's places are kept apart", () => {
  const index = TermIndex.empty();
  const long = Array.from({ length: 10_000 }, (_, i) => RARE + i * 64);
  index.add(0, storedTerms([1]));
  index.add(5, storedTerms(long));
  for (const one of long) expect(slotsFound(index, words(one), 2)).toEqual([5]);
  expect(slotsFound(index, words(RARE + 1), 2)).toEqual([]);
});

test("nothing is found in an empty index, nor by a query without words, nor a memory without terms", () => {
  const index = TermIndex.empty();
  expect(slotsFound(index, words(1), 10)).toEqual([]);
  index.add(0, storedTerms([]));
  index.add(1, storedTerms([2]));
  expect(slotsFound(index, [], 10)).toEqual([]);
  expect(slotsFound(index, words(1, 3), 10)).toEqual([]);
  expect([slotsFound(index, words(2), 10), index.slots]).toEqual([[1], 2]);
});

function readAgain(index: TermIndex): TermIndex {
  return TermIndex.read(sourceOf(index.parts()));
}

describe("of a file that says what cannot be", () => {
  /** Where the list of one term has its entry, and its newest block. */
  interface Places {
    entry: Uint32Array;
    block: Uint32Array;
  }
  const NEWEST = 1;
  const BLOCK = 2;
  const DAMAGES: { name: string; damage: (places: Places) => void; leadsAstray?: true }[] = [
    { name: "a slot that is not there", damage: ({ entry }) => (entry[NEWEST] = 1e6) },
    { name: "a block in no chunk", damage: ({ entry }) => (entry[BLOCK] = 2 ** 30), leadsAstray: true },
    { name: "a block longer than its chunk", damage: ({ entry }) => (entry[BLOCK] = 2 ** 18 - 16 + 8) },
    { name: "a block longer than any", damage: ({ entry }) => (entry[BLOCK] = (entry[BLOCK]! & ~15) + 9) },
    { name: "more distances than a block has room for", damage: ({ block }) => (block[2] = 0xffff) },
    { name: "blocks in a circle", damage: ({ entry, block }) => (block[0] = entry[BLOCK]!), leadsAstray: true },
    { name: "an older block with newer slots", damage: ({ block }) => (block[1] = 3_999), leadsAstray: true },
  ];
  for (const { name, damage, leadsAstray } of DAMAGES) {
    test(`${name} is noticed, and nothing is read from elsewhere`, () => {
      const index = indexOf(new Map(Array.from({ length: 4_000 }, (_, slot) => [slot, [7, 100 + (slot % 50)]])));
      const parts = index.parts().map((part) => new Uint8Array(Buffer.concat([part])));
      const numbers = parts.map(({ buffer }) => new Uint32Array(buffer.slice(0, buffer.byteLength & ~3)));
      const table = numbers
        .slice(2, 66)
        .find((entries) => entries.some((term, at) => at % 4 === 0 && term === 7 && entries[at + 3] === 4_000))!;
      const entry = table.subarray(table.findIndex((term, at) => at % 4 === 0 && term === 7 && table[at + 3] === 4_000));
      const chunk = numbers.at(-1)!;
      damage({ entry, block: chunk.subarray((entry[BLOCK]! & ~15) >> 2) });
      const damaged = TermIndex.read(sourceOf(numbers.map(({ buffer }) => new Uint8Array(buffer))));
      expect(() => damaged.search(queryOf(words(7)), 20, filterOf())).toThrow(DamagedListsError);
      if (leadsAstray === true) expect(() => damaged.digests()).toThrow(DamagedListsError);
    });
  }
});

test("a list of millions, whose blocks are in many chunks, is kept and read again", () => {
  const slots = 3_000_000;
  const lists = PostingLists.empty(1);
  for (let slot = 0; slot < slots; slot++) lists.append(7, 2 * slot);
  const { key, tables, chunks } = lists.parts();
  const source = sourceOf(
    [...tables, ...chunks].map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength)),
  );
  const lengths = (parts: readonly ArrayBufferView[]) => parts.map(({ byteLength }) => byteLength);
  const again = PostingLists.read(source, { key, tables: lengths(tables), chunks: lengths(chunks) });
  expect(chunks.length).toBeGreaterThan(20);
  for (const read of [lists, again]) {
    let expected = 2 * slots;
    for (const slot of read.slots(read.find(7)!)) if (slot !== (expected -= 2)) throw new Error(`${slot} instead of ${expected}`);
    expect(expected).toBe(0);
  }
});

test("what is read again can be added to", () => {
  const stored = new Map(Array.from({ length: 5_000 }, (_, slot) => [slot, [slot % 7, slot % 100, RARE + slot]]));
  const half = indexOf(new Map([...stored].slice(0, 2_500)));
  const again = readAgain(half);
  for (const [slot, terms] of [...stored].slice(2_500)) again.add(slot, storedTerms(terms));
  for (const asked of [words(3), words(3, 50), words(RARE + 10), words(RARE + 4_999, 1)]) {
    expect(search(again, asked, 20).best).toEqual(exhaustive(stored, asked, 20));
  }
  expect(readAgain(again).parts()).toEqual(again.parts());
  expect(Array.from(again.digests())).toEqual(Array.from(stored.values(), (terms) => digestOf(storedTerms(terms))));
});
