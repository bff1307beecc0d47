/**
 * What callers send by mistake or on purpose: refused by the name of the field, or kept exactly as it came. Never anything
 * between the two.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { nested, unknownId, refusal, type Refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

/** Everything that a store could have changed, in one text. */
async function everything(cairn: Cairn): Promise<string> {
  const lists = ["/v1/sessions", "/v1/memory", "/v1/traces", "/v1/api_keys", "/v1/webhooks"];
  return JSON.stringify(await Promise.all(lists.map((path) => cairn.ok(cairn.get(`${path}?limit=100`)))));
}

/** Sent as it is written, which objects of JavaScript cannot say: `__proto__`, numbers without end, keys twice. */
function sendText(cairn: Cairn, method: string, path: string, json: string) {
  return cairn.request(method, path, { raw: json, headers: { "content-type": "application/json" } });
}

const TURN = { input: { type: "text", content: "in" }, output: { type: "text", content: "out" } };

interface BadBody {
  method?: string;
  path: string;
  /** The body of a request that would be accepted, and what is wrong with this one. */
  body: Record<string, unknown>;
  param: string;
  status?: number;
  code?: string;
}

/** `SESSION` and `MEMORY` stand for records that exist. */
const bodies: BadBody[] = [
  ...[5, true, [], {}, "", "x".repeat(257)].map((value) => ({ path: "/v1/sessions", body: { agent_id: value }, param: "agent_id" })),
  { path: "/v1/sessions", body: { agent_id: null }, param: "agent_id" },
  ...[5, false, [], {}, "", "😀".repeat(257)].map((value) => ({
    path: "/v1/sessions",
    body: { agent_id: "a", user_id: value },
    param: "user_id",
  })),
  ...[[], "{}", 0, true].map((value) => ({ path: "/v1/sessions", body: { agent_id: "a", initial_state: value }, param: "initial_state" })),
  ...[[], "{}", 0, true].map((value) => ({ path: "/v1/sessions", body: { agent_id: "a", metadata: value }, param: "metadata" })),
  ...[0, -1, 1.5, 2_592_001, 1e300, "60", true, [60]].map((value) => ({
    path: "/v1/sessions",
    body: { agent_id: "a", ttl_seconds: value },
    param: "ttl_seconds",
  })),
  { path: "/v1/sessions", body: { agent_id: "a", metadata: { text: "x".repeat(65_526) } }, param: "metadata" },
  ...[0, 2_592_001, "60"].map((value) => ({
    method: "PATCH",
    path: "/v1/sessions/SESSION",
    body: { ttl_seconds: value },
    param: "ttl_seconds",
  })),
  { method: "PATCH", path: "/v1/sessions/SESSION", body: { metadata: [] }, param: "metadata" },
  ...[null, [], "{}", 0].map((value) => ({ path: "/v1/sessions/SESSION/state", body: { state: value }, param: "state" })),
  { path: "/v1/sessions/SESSION/state", body: {}, param: "state" },
  { path: "/v1/sessions/SESSION/state", body: { state: {}, reasoning: 5 }, param: "reasoning" },
  { path: "/v1/sessions/SESSION/state", body: { state: {}, expected_version: -1 }, param: "expected_version" },
  { path: "/v1/sessions/SESSION/state", body: { state: {}, expected_version: "0" }, param: "expected_version" },
  ...[null, "0", 0.5, true, [0]].map((value) => ({ path: "/v1/sessions/SESSION/rollback", body: { version: value }, param: "version" })),
  { path: "/v1/sessions/SESSION/rollback", body: {}, param: "version" },
  ...[1, -1, 1e15, -1e300].map((value) => ({
    path: "/v1/sessions/SESSION/rollback",
    body: { version: value },
    param: "version",
    status: 404,
    code: "version_not_found",
  })),
  { path: "/v1/sessions/SESSION/fork", body: { version: "0" }, param: "version" },
  { path: "/v1/sessions/SESSION/fork", body: { version: 1 }, param: "version", status: 404, code: "version_not_found" },
  { path: "/v1/sessions/SESSION/turns", body: {}, param: "input" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, input: null }, param: "input" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, input: "text" }, param: "input" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, input: { type: "text" } }, param: "input.content" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, input: { type: "text", content: 5 } }, param: "input.content" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, input: { content: "in" } }, param: "input.type" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, input: { type: "error", content: "in" } }, param: "input.type" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, input: { type: "__proto__", content: "in" } }, param: "input.type" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, output: { type: "tool_call", content: "" } }, param: "output.type" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, output: { type: "text", content: null } }, param: "output.content" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, reasoning: {} }, param: "reasoning" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, metadata: 5 }, param: "metadata" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, state_before: [] }, param: "state_before" },
  { path: "/v1/sessions/SESSION/turns", body: { ...TURN, state_after: "x" }, param: "state_after" },
  { path: "/v1/memory", body: { content: "tea" }, param: "session_id" },
  { path: "/v1/memory", body: { session_id: 5, content: "tea" }, param: "session_id" },
  ...["", "none", "__proto__", unknownId("sess"), unknownId("mem"), "x".repeat(100_000)].map((value) => ({
    path: "/v1/memory",
    body: { session_id: value, content: "tea" },
    param: "session_id",
    ...(value === "" ? {} : { status: 404, code: "session_not_found" }),
  })),
  ...[null, "", 5, ["tea"], {}].map((value) => ({ path: "/v1/memory", body: { session_id: "SESSION", content: value }, param: "content" })),
  ...["x".repeat(10_001), "😀".repeat(10_001)].map((value) => ({
    path: "/v1/memory",
    body: { session_id: "SESSION", content: value },
    param: "content",
    status: 413,
    code: "content_too_large",
  })),
  ...["", "x".repeat(65), 5].map((value) => ({
    path: "/v1/memory",
    body: { session_id: "SESSION", content: "tea", type: value },
    param: "type",
  })),
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", tags: "a,b" }, param: "tags" },
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", tags: { 0: "a" } }, param: "tags" },
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", tags: Array(65).fill("a") }, param: "tags" },
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", tags: ["a", "x".repeat(129)] }, param: "tags.1" },
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", tags: ["a", null] }, param: "tags.1" },
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", tags: [""] }, param: "tags.0" },
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", metadata: { text: "é".repeat(32_763) } }, param: "metadata" },
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", embed: "false" }, param: "embed" },
  { path: "/v1/memory", body: { session_id: "SESSION", content: "tea", embed: 1 }, param: "embed" },
  { method: "PATCH", path: "/v1/memory/MEMORY", body: { content: "" }, param: "content" },
  {
    method: "PATCH",
    path: "/v1/memory/MEMORY",
    body: { content: "x".repeat(10_001) },
    param: "content",
    status: 413,
    code: "content_too_large",
  },
  { method: "PATCH", path: "/v1/memory/MEMORY", body: { tags: [["a"]] }, param: "tags.0" },
  { method: "PATCH", path: "/v1/memory/MEMORY", body: { metadata: "x" }, param: "metadata" },
  { path: "/v1/memory/search", body: {}, param: "query" },
  { path: "/v1/memory/search", body: { query: null }, param: "query" },
  { path: "/v1/memory/search", body: { query: ["tea"] }, param: "query" },
  { path: "/v1/memory/search", body: { query: "x".repeat(10_001) }, param: "query" },
  ...[0, 51, -1, 5.5, "5"].map((value) => ({ path: "/v1/memory/search", body: { query: "tea", limit: value }, param: "limit" })),
  ...[-0.01, 1.01, "0.5", true].map((value) => ({
    path: "/v1/memory/search",
    body: { query: "tea", threshold: value },
    param: "threshold",
  })),
  { path: "/v1/memory/search", body: { query: "tea", tags: "a" }, param: "tags" },
  { path: "/v1/memory/search", body: { query: "tea", type: "" }, param: "type" },
  { path: "/v1/memory/search", body: { query: "tea", user_id: 5 }, param: "user_id" },
  {
    path: "/v1/memory/search",
    body: { query: "tea", session_id: "none" },
    param: "session_id",
    status: 404,
    code: "session_not_found",
  },
  ...[-1, 21, 1.5, "5"].map((value) => ({ path: "/v1/sessions/SESSION/context", body: { memory_limit: value }, param: "memory_limit" })),
  ...[-1, 51, 1.5, "5"].map((value) => ({ path: "/v1/sessions/SESSION/context", body: { turn_limit: value }, param: "turn_limit" })),
  { path: "/v1/sessions/SESSION/context", body: { query: 5 }, param: "query" },
  { path: "/v1/api_keys", body: { name: "" }, param: "name" },
  { path: "/v1/api_keys", body: { scopes: [] }, param: "scopes" },
  { path: "/v1/api_keys", body: { scopes: ["root"] }, param: "scopes.0" },
  { path: "/v1/api_keys", body: { scopes: "read" }, param: "scopes" },
  { path: "/v1/api_keys", body: { tier: "gold" }, param: "tier" },
  { path: "/v1/api_keys", body: { tier: "enterprise", rate_limit: { per_minute: 0, burst: 1 } }, param: "rate_limit.per_minute" },
  { path: "/v1/api_keys", body: { tier: "enterprise", rate_limit: { per_minute: 1 } }, param: "rate_limit.burst" },
  { path: "/v1/api_keys", body: { rate_limit: { per_minute: 1, burst: 1 } }, param: "rate_limit" },
  { path: "/v1/api_keys", body: { expires_at: "tomorrow" }, param: "expires_at" },
  { path: "/v1/api_keys", body: { expires_at: 1_900_000_000 }, param: "expires_at" },
];

