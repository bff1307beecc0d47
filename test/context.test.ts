import { expect, test } from "bun:test";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { fillMark, memories as memoryTable, meta } from "../src/storage/tables.ts";
import { idsOf } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { roundsDuring } from "./support/loop.ts";
import { onEmbedded } from "./support/stores.ts";

test("the context of a new session is its state and nothing else, with or without a body", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { step: 0 } });
  const expected = { state: { step: 0 }, memories: [], recent_turns: [] };
  for (const body of [undefined, {}, { query: null, memory_limit: null, turn_limit: null }, { query: "tea" }]) {
    const answer = await cairn.post(`/v1/sessions/${id}/context`, body);
    expect([answer.status, answer.body]).toEqual([200, expected]);
  }
});

test("a context holds the current state, the memories and the latest turns, with these fields and no others", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.setState(id, { step: 1 });
  await cairn.setState(id, { step: 2 });
  await cairn.rollback(id, 1);
  const memory = await cairn.addMemory(id, "The customer prefers tea.", { type: "preference", tags: ["a"], metadata: { k: 1 } });
  const first = await cairn.addTurn(id, "Hello", "Hi", { reasoning: "polite", metadata: { k: 1 }, state_after: { step: 9 } });
  cairn.clock.advance({ seconds: 1 });
  const second = await cairn.addTurn(id, "Where is my order?", "On its way");
  expect(await cairn.context(id, { query: "The customer prefers tea." })).toEqual({
    state: { step: 1 },
    memories: [
      {
        id: memory.id,
        content: "The customer prefers tea.",
        type: "preference",
        source: "agent",
        score: 1,
        created_at: "2026-05-07T08:00:00.000Z",
      },
    ],
    recent_turns: [
      {
        id: second.id,
        input: { type: "text", content: "Where is my order?" },
        output: { type: "text", content: "On its way" },
        created_at: "2026-05-07T08:00:01.000Z",
      },
      {
        id: first.id,
        input: { type: "text", content: "Hello" },
        output: { type: "text", content: "Hi" },
        created_at: "2026-05-07T08:00:00.000Z",
      },
    ],
  });
});

test("five memories and ten turns come unless others are asked for: up to 20 and 50, and as few as none", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (let i = 0; i < 51; i++) await cairn.addTurn(id, `${i}`);
  for (let i = 0; i < 21; i++) await cairn.addMemory(id, `The customer prefers tea number ${i}.`);
  const counts = async (more: Record<string, unknown>) => {
    const { memories, recent_turns } = await cairn.context(id, more);
    return [memories.length, recent_turns.length];
  };
  for (const query of [undefined, "tea"]) {
    expect(await counts({ query })).toEqual([5, 10]);
    expect(await counts({ query, memory_limit: 20, turn_limit: 50 })).toEqual([20, 50]);
    expect(await counts({ query, memory_limit: 1, turn_limit: 1 })).toEqual([1, 1]);
    expect(await counts({ query, memory_limit: 0, turn_limit: 0 })).toEqual([0, 0]);
  }
});

test("the latest turns are the latest, large ones in full, however many came and were asked for since the last time", async () => {
  await using cairn = await startCairn();
  const [{ id }, other] = [await cairn.createSession(), await cairn.createSession()];
  const shown: unknown[] = [];
  for (const step of "0/3 1/3 0/3 1/3 1/3 2/3 5/3 0/4 1/3 12/10 0/10 1/50 0/2".split(" ")) {
    const [added = 0, limit] = step.split("/").map(Number);
    for (let i = 0; i < added; i++) {
      const question = shown.length % 5 === 2 ? "y".repeat(300_000) : `Question ${shown.length}`;
      const { id: turn, input, output, created_at } = await cairn.addTurn(id, question, "x".repeat(shown.length));
      shown.unshift({ id: turn, input, output, created_at });
      await cairn.addTurn(other.id, "not", "here");
    }
    expect((await cairn.context(id, { turn_limit: limit })).recent_turns).toEqual(shown.slice(0, limit));
  }
});

