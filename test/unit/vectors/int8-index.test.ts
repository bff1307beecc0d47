import { describe, expect, setDefaultTimeout, test } from "bun:test";
import * as fc from "fast-check";
import { localEmbedder } from "../../../src/embeddings/local/local.ts";
import { quantize } from "../../../src/vectors/encoding.ts";
import { Int8Index } from "../../../src/vectors/int8-index.ts";
import { kernelOn, scriptKernel } from "../../../src/vectors/int8-kernel.ts";
import { MEMORIES } from "../../retrieval/memories.ts";
import { QUESTIONS } from "../../retrieval/questions.ts";
import { chance, dot, idAt, unitVector } from "./stored-vectors.ts";

// What is compared is much, and the machine may be busy with other tests.
setDefaultTimeout(60_000);

/** How far off a cosine may be; 0.0003 is usual. */
const INT8_ERROR = 0.003;

const embedder = localEmbedder;
const random = chance(1);
const DENSE = Array.from({ length: 2_500 }, () => unitVector(random));
const TEXTS = Object.values(MEMORIES).map((text) => embedder.embedMemory(text).vector);
const QUERIES = QUESTIONS.slice(0, 40).map(({ text }) => embedder.embedQuery(text).vector);

function indexOf(vectors: readonly Float32Array[], kernel = kernelOn): Int8Index {
  const index = new Int8Index(kernel);
  for (const [i, vector] of vectors.entries()) index.add(idAt(i), `m${i}`, quantize(vector));
  return index;
}

/** The ids of the nearest by their exact cosines, best first, of equal ones the newest. */
function exact(vectors: readonly Float32Array[], query: Float32Array, count: number): { id: string; cosine: number }[] {
  return vectors
    .map((vector, i) => ({ id: idAt(i), cosine: dot(query, vector) }))
    .sort((a, b) => b.cosine - a.cosine || (a.id < b.id ? 1 : -1))
    .slice(0, count);
}

const CASES = [
  { name: "texts and questions of the built-in provider", vectors: TEXTS, queries: QUERIES },
  { name: "vectors of which every number counts, in several chunks", vectors: DENSE, queries: DENSE.slice(0, 40) },
];

for (const { name, vectors, queries } of CASES) {
  test(`cosines are right to ${INT8_ERROR}, and the ten nearest are among the first thirty: ${name}`, () => {
    const index = indexOf(vectors);
    for (const query of queries) {
      const near = index.nearest(quantize(query), 30);
      expect(near.length).toBe(30);
      for (const { id, cosine } of near) expect(Math.abs(cosine - dot(query, vectors[Number(id)]!))).toBeLessThan(INT8_ERROR);
      expect(near.map(({ cosine }) => cosine)).toEqual(near.map(({ cosine }) => cosine).sort((a, b) => b - a));
      const found = new Set(near.map(({ id }) => id));
      expect(exact(vectors, query, 10).filter(({ id }) => !found.has(id))).toEqual([]);
    }
  });
}

describe("the processor's vector instructions and the script that stands in for them", () => {
  test("give the same", () => {
    const [fast, slow] = [kernelOn, scriptKernel].map((kernel) => indexOf(DENSE.slice(0, 1_100), kernel));
    for (const query of [...QUERIES.slice(0, 3), ...DENSE.slice(0, 3)])
      expect(fast!.nearest(quantize(query), 50)).toEqual(slow!.nearest(quantize(query), 50));
  });

  test("take the largest sums there can be, and the largest numbers", () => {
    const spread = new Float32Array(1536).fill(1 / Math.sqrt(1536));
    const single = new Float32Array(1536).fill(1, 7, 8);
    const against = (vector: Float32Array) => vector.map((value) => -value);
    for (const kernel of [kernelOn, scriptKernel]) {
      for (const vector of [spread, single]) {
        const index = indexOf([vector, against(vector)], kernel);
        expect(index.nearest(quantize(vector), 2).map(({ id, cosine }) => [Number(id), Math.round(cosine * 1_000) / 1_000])).toEqual([
          [0, 1],
          [1, -1],
        ]);
      }
    }
  });
});

