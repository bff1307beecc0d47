/**
 * The docs: `/docs` for people, `/openapi.json` for programs.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Type } from "@sinclair/typebox";
import { withTitledComponents } from "../scripts/client-types.ts";
import { createApp, endpointsOf } from "../src/server/app.ts";
import { docsPages } from "../src/http/docs.ts";
import { openApiSchema, type SchemaComponents } from "../src/http/openapi-schema.ts";
import { OneOf, UserObject } from "../src/http/types.ts";
import { validator } from "../src/http/validate.ts";
import { ERRORS, type ErrorCode } from "../src/lib/errors.ts";
import { DEFAULTS } from "../src/settings/schema.ts";
import { EVENT_TYPES, TEST_EVENT } from "../src/traces/events.ts";
import { signatureHeaders } from "../src/webhooks/signature.ts";
import { backupParts, leaveBackupTraces } from "./support/backups.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { startReceiver } from "./support/receiver.ts";
import { checker, contentOf, resolved, type OpenApi, type Operation } from "./support/documented.ts";
import { oneOfEach, REQUESTS } from "./support/requests.ts";
import { isOnPostgres } from "./support/stores.ts";
import { scratchDirectory, startProcess } from "./support/process.ts";

const COMMON: ErrorCode[] = [
  "authentication_failed",
  "permission_denied",
  "payload_too_large",
  "rate_limit_exceeded",
  "internal_error",
  "service_unavailable",
];

/** The application of a Cairn, for answers that are no JSON. */
function appOf(cairn: Cairn) {
  const app = createApp({ ...cairn.service, host: "127.0.0.1", allowedHosts: [], metrics: "key", version: "1.2.3" });
  return {
    routes: app.routes,
    fetch: (path: string, headers: Record<string, string> = {}) =>
      app.handle(new Request(`http://localhost${path}`, { headers: { host: "localhost", ...headers } })),
  };
}

async function servedBy(cairn: Cairn): Promise<OpenApi> {
  const response = await appOf(cairn).fetch("/openapi.json");
  return (await response.json()) as OpenApi;
}

/** The document with a component for each schema with a title. */
async function documentOf(cairn: Cairn): Promise<OpenApi> {
  return withTitledComponents(await servedBy(cairn));
}

/** All operations, each with its name: `GET /v1/sessions`. */
function operationsOf({ paths }: OpenApi): { name: string; path: string; method: string; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      return { name: `${method.toUpperCase()} ${path}`, path, method: method.toUpperCase(), operation };
    }),
  );
}

function operationOf({ paths }: OpenApi, method: string, path: string): Operation {
  const operation = paths[path]?.[method.toLowerCase()];
  if (operation === undefined) throw new Error(`the document has no ${method} ${path}`);
  return operation;
}

test("/openapi.json is a valid OpenAPI 3.0 document of this version", async () => {
  await using cairn = await startCairn();
  const document = await servedBy(cairn);
  expect(await new Validator().validate(structuredClone(document))).toEqual({ valid: true });
  expect(document).toMatchObject({
    openapi: "3.0.3",
    info: { title: "Cairn", version: "1.2.3" },
    servers: [{ url: "/" }],
    security: [{ ApiKey: [] }, { Bearer: [] }],
    components: {
      securitySchemes: { ApiKey: { type: "apiKey", in: "header", name: "X-API-Key" }, Bearer: { type: "http", scheme: "bearer" } },
    },
  });
});

test("the document describes every route of the application, and no other", async () => {
  await using cairn = await startCairn();
  const app = appOf(cairn);
  const noPartOfTheApi = /^\/((dashboard|docs|llms\.txt|metrics|openapi\.json|mcp|register|authorize|token|revoke|\.well-known)(\/|$)|$)/;
  // Those for all methods are the refusals: 404 and 405.
  const routes = app.routes
    .filter(({ method, path }) => method !== "ALL" && !noPartOfTheApi.test(path))
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  const described = operationsOf(await documentOf(cairn)).map(({ name }) => name);
  expect(described.toSorted()).toEqual(routes.toSorted());
});

