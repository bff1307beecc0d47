/**
 * The HTTP application: every route, and the order in which a request is checked.
 *
 * ```
 * Host → rate → key → scope → declared size → body → idempotency → schema → operation
 * 403    429    401   403     413             400 413  replay        400
 * ```
 * Elysia finds the route; `http/pipeline.ts` does everything else, the same for every endpoint, so that every response has the
 * same headers, whatever its status: `exchange` checks the Host, `answer` all that follows.
 *
 * @module
 */
import { Elysia } from "elysia";
import { ApiError } from "../lib/errors.ts";
import { toJson } from "../lib/json.ts";
import { loadOnce } from "../lib/memoize.ts";
import { hasScope } from "../lib/scopes.ts";
import { auditEndpoints } from "../audit/routes.ts";
import { backupEndpoints, type BackupDeps } from "../backups/routes.ts";
import { statebaseEndpoints } from "../compat/statebase.ts";
import type { Certificates } from "../certificates/certificates.ts";
import type { ContextDeps } from "../context/context.ts";
import { contextEndpoints } from "../context/routes.ts";
import { DASHBOARD_PATHS, dashboardServer, rootAnswer } from "../dashboard/routes.ts";
import { DOCS_PATHS, docsServer } from "../docs/routes.ts";
import type { DocumentDeps } from "../documents/documents.ts";
import { documentEndpoints } from "../documents/routes.ts";
import { EVENT_CALLBACK } from "../events/schema.ts";
import { docsPages } from "../http/docs.ts";
import { preflightHeaders, refuseForeignOrigin } from "../http/cors.ts";
import type { KeyLookup } from "../http/admission.ts";
import type { Endpoint } from "../http/endpoint.ts";
import type { Answer, Exchange } from "../http/exchange.ts";
import type { Idempotency } from "../http/idempotency.ts";
import { Metrics } from "../http/metrics.ts";
import { operationsOf, type Operation } from "../http/operation.ts";
import { originalRequest, pathWithoutQuery, withLongHost } from "../http/path.ts";
import { parametersOf } from "../http/query.ts";
import { Pipeline, type PipelineDeps } from "../http/pipeline.ts";
import { findKey, hasEnded, type KeyDeps } from "../keys/keys.ts";
import type { LastUses } from "../keys/last-use.ts";
import { findLocalKey, isLocalSecret, type LocalKey } from "../keys/local-key.ts";
import { isNonce, PROOF_PATH, proofOf } from "../keys/local-proof.ts";
import { keyEndpoints } from "../keys/routes.ts";
import type { Tickets } from "../keys/tickets.ts";
import { RATE_LIMITS, TRACE_RETENTION_DAYS, type Tier } from "../keys/tiers.ts";
import { apiInProcess } from "../mcp/api.ts";
import { findGrant, isAccessToken } from "../oauth/grants.ts";
import { issuerOf, resourceOf } from "../oauth/issuer.ts";
import type { OAuthDeps } from "../oauth/requests.ts";
import { oauthEndpoints } from "../oauth/routes.ts";
import { challenging, serveOAuth, wrongMethod } from "./oauth-paths.ts";
import { memoryEndpoints } from "../memories/routes.ts";
import { settingsEndpoints } from "../settings/routes.ts";
import type { SettingsDeps } from "../settings/operations.ts";
import type { Activity } from "../stats/activity.ts";
import { statsEndpoints } from "../stats/routes.ts";
import type { StatsDeps } from "../stats/stats.ts";
import type { SecretPolicy } from "../secrets/secret-policy.ts";
import { sharedMetrics, storeMetrics } from "./store-metrics.ts";
import type { SharedState } from "./store-parts.ts";
import { timelineEndpoints } from "../timeline/routes.ts";
import { retrievalEndpoints } from "../retrievals/routes.ts";
import { sessionEndpoints } from "../sessions/routes.ts";
import type { Reader } from "../storage/access.ts";
import type { Durability } from "../storage/durability.ts";
import type { ApiKeyRow } from "../storage/tables.ts";
import { trialEndpoints } from "../trial/routes.ts";
import { traceEndpoints, type TraceDeps } from "../traces/routes.ts";
import type { Caller } from "../traces/record.ts";
import type { TurnDeps } from "../turns/indexed-turns.ts";
import { turnEndpoints } from "../turns/routes.ts";
import { userEndpoints } from "../users/routes.ts";
import { webhookEndpoints } from "../webhooks/routes.ts";
import type { WebhookDeps } from "../webhooks/webhooks.ts";

