/**
 * MCP over HTTP: tools, resources and the prompt, through the official clients and by hand.
 *
 * @module
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createServer, request as requestTo } from "node:http";
import { join } from "node:path";
import * as fc from "fast-check";
import { createApp } from "../src/server/app.ts";
import { createLink } from "../src/keys/sign-in.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { errorOf } from "./support/answers.ts";
import { startCairn, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { GENERATIONS, useEverything, type McpClient } from "./support/mcp.ts";
import TOOLS from "./support/mcp-tools.json" with { type: "json" };
import { startServer, type Server } from "./support/server.ts";

let server: Server;
let cairn: Cairn;

beforeAll(async () => {
  server = await startServer({ corsOrigins: ["https://app.example.com"] });
  ({ cairn } = server);
});
afterAll(() => server[Symbol.asyncDispose]());

const GENERATION_NAMES = Object.keys(GENERATIONS);
const doorTo = (query = "", headers: Record<string, string> = {}) => ({
  url: `http://127.0.0.1:${server.port}/mcp${query}`,
  headers: { "X-API-Key": cairn.key, ...headers },
});
const connect = (generation: string, query = "", headers: Record<string, string> = {}): Promise<McpClient> =>
  GENERATIONS[generation]!(doorTo(query, headers));

for (const generation of GENERATION_NAMES) {
  test(`every tool, resource and prompt works through the official client of ${generation}`, async () => {
    await using mcp = await connect(generation, `?user_id=${generation}&agent_id=tester`);
    expect(mcp.client.getServerVersion()).toMatchObject({ name: "cairn", version: "test" });
    expect(mcp.client.getInstructions()?.length).toBeLessThan(500);
    const never = { listChanged: false };
    expect(mcp.client.getServerCapabilities()).toEqual({ tools: never, resources: never, prompts: never });
    await useEverything(mcp, generation);
  });

  test(`what cannot be done is a result that says why, for the client of ${generation}`, async () => {
    await using mcp = await connect(generation);
    expect(await mcp.refusal("add_memory", { content: 5 })).toBe(
      "invalid_request: content must be a string of at least 1 character; got 5.",
    );
    expect(await mcp.refusal("add_memory")).toMatch(/^invalid_request: content is required/);
    expect(await mcp.refusal("add_memory", { content: "a".repeat(LIMITS.memoryContentLengthMax + 1) })).toMatch(/^content_too_large: /);
    expect(await mcp.refusal("delete_memory", { memory_id: "mem_000000000000" })).toMatch(/^memory_not_found: /);
    expect(await mcp.refusal("get_state", { session_id: "sess_000000000000" })).toMatch(/^session_not_found: /);
    expect(await mcp.refusal("get_context", { session_id: "../../settings" })).toMatch(/^session_not_found: /);
    expect(await mcp.refusal("start_session", { version: 1 })).toMatch(/^invalid_request: .*fork_of/);
    expect(await mcp.refusal("start_session", { fork_of: "sess_000000000000", metadata: {} })).toMatch(/^invalid_request: .*metadata/);
    await expect(mcp.call("no_such_tool")).rejects.toThrow("There is no tool no_such_tool.");
    for (const uri of ["cairn://sessions/sess_000000000000", "cairn://memories/x", "cairn://keys/x", "file:///etc/passwd"])
      await expect(mcp.client.readResource({ uri })).rejects.toMatchObject({ code: -32602, data: { uri } });
    await expect(mcp.client.getPrompt({ name: "none" })).rejects.toMatchObject({ code: -32602 });
  });

  test(`a key that only writes is shown the tools that answer with what they were given, in ${generation}`, async () => {
    const writer = await cairn.newKey({ scopes: ["write"] });
    const { id: session_id } = await cairn.createSession();
    await using mcp = await connect(generation, "?agent_id=writer", { "X-API-Key": writer });
    expect((await mcp.tools()).map(({ name }) => name)).toEqual(["add_memory", "delete_memory", "add_turn"]);
    const { id: memory_id } = await mcp.use("add_memory", { content: "Likes tea.", session_id });
    expect(await mcp.use("add_turn", { input: "in", output: "out", session_id })).toMatchObject({ session_id, turn_number: 1 });
    expect(await mcp.use("delete_memory", { memory_id })).toEqual({ object: "memory", id: memory_id, deleted: true });
    expect(await mcp.refusal("add_memory", { content: "Likes tea." })).toMatch(/^permission_denied: .*scope read/);
    await expect(mcp.call("update_state", { changes: {}, session_id })).rejects.toThrow("There is no tool update_state.");
  });

  test(`a misspelt argument is refused with the one that was meant, for the client of ${generation}`, async () => {
    await using mcp = await connect(generation);
    expect(await mcp.refusal("add_memory", { contents: "Likes tea." })).toBe(
      "invalid_request: contents is not a field here; did you mean content?",
    );
    expect(await mcp.refusal("get_state", { sessionId: "sess_000000000000" })).toBe(
      "invalid_request: sessionId is not a field here; did you mean session_id?",
    );
    // Of another tool it is a field, and in the caller's own JSON it is the caller's.
    const state = { sessionId: 1, user_ids: 2 };
    expect(await mcp.use("update_state", { changes: state, memory_id: "x", unknown: 1 })).toMatchObject({ state });
  });

  test(`a key that only reads is shown the tools that read, and has no others, in ${generation}`, async () => {
    const reader = await cairn.newKey({ scopes: ["read"] });
    await using mcp = await connect(generation, "?agent_id=reader", { "X-API-Key": reader });
    const tools = await mcp.tools();
    expect(tools.map(({ name }) => name)).toEqual([
      "get_context",
      "search_memories",
      "list_memories",
      "get_state",
      "list_versions",
      "search_turns",
      "list_sessions",
    ]);
    expect(tools.filter(({ annotations }) => annotations.readOnlyHint !== true)).toEqual([]);
    await expect(mcp.call("add_memory", { content: "Not allowed." })).rejects.toThrow("There is no tool add_memory.");
    expect(await mcp.use("get_context")).toMatchObject({ session_id: null });
  });

  test(`tools=memory shows the six tools of memories, in ${generation}`, async () => {
    await using mcp = await connect(generation, "?tools=memory");
    const names = (await mcp.tools()).map(({ name }) => name);
    expect(names).toEqual(["get_context", "search_memories", "add_memory", "update_memory", "delete_memory", "list_memories"]);
    await expect(mcp.call("add_turn", { input: "", output: "" })).rejects.toThrow("There is no tool add_turn.");
  });
}

test("the tools are listed as they were agreed, in at most 16 kB", async () => {
  await using mcp = await connect("2025-11-25");
  const tools = await mcp.tools();
  expect(JSON.stringify(tools).length).toBeLessThanOrEqual(16_000);
  expect(tools).toEqual(TOOLS);
});

test("a message with more members than any client sends is refused before it is looked at, and a state can be as wide as ever", async () => {
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, {}]));
  const call = (name: string, params: object) => ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, ...params } });
  const initialize = (experimental: object) => ({
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: { experimental }, clientInfo: { name: "wide", version: "1" } },
  });
  const most = LIMITS.mcpMembersMax;
  const wide = [
    call("get_context", { arguments: members(most) }),
    call("get_context", { _meta: { deep: members(most) } }),
    { ...call("get_context", {}), params: [members(most)] },
    { ...call("get_context", {}), ...members(most) },
    initialize(members(most)),
  ];
  const options = { headers: { Accept: "application/json, text/event-stream" } };
  for (const body of wide) expect(errorOf(await cairn.post("/mcp", body, options))).toMatchObject({ status: 400, code: "invalid_request" });
  for (const body of [initialize(members(most - 20)), call("update_state", { arguments: { changes: members(5 * most) } })])
    expect(await cairn.post("/mcp", body, options)).toMatchObject({ status: 200, body: { result: {} } });
});

test("whom a connection speaks for stands in headers or in the query, and headers win", async () => {
  const given = [
    ["?user_id=ada&agent_id=editor", {}, "ada", "editor"],
    ["", { "X-Cairn-User": "ben", "X-Cairn-Agent": "shell" }, "ben", "shell"],
    ["?user_id=ada&agent_id=editor", { "X-Cairn-User": "cleo" }, "cleo", "editor"],
    ["?user_id=%C3%A9lo%C3%AFse", {}, "éloïse", "mcp"],
    ["", {}, null, "mcp"],
  ] as const;
  for (const [query, headers, user_id, agent_id] of given) {
    await using mcp = await connect("2025-11-25", query, headers);
    const { session_id } = await mcp.use("update_state", { changes: { seen: true } });
    expect(await cairn.session(session_id)).toMatchObject({ user_id, agent_id });
    expect(await mcp.use("get_state")).toMatchObject({ session_id, state: { seen: true } });
  }
  const { id } = await cairn.createSession();
  for (const [query, headers] of [
    [`?session_id=${id}`, {}],
    ["", { "X-Cairn-Session": id }],
  ] as const) {
    await using mcp = await connect("2025-11-25", query, headers);
    expect(await mcp.use("add_turn", { input: "a", output: "b" })).toMatchObject({ session_id: id });
  }
});

test("a bound key and one that names its user and its agent have one session", async () => {
  const key = await cairn.newKey({ owner: { userId: "one-user", agentId: "one-agent" } });
  await using bound = await connect("2025-11-25", "", { "X-API-Key": key });
  const { session_id } = await bound.use("update_state", { changes: { seen: "by the bound key" } });
  expect(await cairn.session(session_id)).toMatchObject({ external_id: "mcp:one-agent:one-user" });
  await using naming = await connect("2025-11-25", "?user_id=one-user", { "X-API-Key": key });
  expect(await naming.use("get_state")).toMatchObject({ session_id, state: { seen: "by the bound key" } });
});

test("a bound key speaks for its user and its agent, and finds nothing of others whatever the connection says", async () => {
  const key = await cairn.newKey({ owner: { userId: "bound-user", agentId: "bound-agent" } });
  const other = await cairn.createSession({ user_id: "unbound-user", initial_state: { secret: 1 } });
  const memory = await cairn.addMemory(other.id, "The secret is in the garden.");
  for (const query of ["", "?user_id=bound-user", `?session_id=${other.id}`]) {
    await using mcp = await connect("2026-07-28", query, { "X-API-Key": key });
    const session = query.includes("session_id")
      ? await mcp.use("start_session", {})
      : await mcp.use("update_state", { changes: { seen: 1 } });
    expect(await cairn.session(session.session_id ?? session.id)).toMatchObject({ user_id: "bound-user", agent_id: "bound-agent" });
    expect((await mcp.use("search_memories", { query: "The secret is in the garden.", threshold: 0 })).data).toEqual([]);
    expect((await mcp.use("list_memories", {})).data).toEqual([]);
    expect(JSON.stringify((await mcp.use("list_sessions", {})).data)).not.toContain(other.id);
    for (const tool of ["get_state", "get_context", "list_versions"])
      expect(await mcp.refusal(tool, { session_id: other.id })).toMatch(/^session_not_found: /);
    expect(await mcp.refusal("update_state", { session_id: other.id, changes: { a: 1 } })).toMatch(/^session_not_found: /);
    expect(await mcp.refusal("update_memory", { memory_id: memory.id, content: "Changed." })).toMatch(/^memory_not_found: /);
    expect(await mcp.refusal("delete_memory", { memory_id: memory.id })).toMatch(/^memory_not_found: /);
    for (const uri of [`cairn://sessions/${other.id}`, `cairn://memories/${memory.id}`])
      await expect(mcp.client.readResource({ uri })).rejects.toMatchObject({ code: -32602 });
    expect(JSON.stringify(await mcp.client.listResources())).not.toContain(other.id);
  }
  await using mcp = await connect("2026-07-28", "?user_id=unbound-user", { "X-API-Key": key });
  expect((await mcp.use("list_memories", {})).data).toEqual([]);
  expect(await mcp.refusal("update_state", { changes: { seen: 1 } })).toMatch(/^permission_denied: user_id is not the one/);
});

test("no two agents and users share a session, however they are called, and each finds its own by a name that stays", async () => {
  const long = expect.stringMatching(/^mcp:[0-9a-f]{64}$/) as string;
  const pairs = [
    ["a:b", "c", "mcp:a%3Ab:c"],
    ["a", "b:c", "mcp:a:b%3Ac"],
    ["a%3Ab", "c", "mcp:a%253Ab:c"],
    ["a", "", "mcp:a:"],
    ["a:", "", "mcp:a%3A:"],
    ["x".repeat(256), "y".repeat(256), long],
    ["x".repeat(256), "z".repeat(256), long],
  ] as const;
  const names = new Map<string, string>();
  for (const [agent, user] of pairs) {
    const query = new URLSearchParams({ agent_id: agent, ...(user === "" ? {} : { user_id: user }) });
    for (const _ of [1, 2]) {
      await using mcp = await connect("2026-07-28", `?${query.toString()}`);
      const { session_id } = await mcp.use("add_turn", { input: "a", output: "b" });
      names.set(session_id, (await server.cairn.session(session_id)).external_id);
    }
  }
  expect([...names.values()]).toEqual(pairs.map(([, , name]) => name));
  expect(new Set(names.values()).size).toBe(pairs.length);
});

test("a turn is logged with the state and the memories of its step, or none of it is", async () => {
  await using mcp = await connect("2026-07-28", "?agent_id=steps&user_id=steps");
  const step = { input: "Where do I live?", output: "In Oslo.", changes: { asked: 1 } };
  const memories = [
    { content: "Lives in Oslo.", tags: ["home"], importance: 0.8 },
    { content: "Asked where they live.", type: "event" },
  ];
  const { session_id, ...turn } = await mcp.use("add_turn", { ...step, memories });
  expect(turn).toMatchObject({ turn_number: 1, state_version: 1, memories });
  const moved = [{ content: "Lives in Bergen.", supersedes: [turn.memories[0].id] }];
  expect(await mcp.use("add_turn", { ...step, changes: { asked: 2 }, memories: moved })).toMatchObject({
    turn_number: 2,
    state_version: 2,
  });
  const contents = async () => (await mcp.use("list_memories", {})).data.map(({ content }: { content: string }) => content);
  expect(await contents()).toEqual(["Lives in Bergen.", "Asked where they live."]);

  const refused = { ...step, changes: { asked: 3 }, memories: [{ content: "Likes tea." }, { content: "" }] };
  expect(await mcp.refusal("add_turn", refused)).toMatch(/^invalid_request: .*memories\[1\]\.content/);
  expect(await mcp.use("get_state")).toMatchObject({ session_id, version: 2, state: { asked: 2 } });
  expect(await contents()).toEqual(["Lives in Bergen.", "Asked where they live."]);
});

test("many calls at once share one session", async () => {
  await using mcp = await connect("2026-07-28", "?agent_id=busy");
  const turns = await Promise.all(Array.from({ length: 20 }, (_, n) => mcp.use("add_turn", { input: String(n), output: "done" })));
  expect(new Set(turns.map(({ session_id }) => session_id)).size).toBe(1);
  expect(turns.map(({ turn_number }) => turn_number).toSorted((a, b) => a - b)).toEqual(Array.from(turns, (_, n) => n + 1));
});

test("the session of a connection is prolonged by what is done in it, once less than half of its 30 days is left", async () => {
  await using own = await startServer();
  await using mcp = await GENERATIONS["2026-07-28"]!({
    url: `http://127.0.0.1:${own.port}/mcp?user_id=ada`,
    headers: { "X-API-Key": own.cairn.key },
  });
  const DAY = 86_400_000;
  const { session_id } = await mcp.use("add_turn", { input: "a", output: "b" });
  const daysLeft = async () => (Date.parse((await own.cairn.session(session_id)).ttl_expires_at) - own.cairn.clock.now()) / DAY;
  expect(await daysLeft()).toBe(30);
  own.cairn.clock.advance({ days: 14 });
  await mcp.use("add_turn", { input: "a", output: "b" });
  expect(await daysLeft()).toBe(16);
  own.cairn.clock.advance({ days: 2 });
  await mcp.use("get_context");
  expect(await daysLeft()).toBe(14);
  await mcp.use("add_turn", { input: "a", output: "b" });
  expect(await daysLeft()).toBe(30);
  own.cairn.clock.advance({ days: 30 });
  expect(await mcp.use("get_state")).toMatchObject({ session_id: null });
  expect((await mcp.use("add_turn", { input: "a", output: "b" })).session_id).not.toBe(session_id);
});

test("before there is a session the context is what is known of the user", async () => {
  const { id } = await cairn.createSession({ user_id: "grace" });
  await cairn.addMemory(id, "Grace takes her tea without milk.");
  await cairn.addMemory(id, "Grace lives in York.");
  await using mcp = await connect("2026-07-28", "?user_id=grace&agent_id=new");
  const { memories, session_id } = await mcp.use("get_context", { query: "What does she drink?", memory_limit: 1 });
  expect(session_id).toBeNull();
  expect(memories).toMatchObject([{ content: "Grace takes her tea without milk." }]);
  expect((await mcp.use("get_context")).memories).toMatchObject([{ content: "Grace lives in York.", score: 0 }, { score: 0 }]);
  expect((await mcp.use("get_context", { memory_limit: 0 })).memories).toEqual([]);
});

/** A request of JSON-RPC by hand, in the older generation. */
const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const rpc = (method: string, params: unknown = {}, options: RequestOptions = {}) =>
  cairn.post("/mcp", { jsonrpc: "2.0", id: 1, method, params }, { ...options, headers: { ...HEADERS, ...options.headers } });
