/**
 * One request of the client: with a time limit, and sent again when that can help.
 *
 * Every change carries an `Idempotency-Key`, the same in each attempt, so that it is made once even when its answer was lost. Only web
 * APIs are used, so that it runs wherever there is a `fetch`.
 *
 * @module
 */
import { CairnError, parsed, refusal, unexpected } from "./errors.ts";
import { checkTimeout, Exchange } from "./exchange.ts";

export interface CairnOptions {
  /** The API key: `crn_…`. */
  apiKey: string;
  /** Address of the server; `http://127.0.0.1:8700` unless given. */
  baseUrl?: string | undefined;
  /** Time limit of an attempt in milliseconds; 30,000 unless given, Infinity for no limit. */
  timeoutMs?: number | undefined;
  /** Number of retries of a failed request, if that can help; 2 unless given. */
  retries?: number | undefined;
  /** Replaces the global `fetch`, as for a proxy, a framework or a test. */
  fetch?: ((request: Request) => Promise<Response>) | undefined;
  /** Sent with every request. */
  headers?: Record<string, string> | undefined;
}

export interface CallOptions {
  /** Aborts the request; the call then throws the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Time limit of an attempt in milliseconds, instead of the client's `timeoutMs`. */
  timeoutMs?: number | undefined;
  /** The `Idempotency-Key`, for a change that another process may repeat; a new one for each call unless given. */
  idempotencyKey?: string | undefined;
}

/** Parts of a request. */
export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: object | undefined;
  readonly body?: object | undefined;
  readonly headers?: Record<string, string> | undefined;
  /** A status that counts as success. */
  readonly accepts?: number;
  /** Result of a `DELETE` whose first answer was lost, when the next one says that there is nothing to delete. */
  readonly gone?: unknown;
}

/** Chance and time, which a test decides. */
export interface Runtime {
  /** 0 to 1, 1 excluded. */
  random: () => number;
  now: () => number;
  /** @throws the reason of the signal when it is aborted */
  wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/** Sending of requests, which a program on the same machine does otherwise than one far away. */
export interface Policy {
  /** Returns how long to wait before the same request is sent again; undefined when the error is final. */
  pauseMs: (error: CairnError, attempt: number, random: () => number) => number | undefined;
  /** True to send long bodies in gzip. */
  compresses: boolean;
}

const REAL: Runtime = { random: Math.random, now: Date.now, wait };

const TIMEOUT_MS = 30_000;
const RETRIES = 2;
const RETRIED_STATUSES: readonly (number | undefined)[] = [undefined, 408, 429, 502, 503, 504];
/** After these the change may have been made. */
const LOST_STATUSES: readonly (number | undefined)[] = [undefined, 502, 504];
const BACKOFF_FIRST_MS = 250;
const BACKOFF_MAX_MS = 8_000;
/** A caller that would have to wait longer gets the error instead, which says how long. */
const RETRY_AFTER_MAX_SECONDS = 60;
/** Shorter bodies take less time on most networks than their compression does. */
const COMPRESSED_LENGTH_MIN = 64 * 1024;

export class Http {
  readonly runtime: Runtime;
  readonly #options: CairnOptions;
  readonly #policy: Policy;
  readonly #base: string;

