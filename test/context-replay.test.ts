/**
 * Contexts of before, built again from the log of retrievals.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

const LOGGING = { environment: { retrieval_log: true } };
const replay = (cairn: Cairn, { retrieval_id }: any, key = cairn.key) =>
  cairn.ok(cairn.get(`/v1/retrievals/${retrieval_id}/context`, { key }));

/** A session of a user with memories, two of them pinned, turns and states. */
async function filled(cairn: Cairn): Promise<{ id: string; memories: any[]; turns: any[] }> {
  const { id } = await cairn.createSession({ user_id: "ada", initial_state: { step: 0 } });
  const add = (content: string, more: Record<string, unknown> = {}) => cairn.addMemory(id, content, more);
  const memories = [
    await add("She lives in Lyon.", { type: "fact", importance: 0.9 }),
    await add("She is allergic to peanuts. ".repeat(20), { type: "fact" }),
    await add("Answer in French.", { pinned: true, source: "user" }),
    await add("She lives with a cat.", { pinned: true }),
  ];
  const turns = [];
  for (let i = 0; i < 4; i++) {
    turns.push(await cairn.addTurn(id, `question ${i} ${"about the house ".repeat(10)}`, `answer ${i}`));
    await cairn.setState(id, { step: i + 1 });
    cairn.clock.advance({ seconds: 1 });
  }
  return { id, memories, turns };
}

const REQUESTS = [
  {},
  { memory_limit: 1, turn_limit: 2, include: ["memories", "turns"] },
  { format: "text", max_tokens: 500 },
  { format: "messages", max_tokens: 420, recency: { half_life_days: 9, weight: 0.5 }, importance_weight: 0.5 },
  { format: "text", include: ["pinned", "state", "memories"], memory_scope: "session" },
];

test("a context is built again as the agent got it, whatever was asked for and has come since", async () => {
  await using cairn = await startCairn(LOGGING);
  const { id } = await filled(cairn);
  const given = [];
  for (const request of REQUESTS) given.push(await cairn.context(id, { query: "Where does she live?", ...request }));
  cairn.clock.advance({ seconds: 5 });
  await cairn.addTurn(id, "later", "later");
  await cairn.setState(id, { step: "later" });
  await cairn.addMemory(id, "She lives in a house, later.", { pinned: true });
  for (const { retrieval_id, ...context } of given) {
    const again = await replay(cairn, { retrieval_id });
    expect(again).toEqual({
      object: "context_replay",
      retrieval_id,
      exact: true,
      changes: [],
      created_at: expect.any(String),
      context,
    });
  }
});

test("a memory that was edited has the content of then, and what cannot be shown as it was is marked", async () => {
  await using cairn = await startCairn({ environment: { retrieval_log: true, memory_versions_kept: 1 } });
  const { id, memories, turns } = await filled(cairn);
  const [home, allergy, french, cat] = memories;
  const { retrieval_id, ...context } = await cairn.context(id, { query: "Where does she live?", format: "text", max_tokens: 1_500 });
  cairn.clock.advance({ seconds: 1 });
  const edit = (memory: any, content: string) => cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content }));
  await edit(home, "She lives in Rome.");
  expect(await replay(cairn, { retrieval_id })).toMatchObject({
    exact: false,
    changes: [{ kind: "memory", id: home.id, change: "edited" }],
    context,
  });
  await edit(home, "She lives in Bari.");
  await cairn.ok(cairn.delete(`/v1/memory/${allergy.id}`));
  await edit(cat, "She lives with two cats.");
  await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 1, turns: "hide" }));
  const again = await replay(cairn, { retrieval_id });
  const changes = Object.fromEntries(again.changes.map((one: any) => [one.id, one.change]));
  expect(changes).toEqual({
    [home.id]: "rewritten",
    [allergy.id]: "gone",
    [cat.id]: "edited",
    [turns[2].id]: "rolled_back",
    [turns[3].id]: "rolled_back",
  });
  expect(again.context.memories.map((one: any) => [one.id, one.content, one.pinned ?? false])).toEqual([
    [cat.id, "She lives with a cat.", true],
    [french.id, "Answer in French.", true],
    [home.id, "She lives in Bari.", false],
  ]);
  expect(again.context.recent_turns.map((one: any) => one.id)).toEqual(turns.map((one: any) => one.id).toReversed());
  expect(again.context.state).toEqual({ step: 4 });
});

