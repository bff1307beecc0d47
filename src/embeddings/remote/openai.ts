/**
 * Embeds by asking a server that speaks `/v1/embeddings`: OpenAI, Ollama, llama.cpp, vLLM, LM Studio and others.
 *
 * Here are the cache of recent queries and one request with the options that the server takes. Which texts
 * share a request, what is retried and when the circuit opens is decided in `batch-queue.ts`; `provider-request.ts` sends,
 * and `openai-wire.ts` knows what the bytes mean.
 *
 * @module
 */
import { Cache, type CacheUses, textBytes } from "../../lib/cache.ts";
import { HOUR_MS } from "../../lib/duration.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { Connections, type Resolve } from "../../lib/outbound.ts";
import { retryAfterMs } from "../../lib/retry-after.ts";
import { DIMENSION_MAX, NO_VECTOR, type EmbeddedQuery, type Embedder, type Embedding } from "../embedder.ts";
import { WordWeights } from "../builtin/word-weights.ts";
import { PROVIDER_DEFAULTS, withoutSlashes, type EmbeddingSettings } from "../provider-settings.ts";
import { memoryTerms, queryTerms } from "../words/terms.ts";
import { BatchQueue, type BatchQueueDeps, type OpenCircuit, PROBE_TEXT, type TextKind } from "./batch-queue.ts";
import { fallbackForm, readVectors, refusal, requestBody, type RequestForm } from "./openai-wire.ts";
import { badAnswer, type ProviderError } from "./provider-error.ts";
import { postToProvider, type ProviderAnswer } from "./provider-request.ts";

/** A server's `Retry-After` counts up to this. */
const RETRY_AFTER_MS_MAX = HOUR_MS;

/** A query's vector with its promise. */
const QUERY_VECTOR_BYTES = DIMENSION_MAX * 4 + 300;

/** As long as a server's own patience is, as a rule: what comes within a minute needs no new handshake. */
const IDLE_CONNECTION_MS = 60_000;
const IDLE_CONNECTIONS_MAX = 4;

export interface OpenAiDeps extends BatchQueueDeps {
  readonly resolve: Resolve;
}

export class OpenAiEmbedder implements Embedder {
  readonly #deps: OpenAiDeps;
  readonly #endpoint: URL;
  readonly #model: string;
  readonly #apiKey: string | undefined;
  /** The length that is asked for; undefined: the server's own, shortened to what can be stored. */
  readonly #dimensions: number | undefined;
  /** Prefixes that some models want before a query (`search_query: `) and before what is searched. */
  readonly #prefixes: Readonly<Record<TextKind, string>>;
  readonly #queue: BatchQueue;
  readonly #weights = new WordWeights();
  readonly #connections = new Connections({ idleMs: IDLE_CONNECTION_MS, idleMax: IDLE_CONNECTIONS_MAX });
  /** The cached vector of a query saves a request to the provider, 5 to 500 ms. Promises, so that equal queries share one. */
  readonly #queryVectors = new Cache<Promise<Float32Array>>(CACHE_BYTES_MAX.queryVectors);
  #vectorLength: number | undefined;
  #form: RequestForm;

  /** @param vectorLength - of the server's vectors, once it is known; any other is then refused */
  constructor(settings: EmbeddingSettings, vectorLength: number | undefined, deps: OpenAiDeps) {
    const { base_url, model, query_prefix, document_prefix, dimensions, api_key } = { ...PROVIDER_DEFAULTS, ...settings };
    this.#deps = deps;
    this.#endpoint = new URL(base_url);
    this.#endpoint.pathname = `${withoutSlashes(this.#endpoint.pathname)}/embeddings`;
    this.#model = model;
    this.#apiKey = api_key;
    this.#dimensions = dimensions;
    this.#prefixes = { query: query_prefix, memory: document_prefix };
    this.#vectorLength = vectorLength;
    this.#form = { dimensions: dimensions !== undefined || /(^|\/)text-embedding-3-/.test(model), base64: true };
    this.#queue = new BatchQueue((texts, signal) => this.#ask(texts, signal), deps);
  }

  /** The length of the server's own vectors; undefined until the first answer, unless it was given. */
  get vectorLength(): number | undefined {
    return this.#vectorLength;
  }

  /** Set from a failure of the server until a probe succeeds: calls fail at once with its error. */
  get openCircuit(): OpenCircuit | undefined {
    return this.#queue.openCircuit;
  }

  /** Hits and misses of the cache of queries' vectors. */
  get queryVectorUses(): CacheUses {
    return this.#queryVectors.uses;
  }

