/**
 * Relevance of a memory for a query: one score from 0 to 1 out of meaning and words, and the reasons for it.
 *
 * The score is `embeddings/score.ts`'s; the reasons are found out here.
 *
 * A score depends on the two texts and on nothing else: not on how many memories there are, nor on what they say, so a
 * threshold keeps its meaning as memories come and go. A text scores exactly 1 for itself, known by its fingerprint and
 * all its words; no other text reaches 1, since its cosine is below 1. Pure: no clock, no storage, no embedding.
 *
 * @module
 */
import { type EmbeddedQuery, hasMeaning, NO_COSINE } from "../embeddings/embedder.ts";
import {
  BUILTIN_CALIBRATION,
  closeness,
  coverageOf,
  endOf,
  nearnessOf,
  SAME_TEXT,
  scoreOfCloseness,
  totalWeight,
} from "../embeddings/score.ts";
import { spellings } from "../embeddings/words/terms.ts";
import { LIMITS } from "../lib/limits.ts";
import { firstCodePoints } from "../lib/text.ts";

/** Reasons why a memory was found, as the API answers them. */
export interface Explanation {
  /** 0 to 1: how near the two are in meaning and wording as a whole. */
  semantic: number;
  /** 0 to 1: how much of the query's words the memory has. */
  lexical: number;
  /** The query's words that the memory answers to, in the query's order; those with the largest shares when there are many. */
  matches: WordMatch[];
  /** Number of others, if any. */
  omitted?: number;
}

export interface WordMatch {
  /** As the query writes it. */
  word: string;
  matched_by: "word";
  /** As the memory writes it, where that is otherwise. */
  matched_word?: string;
  /** Its share of the query's weight, 0 to 1. */
  share: number;
}

/**
 * Scores one memory for a query.
 *
 * @param cosine - of the query's vector and the memory's, -1 to 1
 * @param terms - the memory's, as stored with its vector
 * @returns 0 to 1, to six decimals; 0 where either text has no letter, digit or symbol. O(terms).
 */
export function relevance(query: EmbeddedQuery, cosine: number, terms: Uint32Array, calibration = BUILTIN_CALIBRATION): number {
  if (query.lexical.ids.length === 0 || terms.length === 0) return 0;
  return scoreOf(closeness(query.lexical, calibration, hasMeaning(query) ? cosine : NO_COSINE, terms), calibration);
}

/** The same by what `closeness` gives. */
export function scoreOf(both: number, calibration = BUILTIN_CALIBRATION): number {
  return both === SAME_TEXT ? 1 : scoreOfCloseness(calibration, both);
}

/** @param content - the memory's text, for the spelling of its words */
export type Explain = (cosine: number, terms: Uint32Array, content: string) => Explanation;

/**
 * Makes what says for each memory what `relevance` scored: its two parts, and which of the query's words were met by what.
 * A text takes milliseconds to be cut for the spelling of its words, so the query is cut here, once.
 */
export function explainer(query: EmbeddedQuery, calibration = BUILTIN_CALIBRATION): Explain {
  const { lexical } = query;
  const asked = spellings(lexical.text, "query");
  const total = totalWeight(lexical);
  return (cosine, terms, content) => {
    if (lexical.ids.length === 0 || terms.length === 0) return { semantic: 0, lexical: 0, matches: [] };
    const end = endOf(lexical, terms, 0, terms.length);
    const written = spellings(content, "memory");
    const matches: WordMatch[] = [];
    for (const [id, word] of asked) {
      if (placeOf(terms, id, end) === -1) continue;
      const match: WordMatch = {
        word: shown(word),
        matched_by: "word",
        share: rounded(lexical.weights[placeOf(lexical.ids, id)]! / total),
      };
      const other = written.get(id);
      if (other !== undefined && other.toLowerCase() !== word.toLowerCase()) match.matched_word = shown(other);
      matches.push(match);
    }
    const parts = {
      semantic: rounded(hasMeaning(query) ? nearnessOf(calibration, cosine) : 0),
      lexical: rounded(coverageOf(lexical, terms)),
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

/** The place of a term among the first of some that ascend, or -1. */
function placeOf(terms: Uint32Array, id: number, length = terms.length): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (terms[middle]! < id) low = middle + 1;
    else high = middle;
  }
  return low < length && terms[low] === id ? low : -1;
}

/** Hides the last bits, in which machines may differ: how a cosine is summed up. */
function rounded(value: number): number {
  return Math.round(value * 1e4) / 1e4;
}
