/**
 * Memories that belong to a user or an agent, with a session or without one.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { errorOf, idsOf, refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";

const add = (body: object) => ({ content: "The customer prefers tea.", ...body });

test("a memory of a user or an agent needs no session, is read as it was answered, and is found for its owner", async () => {
  await using cairn = await startCairn();
  const ofUser = await cairn.ok(cairn.post("/v1/memory", add({ user_id: "ada" })));
  expect(ofUser).toMatchObject({ session_id: null, user_id: "ada", agent_id: null, vector_available: true });
  const ofAgent = await cairn.ok(cairn.post("/v1/memory", add({ agent_id: "bot" })));
  expect(ofAgent).toMatchObject({ session_id: null, user_id: null, agent_id: "bot" });
  const ofBoth = await cairn.ok(cairn.post("/v1/memory", add({ user_id: "ada", agent_id: "bot" })));
  expect(ofBoth).toMatchObject({ session_id: null, user_id: "ada", agent_id: "bot" });
  for (const memory of [ofUser, ofAgent, ofBoth]) expect((await cairn.get(`/v1/memory/${memory.id}`)).body).toEqual(memory);
  expect(await cairn.list("/v1/memory?user_id=ada")).toEqual([ofBoth, ofUser]);
  expect(await cairn.list("/v1/memory?agent_id=bot")).toEqual([ofBoth, ofAgent]);
  expect(await cairn.list("/v1/memory?agent_id=bot&user_id=ada")).toEqual([ofBoth]);
  const found = async (filter: Record<string, unknown>) => (await cairn.search("Does the customer prefer tea?", filter)).data;
  const { id, session_id, user_id, agent_id, content } = ofUser;
  expect(await found({ user_id: "ada" })).toMatchObject([{ id: ofBoth.id }, { id, session_id, user_id, agent_id, content }]);
  expect(idsOf(await found({ agent_id: "bot" }))).toEqual([ofBoth.id, ofAgent.id]);
  expect((await cairn.list("/v1/users")).map((user) => [user.id, user.memories])).toEqual([["ada", 2]]);
  expect(idsOf(await cairn.list("/v1/agents"))).toEqual(["bot"]);
  expect(await cairn.findings()).toEqual([]);
});

test("a memory with a session is its session's; another owner than that is refused, and so is none at all", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada", agent_id: "bot" });
  const named = { session_id: session.id, user_id: "ada", agent_id: "bot" };
  expect(await cairn.ok(cairn.post("/v1/memory", add(named)))).toMatchObject(named);
  expect(await cairn.addMemory(session.id, "tea")).toMatchObject(named);
  for (const param of ["user_id", "agent_id"]) {
    const answer = await cairn.post("/v1/memory", add({ session_id: session.id, [param]: "somebody else" }));
    expect(errorOf(answer)).toMatchObject({ status: 400, code: "invalid_request", param });
    expect(errorOf(answer).message).toContain("session_id");
  }
  for (const body of [{}, { session_id: null, user_id: null, agent_id: null }])
    expect(refusal(await cairn.post("/v1/memory", add(body)))).toEqual({ status: 400, code: "invalid_request", param: "session_id" });
  expect((await cairn.session(session.id)).memory_count).toBe(2);
});

test("a session's end concerns no memory of its user's without a session, and its contexts have those", async () => {
  await using cairn = await startCairn({ environment: { memories_on_expiry: "delete" } });
  const kept = await cairn.ok(cairn.post("/v1/memory", add({ user_id: "ada" })));
  const agents = await cairn.ok(cairn.post("/v1/memory", add({ agent_id: "agent" })));
  const session = await cairn.createSession({ user_id: "ada" });
  const own = await cairn.addMemory(session.id, "The customer prefers tea with milk.");
  expect(idsOf((await cairn.context(session.id)).memories)).toEqual([own.id, kept.id]);
  const found = idsOf((await cairn.context(session.id, { query: "tea?" })).memories);
  expect(new Set(found)).toEqual(new Set([kept.id, own.id]));
  await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
  expect(await cairn.list("/v1/memory")).toEqual([agents, kept]);
  const expiring = await cairn.createSession({ user_id: "ada", ttl_seconds: 1 });
  await cairn.addMemory(expiring.id, "gone soon");
  cairn.clock.advance({ seconds: 2 });
  await cairn.runTask("session expiry");
  await cairn.runTask("session removal");
  expect(await cairn.list("/v1/memory?user_id=ada")).toEqual([kept]);
});

test("a bound key's memories without a session are its user's and its agent's, and no other key of a kind sees them", async () => {
  await using cairn = await startCairn();
  const [ada, bo] = [await cairn.newKey({ owner: { userId: "ada" } }), await cairn.newKey({ owner: { userId: "bo" } })];
  const bot = await cairn.newKey({ owner: { agentId: "bot" } });
  const mine = await cairn.ok(cairn.post("/v1/memory", add({}), { key: ada }));
  expect(mine).toMatchObject({ session_id: null, user_id: "ada", agent_id: null });
  const agents = await cairn.ok(cairn.post("/v1/memory", add({}), { key: bot }));
  expect(agents).toMatchObject({ session_id: null, user_id: null, agent_id: "bot" });
  expect(refusal(await cairn.post("/v1/memory", add({ user_id: "bo" }), { key: ada }))).toEqual({
    status: 403,
    code: "permission_denied",
    param: "user_id",
  });
  for (const key of [bo, bot]) {
    expect((await cairn.get(`/v1/memory/${mine.id}`, { key })).status).toBe(404);
    expect((await cairn.patch(`/v1/memory/${mine.id}`, { type: "fact" }, { key })).status).toBe(404);
    expect((await cairn.delete(`/v1/memory/${mine.id}`, { key })).status).toBe(404);
    expect(idsOf(await cairn.list("/v1/memory", { key }))).toEqual(key === bot ? [agents.id] : []);
  }
  // Whoever sees a memory sees its traces.
  const traced = await cairn.list("/v1/traces?action=memory.created", { key: ada });
  expect(traced).toMatchObject([{ session_id: null, user_id: "ada", details: { memory_id: mine.id } }]);
  expect(await cairn.list("/v1/traces?action=memory.created", { key: bo })).toEqual([]);
  const [trace] = traced;
  expect((await cairn.get(`/v1/traces/${trace.id}`, { key: ada })).body).toEqual(trace);
});

test("changing and deleting a memory without a session leaves traces of its user and agent", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.ok(cairn.post("/v1/memory", add({ user_id: "ada", agent_id: "bot" })));
  await cairn.ok(cairn.patch(`/v1/memory/${id}`, { content: "The customer prefers coffee." }));
  await cairn.ok(cairn.delete(`/v1/memory/${id}?reason=asked`));
  const traces = await cairn.list("/v1/traces?user_id=ada");
  expect(traces.map(({ action, session_id, user_id }) => [action, session_id, user_id])).toEqual([
    ["memory.deleted", null, "ada"],
    ["memory.updated", null, "ada"],
    ["memory.created", null, "ada"],
  ]);
});

test("erasing a user takes their memories without a session, with events on their way and what was delivered", async () => {
  await using cairn = await startCairn();
  const hook = await cairn.subscribe("https://hooks.example/");
  await cairn.ok(cairn.post("/v1/memory", add({ user_id: "ada", content: "erase this secret" })));
  await cairn.runTask("webhook outbox");
  await cairn.ok(cairn.post("/v1/memory", add({ user_id: "ada", content: "erase this secret too" })));
  const others = await cairn.ok(cairn.post("/v1/memory", add({ user_id: "bo" })));
  const erased = await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(erased).toMatchObject({ status: "done", sessions: 0, memories: 2 });
  await cairn.runTask("webhook outbox");
  const deliveries = await cairn.deliveries(hook.id);
  for (const { id } of deliveries) {
    const { payload } = await cairn.ok(cairn.get(`/v1/webhooks/${hook.id}/deliveries/${id}`));
    expect(JSON.stringify(payload)).not.toContain("secret");
  }
  expect(await cairn.list("/v1/memory")).toEqual([others]);
  expect((await cairn.search("secret", { threshold: 0 })).data).toMatchObject([{ id: others.id }]);
  expect((await cairn.get("/v1/users/ada/erasure")).body).toMatchObject({ status: "done" });
});
