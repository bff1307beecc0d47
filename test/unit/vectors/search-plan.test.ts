import { expect, test } from "bun:test";
import { workerPlan, type SearchSizes, type WorkerPlan } from "../../../src/vectors/search-plan.ts";

const LIMITS = { scanMax: 2_000, int8Max: 400_000 };
const MANY = Number.POSITIVE_INFINITY;

const CASES: (SearchSizes & { plan: WorkerPlan })[] = [
  { passing: 0, vectors: 1_000_000, pending: 0, plan: "brute force" },
  { passing: 2_000, vectors: 1_000_000, pending: 5_000, plan: "brute force" },
  { passing: 2_001, vectors: 400_000, pending: 0, plan: "int8" },
  { passing: 2_001, vectors: 400_001, pending: 0, plan: "graph" },
  { passing: MANY, vectors: 400_001, pending: 1_000, plan: "graph" },
  { passing: MANY, vectors: 400_001, pending: 1_001, plan: "int8" },
];

test("few memories are compared one by one, many vectors by the graph, unless much is missing from it, and all else by the int8 index", () => {
  expect(CASES.map((sizes) => ({ ...sizes, plan: workerPlan(sizes, LIMITS) }))).toEqual(CASES);
});
