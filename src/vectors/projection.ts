/**
 * Fewer numbers of a vector, by which the graph finds its way: each of the vector's numbers is added to one of these, or taken off.
 *
 * Which one and with which sign is random, and always the same. So the product of two projections is that of the two vectors, on average,
 * and off by about 1 / √n for n numbers (a count sketch). That is good enough to find a few hundred that may be near; which of them
 * are is seen by the vectors themselves. Every point of the graph is smaller so, and every step through it quicker.
 *
 * @see https://doi.org/10.1016/S0304-3975(03)00400-6 (Charikar, Chen, Farach-Colton: Finding frequent items in data streams)
 * @module
 */
import { DIMENSION, LENGTH_PLACE } from "../embeddings/embedder.ts";

/**
 * Numbers of a projection. The built-in provider's words are found in the index of terms; meaning alone needs few. Another provider's
 * vectors are all there is to find what shares no word.
 */
export const SPARSE_DIMENSION = 64;
export const DENSE_DIMENSION = 256;

const SEED = 0x2f6e2b1;

/** By place of a vector: 2 × a number that says where it goes, and whether it is taken off. The last place is left out. */
const TARGETS = targets();

function targets(): Uint32Array {
  const places = Uint32Array.from({ length: DIMENSION }, (_, place) => place);
  let state = SEED;
  // Mulberry32, and Fisher and Yates: so that every number of a projection gets as many of the vector's as the others.
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return (bits ^ (bits >>> 14)) >>> 0;
  };
  for (let i = places.length - 1; i > 0; i--) {
    const other = next() % (i + 1);
    [places[i], places[other]] = [places[other]!, places[i]!];
  }
  return places.map((place) => 2 * place + (next() & 1));
}

/** @param into - what the numbers are written to: as many as are wanted, a power of two */
export function project(vector: Int16Array | Float32Array, into: number[]): void {
  into.fill(0);
  const mask = into.length - 1;
  for (let place = 0; place < LENGTH_PLACE; place++) {
    const number = vector[place]!;
    if (number === 0) continue;
    const target = TARGETS[place]!;
    into[(target >> 1) & mask]! += (target & 1) === 0 ? number : -number;
  }
}
