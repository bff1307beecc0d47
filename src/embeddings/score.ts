/**
 * From a cosine and what words cover to one score: the only place where that is decided. Pure.
 *
 * ```
 *               closeness                                              score
 * builtin       (cosine + covered³) / 2                                straight to 0.7, then ever slower towards 1
 * others        a share of coverage, the rest of nearness: cosine      a smooth bend through 0.7
 *               stretched so that what is about the same reaches 1
 * no vector     coverage alone, 0.7 where half is covered              as of the provider
 *
 * coverage = weight of the query's words that the text has / weight of all of them
 * covered  = the same / (weight of all of them + 0.75): what a query of common words shares with a text says little
 * ```
 *
 * Closeness tells which of many texts score best. The score depends on the two texts alone, and 0.7 says "this is about it" for every
 * provider.
 *
 * @module
 */
import { NO_COSINE, type QueryTerms, SYMBOL } from "./embedder.ts";

/** Facts of a provider that scores need. */
export interface Calibration {
  readonly kind: "builtin" | "measured";
  /** Weight of words against meaning, 0 to 1. */
  readonly lexicalShare: number;
  /** The cosine of texts that have nothing to do with each other, and that of texts about the same thing. */
  readonly cosineOfUnrelated: number;
  readonly cosineOfSame: number;
  /** The closeness that is shown as 0.7, between 0 and 0.7. */
  readonly relevant: number;
}

const RELEVANT_SCORE = 0.7;

/**
 * Measured on everyday memories in English and 16 languages, and on long conversations: a cube leaves most to meaning, and has names and
 * ids decide. At 0.7 one in six questions about something else entirely still gets an answer; a higher threshold loses everyday ones.
 */
const COVERED_WEIGHT = 1;
const BOTH = 1 + COVERED_WEIGHT;
/** Weight that every query lacks: as much as three quarters of a rare word. */
const MISSING_WEIGHT = 0.75;
/** By how much more than is relevant the rest of the way to 1 becomes a third. */
const DECAY = 0.3 / BOTH;

export const BUILTIN_CALIBRATION: Calibration = {
  kind: "builtin",
  lexicalShare: COVERED_WEIGHT / BOTH,
  cosineOfUnrelated: 0,
  cosineOfSame: 1,
  relevant: 0.2255 / BOTH,
};

/** The provider `words`. */
export const WORDS_CALIBRATION: Calibration = { kind: "measured", lexicalShare: 1, cosineOfUnrelated: 0, cosineOfSame: 1, relevant: 0.5 };

/** The words of a query that are looked for, as a query has them. */
export type AskedWords = Pick<QueryTerms, "ids" | "weights" | "fingerprint">;

/** Value of `closeness` of a text of the query's very words: more than any other. */
export const SAME_TEXT = 2;

/**
 * Returns what the score of a text rises with. O(terms), as the ids of both ascend.
 *
 * @param cosine - of the two vectors; `NO_COSINE` where one of them has none
 * @param terms - the text's, as stored with its vector, from one place to before another
 */
export function closeness(
  words: AskedWords,
  calibration: Calibration,
  cosine: number,
  terms: Uint32Array,
  from = 0,
  to = terms.length,
): number {
  const end = endOf(words, terms, from, to);
  const have = matchingWeight(words, terms, from, end);
  if (have === 0) return closenessWithoutWords(calibration, cosine);
  const all = totalWeight(words);
  if (have === all && terms[to - 1] === words.fingerprint) return SAME_TEXT;
  return closenessOf(calibration, lessIfLong(have / all, end - from), cosine, all);
}

/** Returns the closeness of a text that has none of the query's words. */
export function closenessWithoutWords(calibration: Calibration, cosine: number): number {
  return closenessOf(calibration, 0, cosine, 0);
}

/** Returns the share of a query that a text's words cover, 0 to 1. */
export function coverageOf(words: AskedWords, terms: Uint32Array): number {
  const end = endOf(words, terms, 0, terms.length);
  const have = matchingWeight(words, terms, 0, end);
  return have === 0 ? 0 : lessIfLong(have / totalWeight(words), end);
}