interface AppDeps
  extends
    ContextDeps,
    DocumentDeps,
    Omit<SettingsDeps, "scheduledBackups">,
    Omit<TurnDeps, "settings">,
    WebhookDeps,
    BackupDeps,
    OAuthDeps,
    Pick<PipelineDeps, "arrivals" | "buckets" | "stopping" | "host" | "allowedHosts" | "corsOrigins" | "requireHttps" | "onAnswered"> {
  readonly idempotency: Idempotency;
  readonly secrets: SecretPolicy;
  readonly activity: Activity;
  readonly feed: TraceDeps["feed"];
  readonly startedAt: number;
  readonly lastUses: LastUses;
  readonly tickets: Tickets;
  /** `open`: metrics need no key, except through a proxy that says that it is one. */
  readonly metrics: "open" | "key";
  readonly durability: Durability;
  readonly servers?: SharedState | undefined;
  readonly certificates?: Certificates | undefined;
  /** Set when programs on this machine may use it without a key of the store. */
  readonly localKey?: LocalKey;
  readonly version: string;
  /** Makes the changes that nobody with a key asks for. */
  readonly system: Caller;
}

export function endpointsOf(
  deps: ContextDeps & DocumentDeps & SettingsDeps & TurnDeps & WebhookDeps & KeyDeps & StatsDeps & TraceDeps & BackupDeps & OAuthDeps,
): Endpoint[] {
  return [
    ...sessionEndpoints(deps),
    ...turnEndpoints(deps),
    ...memoryEndpoints(deps),
    ...contextEndpoints(deps),
    ...documentEndpoints(deps),
    ...timelineEndpoints(deps),
    ...retrievalEndpoints(deps),
    ...traceEndpoints(deps),
    ...auditEndpoints(deps),
    ...keyEndpoints(deps),
    ...oauthEndpoints(deps),
    ...webhookEndpoints(deps, EVENT_CALLBACK),
    ...settingsEndpoints(deps),
    ...trialEndpoints(deps),
    ...userEndpoints(deps),
    ...statsEndpoints(deps),
    ...backupEndpoints(deps),
    ...statebaseEndpoints(deps),
  ];
}

export function createApp(deps: AppDeps) {
  const metrics = new Metrics([...storeMetrics(deps), ...sharedMetrics(deps.servers)], deps.activity);
  const pipeline = new Pipeline({ ...deps, publicUrl: deps.oauth.publicUrl, keys: keyLookup(deps), metrics });
  const endpoints = endpointsOf(deps);
  // Elysia's own router, also when listening: Bun's takes GET /v1/memory/search for a memory called search, where only POST is known.
  const app = new Elysia({ normalize: false, systemRouter: false });
  app.wrap((answer, request) => () => answer(withLongHost(request)));
  const operations = operationsOf(endpoints, deps);
  serveOperations(app, pipeline, operations, deps.corsOrigins ?? []);
  serveMcp(app, pipeline, operations, deps);
  serveOAuth(app, pipeline, deps);
  servePages(app, pipeline, {
    "/health": () => health(deps, 503),
    "/health/ready": () => health(deps, 503),
    // Restarting a server whose disk is full does not help.
    "/health/live": () => health(deps, 200),
    "/": ({ request }) => rootAnswer(deps.version, request),
    ...docsPages(endpoints, deps.version),
    ...dashboardPages(),
    ...guidePages(deps.version),
    ...(deps.localKey === undefined ? {} : { [PROOF_PATH]: proofPage(deps.localKey) }),
    "/metrics": async (exchange) => {
      const isOpen = deps.metrics === "open" && !cameByProxy(exchange.request);
      if (!isOpen && !hasScope((await pipeline.admission.authenticate(exchange)).scopes, "admin")) {
        throw new ApiError("permission_denied", "This needs a key with the scope admin.");
      }
      return { status: 200, body: await metrics.text(), headers: { "Content-Type": metrics.contentType } };
    },
  });
  app.all("/*", ({ request, server }) =>
    pipeline.exchange("other", request, server, async (exchange) => {
      const path = pathWithoutQuery(request.url);
      if (path.startsWith("/v1/")) await pipeline.admission.authenticate(exchange);
      throw nothingAt(path);
    }),
  );
  // Only errors of the router itself come here: `exchange` catches all others.
  app.onError(({ error, request, server }) =>
    pipeline.exchange("other", request, server, () => {
      throw new ApiError("internal_error", "Something went wrong before your request was understood.", { cause: error });
    }),
  );
  return app;
}