test("a body that is wrong is refused by the name of its field, and nothing changes", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ metadata: { a: 1 } });
  const memory = await cairn.addMemory(session.id, "They like tea.");
  const before = await everything(cairn);
  const answers: (Refusal & { path: string; body: string })[] = [];
  for (const { method = "POST", path, body } of bodies) {
    const text = JSON.stringify(body).replaceAll('"SESSION"', `"${session.id}"`);
    const place = path.replace("SESSION", session.id).replace("MEMORY", memory.id);
    answers.push({ path, body: text.slice(0, 100), ...refusal(await sendText(cairn, method, place, text)) });
  }
  const expected = bodies.map(({ path, param, status = 400, code = "invalid_request" }, i) => {
    return { path, body: answers[i]!.body, status, code, param };
  });
  expect(answers).toEqual(expected);
  expect(await everything(cairn)).toBe(before);
});

const lists = [
  { path: "/v1/sessions", prefix: "sess" },
  { path: "/v1/sessions/SESSION/turns", prefix: "turn" },
  { path: "/v1/memory", prefix: "mem" },
  { path: "/v1/traces", prefix: "trace" },
  { path: "/v1/api_keys", prefix: "key" },
  { path: "/v1/webhooks", prefix: "whk" },
];

for (const { path, prefix } of lists) {
  test(`a limit outside 1 to 100, or that is no plain integer, is refused and not bent: ${path}`, async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession();
    const ask = (limit: string) => cairn.get(`${path.replace("SESSION", id)}?limit=${limit}`);
    for (const limit of [
      "0",
      "-1",
      "101",
      "1000000",
      "9".repeat(400),
      "",
      "5.0",
      "1e1",
      "0x10",
      "+5",
      "%2B5",
      "%205",
      "5%20",
      "five",
      "null",
      "NaN",
      "٣",
      "5,6",
    ]) {
      expect({ limit, ...refusal(await ask(limit)) }).toEqual({ limit, status: 400, code: "invalid_request", param: "limit" });
    }
    for (const limit of ["1", "20", "100", "0100"]) expect((await ask(limit)).status).toBe(200);
  });

  test(`a cursor that is no id of the list's kind is refused: ${path}`, async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession();
    const ask = (cursor: string) => cairn.get(`${path.replace("SESSION", id)}?starting_after=${cursor}`);
    const other = prefix === "sess" ? "mem" : "sess";
    for (const cursor of [
      "",
      "x",
      prefix,
      `${prefix}_`,
      `${prefix}_short`,
      `${unknownId(prefix)}0`,
      unknownId(other),
      "__proto__",
      "%00",
      `${unknownId(prefix)}%0A`,
    ]) {
      expect({ cursor, ...refusal(await ask(cursor)) }).toEqual({ cursor, status: 400, code: "invalid_request", param: "starting_after" });
    }
    expect((await ask(unknownId(prefix))).status).toBe(200);
  });
}

