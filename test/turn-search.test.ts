/**
 * Turns that are searched: which are found, by what, and when they are found no more.
 *
 * @module
 */
import { expect, spyOn, test } from "bun:test";
import { indexedTurns, pendingTurns, turnVectors } from "../src/storage/tables.ts";
import { errorOf, pagesOf } from "./support/answers.ts";
import { startCairn, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { findByWords, makeVectors } from "./support/providers.ts";

interface Found {
  id: string;
  session_id: string;
  forked_from?: string;
  score: number;
  passage: { text: string; field: "input" | "output" | "reasoning"; start: number; end: number };
}

async function searched(cairn: Cairn, query: string, more: object = {}, options: RequestOptions = {}): Promise<Found[]> {
  return (await cairn.ok(cairn.post("/v1/turns/search", { query, ...more }, options))).data;
}
const idsOf = (found: readonly { id: string }[]) => found.map(({ id }) => id);
/** What is stored for searches, whether or not anybody finds it. */
const stored = (cairn: Cairn) => cairn.countsByName([indexedTurns, turnVectors, pendingTurns]);
const NOTHING = { indexed_turns: 0, turn_vectors: 0, pending_turns: 0 };
const setIndex = (cairn: Cairn, index: string | null) => cairn.ok(cairn.patch("/v1/settings", { index_turns: index }));
const indexed = (cairn: Cairn) => cairn.runTask("index of turns");
const made = (cairn: Cairn) => cairn.runTask("embeddings of turns");

/** A text of about as many characters, without anything that the tests ask for. */
const filler = (length: number) =>
  "Nothing of note was said about the weather on that long grey afternoon. ".repeat(Math.ceil(length / 72));

test("turns are found by their words as soon as they are logged, each with its passage", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const order = await cairn.addTurn(id, "Where is my order of tulip bulbs?", "It left Rotterdam on Tuesday.");
  const why = await cairn.addTurn(id, "Why so late?", "Sorry.", { reasoning: "The carrier was on strike." });
  await cairn.addTurn(id, "Thanks", "You are welcome.");
  const [first, ...others] = await searched(cairn, "tulip bulbs", { session_id: id });
  expect(others).toEqual([]);
  expect(first).toEqual({
    ...order,
    score: expect.any(Number),
    passage: { text: "Where is my order of tulip bulbs?", field: "input", start: 0, end: 33 },
  });
  expect(first!.score).toBeGreaterThan(0.7);
  expect(await searched(cairn, "Rotterdam", { user_id: "ada" })).toMatchObject([{ id: order.id, passage: { field: "output", start: 0 } }]);
  const byReason = await searched(cairn, "carrier strike");
  expect(byReason).toMatchObject([{ id: why.id, passage: { field: "reasoning", text: "The carrier was on strike." } }]);
  expect(await searched(cairn, "parrots", { session_id: id })).toEqual([]);
});

test("until turns are searched nothing is indexed by words; from the first search on each turn is, and those of before are", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const other = await cairn.createSession({ user_id: "bob" });
  const first = await cairn.addTurn(id, "The windmill needs new sails.");
  const ofOther = await cairn.addTurn(other.id, "The windmill was sold.");
  await indexed(cairn);
  const state = async () => (await cairn.ok(cairn.get("/v1/stats"))).turn_index.state;
  expect({ stored: await stored(cairn), state: await state() }).toEqual({ stored: NOTHING, state: "unused" });
  expect(idsOf(await searched(cairn, "windmill", { session_id: id }))).toEqual([first.id]);
  expect({ stored: await stored(cairn), state: await state() }).toEqual({
    stored: { indexed_turns: 1, turn_vectors: 1, pending_turns: 0 },
    state: "indexing",
  });
  const second = await cairn.addTurn(id, "The windmill turns again.");
  expect(await stored(cairn)).toMatchObject({ indexed_turns: 2 });
  expect(idsOf(await searched(cairn, "windmill"))).toEqual([first.id, ofOther.id, second.id]);
  await indexed(cairn);
  expect(await state()).toBe("ready");
});

