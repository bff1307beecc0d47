import { expect, spyOn, test } from "bun:test";
import * as fs from "node:fs";
import { homeOfUser } from "../src/lib/ids.ts";
import { retrievals as table } from "../src/storage/tables.ts";
import { idsOf, pagesOf, refusal } from "./support/answers.ts";
import { failingCommits, startCairn, type Cairn, type Options } from "./support/cairn.ts";
import { onEmbedded } from "./support/stores.ts";

/** With the log on. */
async function startLogging(options: Options = {}): Promise<Cairn> {
  return startCairn({ ...options, environment: { retrieval_log: true, ...options.environment } });
}

const retrievals = (cairn: Cairn, id: string, query = "") => cairn.list(`/v1/sessions/${id}/retrievals?${query}`);
const search = (cairn: Cairn, session_id: string, query: string, more: object = {}) =>
  cairn.ok(cairn.post("/v1/memory/search", { query, session_id, threshold: 0, ...more }));
const context = (cairn: Cairn, id: string, query?: string, more: object = {}) =>
  cairn.ok(cairn.post(`/v1/sessions/${id}/context`, { query, ...more }));
const found = (memories: any[]) => memories.map(({ id, score, content }) => ({ id, score, content_preview: content, status: "unchanged" }));
/** Rows in the store, whoever may see them. */
const rows = (cairn: Cairn) => cairn.count(table);

test("what a search and a context found is logged by session, with scores and the turn that came of it", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await cairn.addMemory(id, "She is allergic to peanuts.", { type: "fact", tags: ["health"] });
  await cairn.addMemory(id, "She lives in Lyon.");
  const nothing = await search(cairn, id, "Is she allergic?", { threshold: 1, type: "event" });
  const asked = await search(cairn, id, "Is she allergic?", { limit: 1 });
  const turn = await cairn.addTurn(id, "Is she allergic?", "To peanuts.");
  const given = await context(cairn, id, "Where does she live?", { memory_limit: 2 });

  const actor = cairn.key.slice(0, 8);
  const common = {
    object: "retrieval",
    session_id: id,
    user_id: "ada",
    agent_id: "agent",
    actor,
    id: expect.any(String),
    created_at: expect.any(String),
    feedback: null,
  };
  const ofSearch = { ...common, state_version: null, turns: [], operation: "search", query: "Is she allergic?", turn_id: turn.id };
  expect(nothing.data).toEqual([]);
  expect(await retrievals(cairn, id)).toEqual([
    {
      ...common,
      operation: "context",
      query: "Where does she live?",
      limit: 2,
      threshold: 0,
      filtered: false,
      request: { memory_limit: 2, format: "json" },
      memories: found(given.memories),
      state_version: 0,
      turns: [turn.id],
      turn_id: null,
    },
    { ...ofSearch, limit: 1, threshold: 0, filtered: false, request: {}, memories: found(asked.data) },
    { ...ofSearch, limit: 10, threshold: 1, filtered: true, request: { type: "event" }, memories: [] },
  ]);
  const next = await cairn.addTurn(id, "Where does she live?", "In Lyon.");
  expect((await retrievals(cairn, id)).map(({ turn_id }) => turn_id)).toEqual([next.id, turn.id, turn.id]);
});

test("what is found is logged unless the setting is off, and a store that has it off keeps that", async () => {
  await using cairn = await startCairn({ environment: { retrieval_log: undefined } });
  const { id } = await cairn.createSession();
  const { retrieval_id } = await search(cairn, id, "by default");
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: false }));
  await search(cairn, id, "switched off");
  await cairn.restart();
  await search(cairn, id, "after a restart");
  expect(await retrievals(cairn, id)).toMatchObject([{ id: retrieval_id, query: "by default" }]);
  expect((await cairn.settings()).retrieval_log).toEqual({ value: false, default: true, source: "setting" });
});

test("nothing is logged while the setting is off, and from the moment it is on", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "She lives in Lyon.");
  await search(cairn, id, "before");
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: true }));
  await search(cairn, id, "while");
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: null }));
  await context(cairn, id, "after");
  expect((await retrievals(cairn, id)).map(({ query }) => query)).toEqual(["while"]);
});

