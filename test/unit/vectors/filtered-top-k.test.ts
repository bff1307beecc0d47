import { expect, test } from "bun:test";
import { filteredTopK, rescoreTies, type Points, type Resolve } from "../../../src/vectors/filtered-top-k.ts";
import type { Hit, Neighbour } from "../../../src/vectors/top-k.ts";

const QUERY = new Int16Array(0);

/** Points with these cosines, best first; the id of each is its place. Notes how many were asked for. */
function pointsWith(cosines: readonly number[]): { points: Points; asked: number[] } {
  const asked: number[] = [];
  const points = {
    nearest(_query: Int16Array, count: number): Hit[] {
      asked.push(count);
      return cosines.slice(0, count).map((cosine, i) => ({ id: String(i), cosine }));
    },
  };
  return { points, asked };
}

const falling = (count: number) => Array.from({ length: count }, (_, i) => 1 - i / count);
const memories = (found: readonly Neighbour[] | undefined) => found?.map(({ memory }) => memory);
const all: Resolve = (id) => `m${id}`;
const firstLabels = (count: number, step = 1, from = 0) => Array.from({ length: count }, (_, i) => `m${from + i * step}`);

test("when all pass, the first look is enough", () => {
  const { points, asked } = pointsWith(falling(10_000));
  const found = filteredTopK(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, resolve: all });
  expect([memories(found)?.slice(0, 100), asked]).toEqual([firstLabels(100), [128]]);
});

test("when few pass, as many more are asked for as their share so far calls for", () => {
  const { points, asked } = pointsWith(falling(10_000));
  const resolve: Resolve = (id) => (Number(id) % 10 === 0 ? `m${id}` : undefined);
  const found = filteredTopK(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, resolve });
  expect([memories(found)?.slice(0, 100), asked]).toEqual([firstLabels(100, 10), [128, 1_231]]);
});

test("when only what is far passes, it is given up in time", () => {
  const { points, asked } = pointsWith(falling(10_000));
  const resolve: Resolve = (id) => (Number(id) >= 9_000 ? `m${id}` : undefined);
  expect(filteredTopK(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, resolve })).toBeUndefined();
  expect(asked).toEqual([128, 6_400]);
});

test("when there are no more points, what was found is all there is", () => {
  const { points } = pointsWith(falling(300));
  const resolve: Resolve = (id) => (Number(id) % 100 === 99 ? `m${id}` : undefined);
  expect(memories(filteredTopK(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, resolve }))).toEqual(["m99", "m199", "m299"]);
  expect(filteredTopK(pointsWith([]).points, QUERY, { limit: 100, max: 6_400, error: 1e-5, resolve: all })).toEqual([]);
});

test("all that may be equal to the last one are looked at", () => {
  const { points, asked } = pointsWith([...falling(90), ...Array.from({ length: 800 }, () => 0.000_01), ...falling(5_000).map((x) => -x)]);
  const found = filteredTopK(points, QUERY, { limit: 100, max: 6_400, error: 1e-5, resolve: all });
  expect(memories(found)).toEqual(expect.arrayContaining(firstLabels(890)));
  expect(asked).toEqual([128, 512, 2_048]);
});

test("what is deleted stands in the way once only, and does not count as a filter that lets few through", () => {
  const cosines = falling(10_000);
  const gone = new Set<string>();
  const points = {
    nearest: (_query: Int16Array, count: number) =>
      cosines.flatMap((cosine, i) => (gone.has(String(i)) ? [] : [{ id: String(i), cosine }])).slice(0, count),
  };
  const resolve: Resolve = (id) => {
    if (Number(id) >= 7_000) return `m${id}`;
    gone.add(id);
    return "deleted";
  };
  const found = filteredTopK(points, QUERY, { limit: 100, max: 1_000, error: 1e-5, resolve });
  expect(memories(found)?.slice(0, 100)).toEqual(firstLabels(100, 1, 7_000));
});

const neighbour = (id: string, cosine: number): Neighbour => ({ id, memory: `m${id}`, cosine });

test("where rounding could decide who is among the first, the exact cosine does", () => {
  const candidates = [
    neighbour("a", 0.9),
    neighbour("b", 0.502),
    neighbour("c", 0.501),
    neighbour("d", 0.5),
    neighbour("e", 0.499),
    neighbour("f", 0.1),
  ];
  const exact = new Map([
    ["b", 0.5],
    ["c", 0.499],
    ["d", 0.503],
  ]);
  const asked: string[] = [];
  const first = rescoreTies(candidates, 3, 0.002, (id) => {
    asked.push(id);
    return exact.get(id);
  });
  expect(first).toEqual([neighbour("a", 0.9), neighbour("d", 0.503), neighbour("b", 0.5)]);
  expect(asked.sort((a, b) => a.localeCompare(b))).toEqual(["b", "c", "d", "e"]);
});
