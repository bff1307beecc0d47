/**
 * What callers send by mistake or on purpose: refused by the name of the field, or kept exactly as it came. Never anything
 * between the two.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { unknownId, refusal } from "./support/answers.ts";
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
    owner: "forged",
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
  // A field that comes twice has its last value; a number beyond 2^53 makes the text be read again, with the first one.
  const twice = `{"agent_id":"a","metadata":${brackets},"metadata":{"n":9007599825301324}}`;
  for (const json of [brackets, twice])
    expect(refusal(await sendText(cairn, "POST", "/v1/sessions", json))).toEqual({ status: 400, code: "invalid_request" });
});

test("metadata is at most 64 KiB of JSON, counted in bytes, also after merging", async () => {
  await using cairn = await startCairn();
  const frame = '{"text":""}'.length;
  const fits = { text: "x".repeat(65_536 - frame) };
  const tooLarge = { status: 400, code: "invalid_request", param: "metadata" };
  await cairn.createSession({ metadata: { text: "é".repeat((65_536 - frame - 1) / 2) } });
  const umlauts = { text: "é".repeat((65_536 - frame + 1) / 2) };
  expect(refusal(await cairn.post("/v1/sessions", { agent_id: "a", metadata: umlauts }))).toEqual(tooLarge);
  const session = await cairn.createSession({ metadata: fits });
  const memory = await cairn.addMemory(session.id, "tea", { metadata: fits });
  for (const [path, before] of [
    [`/v1/sessions/${session.id}`, await cairn.session(session.id)],
    [`/v1/memory/${memory.id}`, memory],
  ]) {
    expect(refusal(await cairn.patch(path, { metadata: { more: 1 }, content: "coffee", ttl_seconds: 60 }))).toEqual(tooLarge);
    expect(await cairn.ok(cairn.get(path))).toEqual(before);
    expect((await cairn.ok(cairn.patch(path, { metadata: { text: null, more: 1 } }))).metadata).toEqual({ more: 1 });
  }
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
        expect((await cairn.list(`${list}?user_id=${encodeURIComponent(text)}`)).length).toBeGreaterThan(0);
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
  expect(turn).toContain(`"metadata":${ODD_OBJECT},"state_before":${ODD_OBJECT},"state_after":${ODD_OBJECT}`);
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
  expect(await cairn.list("/v1/sessions")).toHaveLength(2);
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
