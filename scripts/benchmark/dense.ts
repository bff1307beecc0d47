/**
 * Vectors as a model would give them, as far as that goes without one: the built-in provider's turned at random and with noise.
 *
 * Every number of such a vector says something, while four fifths of the built-in one's are zero, and the noise of a text is
 * its own, as what a model says of a text is more than its words. Cosines of two texts are the built-in provider's, divided by
 * `1 + NOISE²` and off by about 0.01. So recall, cost and scoring can be measured with dense vectors; how well a model finds
 * cannot.
 *
 * @module
 */
import { DIMENSION_MAX } from "../../src/embeddings/embedder.ts";
import { localEmbedder } from "../../src/embeddings/local/local.ts";
import { hashText } from "../../src/embeddings/local/semantics.ts";
import { randomOf } from "./texts.ts";

/** Length of the noise beside the vector's 1. */
const NOISE = 0.4;
const ROUNDS = 3;
/** A Hadamard transform takes a power of two. */
const BLOCK = 512;

/** One round of the rotation: each number goes to another place, half of them with the other sign; then blocks are mixed. */
interface Round {
  readonly places: Uint16Array;
  readonly signs: Int8Array;
}

const rounds: Round[] = Array.from({ length: ROUNDS }, (_, round) => {
  const random = randomOf(round + 7_919);
  const places = Uint16Array.from({ length: DIMENSION_MAX }, (_, place) => place);
  for (let i = DIMENSION_MAX - 1; i > 0; i--) {
    const other = Math.floor(random() * (i + 1));
    [places[i], places[other]] = [places[other]!, places[i]!];
  }
  return { places, signs: Int8Array.from({ length: DIMENSION_MAX }, () => (random() < 0.5 ? -1 : 1)) };
});

/** Normally distributed numbers, to be read from any place on. */
const normal = Float32Array.from({ length: 1 << 16 }, () => 0);
{
  const random = randomOf(104_729);
  for (let i = 0; i < normal.length; i++) normal[i] = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Turns a vector; all are turned alike, so cosines stay. */
function rotated(vector: Float32Array): Float32Array {
  let from = vector;
  for (const { places, signs } of rounds) {
    const to = new Float32Array(DIMENSION_MAX);
    for (let i = 0; i < DIMENSION_MAX; i++) to[places[i]!] = from[i]! * signs[i]!;
    for (let half = 1; half < BLOCK; half *= 2) {
      for (let start = 0; start < DIMENSION_MAX; start += 2 * half) {
        for (let i = start; i < start + half; i++) {
          const [a, b] = [to[i]!, to[i + half]!];
          to[i] = a + b;
          to[i + half] = a - b;
        }
      }
    }
    const scale = 1 / Math.sqrt(BLOCK);
    for (let i = 0; i < DIMENSION_MAX; i++) to[i]! *= scale;
    from = to;
  }
  return from;
}

/** The dense vector of a text, of unit length; the same for a query and a memory. */
export function denseVector(text: string): Float32Array<ArrayBuffer> {
  const turned = rotated(localEmbedder.embedQuery(text).vector);
  const random = randomOf(hashText(text));
  const vector = new Float32Array(DIMENSION_MAX);
  const scale = NOISE / Math.sqrt(DIMENSION_MAX);
  // The table is short for all the texts: sums of two places of it are many more.
  let [one, other] = [Math.floor(random() * normal.length), Math.floor(random() * normal.length)];
  let square = 0;
  for (let i = 0; i < DIMENSION_MAX; i++) {
    one = (one + 1) & 0xffff;
    other = (other + 3) & 0xffff;
    const value = turned[i]! + scale * Math.SQRT1_2 * (normal[one]! + normal[other]!);
    vector[i] = value;
    square += value * value;
  }
  const length = Math.sqrt(square);
  for (let i = 0; i < DIMENSION_MAX; i++) vector[i]! /= length;
  return vector;
}
