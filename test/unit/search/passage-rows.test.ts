import { expect, test } from "bun:test";
import { PASSAGE_DIMENSION, PASSAGES_MAX } from "../../../src/embeddings/embedder.ts";
import {
  dotStored,
  encodeVector,
  isComparable,
  isEmbedding,
  nearestPassage,
  passageCount,
  quantize,
  storedMemory,
  storedPassages,
  storedTerms,
  storedVector,
} from "../../../src/search/encoding.ts";
import { VectorRows } from "../../../src/search/vector-rows.ts";
import { chance, unitVector } from "./stored-vectors.ts";

const OWNER = { memory: "0123456789ab", generation: 3 };
const TERMS = Uint32Array.of(7, 8, 0xc0000001);

function passagesOf(count: number, seed: number): Float32Array[] {
  const random = chance(seed);
  return Array.from({ length: count }, () => unitVector(random, undefined, 1, PASSAGE_DIMENSION));
}

const rowOf = (vectors: readonly Float32Array[]) =>
  encodeVector({ vector: Float32Array.from(vectors.flatMap((one) => Array.from(one))), passages: vectors.length, terms: TERMS }, OWNER);

test("the vectors of passages are stored in one row, each as exactly as a single one is", () => {
  for (const count of [2, 3, PASSAGES_MAX]) {
    const vectors = passagesOf(count, count);
    const bytes = rowOf(vectors);
    expect([isEmbedding(bytes), passageCount(bytes), storedMemory(bytes), storedTerms(bytes)]).toEqual([true, count, OWNER.memory, TERMS]);
    const vector = storedVector(bytes);
    expect(isComparable(vector, count)).toBe(true);
    expect(encodeVector({ vector, passages: count, terms: TERMS }, OWNER)).toEqual(bytes);
    for (const [i, one] of storedPassages(bytes).entries()) {
      expect(Math.max(...one.map((number, at) => Math.abs(number - vectors[i]![at]!)))).toBeLessThan(0.002);
    }
  }
});

test("a query is as near as to the nearest passage, by the row and by the native comparison alike", () => {
  const vectors = passagesOf(40, 1);
  const rows = new VectorRows();
  const stored = [rowOf(vectors), rowOf(vectors.slice(0, 2)), encodeVector({ vector: vectors[39]!, terms: TERMS }, OWNER)];
  for (const bytes of stored) rows.add(bytes);
  for (const [passage, vector] of vectors.entries()) {
    const query = quantize(vector);
    expect(nearestPassage(query, stored[0]!)).toEqual({ passage, cosine: dotStored(query, stored[0]!) });
    expect(dotStored(query, stored[0]!)).toBeCloseTo(1, 2);
    expect(Array.from(rows.cosines(query, Uint32Array.of(0, 1, 2)))).toEqual(stored.map((bytes) => dotStored(query, bytes)));
  }
  expect(stored.map((_, slot) => rows.terms(slot))).toEqual([TERMS, TERMS, TERMS]);
});

test("a row is damaged that says it is of other numbers than its passages have, or of too many", () => {
  const bytes = rowOf(passagesOf(3, 2));
  const shape = new DataView(bytes.buffer, bytes.byteLength - 2);
  for (const numbers of [3 * PASSAGE_DIMENSION - 8, PASSAGE_DIMENSION, 0, (PASSAGES_MAX + 1) * PASSAGE_DIMENSION]) {
    const damaged = bytes.slice();
    new DataView(damaged.buffer, damaged.byteLength - 2).setUint16(0, (0x8000 + numbers + 1) & 0xffff, true);
    expect(isEmbedding(damaged)).toBe(false);
  }
  expect(shape.getUint16(0, true)).toBe(0x8000 + 3 * PASSAGE_DIMENSION + 1);
  const long = bytes.slice();
  long.fill(127, PASSAGE_DIMENSION, 2 * PASSAGE_DIMENSION);
  expect(isEmbedding(long)).toBe(false);
  const vector = storedVector(bytes);
  expect([3, 2, 4, 1, -1].map((count) => isComparable(vector, count))).toEqual([true, false, false, false, false]);
});
