/**
 * Memories that say what is known already: `on_duplicate`.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { restoreBackup } from "../src/operations/backup.ts";
import { backupFile } from "../src/operations/backup-source.ts";
import { Store } from "../src/storage/lmdb/store.ts";
import { MAX_KEY } from "../src/storage/keys.ts";
import { ALL_FILLED, FILLED_FROM, fillMark, memories, meta, traces } from "../src/storage/tables.ts";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn, type RequestOptions } from "./support/cairn.ts";
import { onEmbedded } from "./support/stores.ts";

const TEA = "The customer prefers tea.";
const post = (cairn: Cairn, more: object = {}, options: RequestOptions = {}) =>
  cairn.post("/v1/memory", { user_id: "ada", content: TEA, ...more }, options);
const add = (cairn: Cairn, more: object = {}) => cairn.ok(post(cairn, more));
const ids = async (cairn: Cairn) => idsOf(await cairn.list("/v1/memory?status=all&limit=100"));

const MARK = fillMark(memories.index.byContent.name);

test("with on_duplicate: return a memory that says the same is answered as it is, and nothing is written", async () => {
  await using cairn = await startCairn();
  const first = await add(cairn, { type: "fact", tags: ["a"], content: "The customer's ﬁrst   Café\n" });
  const before = await cairn.counts([memories, traces]);
  cairn.clock.advance({ seconds: 1 });
  for (const content of ["the customer's first cafe\u0301", "  THE CUSTOMER'S FIRST CAFÉ", "The\u00a0customer's\tfirst café"]) {
    const again = await post(cairn, { type: "fact", content, tags: ["b"], on_duplicate: "return" });
    expect([again.status, again.body]).toEqual([200, { ...first, duplicate: true }]);
  }
  expect(await cairn.counts([memories, traces])).toEqual(before);
  expect((await cairn.get(`/v1/memory/${first.id}`)).body).toEqual(first);
  // Of another type, another owner, or where duplicates are allowed, it is a new one.
  for (const more of [{ type: "general" }, { user_id: "bo" }, { user_id: null, agent_id: "bot" }, { on_duplicate: "allow" }]) {
    const { status, body } = await post(cairn, { type: "fact", content: first.content, on_duplicate: "return", ...more });
    expect({ more, status, duplicate: body.duplicate }).toEqual({ more, status: 201, duplicate: undefined });
  }
  expect(await cairn.findings()).toEqual([]);
});

test("with on_duplicate: update it takes the tags, metadata, times and what else is sent, and keeps its words", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const first = await add(cairn, { session_id: session.id, tags: ["a"], metadata: { a: 1 }, importance: 0.5, source: "user" });
  cairn.clock.advance({ seconds: 1 });
  const at = "2026-05-07T08:00:01.000Z";
  const sent = { content: TEA.toUpperCase(), on_duplicate: "update", tags: ["b"], metadata: { b: 2 }, importance: 1 };
  const updated = await post(cairn, { ...sent, external_id: "tea", valid_from: at, ttl_seconds: 60 });
  const expected = {
    ...first,
    tags: ["b"],
    metadata: { b: 2 },
    importance: 1,
    external_id: "tea",
    valid_from: at,
    expires_at: "2026-05-07T08:01:01.000Z",
    updated_at: at,
  };
  expect([updated.status, updated.body]).toEqual([200, { ...expected, duplicate: true }]);
  expect((await cairn.get(`/v1/memory/${first.id}`)).body).toEqual(expected);
  // What changes nothing leaves no trace; a memory keeps the name it has.
  const same = await add(cairn, { on_duplicate: "update", external_id: "another" });
  expect(same).toEqual({ ...expected, duplicate: true });
  expect((await cairn.traces(session.id)).map(({ action }) => action)).toEqual(["memory.updated", "memory.created", "session.created"]);
  expect(await cairn.session(session.id)).toMatchObject({ memory_count: 1 });
  expect(await cairn.findings()).toEqual([]);
});

test("only a current memory is a duplicate, and one that is changed is found by what it says now", async () => {
  await using cairn = await startCairn();
  const unlike = async (id: string, more: object = {}) => {
    const { status, body } = await post(cairn, { on_duplicate: "return", ...more });
    expect({ status, isOther: body.id !== id }).toEqual({ status: 201, isOther: true });
    return body;
  };
  const rome = await add(cairn);
  await cairn.ok(cairn.patch(`/v1/memory/${rome.id}`, { content: "The customer prefers coffee." }));
  const second = await unlike(rome.id);
  expect(await add(cairn, { content: "the customer prefers coffee.", on_duplicate: "return" })).toMatchObject({ id: rome.id });
  await cairn.ok(cairn.patch(`/v1/memory/${second.id}`, { type: "fact" }));
  const third = await unlike(second.id);
  // Superseded, and current again.
  const newer = await add(cairn, { content: "The customer prefers water.", supersedes: [third.id], ttl_seconds: 60 });
  const fourth = await unlike(third.id, { ttl_seconds: 30 });
  cairn.clock.advance({ seconds: 30 });
  const fifth = await unlike(fourth.id, { valid_until: "2026-05-07T08:00:45Z" });
  cairn.clock.advance({ seconds: 30 });
  expect(await add(cairn, { on_duplicate: "return" })).toMatchObject({ id: third.id, duplicate: true });
  await cairn.ok(cairn.delete(`/v1/memory/${third.id}`));
  const sixth = await unlike(fifth.id, { valid_from: "2027-01-01T00:00:00Z" });
  const seventh = await unlike(sixth.id);
  // One that takes the place of what says the same is new.
  expect(await add(cairn, { on_duplicate: "return", supersedes: [seventh.id] })).toMatchObject({ supersedes: [seventh.id] });
  expect((await cairn.get(`/v1/memory/${newer.id}`)).status).toBe(404);
  const other = await add(cairn, { content: "another" });
  expect(refusal(await post(cairn, { on_duplicate: "return", supersedes: [other.id] }))).toEqual({
    status: 409,
    code: "version_conflict",
    param: "supersedes",
  });
  await cairn.runTask("memory expiry");
  expect(await cairn.findings()).toEqual([]);
});

test("sessions without a user have duplicates of their own, and a bound key is shown none of another agent", async () => {
  await using cairn = await startCairn();
  const [one, two] = [await cairn.createSession(), await cairn.createSession()];
  const inSession = (id: string) => add(cairn, { user_id: null, session_id: id, on_duplicate: "return" });
  const first = await inSession(one.id);
  const second = await inSession(two.id);
  expect(second.id).not.toBe(first.id);
  expect((await inSession(one.id)).id).toBe(first.id);
  const key = await cairn.newKey({ owner: { agentId: "bot", userId: "ada" } });
  const others = await add(cairn, { agent_id: "other" });
  const own = await cairn.ok(cairn.post("/v1/memory", { content: TEA, on_duplicate: "return" }, { key }));
  expect(own.id).not.toBe(others.id);
  expect(await cairn.ok(cairn.post("/v1/memory", { content: TEA, on_duplicate: "return" }, { key }))).toMatchObject({
    id: own.id,
    duplicate: true,
  });
});

test("in a batch and a step each is compared with those before it, and if_exists comes first", async () => {
  await using cairn = await startCairn();
  const named = await add(cairn, { external_id: "row-7" });
  const other = await add(cairn, { content: "The customer prefers water." });
  const sent = [
    { content: "new", on_duplicate: "return" },
    { content: "NEW", on_duplicate: "return" },
    { content: "The customer prefers water.", external_id: "row-7", if_exists: "return", on_duplicate: "return" },
    { content: " the customer prefers WATER.", on_duplicate: "update", tags: ["x"] },
  ];
  const { data } = await cairn.ok(cairn.post("/v1/memory/batch", { memories: sent.map((one) => ({ user_id: "ada", ...one })) }));
  expect(data.map(({ id, duplicate, tags }: Record<string, unknown>) => ({ id, duplicate, tags }))).toEqual([
    { id: data[0].id, duplicate: undefined, tags: [] },
    { id: data[0].id, duplicate: true, tags: [] },
    { id: named.id, duplicate: undefined, tags: [] },
    { id: other.id, duplicate: true, tags: ["x"] },
  ]);
  const session = await cairn.createSession({ user_id: "ada" });
  const said = { input: { type: "text", content: "hi" }, output: { type: "text", content: "hello" } };
  const step = await cairn.post(`/v1/sessions/${session.id}/turns`, { ...said, memories: [sent[0], { content: "newer" }, sent[1]] });
  expect(step.body.memories).toMatchObject([
    { id: data[0].id, duplicate: true },
    { content: "newer" },
    { id: data[0].id, duplicate: true },
  ]);
  expect(await cairn.session(session.id)).toMatchObject({ memory_count: 1, turn_count: 1 });
  expect(await ids(cairn)).toHaveLength(4);
  expect(await cairn.findings()).toEqual([]);
});

test("of many requests at once that say the same one makes a memory, and the same Idempotency-Key gets the same answer", async () => {
  await using cairn = await startCairn();
  for (const on_duplicate of ["return", "update"]) {
    const answers = await Promise.all(Array.from({ length: 8 }, () => post(cairn, { on_duplicate, type: on_duplicate })));
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([...Array<number>(7).fill(200), 201]);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
    const batches = await Promise.all(
      Array.from({ length: 4 }, () =>
        cairn.post("/v1/memory/batch", { memories: [{ user_id: "bo", content: TEA, type: on_duplicate, on_duplicate }] }),
      ),
    );
    expect(new Set(batches.map(({ body }) => body.data[0].id)).size).toBe(1);
  }
  const once = { headers: { "Idempotency-Key": "once" } };
  const first = await post(cairn, { on_duplicate: "return", type: "return" }, once);
  const replay = await post(cairn, { on_duplicate: "return", type: "return" }, once);
  expect([replay.status, replay.body]).toEqual([first.status, first.body]);
  expect(first.body.duplicate).toBe(true);
  expect(replay.headers.get("Idempotency-Replayed")).toBe("true");
});

test("a duplicate is found behind many past ones of the same text", async () => {
  await using cairn = await startCairn();
  const current = await add(cairn);
  const past = Array.from({ length: 40 }, () => ({ user_id: "ada", content: TEA, valid_until: "2026-05-07T08:00:01Z" }));
  await cairn.ok(cairn.post("/v1/memory/batch", { memories: past }));
  cairn.clock.advance({ seconds: 2 });
  expect(await add(cairn, { on_duplicate: "return" })).toMatchObject({ id: current.id, duplicate: true });
});

test("a duplicate of a memory of before is found after a start, which goes on where one was ended", async () => {
  await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
  const notes = Array.from({ length: 1_100 }, (_, i) => ({ user_id: "ada", content: `Note ${i}.` }));
  for (let at = 0; at < notes.length; at += 100) await cairn.ok(cairn.post("/v1/memory/batch", { memories: notes.slice(at, at + 100) }));
  const found = (content: string) => post(cairn, { content, on_duplicate: "return" });
  const [first, last] = [(await found("Note 0.")).body, (await found("Note 1099.")).body];
  const mark = first.id.slice("mem_".length);
  for (const [after, markBefore] of [
    ["", undefined],
    // A start that was ended after a slice.
    [mark, mark],
  ] as const) {
    await cairn.dropEntries(memories.index.byContent, after);
    await cairn.service.store.commit(NO_PARTITION, (tx) =>
      markBefore === undefined ? tx.remove(meta, MARK) : tx.put(meta, MARK, FILLED_FROM + markBefore),
    );
    expect(await cairn.findings()).toEqual([]);
    await cairn.restart();
    expect([(await found("note 0.")).body, (await found("NOTE 1099.")).body]).toEqual([first, last]);
    expect(await cairn.read((reader) => reader.get(meta, MARK))).toBe(ALL_FILLED);
    expect(await cairn.findings()).toEqual([]);
  }
});

onEmbedded("a database is backed up by its own tools")(
  "before memories of before get their entries the store is backed up, once",
  async () => {
    await using cairn = await startCairn({ environment: { embedding: { provider: "words" } } });
    const { id } = await add(cairn);
    const backups = () => {
      const directory = join(cairn.directory, "backups");
      return existsSync(directory) ? readdirSync(directory).filter((name) => name.startsWith("before-indexes-")) : [];
    };
    await cairn.restart();
    expect(backups()).toEqual([]);
    await cairn.dropEntries(memories.index.byContent, "");
    const marks = await cairn.read((reader) => reader.keys(meta, { from: fillMark(""), to: fillMark(MAX_KEY) }));
    await cairn.service.store.commit(NO_PARTITION, (tx) => {
      for (const mark of marks) tx.remove(meta, mark);
    });
    for (let start = 0; start < 2; start++) {
      await cairn.restart();
      expect(backups()).toHaveLength(1);
    }
    expect(await add(cairn, { on_duplicate: "return" })).toMatchObject({ id, duplicate: true });
    // Nothing that completes a store of before has run when it is made.
    const restored = join(cairn.directory, "restored");
    await restoreBackup(backupFile(join(cairn.directory, "backups", backups()[0]!)), restored, cairn.clock, { force: false });
    const store = await Store.open(restored, cairn.clock);
    expect(await store.read((reader) => marks.filter((mark) => reader.has(meta, mark)))).toEqual([]);
    await store.close();
  },
);
