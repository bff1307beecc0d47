import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { DIMENSION_MAX, NO_COSINE } from "../../../src/embeddings/embedder.ts";
import { madeEmbedder } from "../../support/made-embedder.ts";
import { dotStored } from "../../../src/search/encoding.ts";
import {
  encodeVector,
  isComparable,
  isEmbedding,
  isOfOldForm,
  quantize,
  storedGeneration,
  storedMemory,
  storedTerms,
  storedVector,
} from "../../../src/search/encoding.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { chance, dot, storedBytes, unitVector } from "./stored-vectors.ts";

const embedder = madeEmbedder;
const TEXTS = Object.values(MEMORIES).slice(0, 60);
const LONG = Object.values(MEMORIES).join(" ").slice(0, 10_000);
const QUERY = embedder.embedQuery("Which of them is it about?").vector;
const DENSE = unitVector(chance(1));

/** So many numbers, the rest zero, in places that are far apart or side by side. */
const anyVector = fc
  .tuple(fc.constantFrom(1, 2, 3, 8, 383, 384, 1_536), fc.nat(DIMENSION_MAX - 1), fc.constantFrom(1, 7, 319))
  .map(([count, from, step]) => {
    const [all, vector] = [unitVector(chance(count + from)), new Float32Array(DIMENSION_MAX)];
    for (let i = 0; i < count; i++) vector[(from + i * step) % DIMENSION_MAX] = all[i]!;
    return vector;
  });

test("a vector, its terms and its owner come out as they went in, the numbers in 127ths of the largest", () => {
  const owner = fc.record({ memory: fc.stringMatching(/^[0-9A-Za-z]{12}$/), generation: fc.nat(2 ** 32 - 1) });
  const property = fc.property(anyVector, fc.uint32Array({ maxLength: 40 }), owner, (vector, terms, { memory, generation }) => {
    const bytes = encodeVector({ vector, terms }, { memory, generation });
    expect(isEmbedding(bytes)).toBe(true);
    const stored = storedVector(bytes);
    expect(Math.max(...vector.map((number, i) => Math.abs(number - (stored[i] ?? 0))))).toBeLessThan(0.006);
    expect(storedTerms(bytes)).toEqual(terms);
    expect([storedMemory(bytes), storedGeneration(bytes)]).toEqual([memory, generation]);
    expect(dotStored(quantize(DENSE), bytes)).toBe(dot(DENSE, vector));
    expect(encodeVector({ vector: storedVector(bytes), terms }, { memory, generation })).toEqual(bytes);
  });
  fc.assert(property, { numRuns: 300 });
});

test("a vector that is far longer than it should be keeps its direction, at unit length", () => {
  for (const factor of [1, 3, 1_000, 1e12]) {
    const vector = new Float32Array(DIMENSION_MAX);
    [vector[3], vector[700]] = [0.6 * factor, -0.8 * factor];
    const stored = storedVector(encodeVector({ vector, terms: new Uint32Array() }, { memory: "0".repeat(12), generation: 1 }));
    expect({ factor, near: Math.abs(stored[3]! - 0.6) < 0.01 && Math.abs(stored[700]! + 0.8) < 0.01 }).toEqual({ factor, near: true });
  }
});

test("what is no number in a vector is stored as 0, beside what is", () => {
  for (const none of [Number.NaN, Infinity, -Infinity]) {
    const bytes = storedBytes({ vector: Float32Array.of(0.6, none, 0.8) });
    const [first, second, third] = storedVector(bytes);
    expect({ none, isEmbedding: isEmbedding(bytes), second }).toEqual({ none, isEmbedding: true, second: 0 });
    expect([first, third].map((number) => Math.round(10 * number!))).toEqual([6, 8]);
  }
});

test("a vector loses less than 0.002 of a cosine", () => {
  for (const text of [...TEXTS, LONG, "x"]) {
    const { vector, terms } = embedder.embedMemory(text);
    const cosine = vector.reduce((sum, value, i) => sum + value * QUERY[i]!, 0);
    expect(Math.abs(dotStored(quantize(QUERY), storedBytes({ vector, terms })) - cosine)).toBeLessThan(0.002);
  }
});

test("the numbers of a query are whole 32,767ths, and what is none is 0", () => {
  expect(quantize(Float32Array.of(1, -1, 0.5, 0, 7, -7, Number.NaN, Infinity))).toEqual(
    Int16Array.of(32_767, -32_767, 16_384, 0, 32_767, -32_767, 0, 32_767),
  );
});

test("what was stored before the encoder is known as an embedding of its record that compares with nothing", () => {
  const [meaning, pairs, terms] = [256, 30, 25];
  const bytes = new Uint8Array(meaning + 4 * (pairs + terms) + 20).fill(7);
  const trailer = new DataView(bytes.buffer, bytes.byteLength - 20);
  trailer.setUint32(0, 3, true);
  Buffer.from(bytes.buffer, bytes.byteLength - 16).write("0VQk3aB4x1Zq", "latin1");
  trailer.setUint16(16, 20_000, true);
  trailer.setUint16(18, pairs, true);
  expect([isEmbedding(bytes), isOfOldForm(bytes), isOfOldForm(storedBytes({ vector: DENSE }))]).toEqual([true, true, false]);
  expect([storedMemory(bytes), storedGeneration(bytes)]).toEqual(["0VQk3aB4x1Zq", 3]);
  expect([storedVector(bytes).length, storedTerms(bytes).length, dotStored(quantize(DENSE), bytes)]).toEqual([0, 0, NO_COSINE]);
  expect([isEmbedding(bytes.slice(0, 100)), isEmbedding(bytes.slice(1))]).toEqual([false, false]);
});

test("a vector of few numbers takes no more than they need", () => {
  const short = DENSE.slice().fill(0, 384);
  expect(storedBytes({ vector: short }).byteLength).toBeLessThan(420);
  expect(storedBytes({ vector: DENSE }).byteLength).toBeLessThan(1_570);
});

test("what is no embedding is known to be none, wherever bytes are missing or changed", () => {
  const whole = storedBytes(embedder.embedMemory(TEXTS[0]!));
  for (let length = 0; length < whole.byteLength; length++) {
    const short = whole.slice(0, length);
    if (isEmbedding(short) && !isOfOldForm(short))
      expect(storedVector(short)).toSatisfy(({ length }) => length > 0 && length <= DIMENSION_MAX);
  }
  expect(isEmbedding(whole.slice(0, 100))).toBe(false);
  const damaged = fc.property(fc.array(fc.tuple(fc.nat(whole.byteLength - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }), (changes) => {
    const bytes = whole.slice();
    for (const [at, value] of changes) bytes[at] = value;
    if (!isEmbedding(bytes) || isOfOldForm(bytes)) return;
    expect(isComparable(storedVector(bytes))).toBe(true);
    expect(Math.abs(dotStored(quantize(QUERY), bytes))).toBeLessThan(1.02);
  });
  fc.assert(damaged, { numRuns: 1_000 });
  const wrong = (at: number, value: number) => {
    const bytes = whole.slice();
    new DataView(bytes.buffer).setUint16(at < 0 ? bytes.byteLength + at : at, value, true);
    return isEmbedding(bytes);
  };
  expect(wrong(-2, 0x8000 + 9)).toBe(false);
  expect(wrong(-2, 0xffff)).toBe(false);
  expect(wrong(-2, 0x8000)).toBe(false);
  expect(wrong(-4, 0)).toBe(false);
  expect(wrong(-6, 0)).toBe(false);
});