  constructor(options: CairnOptions, runtime: Runtime = REAL, policy: Policy = farAway(options.retries)) {
    const { apiKey, baseUrl = "http://127.0.0.1:8700", timeoutMs = TIMEOUT_MS } = options;
    // A header takes nothing else, and an error of the runtime would not say which one.
    if (typeof apiKey !== "string" || !/^[\x21-\x7e]+$/.test(apiKey))
      throw new TypeError("apiKey must be an API key of Cairn, crn_ and letters and digits.");
    if (!/^https?:\/\//.test(baseUrl)) throw new TypeError(`baseUrl must be an address such as http://127.0.0.1:8700; got ${baseUrl}`);
    checkTimeout(timeoutMs);
    this.#options = options;
    this.#base = baseUrl.replace(/\/+$/, "");
    this.runtime = runtime;
    this.#policy = policy;
  }

  /**
   * Returns the JSON of a successful answer.
   *
   * @throws {CairnError} of the last attempt
   */
  async call<Answer>(call: Call, options: CallOptions = {}): Promise<Answer> {
    const { timeoutMs = TIMEOUT_MS } = this.#options;
    const idempotencyKey = options.idempotencyKey ?? newKey();
    for (let attempt = 0, isLost = false; ; attempt++) {
      const exchange = this.exchange(options.signal);
      try {
        exchange.limit(options.timeoutMs ?? timeoutMs);
        const response = await this.send(exchange, call, idempotencyKey);
        const answer = parsed(await exchange.part(response.text()));
        if (answer === undefined) throw unexpected(response);
        return answer as Answer;
      } catch (error) {
        if (!(error instanceof CairnError)) throw error;
        if (error.status === 404 && isLost && call.gone !== undefined) return call.gone as Answer;
        const pauseMs = this.#policy.pauseMs(error, attempt, this.runtime.random);
        if (pauseMs === undefined) throw error;
        isLost ||= LOST_STATUSES.includes(error.status);
        await this.runtime.wait(pauseMs, options.signal);
      } finally {
        exchange.close();
      }
    }
  }

  /** Waits before the next attempt. */
  backoff(attempt: number, error: Partial<CairnError>, signal: AbortSignal | undefined): Promise<void> {
    const { random, wait } = this.runtime;
    return wait(backoffMs(error, attempt, random), signal);
  }

  exchange(signal: AbortSignal | undefined): Exchange {
    return new Exchange(this.#base, signal);
  }

  /** Returns a successful answer, whose body is not read yet. @throws {CairnError} for any other, and for none */
  async send(exchange: Exchange, call: Call, idempotencyKey?: string): Promise<Response> {
    const { fetch: given = (request: Request) => fetch(request) } = this.#options;
    const request = await this.#request(call, exchange.signal, idempotencyKey);
    return exchange.part(
      given(request).then(async (response) => {
        if (!response.ok && response.status !== call.accepts) throw await refusal(response, this.runtime.now());
        return response;
      }),
    );
  }

  async #request(
    { method, path, query = {}, body, headers }: Call,
    signal: AbortSignal,
    idempotencyKey: string | undefined,
  ): Promise<Request> {
    const hasBody = method === "POST" || method === "PATCH";
    const text = hasBody ? JSON.stringify(body ?? {}) : "";
    const bytes = this.#policy.compresses ? await gzipped(text) : undefined;
    return new Request(this.#base + path + queryString(query), {
      method,
      signal,
      // Followed, it would take the API key wherever it leads.
      redirect: "manual",
      headers: {
        ...this.#options.headers,
        ...headers,
        "X-API-Key": this.#options.apiKey,
        ...(hasBody ? { "Content-Type": "application/json" } : {}),
        ...(bytes === undefined ? {} : { "Content-Encoding": "gzip" }),
        ...(hasBody && idempotencyKey !== undefined ? { "Idempotency-Key": idempotencyKey } : {}),
      },
      ...(hasBody ? { body: bytes ?? text } : {}),
    });
  }
}

function farAway(retries = RETRIES): Policy {
  return {
    pauseMs: (error, attempt, random) => (attempt < retries && isTemporary(error) ? backoffMs(error, attempt, random) : undefined),
    compresses: true,
  };
}

/** As long as the server asks, then exponential backoff with full jitter. */
function backoffMs({ retryAfterSeconds = 0 }: Partial<CairnError>, attempt: number, random: () => number): number {
  return retryAfterSeconds * 1000 + random() * Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** attempt);
}

/** Checks whether the same request may get another answer later. */
export function isTemporary({ status, retryAfterSeconds = 0 }: CairnError): boolean {
  return RETRIED_STATUSES.includes(status) && retryAfterSeconds <= RETRY_AFTER_MAX_SECONDS;
}

/** Returns a long text in gzip; undefined for others, and in runtimes that cannot compress. */
async function gzipped(text: string): Promise<ArrayBuffer | undefined> {
  if (text.length < COMPRESSED_LENGTH_MIN || typeof CompressionStream === "undefined") return undefined;
  return new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
}

/** Returns a query string with its `?`; an array is sent once for each item, an object as JSON. */
function queryString(query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query) as [string, unknown][]) {
    if (value === undefined || value === null) continue;
    for (const item of Array.isArray(value) ? (value as unknown[]) : [value])
      parameters.append(name, isPlain(item) ? String(item) : JSON.stringify(item));
    // A single text with commas would be read as several.
    if (Array.isArray(value) && value.length === 1) parameters.append(name, "");
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value !== "object";
}

/** As random as `crypto.randomUUID`, which pages do not have that came without TLS. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    else signal?.addEventListener("abort", stop, { once: true });
  });
}
