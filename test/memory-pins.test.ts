/**
 * Pinned memories: first in every context of their owner, and few.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

const add = (cairn: Cairn, content: string, more: object = {}) =>
  cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content, pinned: true, ...more }));
const shown = (context: { memories: { content: string; pinned?: true }[] }) =>
  context.memories.map(({ content, pinned = false }) => (pinned ? `${content} *` : content));

/** As many as an owner may have. */
async function fill(cairn: Cairn, more: object = {}): Promise<{ id: string }[]> {
  const memories = Array.from({ length: 20 }, (_, i) => ({ user_id: "ada", content: `Rule ${i}`, pinned: true, ...more }));
  return (await cairn.ok(cairn.post("/v1/memory/batch", { memories }))).data;
}

test("pinned memories come first in every context of their user, besides the limit and whatever the query", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const other = await cairn.createSession({ user_id: "ada" });
  const rule = await add(cairn, "Answer in French.");
  expect(rule.pinned).toBe(true);
  cairn.clock.advance({ seconds: 1 });
  const own = await cairn.addMemory(session.id, "Be brief.", { pinned: true });
  for (const text of ["The customer prefers tea.", "The parcel is blue.", "It rains."]) {
    cairn.clock.advance({ seconds: 1 });
    expect((await cairn.addMemory(session.id, text)).pinned).toBe(false);
  }
  await cairn.ok(cairn.post("/v1/memory", { user_id: "bo", content: "Of another user.", pinned: true }));
  const PINS = ["Be brief. *", "Answer in French. *"];
  for (const { id } of [session, other]) {
    expect(shown(await cairn.context(id, { memory_limit: 1 }))).toEqual([...PINS, "It rains."]);
    expect(shown(await cairn.context(id, { memory_limit: 0, query: "tea" }))).toEqual(PINS);
    expect(shown(await cairn.context(id, { query: "The customer prefers tea.", memory_limit: 1 }))).toEqual([
      ...PINS,
      "The customer prefers tea.",
    ]);
    expect(shown(await cairn.context(id, { include: ["pinned"], query: "tea" }))).toEqual(PINS);
  }
  // What is not asked for as pinned is found like any other.
  expect(shown(await cairn.context(other.id, { include: ["memories"], query: "Be brief.", memory_limit: 1 }))).toEqual(["Be brief."]);
  expect(shown(await cairn.context(other.id, { include: ["state"] }))).toEqual([]);
  expect(shown(await cairn.context(session.id, { memory_scope: "session", memory_limit: 0 }))).toEqual(["Be brief. *"]);
  expect(shown(await cairn.context(other.id, { memory_scope: "session" }))).toEqual([]);

  const found = await cairn.context(other.id, { query: "Be brief.", memory_limit: 1, explain: true });
  expect(found.memories[0]).toMatchObject({ id: own.id, score: 1, pinned: true, explanation: {} });
  const block = await cairn.context(session.id, { format: "text", memory_limit: 1 });
  expect(block.text.split("\n").filter((line: string) => line.startsWith("- "))).toEqual([
    expect.stringContaining("Be brief."),
    expect.stringContaining("Answer in French."),
    expect.stringContaining("It rains."),
  ]);

  expect((await cairn.ok(cairn.patch(`/v1/memory/${rule.id}`, { pinned: false }))).pinned).toBe(false);
  expect(shown(await cairn.context(other.id, { memory_limit: 0 }))).toEqual(["Be brief. *"]);
  expect((await cairn.ok(cairn.patch(`/v1/memory/${rule.id}`, { pinned: true }))).pinned).toBe(true);
  expect((await cairn.ok(cairn.patch(`/v1/memory/${rule.id}`, { tags: ["a"] }))).pinned).toBe(true);
  expect(shown(await cairn.context(other.id, { memory_limit: 0 }))).toEqual(PINS);
  expect(await cairn.findings()).toEqual([]);
});

test("a context shows what was pinned and current then, and nothing of it that is past, deleted or has expired", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada", ttl_seconds: "never" });
  const pins = async (more: object = {}) => shown(await cairn.context(id, { include: ["pinned"], ...more }));
  const rome = await add(cairn, "Ships from Rome.", { valid_from: "2020-01-01T00:00:00Z" });
  const oslo = await add(cairn, "Ships from Oslo.", { supersedes: [rome.id] });
  await add(cairn, "Open late today.", { valid_until: "2026-05-07T20:00:00Z" });
  const gone = await add(cairn, "Closes soon.", { ttl_seconds: 60 });
  await add(cairn, "Moves next year.", { valid_from: "2027-01-01T00:00:00Z" });
  expect(await pins()).toEqual(["Closes soon. *", "Open late today. *", "Ships from Oslo. *"]);
  expect(await pins({ as_of: "2021-01-01T00:00:00Z" })).toEqual(["Closes soon. *", "Open late today. *", "Ships from Rome. *"]);
  expect(await pins({ as_of: "2030-01-01T00:00:00Z" })).toEqual(["Moves next year. *", "Ships from Oslo. *"]);
  cairn.clock.advance({ days: 1 });
  expect(await pins()).toEqual(["Ships from Oslo. *"]);
  await cairn.runTask("memory expiry");
  expect((await cairn.get(`/v1/memory/${gone.id}`)).status).toBe(404);
  await cairn.ok(cairn.delete(`/v1/memory/${oslo.id}`));
  expect(await pins()).toEqual(["Ships from Rome. *"]);
  await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(await cairn.findings()).toEqual([]);
});

