/**
 * What turns text into something that can be compared: the promise every provider keeps.
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
 * The layout of the built-in provider's vectors, which are as long as any: places of words first, then meaning, and in the last
 * place what a memory gives up of its length, where a query has nothing.
 */
export const WORD_PLACES = 1279;
export const LENGTH_PLACE = DIMENSION_MAX - 1;

/** What is stored for one memory. */
export interface Embedding {
  /** As many floats as the provider's vectors have, unit length; none for a text that is found by its words alone. */
  readonly vector: Float32Array;
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
  /** The numbers of the vector that are not zero, of a provider that has few of them. */
  readonly parts?: QueryParts | undefined;
}

/** Whether it finds by meaning, and not by its words alone. */
export function hasMeaning(query: EmbeddedQuery): boolean {
  // A vector may have to be made first.
  return query.parts !== undefined || query.vector.length > 0;
}

export interface QueryParts {
  /** Places of single numbers; where one comes again, its number is zero. */
  readonly places: Uint16Array;
  readonly numbers: Float32Array;
  /** Others side by side, and the place of the first. */
  readonly rest: Float32Array;
  readonly restFrom: number;
}

/**
 * The id of a term, an unsigned 32-bit number whose top bits say its kind:
 *
 * ```
 * 0xxx…  a stem of the table: its row
 * 10xx…  a word the table does not know (a name, an id, another language): 30 bits of its hash. Two words of a scope with
 *        10,000 such words share an id with a chance of 1 in 100,000 for each word asked; they then count as one word.
 * 10 1111 11…  a sign: 24 bits of its hash. No word has such an id, so a memory's signs are the last before its fingerprint
 * 110x…  the fingerprint of a whole text: 29 bits over all its words in order, stop words too
 * ```
 */
export type TermId = number;

export const UNKNOWN_WORD = 0x80000000;
export const SIGN = 0xbf000000;
export const FINGERPRINT = 0xc0000000;

/**
 * The words of a query as `memories/relevance.ts` needs them: a hash table, with chaining, of every term that would answer
 * to one of the query's words. Built once per query; a candidate's terms are then looked up one by one.
 */
export interface QueryTerms {
  /** The query itself, for `explain`. */
  readonly text: string;
  /** Number of distinct terms: words, or signs where there is no word; 0 for a text of neither. */
  readonly size: number;
  readonly ids: Uint32Array;
  /** What each term weighs, 0 to 1: rare words more than common ones. */
  readonly weights: Float64Array;
  readonly fingerprint: TermId;
  /** By `bucketOf` a term, a power of two long: the first entry of the bucket's chain, or 0. */
  readonly buckets: Uint32Array;
  /** By entry, from 1: a term that answers. It has an entry for each of the query's terms that it answers to. */
  readonly keys: Uint32Array;
  /** By entry: 256 × index of the query's term + worth, where `WHOLE_WORTH` is the word itself. */
  readonly answers: Uint32Array;
  /** By entry: the next one of the chain, or 0. */
  readonly next: Uint32Array;
}

/** What the word itself is worth; a word near in meaning is worth less. */
export const WHOLE_WORTH = 255;

/** An odd multiplier, random in each process. */
const BUCKET_KEY = (crypto.getRandomValues(new Uint32Array(1))[0]! | 1) >>> 0;

/**
 * The bucket of a term in a hash table of `mask + 1` buckets, at least two: multiply-shift hashing, keyed per process. Ids
 * follow from the text by a public hash, so without a key a text could be made whose terms all meet in one bucket; with it,
 * two given ids meet in one of n buckets with a chance of at most 2 in n.
 *
 * @see https://doi.org/10.1006/jagm.1997.0873 (Dietzfelbinger et al., A Reliable Randomized Algorithm for the Closest-Pair Problem)
 */
export function bucketOf(id: TermId, mask: number): number {
  return Math.imul(id, BUCKET_KEY) >>> Math.clz32(mask);
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
  /** Those who wait get their turns alike, whatever each of them has waiting. */
  readonly limitsId: string;
  /** Once it aborts, nobody waits any more. */
  readonly signal?: AbortSignal;
}