test("every operation has a name of its own, which generated clients can rely on", async () => {
  await using cairn = await startCairn();
  const byTag = Map.groupBy(operationsOf(await documentOf(cairn)), ({ operation }) => operation.tags[0]);
  const names = Array.from(byTag, ([tag, group]) => [tag, group.map(({ operation }) => operation.operationId).join(" ")]);
  expect(Object.fromEntries(names)).toEqual({
    Sessions:
      "createSession listSessions getSession updateSession deleteSession updateState getState patchState rollBackSession forkSession listVersions getVersion",
    Turns: "addTurn listTurns addTurns searchTurns listTurnsByTheirWords getTurn",
    Memories: "addMemory listMemories addManyMemories searchMemories forgetMemories getMemory updateMemory deleteMemory getMemoryHistory",
    Context: "getContext replayContext",
    Documents: "changeDocuments queryDocuments",
    Timeline: "listTimeline",
    Retrievals: "listRetrievals listSearches getRetrieval rateRetrieval",
    Traces: "listTraces getTrace watchTraces",
    "API keys": "signIn getCurrentApiKey signOut createApiKey listApiKeys getApiKey revokeApiKey rollApiKey",
    OAuth: "describeOauthRequest createOauthGrant",
    Webhooks:
      "createWebhook listWebhooks getWebhook updateWebhook deleteWebhook rotateSecret testWebhook listDeliveries getWebhookStatistics listWebhookStatistics listFailedDeliveries getDelivery recoverFailedDeliveries retryDelivery",
    Settings: "getSettings changeSettings",
    Trials: "tryEmbeddingProvider",
    Users: "listUsers getUser eraseUser getErasure listAgents",
    Stats: "getStatistics",
    Audit: "getSignedHeads getProof",
    Backups: "createBackup listBackups getBackup deleteBackup createTicketForBackup downloadBackup",
    "StateBase SDKs":
      "rollBackStatebaseState addStatebaseMemory findStatebaseMemories getStatebaseMemory updateStatebaseMemory deleteStatebaseMemory",
    Health: "getHealth getReadiness getLiveness",
  });
});

test("the document says what limit lists have, and which fields and bodies are required", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const limit = { in: "query", required: false, schema: { type: "integer", minimum: 1, maximum: 100, default: 20 } };
  const lists = operationsOf(document).filter(({ operation: { operationId } }) => operationId.startsWith("list"));
  for (const { operation } of lists) expect(operation.parameters).toContainEqual(expect.objectContaining({ name: "limit", ...limit }));
  const required = Object.entries(document.components.schemas).map(([name, schema]) => [name, schema.required]);
  expect(Object.fromEntries(required)).toMatchObject({
    NewSession: ["agent_id"],
    StateUpdate: ["state"],
    Rollback: ["version"],
    NewTurn: ["input", "output"],
    NewMemory: ["content"],
    MemorySearch: ["query"],
    NewWebhook: ["url", "events"],
  });
  expect(operationOf(document, "POST", "/v1/sessions").requestBody?.required).toBe(true);
  expect(operationOf(document, "POST", "/v1/sessions/{session_id}/fork").requestBody?.required).toBe(false);
});

