import { expect, test } from "bun:test";
import { DIMENSION_MAX } from "../../../src/embeddings/embedder.ts";
import { cosineOf, HEAD } from "../../../src/vectors/encoding.ts";
import { newRowComparer } from "../../../src/vectors/row-comparer.ts";
import { chance } from "./stored-vectors.ts";

const random = chance(3);
const below = (count: number) => Math.floor(random() * count);
const PIECE_SLOTS = 16_384;
const CHUNK_BYTES = 100_000;

interface Row {
  numbers: Int8Array;
  /** Of a sparse one, whose numbers are the last of the vector's. */
  pairs: { place: number; number: number }[];
  terms: number[];
  scale: number;
  place: number;
}

/** Damaged ones name places that no vector has, and are longer than any. */
function anyRow(damaged: boolean): Row {
  const isSparse = random() < 0.5;
  const [most, places] = damaged ? [4_000, 65_536] : [isSparse ? DIMENSION_MAX - HEAD : DIMENSION_MAX, DIMENSION_MAX];
  return {
    numbers: Int8Array.from({ length: 4 * below(most / 4 + 1) }, () => below(255) - 127),
    pairs: Array.from({ length: below(isSparse ? 60 : 1) }, () => ({ place: below(places), number: below(65_536) - 32_768 })),
    terms: Array.from({ length: below(random() < 0.05 ? 700 : 20) }, () => below(2 ** 32)),
    scale: 1 + below(65_535),
    place: isSparse ? HEAD : 0,
  };
}

/** Writes rows down as `vector-rows.ts` says. */
function written(rows: readonly Row[]): { pieces: Uint32Array[]; chunks: Uint8Array[] } {
  const pieces = Array.from({ length: Math.ceil(rows.length / PIECE_SLOTS) }, () => new Uint32Array(4 * PIECE_SLOTS));
  const chunks: Uint8Array[] = [];
  let end = CHUNK_BYTES;
  for (const [slot, { numbers, pairs, terms, scale, place }] of rows.entries()) {
    const bytes = numbers.length + 4 * (pairs.length + terms.length);
    if (end + bytes > CHUNK_BYTES) {
      chunks.push(new Uint8Array(new SharedArrayBuffer(CHUNK_BYTES)));
      end = 0;
    }
    const chunk = chunks.at(-1)!;
    chunk.set(new Uint8Array(numbers.buffer), end);
    const words = new Uint32Array(chunk.buffer, end + numbers.length, pairs.length + terms.length);
    words.set([...pairs.map((pair) => (pair.number << 16) | pair.place), ...terms]);
    const counts = pairs.length | (terms.length << 12);
    const at = [end, numbers.length | ((chunks.length - 1) << 16), counts, scale | (place > 0 ? 1 << 16 : 0)];
    pieces[Math.floor(slot / PIECE_SLOTS)]!.set(at, (slot % PIECE_SLOTS) * 4);
    end += bytes;
  }
  return { pieces, chunks };
}

/** The places of some slots, side by side. */
function placesOf(pieces: readonly Uint32Array[], slots: readonly number[] | Uint32Array): Uint32Array {
  return Uint32Array.from(
    Array.from(slots).flatMap((slot) => {
      const at = (slot % PIECE_SLOTS) * 4;
      return Array.from(pieces[Math.floor(slot / PIECE_SLOTS)]!.subarray(at, at + 4));
    }),
  );
}

/** What comparers read where it is: they do not keep it from being collected. */
const kept: (Uint8Array | Uint32Array)[] = [];

function comparerOf(rows: readonly Row[]) {
  const comparer = newRowComparer();
  const { pieces, chunks } = written(rows);
  kept.push(...pieces, ...chunks);
  for (const piece of pieces) comparer.addPiece(piece);
  for (const chunk of chunks) comparer.addChunk(chunk);
  return { comparer, pieces, chunks };
}

function cosine(query: Int16Array, { numbers, pairs, place, scale }: Row): number {
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum = (sum + numbers[i]! * (query[place + i] ?? 0)) | 0;
  for (const pair of pairs) sum = (sum + pair.number * (query[pair.place] ?? 0)) | 0;
  return cosineOf(sum, scale) + 0;
}

