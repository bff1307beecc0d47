import { expect, test } from "bun:test";
import { madeEmbedder } from "../../support/made-embedder.ts";
import { quantize, storedHome, storedTerms } from "../../../src/search/encoding.ts";
import { VectorRows } from "../../../src/search/vector-rows.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";
import { chance, dot, idAt, storedBytes, unitVector } from "./stored-vectors.ts";

const random = chance(1);
const VECTORS = [
  ...Object.values(MEMORIES).map((text) => madeEmbedder.embedMemory(text).vector),
  ...Array.from({ length: 30 }, () => unitVector(random)),
];
/** More than two chunks of this size have. */
const ROWS = 40_000;
const CHUNK_BYTES = 9 * 2 ** 20;

test("cosines are those of the whole vectors to the last bit, in whatever chunks they lie", () => {
  const rows = new VectorRows(undefined, CHUNK_BYTES);
  const stored = VECTORS.map((vector, i) => storedBytes({ vector, terms: Uint32Array.of(...Array.from({ length: i % 5 }, () => i)) }));
  const isGone = (slot: number) => slot % 1_000 === 7;
  for (let slot = 0; slot < ROWS; slot++) rows.add(isGone(slot) ? undefined : stored[slot % stored.length]);
  const seen = new VectorRows(rows.shared);
  expect([rows.length, seen.length, rows.shared.chunks.length]).toEqual([ROWS, ROWS, 3]);
  const slots = Uint32Array.from({ length: 3_000 }, (_, i) => (i < 40 ? 1_000 * i + 7 : Math.floor(random() * ROWS)));
  for (const { text } of QUESTIONS.slice(0, 3)) {
    const query = madeEmbedder.embedQuery(text).vector;
    const cosines = VECTORS.map((vector) => dot(query, vector));
    // Those of each chunk one after the other, and not.
    for (const asked of [slots, slots.toSorted()]) {
      const expected = Float64Array.from(asked, (slot) => (isGone(slot) ? 0 : cosines[slot % VECTORS.length]!));
      for (const one of [rows, seen]) expect(one.cosines(quantize(query), asked)).toEqual(expected);
    }
  }
  for (const slot of slots.subarray(0, 100)) {
    const terms = isGone(slot) ? new Uint32Array(0) : storedTerms(stored[slot % stored.length]!);
    for (const one of [rows, seen])
      expect([one.terms(slot).slice(), one.termCount(slot), one.has(slot)]).toEqual([terms.slice(), terms.length, !isGone(slot)]);
  }
});

test("another thread sees the rows of what it was told of, and no more until it is told again", () => {
  const rows = new VectorRows(undefined, 2 ** 17);
  const stored = storedBytes({ vector: VECTORS[0]! });
  rows.add(stored);
  const first = new VectorRows(rows.shared);
  rows.add(stored);
  expect(first.length).toBe(2);
  const told = rows.shared;
  while (rows.shared === told) rows.add(stored);
  const { length } = first;
  expect(length).toBe(rows.length - 1);
  rows.add(stored);
  expect(first.length).toBe(length);
  expect(new VectorRows(rows.shared).length).toBe(length + 2);
});

test.each([
  { told: "", expected: 0, blocksMax: 1 / 20, roomMax: 1.3 },
  { told: ", side by side where they were expected", expected: 1, blocksMax: 1 / 150, roomMax: 1.02 },
])("rows of one home lie together$told", ({ expected, blocksMax, roomMax }) => {
  const [users, each] = [20, 400];
  const rows = new VectorRows();
  const homeAt = (slot: number) => (slot * 7) % users;
  rows.expect(
    Array.from({ length: expected * users * each }, (_, slot) => storedHome(storedBytes({ vector: VECTORS[0]! }, idAt(homeAt(slot))))),
  );
  let bytes = 0;
  for (let slot = 0; slot < users * each; slot++) {
    const stored = storedBytes({ vector: VECTORS[slot % 30]!, terms: Uint32Array.of(1, 2, 3) }, idAt(homeAt(slot)));
    rows.add(stored);
    bytes += stored.byteLength;
  }
  const places = Array.from({ length: rows.length }, (_, slot) => ({ home: homeAt(slot), at: rows.terms(slot).byteOffset }));
  places.sort((a, b) => a.at - b.at);
  const blocks = places.filter(({ home }, i) => i === 0 || home !== places[i - 1]!.home).length;
  expect(blocks).toBeLessThan(rows.length * blocksMax);
  expect(places.at(-1)!.at - places[0]!.at).toBeLessThan(roomMax * bytes);
});
