/**
 * The TypeScript client against a Cairn that listens, and against servers that answer late, wrongly or not at all.
 *
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { clientTypes } from "../scripts/client-types.ts";
import { Cairn, CairnError, verifyWebhook, type CairnOptions, type JsonObject } from "../src/client/index.ts";
import type { Runtime } from "../src/client/http.ts";
import { signatureHeaders } from "../src/webhooks/signature.ts";
import { DOCUMENT } from "./support/documented.ts";
import { startServer, type Server } from "./support/server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer();
});

afterAll(() => server[Symbol.asyncDispose]());

const clientOf = (options: Partial<CairnOptions> = {}, runtime?: Runtime) =>
  new Cairn({ apiKey: server.cairn.key, baseUrl: `http://127.0.0.1:${server.port}`, ...options }, runtime);

/** What waits are asked for, without any. */
function noWaiting(random = 1): Runtime & { waits: number[] } {
  const waits: number[] = [];
  return { waits, random: () => random, now: () => Date.parse("2026-05-07T08:00:00Z"), wait: async (ms) => void waits.push(ms) };
}

const failure = (call: Promise<unknown>) =>
  call.then(
    (answer) => ({ answer }),
    (error: CairnError) => error,
  );

const json = (body: unknown, status = 200, headers: Record<string, string> = {}) => Response.json(body, { status, headers });
const refused = (status: number, code: string, headers: Record<string, string> = {}) =>
  json({ error: { code, message: `It is ${code}.`, type: "api_error", request_id: "req_1" } }, status, {
    "X-Request-Id": "req_1",
    ...headers,
  });

/** A client whose requests get these answers one after another, and the requests. */
function answered(answers: readonly (Response | Error)[], options: Partial<CairnOptions> = {}, random = 1) {
  const requests: Request[] = [];
  const runtime = noWaiting(random);
  const fetch = async (request: Request) => {
    requests.push(request);
    const answer = answers[requests.length - 1] ?? answers.at(-1);
    if (answer === undefined || answer instanceof Error) throw answer ?? new Error("no answer");
    return answer.clone() as Response;
  };
  return { cairn: new Cairn({ apiKey: "crn_test", ...options, fetch }, runtime), requests, waits: runtime.waits };
}

test("src/client/types.ts is what the OpenAPI document says: scripts/test --fix writes it", async () => {
  expect(readFileSync(join(import.meta.dir, "../src/client/types.ts"), "utf8")).toBe(await clientTypes());
});

