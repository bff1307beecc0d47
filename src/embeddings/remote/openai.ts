/**
 * Embeds by asking a server that speaks `/v1/embeddings`: OpenAI, Ollama, llama.cpp, vLLM, LM Studio and others.
 *
 * Here are its options and the cache of recent queries. Which texts travel together, what is tried again and when the server
 * counts as down is decided in `dispatch.ts`; the request itself is in `provider-request.ts`, what the bytes mean in
 * `openai-wire.ts`.
 *
 * @module
 */
import { Cache, textBytes } from "../../lib/cache.ts";
import type { Clock } from "../../lib/clock.ts";
import { HOUR_MS } from "../../lib/duration.ts";
import { messageOf } from "../../lib/errors.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { Connections, type Resolve } from "../../lib/outbound.ts";
import { retryAfterMs } from "../../lib/retry-after.ts";
import { firstTokens } from "./batching.ts";
import { Dispatcher, PLAIN_TEXT } from "./dispatch.ts";
import { DIMENSION, type EmbeddedQuery, type Embedder, type Embedding } from "../embedder.ts";
import type { Lane } from "./lanes.ts";
import { memoryTerms, queryTerms } from "../local/local.ts";
import {
  badAnswer,
  formInstead,
  readComplaint,
  readVectors,
  redactor,
  refusal,
  requestBody,
  type RequestForm,
  unitVector,
} from "./openai-wire.ts";
import { ProviderError, tooLate } from "./provider-error.ts";
import { postToProvider } from "./provider-request.ts";
import { timeLimit } from "../../lib/time-limit.ts";

export const OPENAI_BASE_URL = "https://api.openai.com/v1";
export const OPENAI_MODEL = "text-embedding-3-small";

/** OpenAI's limit for a text. */
const INPUT_TOKENS_MAX = 8192;

/** A server's "not before" never keeps us away for longer than this. */
const RETRY_AFTER_MS_MAX = HOUR_MS;

/** A query's vector with its promise. */
const QUERY_VECTOR_BYTES = DIMENSION * 4 + 300;

/** As long as a server's own patience is, as a rule: what comes within a minute needs no new handshake. */
const IDLE_CONNECTION_MS = 60_000;
const IDLE_CONNECTIONS_MAX = 4;

export interface OpenAiOptions {
  /** Where `/embeddings` is to be found. Default: OpenAI itself. */
  readonly baseUrl?: string | undefined;
  readonly model?: string | undefined;
  /** Local servers need none. */
  readonly apiKey?: string | undefined;
  /** What some models want to read before a query (`search_query: `) and before what is searched. */
  readonly queryPrefix?: string | undefined;
  readonly documentPrefix?: string | undefined;
  /** Length of the server's vectors, once it is known; any other is then refused. */
  readonly vectorLength?: number | undefined;
  /** Tokens that the model reads of one text; longer ones are cut. */
  readonly inputTokensMax?: number | undefined;
  readonly clock: Clock;
  /** Chance, 0 to 1, for the waits between attempts. */
  readonly random: () => number;
  readonly resolve: Resolve;
}

export interface OpenAiEmbedder extends Embedder {
  /** The length of the server's own vectors; undefined until the first answer, unless it was given. */
  readonly vectorLength: number | undefined;
  /** The server has failed and has not been probed successfully since: calls fail at once with `lastError`. */
  readonly isDown: boolean;
  readonly lastError: ProviderError | undefined;
  /** `clock.elapsed()` before which a probe makes no sense; undefined while it is up. */
  readonly retryAtMs: number | undefined;
  embedMemory(text: string): Promise<Embedding>;
  embedQuery(text: string): Promise<EmbeddedQuery>;
  /** The vectors alone, in the order of the texts; rejects with the first failure. */
  embed(texts: readonly string[], kind: Lane): Promise<Float32Array[]>;
  /** Asks once for one short text, down or not, and sets which of both it is. */
  probe(): Promise<void>;
  /** Ends what is under way; whatever is asked now or later fails. */
  close(): void;
}

/**
 * Why a base URL cannot be used, or undefined.
 *
 * @example baseUrlProblem("http://localhost:11434/v1") === undefined
 */
