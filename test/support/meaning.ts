/**
 * What the built-in provider makes of texts, on the thread of the test.
 *
 * @module
 */
import { type Encoder, openEncoder } from "../../src/embeddings/builtin/encoder.ts";
import { centred } from "../../src/embeddings/builtin/languages.ts";
import { WordWeights } from "../../src/embeddings/builtin/word-weights.ts";
import { type EmbeddedQuery, type Embedding, NO_VECTOR } from "../../src/embeddings/embedder.ts";
import { memoryTerms, queryTerms } from "../../src/embeddings/words/terms.ts";

let opened: Encoder | undefined;
const weights = new WordWeights();
/** A text takes milliseconds. */
const encoded = new Map<string, Float32Array | undefined>();

/** The vector of a text as the network gives it, not centred. */
export function rawVector(text: string): Float32Array {
  opened ??= openEncoder();
  if (!encoded.has(text)) encoded.set(text, opened.encode(text, "query"));
  return encoded.get(text) ?? NO_VECTOR;
}

function meaningOf(text: string, kind: "query" | "passage"): Float32Array {
  const raw = rawVector(text);
  return raw.length === 0 ? raw : centred(raw.slice(), kind);
}

export function embeddedMemory(text: string): Embedding {
  return { vector: meaningOf(text, "passage"), terms: memoryTerms(text) };
}

export function embeddedQuery(text: string): EmbeddedQuery {
  return { vector: meaningOf(text, "query"), lexical: queryTerms(text, (word) => weights.of(word)) };
}
