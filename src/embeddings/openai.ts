/**
 * Embeds by asking a server that speaks `/v1/embeddings`: OpenAI, Ollama, llama.cpp, vLLM, LM Studio and others.
 *
 * ```
 * embedQuery ─► cache ─┐                ┌─ four requests at most ─ retry ─ halve what is refused ─► answers
 * embedMemory ─────────┴► two lanes ────┘
 * ```
 *
 * Every call ends: with a vector, or with a `ProviderError` before its deadline. When the server itself fails, not a text,
 * it counts as down: calls then fail at once, until `probe` finds it well again. When a text is to blame is found out by
 * asking for a plain one: if that is embedded, those that were sent are halved until the bad one stands alone.
 *
 * Stores nothing but the vectors of recent queries. Nothing here decides when to probe.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { Clock, Wait } from "../lib/clock.ts";
import { estimateTokens, firstTokens, halves } from "./batching.ts";
import { DIMENSION, type EmbeddedQuery, type Embedder, type Embedding } from "./embedder.ts";
import { type Lane, Lanes } from "./lanes.ts";
import { localEmbedder, memoryTerms, queryTerms } from "./local.ts";
import {
  badAnswer,
  formInstead,
  parseRetryAfter,
  readComplaint,
  readVectors,
  redactor,
  refusal,
  requestBody,
  type RequestForm,
  unitVector,
} from "./openai-wire.ts";
import { ProviderError } from "./provider-error.ts";

export const OPENAI_BASE_URL = "https://api.openai.com/v1";
export const OPENAI_MODEL = "text-embedding-3-small";

/** OpenAI takes 8,192 tokens in a text and 300,000 in a request; half of that leaves room for a wrong estimate. */
const INPUT_TOKENS_MAX = 8192;
const REQUEST_TOKENS_MAX = 150_000;
const REQUEST_TEXTS_MAX = 96;

/** How long a caller waits at most, and a single request. Whoever stores a memory waits too, so it is no longer. */
const DEADLINE_MS: Readonly<Record<Lane, number>> = { query: 10_000, memory: 30_000 };
const ATTEMPT_MS = 30_000;
/** A local server may have to load the model first, and some begin anew when nobody waits for it. */
const PROBE_MS = 60_000;

/** Waits 0.5 s, 1 s, 2 s, 4 s, each shortened by up to a half by chance: five attempts in at most 7.5 s. */
const ATTEMPTS_MAX = 5;
const BACKOFF_MS = 500;
/** A 500 is rarely about load; then it is better to find out soon which text it is about. */
const ATTEMPTS_MAX_OF_500 = 3;

/** When to look again whether a server that is down is back: after 5 s, 10 s, 20 s … 5 min. */
const PROBE_AFTER_MS = 5_000;
const PROBE_AFTER_MS_MAX = 300_000;
const PROBE_TEXT = "The quick brown fox jumps over the lazy dog.";

const CACHED_QUERIES_MAX = 1000;

/** 96 vectors of 4,096 decimal numbers take some 8 MB. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;
const COMPLAINT_BYTES_MAX = 64 * 1024;

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
  readonly wait: Wait;
  /** Chance, 0 to 1, for the waits between attempts. */
  readonly random: () => number;
}

export interface OpenAiEmbedder extends Embedder {
  readonly provider: "openai";
  /** Holds the vectors' length, so it is final once `vectorLength` is known. */
  readonly version: string;
  /** Of the server's own vectors; undefined until the first answer, unless it was given. */
  readonly vectorLength: number | undefined;
  /** The server has failed and has not been probed successfully since: calls fail at once with `lastError`. */
  readonly isDown: boolean;
  readonly lastError: ProviderError | undefined;
  /** Unix milliseconds before which a probe makes no sense; undefined while it is up. */
  readonly retryAtMs: number | undefined;
  embedMemory(text: string): Promise<Embedding>;
  embedQuery(text: string): Promise<EmbeddedQuery>;
  /** The vectors alone, in the order of the texts; rejects with the first failure. */
  embed(texts: readonly string[], kind: Lane): Promise<Float32Array[]>;
  /** Asks once for one short text, down or not, and sets which of both it is. */
  probe(): Promise<{ vectorLength: number; latencyMs: number }>;
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

/** A text on its way, and its caller. */
interface Call {
  text: string;
  readonly tokens: number;
  /** By `clock.elapsed()`. */
  readonly deadline: number;
  isSettled: boolean;
  settle(outcome: Float32Array | Error): void;
}

class Client implements OpenAiEmbedder {
  readonly provider = "openai";
  readonly #options: OpenAiOptions;
  readonly #endpoint: string;
  readonly #model: string;
  readonly #prefixes: Readonly<Record<Lane, string>>;
  readonly #redact: (text: string) => string;
  readonly #inputTokensMax: number;
  readonly #lanes: Lanes<Call>;
  readonly #closing = new AbortController();
  readonly #queries = new Map<string, Promise<Float32Array>>();
  #vectorLength: number | undefined;
  #form: RequestForm;
  /** Texts in a request: what the server is known to take at most, and what it has kept up with lately. */
  #textsMax = REQUEST_TEXTS_MAX;
  #textsNow = REQUEST_TEXTS_MAX;
  #failure: { error: ProviderError; retryAtMs: number } | undefined;
  #failuresInARow = 0;