  forgetQueries(): void {
    this.#queryVectors.clear();
  }

  async embedMemory(text: string): Promise<Embedding> {
    const terms = memoryTerms(text);
    // A text without letter, digit or sign scores 0 for every query, and servers refuse empty texts.
    return { vector: terms.length === 0 ? NO_VECTOR : await this.#send(text, "memory"), terms };
  }

  async embedQuery(text: string): Promise<EmbeddedQuery> {
    const lexical = queryTerms(text, (word) => this.#weights.of(word));
    return { vector: lexical.ids.length === 0 ? NO_VECTOR : await this.#queryVector(text), lexical };
  }

  /** The vectors alone, in the order of the texts; rejects with the first failure. */
  embed(texts: readonly string[], kind: TextKind): Promise<Float32Array[]> {
    return Promise.all(texts.map((text) => this.#send(text, kind)));
  }

  /** Asks once for one short text, and opens or closes the circuit accordingly. */
  probe(): Promise<void> {
    return this.#queue.probe();
  }

  /** Ends all requests in flight; every call from now on fails. */
  close(): void {
    this.#queue.close();
    this.#connections.close();
  }

  #queryVector(text: string): Promise<Float32Array> {
    const cached = this.#queryVectors.get(text);
    if (cached !== undefined) return cached;
    const vector = this.#send(text, "query");
    this.#queryVectors.set(text, vector, textBytes(text) + QUERY_VECTOR_BYTES);
    vector.catch(() => {
      if (this.#queryVectors.peek(text) === vector) this.#queryVectors.delete(text);
    });
    return vector;
  }

  #send(text: string, kind: TextKind): Promise<Float32Array> {
    // Half of a surrogate pair has no UTF-8, and some servers fail on it.
    return this.#queue.embed(`${this.#prefixes[kind]}${text}`.toWellFormed(), kind);
  }

  /** Asks for the vectors of some texts, in a form that the server takes; the form is kept for the next request. */
  async #ask(texts: readonly string[], signal: AbortSignal): Promise<(Float32Array | ProviderError)[]> {
    const isProbe = texts.every((text) => text === PROBE_TEXT);
    let isShortened = this.#form.dimensions;
    for (let form = this.#form; ; isShortened ||= form.dimensions) {
      const { status, retryAfter, body, isPublic } = await this.#post(requestBody(this.#model, texts, form, this.#dimensions), signal);
      if (status < 200 || status > 299) {
        const answer = { status, body, isPublic, retryAfterMs: retryAfterMs(retryAfter, this.#deps.clock.now(), RETRY_AFTER_MS_MAX) };
        const fallback = fallbackForm(form, answer);
        if (fallback === undefined) throw refusal(answer, { apiKey: this.#apiKey, isProbe });
        form = fallback;
        continue;
      }
      const outcomes = readVectors(body, texts.length);
      const vectors = outcomes.filter((outcome) => outcome instanceof Float32Array);
      if (!isShortened && vectors.some(({ length }) => length > DIMENSION_MAX)) {
        form = { ...form, dimensions: true };
        continue;
      }
      const [first] = vectors;
      if (first === undefined) throw outcomes[0] as ProviderError;
      for (const { length } of vectors) refuseLength(length, this.#vectorLength ?? first.length, this.#dimensions);
      this.#form = form;
      this.#vectorLength ??= first.length;
      return outcomes;
    }
  }

  #post(body: string, signal: AbortSignal): Promise<ProviderAnswer> {
    const headers = {
      "Content-Type": "application/json",
      Accept: "application/json",
      ...(this.#apiKey === undefined ? {} : { Authorization: `Bearer ${this.#apiKey}` }),
    };
    const network = { resolve: this.#deps.resolve, connections: this.#connections };
    return postToProvider(network, { url: this.#endpoint, headers, body }, signal);
  }
}

/** @throws {ProviderError} `bad_answer` for a length that is too great, not the one asked for, or not the one before */
function refuseLength(length: number, before: number, wanted: number | undefined): void {
  if (wanted !== undefined && length !== wanted) {
    throw badAnswer(`has vectors of ${length} numbers, not of the ${wanted} that embedding.dimensions asks for`);
  }
  if (length > DIMENSION_MAX) {
    throw badAnswer(`has vectors of ${length} numbers; at most ${DIMENSION_MAX} can be stored. Choose a model with shorter ones`);
  }
  if (length !== before) throw badAnswer(`has vectors of ${length} numbers, and before they had ${before}. Is it another model?`);
}
