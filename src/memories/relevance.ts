/**
 * How relevant a memory is for a query: one score from 0 to 1 out of meaning and words, and the reasons for it.
 *
 * ```
 * semantic  cosine of the two vectors, stretched so that what counts as the same subject reaches 1
 * lexical   share of the query's weight that the memory covers: a word itself whole, its nearest in meaning in part
 * score     calibrated(half semantic, half lexical; of a good provider three quarters semantic): 0.7 says "this is about it",
 *           for every provider
 * ```
 *
 * A score depends on the two texts and on nothing else: not on how many memories there are, nor on what they say, so a
 * threshold keeps its meaning as memories come and go. A text scores exactly 1 for itself, known by its fingerprint and
 * all its words; no other text reaches 1, since its cosine is below 1. Pure: no clock, no storage, no embedding.
 *
 * @module
 */
import type { Calibration } from "../embeddings/calibration.ts";
import { bucketOf, type EmbeddedQuery, type QueryTerms, SIGN, WHOLE_WORTH } from "../embeddings/embedder.ts";
import { spellings } from "../embeddings/local/local.ts";
import { LIMITS } from "../lib/limits.ts";
import { firstCodePoints } from "../lib/text.ts";
import { LONG_FROM, LONG_PENALTY } from "../vectors/length-codes.ts";

/** The built-in provider's, measured on public sets of conversations, questions and sentence pairs. */
export const LOCAL_CALIBRATION: Calibration = { lexicalShare: 0.5, cosineOfUnrelated: 0, cosineOfSame: 0.4, relevant: 0.5 };

/** Why a memory was found, as the API answers it. */
export interface Explanation {
  /** 0 to 1: how near the two are in meaning and wording as a whole. */
  semantic: number;
  /** 0 to 1: how much of the query's words the memory has. */
  lexical: number;
  /** The query's words that the memory answers to, in the query's order; those with the largest shares when there are many. */
  matches: WordMatch[];
  /** How many more there are, if any. */
  omitted?: number;
}

export interface WordMatch {
  /** As the query writes it. */
  word: string;
  matched_by: "word" | "meaning";
  /** As the memory writes it, where it is another word. */
  matched_word?: string;
  /** What it adds to `lexical`, 0 to 1: its share of the query's weight times what the match is worth. */
  share: number;
}

/** What is left of the way to 1 beyond `cosineOfSame`: little, so that only order changes there. */
const REST = 0.03;

/** For each of the query's terms, what the memory's best answer is worth (of 255) and which term that is. Scratch. */
let worths = new Uint8Array(64);
let answerers = new Uint32Array(64);

/**
 * Scores one memory for a query.
 *
 * @param cosine - of the query's vector and the memory's, -1 to 1
 * @param terms - the memory's, as stored with its vector
 * @returns 0 to 1, to six decimals; 0 where either text has no letter, digit or sign. O(terms).
 */
export function relevance(query: EmbeddedQuery, cosine: number, terms: Uint32Array, calibration = LOCAL_CALIBRATION): number {
  return scoreOf(closeness(query, cosine, terms, calibration), calibration);
}

/** The same by what `closeness` gives. */
export function scoreOf(both: number, { relevant } = LOCAL_CALIBRATION): number {
  return both === SAME_TEXT ? 1 : rounded(calibrated(both, relevant), 1e6);
}

/** What a memory of the query's very words has for `closeness`: more than any other. */
const SAME_TEXT = 2;

/**
 * What `relevance` shows as a score, which rises with it: enough to tell which of many memories score best.
 *
 * @param from - and `to`: which of the terms are the memory's
 */
export function closeness(
  { lexical }: EmbeddedQuery,
  cosine: number,
  terms: Uint32Array,
  calibration: Calibration,
  from = 0,
  to = terms.length,
): number {
  if (lexical.size === 0 || to === from) return 0;
  // A fingerprint alone answers to nothing.
  if (to - from === 1) return closenessAt(0, cosine, calibration);
  const end = endOf(lexical, terms, from, to);
  if (answer(lexical, terms, from, end) && terms[to - 1] === lexical.fingerprint) return SAME_TEXT;
  return closenessAt(coverage(lexical, end - from), cosine, calibration);
}

/** The same of a memory that is not the query itself, by the share of the query's weight that it covers. */
function closenessAt(covered: number, cosine: number, calibration: Calibration): number {
  const { lexicalShare } = calibration;
  return lexicalShare * covered + (1 - lexicalShare) * nearness(cosine, calibration);
}

/** @param content - the memory's text, for the spelling of its words */
export type Explain = (cosine: number, terms: Uint32Array, content: string) => Explanation;

/**
 * Makes what says for each memory what `relevance` scored: its two parts, and which of the query's words were met by what.
 * A text takes milliseconds to be cut for the spelling of its words, so the query is cut here, once.
 */
