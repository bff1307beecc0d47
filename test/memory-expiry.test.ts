/**
 * Memories that expire: gone for every read at once, and removed by a task.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { memories, vectors } from "../src/storage/tables.ts";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";

const END = "2026-05-07T09:00:00.000Z";

test("a memory is gone for every read from its end on, its task removes it with a trace and an event, and the rest stays", async () => {
  await using cairn = await startCairn();
  const hook = await cairn.subscribe("https://hooks.example/", { events: ["memory.expired"] });
  const session = await cairn.createSession({ user_id: "ada" });
  const kept = await cairn.addMemory(session.id, "The customer prefers coffee.");
  const ending = await cairn.addMemory(session.id, "The customer is in Rome until noon.", { expires_at: END });
  const other = await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "Is away today.", ttl_seconds: 3_600 }));
  expect(ending).toMatchObject({ expires_at: END });
  expect(other).toMatchObject({ expires_at: END });
  cairn.clock.advance({ seconds: 3_599 });
  expect(idsOf((await cairn.search("Is the customer in Rome?", { user_id: "ada", threshold: 0, limit: 3 })).data)).toHaveLength(3);
  cairn.clock.advance({ seconds: 1 });
  for (const { id } of [ending, other]) {
    const gone = { status: 404, code: "memory_not_found", param: "memory_id" };
    expect(refusal(await cairn.get(`/v1/memory/${id}`))).toEqual(gone);
    expect(refusal(await cairn.patch(`/v1/memory/${id}`, { expires_at: null }))).toEqual(gone);
    expect(refusal(await cairn.delete(`/v1/memory/${id}`))).toEqual(gone);
  }
  expect(await cairn.list("/v1/memory")).toEqual([kept]);
  expect(idsOf((await cairn.search("Is the customer in Rome?", { user_id: "ada", threshold: 0 })).data)).toEqual([kept.id]);
  expect(idsOf((await cairn.context(session.id)).memories)).toEqual([kept.id]);
  expect(idsOf((await cairn.context(session.id, { query: "Rome?" })).memories)).toEqual([kept.id]);
  expect(await cairn.list(`/v1/sessions/${session.id}/timeline?kinds=memory`)).toMatchObject([{ memory: { id: kept.id } }]);
  await cairn.runTask("memory expiry");
  expect(await cairn.counts([memories, memories.index.byExpiry, vectors])).toEqual([1, 0, 1]);
  expect(await cairn.session(session.id)).toMatchObject({ memory_count: 1 });
  const { id, content, expires_at } = ending;
  expect(await cairn.traces(session.id, "memory.expired")).toMatchObject([
    { actor: "system", user_id: "ada", details: { memory_id: id, content_preview: content, expires_at } },
  ]);
  expect(await cairn.list("/v1/traces?action=memory.expired&user_id=ada")).toHaveLength(2);
  await cairn.runTask("webhook outbox");
  expect(await cairn.deliveries(hook.id)).toMatchObject([{ event_type: "memory.expired" }, { event_type: "memory.expired" }]);
  expect(await cairn.findings()).toEqual([]);
});

test("what expired while the server was away is removed in slices after the start, and hidden before that", async () => {
  await using cairn = await startCairn();
  const memory = (i: number) => ({ user_id: "ada", content: `Note ${i}`, embed: false, expires_at: END });
  for (let i = 0; i < 2; i++)
    await cairn.ok(cairn.post("/v1/memory/batch", { memories: Array.from({ length: 60 }, (_, n) => memory(100 * i + n)) }));
  const kept = await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "stays" }));
  cairn.clock.advance({ days: 7 });
  await cairn.restart();
  expect(await cairn.list("/v1/memory?limit=100")).toEqual([kept]);
  const left = [];
  for (let pause = 0; pause === 0; left.push(await cairn.count(memories))) pause = await cairn.runTaskOnce("memory expiry");
  expect(left).toEqual([71, 21, 1]);
});

test("an end that makes no sense is refused with its name, and one that was moved is moved", async () => {
  await using cairn = await startCairn();
  const add = (more: object) => cairn.post("/v1/memory", { user_id: "ada", content: "tea", ...more });
  const { id } = await cairn.ok(add({ expires_at: END }));
  for (const [body, param] of [
    [{ expires_at: "2026-05-07T08:00:00.000Z" }, "expires_at"],
    [{ expires_at: "soon" }, "expires_at"],
    [{ expires_at: END, ttl_seconds: 5 }, "ttl_seconds"],
    [{ ttl_seconds: 0 }, "ttl_seconds"],
  ] as const)
    for (const answer of [await add(body), await cairn.patch(`/v1/memory/${id}`, body)])
      expect({ body, ...refusal(answer) }).toEqual({ body, status: 400, code: "invalid_request", param });
  await cairn.ok(cairn.patch(`/v1/memory/${id}`, { expires_at: "9999-12-31T23:59:59.999Z" }));
  cairn.clock.advance({ days: 30_000 });
  expect(await cairn.runTask("memory expiry")).toBeUndefined();
  expect((await cairn.get(`/v1/memory/${id}`)).body).toMatchObject({ expires_at: "9999-12-31T23:59:59.999Z" });
});

test("what expires in a session that is being removed, or of a user who is being erased, leaves no event", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  await cairn.addMemory(session.id, "tea", { expires_at: END });
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "tea", expires_at: END }));
  await cairn.ok(cairn.delete(`/v1/sessions/${session.id}`));
  await cairn.ok(cairn.delete("/v1/users/ada"));
  cairn.clock.advance({ days: 1 });
  await cairn.runTask("memory expiry");
  expect(await cairn.list("/v1/traces?action=memory.expired")).toEqual([]);
  expect(await cairn.counts([memories, memories.index.byExpiry])).toEqual([0, 0]);
});
