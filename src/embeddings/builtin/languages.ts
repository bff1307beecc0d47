/**
 * Takes out of a vector what it says about the language of its text instead of the meaning.
 *
 * The vectors of all texts lie in a narrow cone, and within it those of one language lie together. So the mean over languages, moved some
 * of the way to the mean of the text's own language, is subtracted: texts about the same subject become near to each other, in one
 * language or two, and one threshold serves all. English texts are nearer to one another than those of other languages, so theirs moves
 * further. Questions and memories have means of their own.
 *
 * Memories are encoded with the mark of queries, as questions are: of fifteen short memories three more are found, and of questions in
 * another language two in a hundred more, than with the mark of passages.
 *
 * The language is the one whose mean, less that over languages, the vector points to most; a language without a mean gets the nearest.
 * `scripts/encoder/main.ts` makes the means.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import type { EncodedKind } from "./encoder.ts";
import path from "./languages.bin" with { type: "file" };

const DIMENSION = 384;

/** Languages that have a mean, in the order of the file. */
export const LANGUAGES =
  "en de fr es it pt nl sv da nb fi pl cs hu ro bg ru uk hr el tr ar fa he hi bn ta th vi id zh ja ko ca lt sw".split(" ");

/** Share of the mean of the text's own language that is subtracted; the rest is that over languages. */
const OWN_SHARE_OF_ENGLISH = 0.5;
const OWN_SHARE_OF_OTHERS = 0.2;

/** Vectors that are subtracted: the mean over languages, and for each language that together with its own. */
interface Means {
  readonly general: Float64Array;
  /** By language: the direction from the mean over languages to its own, unit length. */
  readonly directions: readonly Float64Array[];
  /** By language. */
  readonly subtracted: readonly Float64Array[];
}

/** @param means - that over languages and then those of `LANGUAGES`, side by side */
function meansOf(means: Float32Array): Means {
  const mean = (i: number) => Float64Array.from(means.subarray(i * DIMENSION, (i + 1) * DIMENSION));
  const general = mean(0);
  const own = Array.from({ length: means.length / DIMENSION - 1 }, (_, i) => mean(i + 1));
  return {
    general,
    directions: own.map((one) => unit(one.map((value, i) => value - general[i]!))),
    subtracted: own.map((one, language) => {
      const share = LANGUAGES[language] === "en" ? OWN_SHARE_OF_ENGLISH : OWN_SHARE_OF_OTHERS;
      return one.map((value, i) => share * value + (1 - share) * general[i]!);
    }),
  };
}

function readMeans(): Readonly<Record<EncodedKind, Means>> {
  const all = new Float32Array(new Uint8Array(readFileSync(path)).buffer);
  return { query: meansOf(all.subarray(0, all.length / 2)), passage: meansOf(all.subarray(all.length / 2)) };
}

const MEANS = readMeans();

/**
 * Centres a vector by its language, and makes it unit length again.
 *
 * @param vector - of unit length, as the encoder makes it; it is not changed
 */
export function centred(vector: Float32Array, kind: EncodedKind): Float32Array {
  const means = MEANS[kind];
  const subtracted = means.subtracted[nearestLanguage(vector, means)]!;
  return Float32Array.from(unit(Float64Array.from(vector, (value, i) => value - subtracted[i]!)));
}

/** Returns the language of a text by its vector, as an index of `LANGUAGES`. */
export function languageOf(vector: Float32Array, kind: EncodedKind): number {
  return nearestLanguage(vector, MEANS[kind]);
}

function nearestLanguage(vector: Float32Array, { general, directions }: Means): number {
  let nearest = 0;
  let most = Number.NEGATIVE_INFINITY;
  directions.forEach((direction, language) => {
    let dot = 0;
    for (let i = 0; i < DIMENSION; i++) dot += (vector[i]! - general[i]!) * direction[i]!;
    if (dot > most) [nearest, most] = [language, dot];
  });
  return nearest;
}

function unit(vector: Float64Array): Float64Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return length === 0 ? vector : vector.map((value) => value / length);
}