test("searches of no session are logged for their user or agent, of the request or of the key", async () => {
  await using cairn = await startLogging();
  const memory = await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", agent_id: "guide", content: "She lives in Lyon." }));
  const other = await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "She lives in Lyon since May." }));
  const ask = (query: string, more: object, key = cairn.key) =>
    cairn.ok(cairn.post("/v1/memory/search", { query, threshold: 0, ...more }, { key }));
  const ofAda = await cairn.newKey({ owner: { userId: "ada" } });
  const ofGuide = await cairn.newKey({ owner: { agentId: "guide" } });
  const ofBo = await cairn.newKey({ owner: { userId: "bo" } });
  const { retrieval_id } = await ask("Where?", { user_id: "ada" });
  await ask("Where does she live?", {}, ofAda);
  await ask("Who?", { agent_id: "guide" });
  await ask("Where now?", { user_id: "ada" }, ofGuide);
  await ask("His", {}, ofBo);
  expect(await ask("All", {})).not.toHaveProperty("retrieval_id");
  const list = (query: string, key = cairn.key) => cairn.list(`/v1/retrievals?${query}`, { key });
  const queries = async (query: string, key = cairn.key) => (await list(query, key)).map((one: any) => one.query);
  expect(await queries("user_id=ada")).toEqual(["Where now?", "Where does she live?", "Where?"]);
  expect(await queries("agent_id=guide")).toEqual(["Where now?", "Who?"]);
  expect(await queries("user_id=ada&agent_id=guide")).toEqual(["Where now?"]);
  expect(await queries("", ofAda)).toEqual(["Where now?", "Where does she live?", "Where?"]);
  expect(await queries("user_id=ada", ofBo)).toEqual([]);
  expect(await queries("")).toEqual(["His", "Where now?", "Who?", "Where does she live?", "Where?"]);
  const one = await cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}`, { key: ofAda }));
  expect(one).toMatchObject({ session_id: null, user_id: "ada", agent_id: null, turn_id: null, request: { user_id: "ada" } });
  expect(new Set(one.memories.map((found: any) => found.id))).toEqual(new Set([memory.id, other.id]));
  expect(await list("user_id=ada")).toContainEqual(one);
  const missing = { status: 404, code: "resource_not_found", param: "retrieval_id" };
  for (const key of [ofGuide, ofBo]) expect(refusal(await cairn.get(`/v1/retrievals/${retrieval_id}`, { key }))).toEqual(missing);
  await cairn.ok(cairn.post(`/v1/retrievals/${retrieval_id}/feedback`, { useful: [memory.id] }));
  expect((await cairn.list("/v1/traces?action=retrieval.rated"))[0]).toMatchObject({ session_id: null, details: { retrieval_id } });
  await cairn.ok(cairn.delete("/v1/users/ada"));
  expect([await queries("user_id=ada"), await queries("agent_id=guide"), await rows(cairn)]).toEqual([[], [], 1]);
  cairn.clock.advance({ days: 7 });
  expect(await queries("")).toEqual([]);
  await cairn.runTask("retrieval retention");
  expect(await rows(cairn)).toBe(0);
});

test("a search that waits to be logged when its user is erased is not", async () => {
  await using cairn = await startLogging();
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "She lives in Lyon." }));
  const note = { query: "late", userId: "ada", limit: 1, threshold: 0, isFiltered: false, request: {}, matches: [] };
  const { store, retrievals: log } = cairn.service;
  // As of another server, which has not written it yet.
  const id = store.newId(homeOfUser("ada"));
  await cairn.ok(cairn.delete("/v1/users/ada"));
  using _ = spyOn(store, "newId").mockReturnValue(id);
  log.note({ limitsId: "key", actor: "crn_abcd" }, { operation: "search", ...note });
  await log.settled();
  expect([await rows(cairn), (await cairn.list("/v1/retrievals?user_id=ada")).length]).toEqual([0, 0]);
});

test("a search of everybody, a context without a query and what is refused are in no log", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await cairn.addMemory(id, "She lives in Lyon.");
  await cairn.ok(cairn.post("/v1/memory/search", { query: "Lyon" }));
  await context(cairn, id);
  await context(cairn, id, "  ");
  await context(cairn, id, "Lyon", { memory_limit: 0 });
  await cairn.post("/v1/memory/search", { query: "Lyon", session_id: "sess_000000000000" });
  await cairn.post("/v1/memory/search", { query: "Lyon", session_id: id, limit: 0 });
  expect((await cairn.post(`/v1/sessions/${id}/context`, { query: "Lyon", max_tokens: 1 })).status).toBe(400);
  expect(await retrievals(cairn, id)).toEqual([]);
  expect(await rows(cairn)).toBe(0);
});

test("searches of the paths of StateBase and contexts over MCP are logged too", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "She lives in Lyon.");
  await cairn.ok(cairn.get(`/v1/memories?query=Lyon&session_id=${id}`));
  const call = { name: "get_context", arguments: { query: "Where does she live?", session_id: id } };
  const headers = { accept: "application/json, text/event-stream" };
  await cairn.post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params: call }, { headers });
  expect((await retrievals(cairn, id)).map(({ operation, query }) => [operation, query])).toEqual([
    ["context", "Where does she live?"],
    ["search", "Lyon"],
  ]);
});

test("whatever is asked at once, a turn follows what was answered before it", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "She lives in Lyon.");
  for (let step = 0; step < 5; step++) {
    await Promise.all(Array.from({ length: 12 }, (_, i) => search(cairn, id, `query ${step} ${i}`)));
    await cairn.addTurn(id, `turn ${step}`);
  }
  const turns = await cairn.list(`/v1/sessions/${id}/turns?order=asc`);
  const logged = (await retrievals(cairn, id, "limit=100")).toReversed();
  expect(logged.map(({ query }) => query.split(" ")[1])).toEqual(Array.from({ length: 60 }, (_, i) => String(Math.floor(i / 12))));
  expect(logged.map(({ turn_id }) => turn_id)).toEqual(Array.from({ length: 60 }, (_, i) => turns[Math.floor(i / 12)].id));
});

test("a retrieval is read by its id alone, as the list has it, and ends with its session", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await cairn.addMemory(id, "She lives in Lyon.");
  await context(cairn, id, "Where does she live?");
  const [one] = await retrievals(cairn, id);
  const path = `/v1/retrievals/${one.id}`;
  expect(await cairn.ok(cairn.get(path))).toEqual(one);
  const turn = await cairn.addTurn(id);
  expect(await cairn.ok(cairn.get(path, { key: await cairn.newKey({ owner: { userId: "ada" } }) }))).toEqual({ ...one, turn_id: turn.id });
  const missing = { status: 404, code: "resource_not_found", param: "retrieval_id" };
  expect(refusal(await cairn.get(path, { key: await cairn.newKey({ owner: { userId: "bo" } }) }))).toEqual(missing);
  expect(refusal(await cairn.get(`/v1/retrievals/${id}`))).toEqual(missing);
  cairn.clock.advance({ hours: 24 });
  expect(refusal(await cairn.get(path))).toEqual(missing);
});

test("the list has pages, and retrievals between two times or of one operation alone", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  const other = await cairn.createSession();
  await search(cairn, other.id, "of another session");
  const times: string[] = [];
  for (let i = 0; i < 5; i++) {
    await (i % 2 === 0 ? search(cairn, id, `${i}`) : context(cairn, id, `${i}`));
    const [newest] = await retrievals(cairn, id, "limit=1");
    times.push(newest.created_at);
    cairn.clock.advance({ seconds: 1 });
  }
  const queries = async (query: string) => (await retrievals(cairn, id, query)).map((one) => one.query).join("");
  const pages = await pagesOf(cairn, `/v1/sessions/${id}/retrievals?limit=2`);
  expect(pages.map(({ data }) => data.map((one: any) => one.query).join(""))).toEqual(["43", "21", "0"]);
  expect(await queries("operation=search")).toBe("420");
  expect(await queries("operation=context")).toBe("31");
  expect(await queries(`created_after=${times[1]}`)).toBe("432");
  expect(await queries(`created_before=${times[1]}`)).toBe("0");
  expect(await queries(`created_after=${times[0]}&created_before=${times[3]}&operation=context`)).toBe("1");
});

onEmbedded("a change can be before another one when the clock is set back")(
  "what is logged while the clock is behind has the time of the clock",
  async () => {
    await using cairn = await startLogging();
    const { id } = await cairn.createSession();
    await search(cairn, id, "before");
    await retrievals(cairn, id);
    const now = cairn.clock.now();
    cairn.clock.set(now - 60_000);
    await search(cairn, id, "behind");
    const [behind, before] = await retrievals(cairn, id);
    expect([behind.query, before.query]).toEqual(["behind", "before"]);
    expect(Date.parse(behind.created_at)).toBe(now - 60_000);
    const until = `created_before=${new Date(now - 30_000).toISOString()}`;
    expect((await retrievals(cairn, id, until)).map(({ query }) => query)).toEqual(["behind"]);
  },
);

test("the log keeps no text of memories: one that was changed shows what it says now, and one that is deleted nothing", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  const kept = await cairn.addMemory(id, `She lives in Lyon. ${"x".repeat(200)}`);
  const gone = await cairn.addMemory(id, "She lives in Paris.");
  await search(cairn, id, "Where does she live?");
  await cairn.ok(cairn.patch(`/v1/memory/${kept.id}`, { content: `She lives in Rome. ${"y".repeat(200)}` }));
  await cairn.ok(cairn.delete(`/v1/memory/${gone.id}`));
  const [{ memories }] = await retrievals(cairn, id);
  expect(Object.fromEntries(memories.map((one: any) => [one.id, one.content_preview]))).toEqual({
    [kept.id]: `She lives in Rome. ${"y".repeat(81)}`,
    [gone.id]: null,
  });
});

test("of a query the first 1,000 characters are kept, whatever they are", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  const hostile = ["😀".repeat(10_000), "\ud800\u0000\r\n\u2028", `"}],"__proto__":`, "x".repeat(1_000)];
  for (const query of hostile) await search(cairn, id, query);
  const kept = (await retrievals(cairn, id)).map(({ query }) => query).toReversed();
  expect(kept).toEqual(["😀".repeat(1_000), ...hostile.slice(1)]);
});

