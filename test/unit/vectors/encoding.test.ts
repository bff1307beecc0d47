import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { DIMENSION } from "../../../src/embeddings/embedder.ts";
import { localEmbedder } from "../../../src/embeddings/local/local.ts";
import { isEmbedding, storedLabel, storedTerms, storedVector } from "../../../src/vectors/encoding.ts";
import { dot, storedDot } from "../../../src/vectors/exact.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { chance, storedBytes, unitVector } from "./stored-vectors.ts";

const embedder = localEmbedder;
const TEXTS = Object.values(MEMORIES).slice(0, 60);
const LONG = Object.values(MEMORIES).join(" ").slice(0, 10_000);
const QUERY = embedder.embedQuery("Which of them is it about?").vector;
const DENSE = unitVector(chance(1));

/** So many numbers of the head, the rest zero, in places that are far apart or side by side. */
const anyVector = fc
  .tuple(fc.constantFrom(0, 1, 2, 3, 399, 400, 401, 402, 1_275, 1_276), fc.nat(1_275), fc.constantFrom(1, 7, 319))
  .map(([count, from, step]) => {
    const vector = unitVector(chance(count + from)).fill(0, 0, 1_276);
    for (let i = 0; i < count; i++) vector[(from + i * step) % 1_276] = Math.fround(0.5 / (i + 1));
    return vector;
  });

test("a vector, its terms and its label come out as they went in", () => {
  const property = fc.property(anyVector, fc.uint32Array({ maxLength: 40 }), fc.nat(2 ** 32 - 1), (vector, terms, label) => {
    const bytes = storedBytes(label, { vector, terms });
    expect(isEmbedding(bytes)).toBe(true);
    expect(storedVector(bytes)).toEqual(vector);
    expect(storedTerms(bytes)).toEqual(terms);
    expect(storedLabel(bytes)).toBe(label);
    expect(storedDot(DENSE, bytes)).toBe(dot(DENSE, vector));
  });
  fc.assert(property, { numRuns: 300 });
});

test("the built-in provider's vectors come out as they went in, long texts' too, and a memory's fits into a page twice", () => {
  for (const text of [...TEXTS, LONG, "", "x"]) {
    const embedding = embedder.embedMemory(text);
    const bytes = storedBytes(7, embedding);
    expect(storedVector(bytes)).toEqual(embedding.vector);
    expect(storedTerms(bytes)).toEqual(embedding.terms);
    expect(storedDot(QUERY, bytes)).toBe(dot(QUERY, embedding.vector));
    if (text.length <= 200) expect(bytes.byteLength).toBeLessThan(2_000);
  }
});

test("what is no embedding is known to be none, wherever bytes are missing or changed", () => {
  const whole = storedBytes(7, embedder.embedMemory(TEXTS[0]!));
  for (let length = 0; length < whole.byteLength; length++) {
    const short = whole.slice(0, length);
    if (isEmbedding(short)) expect(storedVector(short)).toHaveLength(DIMENSION);
  }
  expect(isEmbedding(whole.slice(0, 100))).toBe(false);
  const damaged = fc.property(fc.array(fc.tuple(fc.nat(whole.byteLength - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }), (changes) => {
    const bytes = whole.slice();
    for (const [at, value] of changes) bytes[at] = value;
    if (!isEmbedding(bytes)) return;
    expect(storedVector(bytes).every(Number.isFinite)).toBe(true);
    expect(Number.isFinite(storedDot(QUERY, bytes))).toBe(true);
  });
  fc.assert(damaged, { numRuns: 1_000 });
  const wrong = (at: number, value: number) => {
    const bytes = whole.slice();
    new DataView(bytes.buffer).setUint32(at < 0 ? bytes.byteLength + at : at, value, true);
    return isEmbedding(bytes);
  };
  expect(wrong(-8, 1_277)).toBe(false);
  expect(wrong(-8, 2 ** 32 - 1)).toBe(false);
  expect(wrong(0, 0x7f80_0000)).toBe(false);
});
