import { expect, test } from "bun:test";
import { WORD_PLACES } from "../../../src/embeddings/embedder.ts";
import { DENSE_DIMENSION, project, SPARSE_DIMENSION } from "../../../src/vectors/projection.ts";
import { chance, dot, unitVector } from "./stored-vectors.ts";

test("the products of projections are the cosines of the vectors, but for about one over the root of their numbers", () => {
  const random = chance(1);
  for (const dimension of [SPARSE_DIMENSION, DENSE_DIMENSION]) {
    const centre = unitVector(random);
    const squares = Array.from({ length: 300 }, () => {
      const [a, b] = [unitVector(random, centre, 1), unitVector(random, centre, 1)];
      // Of the built-in provider's vectors the meaning alone counts.
      if (dimension === SPARSE_DIMENSION) for (const vector of [a, b]) vector.fill(0, 0, WORD_PLACES);
      const [left, right] = [a, b].map((vector) => {
        const projection = new Float64Array(dimension);
        project(vector, projection);
        return projection;
      }) as [Float64Array, Float64Array];
      return (left.reduce((sum, number, i) => sum + number * right[i]!, 0) - dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))) ** 2;
    });
    const error = Math.sqrt(squares.reduce((sum, square) => sum + square, 0) / squares.length);
    expect(error).toBeLessThan(1.5 / Math.sqrt(dimension));
  }
});

test("projections are of one length, however much of its own a vector has, or of none", () => {
  for (const dimension of [SPARSE_DIMENSION, DENSE_DIMENSION]) {
    const vector = unitVector(chance(2));
    const short = vector.map((number) => number / 8);
    const [whole, part, none] = [vector, short, new Float32Array(vector.length)].map((numbers) => {
      const projection = new Float64Array(dimension).fill(1);
      project(numbers, projection);
      return Math.hypot(...projection);
    });
    expect(whole).toBeCloseTo(1);
    expect(part).toBeCloseTo(1);
    expect(none).toBe(0);
  }
});