test("a version as cursor is a plain integer", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (const cursor of ["", "-1", "1.0", "x", unknownId("sess")]) {
    const answer = await cairn.get(`/v1/sessions/${id}/versions?starting_after=${cursor}`);
    expect({ cursor, ...refusal(answer) }).toEqual({ cursor, status: 400, code: "invalid_request", param: "starting_after" });
  }
  for (const cursor of ["0", "1", "999999999999999"]) {
    expect((await cairn.get(`/v1/sessions/${id}/versions?starting_after=${cursor}`)).status).toBe(200);
  }
});

const filters: { query: string; param: string; status?: number; code?: string }[] = [
  { query: "/v1/sessions?agent_id=", param: "agent_id" },
  { query: `/v1/sessions?user_id=${"x".repeat(257)}`, param: "user_id" },
  { query: "/v1/sessions/SESSION/turns?order=newest", param: "order" },
  { query: "/v1/sessions/SESSION/turns?order=ASC", param: "order" },
  { query: "/v1/sessions/SESSION/turns?order=", param: "order" },
  { query: "/v1/memory?type=", param: "type" },
  { query: "/v1/memory?tags=", param: "tags" },
  { query: "/v1/memory?tags=,,", param: "tags" },
  { query: `/v1/memory?tags=${Array(65).fill("a").join(",")}`, param: "tags" },
  { query: `/v1/memory?tags=${"x".repeat(129)}`, param: "tags" },
  { query: "/v1/memory?session_id=none", param: "session_id", status: 404, code: "session_not_found" },
  { query: "/v1/memory?session_id=", param: "session_id" },
  { query: "/v1/traces?action=session.renamed", param: "action" },
  { query: "/v1/traces?action=", param: "action" },
  { query: "/v1/traces?user_id=", param: "user_id" },
];

