import { expect, spyOn, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { errorOf, refusal } from "./support/answers.ts";
import { createApp } from "../src/server/app.ts";
import { makeLocalKey, type LocalKey } from "../src/keys/local-key.ts";
import { startCairn, type Answer, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { toJson } from "../src/lib/json.ts";
import { MAX_KEY } from "../src/storage/keys.ts";
import { idempotency, outbox, sessions, traces } from "../src/storage/tables.ts";

const keyed = (idempotencyKey: string, more: RequestOptions = {}): RequestOptions => ({
  ...more,
  headers: { "idempotency-key": idempotencyKey, ...more.headers },
});

const isReplay = ({ headers }: Answer) => headers.get("idempotency-replayed") === "true";

function expectReplay(again: Answer, first: Answer): void {
  expect({ replay: isReplay(again), status: again.status, body: again.body }).toEqual({
    replay: true,
    status: first.status,
    body: first.body,
  });
}

/** What can be seen of changes: records, their audit trail, and what waits for webhooks. */
async function counts(cairn: Cairn) {
  const [found = 0, traced = 0, events = 0, kept = 0] = await cairn.counts([sessions, traces, outbox, idempotency]);
  return { sessions: found, traces: traced, outbox: events, kept };
}

interface Change {
  method: string;
  path: string;
  body?: unknown;
  /** How many traces it leaves, of one. */
  traces?: 0;
}

const CHANGES: Record<string, (cairn: Cairn) => Promise<Change>> = {
  "create a session": async () => ({ method: "POST", path: "/v1/sessions", body: { agent_id: "a", initial_state: { n: 1 } } }),
  async "update a session"(cairn) {
    const { id } = await cairn.createSession();
    return { method: "PATCH", path: `/v1/sessions/${id}`, body: { metadata: { a: 1 }, ttl_seconds: 60 } };
  },
  async "update a state"(cairn) {
    const { id } = await cairn.createSession();
    return { method: "POST", path: `/v1/sessions/${id}/state`, body: { state: { a: 1 } } };
  },
  async "roll a state back"(cairn) {
    const { id } = await cairn.createSession();
    await cairn.setState(id, { a: 1 });
    return { method: "POST", path: `/v1/sessions/${id}/rollback`, body: { version: -1 } };
  },
  "fork a session, without a body": async (cairn) => ({ method: "POST", path: `/v1/sessions/${(await cairn.createSession()).id}/fork` }),
  async "add a turn"(cairn) {
    const { id } = await cairn.createSession();
    const body = { input: { type: "text", content: "in" }, output: { type: "error", content: "out" } };
    return { method: "POST", path: `/v1/sessions/${id}/turns`, body };
  },
  async "add a memory"(cairn) {
    const { id } = await cairn.createSession();
    return { method: "POST", path: "/v1/memory", body: { session_id: id, content: "tea" } };
  },
  async "update a memory"(cairn) {
    const { id } = await cairn.addMemory((await cairn.createSession()).id, "tea");
    return { method: "PATCH", path: `/v1/memory/${id}`, body: { content: "coffee", tags: ["drink"] } };
  },
  "update a setting": async () => ({ method: "PATCH", path: "/v1/settings", body: { region: "eu", embedding: { model: "mine" } } }),
  "update no setting": async () => ({ method: "PATCH", path: "/v1/settings", body: {}, traces: 0 }),
  async "test a webhook"(cairn) {
    const { id } = await cairn.subscribe("http://127.0.0.1:9/");
    return { method: "POST", path: `/v1/webhooks/${id}/test`, body: {}, traces: 0 };
  },
};

for (const [name, prepare] of Object.entries(CHANGES)) {
  test(`sent again, it is answered again and nothing changes: ${name}`, async () => {
    await using cairn = await startCairn();
    const { method, path, body, traces: left = 1 } = await prepare(cairn);
    const before = await counts(cairn);
    const commits = cairn.services.map(({ store }) => spyOn(store, "commit"));
    const first = await cairn.request(method, path, keyed("k", { body }));
    // The change and the answer that is kept are one.
    expect([first.status < 300, isReplay(first), commits.flatMap(({ mock }) => mock.calls).length]).toEqual([true, false, 1]);
    const after = await counts(cairn);
    expect(after).toMatchObject({ traces: before.traces + left, kept: before.kept + 1 });

    cairn.clock.advance({ hours: 23 });
    const again = await cairn.request(method, path, keyed("k", { body }));
    expectReplay(again, first);
    expect(await counts(cairn)).toEqual(after);
  });
}

test("a replay is the first answer byte for byte, under the new request's own id", async () => {
  await using cairn = await startCairn();
  const body = JSON.stringify({ agent_id: "a", initial_state: JSON.parse('{"__proto__":1,"é":"\\ud800","n":1e21}') });
  const send = (requestId: string) =>
    cairn.request(
      "POST",
      "/v1/sessions",
      keyed("k", { raw: body, headers: { "content-type": "application/json", "x-request-id": requestId } }),
    );
  const [first, again] = [await send("first"), await send("again")];
  expect(JSON.stringify(again.body)).toBe(JSON.stringify(first.body));
  const headers = ({ headers: all }: Answer) =>
    Object.fromEntries(
      [...all].filter(([name]) => !/^(x-request-id|x-ratelimit-remaining|x-ratelimit-reset|idempotency-replayed)$/.test(name)),
    );
  expect(headers(again)).toEqual(headers(first));
  expect(again.headers.get("x-request-id")).toBe("again");
});

const OTHERS: Record<string, [method: string, path: string, options: RequestOptions]> = {
  "another body": ["POST", "/v1/sessions", { body: { agent_id: "b" } }],
  "the same body with other white space": ["POST", "/v1/sessions", { raw: '{ "agent_id": "a" }' }],
  "no body": ["POST", "/v1/sessions", {}],
  "another path": ["POST", "/v1/memory", { body: { agent_id: "a" } }],
  "another query": ["POST", "/v1/sessions?x=1", { body: { agent_id: "a" } }],
  "another method": ["PATCH", "/v1/sessions/none", { body: { agent_id: "a" } }],
};

for (const [name, [method, path, options]] of Object.entries(OTHERS)) {
  test(`a key that was used cannot be used for another request: ${name}`, async () => {
    await using cairn = await startCairn();
    await cairn.ok(cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k")));
    const before = await counts(cairn);
    const answer = await cairn.request(method, path, keyed("k", { ...options, headers: { "content-type": "application/json" } }));
    const message = 'Idempotency-Key "k" was used for another method, path or body.';
    expect(errorOf(answer)).toEqual({ status: 400, code: "invalid_request", message, param: "Idempotency-Key" });
    expect(await counts(cairn)).toEqual(before);
  });
}

test("a key stands for one method, whatever methods a path may know one day", async () => {
  await using cairn = await startCairn();
  const { idempotency: kept } = cairn.service;
  const request = {
    limitsId: "key_0VQk3aB4x1Zq",
    presentedKey: cairn.key,
    idempotencyKey: "k",
    path: "/v1/things",
    body: new Uint8Array(),
  };
  const made = await kept.run({ ...request, method: "POST" }, 201, () => toJson({ made: 1 }));
  expect(await kept.run({ ...request, method: "POST" }, 201, () => toJson({ made: 2 }))).toEqual({ ...made, replayed: true });
  const other = kept.run({ ...request, method: "PATCH" }, 200, () => toJson({ changed: true }));
  expect(await other.catch((error: unknown) => error)).toMatchObject({
    code: "invalid_request",
    message: 'Idempotency-Key "k" was used for another method, path or body.',
  });
});

test("another request that comes while the first is under way waits, and is refused", async () => {
  await using cairn = await startCairn();
  const answers = await Promise.all([
    cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k")),
    cairn.post("/v1/sessions", { agent_id: "b" }, keyed("k")),
  ]);
  // Of several servers another one can be the first.
  const [first, other] = answers.toSorted((a, b) => a.status - b.status);
  expect(first?.status).toBe(201);
  expect(refusal(other!)).toEqual({ status: 400, code: "invalid_request", param: "Idempotency-Key" });
  expect(await cairn.list("/v1/sessions")).toHaveLength(1);
});

test("the answer of a read is never kept: it is run again, and what was deleted is not given again", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { n: 1 } });
  const memory = await cairn.addMemory(id, "They like tea in the morning.");
  const search = () => cairn.post("/v1/memory/search", { query: "tea in the morning" }, keyed("search"));
  const context = () => cairn.post(`/v1/sessions/${id}/context`, {}, keyed("context"));
  expect(await search()).toMatchObject({ status: 200, body: { data: [{ id: memory.id }] } });
  expect(await context()).toMatchObject({ status: 200, body: { state: { n: 1 }, memories: [{ id: memory.id }] } });
  expect((await counts(cairn)).kept).toBe(0);

  await cairn.setState(id, { n: 2 });
  await cairn.ok(cairn.delete(`/v1/memory/${memory.id}`));
  const again = [await search(), await context()];
  expect(again).toMatchObject([
    { status: 200, body: { data: [] } },
    { status: 200, body: { state: { n: 2 }, memories: [] } },
  ]);
  expect(again.map(isReplay)).toEqual([false, false]);
  // Nor does the key stand for one search.
  expect((await cairn.post("/v1/memory/search", { query: "coffee" }, keyed("search"))).status).toBe(200);
});