/** Serves the API; a method that a path does not know is 405. */
function serveOperations(app: Elysia, pipeline: Pipeline, operations: readonly Operation[], corsOrigins: readonly string[]): void {
  const methods = new Map<string, string[]>();
  for (const operation of operations) {
    const { method, path: route } = operation.endpoint;
    const path = route.replaceAll(/\{(\w+)\}/g, ":$1");
    methods.set(path, [...(methods.get(path) ?? []), ...(method === "GET" ? ["GET", "HEAD"] : [method])]);
    app.route(method, path, ({ request, params, server }) =>
      pipeline.exchange(route, request, server, (exchange) => pipeline.answer(operation, exchange, params)),
    );
  }
  for (const [path, known] of methods) {
    const allow = known.join(", ");
    app.all(path, ({ request, server }) =>
      pipeline.exchange("other", request, server, async (exchange) => {
        const preflight = preflightHeaders(corsOrigins, request, allow);
        if (preflight !== undefined) return { status: 204, body: "", headers: preflight };
        await pipeline.admission.authenticate(exchange);
        throw wrongMethod(request, allow);
      }),
    );
  }
}

/** Serves MCP, whose code is loaded by the first request: a server that nobody speaks MCP to starts as fast and is as small as without. */
function serveMcp(app: Elysia, pipeline: Pipeline, operations: readonly Operation[], deps: AppDeps): void {
  const { corsOrigins = [], clock, version } = deps;
  const byRoute = new Map(operations.map((operation) => [`${operation.endpoint.method} ${operation.endpoint.path}`, operation]));
  const load = loadOnce(async () => (await import("../mcp/http.ts")).mcpHandler());
  app.post("/mcp", ({ request, server }) =>
    pipeline.exchange("/mcp", request, server, (exchange) => {
      refuseForeignOrigin(request.headers, corsOrigins);
      return challenging(exchange, deps, () =>
        pipeline.answerCalls(exchange, async (caller, body) => {
          if (caller.scopes.length === 0) throw new ApiError("permission_denied", "This key is for signing in only.");
          const handle = await load();
          let isChange = false;
          const api = apiInProcess(byRoute, caller, {
            onCall(operation, sessionId) {
              isChange ||= operation.isChange;
              pipeline.trackOperation(exchange, operation, sessionId);
            },
            onFault: (error) => pipeline.logFault(exchange, error),
          });
          const mayWrite = hasScope(caller.scopes, "write");
          const response = await handle(originalRequest(request), body, {
            api,
            owner: caller.owner,
            mayWrite,
            mayRead: hasScope(caller.scopes, "read"),
            version,
            now: () => clock.now(),
          });
          return { status: response.status, body: await response.text(), isChange };
        }),
      );
    }),
  );
  app.all("/mcp", ({ request, server }) =>
    pipeline.exchange("other", request, server, async (exchange) => {
      const preflight = preflightHeaders(corsOrigins, request, "POST");
      if (preflight !== undefined) return { status: 204, body: "", headers: preflight };
      refuseForeignOrigin(request.headers, corsOrigins);
      return challenging(exchange, deps, async () => {
        await pipeline.admission.authenticate(exchange);
        throw wrongMethod(request, "POST");
      });
    }),
  );
}

/** Serves what needs no key and has no rate limit. */
function servePages(app: Elysia, pipeline: Pipeline, pages: Record<string, (exchange: Exchange) => Answer | Promise<Answer>>): void {
  for (const [path, page] of Object.entries(pages)) {
    app.get(path, ({ request, server }) => pipeline.exchange(path, request, server, page));
    app.all(path, ({ request, server }) =>
      pipeline.exchange("other", request, server, () => {
        throw wrongMethod(request, "GET, HEAD");
      }),
    );
  }
}

/** All its paths are one route in metrics and log. */
function dashboardPages() {
  const answerTo = dashboardServer();
  const page = async ({ request }: Exchange): Promise<Answer> => {
    const path = pathWithoutQuery(request.url);
    const answer = await answerTo(path, request.headers);
    if (answer === undefined) throw nothingAt(path);
    return answer;
  };
  return Object.fromEntries(DASHBOARD_PATHS.map((path) => [path, page]));
}

/** The documentation, all of whose paths are one route in metrics and log. */
function guidePages(version: string) {
  const answerTo = docsServer(version);
  const page = async ({ request }: Exchange): Promise<Answer> => {
    const path = pathWithoutQuery(request.url);
    const answer = await answerTo(path);
    if (answer === undefined) throw nothingAt(path);
    return answer;
  };
  return Object.fromEntries(DOCS_PATHS.map((path) => [path, page]));
}