test("a field with a default may be left out, and generators of types see that: it stands in the body of a request, not in a component", async () => {
  await using cairn = await startCairn();
  const document = await servedBy(cairn);
  // openapi-typescript makes such a field of a component required.
  const defaultsIn = (at: unknown): string[] => {
    if (typeof at !== "object" || at === null) return [];
    const { properties = {}, required = [] } = at as { properties?: Record<string, object>; required?: string[] };
    const own = Object.entries(properties).filter(([, field]) => "default" in field);
    return [
      ...own.map(([name]) => (required.includes(name) ? `${name} is required` : name)),
      ...Object.values(at).flatMap((member) => defaultsIn(member)),
    ];
  };
  expect(defaultsIn(document.components)).toEqual([]);
  const bodies = operationsOf(document).map(({ operation: { requestBody } }) => defaultsIn(requestBody).sort());
  expect(bodies.filter((names) => names.length > 0)).toEqual([
    ["if_exists", "initial_state", "metadata", "ttl_seconds"],
    ["turns"],
    ["memories", "turns"],
    ["embed", "if_exists", "metadata", "metadata", "on_duplicate", "tags", "type"],
    ["metadata"],
    ["limit", "threshold"],
    ["embed", "if_exists", "metadata", "on_duplicate", "tags", "type"],
    ["embed", "if_exists", "metadata", "on_duplicate", "tags", "type"],
    ["explain", "limit", "threshold"],
    ["dry_run", "limit"],
    ["explain", "format"],
    ["offset"],
    ["not_useful", "useful"],
    ["scopes", "tier"],
    ["force", "overlap_seconds"],
    ["expires_in_days"],
    ["enabled"],
    ["content", "query"],
    ["embed", "metadata", "tags", "type"],
  ]);
});

test("the document describes what a receiver of webhooks gets of each type of event, with an example", async () => {
  using parts = backupParts();
  await using cairn = await startCairn(parts);
  const document = await documentOf(cairn);
  const { callbacks } = operationOf(document, "POST", "/v1/webhooks") as Operation & { callbacks: any };
  const { requestBody, parameters } = callbacks.event["{$request.body#/url}"].post;
  const signed = Object.keys(signatureHeaders(["a secret of webhooks"], { id: "evt_1", timestampSeconds: 0, body: "" }));
  expect(parameters.map(({ name }: { name: string }) => name).toSorted()).toEqual(signed.toSorted());
  const { schema, examples } = requestBody.content["application/json"];
  const { anyOf, discriminator } = resolved<any>(document, schema);
  const types = [...EVENT_TYPES, TEST_EVENT];
  expect(Object.keys(discriminator.mapping)).toEqual(types);
  expect(anyOf.map(({ $ref }: { $ref: string }) => $ref)).toEqual(Object.values(discriminator.mapping));
  expect(Object.keys(examples)).toEqual(types);

  const check = checker(document);
  await using receiver = startReceiver();
  const webhook = await cairn.subscribe(receiver.url);
  const session = await cairn.createSession({ user_id: "ada", ttl_seconds: 60 });
  await cairn.addTurn(session.id, "", "", { output: { type: "error", content: "no answer" } });
  await cairn.addMemory(session.id, "Likes tea.");
  const { id: old } = await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "Likes tea." }));
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "Likes coffee.", supersedes: [old], ttl_seconds: 60 }));
  await cairn.setState(session.id, { step: 1 });
  await cairn.rollback(session.id, 0);
  await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
  await cairn.createSession({ ttl_seconds: 60 });
  cairn.clock.advance({ seconds: 60 });
  await cairn.runTask("session expiry");
  await cairn.runTask("memory expiry");
  if (!isOnPostgres) await leaveBackupTraces(cairn, parts);
  await cairn.ok(cairn.post(`/v1/webhooks/${webhook.id}/test`));
  await cairn.deliver();
  // A database has backups of its own.
  const sent = types.filter((type) => !isOnPostgres || !type.startsWith("backup."));
  expect(new Set(receiver.events.map(({ type }) => type))).toEqual(new Set(sent));
  for (const event of [...receiver.events, ...Object.values<any>(examples).map(({ value }) => value)]) {
    const $ref: string = discriminator.mapping[event.type];
    expect({ type: event.type, problems: check({ $ref, properties: {} }, event) }).toEqual({ type: event.type, problems: [] });
  }
});

test("the document says of the largest body what it is and what changes it", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const { description } = document["info"] as { description: string };
  expect(description.replaceAll(/\s+/g, " ")).toContain("of at most 1 MiB unless the setting `max_body_bytes` says otherwise.");
  const answer = resolved(document, operationOf(document, "POST", "/v1/sessions").responses[413]!);
  expect(answer.description).toBe(
    "`payload_too_large`: the body is larger than 1048576 bytes, or than the setting `max_body_bytes` says instead.",
  );
});

