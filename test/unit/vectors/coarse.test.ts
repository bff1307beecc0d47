import { describe, expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { localEmbedder } from "../../../src/embeddings/local/local.ts";
import { Coarse } from "../../../src/vectors/coarse.ts";
import { kernelOn, scriptKernel } from "../../../src/vectors/coarse-kernel.ts";
import { dot } from "../../../src/vectors/exact.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";
import { chance, unitVector } from "./stored-vectors.ts";

// What is compared is much, and the machine may be busy with other tests.
setDefaultTimeout(60_000);

/** How far off a cosine may be; 0.0003 is usual. */
const COARSE_ERROR = 0.003;

const embedder = localEmbedder;
const random = chance(1);
const DENSE = Array.from({ length: 2_500 }, () => unitVector(random));
const TEXTS = Object.values(MEMORIES).map((text) => embedder.embedMemory(text).vector);
const QUERIES = QUESTIONS.slice(0, 40).map(({ text }) => embedder.embedQuery(text).vector);

function coarseOf(vectors: readonly Float32Array[], kernel = kernelOn): Coarse {
  const coarse = new Coarse(kernel);
  for (const [label, vector] of vectors.entries()) coarse.add(label, vector);
  return coarse;
}

/** The labels of the nearest by their exact cosines, best first, of equal ones the newest. */
function exact(vectors: readonly Float32Array[], query: Float32Array, count: number): { label: number; cosine: number }[] {
  return vectors
    .map((vector, label) => ({ label, cosine: dot(query, vector) }))
    .sort((a, b) => b.cosine - a.cosine || b.label - a.label)
    .slice(0, count);
}

const CASES = [
  { name: "texts and questions of the built-in provider", vectors: TEXTS, queries: QUERIES },
  { name: "vectors of which every number counts, in several chunks", vectors: DENSE, queries: DENSE.slice(0, 40) },
];

for (const { name, vectors, queries } of CASES) {
  test(`cosines are right to ${COARSE_ERROR}, and the ten nearest are among the first thirty: ${name}`, () => {
    const coarse = coarseOf(vectors);
    for (const query of queries) {
      const near = coarse.nearest(query, 30);
      expect(near.length).toBe(30);
      for (const { label, cosine } of near) expect(Math.abs(cosine - dot(query, vectors[label]!))).toBeLessThan(COARSE_ERROR);
      expect(near.map(({ cosine }) => cosine)).toEqual(near.map(({ cosine }) => cosine).sort((a, b) => b - a));
      const found = new Set(near.map(({ label }) => label));
      expect(exact(vectors, query, 10).filter(({ label }) => !found.has(label))).toEqual([]);
    }
  });
}

describe("the processor's vector instructions and the script that stands in for them", () => {
  test("give the same", () => {
    const [fast, slow] = [kernelOn, scriptKernel].map((kernel) => coarseOf(DENSE.slice(0, 1_100), kernel));
    for (const query of [...QUERIES.slice(0, 3), ...DENSE.slice(0, 3)]) expect(fast!.nearest(query, 50)).toEqual(slow!.nearest(query, 50));
  });

  test("take the largest sums there can be, and the largest numbers", () => {
    const spread = new Float32Array(1536).fill(1 / Math.sqrt(1536));
    const single = new Float32Array(1536).fill(1, 7, 8);
    const against = (vector: Float32Array) => vector.map((value) => -value);
    for (const kernel of [kernelOn, scriptKernel]) {
      for (const vector of [spread, single]) {
        const coarse = coarseOf([vector, against(vector)], kernel);
        expect(coarse.nearest(vector, 2).map(({ label, cosine }) => [label, Math.round(cosine * 1_000) / 1_000])).toEqual([
          [0, 1],
          [1, -1],
        ]);
      }
    }
  });
});

test("of equal cosines the highest labels come, highest first, in whatever order they were added", () => {
  const [same, nearer] = [DENSE[1]!, DENSE[0]!];
  const labels = Array.from({ length: 1_500 }, (_, i) => 10 + ((i * 701) % 1_500));
  const coarse = new Coarse();
  for (const label of labels) coarse.add(label, same);
  coarse.add(3, nearer);
  coarse.add(5, nearer);
  for (const label of [1_509, 1_508]) coarse.remove(label);
  const highest = (count: number) => Array.from({ length: count }, (_, i) => 1_507 - i);
  for (const count of [3, 100, 1_400, 1_500]) {
    expect(coarse.nearest(nearer, count).map(({ label }) => label)).toEqual([5, 3, ...highest(count - 2)]);
  }
  expect(coarse.nearest(nearer, 1).map(({ label }) => label)).toEqual([5]);
  expect(coarse.nearest(nearer, 2_000).map(({ label }) => label)).toEqual([5, 3, ...highest(1_498)]);
});

test("whatever is added and removed, what is there is found and nothing else", () => {
  const change = fc.oneof(
    fc.record({ add: fc.constant(true), count: fc.integer({ min: 1, max: 900 }) }),
    fc.record({ add: fc.constant(false), count: fc.integer({ min: 1, max: 400 }) }),
  );
  fc.assert(
    fc.property(fc.array(change, { minLength: 2, maxLength: 6 }), fc.integer(), (changes, seed) => {
      const pick = chance(seed);
      const coarse = new Coarse();
      const there = new Set<number>();
      let next = 0;
      for (const { add, count } of changes) {
        for (let i = 0; i < count; i++) {
          if (add) {
            coarse.add(next, DENSE[next % DENSE.length]!);
            there.add(next++);
          } else {
            const label = Math.floor(pick() * (next + 1));
            coarse.remove(label);
            there.delete(label);
          }
        }
      }
      expect(coarse.size).toBe(there.size);
      const query = DENSE[Math.floor(pick() * DENSE.length)]!;
      const found = coarse.nearest(query, 10_000);
      expect(new Set(found.map(({ label }) => label))).toEqual(there);
      for (const { label, cosine } of found) {
        expect(coarse.has(label)).toBe(true);
        expect(Math.abs(cosine - dot(query, DENSE[label % DENSE.length]!))).toBeLessThan(COARSE_ERROR);
      }
    }),
    { numRuns: 10 },
  );
});

test("one query after another, and the same one after a change, each get their own answer", () => {
  const coarse = coarseOf(TEXTS);
  const [first, second] = QUERIES as [Float32Array, Float32Array];
  const answers = [coarse.nearest(first, 5), coarse.nearest(second, 5)];
  expect([coarse.nearest(first, 5), coarse.nearest(second, 5)]).toEqual(answers);
  coarse.remove(answers[0]![0]!.label);
  expect(coarse.nearest(first, 4)).toEqual(answers[0]!.slice(1));
  coarse.add(9_999, first);
  expect(coarse.nearest(first, 1)).toMatchObject([{ label: 9_999 }]);
});

test("a vector of zeros is near to nothing, and one that is no vector is not taken", () => {
  const coarse = new Coarse();
  expect(coarse.nearest(DENSE[0]!, 5)).toEqual([]);
  coarse.add(1, new Float32Array(1536));
  expect(coarse.nearest(DENSE[0]!, 5)).toEqual([{ label: 1, cosine: 0 }]);
  for (const place of [0, 700, 1535]) {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const vector = DENSE[0]!.slice();
      vector[place] = value;
      expect(() => coarse.add(2, vector)).toThrow("not all finite");
    }
  }
  expect(() => coarse.add(2, new Float32Array(768))).toThrow("not all finite");
  expect(coarse.size).toBe(1);
});