test("a first search among more turns than it indexes says that it is partial, and a list asks for patience, until all are indexed", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const oldest = await cairn.addTurn(id, "The harpsichord is out of tune.");
  const turns = Array.from({ length: 100 }, () => ({ input: { type: "text", content: "a" }, output: { type: "text", content: "b" } }));
  for (let i = 0; i < 10; i++) await cairn.ok(cairn.post(`/v1/sessions/${id}/turns/batch`, { turns }));
  const search = async () => cairn.ok(cairn.post("/v1/turns/search", { query: "harpsichord", user_id: "ada" }));
  expect(await search()).toMatchObject({ data: [], partial: true });
  expect(errorOf(await cairn.get("/v1/turns?q=harpsichord&user_id=ada"))).toMatchObject({ code: "service_unavailable" });
  await indexed(cairn);
  expect(idsOf((await search()).data)).toEqual([oldest.id]);
  expect(await search()).not.toHaveProperty("partial");
});

test("a turn of 60 KB is found by a sentence in its middle, which is the passage that is shown", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const sentence = "The cellar key hangs behind the barometer. 🗝️";
  const output = `${filler(30_000)}${sentence} ${filler(30_000)}`;
  const turn = await cairn.addTurn(id, "Tell me everything.", output);
  await cairn.addTurn(id, "And then?", filler(60_000));
  const [found] = await searched(cairn, "where does the cellar key hang, behind the barometer?", { session_id: id, threshold: 0.5 });
  expect(found!.id).toBe(turn.id);
  const { text, field, start, end } = found!.passage;
  expect({ field, holds: text.includes("behind the barometer") }).toEqual({ field: "output", holds: true });
  expect(Array.from(text).length).toBeLessThanOrEqual(300);
  expect(Array.from(output).slice(start, end).join("")).toBe(text);
});

test("of a turn the first 100,000 characters are found", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const turn = await cairn.addTurn(id, "Go on.", `${filler(99_800).slice(0, 99_900)} peacock ${filler(200)} ostrich`);
  expect(idsOf(await searched(cairn, "peacock", { threshold: 0 }))).toEqual([turn.id]);
  expect((await cairn.ok(cairn.get("/v1/turns?q=peacock"))).data).toHaveLength(1);
  expect((await cairn.ok(cairn.get("/v1/turns?q=ostrich"))).data).toEqual([]);
});

test("a key that is bound to a user, or to an agent, finds the turns of no other", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ user_id: "ada", agent_id: "one" });
  const bob = await cairn.createSession({ user_id: "bob", agent_id: "two" });
  const ofAda = await cairn.addTurn(ada.id, "The alarm code is 4711.");
  const ofBob = await cairn.addTurn(bob.id, "The alarm code is 0815.");
  const key = await cairn.newKey({ owner: { userId: "ada" } });
  const agentKey = await cairn.newKey({ owner: { agentId: "two" } });
  expect(idsOf(await searched(cairn, "alarm code"))).toEqual([ofAda.id, ofBob.id]);
  expect(idsOf(await searched(cairn, "alarm code", { agent_id: "one" }))).toEqual([ofAda.id]);
  expect(idsOf(await searched(cairn, "alarm code", {}, { key }))).toEqual([ofAda.id]);
  expect(idsOf(await searched(cairn, "alarm code", {}, { key: agentKey }))).toEqual([ofBob.id]);
  expect(await searched(cairn, "alarm code", { user_id: "bob" }, { key })).toEqual([]);
  expect(errorOf(await cairn.post("/v1/turns/search", { query: "alarm", session_id: bob.id }, { key }))).toMatchObject({
    code: "session_not_found",
  });
  const listed = await cairn.ok(cairn.get("/v1/turns?q=alarm+code", { key }));
  expect(idsOf(listed.data)).toEqual([ofAda.id]);
});

test("what a rollback has hidden is found no more, until a rollback shows it again", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const kept = await cairn.addTurn(id, "The password of the greenhouse is moss.");
  await cairn.setState(id, { step: 1 });
  const hidden = await cairn.addTurn(id, "The password of the greenhouse is fern.");
  await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 0, turns: "hide" }));
  for (const scope of [{ session_id: id }, { user_id: "ada" }])
    expect(idsOf(await searched(cairn, "greenhouse password", scope))).toEqual([kept.id]);
  expect(idsOf((await cairn.ok(cairn.get("/v1/turns?q=greenhouse"))).data)).toEqual([kept.id]);
  await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 1, turns: "hide" }));
  expect(idsOf(await searched(cairn, "greenhouse password", { session_id: id }))).toEqual([kept.id, hidden.id]);
});

