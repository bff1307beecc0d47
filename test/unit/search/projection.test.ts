import { expect, test } from "bun:test";
import { project, PROJECTED_DIMENSION } from "../../../src/search/graph/projection.ts";
import { chance, dot, unitVector } from "./stored-vectors.ts";

function projected(vector: Float32Array): Float64Array {
  const projection = new Float64Array(PROJECTED_DIMENSION).fill(1);
  project(vector, projection);
  return projection;
}

test("the products of projections are the cosines of the vectors, but for about one over the root of their numbers", () => {
  const random = chance(1);
  for (const dimension of [384, 1_536]) {
    const centre = unitVector(random, undefined, 1, dimension);
    const squares = Array.from({ length: 300 }, () => {
      const [a, b] = [unitVector(random, centre, 1, dimension), unitVector(random, centre, 1, dimension)];
      const [left, right] = [projected(a), projected(b)];
      return (left.reduce((sum, number, i) => sum + number * right[i]!, 0) - dot(a, b)) ** 2;
    });
    const error = Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / squares.length);
    expect(error).toBeLessThan(1.5 / Math.sqrt(PROJECTED_DIMENSION));
  }
});

test("projections are of one length, however much of its own a vector has, or of none", () => {
  const vector = unitVector(chance(2));
  expect(Math.hypot(...projected(vector))).toBeCloseTo(1);
  expect(Math.hypot(...projected(vector.map((number) => number / 8)))).toBeCloseTo(1);
  expect(Math.hypot(...projected(new Float32Array(vector.length)))).toBe(0);
});