test("of equal cosines the newest come, newest first, in whatever order they were added", () => {
  const [same, nearer] = [quantize(DENSE[1]!), quantize(DENSE[0]!)];
  const index = new Int8Index();
  const add = (id: number, vector: Int16Array) => index.add(idAt(id), `m${id}`, vector);
  for (let i = 0; i < 1_500; i++) add(10 + ((i * 701) % 1_500), same);
  add(3, nearer);
  add(5, nearer);
  for (const id of [1_509, 1_508]) index.remove(idAt(id));
  const highest = (count: number) => Array.from({ length: count }, (_, i) => 1_507 - i);
  const nearest = (count: number) => index.nearest(nearer, count).map(({ id }) => Number(id));
  for (const count of [3, 100, 1_400, 1_500]) expect(nearest(count)).toEqual([5, 3, ...highest(count - 2)]);
  expect(nearest(1)).toEqual([5]);
  expect(nearest(2_000)).toEqual([5, 3, ...highest(1_498)]);
});

test("the newest vector of a memory is known, also while the one before is still there", () => {
  const index = new Int8Index();
  for (const id of [1, 3, 2]) index.add(idAt(id), "memory", quantize(DENSE[id]!));
  expect(index.idOf("memory")).toBe(idAt(3));
  index.remove(idAt(1));
  expect(index.idOf("memory")).toBe(idAt(3));
  index.remove(idAt(3));
  expect([index.idOf("memory"), index.size]).toEqual([undefined, 1]);
});

test("whatever is added and removed, what is there is found and nothing else", () => {
  const change = fc.oneof(
    fc.record({ add: fc.constant(true), count: fc.integer({ min: 1, max: 900 }) }),
    fc.record({ add: fc.constant(false), count: fc.integer({ min: 1, max: 400 }) }),
  );
  fc.assert(
    fc.property(fc.array(change, { minLength: 2, maxLength: 6 }), fc.integer(), (changes, seed) => {
      const pick = chance(seed);
      const index = new Int8Index();
      const there = new Set<number>();
      let next = 0;
      for (const { add, count } of changes) {
        for (let i = 0; i < count; i++) {
          if (add) {
            index.add(idAt(next), `m${next}`, quantize(DENSE[next % DENSE.length]!));
            there.add(next++);
          } else {
            const removed = Math.floor(pick() * (next + 1));
            index.remove(idAt(removed));
            there.delete(removed);
          }
        }
      }
      expect(index.size).toBe(there.size);
      const query = DENSE[Math.floor(pick() * DENSE.length)]!;
      const found = index.nearest(quantize(query), 10_000);
      expect(new Set(found.map(({ id }) => Number(id)))).toEqual(there);
      for (const { id, cosine } of found) {
        expect([index.has(id), index.idOf(`m${Number(id)}`)]).toEqual([true, id]);
        expect(Math.abs(cosine - dot(query, DENSE[Number(id) % DENSE.length]!))).toBeLessThan(INT8_ERROR);
      }
    }),
    { numRuns: 10 },
  );
});

test("one query after another, and the same one after a change, each get their own answer", () => {
  const index = indexOf(TEXTS);
  const [first, second] = QUERIES.map(quantize) as [Int16Array, Int16Array];
  const answers = [index.nearest(first, 5), index.nearest(second, 5)];
  expect([index.nearest(first, 5), index.nearest(second, 5)]).toEqual(answers);
  index.remove(answers[0]![0]!.id);
  expect(index.nearest(first, 4)).toEqual(answers[0]!.slice(1));
  index.add(idAt(9_999), "m9999", first);
  expect(index.nearest(first, 1)).toMatchObject([{ id: idAt(9_999) }]);
});

test("a vector of zeros is near to nothing, and one that is there already is not added again", () => {
  const index = new Int8Index();
  const query = quantize(DENSE[0]!);
  expect(index.nearest(query, 5)).toEqual([]);
  for (let i = 0; i < 2; i++) index.add(idAt(1), "m1", new Int16Array(1536));
  expect(index.nearest(query, 5)).toEqual([{ id: idAt(1), cosine: 0 }]);
});
