/**
 * What a search looks for, and what it finds.
 *
 * @module
 */
import type { QueryTerms } from "../embeddings/embedder.ts";
import type { BareId } from "../lib/ids.ts";
import type { QueryWords } from "./term-search.ts";

/** How words and cosine make a score together: as in `memories/relevance.ts`, but for what does not change the order. */
export interface Blend {
  readonly lexicalShare: number;
  readonly cosineOfUnrelated: number;
  readonly cosineOfSame: number;
}

/** What is left of the way beyond `cosineOfSame`: little, so that only order changes there. */
const REST = 0.03;

/** @param coverage - share of the query's words that a memory has, 0 to 1 */
export function blended({ lexicalShare, cosineOfUnrelated, cosineOfSame }: Blend, coverage: number, cosine: number): number {
  const near = (cosine - cosineOfUnrelated) / (cosineOfSame - cosineOfUnrelated);
  return lexicalShare * coverage + (1 - lexicalShare) * (near > 1 ? 1 + REST * (cosine - cosineOfSame) : Math.max(0, near));
}

/** Plain data: it can be posted to another thread. */
export interface Query {
  /** As `quantize` gives it. */
  readonly vector: Int16Array;
  readonly words: QueryWords & Pick<QueryTerms, "fingerprint">;
  readonly blend: Blend;
  /** How many candidates are wanted. */
  readonly limit: number;
}

/** A query on the thread that scores what is found. */
export interface ScoredQuery extends Query {
  /** A number that rises with the score of a memory of these terms: at most what `blend` has of it, but of the very text of the query. */
  readonly score: (cosine: number, terms: Uint32Array) => number;
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
