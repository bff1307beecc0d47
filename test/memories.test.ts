import { expect, test } from "bun:test";
import { memories, vectors } from "../src/storage/tables.ts";
import { idsOf, unknownId, pagesOf, refusal } from "./support/answers.ts";
import { roundsDuring } from "./support/loop.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { onEmbedded } from "./support/stores.ts";

const MEMORY_ID = expect.stringMatching(/^mem_[0-9A-Za-z]{12}$/);
const EMBEDDING_ID = expect.stringMatching(/^emb_[0-9A-Za-z]{12}$/);

/** What the store holds of memories: what is not seen any more must also go. */
async function rowsOf(cairn: Cairn) {
  const tables = Object.entries({ memories, ...memories.index, vectors });
  const counts = await cairn.counts(tables.map(([, table]) => table));
  return Object.fromEntries(tables.map(([name], i) => [name, counts[i]!]));
}

const NO_ROWS = {
  memories: 0,
  bySession: 0,
  byUser: 0,
  byAgent: 0,
  byType: 0,
  byTag: 0,
  byMetadata: 0,
  byContent: 0,
  byExternalId: 0,
  byExpiry: 0,
  past: 0,
  pinned: 0,
  timed: 0,
  byTime: 0,
  ahead: 0,
  vectors: 0,
};

test("a memory of a content alone has every other field at its default, and a vector", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const added = await cairn.post("/v1/memory", { session_id: session.id, content: "The customer prefers tea." });
  expect(added.status).toBe(201);
  expect(added.body).toEqual({
    object: "memory",
    id: MEMORY_ID,
    session_id: session.id,
    user_id: null,
    agent_id: "agent",
    content: "The customer prefers tea.",
    type: "general",
    tags: [],
    metadata: {},
    external_id: null,
    source: "agent",
    importance: null,
    pinned: false,
    occurred_at: null,
    created_at: "2026-05-07T08:00:00.000Z",
    updated_at: "2026-05-07T08:00:00.000Z",
    expires_at: null,
    valid_from: null,
    valid_until: null,
    supersedes: [],
    superseded_by: null,
    superseded_at: null,
    embedding_id: EMBEDDING_ID,
    vector_available: true,
  });
});

test("a memory keeps every field it is added with, and is read as it was answered", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const fields = {
    content: " Ünïcode 🫖\u2028\n and \ud800 half of a pair ",
    type: "preference",
    tags: ["drinks", "a, b", "🫖", "drinks"],
    metadata: { source: "chat", nested: { deep: [1.5, null, true] } },
  };
  const memory = await cairn.addMemory(session.id, fields.content, fields);
  expect(memory).toMatchObject(fields);
  expect(await cairn.get(`/v1/memory/${memory.id}`)).toMatchObject({ status: 200, body: memory });
  expect(await cairn.list("/v1/memory")).toEqual([memory]);
  await cairn.restart();
  expect((await cairn.get(`/v1/memory/${memory.id}`)).body).toEqual(memory);
});

test("the six standard types are taken, and any other of 1 to 64 characters", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  for (const type of ["fact", "preference", "event", "policy", "observation", "general", "x", "to do", "Fact"]) {
    const { id } = await cairn.addMemory(session.id, "tea", { type });
    expect(idsOf(await cairn.list(`/v1/memory?type=${encodeURIComponent(type)}`))).toEqual([id]);
  }
});

test("a memory belongs to a live session: to none, a malformed one or one that was deleted nothing can be added", async () => {
  await using cairn = await startCairn();
  const deleted = await cairn.createSession();
  await cairn.ok(cairn.delete(`/v1/sessions/${deleted.id}`));
  for (const id of [unknownId("sess"), deleted.id, "sess_", "nonsense", "../..", unknownId("mem")]) {
    const answer = await cairn.post("/v1/memory", { session_id: id, content: "tea" });
    expect([id, refusal(answer)]).toEqual([id, { status: 404, code: "session_not_found", param: "session_id" }]);
  }
  expect(await rowsOf(cairn)).toEqual(NO_ROWS);
});

test("changing a content makes a new vector under a new embedding_id, and keeps everything else", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const memory = await cairn.addMemory(session.id, "The customer prefers tea.", { type: "fact", tags: ["a"], metadata: { k: 1 } });
  const changed = await cairn.patch(`/v1/memory/${memory.id}`, { content: "The train leaves at nine." });
  expect(changed.status).toBe(200);
  expect(changed.body).toEqual({ ...memory, content: "The train leaves at nine.", embedding_id: EMBEDDING_ID });
  expect(changed.body.embedding_id).not.toBe(memory.embedding_id);
  expect((await cairn.get(`/v1/memory/${memory.id}`)).body).toEqual(changed.body);
  expect(await rowsOf(cairn)).toMatchObject({ vectors: 1 });
  expect((await cairn.search("The train leaves at nine.")).data).toMatchObject([{ id: memory.id, score: 1 }]);
  expect((await cairn.search("The customer prefers tea.")).data).toEqual([]);
});

