/**
 * Interface of every provider: turns text into something that can be compared.
 *
 * A memory is stored as a vector and its distinct terms; a query becomes a vector and its terms with what each weighs.
 * The vector finds candidates by meaning and words together; the terms decide between them (`memories/relevance.ts`),
 * so a name, a date or an id counts even where two vectors lie close. No text is read again at search time.
 *
 * @module
 */

/** The most numbers that a vector can have. How many it has is a property of its provider, and those of two are never compared. */
export const DIMENSION_MAX = 1536;

/**
 * Dimension of each vector where a text has several, one for each of its passages: that of the built-in provider, which alone
 * makes more than one.
 */
export const PASSAGE_DIMENSION = 384;
/** Passages of a text. */
export const PASSAGES_MAX = 64;

/** Embedding that is stored for one memory. */
export interface Embedding {
  /**
   * As many floats as the provider's vectors have, unit length; none for a text that is found by its words alone. Of a text with passages
   * the vectors of all of them, side by side.
   */
  readonly vector: Float32Array;
  /** Number of passages that the text was cut into; 1 unless given. */
  readonly passages?: number;
  /**
   * Ids of the distinct terms, ascending, without duplicates; see `TermId` for what an id says. The last one is the
   * text's fingerprint. Empty for a text without a letter, digit or sign.
   */
  readonly terms: Uint32Array;
}

/** The vector of a text that has none, or has none yet. */
export const NO_VECTOR = new Float32Array(0);

/** The cosine with a text that has no vector: less than any other. */
export const NO_COSINE = -2;

/** A query ready to be compared with memories. */
export interface EmbeddedQuery {
  /** None of a query that finds by its words alone. */
  readonly vector: Float32Array;
  readonly lexical: QueryTerms;
}

/** Checks whether it finds by meaning, and not by its words alone. */
export function hasMeaning({ vector }: EmbeddedQuery): boolean {
  return vector.length > 0;
}

/**
 * The id of a term, an unsigned 32-bit number by which words, symbols and fingerprints differ:
 *
 * ```
 * below SYMBOL       a hash of a word. Two words of a scope with 10,000 words share an id with a chance of 1 in 200,000 for each word
 *                    of a query; they then count as one word.
 * from SYMBOL on     24 bits of the hash of a symbol: a memory's symbols are the last before its fingerprint
 * from FINGERPRINT   the fingerprint of a whole text: 29 bits over all its words in order, stop words too
 * ```
 */
export type TermId = number;

export const SYMBOL = 0xbf000000;
export const FINGERPRINT = 0xc0000000;

/** The words of a query, as they are looked for in the terms of memories. */
export interface QueryTerms {
  /** The query itself, for `explain`. */
  readonly text: string;
  /** Its distinct terms, ascending: words, or symbols where there is no word; none for a text of neither. */
  readonly ids: Uint32Array;
  /** Weight of each term, above 0 and up to 1: rare words more than common ones. */
  readonly weights: Float64Array;
  readonly fingerprint: TermId;
}

/**
 * Turns texts into vectors and terms. Both methods take any string, never throw for its content, and give the same answer
 * for the same text, until another identity of the provider is set (`embeddings.ts`).
 */
export interface Embedder {
  embedMemory(text: string, request: Request): Embedding | Promise<Embedding>;
  embedQuery(text: string, request: Request): EmbeddedQuery | Promise<EmbeddedQuery>;
}

/** For whom a text is embedded. */
export interface Request {
  /** Owner of the text: owners get their turns alike, whatever each of them has waiting. */
  readonly limitsId: string;
  /** Once it aborts, nobody waits any more. */
  readonly signal?: AbortSignal;
}