/** Proves to programs of the same user that this is the server whose key they know. */
function proofPage({ secret }: LocalKey) {
  return ({ request, remote }: Exchange): Answer => {
    const nonce = parametersOf(request.url).get("nonce");
    if (!isNonce(nonce)) throw new ApiError("invalid_request", "nonce must be 32 letters or digits.", { param: "nonce" });
    const [client, server] = [remote?.requestIP(originalRequest(request)) ?? undefined, remote?.address];
    const ends = client === undefined || server === undefined ? undefined : { client, server };
    return { status: 200, body: toJson({ proof: proofOf(secret, nonce, ends) }) };
  };
}

function nothingAt(path: string): ApiError {
  return new ApiError("resource_not_found", `There is nothing at ${path.slice(0, 200)}. The paths are documented at /docs.`);
}

function keyLookup({ store, clock, lastUses, settings, localKey, tickets, buckets, oauth }: AppDeps): KeyLookup {
  const isLocal = (row: ApiKeyRow) => row === localKey?.row;
  const find = (presented: string) => {
    const row = store.read((reader) => findKey(reader, presented));
    // A command makes keys too, in a process of its own.
    return row ?? store.readNewest((reader) => findKey(reader, presented));
  };
  const findAgain = foundAtVersion({ store, clock }, find);
  // Settings of another server hold for every request that comes after them. What a request reads later can be of when it came.
  const findAmongServers = (presented: string) => settings.readAlong((reader) => findKey(reader, presented));
  // The tokens of an application open one path, at the address for which they were given.
  const findToken = (presented: string, request: Request) => {
    const issuer = pathWithoutQuery(request.url) === "/mcp" ? issuerOf(request, oauth.publicUrl) : undefined;
    if (issuer === undefined) return undefined;
    const grant = (reader: Reader) => findGrant(reader, presented, resourceOf(issuer));
    return buckets === undefined ? store.read(grant) : settings.readAlong(grant);
  };
  const unlessLocal = (findStored: typeof find) => (presented: string, request: Request) => {
    if (isAccessToken(presented)) return findToken(presented, request);
    return isLocalSecret(presented) ? findLocalKey(localKey, presented) : findStored(presented);
  };
  return {
    find: unlessLocal(buckets === undefined ? find : findAmongServers),
    findTwice: unlessLocal(buckets === undefined ? findAgain : findAmongServers),
    findAgain: unlessLocal(findAgain),
    redeem: (ticket, path) => store.read((reader) => tickets.redeem(reader, ticket, path)),
    ownerOf: (row, presented) => (isLocal(row) ? row.id : presented),
    trackUse(row) {
      if (!isLocal(row)) lastUses.note(row.id, clock.now());
    },
    retentionDays: ({ tier }) => (tier === "enterprise" ? settings.values.trace_retention_days : TRACE_RETENTION_DAYS[tier as Tier]),
    anonymousRate: RATE_LIMITS.free,
  };
}

type FindKey = (presented: string) => ApiKeyRow | undefined | Promise<ApiKeyRow | undefined>;

/** Finds a key once in each snapshot of the store, for requests that look before and after their body: most are of few keys. */
function foundAtVersion({ store, clock }: Pick<AppDeps, "store" | "clock">, find: FindKey): FindKey {
  let version: object | undefined;
  let known = new Map<string, ApiKeyRow>();
  return (presented) => {
    if (version === undefined || store.readVersion !== version) known = new Map<string, ApiKeyRow>();
    version = store.readVersion;
    const before = known.get(presented);
    if (before !== undefined && !hasEnded(before, clock.now())) return before;
    const found = find(presented);
    // Looking for one that is not there can make it another snapshot.
    if (version !== undefined && store.readVersion === version && found !== undefined && !(found instanceof Promise))
      known.set(presented, found);
    return found;
  };
}

function health(deps: AppDeps, problemStatus: 200 | 503): Answer {
  const { store, vectors, documentVectors, version, durability, settings, stopping, certificates } = deps;
  const certificate = certificates?.status();
  const end = stopping.aborted ? "The server is stopping." : undefined;
  const problem = end ?? store.health.problem() ?? vectors.problem() ?? documentVectors.problem();
  const [status, reason] = problem === undefined ? ["ready"] : ["degraded", problem];
  const body = toJson({
    status,
    reason,
    version,
    durability,
    region: settings.values.region ?? undefined,
    max_body_bytes: settings.values.max_body_bytes,
    certificate: certificate && { expires_at: certificate.expires_at, overdue: certificate.overdue, error: certificate.error },
  });
  return { status: problem === undefined ? 200 : problemStatus, body };
}

/** Checks whether a proxy says that it passed a request on; one that says nothing is not noticed. */
function cameByProxy({ headers }: Request): boolean {
  return PROXY_HEADERS.some((name) => headers.has(name));
}
const PROXY_HEADERS = ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip", "forwarded", "via"];
