/**
 * The HTTP application: every route, and the order in which a request is checked, which is written here and only here.
 *
 * ```
 * Host → rate → key → scope → declared size → body → idempotency → schema → operation
 * 403    429    401   403     413             400 413  replay        400
 * ```
 * Elysia finds the route; all else happens in `answer`, the same for every endpoint, so that every response carries the
 * same headers in the same way, whatever its status.
 *
 * @module
 */
import { Elysia } from "elysia";
import type { Clock } from "./lib/clock.ts";
import { ApiError } from "./lib/errors.ts";
import { IdSource, type KeyId } from "./lib/ids.ts";
import { toJson } from "./lib/json.ts";
import { describeError, type Log } from "./lib/log.ts";
import { contextEndpoints } from "./context/routes.ts";
import type { Arrivals } from "./http/arrivals.ts";
import { readBody, refuseDeclaredBody } from "./http/body.ts";
import { docsPages } from "./http/docs.ts";
import { corsHeaders, preflightHeaders } from "./http/cors.ts";
import { isIdempotent, pathParameters, type ApiCaller, type Call, type Endpoint } from "./http/endpoint.ts";
import { errorJson, statusOf } from "./http/errors.ts";
import { foreignHost, hostCheck } from "./http/host.ts";
import { httpsLocation } from "./http/https.ts";
import { type Idempotency, idempotencyKeyOf } from "./http/idempotency.ts";
import { Metrics } from "./http/metrics.ts";
import { asArrived, pathOf, routable } from "./http/path.ts";
import { listParametersOf, readQuery, refuseForeignFilter } from "./http/query.ts";
import { Sending } from "./http/sending.ts";
import { RateLimiter, rateLimitHeaders } from "./http/rate-limit.ts";
import type { Level, Rate } from "./http/bucket.ts";
import { requestIdOf } from "./http/request-id.ts";
import { validator, type Validate } from "./http/validate.ts";
import { findKey, hasScope, type KeyParts } from "./keys/keys.ts";
import type { LastUses } from "./keys/last-use.ts";
import { keyEndpoints } from "./keys/routes.ts";
import { RATE_LIMITS, TRACE_RETENTION_DAYS, type Tier } from "./keys/tiers.ts";
import type { MemoryParts } from "./memories/memories.ts";
import { memoryEndpoints } from "./memories/routes.ts";
import { settingsEndpoints } from "./settings/routes.ts";
import type { SettingsParts } from "./settings/operations.ts";
import { readingsOf } from "./readings.ts";
import { sessionEndpoints } from "./sessions/routes.ts";
import type { Durability } from "./storage/durability.ts";
import type { ApiKeyRow } from "./storage/tables.ts";
import { traceEndpoints } from "./traces/routes.ts";
import { turnEndpoints } from "./turns/routes.ts";
import { webhookEndpoints } from "./webhooks/routes.ts";
import type { WebhookParts } from "./webhooks/subscriptions.ts";

interface AppParts extends MemoryParts, SettingsParts, WebhookParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly arrivals: Arrivals;
  readonly idempotency: Idempotency;
  readonly lastUses: LastUses;
  /** Address the server listens on, and other names it answers to. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  /** `open`: metrics need no key, except through a proxy that says that it is one. */
  readonly metrics: "open" | "key";
  /** Pages of these origins may call from a browser. */
  readonly corsOrigins?: readonly string[];
  /** Behind a proxy that says how a request reached it: what came over plain HTTP is sent to HTTPS. */
  readonly requireHttps?: boolean;
  readonly durability: Durability;
  readonly version: string;
}

/** For the log, where there is more to say than the message. */
function causeOf({ detail: { cause } }: ApiError): string | undefined {
  return cause === undefined ? undefined : describeError(cause);
}

/** Where a request came from, if the server knows. */
type Remote = { requestIP(request: Request): { address: string } | null } | null;