test("a retrieval is kept for retrieval_log_days, whatever the tier of its key, and no longer than its session", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ ttl_seconds: 20 * 86_400 });
  const free = await cairn.newKey({ tier: "free" });
  await cairn.ok(cairn.post("/v1/memory/search", { query: "a week", session_id: id }, { key: free }));
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log_days: 30 }));
  await search(cairn, id, "a month");
  const queries = async () => (await retrievals(cairn, id)).map(({ query }) => query);
  expect(await queries()).toEqual(["a month", "a week"]);
  const ids = (await retrievals(cairn, id)).map((one) => one.id);
  cairn.clock.advance({ hours: 7 * 24 - 1 });
  expect(await queries()).toEqual(["a month", "a week"]);
  cairn.clock.advance({ hours: 1 });
  expect(await queries()).toEqual(["a month"]);
  expect(await cairn.list(`/v1/sessions/${id}/timeline?kinds=retrieval`)).toHaveLength(1);
  expect(await Promise.all(ids.map(async (one) => (await cairn.get(`/v1/retrievals/${one}`)).status))).toEqual([200, 404]);
  expect(await rows(cairn)).toBe(2);
  await cairn.runTask("retrieval retention");
  expect(await rows(cairn)).toBe(1);
  cairn.clock.advance({ hours: 13 * 24 });
  await cairn.runTask("session expiry");
  expect(await rows(cairn)).toBe(0);
  for (const retrieval_log_days of [0, 366, "7"])
    expect(refusal(await cairn.patch("/v1/settings", { retrieval_log_days }))).toMatchObject({ status: 400, param: "retrieval_log_days" });
});

