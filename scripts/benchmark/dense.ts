/**
 * Vectors as a model would give them, as far as that goes without one: the sum of what the words mean, with noise.
 *
 * Every number of such a vector says something, words of one meaning (`texts.ts`) are near each other, and the noise of a text is its
 * own, as what a model says of a text is more than its words. So recall, cost and scoring can be measured with as many vectors as are
 * wanted; how well a model finds cannot.
 *
 * @module
 */
import { hashText } from "../../src/lib/hash.ts";
import { meaningOf, randomOf } from "../../src/cli/bench/load/texts.ts";

/** As many numbers as the built-in provider's vectors have. */
export const DENSE_DIMENSION = 384;
/** Share of meaning in a word, next to what it has alone. */
const MEANING_SHARE = 0.8;
const OWN_SHARE = 0.6;
/** Length of the noise beside the vector's 1. */
const NOISE = 0.4;
/** Words of few letters say little. */
const LETTERS_OF_A_WORD = 8;
const WORD = /[\p{L}\p{N}]+/gu;

/** Normally distributed numbers, to be read from any place on. */
const normal = new Float32Array(1 << 16);
{
  const random = randomOf(104_729);
  for (let i = 0; i < normal.length; i++) normal[i] = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Adds a direction that the seed decides. */
function add(vector: Float32Array, seed: number, length: number): void {
  // The table is short for all of them: sums of two places of it are many more.
  let [one, other] = [seed & 0xffff, seed >>> 16];
  const scale = length * Math.SQRT1_2;
  for (let i = 0; i < DENSE_DIMENSION; i++) {
    one = (one + 1) & 0xffff;
    other = (other + 3) & 0xffff;
    vector[i]! += scale * (normal[one]! + normal[other]!);
  }
}

function scaled(vector: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
  const length = Math.hypot(...vector) || 1;
  return vector.map((number) => number / length);
}

/** The dense vector of a text, of unit length; the same for a query and a memory. */
export function denseVector(text: string): Float32Array<ArrayBuffer> {
  const sum = new Float32Array(DENSE_DIMENSION);
  for (const word of new Set(text.toLowerCase().match(WORD))) {
    const weight = Math.min(1, word.length / LETTERS_OF_A_WORD);
    const meaning = meaningOf(word);
    if (meaning !== undefined) add(sum, hashText(`meaning ${meaning}`), weight * MEANING_SHARE);
    add(sum, hashText(word), meaning === undefined ? weight : weight * OWN_SHARE);
  }
  const vector = scaled(sum);
  add(vector, hashText(`noise of ${text}`), NOISE / Math.sqrt(DENSE_DIMENSION));
  return scaled(vector);
}
