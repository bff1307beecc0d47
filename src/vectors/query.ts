/**
 * What a search looks for, and what it finds.
 *
 * @module
 */
import type { QueryTerms } from "../embeddings/embedder.ts";
import type { Calibration } from "../embeddings/score.ts";
import type { BareId } from "../lib/ids.ts";
import { packed, unpacked } from "./packed.ts";
import type { QueryWords } from "./term-search.ts";

export interface Query {
  /** As `quantize` gives it; of one that was embedded here, valid until that of another is asked for. */
  readonly vector: Int16Array;
  readonly words: QueryWords & Pick<QueryTerms, "fingerprint">;
  /** How words and cosine make a score together. */
  readonly calibration: Calibration;
  /** How many candidates are wanted. */
  readonly limit: number;
}

/**
 * A query as another thread is given it:
 *
 * ```
 * 8 bytes each: HEADER numbers  |  weights  |  4 each: keys  |  answers  |  2 each: vector
 * ```
 */
export function packQuery({ vector, words: { weights, keys, answers, fingerprint }, calibration, limit }: Query): string {
  const { keysAt, answersAt, vectorAt } = layoutOf(weights.length, keys.length);
  return packed(vectorAt + vector.byteLength, (buffer) => {
    const { kind, lexicalShare, cosineOfUnrelated, cosineOfSame, relevant } = calibration;
    const numbers = new Float64Array(buffer, 0, HEADER + weights.length);
    numbers.set([weights.length, keys.length, vector.length, limit, fingerprint]);
    numbers.set([KINDS.indexOf(kind), lexicalShare, cosineOfUnrelated, cosineOfSame, relevant], COUNTS);
    numbers.set(weights, HEADER);
    new Uint32Array(buffer, keysAt, keys.length).set(keys);
    new Uint32Array(buffer, answersAt, keys.length).set(answers);
    new Int16Array(buffer, vectorAt, vector.length).set(vector);
  });
}

export function unpackQuery(text: string): Query {
  const buffer = unpacked(text);
  const header = new Float64Array(buffer, 0, HEADER);
  const [weightCount, keyCount, dimension, limit, fingerprint, kindAt, lexicalShare, cosineOfUnrelated, cosineOfSame, relevant] =
    header as unknown as Header;
  const { keysAt, answersAt, vectorAt } = layoutOf(weightCount, keyCount);
  const weights = new Float64Array(buffer, 8 * HEADER, weightCount);
  const [keys, answers] = [new Uint32Array(buffer, keysAt, keyCount), new Uint32Array(buffer, answersAt, keyCount)];
  const vector = new Int16Array(buffer, vectorAt, dimension);
  const calibration = { kind: KINDS[kindAt]!, lexicalShare, cosineOfUnrelated, cosineOfSame, relevant };
  return { vector, words: { weights, keys, answers, fingerprint }, calibration, limit };
}

const KINDS = ["builtin", "measured"] as const;
const COUNTS = 5;
const HEADER = 10;
type Header = [number, number, number, number, number, number, number, number, number, number];

function layoutOf(weightCount: number, keyCount: number): { keysAt: number; answersAt: number; vectorAt: number } {
  const keysAt = 8 * (HEADER + weightCount);
  return { keysAt, answersAt: keysAt + 4 * keyCount, vectorAt: keysAt + 8 * keyCount };
}

/** A query on the thread that scores what is found. */
export interface ScoredQuery extends Query {
  /**
   * A number that rises with the score of a memory of these terms: at most what the calibration gives, but for the very text of the query.
   * Terms are from one place to before another, or all that are given.
   */
  readonly score: (cosine: number, terms: Uint32Array, from?: number, to?: number) => number;
  /** How many candidates are enough where all that pass are scored by it: at most `limit`. */
  readonly enough: number;
}

/** A stored vector, by its id and its memory, and its cosine with the query. */
export interface Neighbour {
  readonly id: BareId;
  readonly memory: BareId;
  /** -1 to 1; vectors have unit length. */
  readonly cosine: number;
}