test("more hidden turns than are looked at first leave the shown ones to be found", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const kept = await cairn.addTurn(id, "The blue bicycle, the red one and a green one stand in the shed.");
  await cairn.setState(id, { step: 1 });
  const turns = Array.from({ length: 100 }, () => ({
    input: { type: "text", content: "The blue bicycle." },
    output: { type: "text", content: "Yes." },
  }));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/turns/batch`, { turns }));
  await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 0, turns: "hide" }));
  expect(idsOf(await searched(cairn, "blue bicycle", { session_id: id }))).toEqual([kept.id]);
});

test("of many turns that have as much of the words the one said first is found first", async () => {
  await using cairn = await startCairn({ durability: "relaxed" });
  const { id } = await cairn.createSession();
  const said = { input: { type: "text", content: "The lighthouse is white." }, output: { type: "text", content: "" } };
  const batches = [];
  for (let i = 0; i < 6; i++)
    batches.push(await cairn.ok(cairn.post(`/v1/sessions/${id}/turns/batch`, { turns: Array.from({ length: 100 }, () => said) })));
  const first = idsOf(batches[0].data).slice(0, 3);
  expect(idsOf(await searched(cairn, "which lighthouse", { session_id: id, limit: 3, threshold: 0 }))).toEqual(first);
});

test("a fork finds the turns that it has from its parent, also when that is gone, and a search of the user finds each once", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const shared = await cairn.addTurn(id, "The spare wheel lies under the boat.");
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { turns: "all" }));
  await cairn.addTurn(id, "The spare wheel was stolen.");
  expect(await searched(cairn, "spare wheel", { session_id: fork.id })).toMatchObject([
    { id: shared.id, session_id: fork.id, forked_from: id },
  ]);
  expect(await searched(cairn, "spare wheel", { user_id: "ada" })).toHaveLength(2);
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  await cairn.runTask("session removal");
  for (const scope of [{ session_id: fork.id }, { user_id: "ada" }])
    expect(await searched(cairn, "spare wheel", scope)).toMatchObject([{ id: shared.id, session_id: fork.id }]);
  await cairn.ok(cairn.delete(`/v1/sessions/${fork.id}`));
  await cairn.runTask("session removal");
  expect(await stored(cairn)).toEqual(NOTHING);
});

test("turns of a session that is deleted or expires, or whose user is erased, leave nothing to be found", async () => {
  await using cairn = await startCairn();
  await setIndex(cairn, "meaning");
  const deleted = await cairn.createSession({ user_id: "ada" });
  const expiring = await cairn.createSession({ user_id: "ada", ttl_seconds: 60 });
  const erased = await cairn.createSession({ user_id: "ada" });
  for (const { id } of [deleted, expiring, erased]) await cairn.addTurn(id, "The lighthouse keeper owns a parrot.");
  await made(cairn);
  expect(await searched(cairn, "lighthouse keeper")).toHaveLength(3);
  await cairn.ok(cairn.delete(`/v1/sessions/${deleted.id}`));
  cairn.clock.advance({ seconds: 61 });
  expect(await searched(cairn, "lighthouse keeper")).toHaveLength(1);
  await cairn.runTask("session expiry");
  await cairn.runTask("session removal");
  expect(await stored(cairn)).toEqual({ indexed_turns: 1, turn_vectors: 1, pending_turns: 0 });
  await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(await searched(cairn, "lighthouse keeper")).toEqual([]);
  await cairn.runTask("user erasure");
  expect(await stored(cairn)).toEqual(NOTHING);
});

test("by meaning a turn is found without any word of the query, by the passage that says it, once its vector is made", async () => {
  await using cairn = await startCairn();
  await setIndex(cairn, "meaning");
  const { id } = await cairn.createSession();
  const long = `${filler(2_000)}My daughter adopted a kitten last spring. ${filler(2_000)}`;
  const turn = await cairn.addTurn(id, "What is new?", long);
  await cairn.addTurn(id, "What is new?", filler(4_000));
  expect((await cairn.ok(cairn.get("/v1/stats"))).turn_index).toMatchObject({ index_turns: "meaning", pending: 2 });
  expect(idsOf(await searched(cairn, "kitten", { session_id: id }))).toEqual([turn.id]);
  await made(cairn);
  await indexed(cairn);
  expect((await cairn.ok(cairn.get("/v1/stats"))).turn_index).toMatchObject({ state: "ready", pending: 0, indexed: 2 });
  const [found] = await searched(cairn, "Do they have pets?", { session_id: id, threshold: 0 });
  expect(found!.id).toBe(turn.id);
  expect(found!.passage.text).toContain("kitten");
});

test("a session is created with an index of its own, which its forks have too", async () => {
  await using cairn = await startCairn();
  const off = await cairn.createSession({ index_turns: "off" });
  const byMeaning = await cairn.createSession({ index_turns: "meaning" });
  const plain = await cairn.createSession();
  expect([off.index_turns, byMeaning.index_turns, plain.index_turns]).toEqual(["off", "meaning", undefined]);
  await cairn.addTurn(off.id, "A violin in the attic.");
  await cairn.addTurn(byMeaning.id, "A violin in the attic.");
  await cairn.addTurn(plain.id, "A violin in the attic.");
  await searched(cairn, "violin");
  expect(await stored(cairn)).toEqual({ indexed_turns: 2, turn_vectors: 2, pending_turns: 1 });
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${off.id}/fork`, {}));
  expect(fork.index_turns).toBe("off");
  expect(await cairn.ok(cairn.post("/v1/turns/search", { query: "violin", session_id: off.id }))).toEqual({
    object: "list",
    query: "violin",
    index_turns: "off",
    data: [],
  });
  await setIndex(cairn, "off");
  await cairn.addTurn(plain.id, "A cello in the attic.");
  await cairn.addTurn(byMeaning.id, "A cello in the attic.");
  await indexed(cairn);
  expect(await stored(cairn)).toEqual({ indexed_turns: 2, turn_vectors: 2, pending_turns: 2 });
});