const BLEND = { share: 0.3, unrelated: -0.1, same: 0.7 };

interface Words {
  weights: Float64Array;
  keys: Uint32Array;
  answers: Uint32Array;
}
const NO_WORDS: Words = { weights: new Float64Array(0), keys: new Uint32Array(1), answers: new Uint32Array(1) };

/** To each word many of these terms answer, well or less well, and to some more than one of them. */
function wordsOf(terms: readonly number[], size: number): Words {
  const keys = Uint32Array.from({ length: 1 + 20 * size }, () => terms[below(terms.length)]!);
  const answers = keys.map(() => (below(size) << 8) | below(256));
  return { weights: Float64Array.from({ length: size }, random), keys, answers };
}

function covered({ weights, keys, answers }: Words, terms: readonly number[]): number {
  const worths = weights.map(() => 0);
  for (let entry = 1; entry < keys.length; entry++) {
    const [word, worth] = [answers[entry]! >>> 8, answers[entry]! & 255];
    if (worth > worths[word]! && terms.includes(keys[entry]!)) worths[word] = worth;
  }
  const sum = (values: Float64Array) => values.reduce((total, value) => total + value, 0);
  return sum(weights) === 0 ? 0 : sum(weights.map((weight, word) => weight * worths[word]!)) / 255 / sum(weights);
}

function bounded(query: Int16Array, words: Words, row: Row, last: number): number {
  if (row.terms.at(-1) === last) return Infinity;
  const near = (cosine(query, row) - BLEND.unrelated) / (BLEND.same - BLEND.unrelated);
  return BLEND.share * covered(words, row.terms) + (1 - BLEND.share) * Math.max(0, Math.min(1, near));
}

test.each([false, true])("rows of all lengths are compared and bounded as a plain loop does it, damaged ones %p", (damaged) => {
  const rows = Array.from({ length: 20_000 }, (_, i) =>
    i % 50 === 0 ? anyRow(damaged) : { ...anyRow(damaged), numbers: new Int8Array(8) },
  );
  const { comparer, pieces } = comparerOf(rows);
  expect(pieces).toHaveLength(2);
  for (const count of [0, 1, 7, 8, 23, 24, 25, 100, 3_000]) {
    const query = Int16Array.from({ length: DIMENSION_MAX }, () => below(65_536) - 32_768);
    const slots = Uint32Array.from({ length: count }, (_, i) => (i % 2 === 0 ? 50 * below(400) : below(rows.length)));
    const found = new Float64Array(count);
    comparer.compare(query, slots, found);
    expect(found).toEqual(Float64Array.from(slots, (slot) => cosine(query, rows[slot]!)));
    if (count === 0) continue;
    const last = rows[slots[0]!]!.terms.at(-1) ?? 0;
    // With room for more.
    const [cosines, bounds] = [new Float64Array(count + 3), new Float64Array(count + 3)];
    const { share, unrelated, same } = BLEND;
    const best = new Uint32Array(below(count + 1));
    const asked = Array.from(slots.subarray(0, 100)).flatMap((slot) => rows[slot]!.terms);
    const words = asked.length === 0 ? NO_WORDS : wordsOf(asked, 6);
    const { weights, keys, answers } = words;
    const next = comparer.bound(
      query,
      placesOf(pieces, slots),
      count,
      cosines,
      bounds,
      best,
      weights,
      keys,
      answers,
      last,
      share,
      unrelated,
      same,
    );
    expect(cosines.subarray(0, count)).toEqual(found);
    const ordered = bounds.slice(0, count).toSorted().toReversed();
    expect(Float64Array.from(best, (i) => bounds[i]!)).toEqual(ordered.subarray(0, best.length));
    expect(new Set(best).size).toBe(best.length);
    expect(next).toBe(ordered[best.length] ?? -Infinity);
    for (const [i, slot] of slots.entries()) {
      const [bound, exact] = [bounds[i]!, bounded(query, words, rows[slot]!, last)];
      if (exact === Infinity) expect(bound).toBe(Infinity);
      // Never less, in whatever order the same is computed.
      else expect(bound > exact && bound < exact + 1e-8).toBe(true);
    }
  }
});

