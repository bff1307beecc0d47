import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { idsOf, neverGiven, pagesOf, refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";

test("a key made without fields reads and writes, is of the tier free and never ends", async () => {
  await using cairn = await startCairn();
  const made = await cairn.post("/v1/api_keys", {});
  expect(made.status).toBe(201);
  expect(made.body).toEqual({
    object: "api_key",
    id: expect.stringMatching(/^key_[0-9A-Za-z]{12}$/),
    name: null,
    prefix: made.body.key.slice(0, 8),
    key: expect.stringMatching(/^crn_[0-9A-Za-z]{24}$/),
    scopes: ["read", "write"],
    tier: "free",
    rate_limit: { per_minute: 100, burst: 200 },
    created_at: "2026-05-07T08:00:00.000Z",
    expires_at: null,
  });
});

test("a key keeps every field it is made with; the key itself is in that answer only", async () => {
  await using cairn = await startCairn();
  const { key, ...shown } = await cairn.ok(
    cairn.post("/v1/api_keys", {
      name: "support agent",
      scopes: ["read"],
      tier: "enterprise",
      rate_limit: { per_minute: 10, burst: 20 },
      expires_at: "2026-05-08T10:00:00+02:00",
    }),
  );
  expect(shown).toMatchObject({
    name: "support agent",
    scopes: ["read"],
    tier: "enterprise",
    rate_limit: { per_minute: 10, burst: 20 },
    expires_at: "2026-05-08T08:00:00.000Z",
  });
  expect(key).toStartWith(shown.prefix);
  const read = await cairn.get(`/v1/api_keys/${shown.id}`);
  expect([read.status, read.body]).toEqual([200, shown]);
  expect((await cairn.get("/v1/api_keys")).body.data[0]).toEqual(shown);
});

test("a tier brings its rate limit; only an enterprise key may have one of its own", async () => {
  await using cairn = await startCairn();
  const limitOf = async (body: unknown) => (await cairn.ok(cairn.post("/v1/api_keys", body))).rate_limit;
  expect(await limitOf({ tier: "free" })).toEqual({ per_minute: 100, burst: 200 });
  expect(await limitOf({ tier: "pro" })).toEqual({ per_minute: 1_000, burst: 2_000 });
  expect(await limitOf({ tier: "enterprise" })).toEqual({ per_minute: 60_000, burst: 120_000 });
  for (const tier of ["free", "pro", undefined]) {
    const answer = await cairn.post("/v1/api_keys", { tier, rate_limit: { per_minute: 5, burst: 5 } });
    expect([tier, refusal(answer)]).toEqual([tier, { status: 400, code: "invalid_request", param: "rate_limit" }]);
  }
});

const REFUSED = [
  { name: "an unknown scope", body: { scopes: ["read", "delete"] }, param: "scopes.1" },
  { name: "no scope at all", body: { scopes: [] }, param: "scopes" },
  { name: "scopes as text", body: { scopes: "read" }, param: "scopes" },
  { name: "an unknown tier", body: { tier: "gold" }, param: "tier" },
  { name: "an empty name", body: { name: "" }, param: "name" },
  { name: "a name of 257 characters", body: { name: "x".repeat(257) }, param: "name" },
  { name: "expires_at without a time", body: { expires_at: "2026-05-08" }, param: "expires_at" },
  { name: "expires_at as a number", body: { expires_at: 1_778_227_200 }, param: "expires_at" },
  {
    name: "a rate limit of nothing",
    body: { tier: "enterprise", rate_limit: { per_minute: 0, burst: 1 } },
    param: "rate_limit.per_minute",
  },
  { name: "a rate limit without a burst", body: { tier: "enterprise", rate_limit: { per_minute: 1 } }, param: "rate_limit.burst" },
];

test("a key that cannot be is refused with the field that is wrong, and none is made", async () => {
  await using cairn = await startCairn();
  const outcomes = [];
  for (const { name, body } of REFUSED) outcomes.push({ name, ...refusal(await cairn.post("/v1/api_keys", body)) });
  expect(outcomes).toEqual(REFUSED.map(({ name, param }) => ({ name, status: 400, code: "invalid_request", param })));
  expect((await cairn.get("/v1/api_keys")).body.data).toHaveLength(1);
});

test("keys are listed newest first, in pages; the first one is an enterprise key with the scope admin", async () => {
  await using cairn = await startCairn();
  const made = [];
  for (let i = 0; i < 24; i++) made.push((await cairn.ok(cairn.post("/v1/api_keys", { name: `key ${i}` }))).id as string);
  const pages = await pagesOf(cairn, "/v1/api_keys");
  expect(pages.map(({ object, data, has_more }) => [object, data.length, has_more])).toEqual([
    ["list", 20, true],
    ["list", 5, false],
  ]);
  const listed = pages.flatMap(({ data }) => data);
  expect(idsOf(listed).slice(0, 24)).toEqual(made.toReversed());
  expect(listed[24]).toMatchObject({
    name: "first key",
    prefix: cairn.key.slice(0, 8),
    scopes: ["admin"],
    tier: "enterprise",
    rate_limit: { per_minute: 60_000, burst: 120_000 },
    expires_at: null,
  });
  expect((await cairn.get("/v1/api_keys?limit=100")).body.data).toEqual(listed);
  // A cursor goes on working when its key has been revoked.
  await cairn.ok(cairn.delete(`/v1/api_keys/${made[1]}`));
  expect(idsOf((await cairn.get(`/v1/api_keys?limit=1&starting_after=${made[1]}`)).body.data)).toEqual([made[0] as string]);
  for (const [query, param] of [
    ["limit=101", "limit"],
    ["starting_after=key_short", "starting_after"],
  ]) {
    const answer = refusal(await cairn.get(`/v1/api_keys?${query}`));
    expect([query, answer]).toEqual([query, { status: 400, code: "invalid_request", param }]);
  }
});

test("a key that is not there is 404 resource_not_found", async () => {
  await using cairn = await startCairn();
  for (const id of [neverGiven("key"), "key_short", "sess_0VQk3aB4x1Zq", "🫖"]) {
    for (const method of ["GET", "DELETE"]) {
      const answer = refusal(await cairn.request(method, `/v1/api_keys/${id}`));
      expect([method, id, answer]).toEqual([method, id, { status: 404, code: "resource_not_found", param: "key_id" }]);
    }
  }
});

/** One request to every endpoint, on records that are there, and the scope that it needs. */
async function requestsOf(cairn: Awaited<ReturnType<typeof startCairn>>) {
  const session = await cairn.createSession();
  const fodder = await cairn.createSession();
  const turn = await cairn.addTurn(session.id);
  const memory = await cairn.addMemory(session.id, "Likes tea.");
  const memoryFodder = await cairn.addMemory(session.id, "Likes coffee.");
  const [trace] = await cairn.traces(session.id);
  const key = await cairn.ok(cairn.post("/v1/api_keys", {}));
  const keyFodder = await cairn.ok(cairn.post("/v1/api_keys", {}));
  const path = `/v1/sessions/${session.id}`;
  const requests: { scope: "read" | "write" | "admin"; method: string; path: string; body?: unknown }[] = [
    { scope: "read", method: "GET", path: "/v1/sessions" },
    { scope: "read", method: "GET", path },
    { scope: "read", method: "GET", path: `${path}/versions` },
    { scope: "read", method: "GET", path: `${path}/versions/0` },
    { scope: "read", method: "GET", path: `${path}/turns` },
    { scope: "read", method: "GET", path: `${path}/turns/${turn.id}` },
    { scope: "read", method: "POST", path: `${path}/context`, body: {} },
    { scope: "read", method: "GET", path: "/v1/memory" },
    { scope: "read", method: "GET", path: `/v1/memory/${memory.id}` },
    { scope: "read", method: "POST", path: "/v1/memory/search", body: { query: "tea" } },
    { scope: "read", method: "GET", path: "/v1/traces" },
    { scope: "read", method: "GET", path: `/v1/traces/${trace.id}` },
    { scope: "write", method: "POST", path: "/v1/sessions", body: { agent_id: "bot" } },
    { scope: "write", method: "PATCH", path, body: {} },
    { scope: "write", method: "POST", path: `${path}/state`, body: { state: {} } },
    { scope: "write", method: "POST", path: `${path}/rollback`, body: { version: 0 } },
    { scope: "write", method: "POST", path: `${path}/fork`, body: {} },
    {
      scope: "write",
      method: "POST",
      path: `${path}/turns`,
      body: { input: { type: "text", content: "" }, output: { type: "text", content: "" } },
    },
    { scope: "write", method: "POST", path: "/v1/memory", body: { session_id: session.id, content: "Likes milk." } },
    { scope: "write", method: "PATCH", path: `/v1/memory/${memory.id}`, body: {} },
    { scope: "write", method: "DELETE", path: `/v1/memory/${memoryFodder.id}` },
    { scope: "write", method: "DELETE", path: `/v1/sessions/${fodder.id}` },
    { scope: "admin", method: "POST", path: "/v1/api_keys", body: {} },
    { scope: "admin", method: "GET", path: "/v1/api_keys" },
    { scope: "admin", method: "GET", path: `/v1/api_keys/${key.id}` },
    { scope: "admin", method: "DELETE", path: `/v1/api_keys/${keyFodder.id}` },
  ];
  return requests;
}

const SCOPES = [
  { scopes: ["read"], may: ["read"] },
  { scopes: ["write"], may: ["write"] },
  { scopes: ["read", "write"], may: ["read", "write"] },
  { scopes: ["admin"], may: ["read", "write", "admin"] },
] as const;

for (const { scopes, may } of SCOPES) {
  test(`a key with the scope ${scopes.join(" and ")} may do what needs ${may.join(", ")}, and all else is 403 permission_denied`, async () => {
    await using cairn = await startCairn();
    const requests = await requestsOf(cairn);
    const key = await cairn.newKey({ scopes });
    for (const { scope, method, path, body } of requests) {
      const { status, body: answer } = await cairn.request(method, path, { body, key });
      const outcome = status < 300 ? "may" : `${status} ${answer.error.code}`;
      expect([method, path, outcome]).toEqual([method, path, may.some((own) => own === scope) ? "may" : "403 permission_denied"]);
    }
  });
}

test("a refused request changes nothing, and what it needs is checked before what it says", async () => {
  await using cairn = await startCairn();
  const reader = await cairn.newKey({ scopes: ["read"] });
  const { id } = await cairn.createSession();
  const before = await cairn.session(id);
  for (const [method, path, body] of [
    ["POST", `/v1/sessions/${id}/state`, { state: { step: 1 } }],
    ["POST", `/v1/sessions/${id}/state`, {}],
    ["POST", `/v1/sessions/${neverGiven("sess")}/state`, { state: {} }],
    ["DELETE", `/v1/sessions/${id}`, undefined],
    ["POST", "/v1/api_keys", { scopes: ["admin"] }],
  ] as const) {
    const answer = await cairn.request(method, path, { body, key: reader });
    expect([method, path, answer.status, answer.body.error]).toEqual([
      method,
      path,
      403,
      {
        code: "permission_denied",
        message: `This needs a key with the scope ${path === "/v1/api_keys" ? "admin" : "write"}; this one has read.`,
        type: "permission_error",
        request_id: expect.stringMatching(/^req_/),
      },
    ]);
  }
  expect(await cairn.session(id)).toEqual(before);
  expect((await cairn.get("/v1/api_keys")).body.data).toHaveLength(2);
});

test("all keys see the same records", async () => {
  await using cairn = await startCairn();
  const writer = await cairn.newKey({ scopes: ["write"], tier: "free" });
  const reader = await cairn.newKey({ scopes: ["read"], tier: "pro" });
  const made = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { key: writer }));
  expect((await cairn.get(`/v1/sessions/${made.id}`, { key: reader })).body).toEqual(made);
});