test("answers say under which id they are logged, at once and while the log is on alone", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "She lives in Lyon.");
  const asked = await search(cairn, id, "Where does she live?");
  const given = await context(cairn, id, "Where does she live?", {
    max_tokens: 500,
    format: "text",
    recency: { half_life_days: 9, weight: 0.5 },
  });
  for (const [{ retrieval_id }, operation] of [
    [asked, "search"],
    [given, "context"],
  ])
    expect(await cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}`))).toMatchObject({ id: retrieval_id, operation });
  expect((await cairn.ok(cairn.get(`/v1/retrievals/${given.retrieval_id}`))).request).toEqual({
    max_tokens: 500,
    format: "text",
    recency: { half_life_days: 9, weight: 0.5 },
  });
  expect(await context(cairn, id)).not.toHaveProperty("retrieval_id");
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: false }));
  expect(await search(cairn, id, "Where does she live?")).not.toHaveProperty("retrieval_id");
});

test("all that a search or a context was asked for is kept, as it was sent", async () => {
  await using cairn = await startLogging();
  const { id, user_id } = await cairn.createSession({ user_id: "ada" });
  const wishes = {
    filter: {
      "metadata.city": "Lyon",
      created_at: { $gte: "2020-01-01T00:00:00Z" },
      $or: [{ importance: { $gt: 0.5 } }, { pinned: true }],
    },
    as_of: "2026-05-07T08:00:00.000Z",
    recency: { half_life_days: 9, weight: 0.5 },
    importance_weight: 0.25,
  };
  const searched = {
    ...wishes,
    user_id,
    agent_id: "guide",
    type: "fact",
    tags: ["home"],
    tags_match: "all",
    status: "all",
    created_after: "2020-01-01T00:00:00.000Z",
    created_before: "2020-01-02T00:00:00.000Z",
  };
  const shown = {
    ...wishes,
    memory_limit: 3,
    turn_limit: 2,
    max_tokens: 500,
    format: "messages",
    memory_scope: "session",
    include: ["pinned", "memories"],
  };
  for (const [{ retrieval_id }, request] of [
    [await search(cairn, id, "tea", searched), searched],
    [await context(cairn, id, "tea", shown), shown],
  ] as const)
    expect(await cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}`))).toMatchObject({ filtered: true, request });
});

test("what else was asked for is kept up to 4,000 characters", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  const types = Array.from({ length: 60 }, (_, i) => `${i}`.padStart(60, "t"));
  for (const [count, request] of [
    [60, { types }],
    [64, null],
  ] as const) {
    const { retrieval_id } = await search(cairn, id, "tea", {
      types: [...types, ..."abcd"].slice(0, count).map((one) => one.padEnd(count, "x")),
    });
    const kept = (await cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}`))).request;
    expect(kept).toEqual(request);
  }
});

test("feedback is kept with what was found, the last one, with a trace, and goes with it", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const [one, two] = await cairn.addMemories(id, ["She lives in Lyon.", "She lived in Paris."]);
  const { retrieval_id } = await search(cairn, id, "Where does she live?");
  const path = `/v1/retrievals/${retrieval_id}/feedback`;
  await cairn.ok(cairn.post(path, { useful: [two.id], note: "older" }));
  const answer = await cairn.ok(cairn.post(path, { useful: [one.id, one.id], not_useful: [two.id], note: "now" }));
  const created_at = new Date(cairn.clock.now()).toISOString();
  expect(answer.feedback).toEqual({ useful: [one.id], not_useful: [two.id], note: "now", created_at: expect.any(String) });
  expect(Date.parse(answer.feedback.created_at)).toBeGreaterThanOrEqual(Date.parse(created_at) - 60_000);
  expect(await cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}`))).toEqual(answer);
  const [trace] = await cairn.traces(id, "retrieval.rated");
  expect(trace!.details).toEqual({ retrieval_id, useful: [one.id], not_useful: [two.id] });
  const wrong: [object, string][] = [
    [{ useful: ["mem_000000000000"] }, "useful"],
    [{ not_useful: [id] }, "not_useful"],
    [{ useful: [one.id], not_useful: [one.id] }, "not_useful"],
    [{ useful: one.id }, "useful"],
    [{ note: "x".repeat(1_001) }, "note"],
  ];
  for (const [body, param] of wrong) expect(refusal(await cairn.post(path, body))).toEqual({ status: 400, code: "invalid_request", param });
  const other = await cairn.newKey({ owner: { userId: "bob" } });
  const missing = { status: 404, code: "resource_not_found", param: "retrieval_id" };
  expect(refusal(await cairn.post(path, { useful: [] }, { key: other }))).toEqual(missing);
  expect((await cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}`))).feedback).toEqual(answer.feedback);
  await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(refusal(await cairn.post(path, {}))).toEqual(missing);
});

test("feedback names turns that a search or a context found, as well as memories", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  const memory = await cairn.addMemory(id, "The lighthouse is white.", { pinned: true });
  const [first, second] = [await cairn.addTurn(id, "the lighthouse"), await cairn.addTurn(id, "the lighthouse again")];
  const found = await cairn.ok(cairn.post("/v1/turns/search", { query: "lighthouse", session_id: id }));
  const given = await context(cairn, id, "lighthouse", { turn_limit: 1 });
  const rate = (retrieval_id: string, body: object) => cairn.post(`/v1/retrievals/${retrieval_id}/feedback`, body);
  const ofTurns = { useful: [first.id], not_useful: [second.id] };
  expect((await cairn.ok(rate(found.retrieval_id, ofTurns))).feedback).toMatchObject(ofTurns);
  const ofContext = { useful: [second.id, memory.id], not_useful: [] };
  expect((await cairn.ok(rate(given.retrieval_id, ofContext))).feedback).toMatchObject(ofContext);
  const [trace] = await cairn.traces(id, "retrieval.rated");
  expect(trace!.details).toEqual({ retrieval_id: given.retrieval_id, ...ofContext });
  const wrong = { status: 400, code: "invalid_request", param: "useful" };
  expect(refusal(await rate(given.retrieval_id, { useful: [first.id] }))).toEqual(wrong);
  expect(refusal(await rate(found.retrieval_id, { useful: [memory.id] }))).toEqual(wrong);
  expect(await cairn.findings()).toEqual([]);
});

test("what a retrieval found is unchanged since, changed or gone", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  const added = await cairn.addMemories(id, ["She lives in Lyon.", "She lives in Rome.", "She lives in Oslo."]);
  const { retrieval_id } = await search(cairn, id, "Where does she live?");
  cairn.clock.advance({ seconds: 1 });
  await cairn.ok(cairn.patch(`/v1/memory/${added[1].id}`, { content: "She lives in Bari." }));
  await cairn.ok(cairn.delete(`/v1/memory/${added[2].id}`));
  const { memories } = await cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}`));
  const statusOf = ({ id: memory }: any) => memories.find((one: any) => one.id === memory).status;
  expect(added.map(statusOf)).toEqual(["unchanged", "changed", "gone"]);
});

