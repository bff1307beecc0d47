import { expect, test } from "bun:test";
import hnswlib from "hnswlib-node";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DIMENSION_MAX } from "../../../src/embeddings/embedder.ts";
import { quantize } from "../../../src/search/encoding.ts";
import { HnswIndex, isPointOf, pointsIn } from "../../../src/search/graph/hnsw-index.ts";
import { chance, unitVector } from "./stored-vectors.ts";

test("a vector leads to itself among many, and so does one of its direction that is a hundredth as long", () => {
  const random = chance(1);
  const vectors = Array.from({ length: 500 }, () => unitVector(random));
  const graph = HnswIndex.empty();
  for (const [slot, vector] of vectors.entries()) graph.add(slot, [vector]);
  for (const length of [1, 0.01]) {
    const first = vectors.map((vector) => graph.nearest(quantize(vector.map((number) => number * length)), 50)[0]);
    expect([length, first.filter((slot, i) => slot === i).length > 480]).toEqual([length, true]);
  }
});

test("numbers of any size, and what is no number, leave a graph that finds everything", async () => {
  const random = chance(2);
  const odd = (number: number) => unitVector(random).fill(number, 0, DIMENSION_MAX / 2);
  const vectors = [...Array.from({ length: 50 }, () => unitVector(random)), odd(7), odd(-7), odd(Infinity), odd(Number.NaN), odd(0)];
  const graph = HnswIndex.empty();
  for (const [slot, vector] of vectors.entries()) graph.add(slot, [vector]);
  expect(graph.nearest(quantize(unitVector(random)), 100).toSorted((a, b) => a - b)).toEqual(vectors.map((_, slot) => slot));
  const directory = mkdtempSync(join(tmpdir(), "graph-"));
  const file = join(directory, "graph");
  await graph.save(file);
  const points = Array.from(pointsIn(file));
  rmSync(directory, { recursive: true });
  expect(points.map(({ slot, projection }) => isPointOf(projection, vectors[slot]!))).toEqual(vectors.map(() => true));
  expect(points.filter(({ slot, projection }) => isPointOf(projection, vectors[(slot + 1) % vectors.length]!)).length).toBeLessThan(5);
});

test("a vector leads to itself where all that were there before it have been removed", () => {
  const lost = [1, 2, 3, 4, 5, 6, 7, 8].map((seed) => {
    const random = chance(seed);
    const graph = HnswIndex.empty();
    const vectors = Array.from({ length: 400 }, () => unitVector(random));
    for (const [slot, vector] of vectors.entries()) {
      graph.add(slot, [vector]);
      if (slot === 299) for (let removed = 0; removed <= slot; removed++) graph.remove(removed);
    }
    return vectors.filter((vector, slot) => slot >= 300 && graph.nearest(quantize(vector), 50)[0] !== slot).length;
  });
  expect(lost).toEqual(lost.map(() => 0));
});

test("a text is found once by any of its passages, also where those of few are nearest, and by none once it is removed", async () => {
  const random = chance(4);
  const centre = unitVector(random);
  const near = () => Array.from({ length: 40 }, () => unitVector(random, centre, 0.3));
  const passages = [near(), near(), ...Array.from({ length: 100 }, () => [unitVector(random), unitVector(random)])];
  const graph = HnswIndex.empty();
  for (const [slot, vectors] of passages.entries()) graph.add(slot, vectors);
  const found = graph.nearest(quantize(centre), 10);
  expect([found.slice(0, 2).toSorted((a, b) => a - b), found.length, new Set(found).size]).toEqual([[0, 1], 10, 10]);
  expect(graph.nearest(quantize(passages[7]![1]!), 50)[0]).toBe(7);
  graph.remove(0);
  const left = graph.nearest(quantize(centre), 200);
  expect([left[0], left.includes(0), left.length > 90]).toEqual([1, false, true]);
  const directory = mkdtempSync(join(tmpdir(), "graph-"));
  const file = join(directory, "graph");
  await graph.save(file);
  const points = Array.from(pointsIn(file));
  rmSync(directory, { recursive: true });
  expect(points.map(({ slot, passage, projection }) => isPointOf(projection, passages[slot]![passage]!))).toEqual(points.map(() => true));
  expect(points.length).toBe(280);
});

test("memory that cannot be had is an error, and what had none can be given back", () => {
  const graph = new hnswlib.HierarchicalNSW("ip", 2 ** 31);
  graph.initIndex(1);
  expect(() => graph.initIndex(2 ** 22)).toThrow("Not enough memory");
  expect(graph.getMaxElements()).toBe(0);
  expect(() => new hnswlib.HierarchicalNSW("ip", "many" as never)).toThrow();
});

test("removing what has no point, as a memory whose vector is not made yet, leaves the others found", () => {
  const random = chance(3);
  const graph = HnswIndex.empty();
  const vectors = Array.from({ length: 20 }, () => unitVector(random));
  for (const [slot, vector] of vectors.entries()) graph.add(2 * slot, [vector]);
  for (const slot of [1, 3, 4]) graph.remove(slot);
  expect(graph.nearest(quantize(vectors[2]!), 20)).not.toContain(4);
  expect(vectors.map((vector) => graph.nearest(quantize(vector), 1)[0])).toEqual(
    vectors.map((_, i) => (i === 2 ? expect.any(Number) : 2 * i)),
  );
});