test("a change of the setting is followed by the turns that are there, where it was after a restart", async () => {
  await using cairn = await startCairn({ environment: { index_turns: "off" } });
  const { id } = await cairn.createSession({ user_id: "ada" });
  const content = (i: number) => ({ type: "text", content: `Crate ${i} has apples.` });
  for (let from = 0; from < 300; from += 100) {
    const turns = Array.from({ length: 100 }, (_, i) => ({ input: content(from + i), output: content(from + i) }));
    await cairn.ok(cairn.post(`/v1/sessions/${id}/turns/batch`, { turns }));
  }
  await indexed(cairn);
  expect(await stored(cairn)).toEqual(NOTHING);
  await setIndex(cairn, "words");
  await cairn.runTaskOnce("index of turns");
  expect(await stored(cairn)).toEqual(NOTHING);
  const other = await cairn.createSession();
  expect(await searched(cairn, "crate", { session_id: other.id })).toEqual([]);
  await cairn.runTaskOnce("index of turns");
  const progress = async () => (await cairn.ok(cairn.get("/v1/stats"))).turn_index;
  expect(await progress()).toEqual({ index_turns: "words", state: "indexing", looked_at: 100, indexed: 100, pending: 0 });
  await cairn.restart();
  expect(await progress()).toMatchObject({ state: "indexing", looked_at: 100 });
  await cairn.runTaskOnce("index of turns");
  expect(await progress()).toMatchObject({ looked_at: 200, indexed: 200 });
  await indexed(cairn);
  expect(await progress()).toEqual({ index_turns: "words", state: "ready", looked_at: 300, indexed: 300, pending: 0 });
  expect(await searched(cairn, "crate 17 apples", { user_id: "ada", limit: 1 })).toMatchObject([{ turn_number: 18 }]);
  await setIndex(cairn, "meaning");
  await indexed(cairn);
  expect(await stored(cairn)).toEqual({ indexed_turns: 300, turn_vectors: 300, pending_turns: 300 });
  await setIndex(cairn, "words");
  await indexed(cairn);
  expect(await stored(cairn)).toEqual({ indexed_turns: 300, turn_vectors: 300, pending_turns: 0 });
  await setIndex(cairn, "off");
  await indexed(cairn);
  expect(await stored(cairn)).toEqual(NOTHING);
});

