/**
 * Fewer numbers of a vector, by which the graph finds its way: each of the vector's numbers is added to one of these, or taken off.
 *
 * With which sign a number is added is random, and always the same. So the product of two projections is that of the two vectors, on
 * average, and off by about 1 / √n for n numbers (a count sketch). That is good enough to find a few hundred that may be near; which of
 * them are is seen by the vectors themselves. Every point of the graph is smaller so, and every step through it quicker.
 *
 * @see https://doi.org/10.1016/S0304-3975(03)00400-6 (Charikar, Chen, Farach-Colton: Finding frequent items in data streams)
 * @module
 */
import { DIMENSION_MAX } from "../../embeddings/embedder.ts";

/** Numbers of a projection. */
export const PROJECTED_DIMENSION = 256;

const SEED = 0x2f6e2b1;

/** By place of a vector: 1, or -1 where its number is taken off. */
const SIGNS = signs();

function signs(): Int8Array {
  let state = SEED;
  // Mulberry32.
  return new Int8Array(DIMENSION_MAX).map(() => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) & 1) === 0 ? 1 : -1;
  });
}

/**
 * Numbers that lie far apart come together, as many in each. All projections are made of one length, or the graph would lead to the
 * longest.
 *
 * @param into - what the numbers are written to, `PROJECTED_DIMENSION` of them
 */
export function project(vector: Int16Array | Float32Array, into: Float64Array): void {
  into.fill(0);
  for (let place = 0; place < vector.length; place++) into[place % PROJECTED_DIMENSION]! += SIGNS[place]! * vector[place]!;
  let square = 0;
  for (let i = 0; i < into.length; i++) square += into[i]! * into[i]!;
  const length = Math.sqrt(square) || 1;
  for (let i = 0; i < into.length; i++) into[i]! /= length;
}