test("from the moment a key is revoked no request with it passes, after a restart too", async () => {
  await using cairn = await startCairn();
  const { id, key } = await cairn.ok(cairn.post("/v1/api_keys", {}));
  expect((await cairn.get("/v1/sessions", { key })).status).toBe(200);
  const revoked = await cairn.delete(`/v1/api_keys/${id}`);
  expect([revoked.status, revoked.body]).toEqual([200, { object: "api_key", id, deleted: true }]);
  const expectRefused = async () =>
    expect(refusal(await cairn.get("/v1/sessions", { key }))).toEqual({ status: 401, code: "authentication_failed" });
  await expectRefused();
  expect((await cairn.get(`/v1/api_keys/${id}`)).status).toBe(404);
  expect(idsOf((await cairn.get("/v1/api_keys")).body.data)).not.toContain(id);
  await cairn.restart();
  await expectRefused();
  expect((await cairn.get("/v1/sessions")).status).toBe(200);
});

test("a key with an end works until that moment and not from it on", async () => {
  await using cairn = await startCairn();
  const { id, key } = await cairn.ok(cairn.post("/v1/api_keys", { expires_at: "2026-05-07T08:01:00Z" }));
  cairn.clock.advance({ seconds: 60, ms: -1 });
  expect((await cairn.get("/v1/sessions", { key })).status).toBe(200);
  cairn.clock.advance({ ms: 1 });
  expect(refusal(await cairn.get("/v1/sessions", { key }))).toEqual({ status: 401, code: "authentication_failed" });
  expect((await cairn.get(`/v1/api_keys/${id}`)).body).toMatchObject({ id, expires_at: "2026-05-07T08:01:00.000Z" });
});