/** End of the terms that can answer: not the fingerprint, the last of them; nor the symbols before it, to a query of words. */
export function endOf({ ids }: Pick<AskedWords, "ids">, terms: Uint32Array, from: number, to: number): number {
  let end = Math.max(from, to - 1);
  if (ids.length > 0 && ids[0]! < SYMBOL) while (end > from && terms[end - 1]! >= SYMBOL) end--;
  return end;
}

function matchingWeight({ ids, weights }: AskedWords, terms: Uint32Array, from: number, end: number): number {
  let have = 0;
  let at = from;
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i]!;
    while (at < end && terms[at]! < id) at++;
    if (at === end) break;
    if (terms[at] === id) have += weights[i]!;
  }
  return have;
}

/** A text of more terms covers a query by chance; each doubling adds this to the divisor 1 of what it covers. */
const LONG_FROM = 60;
const LONG_PENALTY = 0.15;

function lessIfLong(share: number, length: number): number {
  return length > LONG_FROM ? share / (1 + LONG_PENALTY * rounded(Math.log2(length / LONG_FROM))) : share;
}

/** Words alone never make a text the query's own. */
const WORDS_ALONE_MAX = 0.99;

/**
 * Says how close a text is to a query.
 *
 * @param coverage - share of the query's words that the text has, 0 to 1
 * @param cosine - of their vectors; `NO_COSINE` where one of them has none
 * @param weight - what all of the query's words weigh
 */
function closenessOf(calibration: Calibration, coverage: number, cosine: number, weight: number): number {
  const { kind, lexicalShare, relevant } = calibration;
  if (cosine === NO_COSINE) return Math.min(WORDS_ALONE_MAX, Math.min(1, 2 * relevant) * coverage);
  if (kind === "builtin") {
    const covered = (coverage * weight) / (weight + MISSING_WEIGHT);
    return (cosine + COVERED_WEIGHT * covered * covered * covered) / BOTH;
  }
  return lexicalShare * coverage + (1 - lexicalShare) * nearnessOf(calibration, cosine);
}

/** Weight of all words of a query: summed up in the order of `matchingWeight`, so that a text of all words has exactly as much. */
export function totalWeight({ weights }: Pick<QueryTerms, "weights">): number {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) sum += weights[i]!;
  return sum;
}

/** Rest of the way to 1 beyond `cosineOfSame`: little, so that only order changes there. */
const REST = 0.03;

/** Closeness of two vectors, 0 to 1. */
export function nearnessOf({ cosineOfUnrelated, cosineOfSame }: Calibration, cosine: number): number {
  const stretched = (cosine - cosineOfUnrelated) / (cosineOfSame - cosineOfUnrelated);
  return Math.max(0, Math.min(stretched, 1 - REST + REST * Math.min(1, cosine)));
}

/** The score of a closeness: 0 to 1, rising with it, to six decimals. */
export function scoreOfCloseness({ kind, relevant }: Calibration, closeness: number): number {
  return rounded(kind === "builtin" ? straightThenSlower(closeness, relevant) : calibrated(closeness, relevant));
}

function straightThenSlower(closeness: number, relevant: number): number {
  if (closeness <= relevant) return Math.max(0, (RELEVANT_SCORE * closeness) / relevant);
  return RELEVANT_SCORE + (1 - RELEVANT_SCORE) * (1 - Math.exp((relevant - closeness) / DECAY));
}

/** A smooth rising map of 0 … 1 onto itself that takes `relevant` to 0.7. */
export function calibrated(both: number, relevant: number): number {
  const bend = ((1 - RELEVANT_SCORE) * relevant) / (RELEVANT_SCORE - relevant);
  return (both * (1 + bend)) / (both + bend);
}

/** Hides the last bits, in which machines may differ: how a cosine is summed up, how an engine takes a logarithm. */
function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
