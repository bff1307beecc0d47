import { expect, test } from "bun:test";
import { traces } from "../src/storage/tables.ts";
import { idsOf, unknownId, pagesOf } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { FakeClock } from "./support/clock.ts";

type Cairn = Awaited<ReturnType<typeof startCairn>>;

test("a trace says what happened, to what, by whom and when, and under which request id", async () => {
  await using cairn = await startCairn();
  const made = await cairn.post("/v1/sessions", { agent_id: "bot", user_id: "ada" }, { headers: { "x-request-id": "from-the-client-7" } });
  const [trace] = await cairn.traces(made.body.id);
  expect(trace).toEqual({
    object: "trace",
    id: expect.stringMatching(/^trace_[0-9A-Za-z]{12}$/),
    session_id: made.body.id,
    user_id: "ada",
    action: "session.created",
    actor: cairn.key.slice(0, 8),
    timestamp: "2026-05-07T08:00:00.000Z",
    details: { agent_id: "bot", user_id: "ada", initial_state: {} },
    metadata: { request_id: "from-the-client-7", latency_ms: 0 },
  });
  expect((await cairn.get(`/v1/traces/${trace.id}`)).body).toEqual(trace);
  const [ofNobody] = await cairn.traces((await cairn.createSession()).id);
  expect(ofNobody).not.toHaveProperty("user_id");
  expect(ofNobody.details.user_id).toBeNull();
});

test("latency_ms is how long the request had taken when its trace was written", async () => {
  class TickingClock extends FakeClock {
    override elapsed(): number {
      this.advance({ ms: 1.25 });
      return super.elapsed();
    }
  }
  await using cairn = await startCairn({ clock: new TickingClock() });
  const { id } = await cairn.createSession();
  const [trace] = await cairn.traces(id);
  expect(trace.metadata.latency_ms).toBeGreaterThan(0);
  expect(trace.metadata.latency_ms % 1.25).toBe(0);
});

test("the actor of a trace is the first 8 characters of the key that acted", async () => {
  await using cairn = await startCairn();
  const first = await cairn.newKey({ tier: "free" });
  const second = await cairn.newKey({ tier: "pro" });
  const { id } = await cairn.createSession();
  for (const key of [first, second]) await cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: {} }, { key }));
  expect((await cairn.traces(id)).map(({ actor }) => actor)).toEqual([second, first, cairn.key].map((key) => key.slice(0, 8)));
});

const SESSION = { agent_id: "bot", user_id: "ada", initial_state: { step: 0, old: [1] }, metadata: { channel: "chat", old: 1 } };
/** 102 characters, of which the preview has the first hundred. */
const LONG_CONTENT = "🫖 tea ".repeat(17);
const PREVIEW = [...LONG_CONTENT].slice(0, 100).join("");