for (const { query, param, status = 400, code = "invalid_request" } of filters) {
  test(`a filter that means nothing is refused: ${query.slice(0, 60)}`, async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession();
    expect(refusal(await cairn.get(query.replace("SESSION", id)))).toEqual({ status, code, param });
  });
}

const noTimes = [
  "",
  "yesterday",
  "2026",
  "2026-05-07",
  "2026-05-07T",
  "2026-05-07 08:00:00",
  "2026-13-01T00:00:00Z",
  "2026-02-29T00:00:00Z",
];
noTimes.push(
  "2026-05-07T25:00:00Z",
  "2026-05-07T08:60:00Z",
  "2026-05-07T08:00:00%2B99:00",
  "1778140800",
  "07.05.2026",
  "2026-05-07T08:00:00X",
);

for (const param of ["created_after", "created_before"]) {
  test(`a time that is none is refused: ${param}`, async () => {
    await using cairn = await startCairn();
    for (const text of noTimes) {
      expect({ text, ...refusal(await cairn.get(`/v1/traces?${param}=${text}`)) }).toEqual({
        text,
        status: 400,
        code: "invalid_request",
        param,
      });
    }
  });
}

test("times far away and offsets are no trouble", async () => {
  await using cairn = await startCairn();
  await cairn.createSession();
  for (const [query, found] of [
    ["created_after=0000-01-01T00:00:00Z", 1],
    ["created_after=9999-12-31T23:59:59.999Z", 0],
    ["created_before=9999-12-31T23:59:59Z", 1],
    ["created_before=0000-01-01T00:00:00Z", 0],
    ["created_after=2026-05-07T09:59:59.999%2B02:00", 1],
    ["created_after=2026-05-07T10:00:00%2B02:00", 0],
    ["created_after=2026-05-07T10:00:00+02:00", 0],
    ["created_before=2026-05-07T08:00:00", 0],
    ["created_before=2026-05-07T08:00:00.001", 1],
  ] as const) {
    const { data } = await cairn.ok(cairn.get(`/v1/traces?action=session.created&${query}`));
    expect({ query, found: data.length }).toEqual({ query, found });
  }
});

test("a null for an optional field is as if it were not there", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: null, initial_state: null, metadata: null, ttl_seconds: null });
  expect(session).toMatchObject({ user_id: null, state: {}, metadata: {}, ttl_expires_at: "2026-05-08T08:00:00.000Z" });
  const memory = await cairn.addMemory(session.id, "tea", { type: null, tags: null, metadata: null, embed: null });
  expect(memory).toMatchObject({ type: "general", tags: [], metadata: {}, vector_available: true });
  const turn = await cairn.addTurn(session.id, "in", "out", { reasoning: null, metadata: null, state_before: null, state_after: null });
  expect(turn).toMatchObject({ metadata: {}, state_before: null, state_after: null });
  expect(Object.keys(turn)).not.toContain("reasoning");
  const changed = await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: null, type: null, tags: null, metadata: null }));
  expect(changed).toEqual(memory);
  expect((await cairn.search("tea", { session_id: null, tags: null, limit: null, threshold: null })).data).toHaveLength(1);
  expect(await cairn.context(session.id, { query: null, memory_limit: null, turn_limit: null })).toMatchObject({
    memories: [{ score: 0 }],
  });
  expect(await cairn.ok(cairn.post(`/v1/sessions/${session.id}/fork`, { version: null }))).toMatchObject({ state: {} });
  expect(await cairn.setState(session.id, { a: 1 }, { reasoning: null, expected_version: null })).toMatchObject({ state_version: 1 });
});

