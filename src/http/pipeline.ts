/**
 * Steps of every request, whatever it asks for: from its Host header to the headers of its response.
 *
 * `exchange` is the way in and out; what happens in between is a function of the route. For an operation that is `answer`, whose
 * order of checks `app.ts` shows; for MCP it is `answerCalls`.
 *
 * @module
 */
import { nextTurn, type Clock } from "../lib/clock.ts";
import type { ApiError } from "../lib/errors.ts";
import { whenThere } from "../lib/when-there.ts";
import { IdSource, isId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { describeError, type Log } from "../lib/log.ts";
import { readsAhead } from "../storage/ahead.ts";
import { EVERYBODY, type Owner } from "../storage/owner.ts";
import type { RecordStore } from "../storage/record-store.ts";
import type { ApiKeyRow } from "../storage/tables.ts";
import { Admission, limitsIdOf, presentedKey, type KeyLookup } from "./admission.ts";
import type { Arrivals } from "./arrivals.ts";
import { readBody, refuseDeclaredBody, type Body } from "./body.ts";
import type { KeyBuckets } from "../lib/bucket.ts";
import { corsHeaders } from "./cors.ts";
import type { ApiCaller, Endpoint, StreamResponse } from "./endpoint.ts";
import { apiErrorOf, errorJson, statusOf, type FailingStore } from "./errors.ts";
import { acceptsEncoding, isPackable } from "./gzip.ts";
import type { Answer, AnsweredRequest, Exchange, Remote } from "./exchange.ts";
import { foreignHost, hostCheck, nameCheck, type OwnNames } from "./host.ts";
import { httpsLocation } from "./https.ts";
import { checkIdempotencyKey, readKept } from "./idempotency.ts";
import type { Metrics } from "./metrics.ts";
import type { BodySettings, CheckedCall, Operation } from "./operation.ts";
import { decodedPart, pathOf, pathWithoutQuery } from "./path.ts";
import { parametersOf, readQuery } from "./query.ts";
import { rateLimitHeaders } from "./rate-limit.ts";
import { requestIdOf } from "./request-id.ts";
import { ResponseBuffer } from "./response-buffer.ts";
import { Strangers } from "./strangers.ts";

export interface PipelineDeps extends OwnNames {
  readonly clock: Clock;
  readonly log: Log;
  readonly keys: KeyLookup;
  readonly arrivals: Arrivals;
  readonly metrics: Metrics;
  readonly settings: BodySettings;
  readonly store: FailingStore & Pick<RecordStore, "request">;
  /** Buckets that several servers share; each has its own otherwise. */
  readonly buckets?: KeyBuckets | undefined;
  /** Aborted once the server is going to stop: then it answers, and closes the connection. */
  readonly stopping: AbortSignal;
  /** Origins whose pages may call from a browser. */
  readonly corsOrigins?: readonly string[];
  /** Redirects requests that reached a proxy over plain HTTP. */
  readonly requireHttps?: boolean;
  /** Called for every request when it is answered. */
  readonly onAnswered?: ((request: AnsweredRequest) => void) | undefined;
}

export class Pipeline {
  readonly #deps: PipelineDeps;
  readonly #corsOrigins: readonly string[];
  readonly #isOwnHost: (host: string | null) => boolean;
  readonly #isOwnName: (host: string) => boolean;
  readonly admission: Admission;
  readonly strangers: Strangers;
  readonly #sending = new ResponseBuffer();
  /** Not the source of records' ids, which can run out: a request always has an id. */
  readonly #requestIds: IdSource;
  /** Shared by all responses, each of which copies them: half a microsecond less than giving each an object. */
  readonly #headers: Headers;

  constructor(deps: PipelineDeps) {
    this.#deps = deps;
    this.#corsOrigins = deps.corsOrigins ?? [];
    this.#isOwnHost = hostCheck(deps);
    this.#isOwnName = nameCheck(deps);
    this.admission = new Admission(deps.keys, deps.clock, deps.buckets);
    this.strangers = new Strangers(this.admission, deps.arrivals);
    this.#requestIds = new IdSource(deps.clock);
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
   * Runs `work` and turns what it returns or throws into a response: synchronously unless `work` waits, since a promise costs
   * as much as the rest of a small answer.
   */
  exchange(
    route: string,
    request: Request,
    remote: Remote,
    work: (exchange: Exchange) => Answer | Promise<Answer>,
  ): Response | Promise<Response> {
    const { clock, requireHttps } = this.#deps;
    const exchange: Exchange = {
      request,
      remote,
      route,
      requestId: "",
      startedAt: 0,
      key: undefined,
      level: undefined,
      latencyHeader: undefined,
      memoryOperation: undefined,
      sessionId: undefined,
    };
    try {
      exchange.startedAt = clock.elapsed();
      exchange.requestId = requestIdOf(request.headers, this.#requestIds);
      if (!this.#isOwnHost(request.headers.get("host"))) throw foreignHost();
      const location = requireHttps === true ? httpsLocation(request.headers, pathOf(request.url), this.#isOwnName) : undefined;
      if (location !== undefined) return this.#respond(exchange, { status: 308, body: "", headers: { Location: location } });
      const answer = work(exchange);
      return answer instanceof Promise ? this.#respondLater(exchange, answer) : this.#respond(exchange, answer);
    } catch (error) {
      return this.#refuse(exchange, error);
    }
  }

  /** Checks a request for an operation and runs that. @param params - Elysia gives none for a path without parameters */
  answer(operation: Operation, exchange: Exchange, params: Record<string, string | null> = {}): Answer | Promise<Answer> {
    const { store } = this.#deps;
    if (store.request === undefined) return this.#answer(operation, exchange, params);
    return store.request(readsOf(operation, exchange, params), () => this.#answer(operation, exchange, params));
  }

  #answer(operation: Operation, exchange: Exchange, params: Record<string, string | null>): Answer | Promise<Answer> {
    const key = this.admission.authenticate(exchange, operation.endpoint);
    return key instanceof Promise
      ? key.then((found) => this.#answerTo(operation, exchange, params, found))
      : this.#answerTo(operation, exchange, params, key);
  }

  #answerTo(operation: Operation, exchange: Exchange, params: Record<string, string | null>, key: ApiKeyRow): Answer | Promise<Answer> {
    const { url, headers } = exchange.request;
    operation.authorize(key.scopes);
    this.#sending.refuseWithoutRoom(limitsIdOf(key));
    refuseDeclaredBody(headers, this.#deps.settings.values.max_body_bytes);
    const caller = this.#callerOf(exchange, key);
    for (const name of Object.keys(params)) params[name] ??= partOf(pathWithoutQuery(url), operation.endpoint.path, name);
    const sent = operation.takesQuery ? parametersOf(url) : undefined;
    const call = operation.check(caller, params, sent && readQuery(sent, operation.endpoint.query), sent && [...sent.keys()]);
    exchange.latencyHeader = operation.endpoint.latencyHeader;
    this.trackOperation(exchange, operation, params["session_id"] ?? call.query["sessionId"]);
    if (operation.endpoint.send !== undefined) return this.#send(exchange, key, operation.endpoint, call);
    if (!operation.takesBody) return operation.run(call);
    const idempotencyKey = operation.isIdempotent ? headers.get("idempotency-key") : null;
    if (idempotencyKey !== null) checkIdempotencyKey(idempotencyKey);
    const retry =
      idempotencyKey === null ? undefined : { idempotencyKey, presentedKey: this.#deps.keys.ownerOf(key, presentedKey(headers) ?? "") };
    return this.#withBody(exchange.request, key, (body) => {
      this.trackOperation(exchange, operation, body.value["session_id"]);
      return operation.runWithBody(call, body, pathOf(url), retry);
    });
  }

  /** Answers with what is no JSON. */
  #send(exchange: Exchange, key: ApiKeyRow, { send, media, status }: Endpoint, call: CheckedCall): Answer | Promise<Answer> {
    const { method, headers } = exchange.request;
    const type = { "Content-Type": media };
    if (send === undefined || method === "HEAD") return { status, body: "", headers: type };
    const answer = ({ body, headers: more }: StreamResponse): Answer => {
      const stream = body instanceof ReadableStream ? body : this.#sending.streamOf(limitsIdOf(key), body);
      return { status, body: stream, headers: { ...type, ...more } };
    };
    const sent = send(call as never, { headers, isAllowed: () => this.admission.isAllowed(exchange) });
    return sent instanceof Promise ? sent.then(answer) : answer(sent);
  }

  /**
   * Checks a request whose body says which operations it wants, and lets `work` call them.
   *
   * @param work - gets the caller, and the value of the body
   */
  async answerCalls(exchange: Exchange, work: (caller: ApiCaller, body: Record<string, unknown>) => Promise<Answer>): Promise<Answer> {
    const key = await this.admission.authenticate(exchange);
    this.#sending.refuseWithoutRoom(limitsIdOf(key));
    refuseDeclaredBody(exchange.request.headers, this.#deps.settings.values.max_body_bytes);
    const caller = this.#callerOf(exchange, key);
    return this.#withBody(exchange.request, key, async ({ value }) => {
      // Serializing answers takes several times their memory: those that came together are answered one by one.
      await nextTurn();
      this.#sending.refuseWithoutRoom(limitsIdOf(key));
      return work(caller, value);
    });
  }

  /** Reads a body, and holds its memory until `use` has ended. */
  async #withBody(request: Request, key: ApiKeyRow, use: (body: Body) => Answer | Promise<Answer>): Promise<Answer> {
    const bytesMax = this.#deps.settings.values.max_body_bytes;
    const arrival = this.#deps.arrivals.begin(limitsIdOf(key));
    try {
      const body = await readBody(request, bytesMax, arrival);
      // The key may have been revoked while the body arrived.
      await this.admission.refuseUnlessAllowed(request);
      // And others may have been answered.
      this.#sending.refuseWithoutRoom(limitsIdOf(key));
      return await use(body);
    } finally {
      arrival.end();
    }
  }

  #callerOf({ requestId, startedAt }: Exchange, key: ApiKeyRow): ApiCaller {
    return {
      actor: key.prefix,
      keyId: key.id,
      limitsId: limitsIdOf(key),
      owner: ownerOf(key),
      scopes: key.scopes,
      retentionDays: this.#deps.keys.retentionDays(key),
      requestId,
      startedAt,
    };
  }

  async #respondLater(exchange: Exchange, answer: Promise<Answer>): Promise<Response> {
    try {
      return await this.#respond(exchange, await answer);
    } catch (error) {
      return this.#refuse(exchange, error);
    }
  }

  #respond(exchange: Exchange, answer: Answer): Response | Promise<Response> {
    const { key, request } = exchange;
    const { body } = answer;
    // Answers without a key are pages, small ones but for those that have encodings of their own.
    if (key === undefined || typeof body !== "string" || !isPackable(body)) return this.#responseOf(exchange, answer, body);
    const bytes = acceptsEncoding(request.headers.get("accept-encoding") ?? "", "gzip")
      ? this.#sending.packedOf(limitsIdOf(key), body)
      : undefined;
    if (bytes === undefined) return this.#responseOf(exchange, answer, body, true);
    return whenThere(bytes, (packed) => this.#responseOf(exchange, answer, packed, true));
  }

  /**
   * @param content - the body, or its bytes in gzip
   * @param varies - says that another client may get the other of the two
   */
  #responseOf(
    exchange: Exchange,
    { status, headers: more, replayed, isChange = false }: Answer,
    content: Answer["body"] | Uint8Array<ArrayBuffer>,
    varies = false,
  ): Response {
    const { key, request, latencyHeader } = exchange;
    const isGzip = content instanceof Uint8Array;
    const isCounted = key !== undefined && (typeof content === "string" || isGzip);
    const body = isCounted ? this.#sending.bodyOf(limitsIdOf(key), content, isChange) : content;
    let headers = this.#commonHeaders(exchange);
    if (more !== undefined || replayed === true || latencyHeader !== undefined || this.#corsOrigins.length > 0 || varies) {
      headers = new Headers(headers);
      if (isGzip) headers.set("Content-Encoding", "gzip");
      if (varies) headers.append("Vary", "Accept-Encoding");
      const cors = corsHeaders(this.#corsOrigins, request.headers);
      for (const [name, value] of Object.entries({ ...more, ...cors })) headers.set(name, value);
      if (replayed === true) headers.set("Idempotency-Replayed", "true");
      if (latencyHeader !== undefined && status < 300)
        headers.set(latencyHeader, `${rounded(this.#deps.clock.elapsed() - exchange.startedAt)}ms`);
    }
    this.#note(exchange, status);
    return new Response(body, { status, headers });
  }

  /** Returns the headers of every response, valid until the next one. */
  #commonHeaders(exchange: Exchange): Headers {
    const { clock, keys, stopping } = this.#deps;
    exchange.level ??= this.admission.levelOfAddress(exchange, 0);
    const [limit, remaining, reset] = rateLimitHeaders(exchange.key ?? keys.anonymousRate, exchange.level, clock.now());
    const headers = this.#headers;
    headers.set("X-Request-Id", exchange.requestId);
    headers.set("X-RateLimit-Limit", limit);
    headers.set("X-RateLimit-Remaining", remaining);
    headers.set("X-RateLimit-Reset", reset);
    if (stopping.aborted) headers.set("Connection", "close");
    return headers;
  }

  /** Counts and logs what an operator sees of a request: never its content, its key or its query. */
  #note(exchange: Exchange, status: number): void {
    const { clock, log, metrics } = this.#deps;
    const { request, route, requestId, startedAt, key } = exchange;
    const ms = rounded(clock.elapsed() - startedAt);
    metrics.observe(route, request.method, status, ms);
    if (log.enabled("info")) log.info("request", { method: request.method, route, status, ms, request_id: requestId, key: key?.prefix });
    this.#deps.onAnswered?.({
      method: request.method,
      route,
      status,
      ms,
      requestId,
      key: key?.prefix,
      memoryOperation: exchange.memoryOperation,
      sessionId: exchange.sessionId,
      traceparent: request.headers.get("traceparent"),
    });
  }

  /** Notes what a request does and to which session, for those who learn of it. */
  trackOperation(exchange: Exchange, { endpoint }: Operation, sessionId: unknown): void {
    if (this.#deps.onAnswered === undefined) return;
    exchange.memoryOperation ??= endpoint.memoryOperation;
    if (typeof sessionId === "string" && isId("sess", sessionId)) exchange.sessionId = sessionId;
  }

  /** Tells the operator of an error of ours, with its cause. */
  logFault({ requestId }: Exchange, { message, detail: { cause } }: ApiError): void {
    this.#deps.log.error(message, { request_id: requestId, cause: cause === undefined ? undefined : describeError(cause) });
  }

  #refuse(exchange: Exchange, thrown: unknown): Response {
    const error = apiErrorOf(thrown, this.#deps.store);
    const status = statusOf(error);
    const { allow, challenge, retryAfterSeconds, closesConnection, oauthError } = error.detail;
    const headers: Record<string, string> = {};
    if (allow !== undefined) headers["Allow"] = allow;
    if (challenge !== undefined) headers["WWW-Authenticate"] = challenge;
    if (retryAfterSeconds !== undefined) headers["Retry-After"] = String(retryAfterSeconds);
    if (closesConnection === true) headers["Connection"] = "close";
    if (oauthError !== undefined) headers["Access-Control-Allow-Origin"] = "*";
    const body = errorJson(error, exchange.requestId);
    try {
      // Load shedding, which says when to retry, is no fault and can be frequent.
      if (status >= 500 && retryAfterSeconds === undefined) this.logFault(exchange, error);
      return this.#responseOf(exchange, { status, body, headers }, body);
    } catch {
      // Neither the log nor the headers of every response could be written: the client gets the error all the same.
      return new Response(body, { status, headers: { ...headers, "Content-Type": "application/json" } });
    }
  }
}

/** Predicts what a request reads, as far as its address and its headers say. */
function readsOf({ endpoint, isIdempotent }: Operation, { request: { headers } }: Exchange, params: Record<string, string | null>) {
  const reads = readsAhead(params["session_id"], endpoint.ahead, LIMITS.contextTurnsDefault);
  const [presented, idempotencyKey] = isIdempotent ? [presentedKey(headers), headers.get("idempotency-key")] : [null, null];
  return presented === null || idempotencyKey === null ? reads : [...reads, readKept(presented, idempotencyKey)];
}

/** The text of a parameter that Elysia could not decode; null for one that is none. */
function partOf(path: string, template: string, name: string): string | null {
  return decodedPart(path.split("/")[template.split("/").indexOf(`{${name}}`)] ?? "") ?? null;
}

/** The owner of an unbound key is always the same object. */
function ownerOf({ userId, agentId }: ApiKeyRow): Owner {
  return userId === undefined && agentId === undefined ? EVERYBODY : { userId, agentId };
}

/** Milliseconds with two digits behind the point. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