test("the document names the default of a memory's type where there is one, and not where the type is a filter or a change", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const ofBody = (name: string) => String(document.components.schemas[name]?.properties["type"]?.["description"]);
  const filter = operationOf(document, "GET", "/v1/memory").parameters?.find(({ name }) => name === "type");
  expect(ofBody("NewMemory")).toEndWith("Default `general`.");
  expect(ofBody("MemoryChanges")).toEndWith("others are accepted.");
  expect([ofBody("MemorySearch"), filter?.description]).toEqual(["Only memories of this type.", "Only memories of this type."]);
});

test("the document says what a receiver of webhooks gets, and when it is tried again unless that is set", async () => {
  await using cairn = await startCairn();
  const tags = (await documentOf(cairn))["tags"] as { name: string; description: string }[];
  const description = tags.find(({ name }) => name === "Webhooks")?.description ?? "";
  const signed = Object.keys(signatureHeaders(["a secret of webhooks"], { id: "evt_1", timestampSeconds: 0, body: "" }));
  expect(signed.filter((name) => !description.includes(`\`${name}\``))).toEqual([]);
  const spoken = (text: string) => text.replaceAll(/(\d+)([a-z])/g, (_, count, unit) => `${count} ${unit === "m" ? "min" : unit}`);
  const waits = DEFAULTS["webhooks.retry_schedule"].split(",").map(spoken);
  expect(description).toContain(`within ${spoken(DEFAULTS["webhooks.timeout"])}, and what fails`);
  expect(description.replaceAll(/\s+/g, " ")).toContain(`after ${waits.slice(0, -1).join(", ")} and ${waits.at(-1)}.`);
});

test("the document says of every list what its ids are when a page is empty", async () => {
  await using cairn = await startCairn();
  const lists = Object.entries((await documentOf(cairn)).components.schemas).filter(
    ([, schema]) => "last_id" in ("properties" in schema ? schema.properties : {}),
  );
  expect(lists.length).toBeGreaterThan(5);
  for (const [list, { properties }] of lists) {
    const said = ["first_id", "last_id"].map((name) => /\bnull\b/i.test(String(properties[name]?.["description"])));
    expect([list, ...said]).toEqual([list, true, true]);
  }
});

test("a client sees no code but those of the document", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const error = document.components.schemas["Error"]?.properties["error"] as { properties: { code: { enum: string[] } } };
  const seen = Object.entries(ERRORS).map(([code, known]) => ("code" in known ? known.code : code));
  expect(error.properties.code.enum.toSorted()).toEqual([...new Set(seen)].sort());
});

test("every path parameter, every parameter and every body is described, and bodies are components", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const missing = operationsOf(document).flatMap(({ name, path, operation: { summary, parameters = [], requestBody, responses } }) => {
    const known = parameters.map((parameter) => resolved(document, parameter));
    const inPath = Array.from(path.matchAll(/\{(\w+)\}/g), (match) => match[1] as string);
    const bodies = [...(requestBody === undefined ? [] : [requestBody]), ...Object.values(responses)];
    return [
      ...(summary === "" ? [`${name}: a summary`] : []),
      ...inPath.filter((it) => !known.some((one) => one.name === it && one.in === "path" && one.required)).map((it) => `${name}: ${it}`),
      ...known.filter(({ description = "" }) => description === "").map((it) => `${name}: what ${it.name} is`),
      ...bodies
        .map((body) => contentOf(resolved(document, body)).schema)
        .filter(({ $ref = "" }) => !$ref.startsWith("#/components/schemas/"))
        .map(() => `${name}: a title for the schema of a body`),
    ];
  });
  expect(missing).toEqual([]);
});

/** They have a body, and change nothing. */
const READS = ["POST /v1/turns/search", "POST /v1/memory/search", "POST /v1/sessions/{session_id}/context", "POST /v1/documents/query"];

