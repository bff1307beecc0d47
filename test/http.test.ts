import { expect, spyOn, test } from "bun:test";
import { endpointsOf } from "../src/server/app.ts";
import { ApiError, ERRORS } from "../src/lib/errors.ts";
import { refusal } from "./support/answers.ts";
import { startCairn, type Answer, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { isOnPostgres } from "./support/stores.ts";

const failing = (cairn: Cairn, error: Error) => spyOn(cairn.service.store, "commit").mockRejectedValue(error);

/** Every kind of answer. */
const ANSWERS: { status: number; code?: string; param?: string; ask: (cairn: Cairn, sessionId: string) => Promise<Answer> }[] = [
  { status: 200, ask: (cairn, id) => cairn.get(`/v1/sessions/${id}`) },
  { status: 200, ask: (cairn) => cairn.get("/health") },
  { status: 200, ask: (cairn, id) => cairn.request("HEAD", `/v1/sessions/${id}`) },
  { status: 201, ask: (cairn) => cairn.post("/v1/sessions", { agent_id: "<script>alert(1)</script>" }) },
  { status: 400, code: "invalid_request", param: "agent_id", ask: (cairn) => cairn.post("/v1/sessions", {}) },
  { status: 401, code: "authentication_failed", ask: (cairn) => cairn.get("/v1/sessions", { key: null }) },
  {
    status: 403,
    code: "permission_denied",
    ask: async (cairn) => cairn.get("/v1/api_keys", { key: await cairn.newKey({ scopes: ["read"] }) }),
  },
  {
    status: 403,
    code: "permission_denied",
    param: "Host",
    ask: (cairn) => cairn.get("/v1/sessions", { headers: { host: "evil.example" } }),
  },
  { status: 404, code: "resource_not_found", ask: (cairn) => cairn.get("/v1/<script>alert(1)</script>") },
  { status: 404, code: "session_not_found", param: "session_id", ask: (cairn) => cairn.get("/v1/sessions/none") },
  { status: 404, code: "turn_not_found", param: "turn_id", ask: (cairn, id) => cairn.get(`/v1/sessions/${id}/turns/none`) },
  { status: 404, code: "memory_not_found", param: "memory_id", ask: (cairn) => cairn.get("/v1/memory/none") },
  { status: 404, code: "trace_not_found", param: "trace_id", ask: (cairn) => cairn.get("/v1/traces/none") },
  {
    status: 404,
    code: "version_not_found",
    param: "version",
    ask: (cairn, id) => cairn.post(`/v1/sessions/${id}/rollback`, { version: 7 }),
  },
  { status: 405, code: "invalid_request", ask: (cairn) => cairn.request("PUT", "/v1/sessions") },
  { status: 405, code: "invalid_request", ask: (cairn) => cairn.post("/health") },
  {
    status: 408,
    code: "request_timeout",
    ask: async (cairn) => {
      const answer = cairn.request("POST", "/v1/sessions", { raw: new ReadableStream() });
      cairn.clock.advance({ seconds: 60 });
      await cairn.runTaskOnce("deadlines of request bodies");
      return await answer;
    },
  },
  {
    status: 409,
    code: "already_exists",
    param: "external_id",
    ask: async (cairn) => {
      await cairn.createSession({ external_id: "thread-1" });
      return cairn.post("/v1/sessions", { agent_id: "agent", external_id: "thread-1" });
    },
  },
  {
    status: 409,
    code: "version_conflict",
    param: "expected_version",
    ask: (cairn, id) => cairn.post(`/v1/sessions/${id}/state`, { state: {}, expected_version: 1 }),
  },
  { status: 413, code: "payload_too_large", ask: (cairn) => cairn.post("/v1/sessions", { agent_id: "x".repeat(1_048_576) }) },
  {
    status: 413,
    code: "content_too_large",
    param: "content",
    ask: (cairn, id) => cairn.post("/v1/memory", { session_id: id, content: "x".repeat(10_001) }),
  },
  {
    status: 429,
    code: "rate_limit_exceeded",
    ask: async (cairn) => {
      const key = await cairn.newKey({ rateLimit: { perMinute: 1, burst: 1 } });
      await cairn.get("/v1/sessions", { key });
      return cairn.get("/v1/sessions", { key });
    },
  },
  {
    status: 500,
    code: "internal_error",
    ask: async (cairn) => {
      using _ = failing(cairn, new TypeError("a fault of ours"));
      return await cairn.post("/v1/sessions", { agent_id: "a" });
    },
  },
  {
    status: 503,
    code: "service_unavailable",
    ask: async (cairn) => {
      using _ = failing(cairn, new ApiError("service_unavailable", "The disk is full."));
      return await cairn.post("/v1/sessions", { agent_id: "a" });
    },
  },
];

test("every error has its case", () => {
  const codes = new Set([...ANSWERS.flatMap(({ code = [] }) => code), "method_not_allowed"]);
  expect([...codes].toSorted()).toEqual(Object.keys(ERRORS).toSorted());
});

test("every answer is JSON that nobody may keep or take for anything else, with a request id and what is left of the rate limit", async () => {
  // With a database the body is read once the key was: `sockets.test.ts` has bodies that do not come.
  for (const { status, code, param, ask } of isOnPostgres ? ANSWERS.filter((answer) => answer.status !== 408) : ANSWERS) {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession();
    const answer = await ask(cairn, id);
    expect({ status: answer.status, code: answer.body?.error?.code, param: answer.body?.error?.param }).toEqual({ status, code, param });
    const requestId = answer.headers.get("x-request-id");
    if (code !== undefined) expect(answer.body.error).toMatchObject({ message: expect.stringMatching(/^\S.+\.$/s), request_id: requestId });
    expect({ status, code, headers: Object.fromEntries(answer.headers) }).toMatchObject({
      headers: {
        "content-type": "application/json",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "x-request-id": expect.stringMatching(/^req_/),
        "x-ratelimit-limit": expect.stringMatching(/^[1-9]\d*$/),
        "x-ratelimit-remaining": expect.stringMatching(/^\d+$/),
        "x-ratelimit-reset": expect.stringMatching(/^\d+$/),
      },
    });
    expect(Number(answer.headers.get("x-ratelimit-reset"))).toBeGreaterThanOrEqual(cairn.clock.now() / 1000);
  }
});

test("a fault of ours is logged for the operator; the client sees only that there was one", async () => {
  await using cairn = await startCairn();
  using _ = spyOn(cairn.service.store, "commit").mockRejectedValue(new TypeError("undefined is not an object (evaluating 'secret.path')"));
  const answer = await cairn.post("/v1/sessions", { agent_id: "private" }, { headers: { "x-request-id": "mine" } });
  expect(answer.body).toEqual({
    error: {
      code: "internal_error",
      message: "Something went wrong on our side; the operator's log has the request id.",
      type: "api_error",
      request_id: "mine",
    },
  });
  expect(cairn.logged.map((line) => JSON.parse(line)).filter(({ level }) => level === "error")).toEqual([
    {
      time: "2026-05-07T08:00:00.000Z",
      level: "error",
      message: "Something went wrong on our side; the operator's log has the request id.",
      request_id: "mine",
      cause: "TypeError: undefined is not an object (evaluating 'secret.path')",
    },
  ]);
});

test("while the vector index has failed the server is not ready, but alive", async () => {
  await using cairn = await startCairn();
  const reason = "The vector index has failed.";
  using _ = spyOn(cairn.service.vectors, "problem").mockReturnValue(reason);
  for (const path of ["/health", "/health/ready", "/health/live"]) {
    const { status, body } = await cairn.get(path, { key: null });
    const expected = { path, status: path === "/health/live" ? 200 : 503 };
    expect({ path, status }).toEqual(expected);
    expect(body).toMatchObject({ status: "degraded", reason });
  }
});

test("a server that stops says so where proxies ask, answers on, and closes the connections of those who ask", async () => {
  await using cairn = await startCairn();
  expect((await cairn.get("/health/ready", { key: null })).headers.get("connection")).toBeNull();
  cairn.service.drain();
  for (const path of ["/health", "/health/ready", "/health/live"]) {
    const { status, body } = await cairn.get(path, { key: null });
    expect({ path, status }).toEqual({ path, status: path === "/health/live" ? 200 : 503 });
    expect(body).toMatchObject({ status: "degraded", reason: "The server is stopping." });
  }
  const { status, headers } = await cairn.post("/v1/sessions", { agent_id: "a" });
  expect([status, headers.get("connection")]).toEqual([201, "close"]);
});

test("every answer has a request id: the client's own, or a new one", async () => {
  await using cairn = await startCairn();
  const own = { headers: { "x-request-id": "trace-7:1" } };
  for (const answer of [await cairn.get("/v1/sessions", own), await cairn.get("/v1/none", own), await cairn.get("/health", own)]) {
    expect(answer.headers.get("x-request-id")).toBe("trace-7:1");
  }
  const { id } = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "a" }, own));
  expect(await cairn.traces(id)).toMatchObject([{ metadata: { request_id: "trace-7:1" } }]);

  const odd = await cairn.get("/v1/none", { headers: { "x-request-id": 'a"b' } });
  expect(odd.headers.get("x-request-id")).toMatch(/^req_[0-9A-Za-z]{12}$/);
  expect(odd.body.error.request_id).toBe(odd.headers.get("x-request-id"));
});