test("with a query the best memories come first and none is too far; without one, or with one of nothing, the newest with score 0", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const added = await cairn.addMemories(id, ["The harbour is closed.", "green tea", "The green door", "coffee", "tea"]);
  const unembedded = await cairn.addMemory(id, "green tea", { embed: false });
  const asked = await cairn.context(id, { query: "green tea" });
  expect(asked.memories[0]).toMatchObject({ id: added[1].id, score: 1 });
  expect(idsOf(asked.memories).sort()).toEqual(idsOf(added).sort());
  const scores = asked.memories.map(({ score }: { score: number }) => score);
  expect(scores).toEqual(scores.toSorted((a: number, b: number) => b - a));
  expect(scores[4]).toBeLessThan(0.3);

  const newest = [unembedded, ...added.toReversed()].slice(0, 5);
  for (const query of [undefined, null, "", " ", "\n"]) {
    const { memories } = await cairn.context(id, { query });
    expect(memories).toEqual(
      newest.map(({ id: memory, content, type, source, created_at }) => ({ id: memory, content, type, source, score: 0, created_at })),
    );
  }
});

test("a session with a user sees all memories of that user, and never another's", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ user_id: "ada" });
  const adaBefore = await cairn.createSession({ user_id: "ada", ttl_seconds: 60, agent_id: "other" });
  const bo = await cairn.createSession({ user_id: "bo" });
  const noUser = await cairn.createSession();
  const noUserEither = await cairn.createSession();
  const content = "The customer prefers tea.";
  const ofAda = await cairn.addMemory(ada.id, content);
  const ofAdaBefore = await cairn.addMemory(adaBefore.id, content);
  const ofBo = await cairn.addMemory(bo.id, content);
  const ofNoUser = await cairn.addMemory(noUser.id, content);
  // The earlier session has expired: what it knew stays with the user.
  cairn.clock.advance({ seconds: 60 });
  await cairn.runTask("session expiry");
  const cases = [
    { session: ada, sees: [ofAdaBefore, ofAda] },
    { session: bo, sees: [ofBo] },
    { session: noUser, sees: [ofNoUser] },
    { session: noUserEither, sees: [] },
  ];
  for (const { session, sees } of cases) {
    for (const query of [undefined, "customer tea", content]) {
      const { memories } = await cairn.context(session.id, { query, memory_limit: 20 });
      expect([session.user_id, query, idsOf(memories)]).toEqual([session.user_id, query, idsOf(sees)]);
    }
  }
});