test("a change that found nothing to change is not made when it is sent again", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ metadata: { a: 1 } });
  const send = () => cairn.patch(`/v1/sessions/${id}`, { metadata: { a: 1 } }, keyed("k"));
  const first = await send();
  await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { a: 2 } }));
  const again = await send();
  expectReplay(again, first);
  expect(await cairn.session(id)).toMatchObject({ metadata: { a: 2 } });
});

test("failures are not kept: the key may be tried again, with another body too", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const failures: Answer[] = [
    await cairn.post("/v1/sessions", {}, keyed("k")),
    await cairn.post("/v1/memory", { session_id: "none", content: "x" }, keyed("k")),
    await cairn.post("/v1/memory", { session_id: session.id, content: "x".repeat(10_001) }, keyed("k")),
    await cairn.post(`/v1/sessions/${session.id}/state`, { state: {}, expected_version: 3 }, keyed("k")),
    await cairn.request("POST", "/v1/sessions", keyed("k", { raw: "{", headers: { "content-type": "application/json" } })),
    await cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k", { key: await cairn.newKey({ scopes: ["read"] }) })),
  ];
  expect(failures.map(({ status }) => status)).toEqual([400, 404, 413, 409, 400, 403]);
  expect((await counts(cairn)).kept).toBe(0);
  const answer = await cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k"));
  expect({ status: answer.status, replay: isReplay(answer) }).toEqual({ status: 201, replay: false });
});