test("retrievals go with a session that is deleted, and with a user who is erased", async () => {
  await using cairn = await startLogging();
  const [one, two, three] = await Promise.all(["ada", "ada", "bob"].map((user_id) => cairn.createSession({ user_id })));
  // More than one commit removes.
  for (let i = 0; i < 250; i++) await search(cairn, one.id, `${i}`);
  await search(cairn, two.id, "hers");
  await search(cairn, three.id, "his");
  await retrievals(cairn, one.id);
  expect(await rows(cairn)).toBe(252);
  await cairn.ok(cairn.delete(`/v1/sessions/${one.id}`));
  await cairn.runTask("session removal");
  expect(await rows(cairn)).toBe(2);
  await search(cairn, two.id, "on its way when she is erased");
  await cairn.ok(cairn.delete("/v1/users/ada"));
  await cairn.runTask("session removal");
  expect((await cairn.get(`/v1/sessions/${two.id}/retrievals`)).status).toBe(404);
  expect((await retrievals(cairn, three.id)).map(({ query }) => query)).toEqual(["his"]);
  expect(await rows(cairn)).toBe(1);
});

test("what waits for a session that ends meanwhile is not written", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ ttl_seconds: 60 });
  await search(cairn, id, "at its end");
  cairn.clock.advance({ seconds: 60 });
  await cairn.service.retrievals.settled();
  expect([await rows(cairn), cairn.service.retrievals.counts]).toEqual([0, { logged: 0, dropped: 0 }]);
});

test("a page of retrievals with many large memories lets other requests through, and ends early", async () => {
  await using cairn = await startLogging({ listProbesMax: 3_000 });
  const { id } = await cairn.createSession();
  for (let i = 0; i < 50; i++) await cairn.addMemory(id, `${i} parcels ${"x".repeat(200)}`);
  for (let i = 0; i < 6; i++) await search(cairn, id, `${i} parcels`, { limit: 50 });
  const pages = await pagesOf(cairn, `/v1/sessions/${id}/retrievals?limit=100`);
  expect(pages.length).toBeGreaterThan(1);
  expect(pages.flatMap(({ data }) => data.map((one: any) => one.query[0])).join("")).toBe("543210");
});

test("a fork begins with an empty log", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  await search(cairn, id, "before the fork");
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, {}));
  await search(cairn, fork.id, "in the fork");
  expect((await retrievals(cairn, id)).map(({ query }) => query)).toEqual(["before the fork"]);
  expect((await retrievals(cairn, fork.id)).map(({ query }) => query)).toEqual(["in the fork"]);
});

test("a key that is bound to an agent does not learn which memories of other agents a context found", async () => {
  await using cairn = await startLogging();
  const [own, other] = await Promise.all(["a", "b"].map((agent_id) => cairn.createSession({ agent_id, user_id: "ada" })));
  const mine = await cairn.addMemory(own.id, "She lives in Lyon.");
  const theirs = await cairn.addMemory(other.id, "She lives in Lyon since May.");
  await context(cairn, own.id, "Where does she live?");
  const gone = await cairn.addMemory(own.id, "She lived in Lyon.");
  await context(cairn, own.id, "Where does she live?");
  await cairn.ok(cairn.delete(`/v1/memory/${gone.id}`));
  const key = await cairn.newKey({ owner: { agentId: "a" } });
  // In the order in which they were made.
  const ids = async (path: string, as: string) => {
    const page = await cairn.list(`/v1/sessions/${own.id}/${path}`, { key: as });
    return page.map((one) => ((one.retrieval ?? one).memories.map((memory: any) => memory.id) as string[]).toSorted());
  };
  for (const path of ["retrievals", "timeline?kinds=retrieval"]) {
    expect(await ids(path, cairn.key)).toEqual([
      [mine.id, theirs.id, gone.id],
      [mine.id, theirs.id],
    ]);
    expect(await ids(path, key)).toEqual([[mine.id, gone.id], [mine.id]]);
  }
  expect((await cairn.get(`/v1/sessions/${other.id}/retrievals`, { key })).status).toBe(404);
});

test("the timeline has retrievals before the turn that came of them", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "She lives in Lyon.");
  await context(cairn, id, "Where does she live?");
  const turn = await cairn.addTurn(id, "Where does she live?", "In Lyon.");
  const entries = await cairn.list(`/v1/sessions/${id}/timeline?order=asc`);
  expect(entries.map(({ kind }) => kind)).toEqual(["version", "memory", "retrieval", "turn"]);
  const [retrieval] = await retrievals(cairn, id);
  expect(entries[2]).toEqual({
    object: "timeline_entry",
    id: retrieval.id.replace("ret", "entry"),
    kind: "retrieval",
    retrieval: { ...retrieval, turn_id: turn.id },
  });
});

test("a stop writes what is not yet logged", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  await search(cairn, id, "right before the stop");
  expect(await rows(cairn)).toBe(0);
  await cairn.restart();
  expect(await rows(cairn)).toBe(1);
});