test("changes take an Idempotency-Key and say when they are replayed; reads do not", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const operations = operationsOf(document);
  const takes = ({ parameters = [] }: Operation) => parameters.some((it) => resolved(document, it).name === "Idempotency-Key");
  const says = ({ responses }: Operation) =>
    Object.values(responses).some((it) => "Idempotency-Replayed" in resolved(document, it).headers);
  const changing = operations
    .filter(({ method }) => method === "POST" || method === "PATCH")
    .map(({ name }) => name)
    .filter((name) => !READS.includes(name));
  expect(operations.filter(({ operation }) => takes(operation)).map(({ name }) => name)).toEqual(changing);
  expect(operations.filter(({ operation }) => says(operation)).map(({ name }) => name)).toEqual(changing);
});

test("examples of requests and answers have their schemas, and a request passes its endpoint's validator unchanged", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const check = checker(document);
  for (const { method, path, body, status } of endpointsOf(cairn.service)) {
    const name = `${method} ${path}`;
    const { requestBody, responses } = operationOf(document, method, path);
    const response = responses[status];
    const answer = response && contentOf(response);
    if (answer === undefined) throw new Error(`${name} has no answer of status ${status}`);
    expect({ name, problems: check(answer.schema, answer.example) }).toEqual({ name, problems: [] });
    expect({ name, takesBody: requestBody !== undefined }).toEqual({ name, takesBody: body !== null });
    if (requestBody !== undefined && body !== null) {
      const { schema, example = {} } = requestBody.content["application/json"];
      expect({ name, request: validator(body)(example) }).toEqual({ name, request: example });
      expect({ name, problems: check(schema, example) }).toEqual({ name, problems: [] });
    }
  }
});

test("every error that an endpoint can answer stands under its status, with an example of its own", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const check = checker(document);
  for (const { method, path, query, body, errors } of endpointsOf(cairn.service)) {
    const takesInput = body !== null || Object.keys(query.properties).length > 0;
    const ofInput: ErrorCode[] = [
      ...(takesInput ? ["invalid_request" as const] : []),
      ...(body === null ? [] : ["request_timeout" as const]),
    ];
    const documented = Object.entries(operationOf(document, method, path).responses)
      .filter(([status]) => Number(status) >= 400)
      .flatMap(([status, reference]) => {
        const { description, content } = resolved(document, reference);
        const { schema, examples = {} } = content["application/json"];
        return Object.entries(examples).map(([code, { value }]) => ({
          code,
          status: Number(status),
          type: value.error.type,
          described: description.includes(`\`${code}\`: `),
          problems: check(schema, value),
        }));
      });
    const expected = [...ofInput, ...COMMON, ...errors].map((code) => ({ code, ...ERRORS[code], described: true, problems: [] }));
    const byCode = (a: { code: string }, b: { code: string }) => (a.code < b.code ? -1 : 1);
    expect({ method, path, errors: documented.toSorted(byCode) }).toEqual({ method, path, errors: expected.toSorted(byCode) });
  }
});

test("the server takes each example, and answers as the document says", async () => {
  await using cairn = await startCairn({ environment: { region: "eu" } });
  for (const { method, template, path, body } of REQUESTS) {
    const ids = await oneOfEach(cairn);
    // Of all keys only one of a sign-in can end itself.
    const { key } = template === "/v1/api_keys/current" ? await cairn.ok(cairn.post("/v1/sign_in", {})) : cairn;
    const query = template === "/v1/audit/proof" ? `?trace=${ids["trace_id"]}` : "";
    const { status } = await cairn.request(method, path(ids) + query, { body: body(ids), key });
    expect({ method, template, success: status < 300 }).toEqual({ method, template, success: true });
  }
});

/** Without what is another one in every answer. */
function withoutIds(answer: unknown): unknown {
  const names = ["id", "session_id", "created_at"];
  return JSON.parse(JSON.stringify(answer), (name, value: unknown) => (names.includes(name) ? name : value));
}