test("a vector that is gone has a cosine of 0, also where no row was ever written", () => {
  const comparer = newRowComparer();
  const places = new Uint32Array(4 * PIECE_SLOTS);
  kept.push(places);
  comparer.addPiece(places);
  const [query, slots] = [new Int16Array(DIMENSION_MAX).fill(1), Uint32Array.of(0)];
  const [alone, cosines, bounds] = [Float64Array.of(7), Float64Array.of(7), Float64Array.of(7)];
  comparer.compare(query, slots, alone);
  const { weights, keys, answers } = wordsOf([0], 1);
  const best = new Uint32Array(1);
  const next = comparer.bound(query, new Uint32Array(4), 1, cosines, bounds, best, weights, keys, answers, 0, 0.5, 0, 1);
  expect([...alone, ...cosines]).toEqual([0, 0]);
  expect(bounds[0]).toBeCloseTo(0, 6);
  expect(next).toBe(-Infinity);
});

test("what there is no row for is refused", () => {
  const { comparer, pieces, chunks } = comparerOf(Array.from({ length: 100 }, () => anyRow(false)));
  const query = new Int16Array(DIMENSION_MAX);
  const compare = (...slots: number[]) => comparer.compare(query, Uint32Array.from(slots), new Float64Array(slots.length));
  // A slot that is there and has no row is as one that is gone.
  compare(0, 99, 100, PIECE_SLOTS - 1);
  expect(() => compare(0, PIECE_SLOTS)).toThrow(RangeError);
  expect(() => compare(2 ** 32 - 1)).toThrow(RangeError);
  expect(() => comparer.compare(query, Uint32Array.of(1, 2), new Float64Array(1))).toThrow(RangeError);
  for (const length of [0, DIMENSION_MAX - 1]) {
    expect(() => comparer.compare(new Int16Array(length), Uint32Array.of(1), new Float64Array(1))).toThrow(RangeError);
  }
  const bound = ({
    length = 2,
    words = 1,
    keys = 3,
    share = 0.5,
    count = 1,
    asked = 8,
    found = 2,
    bounds = 2,
    numbers = DIMENSION_MAX,
  } = {}) =>
    comparer.bound(
      new Int16Array(numbers),
      placesOf(pieces, [0, 1, 2]).subarray(0, asked),
      length,
      new Float64Array(found),
      new Float64Array(bounds),
      new Uint32Array(count),
      new Float64Array(words),
      new Uint32Array(keys),
      Uint32Array.of(1 << 8, 255, 255),
      0,
      share,
      0,
      1,
    );
  for (const right of [{}, { count: 0 }, { count: 2 }, { asked: 12 }, { found: 3, bounds: 4 }, { length: 0, count: 0 }]) bound(right);
  for (const wrong of [
    { length: 3 },
    { length: 2 ** 32 - 1 },
    { bounds: 1 },
    { found: 1 },
    { numbers: DIMENSION_MAX - 1 },
    { words: 0 },
    { keys: 2 },
    { keys: 4 },
    { share: -0.1 },
    { share: 1.1 },
    { share: NaN },
    { count: 3 },
    { asked: 4 },
    { asked: 7 },
  ]) {
    expect(() => bound(wrong)).toThrow(RangeError);
  }
  const places = pieces[0]!;
  for (const [word, value] of [
    [0, CHUNK_BYTES],
    [0, 2 ** 32 - 4],
    [1, chunks.length << 16],
    [2, 2 ** 32 - 1],
  ] as const) {
    const before = places[word]!;
    places[word] = value;
    expect(() => compare(1, 0)).toThrow(RangeError);
    expect(() => bound()).toThrow(RangeError);
    places[word] = before;
  }
  compare(1, 0);
  bound();
  expect(() => newRowComparer().compare(query, Uint32Array.of(0), new Float64Array(1))).toThrow(RangeError);
});
