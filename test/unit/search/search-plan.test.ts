import { expect, test } from "bun:test";
import { breadthOf, flatMax, workerPlan } from "../../../src/search/search-plan.ts";

test("the graph answers once it has more than half of the vectors", () => {
  expect([0, 500, 501, 1_000].map((inGraph) => workerPlan({ vectors: 1_000, inGraph }))).toEqual(["flat", "flat", "graph", "graph"]);
});

test("what passes a filter is compared one by one up to a number that grows with the root of that of vectors", () => {
  expect([0, 5_000, 50_000, 1_000_000].map(flatMax)).toEqual([2_000, 2_000, 5_000, 22_361]);
});

test("more of what has the words is looked at where there is more", () => {
  const wordsOf = (vectors: number, isFiltered = false) => breadthOf({ isFiltered, limit: 48, vectors }).words;
  expect([1, 20_000, 100_000, 1_000_000, 5_000_000].map((vectors) => wordsOf(vectors))).toEqual([300, 354, 791, 2_500, 5_590]);
  expect(wordsOf(5_000_000, true)).toBe(300);
});
