import { expect, test } from "bun:test";
import { Glob } from "bun";
import { endpointsOf } from "../src/server/app.ts";
import { errorOf, refusal } from "./support/answers.ts";
import { startCairn, type RequestOptions } from "./support/cairn.ts";
import { oneOfEach, REQUESTS } from "./support/requests.ts";
import { onEmbedded } from "./support/stores.ts";

const UNKNOWN = "crn_000000000000000000000000";

for (const { name, headers } of [
  { name: "X-API-Key", headers: (key: string) => ({ "x-api-key": key }) },
  { name: "a bearer token", headers: (key: string) => ({ authorization: `Bearer ${key}` }) },
  { name: "a bearer token, whatever the case of its scheme", headers: (key: string) => ({ authorization: `bearer  ${key}` }) },
  { name: "X-API-Key, whatever else Authorization says", headers: (key: string) => ({ "x-api-key": key, authorization: "Basic dTpw" }) },
]) {
  test(`a key is taken from ${name}`, async () => {
    await using cairn = await startCairn();
    expect((await cairn.get("/v1/sessions", { key: null, headers: headers(cairn.key) })).status).toBe(200);
  });
}

const missing: { name: string; path?: string; options: (key: string) => RequestOptions }[] = [
  { name: "nothing", options: () => ({}) },
  { name: "another scheme", options: (key) => ({ headers: { authorization: `Basic ${btoa(`user:${key}`)}` } }) },
  { name: "a key without a scheme", options: (key) => ({ headers: { authorization: key } }) },
  { name: "a scheme without a key", options: () => ({ headers: { authorization: "Bearer" } }) },
  { name: "a cookie", options: (key) => ({ headers: { cookie: `x-api-key=${key}` } }) },
];

for (const { name, options } of missing) {
  test(`a request without a key is refused: ${name}`, async () => {
    await using cairn = await startCairn();
    const message = "An API key is required: in the header X-API-Key, or as Authorization: Bearer.";
    const answer = await cairn.get("/v1/sessions", { key: null, ...options(cairn.key) });
    expect(errorOf(answer)).toEqual({ status: 401, code: "authentication_failed", message });
  });
}

for (const parameter of ["api_key", "X-API-Key", "x-api-key", "key", "token", "access_token", "authorization"]) {
  test(`a key in the query is no key: ${parameter}`, async () => {
    await using cairn = await startCairn();
    const answer = await cairn.get(`/v1/sessions?${parameter}=${cairn.key}`, { key: null });
    expect(refusal(answer)).toEqual({ status: 401, code: "authentication_failed" });
  });
}

const invalid: { name: string; key: (valid: string) => string }[] = [
  { name: "one that was never given", key: () => UNKNOWN },
  { name: "empty", key: () => "" },
  { name: "only the prefix", key: () => "crn_" },
  { name: "one character short", key: (valid) => valid.slice(0, -1) },
  { name: "one character more", key: (valid) => `${valid}a` },
  { name: "in quotes", key: (valid) => `"${valid}"` },
  { name: "twice", key: (valid) => `${valid}, ${valid}` },
  { name: "another prefix", key: (valid) => `sk_${valid.slice(4)}` },
  { name: "its prefix in capitals", key: (valid) => `CRN_${valid.slice(4)}` },
  { name: "what traces show of it", key: (valid) => valid.slice(0, 8) },
  { name: "its hash", key: (valid) => Bun.CryptoHasher.hash("sha256", valid, "hex") },
  { name: "a scheme before it", key: (valid) => `Bearer ${valid}` },
  { name: "long", key: () => "crn_".padEnd(10_000, "a") },
  {
    name: "letters beyond ASCII",
    key: () =>
      "crn_\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9",
  },
  { name: "a wildcard", key: () => "*" },
];

for (const { name, key } of invalid) {
  test(`an invalid key is refused: ${name}`, async () => {
    await using cairn = await startCairn();
    const message = "The API key is not valid, has expired or was revoked.";
    const answer = await cairn.get("/v1/sessions", { key: null, headers: { "x-api-key": key(cairn.key) } });
    expect(errorOf(answer)).toEqual({ status: 401, code: "authentication_failed", message });
  });
}

test("every character of a key counts", async () => {
  await using cairn = await startCairn();
  const statuses = new Set<number>();
  for (let i = 0; i < cairn.key.length; i++) {
    const other = cairn.key.slice(0, i) + (cairn.key[i] === "A" ? "B" : "A") + cairn.key.slice(i + 1);
    statuses.add((await cairn.get("/v1/sessions", { key: other })).status);
  }
  expect([...statuses]).toEqual([401]);
});