test("what is found by the example of search and by that of the context is what the document says, to the score", async () => {
  await using cairn = await startCairn();
  const document = await documentOf(cairn);
  const requestOf = (path: string) => operationOf(document, "POST", path).requestBody?.content["application/json"].example;
  const { id } = await cairn.createSession(requestOf("/v1/sessions"));
  for (const path of ["/v1/sessions/{session_id}/state", "/v1/sessions/{session_id}/turns", "/v1/memory"]) {
    // The step has a memory too, which would be found beside the one of the document.
    const { expected_version: _, memories: __, ...body } = requestOf(path) ?? {};
    await cairn.ok(cairn.post(path.replace("{session_id}", id), "session_id" in body ? { ...body, session_id: id } : body));
  }
  for (const path of ["/v1/memory/search", "/v1/sessions/{session_id}/context"]) {
    const answer = await cairn.ok(cairn.post(path.replace("{session_id}", id), requestOf(path)));
    const { example } = operationOf(document, "POST", path).responses[200]!.content["application/json"];
    expect({ path, answer: withoutIds(answer) }).toEqual({ path, answer: withoutIds(example) });
  }
});

test("the details of every action's trace have the fields that the document names", async () => {
  using parts = backupParts();
  await using cairn = await startCairn(parts);
  const document = await documentOf(cairn);
  const text = String(document.components.schemas["Trace"]?.properties["details"]?.["description"]);
  // A database has backups of its own, which leave no traces here.
  const documented = Array.from(text.matchAll(/^- `([\w.]+)`: (.+)$/gm), ([, action = "", fields = ""]) => [
    action,
    fields.split(", ").sort(),
  ]).filter(([action = ""]) => !isOnPostgres || !action.includes("backup"));

  const { id } = await cairn.createSession({ ttl_seconds: 60, external_id: "thread-7" });
  await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { channel: "chat" }, ttl_seconds: 120 }));
  await cairn.setState(id, { step: 1 }, { reasoning: "because" });
  await cairn.rollback(id, 0, { reason: "a slip", turns: "hide" });
  await cairn.addTurn(id, "in", "out", { reasoning: "because" });
  const memory = await cairn.addMemory(id, "The customer prefers e-mail.");
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: true }));
  const ofOther = await cairn.ok(cairn.post("/v1/memory", { user_id: "cy", agent_id: "bot", content: "Prefers e-mail." }));
  for (const [found, of] of [
    [memory, { session_id: id }],
    [ofOther, { agent_id: "bot" }],
  ]) {
    const { retrieval_id } = await cairn.ok(cairn.post("/v1/memory/search", { query: "e-mail", ...of, threshold: 0 }));
    await cairn.ok(cairn.post(`/v1/retrievals/${retrieval_id}/feedback`, { useful: [found.id] }));
  }
  await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { tags: ["contact"] }));
  await cairn.ok(cairn.delete(`/v1/memory/${memory.id}?reason=wrong`));
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { turns: "all" }));
  await cairn.ok(cairn.delete(`/v1/sessions/${fork.id}?reason=done`));
  const { id: old } = await cairn.ok(cairn.post("/v1/memory", { user_id: "bo", content: "Likes tea." }));
  await cairn.ok(cairn.post("/v1/memory", { user_id: "bo", content: "Likes coffee.", supersedes: [old], ttl_seconds: 60 }));
  cairn.clock.advance({ seconds: 121 });
  await cairn.runTask("session expiry");
  await cairn.runTask("memory expiry");
  const key = await cairn.ok(cairn.post("/v1/api_keys", { user_id: "user-42", agent_id: "agent" }));
  await cairn.ok(cairn.post(`/v1/api_keys/${key.id}/roll`, {}));
  await cairn.ok(cairn.delete(`/v1/api_keys/${key.id}`));
  await cairn.ok(cairn.patch("/v1/settings", { region: "eu" }));
  const webhook = await cairn.ok(cairn.post("/v1/webhooks", { url: "https://hooks.example", events: ["trace.error"] }));
  await cairn.ok(cairn.post(`/v1/webhooks/${webhook.id}/rotate_secret`, {}));
  await cairn.ok(cairn.patch(`/v1/webhooks/${webhook.id}`, { description: "alerts", enabled: false }));
  await cairn.ok(cairn.delete(`/v1/webhooks/${webhook.id}`));
  await cairn.createSession({ user_id: "ada" });
  await cairn.ok(cairn.delete("/v1/users/ada"));
  if (!isOnPostgres) await leaveBackupTraces(cairn, parts);
  const traces = (await cairn.list("/v1/traces?limit=100")) as { action: string; details: object }[];
  // Some are left out where they say nothing.
  const fields = Array.from(
    Map.groupBy(traces, ({ action }) => action),
    ([action, all]) => [
      action,
      [...new Set(all.flatMap(({ details }) => Object.keys(details).filter((name) => name !== "erased")))].sort(),
    ],
  );
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(fields));
});

