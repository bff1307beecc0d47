/**
 * The built-in provider: the meaning of a text by the encoder, on a thread of its own, together with its words.
 *
 * @module
 */
import { Cache, type CacheUses, textBytes } from "../../lib/cache.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { type EmbeddedQuery, type Embedder, type Embedding, NO_VECTOR, PASSAGE_DIMENSION, type Request } from "../embedder.ts";
import type { ProviderError } from "../remote/provider-error.ts";
import { memoryTerms, queryTerms, wordsOf } from "../words/terms.ts";
import type { EncoderThread } from "./encoder-thread.ts";
import { passagesOf } from "./passages.ts";
import { WordWeights } from "./word-weights.ts";

/** The encoder reads 512 tokens of a text, each of a few characters. */
const ENCODED_LENGTH_MAX = 8_000;

/** Length of text that takes the encoder some 50 ms, where the processor has AVX512, or twice that with AVX2. */
const PROMPT_CHARACTERS = 1_000;

const QUERY_VECTOR_BYTES = PASSAGE_DIMENSION * 4 + 300;

/** Finds by words alone, which weigh as with the encoder. */
export class WordEmbedder implements Embedder {
  readonly #weights = new WordWeights();

  embedMemory(text: string): Embedding {
    return wordsOf(text);
  }

  embedQuery(text: string): EmbeddedQuery {
    return { vector: NO_VECTOR, lexical: queryTerms(text, (word) => this.#weights.of(word)) };
  }
}

export class BuiltinEmbedder implements Embedder {
  readonly dimension = PASSAGE_DIMENSION;
  readonly #thread: EncoderThread;
  readonly #weights = new WordWeights();
  /** Promises, so that equal queries share one. */
  readonly #queryVectors = new Cache<Promise<Float32Array>>(CACHE_BYTES_MAX.queryVectors);
  /** Length of the texts that are being encoded, with passages that have not been given to the thread yet. */
  #characters = 0;

  constructor(thread: EncoderThread) {
    this.#thread = thread;
  }

  /** Reason why texts fail at present. */
  get failure(): ProviderError | undefined {
    return this.#thread.failure;
  }

  get queryVectorUses(): CacheUses {
    return this.#queryVectors.uses;
  }

  forgetQueries(): void {
    this.#queryVectors.clear();
  }

  /** Number of texts that wait for the encoder. */
  get waiting(): number {
    return this.#thread.waiting;
  }

  /** Gets ready, so that the first text need not wait. */
  open(): void {
    this.#thread.open();
  }

  /** Checks whether a text has its turn soon: what waits decides, and not how long the text itself is. */
  get isPrompt(): boolean {
    return this.#characters <= PROMPT_CHARACTERS;
  }

  async embedMemory(text: string, request: Request): Promise<Embedding> {
    const terms = memoryTerms(text);
    return { ...(await this.#counted(text, () => this.#encodePassages(text, request))), terms };
  }

  async embedQuery(text: string, request: Request): Promise<EmbeddedQuery> {
    const lexical = queryTerms(text, (word) => this.#weights.of(word));
    return { vector: lexical.ids.length === 0 ? NO_VECTOR : await this.#queryVector(text, request), lexical };
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #queryVector(text: string, request: Request): Promise<Float32Array> {
    const cached = this.#queryVectors.get(text);
    if (cached !== undefined) return cached;
    const vector = this.#counted(text, () => this.#encode(text, true, request));
    this.#queryVectors.set(text, vector, textBytes(text) + QUERY_VECTOR_BYTES);
    vector.catch(() => {
      if (this.#queryVectors.peek(text) === vector) this.#queryVectors.delete(text);
    });
    return vector;
  }

  /** Encodes passages one after another, so that others get their turns in between. */
  async #encodePassages(text: string, request: Request): Promise<Pick<Embedding, "vector" | "passages">> {
    const vectors: Float32Array[] = [];
    for (const { from, to } of passagesOf(text)) vectors.push(await this.#encode(text.slice(from, to), false, request));
    if (vectors.every(({ length }) => length === 0)) return { vector: NO_VECTOR };
    if (vectors.length === 1) return { vector: vectors[0]! };
    const vector = new Float32Array(vectors.length * PASSAGE_DIMENSION);
    // A passage without a vector, being of unknown characters, is equally far from everything.
    for (const [i, one] of vectors.entries()) vector.set(one, i * PASSAGE_DIMENSION);
    return { vector, passages: vectors.length };
  }

  async #counted<Result>(text: string, work: () => Promise<Result>): Promise<Result> {
    this.#characters += text.length;
    try {
      return await work();
    } finally {
      this.#characters -= text.length;
    }
  }

  async #encode(text: string, isQuery: boolean, { limitsId, signal }: Request): Promise<Float32Array> {
    const encoded = { text: text.slice(0, ENCODED_LENGTH_MAX), isQuery, owner: limitsId, signal };
    return (await this.#thread.encode(encoded)) ?? NO_VECTOR;
  }
}