  constructor(options: OpenAiOptions) {
    const { baseUrl = OPENAI_BASE_URL, model = OPENAI_MODEL, apiKey, vectorLength, inputTokensMax = INPUT_TOKENS_MAX } = options;
    const problem = baseUrlProblem(baseUrl) ?? (apiKey === undefined ? undefined : apiKeyProblem(apiKey));
    if (problem !== undefined) throw new ProviderError("rejected", `The embedding provider cannot be used. ${problem}`);
    if (vectorLength !== undefined) refuseLength(vectorLength, undefined);
    this.#options = options;
    const url = new URL(baseUrl);
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/embeddings`;
    this.#endpoint = url.href;
    this.#model = model;
    this.#prefixes = { query: options.queryPrefix ?? "", memory: options.documentPrefix ?? "" };
    this.#redact = redactor(apiKey);
    this.#inputTokensMax = inputTokensMax;
    this.#vectorLength = vectorLength;
    this.#form = { dimensions: /(^|\/)text-embedding-3-/.test(model), base64: true };
    this.#lanes = new Lanes({
      wait: options.wait,
      limits: () => ({ textsMax: this.#textsNow, tokensMax: REQUEST_TOKENS_MAX }),
      serve: (calls) => this.#serve(calls),
    });
  }

  get version(): string {
    const facts = [localEmbedder().version, this.#endpoint, this.#model, this.#prefixes, this.#inputTokensMax, this.#vectorLength ?? null];
    return `openai-${createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 16)}`;
  }

  get vectorLength(): number | undefined {
    return this.#vectorLength;
  }
  get isDown(): boolean {
    return this.#failure !== undefined;
  }
  get lastError(): ProviderError | undefined {
    return this.#failure?.error;
  }
  get retryAtMs(): number | undefined {
    return this.#failure?.retryAtMs;
  }

  async embedMemory(text: string): Promise<Embedding> {
    const terms = memoryTerms(text);
    // What has no letter or digit scores 0 for every query, and servers refuse empty texts.
    return { vector: terms.length === 0 ? vectorOfNothing() : await this.#enqueue(text, "memory"), terms };
  }

  async embedQuery(text: string): Promise<EmbeddedQuery> {
    const lexical = queryTerms(text);
    return { vector: lexical.size === 0 ? vectorOfNothing() : await this.#queryVector(text), lexical };
  }

  embed(texts: readonly string[], kind: Lane): Promise<Float32Array[]> {
    return Promise.all(texts.map((text) => this.#enqueue(text, kind)));
  }

  async probe(): Promise<{ vectorLength: number; latencyMs: number }> {
    const startedAt = this.#options.clock.elapsed();
    try {
      await this.#embedPlainText(PROBE_MS);
    } catch (error) {
      if (error instanceof ProviderError) this.#goDown(error);
      throw error;
    }
    this.#failure = undefined;
    return { vectorLength: this.#vectorLength!, latencyMs: Math.round(this.#options.clock.elapsed() - startedAt) };
  }

  close(): void {
    this.#closing.abort();
    for (const call of this.#lanes.clear()) call.settle(closed());
  }

  /** The newest `CACHED_QUERIES_MAX` are kept, and one that is under way is waited for by all who ask it. */
  #queryVector(text: string): Promise<Float32Array> {
    const known = this.#queries.get(text);
    const vector = known ?? this.#enqueue(text, "query");
    this.#queries.delete(text);
    this.#queries.set(text, vector);
    if (known !== undefined) return known;
    if (this.#queries.size > CACHED_QUERIES_MAX) this.#queries.delete(this.#queries.keys().next().value!);
    vector.catch(() => {
      if (this.#queries.get(text) === vector) this.#queries.delete(text);
    });
    return vector;
  }

  async #enqueue(text: string, lane: Lane): Promise<Float32Array> {
    if (this.#closing.signal.aborted) throw closed();
    if (this.#failure !== undefined) throw this.#failure.error;
    const { clock, wait } = this.#options;
    // Half of a surrogate pair has no UTF-8, and some servers fail on it.
    const sent = firstTokens(`${this.#prefixes[lane]}${text}`.toWellFormed(), this.#inputTokensMax);
    const settled = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<Float32Array>();
    const call: Call = {
      text: sent,
      tokens: estimateTokens(sent),
      deadline: clock.elapsed() + DEADLINE_MS[lane],
      isSettled: false,
      settle(outcome) {
        if (call.isSettled) return;
        call.isSettled = true;
        settled.abort();
        if (outcome instanceof Error) reject(outcome);
        else resolve(outcome);
      },
    };
    if (this.#lanes.add(lane, call)) {
      void wait(DEADLINE_MS[lane], settled.signal).then(() => call.settle(tooLate(DEADLINE_MS[lane])));
    } else {
      call.settle(new ProviderError("rate_limited", "Too many texts are waiting for the embedding provider."));
    }
    return promise;
  }

