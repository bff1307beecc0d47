import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { DIMENSION_MAX } from "../../../src/embeddings/embedder.ts";
import { localEmbedder } from "../../../src/embeddings/local/local.ts";
import { dotStored } from "../../../src/vectors/encoding.ts";
import {
  comparedNumbers,
  encodeVector,
  HEAD,
  isComparable,
  isEmbedding,
  quantize,
  storedGeneration,
  storedMemory,
  storedTerms,
  storedVector,
} from "../../../src/vectors/encoding.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { chance, dot, storedBytes, unitVector } from "./stored-vectors.ts";

const embedder = localEmbedder;
const TEXTS = Object.values(MEMORIES).slice(0, 60);
const LONG = Object.values(MEMORIES).join(" ").slice(0, 10_000);
const QUERY = embedder.embedQuery("Which of them is it about?").vector;
const DENSE = unitVector(chance(1));

/** So many numbers of the head, the rest zero, in places that are far apart or side by side; and of the others so many. */
const anyVector = fc
  .tuple(
    fc.constantFrom(0, 1, 2, 3, 399, 400, 401, 402, HEAD - 1, HEAD),
    fc.nat(HEAD - 1),
    fc.constantFrom(1, 7, 319),
    fc.nat(DIMENSION_MAX - HEAD),
  )
  .map(([count, from, step, others]) => {
    const vector = unitVector(chance(count + from))
      .fill(0, 0, HEAD)
      .fill(0, HEAD + others);
    for (let i = 0; i < count; i++) vector[(from + i * step) % HEAD] = 0.5 / (i + 1);
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

test("the built-in provider's vectors lose less than 0.002 of a cosine, and those of 200 characters fit into a page four times", () => {
  for (const text of [...TEXTS, LONG, "", "x"]) {
    const { vector, terms } = embedder.embedMemory(text);
    const bytes = storedBytes({ vector, terms });
    const cosine = vector.reduce((sum, value, i) => sum + value * QUERY[i]!, 0);
    expect(Math.abs(dotStored(quantize(QUERY), bytes) - cosine)).toBeLessThan(0.002);
    if (text.length <= 200) expect(bytes.byteLength).toBeLessThan(750);
  }
});

test("the numbers of queries that are compared in turn are those of their vectors", () => {
  const dense = { vector: DENSE, lexical: embedder.embedQuery("").lexical };
  const queries = [dense, ...[...TEXTS.slice(0, 20), LONG, "", "x", "!!"].map((text) => embedder.embedQuery(text))];
  for (const query of [...queries, ...queries.toReversed()]) {
    expect(comparedNumbers(query)).toEqual(quantize(query.vector));
    expect(comparedNumbers(dense)).toEqual(quantize(DENSE));
  }
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
    if (isEmbedding(short)) expect(storedVector(short)).toSatisfy(({ length }) => length > 0 && length <= DIMENSION_MAX);
  }
  expect(isEmbedding(whole.slice(0, 100))).toBe(false);
  const damaged = fc.property(fc.array(fc.tuple(fc.nat(whole.byteLength - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }), (changes) => {
    const bytes = whole.slice();
    for (const [at, value] of changes) bytes[at] = value;
    if (!isEmbedding(bytes)) return;
    expect(isComparable(storedVector(bytes))).toBe(true);
    expect(Math.abs(dotStored(quantize(QUERY), bytes))).toBeLessThan(1.02);
  });
  fc.assert(damaged, { numRuns: 1_000 });
  const wrong = (at: number, value: number) => {
    const bytes = whole.slice();
    new DataView(bytes.buffer).setUint16(at < 0 ? bytes.byteLength + at : at, value, true);
    return isEmbedding(bytes);
  };
  expect(wrong(-2, HEAD + 1)).toBe(false);
  expect(wrong(-2, 0xffff)).toBe(false);
  expect(wrong(-2, 0x8000)).toBe(false);
  expect(wrong(-4, 0)).toBe(false);
  expect(wrong(-6, 0)).toBe(false);
  expect(wrong(DIMENSION_MAX - HEAD + 2, 0x7fff)).toBe(false);
});