const paths: { path: (id: string) => string; status: number; code?: string }[] = [
  { path: () => "/v1", status: 404, code: "resource_not_found" },
  { path: () => "/v1/", status: 404, code: "resource_not_found" },
  { path: () => "/v2/sessions", status: 404, code: "resource_not_found" },
  { path: () => "/V1/sessions", status: 404, code: "resource_not_found" },
  { path: () => "/v1/Sessions", status: 404, code: "resource_not_found" },
  { path: () => "/v1/sessions.json", status: 404, code: "resource_not_found" },
  { path: () => "//v1/sessions", status: 404, code: "resource_not_found" },
  { path: () => "/v1//sessions", status: 404, code: "resource_not_found" },
  { path: () => "/v1/sessions//", status: 404, code: "resource_not_found" },
  { path: (id) => `/v1/sessions/${id}/none`, status: 404, code: "resource_not_found" },
  { path: (id) => `/v1/sessions/${id}/turns/x/y`, status: 404, code: "resource_not_found" },
  { path: () => "/v1/sessions/", status: 200 },
  { path: (id) => `/v1/sessions/${id}/`, status: 200 },
  { path: (id) => `/v1/sessions/${id}/turns/`, status: 200 },
  { path: (id) => `/v1/sessions/${id}?unknown=1&unknown=2`, status: 200 },
  { path: (id) => `/v1/sessions/${id.replace("_", "%5F")}`, status: 200 },
  { path: () => "/v1/sessions/%ZZ", status: 404, code: "session_not_found" },
  { path: () => "/v1/sessions/%", status: 404, code: "session_not_found" },
  { path: () => "/v1/sessions/%E0%A4%A", status: 404, code: "session_not_found" },
  { path: () => "/v1/sessions/%FF%FE", status: 404, code: "session_not_found" },
  { path: () => "/v1/sessions/constructor", status: 404, code: "session_not_found" },
  { path: () => "/v1/sessions/:session_id", status: 404, code: "session_not_found" },
  { path: (id) => `/v1/sessions/${id}%0A`, status: 404, code: "session_not_found" },
  { path: (id) => `/v1/sessions/${id.toUpperCase()}`, status: 404, code: "session_not_found" },
  { path: (id) => `/v1/sessions/${id.slice(5)}`, status: 404, code: "session_not_found" },
  { path: () => `/v1/sessions/${"x".repeat(10_000)}`, status: 404, code: "session_not_found" },
];

