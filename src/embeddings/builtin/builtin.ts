/**
 * The built-in provider: the meaning of a text by the encoder, on a thread of its own, together with its words.
 *
 * @module
 */
import { Cache, type CacheUses, textBytes } from "../../lib/cache.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { type EmbeddedQuery, type Embedder, type Embedding, NO_VECTOR, type Request } from "../embedder.ts";
import { memoryTerms, plainQueryTerms, wordsOf } from "../local/local.ts";
import type { ProviderError } from "../remote/provider-error.ts";
import type { EncoderThread } from "./encoder-thread.ts";
import { WordWeights } from "./word-weights.ts";

const BUILTIN_DIMENSION = 384;

/** The encoder reads 512 tokens of a text, each of a few characters. */
const ENCODED_LENGTH_MAX = 8_000;

/** What the encoder makes of memories in some 50 ms, where the processor has AVX512, or in twice that with AVX2. */
const PROMPT_CHARACTERS = 1_000;

const QUERY_VECTOR_BYTES = BUILTIN_DIMENSION * 4 + 300;

/** Finds by words alone, which weigh as with the encoder. */
export class WordEmbedder implements Embedder {
  readonly #weights = new WordWeights();

  embedMemory(text: string): Embedding {
    return wordsOf(text);
  }

  embedQuery(text: string): EmbeddedQuery {
    return { vector: NO_VECTOR, lexical: plainQueryTerms(text, (word) => this.#weights.of(word)) };
  }
}

export class BuiltinEmbedder implements Embedder {
  readonly dimension = BUILTIN_DIMENSION;
  readonly #thread: EncoderThread;
  readonly #weights = new WordWeights();
  /** Promises, so that equal queries share one. */
  readonly #queryVectors = new Cache<Promise<Float32Array>>(CACHE_BYTES_MAX.queryVectors);

  constructor(thread: EncoderThread) {
    this.#thread = thread;
  }

  /** Why texts fail at present. */
  get failure(): ProviderError | undefined {
    return this.#thread.failure;
  }

  get queryVectorUses(): CacheUses {
    return this.#queryVectors.uses;
  }

  /** How many texts wait for the encoder. */
  get waiting(): number {
    return this.#thread.waiting;
  }

  /** Gets ready, so that the first text need not wait. */
  open(): void {
    this.#thread.open();
  }

  /** Whether the vector of a memory comes at once, as far as it can be told. */
  isPrompt(text: string): boolean {
    return this.#thread.characters + text.length <= PROMPT_CHARACTERS;
  }

  async embedMemory(text: string, request: Request): Promise<Embedding> {
    const terms = memoryTerms(text);
    return { vector: await this.#encode(text, false, request), terms };
  }

  async embedQuery(text: string, request: Request): Promise<EmbeddedQuery> {
    const lexical = plainQueryTerms(text, (word) => this.#weights.of(word));
    return { vector: lexical.size === 0 ? NO_VECTOR : await this.#queryVector(text, request), lexical };
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #queryVector(text: string, request: Request): Promise<Float32Array> {
    const cached = this.#queryVectors.get(text);
    if (cached !== undefined) return cached;
    const vector = this.#encode(text, true, request);
    this.#queryVectors.set(text, vector, textBytes(text) + QUERY_VECTOR_BYTES);
    vector.catch(() => {
      if (this.#queryVectors.peek(text) === vector) this.#queryVectors.delete(text);
    });
    return vector;
  }

  async #encode(text: string, isQuery: boolean, { limitsId, signal }: Request): Promise<Float32Array> {
    const encoded = { text: text.slice(0, ENCODED_LENGTH_MAX), isQuery, owner: limitsId, signal };
    return (await this.#thread.encode(encoded)) ?? NO_VECTOR;
  }
}