test("unknown fields are ignored, and none of the service's own can be set", async () => {
  await using cairn = await startCairn();
  const own = {
    object: "x",
    id: unknownId("sess"),
    created_at: "2020-01-01T00:00:00.000Z",
    updated_at: "2020-01-01T00:00:00.000Z",
    state: { forged: true },
    state_version: 7,
    memory_count: 7,
    turn_count: 7,
    ttl_expires_at: "2036-01-01T00:00:00.000Z",
    turn_number: 7,
    embedding_id: unknownId("emb"),
    vector_available: false,
    userId: "forged",
  };
  const session = await cairn.createSession(own);
  expect(session).toMatchObject({ object: "session", user_id: null, state: {}, state_version: 0, memory_count: 0, turn_count: 0 });
  expect(session).toMatchObject({ created_at: "2026-05-07T08:00:00.000Z", ttl_expires_at: "2026-05-08T08:00:00.000Z" });
  expect(session.id).not.toBe(own.id);
  const turn = await cairn.addTurn(session.id, "in", "out", { ...own, input: { type: "text", content: "in", forged: true } });
  expect(turn).toMatchObject({ object: "turn", turn_number: 1, created_at: "2026-05-07T08:00:00.000Z" });
  expect(turn.input).toEqual({ type: "text", content: "in" });
  const memory = await cairn.addMemory(session.id, "tea", own);
  expect(memory).toMatchObject({ object: "memory", vector_available: true, created_at: "2026-05-07T08:00:00.000Z" });
  expect([memory.id, memory.embedding_id]).not.toContain(own.embedding_id);
  expect(await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { ...own, session_id: unknownId("sess") }))).toEqual(memory);
  expect(await cairn.ok(cairn.get("/v1/sessions?page=2&offset=5&constructor=1"))).toMatchObject({ data: [{ id: session.id }] });
});

test("a caller's JSON nests up to 64 levels, wherever it stands", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const memory = await cairn.addMemory(id, "tea");
  const places: { field: string; method?: string; path: string; body?: object }[] = [
    { field: "initial_state", path: "/v1/sessions", body: { agent_id: "a" } },
    { field: "metadata", path: "/v1/sessions", body: { agent_id: "a" } },
    { field: "metadata", method: "PATCH", path: `/v1/sessions/${id}` },
    { field: "state", path: `/v1/sessions/${id}/state` },
    { field: "metadata", path: `/v1/sessions/${id}/turns`, body: TURN },
    { field: "state_before", path: `/v1/sessions/${id}/turns`, body: TURN },
    { field: "state_after", path: `/v1/sessions/${id}/turns`, body: TURN },
    { field: "metadata", path: "/v1/memory", body: { session_id: id, content: "tea" } },
    { field: "metadata", method: "PATCH", path: `/v1/memory/${memory.id}` },
  ];
  for (const { field, method = "POST", path, body } of places) {
    const deep = await cairn.request(method, path, { body: { ...body, [field]: nested(64) } });
    expect({ field, path, body: deep.body }).toMatchObject({
      field,
      path,
      body: { [field === "initial_state" ? "state" : field]: nested(64) },
    });
    const before = await everything(cairn);
    for (const levels of [65, 100, 5_000]) {
      const deeper = await cairn.request(method, path, { body: { ...body, [field]: nested(levels) } });
      expect({ path, ...refusal(deeper) }).toEqual({ path, status: 400, code: "invalid_request", param: field });
    }
    expect(await everything(cairn)).toBe(before);
  }
});

test("a hundred thousand brackets are refused by the name of their field", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const brackets = "[".repeat(100_000) + "]".repeat(100_000);
  for (const [path, field, rest] of [
    ["/v1/sessions", "metadata", '"agent_id":"a",'],
    [`/v1/sessions/${id}/state`, "state", ""],
    [`/v1/sessions/${id}/turns`, "input", ""],
    ["/v1/memory", "tags", `"session_id":"${id}",`],
    ["/v1/memory/search", "anything", '"query":"tea",'],
  ] as const) {
    const answer = await sendText(cairn, "POST", path, `{${rest}"${field}":${brackets}}`);
    expect({ path, ...refusal(answer) }).toEqual({ path, status: 400, code: "invalid_request", param: field });
  }
  expect(refusal(await sendText(cairn, "POST", "/v1/sessions", brackets))).toEqual({ status: 400, code: "invalid_request" });
});