for (const { path, status, code } of paths) {
  test(`a GET of ${path("sess_0VQk3aB4x1Zq").slice(0, 60)} is ${status}${code === undefined ? "" : ` ${code}`}`, async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession();
    const answer = await cairn.get(path(id));
    expect({ status: answer.status, code: answer.body.error?.code }).toEqual({ status, code });
    expect(JSON.stringify(answer.body).length).toBeLessThan(1_000);
  });
}

test("the answer for a path that does not exist repeats neither query nor key", async () => {
  await using cairn = await startCairn();
  const { body } = await cairn.get(`/v1/none?api_key=${cairn.key}`);
  expect(body.error.message).toBe("There is nothing at /v1/none. The paths are documented at /docs.");
});

test("an id that cannot be one is answered with what such an id looks like", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const messages: Record<string, string> = {
    "sessions/thread-7": "There is no session thread-7: its id would be sess_ and 12 letters or digits.",
    "sessions/sess_0VQk3aB4x1Zq": "There is no session sess_0VQk3aB4x1Zq; it may have expired or been deleted.",
    [`memory/${id}`]: `There is no memory ${id}: its id would be mem_ and 12 letters or digits.`,
    "traces/trace_0VQk3aB4x1Zq": "There is no trace trace_0VQk3aB4x1Zq; it may be older than the tier of its key keeps traces.",
    "retrievals/1": "There is no retrieval 1: its id would be ret_ and 12 letters or digits.",
    "api_keys/crn_9fK2": "There is no API key crn_9fK2: its id would be key_ and 12 letters or digits.",
    "webhooks/whsec_1": "There is no webhook whsec_1: its id would be whk_ and 12 letters or digits.",
    "backups/today": "There is no backup today: its id would be bkp_ and 12 letters or digits.",
  };
  for (const [path, message] of Object.entries(messages)) {
    const { status, body } = await cairn.get(`/v1/${path}`);
    expect({ path, status, message: body.error.message }).toEqual({ path, status: 404, message });
  }
});