const LIST = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };

test("a page of another origin is refused, whatever key it has", async () => {
  const statusFrom = async (origin: string) => (await rpc("tools/list", {}, { headers: { origin } })).status;
  for (const origin of [
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.nip.example",
    "https://app.example.com:444",
    "",
  ])
    expect({ origin, status: await statusFrom(origin) }).toEqual({ origin, status: 403 });
  for (const origin of ["http://localhost:6274", "http://127.0.0.1", "http://[::1]:8080", "https://app.example.com"])
    expect({ origin, status: await statusFrom(origin) }).toEqual({ origin, status: 200 });
  const preflight = await cairn.request("OPTIONS", "/mcp", {
    key: null,
    headers: { origin: "https://app.example.com", "access-control-request-method": "POST" },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-headers")).toContain("MCP-Protocol-Version");
  expect((await rpc("tools/list", {}, { headers: { host: "evil.example" } })).status).toBe(403);
});

test("MCP needs a key, takes a token of it, and knows no method but POST", async () => {
  expect((await rpc("tools/list", {}, { key: null })).status).toBe(401);
  expect((await rpc("tools/list", {}, { key: "crn_000000000000000000000000" })).status).toBe(401);
  const bearer = await rpc("tools/list", {}, { key: null, headers: { authorization: `Bearer ${cairn.key}` } });
  expect(bearer.status).toBe(200);
  for (const method of ["GET", "DELETE", "PUT"]) {
    const answer = await cairn.request(method, "/mcp");
    expect({ status: answer.status, allow: answer.headers.get("allow") }).toEqual({ status: 405, allow: "POST" });
  }
  const key = await cairn.newKey({ rateLimit: { perMinute: 1, burst: 2 } });
  const statuses = [];
  for (const _ of [1, 2, 3]) statuses.push((await rpc("tools/call", { name: "list_sessions", arguments: {} }, { key })).status);
  expect(statuses).toEqual([200, 200, 429]);
});

test("answers that find no room are refused, not cut off, unless a tool has changed something", async () => {
  await using own = await startCairn();
  const { id } = await own.createSession();
  for (let i = 0; i < 20; i++) await own.addMemory(id, "Likes tea.", { embed: false, metadata: { text: "x".repeat(60_000) } });
  const app = createApp({ ...own.service, host: "127.0.0.1", allowedHosts: [], metrics: "key", version: "test" });
  const list = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_memories", arguments: { limit: 100 } } };
  const headers = { ...HEADERS, host: "localhost", "x-api-key": own.key };
  // All begin before any is answered, and none is read before all are.
  const answers = await Promise.all(
    Array.from({ length: 40 }, () =>
      app.handle(new Request("http://localhost/mcp", { method: "POST", headers, body: JSON.stringify(list) })),
    ),
  );
  const statuses = new Set(answers.map(({ status }) => status));
  expect(statuses).toEqual(new Set([200, 503]));
  for (const answer of answers) expect(JSON.parse(await answer.text())).toHaveProperty(answer.status === 200 ? "result" : "error");
});

test("the key of a sign-in link opens nothing", async () => {
  const key = await createLink(cairn.service, cairn.service.system);
  expect(await rpc("tools/list", {}, { key })).toMatchObject({ status: 403, body: { error: { code: "permission_denied" } } });
});

test("who tries to register where OAuth is off is told to bring a key", async () => {
  const headers = { Host: "cairn.example.com" };
  await using open = await startCairn({ host: "0.0.0.0" });
  const answer = await open.post("/register", { redirect_uris: ["http://127.0.0.1:1/cb"] }, { key: null, headers });
  expect(answer).toMatchObject({ status: 404, body: { error: { message: expect.stringContaining("X-API-Key") } } });
});

test("bodies have the limits of the API", async () => {
  const large = await rpc("tools/call", { name: "add_memory", arguments: { content: "a".repeat(LIMITS.bodyBytesMax) } });
  expect(large).toMatchObject({ status: 413, body: { error: { code: "payload_too_large" } } });
  let nested: unknown = {};
  for (let level = 0; level < 100; level++) nested = { nested };
  const deep = await rpc("tools/call", { name: "update_state", arguments: { changes: nested } });
  expect(deep).toMatchObject({ status: 400, body: { error: { param: "params" } } });
  const many = await cairn.post("/mcp", undefined, { raw: JSON.stringify([LIST, LIST]), headers: HEADERS });
  expect(many).toMatchObject({ status: 400, body: { error: { message: expect.stringContaining("an array") } } });
});

test("a connection that says something odd of itself is refused, naming what", async () => {
  const refused = async (query: string, headers: Record<string, string> = {}) => {
    const { status, body } = await cairn.post(`/mcp${query}`, LIST, { headers: { ...HEADERS, ...headers } });
    return [status, body.error.param];
  };
  expect(await refused("?user_id=")).toEqual([400, "user_id"]);
  expect(await refused(`?agent_id=${"a".repeat(257)}`)).toEqual([400, "agent_id"]);
  expect(await refused("?tools=some")).toEqual([400, "tools"]);
  // Ignored, it would be everybody's.
  expect(await refused("?userId=ada")).toEqual([400, "userId"]);
  expect(await refused("", { "X-Cairn-User": "\u00e9lo\u00efse" })).toEqual([400, "X-Cairn-User"]);
});

test("a subscription is acknowledged with nothing in it and ends: there is nothing to be told of, and no stream to hold", async () => {
  const headers = { ...HEADERS, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen" };
  const meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
  const wanted = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourcesListChanged: true,
    resourceSubscriptions: ["cairn://sessions/x"],
  };
  // Whoever comes next is not kept out by those before.
  for (let id = 1; id <= 3; id++) {
    const request = { jsonrpc: "2.0", id, method: "subscriptions/listen", params: { notifications: wanted, _meta: meta } };
    const answer = await fetch(`http://127.0.0.1:${server.port}/mcp`, {
      method: "POST",
      headers: { ...headers, "X-API-Key": cairn.key },
      body: JSON.stringify(request),
    });
    const messages = Array.from((await answer.text()).matchAll(/^data: (.*)$/gm), ([, data]) => JSON.parse(data!));
    expect(messages).toMatchObject([
      { method: "notifications/subscriptions/acknowledged", params: { notifications: {} } },
      { id, result: { resultType: "complete" } },
    ]);
  }
});

test("no message of JSON-RPC, however odd, is a fault of ours", async () => {
  await using own = await startCairn();
  const names = [...TOOLS.map(({ name }) => name), "none"];
  const value = fc.jsonValue({ maxDepth: 3 });
  const method = fc.constantFrom(
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "prompts/list",
    "prompts/get",
    "server/discover",
    "subscriptions/listen",
    "completion/complete",
    "logging/setLevel",
    "notifications/cancelled",
    "notifications/initialized",
    "tasks/list",
    "__proto__",
    "",
  );
  const call = fc.record({ name: fc.constantFrom(...names), arguments: fc.dictionary(argumentName(), value) });
  const message = fc.record(
    {
      jsonrpc: fc.constantFrom<unknown>("2.0", "2.0", "2.0", "1.0", 2),
      id: fc.oneof(fc.constant<unknown>(1), value),
      method: fc.oneof(method, fc.constant("tools/call"), fc.string()),
      params: fc.oneof(call, value),
      result: value,
    },
    { requiredKeys: ["jsonrpc"] },
  );
  const headers = fc.record(
    {
      "MCP-Protocol-Version": fc.constantFrom("2026-07-28", "2025-11-25", "2024-11-05", "1"),
      "Mcp-Method": method.filter((name) => name !== ""),
      "Mcp-Name": fc.constantFrom(...names),
      "Mcp-Session-Id": fc.constant("one"),
      accept: fc.constantFrom(HEADERS.accept, "application/json", "text/html"),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(message, headers, async (body, more) => {
      const { status } = await own.post("/mcp", body, { headers: { ...HEADERS, ...more } });
      expect(status).toBeLessThan(500);
    }),
    { numRuns: 300 },
  );
  expect(own.logged.filter((line) => line.includes('"error"'))).toEqual([]);
});

/** Names that tools have, so that more than the first check is reached. */
function argumentName() {
  return fc.constantFrom(
    "content",
    "query",
    "session_id",
    "memory_id",
    "changes",
    "version",
    "limit",
    "tags",
    "fork_of",
    "input",
    "output",
    "type",
  );
}

test("a fault of ours is a result without what caused it, which the operator's log has", async () => {
  await using own = await startCairn();
  const broken = new Error("a broken assumption");
  own.service.store.read = () => {
    throw broken;
  };
  const request = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_sessions", arguments: {} } };
  const answer = await own.post("/mcp", request, { headers: HEADERS });
  expect(JSON.stringify(answer.body)).not.toContain("broken assumption");
  expect(own.logged.filter((line) => line.includes("a broken assumption"))).toHaveLength(1);
});

/** Scenarios that need none of the tools of the suite's own example server. */
const SCENARIOS: Readonly<Record<string, readonly string[]>> = {
  "2025-11-25": ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"],
  "2026-07-28": [
    "tools-list",
    "resources-list",
    "prompts-list",
    "sep-2164-resource-not-found",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "server-stateless",
    "server-sse-multiple-streams",
    "input-required-result-unsupported-methods",
  ],
};
/** How many checks of a scenario want one of those tools all the same. */
const NOT_TESTABLE: Readonly<Record<string, number>> = { "server-stateless": 4 };

for (const [revision, scenarios] of Object.entries(SCENARIOS)) {
  for (const scenario of scenarios) {
    test(`the official conformance suite passes: ${scenario} of ${revision}`, async () => {
      await using proxy = await proxyWithKey();
      const program = join(import.meta.dir, "../node_modules/@modelcontextprotocol/conformance/dist/index.js");
      const args = ["server", "--url", proxy.url, "--scenario", scenario, "--spec-version", revision];
      const suite = Bun.spawn([process.execPath, program, ...args], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
      const [stdout, stderr, code] = await Promise.all([
        new Response(suite.stdout).text(),
        new Response(suite.stderr).text(),
        suite.exited,
      ]);
      const [, passed, all, failed] = /Passed: (\d+)\/(\d+), (\d+) failed, 0 warnings/.exec(stdout) ?? [];
      const untested = stdout.match(/Error: Not testable: /g)?.length ?? 0;
      const isWhole = failed === String(untested) && untested === (NOT_TESTABLE[scenario] ?? 0) && (code === 0) === (untested === 0);
      expect({ said: isWhole ? "" : stdout + stderr, passed: Number(passed) + untested }).toEqual({ said: "", passed: Number(all) });
    });
  }
}

/** The suite cannot send headers: this adds the key, and keeps `Host` and `Origin` as they come. */
async function proxyWithKey(): Promise<AsyncDisposable & { url: string }> {
  const proxy = createServer((request, response) => {
    const { method, url: path, headers } = request;
    const onward = {
      host: "127.0.0.1",
      port: server.port,
      method,
      path,
      headers: { ...headers, "x-api-key": cairn.key },
      agent: false as const,
    };
    const sent = requestTo(onward, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    sent.on("error", () => response.destroy());
    request.pipe(sent);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    [Symbol.asyncDispose]: () => new Promise((resolve) => proxy.close(() => resolve())),
  };
}