test("metadata is at most 64 KiB of JSON, counted in bytes, also after merging", async () => {
  await using cairn = await startCairn();
  const frame = '{"text":""}'.length;
  const fits = { text: "x".repeat(65_536 - frame) };
  const session = await cairn.createSession({ metadata: fits });
  expect(session.metadata).toEqual(fits);
  expect(await cairn.createSession({ metadata: { text: "é".repeat((65_536 - frame - 1) / 2) } })).toMatchObject({ state_version: 0 });
  expect(
    refusal(await cairn.post("/v1/sessions", { agent_id: "a", metadata: { text: "é".repeat((65_536 - frame + 1) / 2) } })),
  ).toMatchObject({ param: "metadata" });
  expect(refusal(await cairn.patch(`/v1/sessions/${session.id}`, { metadata: { more: 1 } }))).toEqual({
    status: 400,
    code: "invalid_request",
    param: "metadata",
  });
  expect((await cairn.session(session.id)).metadata).toEqual(fits);
  expect((await cairn.ok(cairn.patch(`/v1/sessions/${session.id}`, { metadata: { text: null, more: 1 } }))).metadata).toEqual({ more: 1 });
  const memory = await cairn.addMemory(session.id, "tea", { metadata: fits });
  expect(refusal(await cairn.patch(`/v1/memory/${memory.id}`, { metadata: { more: 1 } }))).toMatchObject({
    status: 400,
    param: "metadata",
  });
});

test("lengths count characters as people do: an emoji is one", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ agent_id: "😀".repeat(256), user_id: "é".repeat(256) });
  expect(session.agent_id).toBe("😀".repeat(256));
  const memory = await cairn.addMemory(session.id, "😀".repeat(10_000), { type: "😀".repeat(64), tags: ["😀".repeat(128)] });
  expect(memory).toMatchObject({ content: "😀".repeat(10_000), type: "😀".repeat(64), tags: ["😀".repeat(128)] });
  expect((await cairn.traces(session.id, "memory.created"))[0].details.content_preview).toBe("😀".repeat(100));
  const tags = Array.from({ length: 64 }, (_, i) => `tag ${i}`);
  expect((await cairn.addMemory(session.id, "tea", { tags })).tags).toEqual(tags);
  expect(await cairn.ok(cairn.get(`/v1/sessions?agent_id=${encodeURIComponent("😀".repeat(256))}`))).toMatchObject({
    data: [{ id: session.id }],
  });
});

/** Texts that lose something in most ways of keeping them. */
const TEXTS = {
  NUL: "a\u0000b",
  "all control characters": Array.from({ length: 32 }, (_, i) => String.fromCharCode(i)).join(""),
  "lone surrogates": "\ud800 \udc00 \udfff",
  "a pair the wrong way round": "\ude00\ud83d",
  "line separators": "\u2028\u2029\u0085",
  "quotes and backslashes": "\"'\\\\u0000",
  "byte order mark": "\ufeffx",
  "what is no character": "\uffff\ufffe\u{10ffff}",
  "right to left": "\u202eabc\u0627",
  "two ways to write é": "é e\u0301",
  "a line feed at its end": "x\n",
  markup: "<script>alert('x')</script>",
  template: "${x} {{x}} %s",
  __proto__: "__proto__",
};

for (const [name, text] of Object.entries(TEXTS)) {
  test(`text comes back as it went in: ${name}`, async () => {
    await using cairn = await startCairn();
    const session = await cairn.createSession({
      agent_id: text,
      user_id: text,
      initial_state: { [text]: text },
      metadata: { [text]: [text] },
    });
    expect(await cairn.session(session.id)).toMatchObject({
      agent_id: text,
      user_id: text,
      state: { [text]: text },
      metadata: { [text]: [text] },
    });
    const turn = await cairn.addTurn(session.id, text, text, {
      reasoning: text,
      metadata: { [text]: text },
      state_after: { [text]: text },
    });
    expect(await cairn.ok(cairn.get(`/v1/sessions/${session.id}/turns/${turn.id}`))).toEqual(turn);
    expect(turn).toMatchObject({ input: { content: text }, output: { content: text }, reasoning: text, state_after: { [text]: text } });
    const memory = await cairn.addMemory(session.id, text, { type: text, tags: [text], metadata: { [text]: text } });
    expect(await cairn.ok(cairn.get(`/v1/memory/${memory.id}`))).toEqual(memory);
    expect(memory).toMatchObject({ content: text, type: text, tags: [text], metadata: { [text]: text } });
    expect(await cairn.search(text, { user_id: text, type: text, tags: [text], threshold: 0 })).toMatchObject({ query: text });
    const [trace] = await cairn.traces(session.id, "session.created");
    expect(trace).toMatchObject({ user_id: text, details: { agent_id: text, initial_state: { [text]: text } } });
    // A query is UTF-8, which has no lone surrogates.
    if (text.isWellFormed()) {
      for (const list of ["/v1/sessions", "/v1/memory", "/v1/traces"]) {
        expect((await cairn.ok(cairn.get(`${list}?user_id=${encodeURIComponent(text)}`))).data.length).toBeGreaterThan(0);
      }
    }
  });
}

