/**
 * An embedder of made-up vectors, for tests of what is done with vectors and not of what they say: the same ones for the same text at
 * once, near where texts share words.
 *
 * @module
 */
import { denseVector } from "../../scripts/benchmark/dense.ts";
import type { Embedder, EmbeddedQuery, Embedding, QueryTerms } from "../../src/embeddings/embedder.ts";
import { memoryTerms, queryTerms } from "../../src/embeddings/words/terms.ts";

export const madeEmbedder = {
  embedMemory: (text: string): Embedding => ({ vector: denseVector(text), terms: memoryTerms(text) }),
  embedQuery: (text: string): EmbeddedQuery => ({ vector: denseVector(text), lexical: madeQueryTerms(text) }),
} satisfies Embedder;

/** Long words weigh more. */
export function madeQueryTerms(text: string): QueryTerms {
  return queryTerms(text, (word) => Math.min(1, word.length / 8));
}
