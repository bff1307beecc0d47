/**
 * What a memory has said before: its history, why it was changed, and what is like a new one.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { memories, memoryVersions } from "../src/storage/tables.ts";
import { refusal, unknownId } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";

const add = (cairn: Cairn, content: string, more: object = {}) => cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content, ...more }));
const edit = (cairn: Cairn, { id }: { id: string }, changes: object) => cairn.ok(cairn.patch(`/v1/memory/${id}`, changes));
const historyOf = (cairn: Cairn, { id }: { id: string }) => cairn.ok(cairn.get(`/v1/memory/${id}/history`));
const contentsOf = async (cairn: Cairn, memory: { id: string }): Promise<string[]> =>
  (await historyOf(cairn, memory)).data.map(({ content }: { content: string }) => content);

test("a history has the contents of a memory, newest first: when, by which key and why, and its neighbours", async () => {
  await using cairn = await startCairn();
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["write"] }));
  const actor = cairn.key.slice(0, 8);
  const rome = await add(cairn, "Ada lives in Rme.", { reason: "She said so." });
  cairn.clock.advance({ seconds: 1 });
  await cairn.ok(cairn.patch(`/v1/memory/${rome.id}`, { content: "Ada lives in Rome.", reason: "A slip of the pen." }, { key }));
  cairn.clock.advance({ seconds: 1 });
  // What leaves the content as it is adds nothing.
  await edit(cairn, rome, { tags: ["place"], reason: "Tagged." });
  await edit(cairn, rome, { content: "Ada lives in Rome.", reason: "Again." });
  const oslo = await add(cairn, "Ada lives in Oslo.", { supersedes: [rome.id] });
  expect(await historyOf(cairn, rome)).toEqual({
    object: "list",
    data: [
      { content: "Ada lives in Rome.", written_at: "2026-05-07T08:00:01.000Z", actor: key.slice(0, 8), reason: "A slip of the pen." },
      { content: "Ada lives in Rme.", written_at: "2026-05-07T08:00:00.000Z", actor, reason: "She said so." },
    ],
    supersedes: [],
    superseded_by: oslo.id,
  });
  expect(await historyOf(cairn, oslo)).toEqual({
    object: "list",
    data: [{ content: "Ada lives in Oslo.", written_at: "2026-05-07T08:00:02.000Z", actor, reason: null }],
    supersedes: [rome.id],
    superseded_by: null,
  });
  const traces = await cairn.list("/v1/traces?user_id=ada&limit=100");
  expect(traces.map(({ action, details }: any) => [action, details.reason])).toEqual([
    ["memory.superseded", undefined],
    ["memory.created", undefined],
    ["memory.updated", "Tagged."],
    ["memory.updated", "A slip of the pen."],
    ["memory.created", "She said so."],
  ]);
  expect(await cairn.findings()).toEqual([]);
});

test("as many contents are kept as memory_versions_kept says, the oldest go, and all go with their memory", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const memory = await add(cairn, "Content 0", { session_id: session.id });
  const other = await add(cairn, "Other 0", { ttl_seconds: 60, external_id: "other" });
  for (let i = 1; i <= 22; i++) await edit(cairn, memory, { content: `Content ${i}` });
  expect(await contentsOf(cairn, memory)).toEqual(Array.from({ length: 21 }, (_, i) => `Content ${22 - i}`));
  await cairn.ok(cairn.patch("/v1/settings", { memory_versions_kept: 2 }));
  await edit(cairn, memory, { content: "Content 23" });
  expect(await contentsOf(cairn, memory)).toEqual(["Content 23", "Content 22", "Content 21"]);
  const upsert = { external_id: "other", if_exists: "update" };
  await add(cairn, "Other 1", { ...upsert, reason: "Imported." });
  expect((await historyOf(cairn, other)).data).toMatchObject([{ content: "Other 1", reason: "Imported." }, { content: "Other 0" }]);
  await cairn.ok(cairn.patch("/v1/settings", { memory_versions_kept: 0 }));
  await edit(cairn, memory, { content: "Content 24" });
  expect(await contentsOf(cairn, memory)).toEqual(["Content 24"]);
  await cairn.ok(cairn.patch("/v1/settings", { memory_versions_kept: null }));
  await edit(cairn, memory, { content: "Content 25" });
  expect(await contentsOf(cairn, memory)).toEqual(["Content 25", "Content 24"]);
  const erased = await add(cairn, "To be erased", { user_id: "bo" });
  await edit(cairn, erased, { content: "To be erased, too" });
  const deleted = await add(cairn, "To be deleted");
  await edit(cairn, deleted, { content: "To be deleted, too" });
  expect(await cairn.counts([memories, memoryVersions])).toEqual([4, 4]);

  await cairn.ok(cairn.delete(`/v1/memory/${deleted.id}`));
  expect(refusal(await cairn.get(`/v1/memory/${deleted.id}/history`))).toMatchObject({ status: 404, code: "memory_not_found" });
  expect(await cairn.counts([memories, memoryVersions])).toEqual([3, 3]);
  cairn.clock.advance({ seconds: 60 });
  expect(refusal(await cairn.get(`/v1/memory/${other.id}/history`))).toMatchObject({ status: 404, code: "memory_not_found" });
  await cairn.runTask("memory expiry");
  expect(await cairn.counts([memories, memoryVersions])).toEqual([2, 2]);
  await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
  expect(await cairn.counts([memories, memoryVersions])).toEqual([1, 1]);
  await cairn.ok(cairn.delete("/v1/users/bo"));
  expect(await cairn.counts([memories, memoryVersions])).toEqual([0, 0]);
  expect(await cairn.findings()).toEqual([]);
});

test("a history is seen by those who see the memory", async () => {
  await using cairn = await startCairn();
  const memory = await add(cairn, "Of ada");
  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { user_id: "bo", scopes: ["read"] }));
  for (const [id, options] of [
    [memory.id, { key }],
    [unknownId("mem"), {}],
    [unknownId("sess"), {}],
  ] as const) {
    const answer = await cairn.get(`/v1/memory/${id}/history`, options);
    expect(refusal(answer)).toMatchObject({ status: 404, code: "memory_not_found" });
  }
});

test("doctor removes contents of memories that are gone", async () => {
  await using cairn = await startCairn();
  const memory = await add(cairn, "One");
  const { store } = cairn.service;
  const row = { content: "Before", writtenAt: 1 };
  await store.commit("00", (tx) => {
    tx.put(memoryVersions, `${memory.id.slice(4)}0000000`, row);
    tx.put(memoryVersions, "0VQk3aB4x1Zv0000000", row);
  });
  expect(((await cairn.findings()) as { what: string }[]).map(({ what }) => what)).toEqual(["memory_versions: of no memory"]);
});

test("similar lists the owner's nearest current memories as they were before the new one, and needs the scope read", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const rome = await add(cairn, "Ada lives in Rome.");
  const older = await add(cairn, "Ada lives in Bari.", { valid_until: "2020-01-01T00:00:00Z" });
  await add(cairn, "The parcel is blue.");
  await add(cairn, "Ada lives in Rome.", { user_id: "bo" });
  const sent = { user_id: "ada", content: "Ada lives in Rome.", similar: {} };
  const plain = await add(cairn, "It rains.");
  expect(plain).not.toHaveProperty("similar");
  const first = await cairn.post("/v1/memory", { ...sent, user_id: undefined, session_id: session.id });
  expect([first.status, first.body.similar]).toEqual([
    201,
    [expect.objectContaining({ id: rome.id, content: "Ada lives in Rome.", score: 1, user_id: "ada" })],
  ]);
  const all = (await add(cairn, "Ada lives in Oslo.", { similar: { limit: 10, threshold: 0 } })).similar.map(
    ({ id }: { id: string }) => id,
  );
  expect(all).toHaveLength(4);
  expect(all).not.toContain(older.id);
  expect(new Set(all.slice(0, 2))).toEqual(new Set([first.body.id, rome.id]));
  expect((await add(cairn, "Ada lives in Oslo.", { similar: { limit: 1 } })).similar).toHaveLength(1);
  expect((await add(cairn, "Ada lives in Bonn.", { similar: { threshold: 0 } })).similar).toHaveLength(5);
  const twin = await cairn.post("/v1/memory", { ...sent, on_duplicate: "return" });
  expect([twin.status, twin.body.duplicate, twin.body.similar.length]).toEqual([200, true, 5]);

  const batch = await cairn.ok(cairn.post("/v1/memory/batch", { memories: [sent, { user_id: "ada", content: "It snows." }] }));
  expect(batch.data.map(({ similar }: { similar?: unknown[] }) => similar?.length)).toEqual([5, undefined]);
  const agent = await add(cairn, "Invoices go out on Mondays.", { user_id: null, agent_id: "bot" });
  await add(cairn, "Invoices go out on Mondays.", { agent_id: "bot" });
  const ofAgent = await add(cairn, "Invoices go out on Mondays.", { user_id: null, agent_id: "bot", similar: {} });
  expect(ofAgent.similar.map(({ id }: { id: string }) => id)).toEqual([agent.id]);
  const alone = await cairn.createSession();
  await cairn.addMemory(alone.id, "Ada lives in Rome.");
  expect((await cairn.addMemory(alone.id, "Ada lives in Rome.", { similar: {} })).similar).toHaveLength(1);

  const { key } = await cairn.ok(cairn.post("/v1/api_keys", { scopes: ["write"] }));
  const counted = await cairn.counts([memories]);
  for (const [path, body] of [
    ["/v1/memory", sent],
    ["/v1/memory/batch", { memories: [sent] }],
  ] as const)
    expect(refusal(await cairn.post(path, body, { key }))).toMatchObject({ status: 403, code: "permission_denied", param: "similar" });
  const wrong = { memories: [{ content: "x", similar: {} }] };
  expect(refusal(await cairn.post("/v1/memory/batch", wrong))).toMatchObject({ status: 400, param: "memories[0].session_id" });
  expect(await cairn.counts([memories])).toEqual(counted);
});