test("a method that a path does not know is 405 with those it knows, on every path", async () => {
  await using cairn = await startCairn();
  const known = new Map<string, string[]>([["/health", ["GET"]]]);
  for (const { method, path } of endpointsOf(cairn.service)) known.set(path, [...(known.get(path) ?? []), method]);
  expect(known.size).toBeGreaterThan(15);
  for (const [path, methods] of known) {
    const allow = methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
    // What is the name of a collection's operation could be the id of a record in it, which another path has.
    const byId = known.get(path.replace(/\/batch$/, path.startsWith("/v1/memory/") ? "/{memory_id}" : "/{turn_id}")) ?? [];
    const taken = path.endsWith("/batch") ? [...allow, ...byId, "HEAD"] : allow;
    for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"].filter((each) => !taken.includes(each))) {
      const answer = await cairn.request(method, path.replaceAll(/\{\w+\}/g, "none"));
      const name = `${method} ${path}`;
      const code = answer.body?.error.code;
      expect({ name, status: answer.status, code }).toEqual({ name, status: 405, code: method === "HEAD" ? code : "invalid_request" });
      expect({ name, allow: answer.headers.get("allow")?.split(", ").sort() }).toEqual({ name, allow: allow.sort() });
    }
  }
});

test("a name that is a path of its own is no id: GET /v1/memory/search is 405", async () => {
  await using cairn = await startCairn();
  for (const method of ["GET", "HEAD", "PATCH", "DELETE"]) {
    const answer = await cairn.request(method, "/v1/memory/search");
    expect({ status: answer.status, allow: answer.headers.get("allow") }).toEqual({ status: 405, allow: "POST" });
  }
});

test("a HEAD is answered as the GET would be", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (const path of [`/v1/sessions/${id}`, "/v1/sessions/none", "/v1/sessions?limit=0", "/v1/traces", "/health"]) {
    const [head, get] = [await cairn.request("HEAD", path), await cairn.get(path)];
    expect(head.status).toBe(get.status);
    expect(head.headers.get("content-type")).toBe("application/json");
  }
});

const contents: { name: string; options: RequestOptions; status: number; param?: string }[] = [
  { name: "JSON", options: { raw: '{"agent_id":"a"}', headers: { "content-type": "application/json" } }, status: 201 },
  {
    name: "JSON with a charset",
    options: { raw: '{"agent_id":"a"}', headers: { "content-type": "application/json; charset=utf-8" } },
    status: 201,
  },
  {
    name: "a form",
    options: { raw: "agent_id=a", headers: { "content-type": "application/x-www-form-urlencoded" } },
    status: 400,
    param: "Content-Type",
  },
  {
    name: "JSON called text",
    options: { raw: '{"agent_id":"a"}', headers: { "content-type": "text/plain" } },
    status: 400,
    param: "Content-Type",
  },
  { name: "JSON called nothing", options: { raw: new TextEncoder().encode('{"agent_id":"a"}') }, status: 400, param: "Content-Type" },
  {
    name: "JSON compressed by something else than gzip",
    options: {
      raw: Uint8Array.from(Bun.deflateSync('{"agent_id":"a"}')),
      headers: { "content-type": "application/json", "content-encoding": "deflate" },
    },
    status: 400,
    param: "Content-Encoding",
  },
  { name: "an array", options: { body: [{ agent_id: "a" }] }, status: 400 },
  { name: "no JSON", options: { raw: "agent", headers: { "content-type": "application/json" } }, status: 400 },
  { name: "nothing, where something is required", options: {}, status: 400, param: "agent_id" },
];