export function baseUrlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return "It is not a URL.";
  if (url.protocol !== "http:" && url.protocol !== "https:") return "It begins with neither http:// nor https://.";
  if (url.username !== "" || url.password !== "") return "It holds a user name or password; give the key on its own.";
  return url.hash === "" ? undefined : "It holds a fragment (#…).";
}

/** Why an API key cannot be used, or undefined. Never says what the key is. */
export function apiKeyProblem(apiKey: string): string | undefined {
  return /^[\x21-\x7e]{1,1024}$/.test(apiKey) ? undefined : "An API key is 1 to 1,024 printable ASCII characters without spaces.";
}

/** @throws {ProviderError} `rejected` when the base URL, the key or the vectors' length cannot be */
export function openAiEmbedder(options: OpenAiOptions): OpenAiEmbedder {
  return new Client(options);
}

class Client implements OpenAiEmbedder {
  readonly #options: OpenAiOptions;
  readonly #endpoint: string;
  readonly #model: string;
  readonly #prefixes: Readonly<Record<Lane, string>>;
  readonly #redact: (text: string) => string;
  readonly #inputTokensMax: number;
  readonly #dispatcher: Dispatcher;
  readonly #connections = new Connections({ idleMs: IDLE_CONNECTION_MS, idleMax: IDLE_CONNECTIONS_MAX });
  readonly #queries = new Cache<Promise<Float32Array>>(CACHE_BYTES_MAX.queryVectors);
  #vectorLength: number | undefined;
  #form: RequestForm;

  constructor(options: OpenAiOptions) {
    const { baseUrl = OPENAI_BASE_URL, model = OPENAI_MODEL, apiKey, vectorLength, inputTokensMax = INPUT_TOKENS_MAX } = options;
    const problem = baseUrlProblem(baseUrl) ?? (apiKey === undefined ? undefined : apiKeyProblem(apiKey));
    if (problem !== undefined) throw new ProviderError("rejected", `The embedding provider cannot be used. ${problem}`);
    if (vectorLength !== undefined) refuseLength(vectorLength, undefined);
    this.#options = options;
    const url = new URL(baseUrl);
    url.pathname = `${url.pathname.replace(/(?<!\/)\/+$/, "")}/embeddings`;
    this.#endpoint = url.href;
    this.#model = model;
    this.#prefixes = { query: options.queryPrefix ?? "", memory: options.documentPrefix ?? "" };
    this.#redact = redactor(apiKey);
    this.#inputTokensMax = inputTokensMax;
    this.#vectorLength = vectorLength;
    this.#form = { dimensions: /(^|\/)text-embedding-3-/.test(model), base64: true };
    const { clock, random } = options;
    this.#dispatcher = new Dispatcher({ ask: (texts, limitMs, signal) => this.#ask(texts, limitMs, signal), clock, random });
  }

  get vectorLength(): number | undefined {
    return this.#vectorLength;
  }
  get isDown(): boolean {
    return this.#dispatcher.failure !== undefined;
  }
  get lastError(): ProviderError | undefined {
    return this.#dispatcher.failure?.error;
  }
  get retryAtMs(): number | undefined {
    return this.#dispatcher.failure?.retryAtMs;
  }

