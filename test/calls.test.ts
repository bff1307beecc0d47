/**
 * Operations that are called without HTTP: the same answers, errors and promises as over HTTP.
 *
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { endpointsOf } from "../src/server/app.ts";
import type { ApiCaller } from "../src/http/endpoint.ts";
import { errorJson, statusOf } from "../src/http/errors.ts";
import { operationsOf, type Arguments, type Operation } from "../src/http/operation.ts";
import { encodedPart } from "../src/http/path.ts";
import { ApiError } from "../src/lib/errors.ts";
import type { KeyId } from "../src/lib/ids.ts";
import { nested } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { EVERYBODY } from "../src/storage/owner.ts";

let cairn: Cairn;
let session: string;
let operations: Map<string, Operation>;
let caller: ApiCaller;

beforeAll(async () => {
  cairn = await startCairn();
  operations = new Map(operationsOf(endpointsOf(cairn.service), cairn.service).map((operation) => [operation.name, operation]));
  const [key] = await cairn.list("/v1/api_keys");
  caller = {
    actor: cairn.key.slice(0, 8),
    keyId: key.id as KeyId,
    limitsId: key.id as KeyId,
    owner: EVERYBODY,
    scopes: key.scopes,
    retentionDays: 365,
    requestId: "req_call",
    startedAt: 0,
  };
  session = (await cairn.createSession({ user_id: "user", initial_state: { step: 0 } })).id;
  await cairn.addTurn(session);
  await cairn.addMemory(session, "Prefers tea to coffee.");
});
afterAll(() => cairn[Symbol.asyncDispose]());

const operation = (name: string): Operation => operations.get(name) ?? expect.unreachable(`no operation ${name}`);

/** What HTTP would send of a call's outcome. */
async function outcomeOf(name: string, given: Arguments, scopes = caller.scopes) {
  try {
    const { status, body } = await operation(name).call({ ...caller, scopes }, given);
    return { status, body: JSON.parse(body) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { status: statusOf(error), body: JSON.parse(errorJson(error, caller.requestId)) };
  }
}

test("every operation of the OpenAPI document can be called, under the same name and with schemas for what goes in and out", async () => {
  const { paths } = await cairn.ok(cairn.get("/openapi.json"));
  const documented = Object.entries<Record<string, any>>(paths)
    .filter(([path]) => path.startsWith("/v1/"))
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, document]) => ({ path, method: method.toUpperCase(), document })));
  const described = documented.map(({ path, method, document }) => {
    const namesIn = (place: string) =>
      document.parameters.filter((parameter: any) => parameter.in === place).map((parameter: any) => parameter.name);
    return {
      name: document.operationId,
      route: `${method} ${path}`,
      scope: document["x-scope"],
      path: namesIn("path"),
      query: namesIn("query"),
      takesBody: document.requestBody !== undefined,
    };
  });
  const listed = Array.from(operations.values(), ({ name, endpoint, input, output }) => {
    expect(output).toBe(endpoint.response);
    return {
      name,
      route: `${endpoint.method} ${endpoint.path}`,
      scope: endpoint.scope,
      path: Object.keys(input.path.properties),
      query: Object.keys(input.query.properties),
      takesBody: input.body !== null,
    };
  });
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
  expect(described.length).toBeGreaterThan(30);
  expect(listed.sort(byName)).toEqual(described.sort(byName));
});

const ofSession = (more: Arguments = {}): Arguments => ({ path: { session_id: session }, ...more });

/** Each is called with these arguments, and asked for with the same ones. */
const SAME: Record<string, [operation: string, given: () => Arguments]> = {
  "a record": ["getSession", () => ofSession()],
  "a list with a filter and a limit": ["listSessions", () => ({ query: { user_id: "user", limit: 5 } })],
  "a number in the path": ["getVersion", () => ({ path: { session_id: session, version: 0 } })],
  "a read with a body": ["searchMemories", () => ({ body: { query: "tea or coffee?", threshold: 0 } })],
  "a record that is not there": ["getSession", () => ({ path: { session_id: "sess_000000000000" } })],
  "an id that is none": ["getSession", () => ({ path: { session_id: "\ud800" } })],
  "a limit beyond the largest": ["listSessions", () => ({ query: { limit: 1_000 } })],
  "a filter of another list": ["listSessions", () => ({ query: { session_id: session } })],
  "a filter that is no time": ["listSessions", () => ({ query: { created_after: "yesterday" } })],
  "no body": ["createSession", () => ({})],
  "a body that is an array": ["createSession", () => ({ body: [] })],
  "a field of the wrong type": ["createSession", () => ({ body: { agent_id: 7 } })],
  "a body that is too large": ["createSession", () => ({ body: { agent_id: "a".repeat(2_000_000) } })],
  "a body that nests too deep": ["updateState", () => ofSession({ body: { state: nested(500) } })],
  "a version that is not the expected one": ["updateState", () => ofSession({ body: { state: {}, expected_version: 9 } })],
};