  /** Settles every call; the server counts as down if it could not. */
  async #serve(calls: Call[]): Promise<void> {
    try {
      await this.#embedCalls(calls, false);
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      if (reason instanceof ProviderError && !this.#closing.signal.aborted && this.#failure === undefined) this.#goDown(reason);
      for (const call of calls) call.settle(reason);
    }
  }

  /**
   * Embeds in one request, or where texts were refused, in halves.
   *
   * @param isServerWell - has embedded a plain text since the trouble began, so what is refused now is refused for itself
   * @returns true if one request was enough
   * @throws {ProviderError} when the server is to blame; calls are then left unsettled
   */
  async #embedCalls(calls: Call[], isServerWell: boolean): Promise<boolean> {
    let trouble: ProviderError;
    try {
      await this.#embedWithRetries(calls, isServerWell);
      return true;
    } catch (error) {
      if (!(error instanceof ProviderError) || error.facts.mayBeTheTexts !== true) throw error;
      trouble = error;
    }
    if (!isServerWell) {
      await this.#embedPlainText(DEADLINE_MS.query).catch(() => {
        throw trouble;
      });
    }
    const open = calls.filter(({ isSettled }) => !isSettled);
    if (open.length > 1) {
      const [first, second] = halves(open);
      const isFirstTaken = await this.#embedCalls(first, true);
      const isSecondTaken = await this.#embedCalls(second, true);
      // Nothing was wrong with any of them: there were too many.
      if (isFirstTaken && isSecondTaken) this.#textsNow = this.#textsMax = Math.min(this.#textsMax, first.length);
      return false;
    }
    const [call] = open;
    if (call === undefined) return false;
    const shorter = trouble.facts.isAboutLength === true ? firstTokens(call.text, estimateTokens(call.text) / 2) : "";
    if (shorter === "") {
      call.settle(trouble);
      return false;
    }
    call.text = shorter;
    return this.#embedCalls([call], true).then(() => false);
  }

  async #embedWithRetries(calls: Call[], isServerWell: boolean): Promise<void> {
    const { clock, wait, random } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const open = calls.filter(({ isSettled }) => !isSettled);
      if (open.length === 0) return;
      const deadline = Math.max(...open.map((call) => call.deadline));
      try {
        const outcomes = await this.#attempt(
          open.map(({ text }) => text),
          Math.min(ATTEMPT_MS, deadline - clock.elapsed()),
        );
        open.forEach((call, i) => call.settle(outcomes[i]!));
        this.#failuresInARow = 0;
        if (open.length >= this.#textsNow) this.#textsNow = Math.min(this.#textsMax, this.#textsNow + 4);
        return;
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        // A slow machine may manage half of it in time.
        if (error.kind === "timeout") this.#textsNow = Math.min(this.#textsNow, Math.ceil(open.length / 2));
        const { isTransient, status, retryAfterMs = 0 } = error.facts;
        const attemptsMax = status !== 500 ? ATTEMPTS_MAX : isServerWell ? 1 : ATTEMPTS_MAX_OF_500;
        const pauseMs = Math.max(retryAfterMs, BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + random() / 2));
        if (isTransient !== true || attempt >= attemptsMax || clock.elapsed() + pauseMs >= deadline) throw error;
        await wait(pauseMs, this.#closing.signal);
      }
    }
  }

  async #embedPlainText(limitMs: number): Promise<void> {
    const [outcome] = await this.#attempt([PROBE_TEXT], limitMs);
    if (outcome instanceof ProviderError) throw outcome;
  }

  /**
   * Asks for the vectors of some texts, in the form that the server takes; what it is, is found out and remembered.
   *
   * @returns for each text its vector, or why it has none; at least one vector
   */
  async #attempt(texts: readonly string[], limitMs: number): Promise<(Float32Array | ProviderError)[]> {
    const limit = this.#timeLimit(limitMs);
    try {
      const tried = new Set([this.#form.dimensions]);
      for (let form = this.#form; ;) {
        const { status, body, retryAfterMs } = await this.#post(requestBody(this.#model, texts, form), limit.signal);
        if (status < 200 || status > 299) {
          const complaint = readComplaint(body);
          const instead = formInstead(form, status, complaint);
          if (instead === undefined) throw refusal(status, complaint, retryAfterMs, this.#redact);
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
      if (this.#closing.signal.aborted) throw closed();
      if (limit.signal.aborted) throw tooLate(limitMs);
      throw this.#unreachable(error);
    } finally {
      limit.end();
    }
  }

  /** One request. The only place of this folder that reaches out. */
  async #post(body: string, signal: AbortSignal): Promise<{ status: number; body: string; retryAfterMs: number | undefined }> {
    const { apiKey, clock } = this.#options;
    const headers = new Headers({ "content-type": "application/json", accept: "application/json" });
    if (apiKey !== undefined) headers.set("authorization", `Bearer ${apiKey}`);
    const response = await fetch(this.#endpoint, { method: "POST", headers, body, signal, redirect: "manual" });
    const { status } = response;
    if (status >= 300 && status <= 399) {
      await response.body?.cancel();
      throw badAnswer(`is a redirection (${status}), which is not followed: the key would go elsewhere. Set the final base URL`, {
        status,
      });
    }
    return { status, body: await readBody(response), retryAfterMs: parseRetryAfter(response.headers.get("retry-after"), clock.now()) };
  }

  /** A signal that aborts after a time, or when the client is closed. */
  #timeLimit(ms: number): { signal: AbortSignal; end: () => void } {
    const limit = new AbortController();
    const ended = new AbortController();
    const abort = () => limit.abort();
    this.#closing.signal.addEventListener("abort", abort);
    if (this.#closing.signal.aborted) abort();
    void this.#options.wait(ms, ended.signal).then(() => {
      if (!ended.signal.aborted) abort();
    });
    return {
      signal: limit.signal,
      end: () => {
        ended.abort();
        this.#closing.signal.removeEventListener("abort", abort);
      },
    };
  }

  #unreachable(cause: unknown): ProviderError {
    const { code } = cause instanceof Error ? (cause as Error & { code?: unknown }) : { code: undefined };
    const reason = this.#redact(typeof code === "string" ? code : cause instanceof Error ? cause.message : String(cause)).slice(0, 200);
    return new ProviderError("unreachable", `The embedding provider at ${new URL(this.#endpoint).host} cannot be reached: ${reason}`, {
      isTransient: true,
    });
  }

  #goDown(error: ProviderError): void {
    const { clock } = this.#options;
    const afterMs = Math.min(PROBE_AFTER_MS_MAX, PROBE_AFTER_MS * 2 ** Math.min(this.#failuresInARow, 16));
    this.#failuresInARow++;
    this.#failure = { error, retryAtMs: clock.now() + Math.max(afterMs, error.facts.retryAfterMs ?? 0) };
    for (const call of this.#lanes.clear()) call.settle(error);
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

/** The body as text, no more of it than is needed. */
async function readBody(response: Response): Promise<string> {
  const bytesMax = response.ok ? ANSWER_BYTES_MAX : COMPLAINT_BYTES_MAX;
  if (response.body === null) return "";
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      if (!response.ok) break;
      throw badAnswer(`is longer than ${ANSWER_BYTES_MAX / 1024 / 1024} MiB`);
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** Like the built-in provider's for such a text: of unit length, and never looked at, since it has no terms. */
function vectorOfNothing(): Float32Array {
  const vector = new Float32Array(DIMENSION);
  vector[DIMENSION - 1] = 1;
  return vector;
}

function tooLate(ms: number): ProviderError {
  return new ProviderError("timeout", `The embedding provider did not answer within ${Math.ceil(ms / 1000)} s`, { isTransient: true });
}

function closed(): ProviderError {
  return new ProviderError("unreachable", "The embedding provider is no longer used");
}