const NAMES = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "then",
  "toJSON",
  "length",
  "__defineGetter__",
];
const ODD_OBJECT = `{${NAMES.map((name) => `"${name}":{"${name}":{"polluted":true}}`).join(",")}}`;

test("keys that mean something to JavaScript are keys like any other: they come back and touch nothing", async () => {
  await using cairn = await startCairn();
  const text = async (answer: Promise<any>) => JSON.stringify(await cairn.ok(answer));
  const created = await cairn.ok(
    sendText(cairn, "POST", "/v1/sessions", `{"agent_id":"a","initial_state":${ODD_OBJECT},"metadata":${ODD_OBJECT}}`),
  );
  const session = `/v1/sessions/${created.id}`;
  expect(JSON.stringify([created.state, created.metadata])).toBe(`[${ODD_OBJECT},${ODD_OBJECT}]`);
  expect(await text(cairn.get(session))).toContain(`"state":${ODD_OBJECT},`);

  expect(await text(sendText(cairn, "POST", `${session}/state`, `{"state":{"__proto__":{"n":1}}}`))).toContain(
    '"state":{"__proto__":{"n":1}},',
  );
  const [update] = await cairn.traces(created.id, "state.updated");
  expect(JSON.stringify(update.details.state_diff.modified)).toBe('{"__proto__":{"from":{"__proto__":{"polluted":true}},"to":{"n":1}}}');
  expect(Object.keys(update.details.state_diff.removed)).toEqual(NAMES.slice(1));
  expect(await text(cairn.post(`${session}/rollback`, { version: 0 }))).toContain(`"state":${ODD_OBJECT},`);
  expect(await text(cairn.post(`${session}/fork`))).toContain(`"state":${ODD_OBJECT},`);

  const patched = await cairn.ok(sendText(cairn, "PATCH", session, '{"metadata":{"__proto__":null,"constructor":1}}'));
  expect(Object.keys(patched.metadata)).toEqual(NAMES.slice(1));
  expect(patched.metadata.constructor).toBe(1);

  const turn = await text(
    sendText(
      cairn,
      "POST",
      `${session}/turns`,
      `{"input":{"type":"text","content":"in","__proto__":{"type":"audio"}},"output":{"type":"text","content":"out"},"metadata":${ODD_OBJECT},"state_before":${ODD_OBJECT},"state_after":${ODD_OBJECT}}`,
    ),
  );
  expect(turn).toContain(`"metadata":${ODD_OBJECT},"state_before":${ODD_OBJECT},"state_after":${ODD_OBJECT}}`);
  expect(turn).toContain('"input":{"type":"text","content":"in"}');

  const memory = await cairn.ok(
    sendText(cairn, "POST", "/v1/memory", `{"session_id":"${created.id}","content":"tea","metadata":${ODD_OBJECT}}`),
  );
  expect(JSON.stringify(memory.metadata)).toBe(ODD_OBJECT);
  await cairn.ok(sendText(cairn, "PATCH", `/v1/memory/${memory.id}`, '{"metadata":{"__proto__":2}}'));
  expect(await text(cairn.get(`/v1/memory/${memory.id}`))).toContain('"metadata":{"__proto__":2,"constructor":');

  expect([({} as any).polluted, ({} as any).n, (Object as any).polluted, ([] as any).polluted]).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

test("fields are only what stands in the body itself, never what an object inherits", async () => {
  await using cairn = await startCairn();
  for (const body of ['{"__proto__":{"agent_id":"a"}}', '{"constructor":{"prototype":{"agent_id":"a"}}}']) {
    expect(refusal(await sendText(cairn, "POST", "/v1/sessions", body))).toEqual({
      status: 400,
      code: "invalid_request",
      param: "agent_id",
    });
  }
  const session = await cairn.ok(
    sendText(cairn, "POST", "/v1/sessions", '{"agent_id":"a","__proto__":{"user_id":"forged","ttl_seconds":1},"metadata":null}'),
  );
  expect(session).toMatchObject({ user_id: null, ttl_expires_at: "2026-05-08T08:00:00.000Z", metadata: {} });
});

test("numbers are kept as far as JSON can, and refused beyond it", async () => {
  await using cairn = await startCairn();
  const kept = '{"state":{"n":[0,0,1e+300,5e-324,1.7976931348623157e+308,9007199254740991,-0.1,1e+21]}}';
  const { id } = await cairn.createSession();
  const sent = kept.replace("[0,0,", "[0,-0,");
  expect(JSON.stringify((await cairn.ok(sendText(cairn, "POST", `/v1/sessions/${id}/state`, sent))).state)).toBe(
    kept.slice('{"state":'.length, -1),
  );
  for (const number of ["1e999", "-1e309", "9".repeat(400), `${"9".repeat(220)}e99`]) {
    const answer = await sendText(cairn, "POST", `/v1/sessions/${id}/state`, `{"state":{"n":[{"m":${number}}]}}`);
    expect({ number, ...refusal(answer) }).toEqual({ number, status: 400, code: "invalid_request", param: "state.n.0.m" });
  }
  expect(refusal(await sendText(cairn, "POST", "/v1/sessions", '{"agent_id":"a","ttl_seconds":1e999}'))).toMatchObject({
    param: "ttl_seconds",
  });
  expect(await cairn.ok(sendText(cairn, "POST", "/v1/sessions", '{"agent_id":"a","ttl_seconds":6e1}'))).toMatchObject({
    ttl_expires_at: "2026-05-07T08:01:00.000Z",
  });
});

test("bodies that are no text, or that a lenient reader would take, are refused or read in one way", async () => {
  await using cairn = await startCairn();
  const send = (raw: Uint8Array<ArrayBuffer>) =>
    cairn.request("POST", "/v1/sessions", { raw, headers: { "content-type": "application/json" } });
  const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "latin1"));
  for (const raw of [
    bytes('{"agent_id":"\xff"}'),
    bytes('{"agent_id":"\xc0\x80"}'),
    bytes('{"agent_id":"\xed\xa0\x80"}'),
    bytes("\xff\xfe{\0}\0"),
    bytes("\0"),
    bytes("{'agent_id':'a'}"),
    bytes('{"agent_id":"a"}x'),
    bytes('{"agent_id":"a",}'),
    bytes('/**/{"agent_id":"a"}'),
  ]) {
    expect(refusal(await send(raw))).toEqual({ status: 400, code: "invalid_request" });
  }
  expect(await cairn.ok(send(bytes('\xef\xbb\xbf{"agent_id":"a"}')))).toMatchObject({ agent_id: "a" });
  expect(await cairn.ok(send(bytes('{"agent_id":"first","agent_id":"last"}')))).toMatchObject({ agent_id: "last" });
  expect((await cairn.get("/v1/sessions")).body.data).toHaveLength(2);
});