test("the index works the share of its time that the setting says", async () => {
  await using cairn = await startCairn({ environment: { index_turns: "off" } });
  await cairn.ok(cairn.patch("/v1/settings", { index_turns_share: 0.1 }));
  const { id } = await cairn.createSession();
  const turns = Array.from({ length: 100 }, () => ({ input: { type: "text", content: "a" }, output: { type: "text", content: "b" } }));
  for (let i = 0; i < 2; i++) await cairn.ok(cairn.post(`/v1/sessions/${id}/turns/batch`, { turns }));
  await indexed(cairn);
  await setIndex(cairn, "words");
  await searched(cairn, "a", { session_id: (await cairn.createSession()).id });
  using spies = new DisposableStack();
  for (const { store } of cairn.services) {
    const commit = store.commit.bind(store);
    const spy = spies.use(spyOn(store, "commit"));
    spy.mockImplementation((partition, work) => {
      cairn.clock.advance({ seconds: 1 });
      return commit(partition, work);
    });
  }
  expect(await cairn.runTaskOnce("index of turns")).toBe(9_000);
});

test("another provider leaves turns found by their words, until their vectors are made again", async () => {
  await using cairn = await startCairn({ environment: { index_turns: "meaning" } });
  const { id } = await cairn.createSession();
  const plain = await cairn.createSession({ index_turns: "words" });
  const turn = await cairn.addTurn(id, "The harmonium needs new bellows.");
  const other = await cairn.addTurn(plain.id, "The harmonium is out of tune.");
  await made(cairn);
  await findByWords(cairn);
  if (cairn.services.length > 1) await cairn.runTask("settings of other servers");
  await makeVectors(cairn);
  await made(cairn);
  expect(idsOf(await searched(cairn, "harmonium"))).toEqual([turn.id, other.id]);
  expect(await stored(cairn)).toEqual({ indexed_turns: 2, turn_vectors: 2, pending_turns: 0 });
});

test("turns with all of the words are listed newest first, page by page", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const said: string[] = [];
  for (let i = 0; i < 5; i++) {
    said.unshift((await cairn.addTurn(id, `Parcel ${i} arrived.`, "Good.")).id);
    await cairn.addTurn(id, "The letter arrived.", "Good.");
  }
  const first = await cairn.ok(cairn.get("/v1/turns?q=parcels+arriving&limit=2&user_id=ada"));
  expect({ ids: idsOf(first.data), has_more: first.has_more }).toEqual({ ids: said.slice(0, 2), has_more: true });
  const rest = await cairn.ok(cairn.get(`/v1/turns?q=parcels&limit=10&session_id=${id}&starting_after=${first.last_id}`));
  expect({ ids: idsOf(rest.data), has_more: rest.has_more }).toEqual({ ids: said.slice(2), has_more: false });
  expect((await cairn.ok(cairn.get("/v1/turns?q=parcel+letter"))).data).toEqual([]);
  expect((await cairn.ok(cairn.get("/v1/turns?q=%F0%9F%A6%9C"))).data).toEqual([]);
  expect((await cairn.ok(cairn.get("/v1/turns?limit=100"))).data).toHaveLength(10);
});