  async embedMemory(text: string): Promise<Embedding> {
    const terms = memoryTerms(text);
    // What has no letter, digit or sign scores 0 for every query, and servers refuse empty texts.
    return { vector: terms.length === 0 ? vectorOfNothing() : await this.#send(text, "memory"), terms };
  }

  async embedQuery(text: string): Promise<EmbeddedQuery> {
    const lexical = queryTerms(text);
    return { vector: lexical.size === 0 ? new Float32Array(DIMENSION) : await this.#queryVector(text), lexical };
  }

  embed(texts: readonly string[], kind: Lane): Promise<Float32Array[]> {
    return Promise.all(texts.map((text) => this.#send(text, kind)));
  }

  probe(): Promise<void> {
    return this.#dispatcher.probe();
  }

  close(): void {
    this.#dispatcher.close();
    this.#connections.close();
  }

  /** A cached vector, or one in flight that all who ask for it wait for. */
  #queryVector(text: string): Promise<Float32Array> {
    const known = this.#queries.get(text);
    if (known !== undefined) return known;
    const vector = this.#send(text, "query");
    this.#queries.set(text, vector, textBytes(text) + QUERY_VECTOR_BYTES);
    vector.catch(() => {
      if (this.#queries.get(text) === vector) this.#queries.delete(text);
    });
    return vector;
  }

  #send(text: string, kind: Lane): Promise<Float32Array> {
    // Half of a surrogate pair has no UTF-8, and some servers fail on it.
    return this.#dispatcher.embed(firstTokens(`${this.#prefixes[kind]}${text}`.toWellFormed(), this.#inputTokensMax), kind);
  }

  /**
   * Asks for the vectors of some texts, in the form that the server takes; what it is, is found out and remembered.
   *
   * @returns for each text its vector, or why it has none; at least one vector
   */
  async #ask(texts: readonly string[], limitMs: number, outer: AbortSignal): Promise<(Float32Array | ProviderError)[]> {
    const { clock } = this.#options;
    const startedAt = clock.elapsed();
    const limit = timeLimit(clock, limitMs, outer);
    try {
      const tried = new Set([this.#form.dimensions]);
      for (let form = this.#form; ;) {
        const { status, body, retryAfterMs } = await this.#post(requestBody(this.#model, texts, form), limit.signal);
        if (status < 200 || status > 299) {
          const complaint = readComplaint(body);
          const instead = formInstead(form, status, complaint);
          const isOurs = texts.every((text) => text === PLAIN_TEXT);
          if (instead === undefined) throw refusal(status, complaint, { retryAfterMs, redact: this.#redact, isOurs });
          form = instead;
          tried.add(form.dimensions);
          continue;
        }
        const received = readVectors(body, texts.length);
        const lengths = received.flatMap((vector) => (vector instanceof ProviderError ? [] : [vector.length]));
        if (Math.max(...lengths) > DIMENSION && !tried.has(true)) {
          form = { ...form, dimensions: true };
          tried.add(true);
          continue;
        }
        for (const length of lengths) refuseLength(length, this.#vectorLength ?? lengths[0]);
        const outcomes = received.map((vector) => (vector instanceof ProviderError ? vector : unitVector(vector)));
        if (outcomes.every((outcome) => outcome instanceof ProviderError)) throw outcomes[0]!;
        this.#form = form;
        this.#vectorLength ??= lengths[0];
        return outcomes;
      }
    } catch (error) {
      if (error instanceof ProviderError) throw error;
      if (limit.signal.aborted) throw tooLate(clock.elapsed() - startedAt);
      throw this.#unreachable(error);
    } finally {
      limit.end();
    }
  }

  async #post(body: string, signal: AbortSignal): Promise<{ status: number; body: string; retryAfterMs: number | undefined }> {
    const { apiKey, clock, resolve } = this.#options;
    const headers = {
      "Content-Type": "application/json",
      Accept: "application/json",
      ...(apiKey === undefined ? {} : { Authorization: `Bearer ${apiKey}` }),
    };
    const network = { resolve, connections: this.#connections };
    const answer = await postToProvider(network, { url: new URL(this.#endpoint), headers, body }, signal);
    return { ...answer, retryAfterMs: retryAfterMs(answer.retryAfter, clock.now(), RETRY_AFTER_MS_MAX) };
  }

  #unreachable(cause: unknown): ProviderError {
    const { code } = cause instanceof Error ? (cause as Error & { code?: unknown }) : { code: undefined };
    const reason = this.#redact(typeof code === "string" ? code : messageOf(cause)).slice(0, 200);
    return new ProviderError("unreachable", `The embedding provider at ${new URL(this.#endpoint).host} cannot be reached: ${reason}`, {
      isTransient: true,
    });
  }
}

/** @throws {ProviderError} `bad_answer` for a length that is too great, or not the one that was there before */
function refuseLength(length: number, before: number | undefined): void {
  if (length > DIMENSION) {
    throw badAnswer(`has vectors of ${length} numbers; at most ${DIMENSION} can be stored. Choose a model with shorter ones`);
  }
  if (before !== undefined && length !== before) {
    throw badAnswer(`has vectors of ${length} numbers, and before they had ${before}. Is it another model?`);
  }
}

/** Like the built-in provider's for such a text: of unit length, and never looked at, since it has no terms. */
function vectorOfNothing(): Float32Array {
  const vector = new Float32Array(DIMENSION);
  vector[DIMENSION - 1] = 1;
  return vector;
}