test("a replay of the request that made a key answers the same key without its secret", async () => {
  await using cairn = await startCairn();
  const headers = { "idempotency-key": "make-it-once" };
  const { key, ...shown } = await cairn.ok(cairn.post("/v1/api_keys", { name: "agent" }, { headers }));
  const replay = await cairn.post("/v1/api_keys", { name: "agent" }, { headers });
  expect([replay.status, replay.headers.get("idempotency-replayed"), replay.body]).toEqual([201, "true", shown]);
  expect((await cairn.get("/v1/api_keys")).body.data).toHaveLength(2);
  expect((await cairn.get("/v1/sessions", { key })).status).toBe(200);
});

test("no key stands in full in any file of the data directory or line of the log, whatever it was used for", async () => {
  await using cairn = await startCairn();
  const headers = { "idempotency-key": "make-it-once" };
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", {}, { headers }));
  const { id } = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { key }));
  await cairn.ok(cairn.get(`/v1/sessions/${id}`, { headers: { authorization: `Bearer ${key}` }, key: null }));
  await cairn.get(`/v1/sessions?api_key=${key}`, { key: null });
  await cairn.close();
  const files = readdirSync(cairn.directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.length).toBeGreaterThan(1);
  // The prefix is there, so what is searched is what is stored.
  const found = (text: string) =>
    files.filter((file) => readFileSync(join(file.parentPath, file.name)).includes(text)).map(({ name }) => name);
  expect(found(key.slice(0, 8))).toContain("data.mdb");
  for (const secret of [key, key.slice(4), cairn.key, cairn.key.slice(4)]) expect(found(secret)).toEqual([]);
  expect(cairn.logged.filter((line) => line.includes(key.slice(8)) || line.includes(cairn.key.slice(8)))).toEqual([]);
  await cairn.open();
});