test("of copies sent at once to something that fails, each fails for itself", async () => {
  await using cairn = await startCairn();
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => cairn.post("/v1/memory", { session_id: "none", content: "x" }, keyed("k"))),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));
  expect((await counts(cairn)).kept).toBe(0);
});

test("an answer is kept for 24 hours to the millisecond; then the key is free", async () => {
  await using cairn = await startCairn();
  const first = await cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k"));
  cairn.clock.advance({ hours: 24, ms: -1 });
  expect(isReplay(await cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k")))).toBe(true);
  cairn.clock.advance({ ms: 1 });
  const later = await cairn.post("/v1/sessions", { agent_id: "another" }, keyed("k"));
  expect({ status: later.status, replay: isReplay(later) }).toEqual({ status: 201, replay: false });
  expect(later.body.id).not.toBe(first.body.id);
  cairn.clock.advance({ hours: 23 });
  expect((await cairn.post("/v1/sessions", { agent_id: "another" }, keyed("k"))).body).toEqual(later.body);
});

test("an answer is given again although what it tells of is gone", async () => {
  await using cairn = await startCairn();
  const made = await cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k"));
  await cairn.ok(cairn.delete(`/v1/sessions/${made.body.id}`));
  expect(await cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k"))).toMatchObject({ status: 201, body: made.body });
});

test("a key belongs to the API key it came with: others neither see nor block it", async () => {
  await using cairn = await startCairn();
  const other = await cairn.newKey();
  const mine = await cairn.post("/v1/sessions", { agent_id: "a", metadata: { secret: 1 } }, keyed("k"));
  const theirs = await cairn.post("/v1/sessions", { agent_id: "b" }, keyed("k", { key: other }));
  expect({ status: theirs.status, replay: isReplay(theirs) }).toEqual({ status: 201, replay: false });
  expect(theirs.body.id).not.toBe(mine.body.id);
  expect((await cairn.post("/v1/sessions", { agent_id: "b" }, keyed("k", { key: other }))).body).toEqual(theirs.body);
});

test("a revoked API key gets no replay", async () => {
  await using cairn = await startCairn();
  const made = await cairn.ok(cairn.post("/v1/api_keys", {}));
  await cairn.ok(cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k", { key: made.key })));
  await cairn.ok(cairn.delete(`/v1/api_keys/${made.id}`));
  expect((await cairn.post("/v1/sessions", { agent_id: "a" }, keyed("k", { key: made.key }))).status).toBe(401);
});

const NEW_WEBHOOK = { url: "http://127.0.0.1:1/", events: ["turn.added"] };

const SECRETS: Record<string, [member: "key" | "secret", prepare: (cairn: Cairn) => Promise<{ path: string; body: unknown }>]> = {
  "create an API key": ["key", async () => ({ path: "/v1/api_keys", body: { name: "n" } })],
  "roll an API key": [
    "key",
    async (cairn) => ({ path: `/v1/api_keys/${(await cairn.ok(cairn.post("/v1/api_keys", {}))).id}/roll`, body: {} }),
  ],
  "create a webhook": ["secret", async () => ({ path: "/v1/webhooks", body: NEW_WEBHOOK })],
  "rotate a secret": [
    "secret",
    async (cairn) => ({ path: `/v1/webhooks/${(await cairn.ok(cairn.post("/v1/webhooks", NEW_WEBHOOK))).id}/rotate_secret`, body: {} }),
  ],
};

for (const [name, [member, prepare]] of Object.entries(SECRETS)) {
  test(`a secret is given again to who asks again, across a restart too, and is kept encrypted: ${name}`, async () => {
    await using cairn = await startCairn();
    const { path, body } = await prepare(cairn);
    const first = await cairn.post(path, body, keyed("ask-until-answered"));
    const secret = first.body[member];
    expect(secret).toMatch(/^(crn_|whsec_)\S{24,}$/);
    const end = cairn.clock.now() + 86_400_000;
    await cairn.restart();
    cairn.clock.advance({ ms: end - 1 - cairn.clock.now() });
    const again = await cairn.post(path, body, keyed("ask-until-answered"));
    expectReplay(again, first);

    const kept = JSON.stringify(await cairn.read((reader) => reader.rows(idempotency, { from: "", to: MAX_KEY })));
    const files = readdirSync(cairn.directory, { recursive: true, encoding: "utf8" })
      .map((file) => join(cairn.directory, file))
      .filter((file) => statSync(file).isFile());
    const hold = (text: string) => files.filter((file) => readFileSync(file).includes(text));
    expect([kept.includes(secret), kept.includes(secret.slice(-24))]).toEqual([false, false]);
    // A webhook's secret has to be there to sign with; nothing else is, nor what it was encrypted with.
    const store = cairn.service.embedded === undefined ? [] : [join(cairn.directory, "store", "data.mdb")];
    expect(hold(secret)).toEqual(member === "secret" ? store : []);
    expect([hold("ask-until-answered"), hold(cairn.key)]).toEqual([[], []]);
  });
}

test("GET, DELETE and reads by POST take no notice of a key", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  expect((await cairn.get("/v1/sessions", keyed("x".repeat(300)))).status).toBe(200);
  expect((await cairn.post("/v1/memory/search", { query: "tea" }, keyed("x".repeat(300)))).status).toBe(200);
  expect((await cairn.delete(`/v1/sessions/${id}`, keyed("k"))).status).toBe(200);
  expect((await cairn.delete(`/v1/sessions/${id}`, keyed("k"))).status).toBe(404);
  expect((await counts(cairn)).kept).toBe(0);
});

for (const key of ["a", "a ~", "x".repeat(255), "8e03978e-40d5-43e8-bc93-6894a57f9324", 'q"uote\\', "{}", "../..", "__proto__"]) {
  test(`a key may be any printable text: ${JSON.stringify(key.slice(0, 40))} (${key.length})`, async () => {
    await using cairn = await startCairn();
    const first = await cairn.post("/v1/sessions", { agent_id: "a" }, keyed(key));
    const again = await cairn.post("/v1/sessions", { agent_id: "a" }, keyed(key));
    expectReplay(again, first);
  });
}

for (const key of ["", "x".repeat(256), "tab\there", "\u00e9", "\u0080"]) {
  test(`a key may be nothing else: ${JSON.stringify(key.slice(0, 40))} (${key.length})`, async () => {
    await using cairn = await startCairn();
    const before = await counts(cairn);
    const message = "Idempotency-Key must be 1 to 255 printable ASCII characters.";
    const answer = await cairn.post("/v1/sessions", { agent_id: "a" }, keyed(key));
    expect(errorOf(answer)).toEqual({ status: 400, code: "invalid_request", message, param: "Idempotency-Key" });
    expect(await counts(cairn)).toEqual(before);
  });
}

test("an answer that is kept while the one before under its key is about to be removed stays", async () => {
  await using cairn = await startCairn();
  const create = () => cairn.post("/v1/sessions", { agent_id: "a" }, keyed("used again"));
  await cairn.ok(create());
  cairn.clock.advance({ hours: 24, ms: 1 });
  const { store } = cairn.service;
  const commit = store.commit.bind(store);
  let second: Answer | undefined;
  store.commit = async (home, work) => {
    store.commit = commit;
    second = await create();
    return commit(home, work);
  };
  await cairn.runTask("idempotency retention");
  expectReplay(await create(), second!);
});

test("what was kept for 24 hours is removed, and nothing else", async () => {
  await using cairn = await startCairn();
  await Promise.all(Array.from({ length: 600 }, (_, i) => cairn.patch("/v1/settings", {}, keyed(`old ${i}`))));
  cairn.clock.advance({ hours: 12 });
  await cairn.ok(cairn.patch("/v1/settings", {}, keyed("new")));
  cairn.clock.advance({ hours: 12 });
  // One of the old ones is used again before it is removed.
  await cairn.ok(cairn.patch("/v1/settings", { region: null }, keyed("old 0")));
  cairn.clock.advance({ ms: 1 });
  await cairn.runTask("idempotency retention");
  expect(await cairn.counts([idempotency, idempotency.index.byTime])).toEqual([2, 2]);
  expect(isReplay(await cairn.patch("/v1/settings", {}, keyed("new")))).toBe(true);
  expect(isReplay(await cairn.patch("/v1/settings", { region: null }, keyed("old 0")))).toBe(true);
  cairn.clock.advance({ days: 2 });
  await cairn.runTask("idempotency retention");
  expect(await cairn.counts([idempotency, idempotency.index.byTime])).toEqual([0, 0]);
});

test("a change of a local program that is sent again to the next server, with the key of that, is made once", async () => {
  await using cairn = await startCairn();
  const sendTo = async ({ secret }: LocalKey, localKey: LocalKey) => {
    const app = createApp({ ...cairn.service, host: "127.0.0.1", allowedHosts: [], metrics: "key", localKey, version: "test" });
    const headers = { "X-API-Key": secret, "Idempotency-Key": "one", "Content-Type": "application/json", Host: "localhost" };
    const request = new Request("http://localhost/v1/sessions", { method: "POST", headers, body: '{"agent_id":"a"}' });
    const answer = await app.handle(request);
    return { status: answer.status, replayed: answer.headers.get("Idempotency-Replayed"), body: (await answer.json()) as { id: string } };
  };
  const [before, after] = [makeLocalKey(cairn.clock.now()), makeLocalKey(cairn.clock.now())];
  const first = await sendTo(before, before);
  expect(first).toMatchObject({ status: 201, replayed: null });
  expect(await sendTo(after, after)).toEqual({ ...first, replayed: "true" });
  expect(await sendTo(before, after)).toMatchObject({ status: 401 });
  // Another key may have used the same text.
  expect((await cairn.post("/v1/sessions", { agent_id: "a" }, { headers: { "Idempotency-Key": "one" } })).body.id).not.toBe(first.body.id);
  expect(await cairn.list("/v1/sessions")).toHaveLength(2);
});