test("a key that was never given, one that expired and one that was revoked are refused with the same words", async () => {
  await using cairn = await startCairn();
  const expired = await cairn.newKey({ expiresAt: cairn.clock.now() + 1 });
  const revoked = await cairn.ok(cairn.post("/v1/api_keys", {}));
  await cairn.ok(cairn.delete(`/v1/api_keys/${revoked.id}`));
  cairn.clock.advance({ ms: 1 });
  const answers = await Promise.all([UNKNOWN, expired, revoked.key].map((key) => cairn.get("/v1/sessions", { key })));
  const [first, ...others] = answers.map((answer) => ({ names: [...answer.headers.keys()], ...errorOf(answer) }));
  expect(first?.status).toBe(401);
  expect(others).toEqual([first!, first!]);
});

test("without a key nothing can be told apart: what exists, what does not, what is wrong", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const requests: [method: string, path: string, options?: RequestOptions][] = [
    ["GET", `/v1/sessions/${session.id}`],
    ["GET", "/v1/sessions/sess_000000000000"],
    ["GET", "/v1/sessions?limit=-1"],
    ["PUT", "/v1/sessions"],
    ["GET", "/v1/nothing"],
    ["POST", "/v1/sessions", { raw: "{", headers: { "content-type": "text/plain" } }],
    ["POST", "/v1/sessions", { body: {}, headers: { "idempotency-key": "" } }],
    ["DELETE", `/v1/sessions/${session.id}`],
  ];
  const answers = await Promise.all(requests.map(([method, path, options]) => cairn.request(method, path, { ...options, key: null })));
  const [first, ...others] = answers.map(errorOf);
  expect(first).toMatchObject({ status: 401, code: "authentication_failed" });
  for (const other of others) expect(other).toEqual(first!);
  expect((await cairn.get(`/v1/sessions/${session.id}`)).status).toBe(200);
});

test("the state of the server and its docs are for everyone", async () => {
  await using cairn = await startCairn();
  for (const path of ["/health", "/health/live", "/health/ready", "/openapi.json"]) {
    expect((await cairn.get(path, { key: null })).status).toBe(200);
    expect((await cairn.get(path, { key: UNKNOWN })).status).toBe(200);
  }
});

/** What a call needs, by the words of the promise: reading, writing, managing, or only to be a key. */
function neededScope(method: string, path: string): "read" | "write" | "admin" | undefined {
  if (/^\/v1\/(sign_in|api_keys\/current)$/.test(path)) return undefined;
  if (/^\/v1\/(api_keys|oauth|webhooks|webhook_stats|failed_deliveries|settings|metrics|backups|audit\/head)\b/.test(path)) return "admin";
  if (path.startsWith("/v1/users/") && (method === "DELETE" || path.endsWith("/erasure"))) return "admin";
  return method === "GET" || /\/(search|context|documents\/query)$/.test(path) ? "read" : "write";
}

test("a key may do what its scopes say, on every endpoint, and admin implies the others", async () => {
  await using cairn = await startCairn();
  const endpoints = endpointsOf(cairn.service).map(({ method, path }) => ({ method, path }));
  expect(endpoints.length).toBeGreaterThan(20);
  for (const scopes of [["read"], ["write"], ["read", "write"], ["admin"]] as const) {
    const key = await cairn.newKey({ scopes });
    for (const { method, path } of endpoints) {
      const needed = neededScope(method, path);
      const allowed = needed === undefined || (scopes as readonly string[]).includes(needed) || scopes[0] === "admin";
      // Nothing has such an id, so that nothing comes of it.
      const answer = await cairn.request(method, path.replaceAll(/\{\w+\}/g, "none"), { key, ...(method === "GET" ? {} : { body: {} }) });
      const name = `${scopes.join("+")} ${method} ${path}`;
      if (allowed) expect(`${name} ${answer.status}`).not.toBe(`${name} 403`);
      else expect({ name, ...refusal(answer) }).toEqual({ name, status: 403, code: "permission_denied" });
    }
  }
});

/** What a record has that a request does not send and a receipt shows. */
const RECEIPT =
  "object id session_id version state_version new_version success created_at updated_at ttl_expires_at embedding_id vector_available".split(
    " ",
  );