for (const { name, options, status, param } of contents) {
  test(`a body of ${name} is ${status}`, async () => {
    await using cairn = await startCairn();
    const answer = await cairn.request("POST", "/v1/sessions", options);
    expect({ status: answer.status, param: answer.body.error?.param }).toEqual({ status, param });
    expect(await cairn.list("/v1/sessions")).toHaveLength(status === 201 ? 1 : 0);
  });
}

test("where everything is optional, no body, an empty one and an empty object are the same", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ initial_state: { a: 1 } });
  const memory = await cairn.addMemory(session.id, "tea");
  const paths: [method: string, path: string][] = [
    ["POST", `/v1/sessions/${session.id}/context`],
    ["POST", `/v1/sessions/${session.id}/fork`],
    ["PATCH", `/v1/sessions/${session.id}`],
    ["PATCH", `/v1/memory/${memory.id}`],
  ];
  for (const [method, path] of paths) {
    const statuses = [
      (await cairn.request(method, path)).status,
      (await cairn.request(method, path, { raw: "" })).status,
      (await cairn.request(method, path, { raw: "", headers: { "content-type": "text/plain" } })).status,
      (await cairn.request(method, path, { body: {} })).status,
    ];
    expect({ path, statuses: new Set(statuses) }).toEqual({ path, statuses: new Set([path.endsWith("/fork") ? 201 : 200]) });
  }
});

test("the Host has to be a name of the server's, or one that its operator added", async () => {
  await using cairn = await startCairn({ allowedHosts: ["cairn.example"] });
  const ask = (host: string) => cairn.get("/v1/sessions", { headers: { host } });
  for (const host of ["localhost", "localhost:8700", "127.0.0.1:8700", "[::1]:8700", "cairn.example", "Cairn.Example:443"]) {
    expect((await ask(host)).status).toBe(200);
  }
  for (const host of ["evil.example", "evil.example:8700", "localhost.evil.example", "192.168.0.1"]) {
    expect(refusal(await ask(host))).toEqual({ status: 403, code: "permission_denied", param: "Host" });
    expect(refusal(await cairn.get("/health", { headers: { host }, key: null }))).toMatchObject({ status: 403 });
  }
});

test("the host of the address for clients is a name of the server's by itself, and no other one", async () => {
  for (const [publicUrl, own, foreign] of [
    ["https://cairn.example", "cairn.example", "www.cairn.example"],
    ["https://Cairn.Example:8443", "cairn.example:8443", "cairn.example.evil.example"],
  ] as const) {
    await using cairn = await startCairn({ publicUrl });
    const ask = async (host: string) => (await cairn.get("/v1/sessions", { headers: { host } })).status;
    expect([await ask(own), await ask("localhost:8700"), await ask(foreign)]).toEqual([200, 200, 403]);
  }
  await using open = await startCairn({ publicUrl: "https://cairn.example", host: "0.0.0.0" });
  expect((await open.get("/v1/sessions", { headers: { host: "other.example" } })).status).toBe(200);
});

test("a server beyond loopback answers to any Host, unless its operator names some", async () => {
  const ask = async (allowedHosts: string[], host: string) => {
    await using cairn = await startCairn({ host: "0.0.0.0", allowedHosts });
    return await cairn.get("/v1/sessions", { headers: { host } });
  };
  expect((await ask([], "other.example")).status).toBe(200);
  expect((await ask(["cairn.example"], "cairn.example")).status).toBe(200);
  expect((await ask(["cairn.example"], "localhost:8700")).status).toBe(200);
  expect(refusal(await ask(["cairn.example"], "other.example"))).toEqual({ status: 403, code: "permission_denied", param: "Host" });
});

test("the log holds neither contents nor keys, whatever happens and whatever its level", async () => {
  await using cairn = await startCairn();
  const secret = "a-word-nobody-may-read";
  const { id } = await cairn.createSession({
    agent_id: secret,
    user_id: secret,
    initial_state: { [secret]: secret },
    metadata: { secret },
  });
  await cairn.setState(id, { secret }, { reasoning: secret });
  await cairn.addTurn(id, secret, secret);
  await cairn.addMemory(id, secret, { tags: [secret] });
  await cairn.search(secret);
  await cairn.get(`/v1/${secret}?${secret}=1`);
  await cairn.request("POST", "/v1/sessions", { raw: `{"${secret}`, headers: { "content-type": "application/json" } });
  await cairn.post("/v1/memory", { content: { secret } }, { headers: { "idempotency-key": secret } });
  {
    using _ = spyOn(cairn.service.store, "commit").mockRejectedValue(new TypeError("a fault of ours"));
    await cairn.post("/v1/sessions", { agent_id: secret, metadata: { secret } });
  }
  await cairn.ok(cairn.delete(`/v1/sessions/${id}?reason=${secret}`));
  const log = cairn.logged.join("");
  expect(log).toContain("a fault of ours");
  for (const word of [secret, cairn.key, cairn.key.slice(8)]) expect(log).not.toContain(word);
});

