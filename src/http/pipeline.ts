/**
 * What happens to every request, whatever it asks for: from its Host header to the headers of its response.
 *
 * `exchange` is the way in and out; what is done in between is a function of the route's. For an operation that is `answer`,
 * whose order of checks `app.ts` shows.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import { IdSource, type KeyId } from "../lib/ids.ts";
import { describeError, type Log } from "../lib/log.ts";
import type { ApiKeyRow } from "../storage/tables.ts";
import type { Arrivals } from "./arrivals.ts";
import { readBody, refuseDeclaredBody } from "./body.ts";
import type { Level, Rate } from "./bucket.ts";
import { corsHeaders } from "./cors.ts";
import type { ApiCaller } from "./endpoint.ts";
import { apiErrorOf, errorJson, statusOf, type FailingStore } from "./errors.ts";
import { foreignHost, hostCheck } from "./host.ts";
import { httpsLocation } from "./https.ts";
import { checkIdempotencyKey } from "./idempotency.ts";
import type { Metrics } from "./metrics.ts";
import type { BodySettings, CheckedCall, Operation } from "./operation.ts";
import { asArrived, pathOf } from "./path.ts";
import { parameterNames, readQuery } from "./query.ts";
import { RateLimiter, rateLimitHeaders } from "./rate-limit.ts";
import { requestIdOf } from "./request-id.ts";
import { Sending } from "./sending.ts";

/** What the pipeline asks of API keys. */
export interface KeyLookup {
  /** The key that was presented, while it is valid. */
  find(presented: string): ApiKeyRow | undefined;
  /** Called for every request of a key. */
  noteUse(key: ApiKeyRow): void;
  /** How long the traces of what a key does are kept. */
  retentionDays(key: ApiKeyRow): number;
  /** Requests without a key share a bucket of this rate per address. */
  readonly anonymousRate: Rate;
}

export interface PipelineParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: KeyLookup;
  readonly arrivals: Arrivals;
  readonly metrics: Metrics;
  readonly settings: BodySettings;
  readonly store: FailingStore;
  /** Address the server listens on, and other names it answers to. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  /** Pages of these origins may call from a browser. */
  readonly corsOrigins?: readonly string[];
  /** Behind a proxy that says how a request reached it: what came over plain HTTP is sent to HTTPS. */
  readonly requireHttps?: boolean;
}

/** Where a request came from, if the server knows. */
type Remote = { requestIP(request: Request): { address: string } | null } | null;

/** A request and what is known of it so far. */
export interface Exchange {
  readonly request: Request;
  readonly remote: Remote;
  /** Path of the endpoint, with the names of its parameters. */
  readonly route: string;
  /** Set at once; empty only where that failed. */
  requestId: string;
  startedAt: number;
  /** Set as soon as it is known whose rate limit counts. */
  rate: Rate;
  level: Level | undefined;
  /** First characters of the key, once it is known. */
  actor?: string;
  keyId?: string;
}

export interface Answer {
  readonly status: number;
  readonly body: string | Blob;
  /** Beside those that every response has, or instead of them. */
  readonly headers?: Record<string, string>;
  readonly replayed?: boolean;
  /** Whether a success may have changed something, so that it cannot be refused any more. */
  readonly isChange?: boolean;
}

export class Pipeline {
  readonly #parts: PipelineParts;
  readonly #corsOrigins: readonly string[];
  readonly #isOwnHost: (host: string | null) => boolean;
  readonly #limiter: RateLimiter;
  readonly #sending = new Sending();
  /** Not the source of records' ids: whatever these have come to, a request has an id. */
  readonly #requestIds: IdSource;
  /** Set for each response, which takes a copy: cheaper than having Bun read them from an object each time. */
  readonly #headers: Headers;
  #limitHeader = "";
  #resetHeader = "";

