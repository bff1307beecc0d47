import { expect, test } from "bun:test";
import type { LabelledCosine, Neighbour } from "../../../src/vectors/exact.ts";
import { firstOf, passingNearest, type Look, type Points } from "../../../src/vectors/oversample.ts";

const QUERY = new Float32Array(0);

/** Points with these cosines, best first; the label of each is its place. Notes how many were asked for. */
function pointsWith(cosines: readonly number[]): { points: Points; asked: number[] } {
  const asked: number[] = [];
  const points = {
    nearest(_query: Float32Array, count: number): LabelledCosine[] {
      asked.push(count);
      return cosines.slice(0, count).map((cosine, label) => ({ label, cosine }));
    },
  };
  return { points, asked };
}

const falling = (count: number) => Array.from({ length: count }, (_, i) => 1 - i / count);
const memories = (found: readonly Neighbour[] | undefined) => found?.map(({ memory }) => memory);
const all: Look = (label) => `m${label}`;
const firstLabels = (count: number, step = 1, from = 0) => Array.from({ length: count }, (_, i) => `m${from + i * step}`);

test("when all pass, the first look is enough", () => {
  const { points, asked } = pointsWith(falling(10_000));
  const found = passingNearest(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, look: all });
  expect([memories(found)?.slice(0, 100), asked]).toEqual([firstLabels(100), [128]]);
});

test("when few pass, as many more are asked for as their share so far calls for", () => {
  const { points, asked } = pointsWith(falling(10_000));
  const look: Look = (label) => (label % 10 === 0 ? `m${label}` : undefined);
  const found = passingNearest(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, look });
  expect([memories(found)?.slice(0, 100), asked]).toEqual([firstLabels(100, 10), [128, 1_231]]);
});

test("when only what is far passes, it is given up in time", () => {
  const { points, asked } = pointsWith(falling(10_000));
  const look: Look = (label) => (label >= 9_000 ? `m${label}` : undefined);
  expect(passingNearest(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, look })).toBeUndefined();
  expect(asked).toEqual([128, 6_400]);
});

test("when there are no more points, what was found is all there is", () => {
  const { points } = pointsWith(falling(300));
  const look: Look = (label) => (label % 100 === 99 ? `m${label}` : undefined);
  expect(memories(passingNearest(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, look }))).toEqual(["m99", "m199", "m299"]);
  expect(passingNearest(pointsWith([]).points, QUERY, { limit: 100, max: 6_400, error: 1e-5, look: all })).toEqual([]);
});

test("all that may be equal to the last one are looked at", () => {
  const { points, asked } = pointsWith([...falling(90), ...Array.from({ length: 800 }, () => 0.000_01), ...falling(5_000).map((x) => -x)]);
  const found = passingNearest(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, look: all });
  expect(memories(found)).toEqual(expect.arrayContaining(firstLabels(890)));
  expect(asked).toEqual([128, 512, 2_048]);
});

test("what is deleted stands in the way once only, and does not count as a filter that lets few through", () => {
  const cosines = falling(10_000);
  const gone = new Set<number>();
  const points = {
    nearest: (_query: Float32Array, count: number) =>
      cosines.flatMap((cosine, label) => (gone.has(label) ? [] : [{ label, cosine }])).slice(0, count),
  };
  const look: Look = (label) => {
    if (label >= 7_000) return `m${label}`;
    gone.add(label);
    return "deleted";
  };
  const found = passingNearest(points, QUERY, { limit: 100, max: 1_000, error: 1e-5, look });
  expect(memories(found)?.slice(0, 100)).toEqual(firstLabels(100, 1, 7_000));
});

test("where rounding could decide who is among the first, the exact cosine does", () => {
  const candidates = [
    { memory: "a", cosine: 0.9 },
    { memory: "b", cosine: 0.502 },
    { memory: "c", cosine: 0.501 },
    { memory: "d", cosine: 0.5 },
    { memory: "e", cosine: 0.499 },
    { memory: "f", cosine: 0.1 },
  ];
  const exact = new Map([
    ["b", 0.5],
    ["c", 0.499],
    ["d", 0.503],
  ]);
  const asked: string[] = [];
  const first = firstOf(candidates, 3, 0.002, (memory) => {
    asked.push(memory);
    return exact.get(memory);
  });
  expect(first).toEqual([
    { memory: "a", cosine: 0.9 },
    { memory: "d", cosine: 0.503 },
    { memory: "b", cosine: 0.5 },
  ]);
  expect(asked.sort((a, b) => a.localeCompare(b))).toEqual(["b", "c", "d", "e"]);
});