test("a body in gzip is the request that comes out of it, with its limit and its Idempotency-Key", async () => {
  await using cairn = await startCairn();
  const send = (body: object, more: Record<string, string> = {}) =>
    cairn.request("POST", "/v1/sessions", {
      raw: Uint8Array.from(Bun.gzipSync(JSON.stringify(body))),
      headers: { "content-type": "application/json", "content-encoding": "gzip", "idempotency-key": "once", ...more },
    });
  const made = await send({ agent_id: "gz", initial_state: { text: "x".repeat(100_000) } });
  expect([made.status, made.body.agent_id]).toEqual([201, "gz"]);
  const again = await cairn.post(
    "/v1/sessions",
    { agent_id: "gz", initial_state: { text: "x".repeat(100_000) } },
    { headers: { "idempotency-key": "once" } },
  );
  expect([again.body.id, again.headers.get("idempotency-replayed")]).toEqual([made.body.id, "true"]);
  const large = await send({ agent_id: "gz", initial_state: { text: "x".repeat(1_048_576) } }, { "idempotency-key": "large" });
  expect(refusal(large)).toEqual({ status: 413, code: "payload_too_large", param: undefined });
  await cairn.ok(cairn.patch("/v1/settings", { max_body_bytes: 2_000_000 }));
  expect((await send({ agent_id: "gz", initial_state: { text: "x".repeat(1_048_576) } }, { "idempotency-key": "later" })).status).toBe(201);
  expect((await cairn.get("/health", { key: null })).body.max_body_bytes).toBe(2_000_000);
});

test("answers from 4 KiB on are in gzip for who accepts it, of any size, and the same when they are unpacked", async () => {
  await using cairn = await startCairn();
  const put = (key: string, length: number) => ({ op: "put", namespace: ["z"], key, value: { text: "é".repeat(length) } });
  await cairn.ok(cairn.post("/v1/documents/batch", { operations: [put("4 KiB", 4_000), put("64 KiB", 100_000), put("small", 100)] }));
  await cairn.ok(cairn.post("/v1/documents/batch", { operations: [put("1 MiB", 500_000)] }));
  const ask = (key: string, accepted: string | undefined, method = "POST") =>
    cairn.plain(method, "/v1/documents/query", {
      body: { operations: [{ op: "get", namespace: ["z"], key }] },
      headers: accepted === undefined ? {} : { "accept-encoding": accepted },
    });
  for (const key of ["4 KiB", "64 KiB", "1 MiB"]) {
    const whole = await ask(key, undefined);
    for (const accepted of ["gzip", "br, gzip;q=0.5, *;q=0.1", "deflate, GZIP"]) {
      const { headers, text } = await ask(key, accepted);
      expect([headers.get("content-encoding"), headers.get("vary"), headers.get("content-type")]).toEqual([
        "gzip",
        "Accept-Encoding",
        "application/json",
      ]);
      expect(text).toBe(whole.text);
    }
    for (const accepted of ["identity", "br", "gzip;q=0", "gzip; q=0.0, br", "xgzip", ""]) {
      const { headers, text } = await ask(key, accepted);
      expect([accepted, headers.get("content-encoding"), text === whole.text]).toEqual([accepted, null, true]);
      // A cache must not give it to who asks for the other encoding.
      expect(headers.get("vary")).toBe("Accept-Encoding");
    }
    expect(whole.headers.get("vary")).toBe("Accept-Encoding");
  }
  const small = (await ask("small", "gzip")).headers;
  expect([small.get("content-encoding"), small.get("vary")]).toEqual([null, null]);
  const stream = await cairn.events("", { headers: { "accept-encoding": "gzip" } });
  expect(stream.headers.get("content-encoding")).toBeNull();
  await stream.body?.cancel();
});