export function explainer(query: EmbeddedQuery, calibration = LOCAL_CALIBRATION): Explain {
  const { lexical } = query;
  const asked = spellings(lexical.text, "query");
  const total = lexical.weights.reduce((sum, weight) => sum + weight, 0);
  return (cosine, terms, content) => {
    if (lexical.size === 0 || terms.length === 0) return { semantic: 0, lexical: 0, matches: [] };
    const end = endOf(lexical, terms, 0, terms.length);
    answer(lexical, terms, 0, end);
    const written = spellings(content, "memory");
    const matches: WordMatch[] = [];
    for (let i = 0; i < lexical.size; i++) {
      const worth = worths[i]!;
      if (worth === 0) continue;
      const word = asked.get(lexical.ids[i]!) ?? "";
      const share = rounded(((lexical.weights[i]! / total) * worth) / WHOLE_WORTH, 1e4);
      const other = written.get(answerers[i]!);
      const isSame = worth === WHOLE_WORTH;
      const match: WordMatch = { word: shown(word), matched_by: isSame ? "word" : "meaning", share };
      if (other !== undefined && other.toLowerCase() !== word.toLowerCase()) match.matched_word = shown(other);
      matches.push(match);
    }
    const parts = { semantic: rounded(nearness(cosine, calibration), 1e4), lexical: rounded(coverage(lexical, end), 1e4) };
    const omitted = matches.length - LIMITS.explainedWordsMax;
    return omitted > 0 ? { ...parts, matches: ofLargestShare(matches), omitted } : { ...parts, matches };
  };
}

/** As many as an answer may have, in the order they had; of equal ones the first. */
function ofLargestShare(matches: readonly WordMatch[]): WordMatch[] {
  const order = matches.map((_, i) => i).sort((a, b) => matches[b]!.share - matches[a]!.share || a - b);
  const kept = new Set(order.slice(0, LIMITS.explainedWordsMax));
  return matches.filter((_, i) => kept.has(i));
}

function shown(word: string): string {
  return word.length <= LIMITS.explainedWordLengthMax ? word : `${firstCodePoints(word, LIMITS.explainedWordLengthMax)}…`;
}

/** A smooth rising map of 0 … 1 onto itself that takes `relevant` to 0.7. */
export function calibrated(both: number, relevant: number): number {
  const bend = (0.3 * relevant) / (0.7 - relevant);
  return (both * (1 + bend)) / (both + bend);
}

/** Fills `worths` and `answerers` by the terms that can answer; true if the memory has every word of the query itself. */
function answer(lexical: QueryTerms, terms: Uint32Array, from: number, end: number): boolean {
  const { buckets, keys, answers, next, size } = lexical;
  if (worths.length < size) {
    worths = new Uint8Array(2 * size);
    answerers = new Uint32Array(2 * size);
  }
  for (let i = 0; i < size; i++) worths[i] = 0;
  const mask = buckets.length - 1;
  let whole = 0;
  for (let i = from; i < end; i++) {
    const term = terms[i]!;
    for (let entry = buckets[bucketOf(term, mask)]!; entry !== 0; entry = next[entry]!) {
      if (keys[entry] !== term) continue;
      const found = answers[entry]!;
      const index = found >>> 8;
      const worth = found & 255;
      if (worth <= worths[index]!) continue;
      worths[index] = worth;
      answerers[index] = term;
      if (worth === WHOLE_WORTH) whole++;
    }
  }
  return whole === size;
}

/** Share of the query's weight that `worths` covers, less for a long memory. @param length - how many terms can answer */
function coverage({ size, weights }: QueryTerms, length: number): number {
  let have = 0;
  let all = 0;
  for (let i = 0; i < size; i++) {
    const weight = weights[i]!;
    all += weight;
    have += weight * worths[i]!;
  }
  const penalty = length > LONG_FROM ? LONG_PENALTY * rounded(Math.log2(length / LONG_FROM), 1e6) : 0;
  return have / WHOLE_WORTH / all / (1 + penalty);
}

/** Where the memory's terms end that can answer: not the fingerprint, the last of them; nor the signs before it, to a query of words. */
function endOf({ ids }: QueryTerms, terms: Uint32Array, from: number, to: number): number {
  let end = to - 1;
  if (ids[0]! < SIGN) while (end > from && terms[end - 1]! >= SIGN) end--;
  return end;
}

function nearness(cosine: number, { cosineOfUnrelated, cosineOfSame }: Calibration): number {
  const stretched = (cosine - cosineOfUnrelated) / (cosineOfSame - cosineOfUnrelated);
  return Math.max(0, Math.min(stretched, 1 - REST + REST * Math.min(1, cosine)));
}

/** Hides the last bits, in which machines may differ: how a cosine is summed up, how an engine takes a logarithm. */
function rounded(value: number, unit: 1e4 | 1e6): number {
  return Math.round(value * unit) / unit;
}