/** What a page has a browser fetch. */
function loadedBy(html: string): string[] {
  return Array.from(html.matchAll(/(?:src|href)\s*=\s*["']?([^"'\s>]+)/g), (match) => match[1] as string);
}

test("/docs is a page that loads its own files and nothing from elsewhere", async () => {
  await using cairn = await startCairn();
  const app = appOf(cairn);
  const page = await app.fetch("/docs");
  const html = await page.text();
  expect(html).not.toMatch(/https?:|\/\/\w/);
  expect(html).toContain('"url":"/openapi.json"');
  const files = await Promise.all(loadedBy(html).map(async (path) => ({ path, response: await app.fetch(path) })));
  expect(
    files.map(({ path, response: { status, headers } }) => ({
      file: path.replace(/\d+\.\d+\.\d+/, "1.0.0"),
      status,
      type: headers.get("content-type"),
      kept: headers.get("cache-control"),
    })),
  ).toEqual([
    {
      file: "/docs/swagger-ui-1.0.0.css",
      status: 200,
      type: "text/css; charset=utf-8",
      kept: "public, max-age=31536000, immutable",
    },
    { file: "/docs/icon-1.0.0.svg", status: 200, type: "image/svg+xml", kept: "public, max-age=31536000, immutable" },
    {
      file: "/docs/swagger-ui-bundle-1.0.0.js",
      status: 200,
      type: "text/javascript; charset=utf-8",
      kept: "public, max-age=31536000, immutable",
    },
  ]);
  const [style, icon, script] = await Promise.all(files.map(({ response }) => response.text()));
  expect(icon).toStartWith("<svg");
  expect(style).toContain(".swagger-ui");
  expect(style).not.toMatch(/@import|url\(["']?(https?:)?\/\//);
  expect(script).toContain("SwaggerUIBundle");
});

test("the page may run its own scripts and styles, and reach this server alone", async () => {
  await using cairn = await startCairn();
  const page = await appOf(cairn).fetch("/docs");
  const html = await page.text();
  const hash = (tag: string) => {
    const [, text = ""] = new RegExp(`<${tag}>([^<]*)</${tag}>`).exec(html) ?? [];
    expect(text).not.toBe("");
    return `'sha256-${new Bun.CryptoHasher("sha256").update(text).digest("base64")}'`;
  };
  expect(page.headers.get("content-security-policy")?.split("; ")).toEqual([
    "default-src 'none'",
    `script-src 'self' ${hash("script")}`,
    `style-src 'self' ${hash("style")}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]);
});

test("a page of the docs that could not be made is made again for the next request", async () => {
  const page = { status: 200, body: "the docs", headers: {} };
  let renderings = 0;
  const render = () => (++renderings === 1 ? Promise.reject(new Error("out of memory")) : Promise.resolve(page));
  const open = docsPages([], "1.0.0", render as Parameters<typeof docsPages>[2])["/docs"] ?? (() => undefined);
  expect(await Promise.resolve(open()).catch((error: Error) => error.message)).toBe("out of memory");
  expect([await open(), await open()]).toEqual([page, page] as never);
  expect(renderings).toBe(2);
});

test("the docs need no key, cost nothing of anybody's rate, and carry the headers of every response", async () => {
  await using cairn = await startCairn();
  const app = appOf(cairn);
  const page = await app.fetch("/docs");
  for (const path of ["/docs", "/openapi.json", ...loadedBy(await page.text())]) {
    const { status, headers } = await app.fetch(path, { "x-request-id": "mine" });
    expect({
      path,
      status,
      id: headers.get("x-request-id"),
      limit: headers.get("x-ratelimit-limit"),
      remaining: headers.get("x-ratelimit-remaining"),
      reset: headers.get("x-ratelimit-reset"),
      sniffing: headers.get("x-content-type-options"),
    }).toEqual({
      path,
      status: 200,
      id: "mine",
      limit: "100",
      remaining: "200",
      reset: String(Math.ceil(cairn.clock.now() / 1000)),
      sniffing: "nosniff",
    });
    const elsewhere = await app.fetch(path, { host: "docs.example" });
    expect({ path, status: elsewhere.status, body: await elsewhere.json() }).toMatchObject({
      path,
      status: 403,
      body: { error: { code: "permission_denied", param: "Host" } },
    });
  }
});

/** Building the executable takes minutes on a machine that is busy. */
const BUILD_MS = 600_000;

test("the executable has the docs inside, as they are from source", executableHasDocs, BUILD_MS);

async function executableHasDocs(): Promise<void> {
  await using cairn = await startCairn();
  const app = appOf(cairn);
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: `${directory.path}/data`, directory: directory.path });
  const html = await (await app.fetch("/docs")).text();
  for (const path of ["/docs", ...loadedBy(html)]) {
    const [fromSource, fromExecutable] = await Promise.all([app.fetch(path), server.get(path)]);
    expect({ path, type: fromExecutable.headers.get("content-type"), same: fromExecutable.text === (await fromSource.text()) }).toEqual({
      path,
      type: fromSource.headers.get("content-type"),
      same: true,
    });
  }
  const { paths, components } = await documentOf(cairn);
  expect(withTitledComponents(await server.ok(server.get("/openapi.json")))).toMatchObject({
    paths: { "/v1/sessions": paths["/v1/sessions"] },
    components,
  });
}

test("TypeBox schemas become OpenAPI 3.0", () => {
  const Named = Type.Object({ a: Type.String() }, { title: "Named", description: "A thing." });
  const cases: [name: string, schema: Parameters<typeof openApiSchema>[0], expected: unknown][] = [
    ["a literal", Type.Literal("list"), { type: "string", enum: ["list"] }],
    ["one of", OneOf(["a", "b"], { default: "a" }), { type: "string", enum: ["a", "b"], default: "a" }],
    [
      "one of, or null",
      Type.Union([Type.Literal("a"), Type.Literal("b"), Type.Null()]),
      { type: "string", enum: ["a", "b", null], nullable: true },
    ],
    ["or null", Type.Union([Type.Integer(), Type.Null()]), { anyOf: [{ type: "integer" }], nullable: true }],
    ["an example", Type.Integer({ examples: [0, 1] }), { type: "integer", example: 0 }],
    [
      "a limit in bytes",
      UserObject({ maxBytes: 2048, description: "Yours." }),
      { type: "object", additionalProperties: true, description: "Yours. At most 2 KiB as JSON." },
    ],
    ["a field with a title", Type.Array(Named), { type: "array", items: { $ref: "#/components/schemas/Named" } }],
    [
      "fields that may be left out",
      Type.Object({ a: Type.Boolean(), b: Type.Optional(Type.Boolean()) }),
      { type: "object", required: ["a"], properties: { a: { type: "boolean" }, b: { type: "boolean" } } },
    ],
  ];
  const components: SchemaComponents = new Map();
  for (const [name, schema, expected] of cases) {
    // As it is sent: what only TypeBox sees is not in the text.
    expect({ name, schema: JSON.parse(JSON.stringify(openApiSchema(schema, components))) as unknown }).toEqual({ name, schema: expected });
  }
  expect(Object.fromEntries(components)).toEqual({
    Named: { type: "object", description: "A thing.", required: ["a"], properties: { a: { type: "string" } } },
  });
  expect(() => openApiSchema(Type.Object({}, { title: "Named" }), components)).toThrow("two schemas have the title Named");
});