test("an owner has 20 pinned memories at most: another one is refused, and nothing is changed", async () => {
  await using cairn = await startCairn();
  const [first] = await fill(cairn);
  const plain = await add(cairn, "One more", { pinned: false });
  const refused = { status: 409, code: "version_conflict", param: "pinned" };
  const sent = { user_id: "ada", content: "One more", pinned: true };
  expect(refusal(await cairn.post("/v1/memory", sent))).toMatchObject(refused);
  expect(refusal(await cairn.patch(`/v1/memory/${plain.id}`, { pinned: true }))).toMatchObject(refused);
  const update = { ...sent, on_duplicate: "update" };
  expect(refusal(await cairn.post("/v1/memory", update))).toMatchObject(refused);
  const batch = { memories: [{ ...sent, content: "Not stored", pinned: false }, sent] };
  expect(refusal(await cairn.post("/v1/memory/batch", batch))).toMatchObject({ ...refused, param: "memories[1].pinned" });
  expect(await cairn.list("/v1/memory?user_id=ada&limit=100")).toHaveLength(21);
  // Another owner's are counted apart: another user's, a session's without a user, an agent's.
  const session = await cairn.createSession({ agent_id: "bot" });
  for (const of of [{ user_id: "bo" }, { user_id: null, session_id: session.id }, { user_id: null, agent_id: "bot" }])
    expect((await add(cairn, "Of another", of)).pinned).toBe(true);
  expect(shown(await cairn.context(session.id))).toEqual(["Of another *"]);
  // A change of one that is pinned is none more, and one that takes the place of another has that one's.
  await cairn.ok(cairn.patch(`/v1/memory/${first!.id}`, { content: "Rule of today", pinned: true }));
  const next = await add(cairn, "Rule of tomorrow", { supersedes: [first!.id] });
  expect(refusal(await cairn.patch(`/v1/memory/${plain.id}`, { pinned: true }))).toMatchObject(refused);
  await cairn.ok(cairn.patch(`/v1/memory/${next.id}`, { valid_until: new Date(cairn.clock.now() + 1000).toISOString() }));
  cairn.clock.advance({ seconds: 1 });
  await cairn.ok(cairn.patch(`/v1/memory/${plain.id}`, { pinned: true }));
  expect(refusal(await cairn.patch(`/v1/memory/${next.id}`, { valid_until: null }))).toMatchObject(refused);
  expect(await cairn.findings()).toEqual([]);
});

test("two clients at once do not pin more than there may be", async () => {
  await using cairn = await startCairn();
  const [first] = await fill(cairn);
  await cairn.ok(cairn.patch(`/v1/memory/${first!.id}`, { pinned: false }));
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, i) => cairn.post("/v1/memory", { user_id: "ada", content: `At once ${i}`, pinned: true })),
  );
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(3);
});

test("a key that is bound to an agent sees the pinned memories of that agent alone", async () => {
  await using cairn = await startCairn();
  await add(cairn, "Of the other agent", { agent_id: "other" });
  await add(cairn, "Of the agent", { agent_id: "bot" });
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { agent_id: "bot", scopes: ["read", "write"] }));
  const { id } = await cairn.createSession({ user_id: "ada", agent_id: "bot" });
  const { body } = await cairn.post(`/v1/sessions/${id}/context`, {}, { key });
  expect(shown(body)).toEqual(["Of the agent *"]);
});

test("a fork shows the pinned memories that it began with, and a budget leaves pinned ones out last", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await cairn.addMemory(id, "The first rule of the house.", { pinned: true });
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { memories: "session" }));
  await cairn.addMemory(id, "The second rule of the house.", { pinned: true });
  expect(shown(await cairn.context(fork.id))).toEqual(["The first rule of the house. *"]);
  await cairn.addTurn(id, "Hello", "Hi");
  for (let i = 0; i < 5; i++) await cairn.addMemory(id, `The customer prefers tea number ${i}, with milk and a lot of sugar.`);
  const whole = await cairn.context(id, { format: "text" });
  expect(whole.omitted).toEqual({ memories: 0, pinned: 0, turns: 0, state: 0 });
  const lines = (text: string) => text.split("\n").filter((line) => line.startsWith("- "));
  for (let max_tokens = whole.token_count; ; max_tokens -= 40) {
    const { status, body } = await cairn.post(`/v1/sessions/${id}/context`, { format: "text", max_tokens, memory_limit: 5 });
    if (status === 400) break;
    const { memories, pinned } = body.omitted;
    expect(lines(body.text)).toHaveLength(7 - memories - pinned);
    expect(pinned === 0 || memories === 5).toBe(true);
    expect(body.memories[0]).toMatchObject({ pinned: true });
  }
});