test("a key with the scope write alone is shown nothing that it did not send, whatever it changes", async () => {
  await using cairn = await startCairn();
  const key = await cairn.newKey({ scopes: ["write"] });
  const ids = await oneOfEach(cairn);
  const { session_id } = ids;
  const secret = "SECRET";
  await cairn.ok(cairn.patch(`/v1/sessions/${session_id}`, { metadata: { secret } }));
  for (const _ of [1, 2]) await cairn.setState(session_id!, { secret }, { reasoning: secret });
  await cairn.ok(cairn.patch(`/v1/memory/${ids["memory_id"]}`, { content: secret, tags: [secret], type: secret, metadata: { secret } }));
  await cairn.createSession({ external_id: "named", user_id: "ada", initial_state: { secret }, metadata: { secret } });
  await cairn.ok(cairn.post("/v1/documents/batch", { operations: [{ op: "put", namespace: ["notes"], key: secret, value: { secret } }] }));
  // A deletion is answered with the id that it names.
  const writes = REQUESTS.filter(({ scope, method }) => scope === "write" && method !== "DELETE");
  let receipts = 0;
  for (const { method, template, path, body, fields = {} } of writes) {
    // With as little as it can be sent, so that all the rest is what was there.
    // Memories that are like a new one are for keys that may read, and refused to others.
    const { similar: _, ...example } = body(ids) as { similar?: unknown };
    const least = method === "PATCH" && !("state" in fields) ? {} : example;
    const sent = template.endsWith("/state") ? { state: {} } : template.endsWith("rollback") ? { version: 1 } : least;
    const ask = () => cairn.request(method, path(ids), { body: sent, key, headers: { "Idempotency-Key": `${method} ${template}` } });
    const answer = await ask();
    const name = `${method} ${template}`;
    expect({ name, ok: answer.status < 300, text: JSON.stringify(answer.body) }).toEqual({
      name,
      ok: true,
      text: expect.not.stringContaining(secret),
    });
    const more = Object.keys(answer.body).filter((member) => !RECEIPT.includes(member));
    if (method === "PATCH" || /\/(state|rollback|fork)$/.test(template)) {
      expect({ name, more }).toEqual({ name, more: [] });
      receipts++;
    }
    expect((await ask()).body).toEqual(answer.body);
  }
  expect(receipts).toBeGreaterThan(6);
  const found = await cairn.post("/v1/sessions", { agent_id: "a", user_id: "ada", external_id: "named", if_exists: "return" }, { key });
  expect([found.status, Object.keys(found.body)]).toEqual([
    200,
    ["object", "id", "created_at", "updated_at", "state_version", "ttl_expires_at"],
  ]);
  const pop = { op: "pop", namespace: ["notes"] };
  const change = (operations: object[], by: string) => cairn.post("/v1/documents/batch", { operations }, { key: by });
  expect(refusal(await change([{ op: "put", namespace: ["n"], value: {} }, pop], key))).toEqual({
    status: 403,
    code: "permission_denied",
    param: "operations.1.op",
  });
  // It is still there, for who may see it.
  expect((await cairn.ok(change([pop], cairn.key))).data).toMatchObject([{ value: { secret } }]);
});

test("a key that reads and writes is shown records in full, and one that only writes what it creates", async () => {
  await using cairn = await startCairn();
  const [both, writer] = [await cairn.newKey({ scopes: ["read", "write"] }), await cairn.newKey({ scopes: ["write"] })];
  const body = { agent_id: "a", initial_state: { step: 1 }, metadata: { from: "a form" } };
  const made = await cairn.ok(cairn.post("/v1/sessions", body, { key: writer }));
  expect(made).toEqual(await cairn.session(made.id));
  for (const key of [both, cairn.key])
    expect(await cairn.ok(cairn.patch(`/v1/sessions/${made.id}`, {}, { key }))).toEqual(await cairn.session(made.id));
  const [turn, memory] = [
    await cairn.ok(
      cairn.post(
        `/v1/sessions/${made.id}/turns`,
        { input: { type: "text", content: "in" }, output: { type: "text", content: "out" } },
        { key: writer },
      ),
    ),
    await cairn.ok(cairn.post("/v1/memory", { session_id: made.id, content: "Likes tea." }, { key: writer })),
  ];
  expect(await cairn.ok(cairn.get(`/v1/sessions/${made.id}/turns/${turn.id}`))).toEqual(turn);
  expect(await cairn.ok(cairn.get(`/v1/memory/${memory.id}`))).toEqual(memory);
});

onEmbedded("it has files")("a key is shown once: no list, no log and no file of the data directory has it", async () => {
  await using cairn = await startCairn();
  const made = await cairn.ok(cairn.post("/v1/api_keys", { name: "secret" }, { headers: { "idempotency-key": "k" } }));
  const session = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "a" }, { key: made.key }));
  await cairn.get("/v1/sessions", { key: `${made.key}x` });
  await cairn.ok(cairn.get("/v1/sessions", { headers: { authorization: `Bearer ${made.key}` }, key: null }));
  await cairn.get(`/v1/sessions?api_key=${made.key}`, { key: null });
  const shown = [(await cairn.get("/v1/api_keys")).body, (await cairn.get(`/v1/api_keys/${made.id}`)).body, await cairn.traces(session.id)];
  await cairn.close();
  const files = await Promise.all(
    Array.from(new Glob("**/*").scanSync({ cwd: cairn.directory, absolute: true, dot: true }), (path) => Bun.file(path).bytes()),
  );
  expect(files.some((bytes) => Buffer.from(bytes).includes(made.prefix))).toBe(true);
  const places = [JSON.stringify(shown), cairn.logged.join(""), ...files.map((bytes) => Buffer.from(bytes).toString("latin1"))];
  for (const secret of [made.key, cairn.key].map((key) => key.slice("crn_".length)))
    expect(places.filter((text) => text.includes(secret))).toEqual([]);
  await cairn.open();
});