test("there is a method for every operation of the API", async () => {
  const asked = new Set<string>();
  const cairn = new Cairn({
    apiKey: "crn_test",
    fetch: async ({ method, url }) => {
      asked.add(`${method} ${new URL(url).pathname}`);
      return new URL(url).pathname === "/v1/events" ? refused(401, "authentication_failed") : json({ data: [{ count: 0 }] });
    },
  });
  const { sessions, turns, memories, traces, users, agents, keys, webhooks, settings, documents, backups } = cairn;
  for (const group of [sessions, turns, memories, traces, users, agents, keys, webhooks, settings]) {
    // A text does for an id, and for all else nothing is refused here.
    for (const method of Object.values(group) as ((...args: string[]) => Promise<unknown>)[]) await method("x", "x", "x");
  }
  await Promise.all([cairn.stats(), cairn.health(), documents.batch([]), documents.query([])]);
  const { download, ...ofBackups } = backups;
  for (const method of Object.values(ofBackups) as ((...args: string[]) => Promise<unknown>)[]) await method("x", "x", "x");
  for await (const _ of download("x"));
  await failure(cairn.events().next());
  // Probes are for what supervises the server; SDKs of StateBase have paths of their own.
  const operations = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => !path.startsWith("/health/") && !tags.includes("StateBase SDKs"))
      .map(([method]) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "x")}`),
  );
  expect([...asked].toSorted()).toEqual(operations.toSorted());
});

test("a conversation: session, state, turn, memory, context, rollback, fork, versions, timeline", async () => {
  const cairn = clientOf();
  const session = await cairn.sessions.create({ agent_id: "support-bot", user_id: "user-42", initial_state: { step: 0 } });
  await cairn.sessions.setState(session.id, { state: { step: 1 } });
  expect(await cairn.sessions.patchState(session.id, { state: { order: "A-17" } })).toMatchObject({
    version: 2,
    state: { step: 1, order: "A-17" },
  });
  const turn = await cairn.turns.add(session.id, {
    input: { type: "text", content: "Where is my order?" },
    output: { type: "text", content: "It arrives tomorrow." },
  });
  expect(await cairn.turns.get(session.id, turn.id)).toEqual(turn);
  const memory = await cairn.memories.add({
    session_id: session.id,
    content: "The customer prefers e-mail to phone calls.",
    tags: ["contact, by"],
  });
  const context = await cairn.sessions.context(session.id, { query: "How does the customer prefer to be contacted?" });
  expect(context).toMatchObject({ state: { step: 1, order: "A-17" }, memories: [{ id: memory.id }], recent_turns: [{}] });
  expect((await cairn.memories.search({ query: "e-mail or phone?", user_id: "user-42", threshold: 0.3 })).data).toMatchObject([
    { id: memory.id },
  ]);
  // A tag with a comma is one tag.
  expect((await cairn.memories.list({ session_id: session.id, tags: ["contact, by"] })).data).toEqual([memory]);
  expect((await cairn.memories.list({ filter: { id: "none" } as never }).catch((error) => error)).param).toBe("filter.id");
  const filter = { session_id: session.id, tags: { $contains: "contact, by" } };
  expect((await cairn.memories.list({ filter, limit: 1 })).data).toEqual([memory]);
  expect(await cairn.sessions.rollback(session.id, { version: 1 })).toMatchObject({ state: { step: 1 }, state_version: 3 });
  const fork = await cairn.sessions.fork(session.id, { version: 2 });
  expect(await cairn.sessions.state(fork.id)).toMatchObject({ state: { order: "A-17" } });
  expect((await cairn.sessions.versions(session.id)).data.map(({ version }) => version)).toEqual([3, 2, 1, 0]);
  expect((await cairn.sessions.version(session.id, 2)).state).toEqual({ step: 1, order: "A-17" });
  expect((await cairn.sessions.timeline(session.id, { kinds: "turn" })).data).toHaveLength(1);
  expect(await cairn.memories.update(memory.id, { metadata: { seen: true } })).toMatchObject({ metadata: { seen: true } });
  expect(await cairn.memories.delete(memory.id, { reason: "asked to" })).toEqual({ object: "memory", id: memory.id, deleted: true });
  expect(await cairn.sessions.delete(fork.id)).toMatchObject({ deleted: true });
});

test("what an operator does: keys, webhooks, settings, users, statistics, health", async () => {
  const cairn = clientOf();
  const key = await cairn.keys.create({ name: "bound", user_id: "operated" });
  const bound = clientOf({ apiKey: key.key ?? "" });
  const session = await bound.sessions.create({ agent_id: "a" });
  expect(session.user_id).toBe("operated");
  expect((await bound.keys.current()).id).toBe(key.id);
  expect(await cairn.users.get("operated")).toMatchObject({ id: "operated" });
  expect(await cairn.users.erase("operated")).toMatchObject({ user_id: "operated", sessions: 1 });
  expect(await cairn.users.erasure("operated")).toMatchObject({ status: "done" });
  expect(await failure(bound.sessions.get(session.id))).toMatchObject({ code: "session_not_found", status: 404 });
  const rolled = await cairn.keys.roll(key.id, { overlap_seconds: 0 });
  expect(await cairn.keys.revoke(rolled.id)).toMatchObject({ deleted: true });
  const webhook = await cairn.webhooks.create({ url: "https://hooks.example/1", events: ["turn.added"], enabled: false });
  expect((await cairn.webhooks.rotateSecret(webhook.id)).secret).toMatch(/^whsec_/);
  expect((await cairn.webhooks.deliveries(webhook.id)).data).toEqual([]);
  await cairn.webhooks.delete(webhook.id);
  expect((await cairn.settings.get()).max_body_bytes.value).toBe(1_048_576);
  expect(await cairn.stats()).toMatchObject({ object: "stats" });
  expect(await cairn.health()).toMatchObject({ status: "ready", max_body_bytes: 1_048_576 });
});

test("a filter, a condition or a binding that is undefined or null is refused by its name, and nothing is sent", async () => {
  const page = { object: "list", data: [], has_more: false, next_cursor: null };
  const { cairn, requests } = answered([json({ ...page, data: [page], last_id: null })]);
  const [id, namespace] = ["sess_000000000000", ["orders"]];
  const wrong: Record<string, (given: any) => unknown> = {
    user_id: (given) => cairn.sessions.list(given),
    external_id: (given) => cairn.sessions.list(given),
    session_id: (given) => cairn.memories.list(given),
    tags: (given) => cairn.memories.search({ query: "tea", ...given }),
    "user_id of a search": (given) => cairn.memories.search({ query: "tea", ...given }),
    action: (given) => cairn.traces.list(given),
    "user_id of events": (given) => cairn.events(given),
    kinds: (given) => cairn.sessions.timeline(id, given),
    operation: (given) => cairn.sessions.retrievals(id, given),
    kind: (given) => cairn.keys.list(given),
    status: (given) => cairn.webhooks.deliveries("whk_000000000000", given),
    "user_id of a key": (given) => cairn.keys.create(given),
    expires_at: (given) => cairn.keys.create(given),
    "agent_id of documents": (given) => cairn.documents.of({ user_id: "ada", ...given }),
    before: (given) => cairn.documents.list(namespace, given),
    filter: (given) => cairn.documents.search(namespace, "tea", given),
    prefix: (given) => cairn.documents.namespaces(given),
    key: (given) => cairn.documents.query([{ op: "get", namespace, ...given }]),
    "key of a change": (given) => cairn.documents.batch([{ op: "put", namespace, value: {}, ...given }]),
    if_version: (given) => cairn.documents.put(namespace, "A-17", {}, given),
    "session_id of a document": (given) => cairn.documents.append(namespace, {}, given),
    expected_version: (given) => cairn.sessions.setState(id, { state: {}, ...given }),
    "expected_version of changes": (given) => cairn.sessions.patchState(id, { state: {}, ...given }),
  };
  for (const [about, call] of Object.entries(wrong)) {
    const [name = ""] = about.split(" ");
    for (const value of [undefined, null])
      expect([about, await thrown(async () => call({ [name]: value }))]).toEqual([
        about,
        new TypeError(`${name} must not be ${value}, which would be none at all: leave it out where that is meant.`),
      ]);
  }
  expect(requests).toEqual([]);
  // These have a default, or say where a page begins.
  const open = (...names: string[]): any => Object.fromEntries(names.map((name) => [name, undefined]));
  await cairn.sessions.list(open("limit", "starting_after"));
  await cairn.memories.search({ query: "tea", ...open("limit", "threshold", "explain") });
  await cairn.documents.of({}).list(namespace, open("order", "cursor", "offset", "deep"));
  expect(requests).toHaveLength(3);
});

const thrown = (call: () => Promise<unknown>) =>
  call().then(
    () => "nothing",
    (error: unknown) => error,
  );

test("documents: puts, appends, versions, pops, batches and queries whose results have the type of each operation", async () => {
  const documents = clientOf().documents.of({ user_id: "documents" });
  await documents.put(["orders"], "A-17", { total: 12.5 });
  expect(await failure(documents.put(["orders"], "A-17", { total: 1 }, { if_version: 0 }))).toMatchObject({
    code: "version_conflict",
    status: 409,
    param: "operations.0.if_version",
  });
  expect((await documents.get(["orders"], "A-17"))?.value).toEqual({ total: 12.5 });
  expect(await documents.get(["orders"], "B")).toBeNull();
  expect(await clientOf().documents.get(["orders"], "A-17")).toBeNull();
  for (let i = 0; i < 5; i++) await documents.append(["log"], { i });
  const [put, popped, deleted] = await documents.batch([
    { op: "put", namespace: ["orders"], key: "C", value: {} },
    { op: "pop", namespace: ["log"] },
    { op: "delete", namespace: ["orders"], key: "C" },
  ]);
  expect([put.version, popped?.value, deleted.deleted]).toEqual([1, { i: 4 }, 1]);
  const [count, page] = await documents.query([
    { op: "count", namespace: ["log"] },
    { op: "list", namespace: ["log"], limit: 2, order: "desc" },
  ]);
  expect([count.count, page.data.map(({ value }) => value), page.has_more]).toEqual([4, [{ i: 3 }, { i: 2 }], true]);
  expect(await values(documents.list(["log"], { limit: 2, offset: 1 }))).toEqual([{ i: 1 }, { i: 2 }, { i: 3 }]);
  await documents.put(["notes"], "a", { text: "The invoice goes to the office in Lisbon." }, { index: ["text"] });
  expect((await documents.search(["notes"], "Where does the invoice go?", { limit: 1 })).data).toMatchObject([{ key: "a" }]);
  await documents.deleteAll(["notes"]);
  expect(await items(documents.namespaces())).toEqual([["log"], ["orders"]]);
  expect((await documents.pop(["log"], { order: "asc" }))?.value).toEqual({ i: 0 });
  expect([await documents.deleteAll(["log"]), await documents.delete(["orders"], "A-17")]).toEqual([{ deleted: 3 }, { deleted: 1 }]);
  expect(await documents.count(["log"])).toBe(0);
});

test("documents: a put keeps what is there, a touch moves an end, and reads give heads or parts, each with its type", async () => {
  const documents = clientOf().documents.of({ user_id: "parts" });
  await documents.put(["orders"], "A-17", { total: 12.5, lines: [{ article: "tea" }] }, { ttl_seconds: 60 });
  expect(await documents.put(["orders"], "A-17", {}, { if_exists: "keep" })).toEqual({ key: "A-17", version: 1, kept: true });
  const condition = { if_exists: undefined } as unknown as { if_exists: "keep" };
  expect(await thrown(() => documents.put(["orders"], "A-17", {}, condition))).toBeInstanceOf(TypeError);
  const touched = await documents.touch(["orders"], "A-17", { ttl_seconds: 3_600.5 });
  const head = await documents.get(["orders"], "A-17", { values: false });
  expect([touched?.version, touched?.expires_at]).toEqual([head?.version, head?.expires_at ?? null]);
  expect(await documents.touch(["orders"], "B")).toBeNull();
  const heads: { key: string; value?: never }[] = await items(documents.list(["orders"], { values: false }));
  expect(heads).toEqual([head as never]);
  expect(await values(documents.list(["orders"], { fields: ["total"] }))).toEqual([{ total: 12.5 }]);
  const [part, page] = await documents.query([
    { op: "get", namespace: ["orders"], key: "A-17", fields: ["lines"] },
    { op: "list", namespace: ["orders"], values: false },
  ]);
  expect([part?.value, page.data.map(({ updated_at }) => updated_at)]).toEqual([{ lines: [{ article: "tea" }] }, [head?.updated_at ?? ""]]);
});

async function items<Item>(list: AsyncIterable<Item>): Promise<Item[]> {
  return Array.fromAsync(list);
}
const values = async (list: AsyncIterable<{ value: JsonObject }>) => (await items(list)).map(({ value }) => value);

test("a list gives one page when it is awaited, and every record once when it is iterated", async () => {
  const cairn = clientOf();
  const made: string[] = [];
  for (let i = 0; i < 7; i++) made.unshift((await cairn.sessions.create({ agent_id: "listed" })).id);
  const page = await cairn.sessions.list({ agent_id: "listed", limit: 3 });
  expect(page).toMatchObject({ object: "list", has_more: true, first_id: made[0]!, last_id: made[2]! });
  expect(page.data.map(({ id }) => id)).toEqual(made.slice(0, 3));
  expect((await items(page)).map(({ id }) => id)).toEqual(made);
  expect((await items(cairn.sessions.list({ agent_id: "listed", limit: 3 }))).map(({ id }) => id)).toEqual(made);
  expect((await items(cairn.sessions.list({ agent_id: "listed" }))).map(({ id }) => id)).toEqual(made);
  expect(await items(cairn.sessions.list({ agent_id: "nobody" }))).toEqual([]);
});

test("a loop over a list that is left asks for no further page, and one that fails says why", async () => {
  const { cairn, requests } = answered([json({ object: "list", data: [{ id: "a" }], has_more: true, first_id: "a", last_id: "a" })]);
  for await (const { id } of cairn.sessions.list()) if (id === "a") break;
  expect(requests).toHaveLength(1);
  const failing = answered([
    json({ object: "list", data: [{ id: "a" }], has_more: true, first_id: "a", last_id: "a" }),
    refused(403, "permission_denied"),
  ]);
  expect(await failure(items(failing.cairn.sessions.list()))).toMatchObject({ code: "permission_denied" });
  expect(failing.requests[1]?.url).toEndWith("?limit=100&starting_after=a");
});

test("an error has the code, status, field and request of the API", async () => {
  const error = await failure(clientOf().sessions.create({ agent_id: 7 as never }));
  expect(error).toBeInstanceOf(CairnError);
  expect(error).toMatchObject({
    name: "CairnError",
    code: "invalid_request",
    status: 400,
    param: "agent_id",
    requestId: expect.any(String),
  });
  expect(await failure(clientOf({ apiKey: "crn_wrong" }).sessions.list())).toMatchObject({ code: "authentication_failed", status: 401 });
});

test("a body of 64 KiB or more is sent in gzip, and is what comes out of it", async () => {
  const sent: Request[] = [];
  const cairn = clientOf({
    fetch: (request) => {
      sent.push(request.clone() as Request);
      return fetch(request);
    },
  });
  const { id } = await cairn.sessions.create({ agent_id: "packed" });
  const around = JSON.stringify({ state: { text: "" } }).length;
  const random = Buffer.from(crypto.getRandomValues(new Uint8Array(100_000))).toString("base64");
  const texts = { "one less": "x".repeat(65_535 - around), "64 KiB": "x".repeat(65_536 - around), "900 kB": "ü😀".repeat(150_000), random };
  for (const text of Object.values(texts)) {
    await cairn.sessions.setState(id, { state: { text } });
    expect((await cairn.sessions.state(id)).state).toEqual({ text });
  }
  const changes = sent.filter(({ url }) => url.endsWith("/state")).filter(({ method }) => method !== "GET");
  expect(changes.map(({ headers }) => headers.get("content-encoding"))).toEqual([null, "gzip", "gzip", "gzip"]);
  const lengths = await Promise.all(changes.map(async (request) => (await request.arrayBuffer()).byteLength));
  expect(lengths[2]).toBeLessThan(20_000);
});

test("without CompressionStream, as in React Native, a body is sent as it is", async () => {
  const { cairn, requests } = answered([json({})]);
  const { CompressionStream } = globalThis;
  Reflect.deleteProperty(globalThis, "CompressionStream");
  try {
    await cairn.sessions.setState("sess_1", { state: { text: "x".repeat(100_000) } });
  } finally {
    globalThis.CompressionStream = CompressionStream;
  }
  expect(requests[0]?.headers.get("content-encoding")).toBeNull();
  expect(await requests[0]?.json()).toEqual({ state: { text: "x".repeat(100_000) } });
});

test("what may help is sent again under the same Idempotency-Key: no answer, 408, 429, 502, 503 and 504", async () => {
  for (const first of [new TypeError("reset"), ...[408, 429, 502, 503, 504].map((status) => refused(status, "service_unavailable"))]) {
    const { cairn, requests, waits } = answered([first, first, json({ id: "sess_1" })]);
    expect(await cairn.sessions.create({ agent_id: "a" })).toMatchObject({ id: "sess_1" });
    const keys = requests.map(({ headers }) => headers.get("idempotency-key"));
    expect(keys).toEqual([keys[0]!, keys[0]!, keys[0]!]);
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(waits).toEqual([250, 500]);
    expect(await Promise.all(requests.map((request) => request.text()))).toEqual(Array(3).fill('{"agent_id":"a"}'));
  }
  for (const status of [400, 401, 403, 404, 409, 413, 500]) {
    const { cairn, requests } = answered([refused(status, "invalid_request")]);
    expect(await failure(cairn.sessions.create({ agent_id: "a" }))).toMatchObject({ status });
    expect(requests).toHaveLength(1);
  }
});

test("each call has a key of its own unless it is given one", async () => {
  const { cairn, requests } = answered([json({})]);
  await cairn.sessions.create({ agent_id: "a" });
  await cairn.sessions.create({ agent_id: "a" });
  await cairn.sessions.create({ agent_id: "a" }, { idempotencyKey: "order 17" });
  const keys = requests.map(({ headers }) => headers.get("idempotency-key"));
  expect(new Set(keys).size).toBe(3);
  expect(keys[2]).toBe("order 17");
});

test("retries end: as many as were asked for, then the last error", async () => {
  for (const retries of [0, 1, 5]) {
    const { cairn, requests, waits } = answered([refused(503, "service_unavailable")], { retries }, 0.5);
    expect(await failure(cairn.memories.get("mem_1"))).toMatchObject({ code: "service_unavailable", requestId: "req_1" });
    expect(requests).toHaveLength(retries + 1);
    expect(waits).toEqual([125, 250, 500, 1000, 2000].slice(0, retries));
  }
});

test("a wait is at least what Retry-After asks for, in seconds or as a date; over a minute the caller is told instead", async () => {
  const ask = async (retryAfter: string) => {
    const { cairn, waits } = answered([refused(429, "rate_limit_exceeded", { "Retry-After": retryAfter }), json({})], {}, 0);
    return [await failure(cairn.sessions.get("sess_1")), waits];
  };
  expect(await ask("7")).toEqual([{ answer: {} }, [7_000]]);
  expect(await ask("Thu, 07 May 2026 08:00:03 GMT")).toEqual([{ answer: {} }, [3_000]]);
  expect(await ask("Thu, 07 May 2026 07:00:00 GMT")).toEqual([{ answer: {} }, [0]]);
  expect(await ask("soon")).toEqual([{ answer: {} }, [0]]);
  expect(await ask("61")).toEqual([expect.objectContaining({ code: "rate_limit_exceeded", retryAfterSeconds: 61 }), []]);
});

test("a change whose answer is lost is made once", async () => {
  let lost = 0;
  const runtime = noWaiting();
  const cairn = clientOf(
    {
      fetch: async (request) => {
        const answer = await fetch(request);
        if (request.method === "GET" || lost++ > 0) return answer;
        await answer.text();
        throw new TypeError("connection reset");
      },
    },
    runtime,
  );
  const { id } = await clientOf().sessions.create({ agent_id: "a" });
  const memory = await cairn.memories.add({ session_id: id, content: "only once" });
  expect((await cairn.sessions.get(id)).memory_count).toBe(1);
  lost = 0;
  // It is gone when the second request comes, and that is what was asked for.
  expect(await cairn.memories.delete(memory.id)).toEqual({ object: "memory", id: memory.id, deleted: true });
  expect(await failure(cairn.memories.delete(memory.id))).toMatchObject({ code: "memory_not_found" });
});

test("without an answer in time the error is timeout, without a server connection_failed, from something else unexpected_answer", async () => {
  using silent = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => {}) });
  const timeout = await failure(clientOf({ baseUrl: silent.url.href, timeoutMs: 20, retries: 0 }).sessions.list());
  expect(timeout).toMatchObject({ name: "CairnError", code: "timeout", status: undefined });
  using slowBody = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) })),
  });
  expect(await failure(clientOf({ baseUrl: slowBody.url.href, retries: 0 }).sessions.list({}, { timeoutMs: 20 }))).toMatchObject({
    code: "timeout",
  });
  const gone = silent.url.href;
  await silent.stop(true);
  const nobody = await failure(clientOf({ baseUrl: gone }, noWaiting()).sessions.list());
  expect(nobody).toMatchObject({ code: "connection_failed", message: `${gone.replace(/\/$/, "")} cannot be reached.` });
  expect((nobody as Error).cause).toBeInstanceOf(Error);
  const page = new Response("<h1>Bad gateway</h1>", { status: 500, headers: { "Content-Type": "text/html" } });
  expect(await failure(answered([page]).cairn.sessions.list())).toMatchObject({ code: "unexpected_answer", status: 500 });
  const login = new Response("<h1>Sign in</h1>", { headers: { "Content-Type": "text/html" } });
  expect(await failure(answered([login]).cairn.sessions.list())).toMatchObject({ code: "unexpected_answer", status: 200 });
});

test("a limit of time that a timer cannot have is no limit, and one that is no time is refused", async () => {
  let held = Promise.withResolvers<Response>();
  using slow = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) => (url.includes("limit=1") ? new Promise<Response>(() => {}) : held.promise),
  });
  const options = { baseUrl: slow.url.href, retries: 0 };
  for (const timeoutMs of [Infinity, 2 ** 31, 1e300]) {
    for (const [ofClient, ofCall] of [
      [{ timeoutMs }, {}],
      [{}, { timeoutMs }],
    ]) {
      held = Promise.withResolvers();
      const answer = failure(clientOf({ ...options, ...ofClient }).sessions.list({}, ofCall));
      expect(await failure(clientOf({ ...options, timeoutMs: 20 }).sessions.list({ limit: 1 }))).toMatchObject({ code: "timeout" });
      held.resolve(json({ data: [], has_more: false, last_id: null }));
      expect(await answer).toMatchObject({ answer: { data: [] } });
    }
  }
  for (const timeoutMs of [NaN, -1, -Infinity, "soon" as never]) {
    expect(() => clientOf({ timeoutMs })).toThrow(`timeoutMs must be a number of at least 0; got ${timeoutMs}.`);
    expect(await failure(clientOf().sessions.list({}, { timeoutMs }))).toBeInstanceOf(RangeError);
    expect(await failure(clientOf().backups.download("backup_1", { timeoutMs }).next())).toBeInstanceOf(RangeError);
  }
});

test("a redirection is not followed, since the API key would go where it leads", async () => {
  const asked: string[] = [];
  using elsewhere = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: ({ url }) => (asked.push(url), Response.json({})) });
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.redirect(elsewhere.url.href, 307) });
  const cairn = clientOf({ baseUrl: server.url.href });
  expect(await failure(cairn.sessions.list())).toMatchObject({ code: "unexpected_answer", status: 307 });
  expect(await failure(cairn.sessions.create({ agent_id: "a" }))).toMatchObject({ code: "unexpected_answer", status: 307 });
  expect(asked).toEqual([]);
});

test("a signal ends a call with its own reason: before it begins, while it waits for an answer, between two attempts", async () => {
  const reason = new Error("no longer wanted");
  const { cairn, requests } = answered([json({})]);
  expect(await failure(cairn.sessions.get("sess_1", { signal: AbortSignal.abort(reason) }))).toBe(reason as never);
  expect(requests).toHaveLength(0);
  const controller = new AbortController();
  using silent = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Promise<Response>(() => controller.abort(reason)) });
  expect(await failure(clientOf({ baseUrl: silent.url.href }).sessions.list({}, { signal: controller.signal }))).toBe(reason as never);
  const second = new AbortController();
  using busy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      setTimeout(() => second.abort(reason), 20);
      return refused(503, "service_unavailable", { "Retry-After": "60" });
    },
  });
  expect(await failure(clientOf({ baseUrl: busy.url.href }).sessions.list({}, { signal: second.signal }))).toBe(reason as never);
});

test("an id that would be another path, a missing key and an address without a scheme are refused before anything is sent", async () => {
  const { cairn, requests } = answered([json({}), json({})]);
  for (const id of ["", ".", "..", undefined as never, null as never]) expect(() => cairn.users.erase(id)).toThrow(TypeError);
  for (const id of ["a/b?c#d %", "😀\udc00"]) await cairn.users.get(id);
  expect(requests.map(({ url }) => new URL(url).pathname)).toEqual(["/v1/users/a%2Fb%3Fc%23d%20%25", "/v1/users/%F0%9F%98%80%ED%b0%80"]);
  for (const apiKey of ["", "crn_…", "crn_1\nHost: elsewhere", undefined as never])
    expect(() => new Cairn({ apiKey })).toThrow("apiKey must be an API key of Cairn, crn_ and letters and digits.");
  expect(() => new Cairn({ apiKey: "crn_1", baseUrl: "localhost:8700" })).toThrow("baseUrl must be an address such as");
});

test("events come as they happen, in their order, and go on after a connection that broke without losing or repeating one", async () => {
  const runtime = noWaiting();
  let connections = 0;
  const cairn = clientOf(
    {
      // Each connection breaks after its second piece.
      fetch: async (request) => {
        const answer = await fetch(request);
        connections++;
        const reader = answer.body!.getReader();
        let pieces = 0;
        const body = new ReadableStream<Uint8Array>({
          pull: async (controller) => {
            const { value, done } = await reader.read();
            if (done || pieces++ === 2) {
              await reader.cancel();
              controller.error(new TypeError("connection reset"));
            } else controller.enqueue(value);
          },
        });
        return new Response(body, answer);
      },
    },
    runtime,
  );
  const writer = clientOf();
  const { id } = await writer.sessions.create({ agent_id: "a" });
  const [created] = (await writer.traces.list({ session_id: id })).data;
  const seen: unknown[] = [];
  const stop = new AbortController();
  const reading = (async () => {
    for await (const trace of cairn.events({ session_id: id }, { lastEventId: created!.id, signal: stop.signal })) {
      seen.push(trace.details["version"]);
      if (seen.length === 12) break;
    }
  })();
  for (let i = 0; i < 12; i++) await writer.sessions.setState(id, { state: { i } });
  await reading;
  expect(seen).toEqual(Array.from({ length: 12 }, (_, i) => i + 1));
  expect(connections).toBeGreaterThan(1);
});

test("events of a connection that breaks before the first of them come over the next one", async () => {
  const writer = clientOf();
  const session = await writer.sessions.create({ agent_id: "a" });
  let connections = 0;
  const cairn = clientOf(
    {
      // The first connection says where it begins, and breaks once something has happened.
      fetch: async (request) => {
        const answer = await fetch(request);
        if (++connections > 1) return answer;
        const reader = answer.body!.getReader();
        const pieces = [(await reader.read()).value];
        const body = new ReadableStream<Uint8Array>({
          pull: async (controller) => {
            const piece = pieces.pop();
            if (piece !== undefined) return controller.enqueue(piece);
            await reader.cancel();
            await writer.sessions.setState(session.id, { state: {} });
            controller.error(new TypeError("connection reset"));
          },
        });
        return new Response(body, answer);
      },
    },
    noWaiting(),
  );
  for await (const trace of cairn.events({ session_id: session.id, action: "state.updated" })) {
    expect(trace.details["version"]).toBe(1);
    break;
  }
  expect(connections).toBe(2);
});

test("events end with the reason of the signal, and with the error of a server that refuses them", async () => {
  const reason = new Error("enough");
  const stop = new AbortController();
  const events = clientOf().events({}, { signal: stop.signal });
  const first = failure(events.next());
  stop.abort(reason);
  expect(await first).toBe(reason as never);
  expect(await failure(clientOf({ apiKey: "crn_wrong" }).events().next())).toMatchObject({ code: "authentication_failed" });
  expect(await failure(clientOf().events({}, { lastEventId: "nonsense" }).next())).toMatchObject({ code: "invalid_request" });
  const { cairn, requests } = answered([refused(503, "service_unavailable")]);
  expect(await failure(cairn.events().next())).toMatchObject({ code: "service_unavailable" });
  expect(requests).toHaveLength(3);
});

const SECRET = `whsec_${btoa("abcdefghijklmnopqrstuvwx")}`;
const SIGNED_AT = 1_777_777_777;
const BODY = '{"type":"turn.added","data":"ü😀"}';

test("verifyWebhook takes what Cairn signs, with the old secret and the new one, and nothing else", async () => {
  const now = SIGNED_AT * 1000;
  const signed = { id: "evt_1", timestampSeconds: SIGNED_AT, body: BODY };
  const headers = new Headers(signatureHeaders([SECRET, "whsec_b2xkb2xkb2xkb2xkb2xkb2xk"], signed));
  for (const secret of [SECRET, "whsec_b2xkb2xkb2xkb2xkb2xkb2xk"]) expect(await verifyWebhook(secret, headers, BODY, now)).toBe(true);
  expect(await verifyWebhook(SECRET, Object.fromEntries(headers), new TextEncoder().encode(BODY), now)).toBe(true);
  expect(await verifyWebhook(SECRET, { ...Object.fromEntries(headers), "webhook-id": ["evt_1"] }, BODY, now)).toBe(true);
  const plain = "sixteen characters at least";
  expect(await verifyWebhook(plain, new Headers(signatureHeaders([plain], signed)), BODY, now)).toBe(true);

  const wrong = (changes: Record<string, string>, body = BODY, at = now, secret = SECRET) =>
    verifyWebhook(secret, { ...Object.fromEntries(headers), ...changes }, body, at);
  const [ahead, late] = [now - 301_000, now + 301_000];
  expect(
    await Promise.all([
      wrong({}, `${BODY} `),
      wrong({}, BODY, ahead),
      wrong({}, BODY, late),
      wrong({}, BODY, now, `whsec_${btoa("another secret")}`),
      wrong({ "webhook-id": "evt_2" }),
      wrong({ "webhook-timestamp": String(SIGNED_AT + 1) }),
      wrong({ "webhook-timestamp": "NaN" }),
      wrong({ "webhook-timestamp": "" }),
      wrong({ "webhook-signature": "" }),
      wrong({ "webhook-signature": "v1,??? v1, v2,AAAA nonsense" }),
      wrong({ "webhook-signature": headers.get("webhook-signature")!.replaceAll("v1,", "v1a,") }),
    ]),
  ).not.toContain(true);
  // HMAC with an empty key is what anybody can make.
  const forged = `v1,${createHmac("sha256", "").update(`evt_1.${SIGNED_AT}.${BODY}`).digest("base64")}`;
  for (const none of ["", "whsec_", "whsec_???"])
    await expect(wrong({ "webhook-signature": forged }, BODY, now, none)).rejects.toThrow(TypeError);
});