for (const [name, [call, given]] of Object.entries(SAME)) {
  test(`a call is answered as its request is: ${name}`, async () => {
    const { path = {}, query = {}, body } = given() as Record<"path" | "query", Record<string, unknown> | undefined> & { body?: unknown };
    const { endpoint } = operation(call);
    const target = endpoint.path.replaceAll(/\{(\w+)\}/g, (_, parameter: string) => encodedPart(String(path[parameter])));
    const search = new URLSearchParams(query as Record<string, string>);
    const headers = { "X-Request-Id": caller.requestId };
    const sent = await cairn.request(endpoint.method, `${target}?${search.toString()}`, { body, headers });
    expect(await outcomeOf(call, given())).toEqual({ status: sent.status, body: sent.body });
  });
}

test("a call without the scope is refused as its request is, and changes nothing", async () => {
  const reader = await cairn.newKey({ scopes: ["read"] });
  const body = { agent_id: "nobody" };
  const sent = await cairn.post("/v1/sessions", body, { key: reader, headers: { "X-Request-Id": caller.requestId } });
  expect(sent.status).toBe(403);
  expect(await outcomeOf("createSession", { body }, ["read"])).toEqual({ status: sent.status, body: sent.body });
  expect(await cairn.list("/v1/sessions?agent_id=nobody")).toEqual([]);
});

test("a call with an idempotency key is done once, also when the same request comes over HTTP", async () => {
  const body = { agent_id: "once" };
  const retry = { idempotencyKey: "call-1", presentedKey: cairn.key };
  const create = operation("createSession");
  const first = await create.call(caller, { body }, retry);
  expect(first).toMatchObject({ status: 201, replayed: false });
  expect(await create.call(caller, { body }, retry)).toMatchObject({ status: 201, replayed: true, body: first.body });
  const sent = await cairn.post("/v1/sessions", body, { headers: { "Idempotency-Key": "call-1" } });
  expect({ status: sent.status, body: sent.body }).toEqual({ status: 201, body: JSON.parse(first.body) });
  expect(sent.headers.get("Idempotency-Replayed")).toBe("true");
  expect(await cairn.list("/v1/sessions?agent_id=once")).toHaveLength(1);

  const other = create.call(caller, { body: { agent_id: "other" } }, retry);
  await expect(other).rejects.toMatchObject({ code: "invalid_request", detail: { param: "Idempotency-Key" } });
  const odd = create.call(caller, { body }, { ...retry, idempotencyKey: "é" });
  await expect(odd).rejects.toMatchObject({ code: "invalid_request", detail: { param: "Idempotency-Key" } });
});

test("the idempotency key of a call belongs to its path", async () => {
  const retry = { idempotencyKey: "call-2", presentedKey: cairn.key };
  const other = await cairn.createSession();
  const body = { state: { step: 1 } };
  await operation("updateState").call(caller, { path: { session_id: session }, body }, retry);
  const elsewhere = operation("updateState").call(caller, { path: { session_id: other.id }, body }, retry);
  await expect(elsewhere).rejects.toMatchObject({ code: "invalid_request", detail: { param: "Idempotency-Key" } });
  const sent = await cairn.post(`/v1/sessions/${session}/state`, body, { headers: { "Idempotency-Key": "call-2" } });
  expect(sent.headers.get("Idempotency-Replayed")).toBe("true");
});

test("a fault of ours is an ApiError for a call too, with its cause for the operator", async () => {
  const broken = operation("getSession");
  const cause = new Error("a broken assumption");
  const [faulty] = operationsOf([{ ...broken.endpoint, run: () => Promise.reject(cause) }], cairn.service);
  await expect(faulty?.call(caller, { path: { session_id: session } })).rejects.toMatchObject({
    code: "internal_error",
    detail: { cause },
  });
});