test("a whole number that would be kept as another one is refused by its path, wherever a caller's own JSON stands", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const memory = await cairn.addMemory(id, "tea");
  const before = await everything(cairn);
  const own = '{"order":{"ids":[1,1234567890123456789]}}';
  const turn = JSON.stringify(TURN).slice(0, -1);
  const cases = [
    { method: "POST", path: "/v1/sessions", json: `{"agent_id":"a","initial_state":${own}}`, field: "initial_state" },
    { method: "POST", path: "/v1/sessions", json: `{"agent_id":"a","metadata":${own}}`, field: "metadata" },
    { method: "PATCH", path: `/v1/sessions/${id}`, json: `{"metadata":${own}}`, field: "metadata" },
    { method: "POST", path: `/v1/sessions/${id}/state`, json: `{"state":${own}}`, field: "state" },
    { method: "POST", path: `/v1/sessions/${id}/turns`, json: `${turn},"metadata":${own}}`, field: "metadata" },
    { method: "POST", path: `/v1/sessions/${id}/turns`, json: `${turn},"state_before":${own}}`, field: "state_before" },
    { method: "POST", path: "/v1/memory", json: `{"session_id":"${id}","content":"x","metadata":${own}}`, field: "metadata" },
    { method: "PATCH", path: `/v1/memory/${memory.id}`, json: `{"metadata":${own}}`, field: "metadata" },
  ];
  for (const { method, path, json, field } of cases) {
    const answer = await sendText(cairn, method, path, json);
    expect(refusal(answer)).toEqual({ status: 400, code: "invalid_request", param: `${field}.order.ids.1` });
  }
  expect(await everything(cairn)).toBe(before);

  const kept = '{"order":{"ids":[9007199254740991,"1234567890123456789",0.1]}}';
  const answer = await sendText(cairn, "POST", `/v1/sessions/${id}/state`, `{"state":${kept}}`);
  expect(JSON.stringify(answer.body.state)).toBe(kept);
});