/** Each does one thing to a session of `SESSION`, which leaves a trace of the action that it is named by, and says its details. */
const ACTIONS: Record<string, (cairn: Cairn, id: string) => Promise<object>> = {
  "session.created": async () => ({ agent_id: "bot", user_id: "ada", initial_state: { step: 0, old: [1] } }),
  async "session.updated, of its metadata"(cairn, id) {
    await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { channel: "mail", old: null, added: { a: 1 } } }));
    return { metadata_diff: { added: { added: { a: 1 } }, removed: { old: 1 }, modified: { channel: { from: "chat", to: "mail" } } } };
  },
  async "session.updated, of its time to live"(cairn, id) {
    await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { ttl_seconds: 60 }));
    return { metadata_diff: { added: {}, removed: {}, modified: {} }, ttl_seconds: 60 };
  },
  async "session.deleted, with a reason"(cairn, id) {
    await cairn.addTurn(id);
    await cairn.addTurn(id);
    await cairn.addMemory(id, "Likes tea.");
    await cairn.ok(cairn.delete(`/v1/sessions/${id}?reason=asked%20for`));
    return { session_id: id, reason: "asked for", turn_count: 2, memory_count: 1 };
  },
  async "session.deleted, without a reason"(cairn, id) {
    await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
    return { session_id: id, reason: null, turn_count: 0, memory_count: 0 };
  },
  async "session.forked"(cairn, id) {
    await cairn.setState(id, { step: 1 });
    await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`));
    return { source_session_id: id, source_session: id, fork_version: 1 };
  },
  async "state.updated, with reasoning"(cairn, id) {
    await cairn.setState(id, { step: 1, added: null }, { reasoning: "The order came in." });
    const state_diff = { added: { added: null }, removed: { old: [1] }, modified: { step: { from: 0, to: 1 } } };
    return { reasoning: "The order came in.", state_diff, version: 1 };
  },
  async "state.updated, to the same state"(cairn, id) {
    await cairn.setState(id, SESSION.initial_state);
    return { state_diff: { added: {}, removed: {}, modified: {} }, version: 1 };
  },
  async "state.rolled_back, with a reason"(cairn, id) {
    await cairn.setState(id, { step: 1 });
    await cairn.setState(id, { step: 2 });
    await cairn.rollback(id, -2, { reason: "Counted twice." });
    return { from_version: 2, to_version: 0, reason: "Counted twice." };
  },
  async "state.rolled_back, without a reason"(cairn, id) {
    await cairn.rollback(id, 0);
    return { from_version: 0, to_version: 0, reason: null };
  },
  async "turn.added, with reasoning"(cairn, id) {
    await cairn.addTurn(id);
    const turn = { input: { type: "tool_call", content: "{}" }, output: { type: "error", content: "no answer" }, reasoning: "Timed out." };
    await cairn.addTurn(id, "", "", turn);
    return { turn_number: 2, input_type: "tool_call", output_type: "error", reasoning: "Timed out." };
  },
  async "turn.added, without reasoning"(cairn, id) {
    await cairn.addTurn(id);
    return { turn_number: 1, input_type: "text", output_type: "text" };
  },
  async "memory.created, with a vector"(cairn, id) {
    const memory = await cairn.addMemory(id, LONG_CONTENT, { type: "fact", tags: ["drink", "tea"] });
    return { memory_id: memory.id, content_preview: PREVIEW, type: "fact", tags: ["drink", "tea"], embedded: true };
  },
  async "memory.created, without a vector"(cairn, id) {
    const memory = await cairn.addMemory(id, "Likes tea.", { embed: false });
    return { memory_id: memory.id, content_preview: "Likes tea.", type: "general", tags: [], embedded: false };
  },
  async "memory.updated, with a new content"(cairn, id) {
    const memory = await cairn.addMemory(id, "Likes tea.", { tags: ["drink"] });
    await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: "Likes coffee.", tags: ["drink"] }));
    return { memory_id: memory.id, content_changed: true, tags_changed: false };
  },
  async "memory.updated, with new tags"(cairn, id) {
    const memory = await cairn.addMemory(id, "Likes tea.", { tags: ["drink"] });
    await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: "Likes tea.", tags: [], metadata: { k: 1 } }));
    return { memory_id: memory.id, content_changed: false, tags_changed: true };
  },
  async "memory.superseded"(cairn, id) {
    const memory = await cairn.addMemory(id, "Likes tea.");
    const newer = await cairn.addMemory(id, "Likes coffee.", { supersedes: [memory.id] });
    return { memory_id: memory.id, content_preview: "Likes tea.", superseded_by: newer.id, superseded_at: newer.created_at };
  },
  async "memory.expired"(cairn, id) {
    const memory = await cairn.addMemory(id, "Likes tea.", { ttl_seconds: 1 });
    cairn.clock.advance({ seconds: 1 });
    await cairn.runTask("memory expiry");
    return { memory_id: memory.id, content_preview: "Likes tea.", expires_at: memory.expires_at };
  },
  async "memory.deleted, with a reason"(cairn, id) {
    const memory = await cairn.addMemory(id, LONG_CONTENT);
    await cairn.ok(cairn.delete(`/v1/memory/${memory.id}?reason=outdated`));
    return { memory_id: memory.id, content_preview: PREVIEW, reason: "outdated" };
  },
  async "memory.deleted, without a reason"(cairn, id) {
    const memory = await cairn.addMemory(id, "Likes tea.");
    await cairn.ok(cairn.delete(`/v1/memory/${memory.id}`));
    return { memory_id: memory.id, content_preview: "Likes tea.", reason: null };
  },
};

for (const [name, run] of Object.entries(ACTIONS)) {
  test(`a trace has its details: ${name}`, async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession(SESSION);
    const details = await run(cairn, id);
    const [newest] = await cairn.list("/v1/traces?limit=1");
    const [action] = name.split(",");
    expect(newest).toMatchObject({ user_id: "ada", action });
    expect(newest.session_id === id).toBe(action !== "session.forked");
    expect(newest.details).toEqual(details);
  });
}

test("a state_diff tells keys such as __proto__ from others", async () => {
  await using cairn = await startCairn();
  const headers = { "content-type": "application/json" };
  const { id } = await cairn.createSession({ initial_state: { constructor: 1 } });
  await cairn.ok(cairn.request("POST", `/v1/sessions/${id}/state`, { raw: '{"state":{"__proto__":{"a":1},"toString":2}}', headers }));
  const [{ details }] = await cairn.traces(id, "state.updated");
  expect(JSON.stringify(details.state_diff)).toBe('{"added":{"__proto__":{"a":1},"toString":2},"removed":{"constructor":1},"modified":{}}');
});

test("reading, a refused change and a replayed one leave no trace", async () => {
  await using cairn = await startCairn();
  const before = await cairn.count(traces);
  const headers = { "idempotency-key": "once" };
  const { id } = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { headers }));
  await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { headers }));
  await cairn.get(`/v1/sessions/${id}`);
  await cairn.get("/v1/sessions");
  await cairn.get(`/v1/sessions/${id}/turns`);
  await cairn.get("/v1/traces");
  await cairn.context(id, { query: "tea" });
  await cairn.search("tea");
  await cairn.post(`/v1/sessions/${id}/rollback`, { version: 5 });
  await cairn.post(`/v1/sessions/${id}/state`, { state: {}, expected_version: 5 });
  await cairn.post(`/v1/sessions/${id}/turns`, {});
  await cairn.post("/v1/memory", { session_id: id, content: "x".repeat(10_001) });
  expect((await cairn.count(traces)) - before).toBe(1);
  expect(await cairn.list("/v1/traces?limit=1")).toMatchObject([{ action: "session.created", session_id: id }]);
});

test("traces are listed newest first, and session, user and action filters combine with AND", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ user_id: "ada" });
  const bo = await cairn.createSession({ user_id: "bo" });
  const ada2 = await cairn.createSession({ user_id: "ada" });
  await cairn.setState(ada.id, { step: 1 });
  await cairn.addTurn(bo.id);
  await cairn.setState(ada2.id, { step: 1 });
  const list = async (query: string) => (await cairn.list(`/v1/traces?${query}`)).map((trace: any) => [trace.session_id, trace.action]);
  const madeAda = [ada.id, "session.created"];
  const madeBo = [bo.id, "session.created"];
  const madeAda2 = [ada2.id, "session.created"];
  const stateAda = [ada.id, "state.updated"];
  const turnBo = [bo.id, "turn.added"];
  const stateAda2 = [ada2.id, "state.updated"];
  expect(await list("")).toEqual([stateAda2, turnBo, stateAda, madeAda2, madeBo, madeAda, [null, "api_key.created"]]);
  expect(await list(`session_id=${ada.id}`)).toEqual([stateAda, madeAda]);
  expect(await list("user_id=ada")).toEqual([stateAda2, stateAda, madeAda2, madeAda]);
  expect(await list("action=session.created")).toEqual([madeAda2, madeBo, madeAda]);
  expect(await list("action=state.updated&user_id=ada")).toEqual([stateAda2, stateAda]);
  expect(await list(`action=state.updated&user_id=ada&session_id=${ada.id}`)).toEqual([stateAda]);
  expect(await list(`session_id=${bo.id}&user_id=ada`)).toEqual([]);
  expect(await list("action=memory.deleted")).toEqual([]);
  await cairn.ok(cairn.delete(`/v1/sessions/${ada.id}`));
  expect(await list("action=session.deleted")).toEqual([[ada.id, "session.deleted"]]);
  expect(await list("action=session.created")).toEqual([madeAda2, madeBo, madeAda]);
});

test("the cursor of a list of traces keeps to the bounds of time", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (let i = 0; i < 4; i++) await cairn.addTurn(id);
  cairn.clock.advance({ seconds: 1 });
  for (let i = 0; i < 4; i++) await cairn.addTurn(id);
  const list = async (query: string) => {
    const { data, has_more } = (await cairn.get(`/v1/traces?session_id=${id}&${query}`)).body;
    return { ids: idsOf(data), has_more };
  };
  const { ids } = await list("");
  expect(ids).toHaveLength(9);
  // A cursor that is newer than the bound changes nothing.
  const before = "created_before=2026-05-07T08:00:01Z";
  expect(await list(`${before}&starting_after=${ids[1]}&limit=1`)).toEqual({ ids: ids.slice(4, 5), has_more: true });
  expect(await list(`${before}&starting_after=${ids[5]}`)).toEqual({ ids: ids.slice(6), has_more: false });
  expect(await list(`created_after=2026-05-07T08:00:00Z&starting_after=${ids[1]}`)).toEqual({ ids: ids.slice(2, 4), has_more: false });
});

test("traces outlive their session; for them session_id is only a filter", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await cairn.addTurn(id);
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  const actions = ["session.deleted", "turn.added", "session.created"];
  expect((await cairn.traces(id)).map(({ action }) => action)).toEqual(actions);
  await cairn.restart();
  expect((await cairn.traces(id)).map(({ action }) => action)).toEqual(actions);
  for (const other of [unknownId("sess"), "sess_short", "nonsense", "%00"]) {
    const listed = await cairn.get(`/v1/traces?session_id=${other}`);
    expect([other, listed.status, listed.body.data]).toEqual([other, 200, []]);
  }
});

const RETENTION = [
  { tier: "free", days: 7 },
  { tier: "pro", days: 90 },
  { tier: "enterprise", days: 365 },
] as const;

for (const { tier, days } of RETENTION) {
  test(`a trace left by a key of the tier ${tier} is gone after ${days} days, and not before`, async () => {
    await using cairn = await startCairn();
    const [key, reader] = [await cairn.newKey({ tier }), await cairn.newKey({ scopes: ["read"] })];
    const { id } = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot", user_id: "ada" }, { key }));
    const [trace] = await cairn.traces(id);
    const visible = async () => [
      (await cairn.get(`/v1/traces/${trace.id}`)).status,
      idsOf(await cairn.list("/v1/traces", { key: reader })).length,
      idsOf(await cairn.list(`/v1/traces?user_id=ada&action=session.created&session_id=${id}`)).length,
    ];
    cairn.clock.advance({ days, ms: -1 });
    await cairn.runTask("trace retention");
    expect(await visible()).toEqual([200, 1, 1]);
    cairn.clock.advance({ ms: 1 });
    expect(await visible()).toEqual([404, 0, 0]);
    // The rows go with the day that has passed.
    cairn.clock.advance({ days: 1 });
    await cairn.runTask("trace retention");
    expect(await cairn.list(`/v1/traces?session_id=${id}`)).toEqual([]);
    cairn.clock.advance({ days: 365 });
    await cairn.runTask("trace retention");
    expect(await cairn.counts([traces, traces.index.bySession, traces.index.byUser])).toEqual([0, 0, 0]);
    expect(await visible()).toEqual([404, 0, 0]);
  });
}

test("traces that enterprise keys leave are kept as long as trace_retention_days says when they are left", async () => {
  await using cairn = await startCairn();
  const { id: before } = await cairn.createSession();
  await cairn.ok(cairn.patch("/v1/settings", { trace_retention_days: 10 }));
  const { id: after } = await cairn.createSession();
  const pro = await cairn.newKey({ tier: "pro" });
  const { id: ofPro } = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { key: pro }));
  const reader = await cairn.newKey({ scopes: ["read"] });
  const visible = async () => (await cairn.list("/v1/traces", { key: reader })).map((trace: any) => trace.session_id);
  cairn.clock.advance({ days: 10, ms: -1 });
  expect(await visible()).toEqual([ofPro, after, before]);
  cairn.clock.advance({ ms: 1 });
  expect(await visible()).toEqual([ofPro, before]);
  cairn.clock.advance({ days: 80 });
  expect(await visible()).toEqual([before]);
  cairn.clock.advance({ days: 275 });
  expect(await visible()).toEqual([]);
});

test("what is past its time goes in pieces and takes nothing else along", async () => {
  await using cairn = await startCairn();
  const free = await cairn.newKey({ tier: "free" });
  const { id } = await cairn.createSession({ user_id: "ada", ttl_seconds: 2_592_000 });
  const turn = { input: { type: "text", content: "in" }, output: { type: "text", content: "out" } };
  const add = (count: number) =>
    Promise.all(Array.from({ length: count }, () => cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, turn, { key: free }))));
  await add(200);
  cairn.clock.advance({ days: 5 });
  await add(150);
  cairn.clock.advance({ days: 3 });
  await cairn.runTask("trace retention");
  const pages = await pagesOf(cairn, "/v1/traces?limit=100", { key: free });
  const numbers = pages.flatMap(({ data }) => data.map((trace: any) => trace.details.turn_number));
  expect(numbers).toEqual([...Array.from({ length: 150 }, (_, i) => 350 - i), undefined]);
  expect(await cairn.counts([traces, traces.index.bySession, traces.index.byUser])).toEqual([
    // With those of the two keys, which are of no session.
    153, 151, 151,
  ]);
});