interface Exchange {
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

interface Answer {
  status: number;
  body: string | Blob;
  /** Beside those that every response has, or instead of them. */
  headers?: Record<string, string>;
  replayed?: boolean;
  /** Whether a success may have changed something, so that it cannot be refused any more. */
  isChange?: boolean;
}

const NO_BODY = {};

/** Requests without a key share a bucket per address. */
const ANONYMOUS_RATE = RATE_LIMITS.free;

export function endpointsOf(parts: MemoryParts & SettingsParts & WebhookParts & KeyParts): Endpoint[] {
  return [
    ...sessionEndpoints(parts),
    ...turnEndpoints(parts),
    ...memoryEndpoints(parts),
    ...contextEndpoints(parts),
    ...traceEndpoints(parts),
    ...keyEndpoints(parts),
    ...webhookEndpoints(parts),
    ...settingsEndpoints(parts),
  ];
}

export function createApp(parts: AppParts) {
  const limiter = new RateLimiter(parts.clock);
  const isOwnHost = hostCheck(parts.host, parts.allowedHosts);
  const sending = new Sending();
  const metrics = new Metrics(readingsOf(parts));
  const corsOrigins = parts.corsOrigins ?? [];
  const endpoints = endpointsOf(parts);
  const listParameters = listParametersOf(endpoints);
  // Elysia's own router, also when listening: Bun's takes GET /v1/memory/search for a memory called search, where only POST is known.
  const app = new Elysia({ normalize: false, systemRouter: false });
  app.wrap((answer, request) => () => answer(routable(request)));

  /** Filled again for each response, which takes a copy: cheaper than having Bun read them from an object each time. */
  const common = new Headers({
    "Content-Type": "application/json",
    "X-Content-Type-Options": "nosniff",
    // A shared cache does not know that X-API-Key says who may see an answer.
    "Cache-Control": "no-store",
    // Also where no origin was sent: a cache would give that answer to a page.
    ...(corsOrigins.length > 0 ? { Vary: "Origin" } : {}),
  });
  const last = { limit: "", reset: "" };

  // Not the source of records' ids: whatever these have come to, a request has an id.
  const requestIds = new IdSource(parts.clock);

  /**
   * Runs `work` and turns what it gives or throws into a response: at once where nothing is waited for, since a promise costs
   * the server as much as all the rest of a small answer.
   */
  function exchange(
    route: string,
    request: Request,
    remote: Remote,
    work: (open: Exchange) => Answer | Promise<Answer>,
  ): Response | Promise<Response> {
    const open: Exchange = { request, remote, route, requestId: "", startedAt: 0, rate: ANONYMOUS_RATE, level: undefined };
    try {
      open.startedAt = parts.clock.elapsed();
      open.requestId = requestIdOf(request.headers, requestIds);
      if (!isOwnHost(request.headers.get("host"))) throw foreignHost();
      const location = parts.requireHttps === true ? httpsLocation(request.headers, pathOf(request.url)) : undefined;
      if (location !== undefined) return respond(open, { status: 308, body: "", headers: { Location: location } });
      const answer = work(open);
      return answer instanceof Promise ? finish(open, answer) : respond(open, answer);
    } catch (error) {
      return refuse(open, error);
    }
  }

  async function finish(open: Exchange, answer: Promise<Answer>): Promise<Response> {
    try {
      return respond(open, await answer);
    } catch (error) {
      return refuse(open, error);
    }
  }

  /** What an operator sees of a request: never its content, its key or its query. */
  function note({ request, route, requestId, startedAt, actor }: Exchange, status: number): void {
    const ms = Math.round((parts.clock.elapsed() - startedAt) * 100) / 100;
    metrics.observe(route, request.method, status, ms);
    if (parts.log.enabled("info"))
      parts.log.info("request", { method: request.method, route, status, ms, request_id: requestId, key: actor });
  }

  function respond(open: Exchange, { status, body: answer, headers: more, replayed, isChange = false }: Answer): Response {
    const { keyId } = open;
    const body = keyId === undefined || typeof answer !== "string" ? answer : sending.bodyOf(keyId, answer, isChange);
    open.level ??= limiter.takeOfAddress(addressOf(open), ANONYMOUS_RATE, 0);
    const [limit, remaining, reset] = rateLimitHeaders(open.rate, open.level, parts.clock.now());
    common.set("X-Request-Id", open.requestId);
    common.set("X-RateLimit-Remaining", remaining);
    // The same from one response to the next, as a rule.
    if (limit !== last.limit) common.set("X-RateLimit-Limit", (last.limit = limit));
    if (reset !== last.reset) common.set("X-RateLimit-Reset", (last.reset = reset));
    let headers = common;
    if (more !== undefined || replayed === true || corsOrigins.length > 0) {
      headers = new Headers(common);
      for (const [name, value] of Object.entries(more ?? {})) headers.set(name, value);
      if (replayed === true) headers.set("Idempotency-Replayed", "true");
      if (corsOrigins.length > 0)
        for (const [name, value] of Object.entries(corsHeaders(corsOrigins, open.request.headers))) headers.set(name, value);
    }
    note(open, status);
    return new Response(body, { status, headers });
  }

  function refuse(open: Exchange, thrown: unknown): Response {
    const error =
      thrown instanceof ApiError
        ? thrown
        : (parts.store.refusalOfRead(thrown) ??
          new ApiError("internal_error", "Something went wrong on our side; the operator's log has the request id.", { cause: thrown }));
    const status = statusOf(error);
    const headers: Record<string, string> = {};
    if (error.detail.allow !== undefined) headers["Allow"] = error.detail.allow;
    if (error.detail.retryAfterSeconds !== undefined) headers["Retry-After"] = String(error.detail.retryAfterSeconds);
    if (error.detail.closesConnection === true) headers["Connection"] = "close";
    const body = errorJson(error, open.requestId);
    try {
      // What is refused to shed load is no fault, and there can be much of it.
      if (status >= 500 && error.detail.retryAfterSeconds === undefined)
        parts.log.error(error.message, { request_id: open.requestId, cause: causeOf(error) });
      return respond(open, { status, body, headers });
    } catch {
      // Neither the log nor the headers of every response could be written: it is answered as an error all the same.
      return new Response(body, { status, headers: { ...headers, "Content-Type": "application/json" } });
    }
  }

  function keyOf({ headers }: Request): ApiKeyRow | undefined {
    const presented = presentedKey(headers);
    return presented === null ? undefined : findKey(parts.store, parts.clock.now(), presented);
  }

  /** The key that was presented, with a token taken from its bucket; without one, from the address's. */
  function authenticate(open: Exchange): ApiKeyRow {
    const key = keyOf(open.request);
    open.rate = key ?? ANONYMOUS_RATE;
    if (key !== undefined) {
      open.actor = key.prefix;
      open.keyId = key.id;
    }
    open.level = key === undefined ? limiter.takeOfAddress(addressOf(open), open.rate, 1) : limiter.takeOfKey(key.id, key);
    if (!open.level.allowed) {
      const seconds = Math.max(1, Math.ceil(open.level.nextInMs / 1000));
      throw new ApiError("rate_limit_exceeded", `Too many requests: ${open.rate.perMinute} per minute. Try again in ${seconds} s.`, {
        retryAfterSeconds: seconds,
      });
    }
    if (key === undefined) {
      throw notAuthenticated(
        presentedKey(open.request.headers) === null ? "An API key is required, in the header X-API-Key." : KEY_NOT_VALID,
      );
    }
    parts.lastUses.note(key.id, parts.clock.now());
    return key;
  }

  function callerOf(open: Exchange, key: ApiKeyRow): ApiCaller {
    return {
      actor: key.prefix,
      keyId: key.id as KeyId,
      scopes: key.scopes,
      retentionDays: key.tier === "enterprise" ? parts.settings.values.trace_retention_days : TRACE_RETENTION_DAYS[key.tier as Tier],
      requestId: open.requestId,
      startedAt: open.startedAt,
    };
  }

  function handlerOf(endpoint: Endpoint) {
    const { status } = endpoint;
    const isChange = endpoint.method !== "GET" && endpoint.scope !== "read";
    const checkQuery = validator(endpoint.query);
    const checkBody = endpoint.body === null ? null : validator(endpoint.body);
    const takesQuery = Object.keys(endpoint.query.properties).length > 0;

    async function withBody(
      open: Exchange,
      check: Validate,
      call: Omit<Call<unknown, unknown, unknown>, "body">,
      keyId: string,
    ): Promise<Answer> {
      const { request } = open;
      const idempotencyKey = isIdempotent(endpoint) ? idempotencyKeyOf(request.headers) : undefined;
      const bytesMax = parts.settings.values.max_body_bytes;
      const arrival = parts.arrivals.begin(keyId);
      try {
        const body = await readBody(request, bytesMax, arrival);
        // A body can be long in coming, and its key be revoked meanwhile.
        if (keyOf(request) === undefined) throw notAuthenticated(KEY_NOT_VALID);
        const run = (caller: ApiCaller) => endpoint.run({ ...call, caller, body: check(body.value) } as never);
        if (idempotencyKey === undefined) return { status, body: await run(call.caller), isChange };
        const identity = {
          keyId,
          idempotencyKey,
          presentedKey: presentedKey(request.headers) ?? "",
          method: endpoint.method,
          path: pathOf(request.url),
          body: body.bytes,
        };
        const kept = await parts.idempotency.run(identity, status, (keep) => run({ ...call.caller, keep }));
        return { status: kept.status, body: kept.answer, replayed: kept.replayed, isChange: !kept.replayed };
      } finally {
        arrival.end();
      }
    }

    return (open: Exchange, params: Record<string, string>): Answer | Promise<Answer> => {
      const { request } = open;
      const key = authenticate(open);
      if (!hasScope(key.scopes, endpoint.scope)) {
        throw new ApiError(
          "permission_denied",
          `This needs a key with the scope ${endpoint.scope}; this one has ${key.scopes.join(", ")}.`,
        );
      }
      sending.refuseWithoutRoom(key.id);
      refuseDeclaredBody(request.headers, parts.settings.values.max_body_bytes);
      refuseForeignFilter(request.url, endpoint, listParameters);
      const query = takesQuery ? checkQuery(readQuery(request.url, endpoint.query)) : {};
      const call = { params, query, caller: callerOf(open, key), body: NO_BODY };
      if (checkBody !== null) return withBody(open, checkBody, call, key.id);
      const body = endpoint.run(call as never);
      return body instanceof Promise ? body.then((text) => ({ status, body: text, isChange })) : { status, body, isChange };
    };
  }

  const methods = new Map<string, string[]>();
  for (const endpoint of endpoints) {
    const handle = handlerOf(endpoint);
    const names = pathParameters(endpoint.path);
    const path = endpoint.path.replaceAll(/\{(\w+)\}/g, ":$1");
    methods.set(path, [...(methods.get(path) ?? []), ...(endpoint.method === "GET" ? ["GET", "HEAD"] : [endpoint.method])]);
    app.route(endpoint.method, path, ({ request, params, server }) =>
      exchange(endpoint.path, request, server, (open) => handle(open, decoded(params, names))),
    );
  }
  for (const [path, known] of methods) {
    const allow = known.join(", ");
    app.all(path, ({ request, server }) =>
      exchange("other", request, server, (open) => {
        const preflight = preflightHeaders(corsOrigins, request, allow);
        if (preflight !== undefined) return { status: 204, body: "", headers: preflight };
        authenticate(open);
        throw wrongMethod(request, allow);
      }),
    );
  }

  /** What is for everyone: no key, no bucket. */
  function servePage(path: string, page: (open: Exchange) => Answer | Promise<Answer>): void {
    app.get(path, ({ request, server }) => exchange(path, request, server, page));
    app.all(path, ({ request, server }) =>
      exchange("other", request, server, () => {
        throw wrongMethod(request, "GET, HEAD");
      }),
    );
  }

  function health(problemStatus: 200 | 503): Answer {
    const problem = parts.store.problem() ?? parts.vectors.problem();
    const { version, durability } = parts;
    const [status, reason] = problem === undefined ? ["ready"] : ["degraded", problem];
    const body = toJson({ status, reason, version, durability, region: parts.settings.values.region ?? undefined });
    return { status: problem === undefined ? 200 : problemStatus, body };
  }
  for (const path of ["/health", "/health/ready"]) servePage(path, () => health(503));
  // To be started again is of no use to a server whose disk is full.
  servePage("/health/live", () => health(200));
  for (const [path, page] of Object.entries(docsPages(endpoints, parts.version))) servePage(path, page);

  servePage("/metrics", async (open) => {
    const isOpen = parts.metrics === "open" && !isOfProxy(open.request);
    if (!isOpen && !hasScope(authenticate(open).scopes, "admin")) {
      throw new ApiError("permission_denied", "This needs a key with the scope admin.");
    }
    return { status: 200, body: await metrics.text(), headers: { "Content-Type": metrics.contentType } };
  });

  app.all("/*", ({ request, server }) =>
    exchange("other", request, server, (open) => {
      const [path = ""] = pathOf(request.url).split("?");
      if (path.startsWith("/v1/")) authenticate(open);
      throw new ApiError("resource_not_found", `There is nothing at ${path.slice(0, 200)}.`);
    }),
  );
  // What reaches this has gone around `exchange`: a fault of the router's own.
  app.onError(({ error, request, server }) =>
    exchange("other", request, server, () => {
      throw new ApiError("internal_error", "Something went wrong before your request was understood.", { cause: error });
    }),
  );
  return app;
}

/** Elysia gives null for a parameter that cannot be decoded, such as `%ZZ`; no record has an empty id. */
function decoded(params: Record<string, string | null>, names: readonly string[]): Record<string, string> {
  for (const name of names) params[name] ??= "";
  return params as Record<string, string>;
}

function wrongMethod(request: Request, allow: string): ApiError {
  return new ApiError("method_not_allowed", `${request.method} is not known here; what is: ${allow}.`, { allow });
}

const KEY_NOT_VALID = "The API key is not valid, has expired or was revoked.";

function notAuthenticated(message: string): ApiError {
  return new ApiError("authentication_failed", message);
}

function presentedKey(headers: Headers): string | null {
  const key = headers.get("x-api-key");
  if (key !== null) return key;
  const authorization = headers.get("authorization");
  return authorization !== null && /^bearer /i.test(authorization) ? authorization.slice("bearer ".length).trim() : null;
}

/** A proxy may say that it stands in between; that it does not say so proves nothing. */
function isOfProxy({ headers }: Request): boolean {
  return PROXY_HEADERS.some((name) => headers.has(name));
}
const PROXY_HEADERS = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "forwarded", "via"];

function addressOf({ request, remote }: Exchange): string {
  return remote?.requestIP(asArrived(request))?.address ?? "unknown";
}