test("a change that leaves the content as it is leaves its vector as it is", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const memory = await cairn.addMemory(session.id, "tea", { tags: ["a"] });
  for (const [changes, expected] of [
    [{ content: "tea" }, memory],
    [{ type: "fact" }, { ...memory, type: "fact" }],
    [{ tags: ["b", "c"] }, { ...memory, type: "fact", tags: ["b", "c"] }],
    [{ tags: [] }, { ...memory, type: "fact", tags: [] }],
  ]) {
    cairn.clock.advance({ seconds: 1 });
    const { body } = await cairn.patch(`/v1/memory/${memory.id}`, changes);
    expect(body).toEqual({ ...expected, updated_at: body.updated_at });
    expect(body.updated_at === memory.updated_at).toBe(expected === memory);
  }
});

test("metadata is merged key by key at its top level; a null removes the key", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const { id } = await cairn.addMemory(session.id, "tea", { metadata: { kept: 1, replaced: { a: 1, b: 2 }, removed: true } });
  const patch = async (metadata: unknown) => (await cairn.ok(cairn.patch(`/v1/memory/${id}`, { metadata }))).metadata;
  expect(await patch({ replaced: { a: 3 }, removed: null, added: [null], absent: null })).toEqual({
    kept: 1,
    replaced: { a: 3 },
    added: [null],
  });
  expect(await patch({})).toEqual({ kept: 1, replaced: { a: 3 }, added: [null] });
  expect(await patch({ kept: null, replaced: null, added: null })).toEqual({});
});

test("a memory that is not to be embedded has no vector, is found by list and id but not by search, and stays so", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const memory = await cairn.addMemory(session.id, "The customer prefers tea.", { embed: false });
  expect(memory).toMatchObject({ vector_available: false });
  expect(memory).not.toHaveProperty("embedding_id");
  const { body: changed } = await cairn.patch(`/v1/memory/${memory.id}`, { content: "The customer prefers green tea." });
  expect(changed).toEqual({ ...memory, content: "The customer prefers green tea." });
  expect((await cairn.search("The customer prefers green tea.", { threshold: 0 })).data).toEqual([]);
  expect(await cairn.list(`/v1/memory?session_id=${session.id}`)).toEqual([changed]);
  expect(await rowsOf(cairn)).toMatchObject({ memories: 1, vectors: 0 });
  expect((await cairn.delete(`/v1/memory/${memory.id}`)).status).toBe(200);
});

test("a deleted memory is gone: from its id, lists, search and the store", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const memory = await cairn.addMemory(session.id, "The customer prefers tea.", { tags: ["a", "b"] });
  const deleted = await cairn.delete(`/v1/memory/${memory.id}`);
  expect(deleted.status).toBe(200);
  expect(deleted.body).toEqual({ object: "memory", id: memory.id, deleted: true });
  expect(refusal(await cairn.get(`/v1/memory/${memory.id}`)).code).toBe("memory_not_found");
  expect(refusal(await cairn.delete(`/v1/memory/${memory.id}`)).code).toBe("memory_not_found");
  for (const query of ["", "?user_id=ada", `?session_id=${session.id}`, "?type=general", "?tags=a"]) {
    expect([query, await cairn.list(`/v1/memory${query}`)]).toEqual([query, []]);
  }
  expect((await cairn.search("The customer prefers tea.", { threshold: 0 })).data).toEqual([]);
  expect(await rowsOf(cairn)).toEqual(NO_ROWS);
});