test("a fork sees its user's memories; one without a user starts with none", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ user_id: "ada" });
  const noUser = await cairn.createSession();
  const memory = await cairn.addMemory(ada.id, "tea");
  await cairn.addMemory(noUser.id, "tea");
  const memoriesOf = async ({ id }: { id: string }) => {
    const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`));
    return idsOf((await cairn.context(fork.id)).memories);
  };
  expect([await memoriesOf(ada), await memoriesOf(noUser)]).toEqual([[memory.id], []]);
});

test("explain adds why to each memory that a query found, and changes nothing else", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "The doctor was late.");
  const plain = await cairn.context(id, { query: "doctor" });
  const explained = await cairn.context(id, { query: "doctor", explain: true });
  const [{ explanation, ...rest }] = explained.memories;
  expect({ ...explained, memories: [rest] }).toEqual(plain);
  expect(explanation).toMatchObject({ matches: [{ word: "doctor", matched_by: "word" }] });
  expect(await cairn.context(id, { explain: true })).toEqual(await cairn.context(id));
});

onEmbedded("an answer of a database lets others through anyway")(
  "other requests are answered while the memories of a context are explained",
  async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession();
    for (let i = 0; i < 20; i++) await cairn.addMemory(id, `The doctor was late ${i} times.`);
    const asked = { query: "doctor", memory_limit: 20 };
    // The vector of the query is kept then.
    await cairn.context(id, asked);
    const plain = await roundsDuring(cairn.context(id, asked));
    expect(await roundsDuring(cairn.context(id, { ...asked, explain: true }))).toBeGreaterThanOrEqual(plain + 20);
  },
);

onEmbedded("an answer of a database lets others through anyway")(
  "other requests are answered while a context passes over the memories of a large session that was deleted",
  async () => {
    await using cairn = await startCairn({ durability: "relaxed" });
    const { id } = await cairn.createSession({ user_id: "ada" });
    const kept = await cairn.addMemory(id, "tea", { embed: false });
    const plain = await roundsDuring(cairn.context(id));
    const large = await cairn.createSession({ user_id: "ada" });
    for (let i = 0; i < 2_500; i += 100)
      await Promise.all(Array.from({ length: 100 }, () => cairn.addMemory(large.id, "coffee", { embed: false })));
    await cairn.ok(cairn.delete(`/v1/sessions/${large.id}`));
    const context = cairn.context(id);
    expect(await roundsDuring(context)).toBeGreaterThanOrEqual(plain + 2);
    expect(idsOf((await context).memories)).toEqual([kept.id]);
  },
);

test("the score of a memory in a context is that of a search", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.addMemories(id, ["green tea", "The customer prefers tea.", "The harbour is closed."]);
  const scores = (found: { id: string; score: number }[]) => found.map((one) => [one.id, one.score]);
  const [context, search] = [await cairn.context(id, { query: "tea" }), await cairn.search("tea", { threshold: 0 })];
  expect(scores(context.memories)).toEqual(scores(search.data));
});

test("the scope of an agent holds what belongs to no user and what this user has with it, never another user's, and of a user's key that user's", async () => {
  await using cairn = await startCairn();
  const add = async (name: string, more: object) => {
    cairn.clock.advance({ seconds: 1 });
    return (await cairn.ok(cairn.post("/v1/memory", { content: `Tea is served at ${name}.`, ...more }))).content;
  };
  const session = await cairn.createSession({ agent_id: "waiter", user_id: "ada" });
  const alone = await cairn.createSession({ agent_id: "waiter" });
  const others = await cairn.createSession({ agent_id: "waiter", user_id: "bo" });
  const ofAgent = await add("noon", { agent_id: "waiter" });
  const ofUser = await add("one", { agent_id: "waiter", user_id: "ada" });
  const ofSession = await add("two", { session_id: session.id });
  const ofAlone = await add("three", { session_id: alone.id });
  for (const more of [{ user_id: "ada" }, { agent_id: "cook" }, { agent_id: "cook", user_id: "ada" }, { session_id: others.id }])
    await add("midnight", more);
  const pinned = await add("four", { agent_id: "waiter", pinned: true });
  const shown = async (id: string, query: string | undefined, key?: string) => {
    const body = { memory_scope: "agent", memory_limit: 20, query };
    const context = await cairn.ok(cairn.post(`/v1/sessions/${id}/context`, body, key === undefined ? {} : { key }));
    return new Set(context.memories.map(({ content }: { content: string }) => content));
  };
  const adas = (await cairn.ok(cairn.post("/v1/api_keys", { user_id: "ada" }))).key;
  const waiters = (await cairn.ok(cairn.post("/v1/api_keys", { agent_id: "waiter" }))).key;
  for (const query of [undefined, "When is tea served?"]) {
    for (const key of [undefined, waiters]) {
      expect(await shown(session.id, query, key)).toEqual(new Set([ofAgent, ofUser, ofSession, ofAlone, pinned]));
      expect(await shown(alone.id, query, key)).toEqual(new Set([ofAgent, ofAlone, pinned]));
    }
    expect(await shown(session.id, query, adas)).toEqual(new Set([ofUser, ofSession]));
  }
  expect((await cairn.list("/v1/users")).map(({ id }: { id: string }) => id).toSorted()).toEqual(["ada", "bo"]);
  await cairn.dropEntries(memoryTable.index.byUser, "");
  await cairn.service.store.commit(NO_PARTITION, (tx) => tx.remove(meta, fillMark(memoryTable.index.byUser.name)));
  const refused = await cairn.post(`/v1/sessions/${session.id}/context`, { memory_scope: "agent" });
  expect([refused.status, refused.body.error.param]).toEqual([503, "memory_scope"]);
  await cairn.restart();
  expect((await shown(session.id, undefined)).size).toBe(5);
  expect(await cairn.findings()).toEqual([]);
});