test("what waits is written by the task within a tenth of a second, with however many reads meanwhile", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  await search(cairn, id, "one");
  expect(await cairn.runTaskOnce("log of retrievals")).toBeLessThanOrEqual(100);
  expect(await rows(cairn)).toBe(1);
  await search(cairn, id, "two");
  expect(await cairn.runTaskOnce("log of retrievals")).toBe(100);
  expect(await rows(cairn)).toBe(1);
  cairn.clock.advance({ ms: 100 });
  await cairn.runTaskOnce("log of retrievals");
  expect(await rows(cairn)).toBe(2);
  for (let i = 0; i < 50; i++) await search(cairn, id, "many");
  await cairn.service.retrievals.settled();
  expect(await rows(cairn)).toBe(52);
  expect(await cairn.runTaskOnce("log of retrievals")).toBeGreaterThan(100);
});

onEmbedded("it has a disk of its own")(
  "reading never fills a store: the log leaves a tenth of it to changes, drops what it cannot write, and says so",
  async () => {
    await using cairn = await startLogging();
    const { id } = await cairn.createSession();
    const dropped = async () => /cairn_retrievals_total\{outcome="dropped"\} (\d+)/.exec((await cairn.plain("GET", "/metrics")).text)?.[1];
    // Of a small store a megabyte is left.
    await cairn.ok(cairn.patch("/v1/settings", { max_store_bytes: 2 ** 20 }));
    for (let i = 0; i < 3; i++) await search(cairn, id, "dropped");
    expect([await retrievals(cairn, id), await dropped()]).toEqual([[], "3"]);
    const large = { max_body_bytes: 2_000_000, max_store_bytes: 20 * 2 ** 20 };
    await cairn.ok(cairn.patch("/v1/settings", large));
    await search(cairn, id, "logged");
    expect(await retrievals(cairn, id)).toHaveLength(1);
    while (cairn.service.store.bytesUsed < 18.1 * 2 ** 20) await cairn.addTurn(id, "x".repeat(1_500_000));
    await search(cairn, id, "dropped");
    await cairn.addTurn(id);
    expect([(await retrievals(cairn, id)).length, await dropped()]).toEqual([1, "4"]);
    // Once a minute at most.
    expect(cairn.logged.filter((line) => line.includes("retrievals are not being logged"))).toHaveLength(1);
  },
);

onEmbedded("it has a disk of its own")("of a disk that is getting full the last 128 MiB are left to changes", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession();
  const real = fs.statfsSync;
  const free = (mib: number) =>
    spyOn(fs, "statfsSync").mockImplementation(((path: string) => ({ ...real(path), bsize: 2 ** 20, bavail: mib })) as never);
  for (const [mib, logged] of [
    [127, []],
    [128, ["128"]],
  ] as const) {
    using _ = free(mib);
    cairn.clock.advance({ seconds: 1 });
    await search(cairn, id, String(mib));
    await cairn.addTurn(id);
    expect((await retrievals(cairn, id)).map(({ query }) => query)).toEqual([...logged]);
  }
});

onEmbedded("it has a disk of its own")(
  "a disk that takes nothing turns no read into an error, and reads are logged again once it does",
  async () => {
    await using cairn = await startLogging();
    const { id } = await cairn.createSession();
    {
      using _ = failingCommits(cairn);
      await search(cairn, id, "lost");
      await context(cairn, id, "lost too");
      expect(await retrievals(cairn, id)).toEqual([]);
      expect(await cairn.list(`/v1/sessions/${id}/timeline`)).toHaveLength(1);
    }
    await search(cairn, id, "kept");
    expect((await retrievals(cairn, id)).map(({ query }) => query)).toEqual(["kept"]);
    expect(cairn.service.retrievals.counts).toEqual({ logged: 1, dropped: 2 });
  },
);

onEmbedded("it has a disk of its own")(
  "while the disk does not answer, 1,000 retrievals wait at most, no more than 500 of one key, and no reader for longer than a second",
  async () => {
    await using cairn = await startLogging();
    const { id } = await cairn.createSession();
    const { retrievals: log, store } = cairn.service;
    const disk = Promise.withResolvers<void>();
    const commit = store.commit.bind(store);
    using held = spyOn(store, "commit").mockImplementation(async (home, work) => {
      await disk.promise;
      return commit(home, work);
    });
    // A test that fails must end, too.
    using _ = { [Symbol.dispose]: () => disk.resolve() };
    const query = {
      sessionId: id,
      operation: "search",
      query: "?",
      limit: 1,
      threshold: 0,
      isFiltered: false,
      request: {},
      matches: [],
    } as const;
    const ask = (limitsId: string, times: number) => {
      for (let i = 0; i < times; i++) log.note({ limitsId, actor: "crn_abcd" }, query);
      return log.counts.dropped;
    };
    expect([ask("a", 500), ask("a", 1), ask("b", 499), ask("c", 1), ask("c", 1), ask("b", 1)]).toEqual([0, 1, 1, 1, 2, 3]);
    expect((await search(cairn, id, "still answered")).data).toEqual([]);
    for (const path of ["retrievals", "timeline?kinds=retrieval"]) {
      const read = cairn.list(`/v1/sessions/${id}/${path}`);
      await cairn.clock.waiting(1_000);
      cairn.clock.advance({ seconds: 1 });
      expect(await read).toEqual([]);
    }
    disk.resolve();
    await log.settled();
    held.mockRestore();
    expect(log.counts).toEqual({ logged: 1_000, dropped: 4 });
    expect([ask("a", 500), await rows(cairn)]).toEqual([4, 1_000]);
  },
);

