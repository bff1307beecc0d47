/**
 * Query of a search, and its result.
 *
 * @module
 */
import { NO_COSINE } from "../embeddings/embedder.ts";
import { type AskedWords, type Calibration, closeness } from "../embeddings/score.ts";
import type { BareId } from "../lib/ids.ts";
import { packed, unpacked } from "./packed.ts";

export interface Query {
  /** As `quantize` gives it; empty of one that finds by its words alone. */
  readonly vector: Int16Array;
  readonly words: AskedWords;
  /** Function of words and cosine that gives a score. */
  readonly calibration: Calibration;
  /** Number of candidates wanted. */
  readonly limit: number;
  /** Number that is enough where all that pass are scored: at most `limit`. */
  readonly enough: number;
  /** True if a memory is left out that scores 0, by what it has of words and meaning: by words alone that is nearly every one. */
  readonly isZeroLeftOut?: boolean;
}

/** Returns what the score of a memory rises with. @param terms - the memory's, from one place to before another, or all that are given */
export function closenessTo(
  { vector, words, calibration }: Query,
  cosine: number,
  terms: Uint32Array,
  from = 0,
  to = terms.length,
): number {
  return closeness(words, calibration, vector.length === 0 ? NO_COSINE : cosine, terms, from, to);
}

/**
 * A query as another thread is given it:
 *
 * ```
 * 8 bytes each: HEADER numbers  |  weights  |  4 each: ids  |  2 each: vector
 * ```
 */
export function packQuery({ vector, words: { ids, weights, fingerprint }, calibration, limit, enough }: Query): string {
  const { idsAt, vectorAt } = layoutOf(weights.length);
  return packed(vectorAt + vector.byteLength, (buffer) => {
    const { kind, lexicalShare, cosineOfUnrelated, cosineOfSame, relevant } = calibration;
    const numbers = new Float64Array(buffer, 0, HEADER + weights.length);
    numbers.set([weights.length, vector.length, limit, enough, fingerprint]);
    numbers.set([KINDS.indexOf(kind), lexicalShare, cosineOfUnrelated, cosineOfSame, relevant], COUNTS);
    numbers.set(weights, HEADER);
    new Uint32Array(buffer, idsAt, ids.length).set(ids);
    new Int16Array(buffer, vectorAt, vector.length).set(vector);
  });
}

export function unpackQuery(text: string): Query {
  const buffer = unpacked(text);
  const header = new Float64Array(buffer, 0, HEADER);
  const [wordCount, dimension, limit, enough, fingerprint, kindAt, lexicalShare, cosineOfUnrelated, cosineOfSame, relevant] =
    header as unknown as Header;
  const { idsAt, vectorAt } = layoutOf(wordCount);
  const weights = new Float64Array(buffer, 8 * HEADER, wordCount);
  const ids = new Uint32Array(buffer, idsAt, wordCount);
  const vector = new Int16Array(buffer, vectorAt, dimension);
  const calibration = { kind: KINDS[kindAt]!, lexicalShare, cosineOfUnrelated, cosineOfSame, relevant };
  return { vector, words: { ids, weights, fingerprint }, calibration, limit, enough };
}

const KINDS = ["builtin", "measured"] as const;
const COUNTS = 5;
const HEADER = 10;
type Header = [number, number, number, number, number, number, number, number, number, number];

function layoutOf(wordCount: number): { idsAt: number; vectorAt: number } {
  const idsAt = 8 * (HEADER + wordCount);
  return { idsAt, vectorAt: idsAt + 4 * wordCount };
}

/** A stored vector, by its id and its memory, and its cosine with the query. */
export interface Neighbour {
  readonly id: BareId;
  readonly memory: BareId;
  /** -1 to 1; vectors have unit length. */
  readonly cosine: number;
}