  constructor(parts: PipelineParts) {
    this.#parts = parts;
    this.#corsOrigins = parts.corsOrigins ?? [];
    this.#isOwnHost = hostCheck(parts.host, parts.allowedHosts);
    this.#limiter = new RateLimiter(parts.clock);
    this.#requestIds = new IdSource(parts.clock);
    this.#headers = new Headers({
      "Content-Type": "application/json",
      "X-Content-Type-Options": "nosniff",
      // A shared cache does not know that X-API-Key says who may see an answer.
      "Cache-Control": "no-store",
      // Also where no origin was sent: a cache would give that answer to a page.
      ...(this.#corsOrigins.length > 0 ? { Vary: "Origin" } : {}),
    });
  }

  /**
   * Runs `work` and turns what it returns or throws into a response: at once where nothing is waited for, since a promise
   * costs the server as much as all the rest of a small answer.
   */
  exchange(
    route: string,
    request: Request,
    remote: Remote,
    work: (exchange: Exchange) => Answer | Promise<Answer>,
  ): Response | Promise<Response> {
    const { clock, keys, requireHttps } = this.#parts;
    const exchange: Exchange = { request, remote, route, requestId: "", startedAt: 0, rate: keys.anonymousRate, level: undefined };
    try {
      exchange.startedAt = clock.elapsed();
      exchange.requestId = requestIdOf(request.headers, this.#requestIds);
      if (!this.#isOwnHost(request.headers.get("host"))) throw foreignHost();
      const location = requireHttps === true ? httpsLocation(request.headers, pathOf(request.url)) : undefined;
      if (location !== undefined) return this.respond(exchange, { status: 308, body: "", headers: { Location: location } });
      const answer = work(exchange);
      return answer instanceof Promise ? this.#respondLater(exchange, answer) : this.respond(exchange, answer);
    } catch (error) {
      return this.refuse(exchange, error);
    }
  }

  /** Has an operation answer a request, once all that comes before it is checked. */
  answer(operation: Operation, exchange: Exchange, params: Record<string, string | null>): Answer | Promise<Answer> {
    const { url, headers } = exchange.request;
    const key = this.authenticate(exchange);
    operation.authorize(key.scopes);
    this.#sending.refuseWithoutRoom(key.id);
    refuseDeclaredBody(headers, this.#parts.settings.values.max_body_bytes);
    const caller = this.callerOf(exchange, key);
    const call = operation.takesQuery
      ? operation.check(caller, params, readQuery(url, operation.endpoint.query), parameterNames(url))
      : operation.check(caller, params);
    return operation.takesBody ? this.#answerWithBody(operation, exchange.request, call) : operation.run(call);
  }

  async #answerWithBody(operation: Operation, request: Request, call: CheckedCall): Promise<Answer> {
    const idempotencyKey = operation.isIdempotent ? request.headers.get("idempotency-key") : null;
    if (idempotencyKey !== null) checkIdempotencyKey(idempotencyKey);
    const bytesMax = this.#parts.settings.values.max_body_bytes;
    const arrival = this.#parts.arrivals.begin(call.caller.keyId);
    try {
      const body = await readBody(request, bytesMax, arrival);
      // A body can be long in coming, and its key be revoked meanwhile.
      if (this.#keyOf(request) === undefined) throw notAuthenticated(KEY_NOT_VALID);
      const retry = idempotencyKey === null ? undefined : { idempotencyKey, presentedKey: presentedKey(request.headers) ?? "" };
      return await operation.runWithBody(call, body, pathOf(request.url), retry);
    } finally {
      arrival.end();
    }
  }

  /**
   * Returns the key that was presented, with a token taken from its bucket; without one, from the address's.
   *
   * @throws {ApiError} `rate_limit_exceeded`, or `authentication_failed` without a valid key
   */
  authenticate(exchange: Exchange): ApiKeyRow {
    const { keys } = this.#parts;
    const key = this.#keyOf(exchange.request);
    exchange.rate = key ?? keys.anonymousRate;
    if (key !== undefined) {
      exchange.actor = key.prefix;
      exchange.keyId = key.id;
    }
    exchange.level =
      key === undefined ? this.#limiter.takeOfAddress(addressOf(exchange), exchange.rate, 1) : this.#limiter.takeOfKey(key.id, key);
    if (!exchange.level.allowed) throw rateLimited(exchange.rate, exchange.level);
    if (key === undefined) {
      const wasPresented = presentedKey(exchange.request.headers) !== null;
      throw notAuthenticated(wasPresented ? KEY_NOT_VALID : "An API key is required, in the header X-API-Key.");
    }
    keys.noteUse(key);
    return key;
  }

  #keyOf({ headers }: Request): ApiKeyRow | undefined {
    const presented = presentedKey(headers);
    return presented === null ? undefined : this.#parts.keys.find(presented);
  }

  /** Who asks, for an operation. */
  callerOf({ requestId, startedAt }: Exchange, key: ApiKeyRow): ApiCaller {
    return {
      actor: key.prefix,
      keyId: key.id as KeyId,
      scopes: key.scopes,
      retentionDays: this.#parts.keys.retentionDays(key),
      requestId,
      startedAt,
    };
  }

  async #respondLater(exchange: Exchange, answer: Promise<Answer>): Promise<Response> {
    try {
      return this.respond(exchange, await answer);
    } catch (error) {
      return this.refuse(exchange, error);
    }
  }

  respond(exchange: Exchange, { status, body: answer, headers: more, replayed, isChange = false }: Answer): Response {
    const { keyId, request } = exchange;
    const body = keyId === undefined || typeof answer !== "string" ? answer : this.#sending.bodyOf(keyId, answer, isChange);
    let headers = this.#commonHeaders(exchange);
    if (more !== undefined || replayed === true || this.#corsOrigins.length > 0) {
      headers = new Headers(headers);
      for (const [name, value] of Object.entries(more ?? {})) headers.set(name, value);
      if (replayed === true) headers.set("Idempotency-Replayed", "true");
      if (this.#corsOrigins.length > 0)
        for (const [name, value] of Object.entries(corsHeaders(this.#corsOrigins, request.headers))) headers.set(name, value);
    }
    this.#note(exchange, status);
    return new Response(body, { status, headers });
  }

  /** Headers of every response, valid until the next one. */
  #commonHeaders(exchange: Exchange): Headers {
    const headers = this.#headers;
    exchange.level ??= this.#limiter.takeOfAddress(addressOf(exchange), this.#parts.keys.anonymousRate, 0);
    const [limit, remaining, reset] = rateLimitHeaders(exchange.rate, exchange.level, this.#parts.clock.now());
    headers.set("X-Request-Id", exchange.requestId);
    headers.set("X-RateLimit-Remaining", remaining);
    // The same from one response to the next, as a rule.
    if (limit !== this.#limitHeader) headers.set("X-RateLimit-Limit", (this.#limitHeader = limit));
    if (reset !== this.#resetHeader) headers.set("X-RateLimit-Reset", (this.#resetHeader = reset));
    return headers;
  }

  /** Counts and logs what an operator sees of a request: never its content, its key or its query. */
  #note({ request, route, requestId, startedAt, actor }: Exchange, status: number): void {
    const { clock, log, metrics } = this.#parts;
    const ms = Math.round((clock.elapsed() - startedAt) * 100) / 100;
    metrics.observe(route, request.method, status, ms);
    if (log.enabled("info")) log.info("request", { method: request.method, route, status, ms, request_id: requestId, key: actor });
  }

  refuse(exchange: Exchange, thrown: unknown): Response {
    const error = apiErrorOf(thrown, this.#parts.store);
    const status = statusOf(error);
    const headers: Record<string, string> = {};
    if (error.detail.allow !== undefined) headers["Allow"] = error.detail.allow;
    if (error.detail.retryAfterSeconds !== undefined) headers["Retry-After"] = String(error.detail.retryAfterSeconds);
    if (error.detail.closesConnection === true) headers["Connection"] = "close";
    const body = errorJson(error, exchange.requestId);
    try {
      // What is refused to shed load is no fault, and there can be much of it.
      if (status >= 500 && error.detail.retryAfterSeconds === undefined)
        this.#parts.log.error(error.message, { request_id: exchange.requestId, cause: causeOf(error) });
      return this.respond(exchange, { status, body, headers });
    } catch {
      // Neither the log nor the headers of every response could be written: it is answered as an error all the same.
      return new Response(body, { status, headers: { ...headers, "Content-Type": "application/json" } });
    }
  }
}

/** For the log, where there is more to say than the message. */
function causeOf({ detail: { cause } }: ApiError): string | undefined {
  return cause === undefined ? undefined : describeError(cause);
}

const KEY_NOT_VALID = "The API key is not valid, has expired or was revoked.";

function notAuthenticated(message: string): ApiError {
  return new ApiError("authentication_failed", message);
}

function rateLimited({ perMinute }: Rate, { nextInMs }: Level): ApiError {
  const seconds = Math.max(1, Math.ceil(nextInMs / 1000));
  return new ApiError("rate_limit_exceeded", `Too many requests: ${perMinute} per minute. Try again in ${seconds} s.`, {
    retryAfterSeconds: seconds,
  });
}

function presentedKey(headers: Headers): string | null {
  const key = headers.get("x-api-key");
  if (key !== null) return key;
  const authorization = headers.get("authorization");
  return authorization !== null && /^bearer /i.test(authorization) ? authorization.slice("bearer ".length).trim() : null;
}

function addressOf({ request, remote }: Exchange): string {
  return remote?.requestIP(asArrived(request))?.address ?? "unknown";
}