test("memories are listed newest first; filters combine with AND, tags with OR among themselves", async () => {
  await using cairn = await startCairn();
  const ada = await cairn.createSession({ user_id: "ada" });
  const bo = await cairn.createSession({ user_id: "bo" });
  const nobody = await cairn.createSession();
  const a = await cairn.addMemory(ada.id, "a", { type: "fact", tags: ["x"] });
  const b = await cairn.addMemory(bo.id, "b", { type: "fact", tags: ["y"] });
  const c = await cairn.addMemory(nobody.id, "c", { tags: ["x", "y"] });
  const d = await cairn.addMemory(ada.id, "d", { tags: ["z", "a,b", " padded "] });
  const list = async (query: string) => idsOf(await cairn.list(`/v1/memory?${query}`));
  const cases: [query: string, found: { id: string }[]][] = [
    ["", [d, c, b, a]],
    [`session_id=${ada.id}`, [d, a]],
    ["user_id=ada", [d, a]],
    ["user_id=nobody", []],
    ["type=fact", [b, a]],
    ["tags=x", [c, a]],
    ["tags=x,y,x", [c, b, a]],
    ["tags=%20x%20,%20z", [d, c, a]],
    ["tags=nothing,y", [c, b]],
    ["tags=y,%20padded%20", [d, c, b]],
    ["tags=padded", []],
    ["tags=x&tags=z", [d, c, a]],
    ["tags=nothing&tags=y", [c, b]],
    ["tags=%20padded%20&tags=x", [d, c, a]],
    // Where each tag has a parameter of its own, a comma is part of it.
    ["tags=a,b", []],
    ["tags=a,b&tags=", [d]],
    ["tags=a%2Cb&tags=y", [d, c, b]],
    ["tags=x,y&type=fact", [b, a]],
    ["tags=x,y&type=fact&user_id=bo", [b]],
    [`tags=z&session_id=${ada.id}&user_id=ada&type=general`, [d]],
    [`user_id=bo&session_id=${ada.id}`, []],
  ];
  for (const [query, found] of cases) expect([query, await list(query)]).toEqual([query, idsOf(found)]);
});

test("a changed type or tag is what the list goes by from then on", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const { id } = await cairn.addMemory(session.id, "tea", { type: "fact", tags: ["old", "both"] });
  await cairn.patch(`/v1/memory/${id}`, { type: "event", tags: ["both", "new"] });
  const found = async (query: string) => idsOf(await cairn.list(`/v1/memory?${query}`));
  for (const query of ["type=fact", "tags=old"]) expect([query, await found(query)]).toEqual([query, []]);
  for (const query of ["type=event", "tags=new", "tags=both", "tags=old,new"]) expect([query, await found(query)]).toEqual([query, [id]]);
});

onEmbedded("it looks at ranges of indexes one by one")(
  "a list whose filters rarely meet ends its page early, and the pages together have what passes",
  async () => {
    await using cairn = await startCairn({ listProbesMax: 20 });
    const { id } = await cairn.createSession();
    const passing = [];
    for (let i = 0; i < 100; i++) {
      const kind =
        i % 40 === 0 ? { type: "left", tags: ["r"] } : i % 2 === 0 ? { type: "left", tags: ["l"] } : { type: "right", tags: ["r"] };
      const memory = await cairn.addMemory(id, `note ${i}`, { ...kind, embed: false });
      if (i % 40 === 0) passing.push(memory.id);
    }
    const pages = await pagesOf(cairn, "/v1/memory?type=left&tags=r");
    expect(pages.length).toBeGreaterThan(5);
    expect(pages.flatMap(({ data }) => idsOf(data))).toEqual(passing.toReversed());
    expect(pages.filter(({ data, has_more, last_id }) => data.length === 0 && has_more && last_id !== null).length).toBeGreaterThan(2);
  },
);

onEmbedded("it looks at ranges of indexes one by one")(
  "other requests are answered while a list looks for memories that pass two filters which rarely meet",
  async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession();
    const kinds = [
      { type: "left", tags: ["l"] },
      { type: "right", tags: ["r"] },
    ];
    for (let i = 0; i < 2_000; i += 100)
      await Promise.all(Array.from({ length: 100 }, (_, j) => cairn.addMemory(id, `note ${i + j}`, { ...kinds[j % 2], embed: false })));
    const plain = await roundsDuring(cairn.get("/v1/memory?type=left&tags=l"));
    const list = cairn.get("/v1/memory?type=left&tags=r");
    expect(await roundsDuring(list)).toBeGreaterThanOrEqual(plain + 2);
    expect((await list).body).toMatchObject({ data: [], has_more: false });
  },
);

test("memories that are added to one session at once, by several servers where there are, are all stored", async () => {
  await using cairn = await startCairn({ servers: 3 });
  const { id } = await cairn.createSession();
  const contents = Array.from({ length: 60 }, (_, i) => `Ada keeps box ${i} in the cellar.`);
  const stored = await Promise.all(contents.map((content) => cairn.addMemory(id, content)));
  expect(stored.map(({ content }) => content)).toEqual(contents);
  expect(await cairn.ok(cairn.get(`/v1/sessions/${id}`))).toMatchObject({ memory_count: 60 });
});