test("a state that is no longer kept, and a longer text in place of a short one, do not keep a context from being built again", async () => {
  await using cairn = await startCairn({ environment: { retrieval_log: true, memory_versions_kept: 0, state_versions_kept: 1 } });
  const { id } = await cairn.createSession();
  const memory = await cairn.addMemory(id, "Lyon");
  await cairn.setState(id, { step: 1 });
  const least = /at least (\d+)/.exec(
    (await cairn.post(`/v1/sessions/${id}/context`, { query: "Lyon", max_tokens: 1 })).body.error.message,
  );
  const given = await cairn.context(id, { query: "Lyon", max_tokens: Number(least?.[1]), format: "text" });
  cairn.clock.advance({ seconds: 1 });
  await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: "Lyon ".repeat(500) }));
  for (let i = 0; i < 12; i++) await cairn.setState(id, { step: i + 2 });
  const again = await replay(cairn, given);
  expect(again).toMatchObject({
    exact: false,
    changes: [
      { kind: "memory", id: memory.id, change: "rewritten" },
      { kind: "state", id: null, change: "gone" },
    ],
    context: { memories: [{ id: memory.id, truncated: true }], state: {} },
  });
});

test("turns that a fork has from its parent are shown again, also once the parent is gone", async () => {
  await using cairn = await startCairn(LOGGING);
  const { id } = await filled(cairn);
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { turns: "all" }));
  const { retrieval_id, ...context } = await cairn.context(fork.id, { query: "Where does she live?" });
  await cairn.addTurn(fork.id, "of the fork", "later");
  expect(await replay(cairn, { retrieval_id })).toMatchObject({ exact: true, context });
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  expect((await replay(cairn, { retrieval_id })).context.recent_turns).toEqual(context.recent_turns);
});

test("only contexts are built again, and only for keys that see their session", async () => {
  await using cairn = await startCairn(LOGGING);
  const { id } = await filled(cairn);
  const given = await cairn.context(id, { query: "Where does she live?" });
  const { retrieval_id } = await cairn.ok(cairn.post("/v1/memory/search", { query: "Lyon", session_id: id }));
  const path = (one: string) => `/v1/retrievals/${one}/context`;
  const missing = { status: 404, code: "resource_not_found", param: "retrieval_id" };
  expect(refusal(await cairn.get(path(retrieval_id)))).toEqual(missing);
  const bob = await cairn.newKey({ owner: { userId: "bob" } });
  expect(refusal(await cairn.get(path(given.retrieval_id), { key: bob }))).toEqual(missing);
  const ada = await cairn.newKey({ owner: { userId: "ada" } });
  expect(await replay(cairn, given, ada)).toMatchObject({ exact: true });
  await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(refusal(await cairn.get(path(given.retrieval_id)))).toEqual(missing);
});

test("a content of then is found however many contents a memory has had since, as long as it is kept", async () => {
  await using cairn = await startCairn({ environment: { retrieval_log: true, memory_versions_kept: 30 } });
  const { id } = await cairn.createSession();
  const memory = await cairn.addMemory(id, "Lyon at first");
  const { retrieval_id, ...context } = await cairn.context(id, { query: "Lyon" });
  cairn.clock.advance({ seconds: 1 });
  for (let i = 0; i < 21; i++) await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { content: `Lyon ${i}` }));
  expect(await replay(cairn, { retrieval_id })).toMatchObject({ changes: [{ id: memory.id, change: "edited" }], context });
});