test("a filter of turns lets through what passes, in a search and in a list, also what a fork has from its parent", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada", agent_id: "guide" });
  const bob = await cairn.createSession({ user_id: "bob", agent_id: "guide" });
  const names: Record<string, string> = {};
  const add = async (name: string, session: string, more: Record<string, unknown> = {}) => {
    cairn.clock.advance({ hours: 1 });
    names[(await cairn.addTurn(session, `The lighthouse ${name}.`, "Yes.", more)).id] = name;
  };
  const from = cairn.clock.now();
  const at = (hours: number) => new Date(from + hours * 3_600_000).toISOString();
  await add("a", id, { metadata: { channel: "chat", n: 1, deep: { x: [1, "p"] } }, external_id: "m-1" });
  await add("b", id, { metadata: { channel: "mail", n: "1" }, occurred_at: "2025-01-01T00:00:00Z" });
  await add("c", bob.id, { input: { type: "audio", content: "The lighthouse c." } });
  const cases: [filter: object, passing: string][] = [
    [{}, "abc"],
    [{ "metadata.channel": "chat" }, "a"],
    [{ "metadata.n": 1 }, "a"],
    [{ "metadata.n": { $exists: true } }, "ab"],
    [{ "metadata.deep.x": { $contains: "p" } }, "a"],
    [{ session_id: id }, "ab"],
    [{ session_id: { $ne: id } }, "c"],
    [{ user_id: { $in: ["bob", "cleo"] } }, "c"],
    [{ agent_id: "guide", external_id: { $exists: false } }, "bc"],
    [{ external_id: { $starts_with: "m-" } }, "a"],
    [{ turn_number: { $gt: 1 } }, "b"],
    [{ "input.type": "audio" }, "c"],
    [{ "output.type": { $ne: "text" } }, ""],
    [{ created_at: { $gte: at(1), $lt: at(3) } }, "ab"],
    [{ occurred_at: { $lt: "2026-01-01T00:00:00Z" } }, "b"],
    [{ $or: [{ user_id: "bob" }, { $not: { "metadata.channel": "mail" } }] }, "ac"],
  ];
  const listOf = (filter: object) => `/v1/turns?q=lighthouse&limit=1&filter=${encodeURIComponent(JSON.stringify(filter))}`;
  const named = (found: { id: string }[]) =>
    found
      .map((turn) => names[turn.id] ?? "?")
      .toSorted()
      .join("");
  for (const [filter, passing] of cases) {
    const pages = await pagesOf(cairn, listOf(filter));
    expect([filter, named(await searched(cairn, "lighthouse", { filter })), named(pages.flatMap(({ data }) => data))]).toEqual([
      filter,
      passing,
      passing,
    ]);
  }
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { turns: "all" }));
  const inFork = { session_id: fork.id, filter: { session_id: fork.id, "metadata.channel": "mail" } };
  expect(await searched(cairn, "lighthouse", inFork)).toMatchObject([{ session_id: fork.id, metadata: { channel: "mail" } }]);
  const refused: [filter: object, param: string][] = [
    [{ content: "x" }, "filter.content"],
    [{ input: { type: "text" } }, "filter.input"],
    [{ tags: { $contains: "x" } }, "filter.tags"],
    [{ created_at: { $gt: "soon" } }, "filter.created_at.$gt"],
    [{ "metadata.a": { $regex: "x" } }, "filter.metadata.a.$regex"],
  ];
  for (const [filter, param] of refused) {
    for (const answer of [cairn.post("/v1/turns/search", { query: "lighthouse", filter }), cairn.get(listOf(filter))])
      expect(errorOf(await answer)).toMatchObject({ status: 400, code: "invalid_request", param });
  }
});

test("a search compares turns with its filter as far as one request may, long ones as more, and says that its answer is partial", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  const long = "ab".repeat(30_000);
  const turn = (n: number) => ({
    input: { type: "text", content: "The lighthouse." },
    output: { type: "text", content: "Yes." },
    metadata: n < 50 ? { n, long } : { n },
  });
  for (const first of [0, 15, 30, 45, 60])
    await cairn.ok(cairn.post(`/v1/sessions/${id}/turns/batch`, { turns: Array.from({ length: 15 }, (_, i) => turn(first + i)) }));
  const search = (filter: object) => cairn.ok(cairn.post("/v1/turns/search", { query: "lighthouse", session_id: id, filter, limit: 1 }));
  const part = `${"ab".repeat(126)}bb`;
  const worst = Array.from({ length: 31 }, () => ({ "metadata.long": { $contains: part } }));
  expect(await search({ $or: [...worst, { "metadata.n": 74 }] })).toMatchObject({ data: [], partial: true });
  // What is found before that is all that was asked for.
  const found = await search({ $or: [...worst, { "metadata.n": 0 }] });
  expect([found.data.length, found.partial]).toEqual([1, undefined]);
  const cheap = await search({ "metadata.n": 74 });
  expect([cheap.data.length, cheap.partial]).toEqual([1, undefined]);
  const none = await search({ "metadata.n": 75 });
  expect([none.data.length, none.partial]).toEqual([0, undefined]);
});