test("searches in turns are logged for their session, or the user or agent of one that names none, with the turns that they found", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ user_id: "ada", agent_id: "guide" });
  const first = await cairn.addTurn(id, "Where is the lighthouse?", "By the harbour.");
  const second = await cairn.addTurn(id, "Is the lighthouse tall? The lighthouse of the harbour?", "Yes.");
  const searched = (more: object) => cairn.ok(cairn.post("/v1/turns/search", { query: "lighthouse", threshold: 0, ...more }));
  const got = (answer: any) => cairn.ok(cairn.get(`/v1/retrievals/${answer.retrieval_id}`));
  const filter = { turn_number: { $lte: 2 } };
  const inSession = await searched({ session_id: id, limit: 5, filter });
  const after = await cairn.addTurn(id, "Thanks.", "Gladly.");
  expect(await got(inSession)).toMatchObject({
    operation: "turn_search",
    session_id: id,
    user_id: "ada",
    query: "lighthouse",
    limit: 5,
    threshold: 0,
    filtered: true,
    request: { filter },
    memories: [],
    turns: inSession.data.map((turn: { id: string }) => turn.id),
    state_version: null,
    turn_id: after.id,
  });
  expect(new Set(idsOf(inSession.data))).toEqual(new Set([first.id, second.id]));
  expect(await retrievals(cairn, id, "operation=turn_search")).toMatchObject([{ id: inSession.retrieval_id }]);
  expect(await retrievals(cairn, id, "operation=search")).toEqual([]);
  const ofUser = await searched({ user_id: "ada", limit: 1 });
  expect(await got(ofUser)).toMatchObject({
    session_id: null,
    user_id: "ada",
    agent_id: null,
    filtered: false,
    turns: [ofUser.data[0].id],
  });
  const ada = await cairn.newKey({ owner: { userId: "ada" } });
  const ofKey = await cairn.ok(cairn.post("/v1/turns/search", { query: "lighthouse" }, { key: ada }));
  expect(await got(ofKey)).toMatchObject({ user_id: "ada", request: {} });
  const bob = await cairn.newKey({ owner: { userId: "bob" } });
  for (const one of [inSession, ofUser, ofKey])
    expect(refusal(await cairn.get(`/v1/retrievals/${one.retrieval_id}`, { key: bob }))).toMatchObject({ status: 404 });
  expect(await searched({})).not.toHaveProperty("retrieval_id");
  await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(await rows(cairn)).toBe(0);
  await cairn.ok(cairn.patch("/v1/settings", { retrieval_log: false }));
  expect(await searched({ user_id: "ada" })).not.toHaveProperty("retrieval_id");
  expect(await cairn.findings()).toEqual([]);
});

test("feedback names no memories of other agents to a key that is bound to one, and takes none from it", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ user_id: "ada", agent_id: "guide" });
  const own = await cairn.addMemory(id, "She lives in Lyon.");
  const elsewhere = { user_id: "ada", agent_id: "doctor" };
  const other = await cairn.ok(cairn.post("/v1/memory", { ...elsewhere, content: "She lives with asthma." }));
  const pin = await cairn.ok(cairn.post("/v1/memory", { ...elsewhere, content: "She lives by a diet.", pinned: true }));
  const { retrieval_id } = await context(cairn, id, "Where does she live?");
  const path = `/v1/retrievals/${retrieval_id}`;
  const key = await cairn.newKey({ owner: { agentId: "guide" } });
  await cairn.ok(cairn.post(`${path}/feedback`, { useful: [own.id, other.id], not_useful: [pin.id] }));
  expect((await cairn.ok(cairn.get(path, { key }))).feedback).toMatchObject({ useful: [own.id], not_useful: [] });
  expect((await cairn.ok(cairn.get(path))).feedback).toMatchObject({ useful: [own.id, other.id], not_useful: [pin.id] });
  for (const hidden of [other.id, pin.id, "mem_000000000000"])
    expect(refusal(await cairn.post(`${path}/feedback`, { useful: [hidden] }, { key }))).toEqual({
      status: 400,
      code: "invalid_request",
      param: "useful",
    });
});

test("a search whose filter lets one user's records alone pass is logged for that user, and erased with him", async () => {
  await using cairn = await startLogging();
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", agent_id: "guide", content: "She is allergic to peanuts." }));
  const filters = [{ user_id: "ada" }, { $and: [{ user_id: { $in: ["ada"] } }] }];
  const asked = [];
  for (const filter of filters)
    for (const more of [{ agent_id: "guide" }, {}]) {
      asked.push(await cairn.ok(cairn.post("/v1/memory/search", { query: "Ada's allergy", filter, ...more })));
      if ("agent_id" in more) asked.push(await cairn.ok(cairn.post("/v1/turns/search", { query: "Ada's allergy", filter, ...more })));
    }
  const path = ({ retrieval_id }: any) => `/v1/retrievals/${retrieval_id}`;
  for (const one of asked) expect(await cairn.ok(cairn.get(path(one)))).toMatchObject({ user_id: "ada" });
  const bo = await cairn.newKey({ owner: { userId: "bo" } });
  const his = await cairn.ok(cairn.post("/v1/memory/search", { query: "His", filter: { user_id: "ada" } }, { key: bo }));
  expect(await cairn.ok(cairn.get(path(his)))).toMatchObject({ user_id: "bo" });
  await cairn.ok(cairn.delete("/v1/users/ada"));
  for (const one of [...asked, his]) expect((await cairn.get(path(one))).status).toBe(404);
  expect(await rows(cairn)).toBe(0);
});

