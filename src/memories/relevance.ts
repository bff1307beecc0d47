/**
 * How relevant a memory is for a query: one score from 0 to 1 out of meaning and words, and the reasons for it.
 *
 * What words cover is found out here; how that and the cosine make a score is `embeddings/score.ts`'s.
 *
 * A score depends on the two texts and on nothing else: not on how many memories there are, nor on what they say, so a
 * threshold keeps its meaning as memories come and go. A text scores exactly 1 for itself, known by its fingerprint and
 * all its words; no other text reaches 1, since its cosine is below 1. Pure: no clock, no storage, no embedding.
 *
 * @module
 */
import { bucketOf, type EmbeddedQuery, hasMeaning, NO_COSINE, type QueryTerms, SIGN, WHOLE_WORTH } from "../embeddings/embedder.ts";
import { spellings } from "../embeddings/local/local.ts";
import { type Calibration, closenessOf, LOCAL_CALIBRATION, nearnessOf, scoreOfCloseness } from "../embeddings/score.ts";
import { LIMITS } from "../lib/limits.ts";
import { firstCodePoints } from "../lib/text.ts";
import { LONG_FROM, LONG_PENALTY } from "../vectors/length-codes.ts";

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
export function scoreOf(both: number, calibration = LOCAL_CALIBRATION): number {
  return both === SAME_TEXT ? 1 : scoreOfCloseness(calibration, both);
}

/** What a memory of the query's very words has for `closeness`: more than any other. */
const SAME_TEXT = 2;

/**
 * What `relevance` shows as a score, which rises with it: enough to tell which of many memories score best.
 *
 * @param from - and `to`: which of the terms are the memory's
 */
export function closeness(
  query: EmbeddedQuery,
  cosineOfVectors: number,
  terms: Uint32Array,
  calibration: Calibration,
  from = 0,
  to = terms.length,
): number {
  const { lexical } = query;
  const cosine = hasMeaning(query) ? cosineOfVectors : NO_COSINE;
  if (lexical.size === 0 || to === from) return 0;
  // A fingerprint alone answers to nothing.
  if (to - from === 1) return closenessOf(calibration, 0, cosine);
  const end = endOf(lexical, terms, from, to);
  if (answer(lexical, terms, from, end) && terms[to - 1] === lexical.fingerprint) return SAME_TEXT;
  return closenessOf(calibration, coverage(lexical, end - from), cosine);
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
    const parts = {
      semantic: rounded(hasMeaning(query) ? nearnessOf(calibration, cosine) : 0, 1e4),
      lexical: rounded(coverage(lexical, end), 1e4),
    };
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

/** Hides the last bits, in which machines may differ: how a cosine is summed up, how an engine takes a logarithm. */
function rounded(value: number, unit: 1e4 | 1e6): number {
  return Math.round(value * unit) / unit;
}