test("a retrieval goes with each user whom it shows or names, whosesoever it is", async () => {
  await using cairn = await startLogging({ environment: { index_turns: "words" } });
  const agent_id = "guide";
  const mate = await cairn.createSession({ user_id: "mate", agent_id });
  for (const user_id of ["ada", "bo"]) {
    await cairn.ok(cairn.post("/v1/memory", { user_id, agent_id, content: "Allergic to peanuts." }));
    const { id } = await cairn.createSession({ user_id, agent_id });
    await cairn.addTurn(id, "Allergic to peanuts.", "Noted.");
  }
  const query = "Who is allergic?";
  const filters = [
    undefined,
    { user_id: { $in: ["ada", "bo"] } },
    { $or: [{ user_id: "ada" }, { user_id: "bo" }] },
    { $not: { user_id: { $nin: ["ada", "bo"] } } },
    { user_id: { $gt: "a", $ne: "cy" }, $and: [{ $or: [{ user_id: { $in: ["bo"] } }, { user_id: "ada" }] }] },
  ];
  const asked: any[] = [];
  for (const filter of filters) asked.push(await cairn.ok(cairn.post("/v1/memory/search", { query, agent_id, filter, threshold: 0 })));
  asked.push(await cairn.ok(cairn.post("/v1/turns/search", { query, agent_id, threshold: 0 })));
  asked.push(await search(cairn, mate.id, query, { filter: filters[1] }));
  asked.push(await context(cairn, mate.id, query, { filter: filters[2], memory_scope: "agent" }));
  const path = ({ retrieval_id }: any) => `/v1/retrievals/${retrieval_id}`;
  const others = await cairn.ok(cairn.post("/v1/memory/search", { query, user_id: "cy" }));
  for (const one of asked) expect(await cairn.ok(cairn.get(path(one)))).toMatchObject({ query });
  const rated = { useful: idsOf(asked[0].data) };
  expect((await cairn.ok(cairn.post(`${path(asked[0])}/feedback`, rated))).feedback.useful).toHaveLength(2);
  expect((await cairn.list("/v1/traces?action=retrieval.rated"))[0]!.details).toMatchObject({ useful: [], unnamed_count: 2 });
  expect((await cairn.ok(cairn.delete("/v1/users/bo"))).retrievals).toBe(asked.length);
  for (const one of asked) expect((await cairn.get(path(one))).status).toBe(404);
  expect([await rows(cairn), (await cairn.get(path(others))).status]).toEqual([1, 200]);
  expect(await cairn.findings()).toEqual([]);
});

test("a retrieval of more users than it is found by is nobody's, and not logged", async () => {
  await using cairn = await startLogging();
  const named = (count: number) => ({ user_id: { $in: Array.from({ length: count }, (_, i) => `user ${i}`) } });
  const ask = (count: number) => cairn.ok(cairn.post("/v1/memory/search", { query: "tea", agent_id: "guide", filter: named(count) }));
  const { retrieval_id } = await ask(64);
  expect(await ask(65)).not.toHaveProperty("retrieval_id");
  await cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}`));
  expect(await cairn.ok(cairn.delete("/v1/users/user%2063"))).toMatchObject({ status: "done", retrievals: 1 });
  expect((await cairn.delete("/v1/users/user%2062")).status).toBe(404);
});

test("a search that waits to be logged when a user whom it names is erased is not", async () => {
  await using cairn = await startLogging();
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "She lives in Lyon." }));
  const note = {
    query: "late",
    agentId: "guide",
    users: ["bo", "ada"],
    limit: 1,
    threshold: 0,
    isFiltered: false,
    request: {},
    matches: [],
  };
  const { store, retrievals: log } = cairn.service;
  const id = store.newId(homeOfUser(null));
  await cairn.ok(cairn.delete("/v1/users/ada"));
  using _ = spyOn(store, "newId").mockReturnValue(id);
  log.note({ limitsId: "key", actor: "crn_abcd" }, { operation: "search", ...note });
  await log.settled();
  expect(await rows(cairn)).toBe(0);
});

test("the trace of feedback names no memories of other agents than the one that its readers may be bound to", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ user_id: "ada", agent_id: "guide" });
  const own = await cairn.addMemory(id, "She lives in Lyon.");
  const other = await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", agent_id: "doctor", content: "She lives with asthma." }));
  const { retrieval_id } = await context(cairn, id, "Where does she live?");
  await cairn.ok(cairn.post(`/v1/retrievals/${retrieval_id}/feedback`, { useful: [own.id], not_useful: [other.id] }));
  const key = await cairn.newKey({ owner: { agentId: "guide" }, scopes: ["read"] });
  const [trace] = await cairn.list(`/v1/traces?action=retrieval.rated&session_id=${id}`, { key });
  expect(trace!.details).toEqual({ retrieval_id, useful: [own.id], not_useful: [], unnamed_count: 1 });
});

test("a key of a user sees of a context no memories of its agent that are nobody's, and not that they are gone", async () => {
  await using cairn = await startLogging();
  const { id } = await cairn.createSession({ user_id: "ada", agent_id: "guide" });
  const own = await cairn.addMemory(id, "She lives in Lyon.");
  const ofAgent = { agent_id: "guide", content: "Lyon is where most of them live." };
  const shared = await cairn.ok(cairn.post("/v1/memory", ofAgent));
  const pin = await cairn.ok(cairn.post("/v1/memory", { ...ofAgent, content: "Answer politely.", pinned: true }));
  const { retrieval_id } = await context(cairn, id, "Where does she live?", { memory_scope: "agent" });
  const ada = await cairn.newKey({ owner: { userId: "ada" } });
  const path = `/v1/retrievals/${retrieval_id}`;
  const found = async (key: string) => new Set(idsOf((await cairn.ok(cairn.get(path, { key }))).memories));
  expect(await found(cairn.key)).toEqual(new Set([own.id, shared.id, pin.id]));
  expect(await found(ada)).toEqual(new Set([own.id]));
  const replay = (key: string) => cairn.ok(cairn.get(`${path}/context`, { key }));
  expect(await replay(cairn.key)).toMatchObject({ exact: true, changes: [], context: { memories: [{ id: pin.id }, {}, {}] } });
  const hidden = { exact: false, changes: [{ kind: "memory", id: null, change: "hidden" }], context: { memories: [{ id: own.id }] } };
  expect(await replay(ada)).toMatchObject(hidden);
});
