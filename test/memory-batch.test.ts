/**
 * Many memories in one request: all of them or none.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { memories, traces } from "../src/storage/tables.ts";
import { idsOf, errorOf, refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { CountingEncoder } from "./support/counting-encoder.ts";
import { Chance, until } from "./support/process.ts";
import { manyRareWords } from "./support/texts.ts";

const batch = (count: number, more: (i: number) => object = () => ({})) =>
  Array.from({ length: count }, (_, i) => ({ user_id: "ada", content: `Note ${i} of the customer.`, ...more(i) }));

test("a batch adds each memory with its trace and event, in order, and counts them in their sessions", async () => {
  await using cairn = await startCairn();
  const hook = await cairn.subscribe("https://hooks.example/", { events: ["memory.created"] });
  const [one, two] = [await cairn.createSession({ user_id: "ada" }), await cairn.createSession({ user_id: "bo" })];
  const owner = (i: number) => [{ user_id: "ada" }, { user_id: null, session_id: one.id }, { user_id: null, session_id: two.id }][i % 3]!;
  const sent = batch(100, owner);
  const { status, body } = await cairn.post("/v1/memory/batch", { memories: sent });
  expect(status).toBe(201);
  expect(body.data.map(({ content }: { content: string }) => content)).toEqual(sent.map(({ content }) => content));
  expect((await cairn.get(`/v1/memory/${body.data[7].id}`)).body).toEqual(body.data[7]);
  expect(await cairn.session(one.id)).toMatchObject({ memory_count: 33 });
  expect(await cairn.session(two.id)).toMatchObject({ memory_count: 33 });
  expect(idsOf(await cairn.list("/v1/memory?limit=100"))).toEqual(idsOf(body.data).toReversed());
  expect(await cairn.list("/v1/traces?action=memory.created&limit=100")).toHaveLength(100);
  expect(await cairn.list("/v1/traces?action=memory.created&limit=100&user_id=bo")).toHaveLength(33);
  await cairn.runTask("webhook outbox");
  expect(await cairn.deliveries(hook.id)).toHaveLength(100);
  expect((await cairn.search("Note 42 of the customer", { limit: 1 })).data).toMatchObject([{ id: body.data[42].id }]);
  expect(await cairn.findings()).toEqual([]);
});

test("the one that is wrong is named by its place, and nothing is stored", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "there", external_id: "row-7" }));
  const before = await cairn.counts([memories, traces]);
  for (const [wrong, expected] of [
    [{ content: 5 }, { status: 400, code: "invalid_request", param: "memories[37].content" }],
    [{ content: "a".repeat(10_001) }, { status: 413, code: "content_too_large", param: "memories[37].content" }],
    [{ userId: "a" }, { status: 400, code: "invalid_request", param: "memories[37].userId" }],
    [{ tags: [1] }, { status: 400, code: "invalid_request", param: "memories[37].tags.0" }],
    [{ session_id: "sess_000000000000" }, { status: 404, code: "session_not_found", param: "memories[37].session_id" }],
    [
      { session_id: session.id, user_id: "bo" },
      { status: 400, code: "invalid_request", param: "memories[37].user_id" },
    ],
    [{ user_id: null }, { status: 400, code: "invalid_request", param: "memories[37].session_id" }],
    [{ external_id: "row-7" }, { status: 409, code: "already_exists", param: "memories[37].external_id" }],
    [{ expires_at: "2020-01-01" }, { status: 400, code: "invalid_request", param: "memories[37].expires_at" }],
  ] as const) {
    const answer = await cairn.post("/v1/memory/batch", { memories: batch(40, (i) => (i === 37 ? wrong : {})) });
    expect({ wrong, ...refusal(answer) }).toEqual({ wrong, ...expected });
    expect(errorOf(answer).message).toContain("memories[37]");
  }
  for (const memories of [[], batch(101), "all", [5]]) expect(refusal(await cairn.post("/v1/memory/batch", { memories })).status).toBe(400);
  expect(await cairn.counts([memories, traces])).toEqual(before);
  expect(await cairn.session(session.id)).toMatchObject({ memory_count: 0 });
});

test("two of a batch under one external_id are one memory with if_exists, and refused without", async () => {
  await using cairn = await startCairn();
  const twice = (if_exists: string) => batch(2, () => ({ external_id: if_exists, if_exists }));
  expect(refusal(await cairn.post("/v1/memory/batch", { memories: twice("error") }))).toMatchObject({ param: "memories[1].external_id" });
  const { data } = await cairn.ok(cairn.post("/v1/memory/batch", { memories: twice("update") }));
  expect(data).toMatchObject([{ content: "Note 0 of the customer." }, { id: data[0].id, content: "Note 1 of the customer." }]);
  expect(await cairn.list("/v1/memory")).toEqual([data[1]]);
});

test("a batch is idempotent, and a key that may not read is shown receipts of it", async () => {
  await using cairn = await startCairn();
  const writer = await cairn.newKey({ scopes: ["write"] });
  const options = { headers: { "idempotency-key": "k" }, key: writer };
  const [first, again] = [
    await cairn.post("/v1/memory/batch", { memories: batch(3) }, options),
    await cairn.post("/v1/memory/batch", { memories: batch(3) }, options),
  ];
  expect(again.body).toEqual(first.body);
  const all = await cairn.list("/v1/memory");
  const receipts = all.toReversed().map(({ object, id, session_id, created_at, updated_at, embedding_id, vector_available }) => {
    return { object, id, session_id, created_at, updated_at, embedding_id, vector_available };
  });
  expect(first.body).toEqual({ object: "list", data: receipts });
});

test("while the texts of a batch are encoded a question of another key waits for a layer of one of them at most", async () => {
  const encoder = new CountingEncoder();
  await using cairn = await startCairn({ newEncoder: encoder.newEncoder });
  const other = await cairn.newKey();
  const memories = Array.from({ length: 100 }, (_, i) => ({ user_id: "ada", content: manyRareWords(new Chance(i), 2_000) }));
  const added = cairn.ok(cairn.post("/v1/memory/batch", { memories }));
  await until("texts of the batch to be encoded", () => encoder.done.length > 3);
  for (const query of ["Where does Bob live?", "Does Bob like tea?", "When is Bob here?"])
    await cairn.ok(cairn.post("/v1/memory/search", { query, user_id: "bob" }, { key: other }));
  expect((await added).data).toHaveLength(100);
  const [first] = encoder.done;
  const questions = encoder.done.filter(({ isQuery }) => isQuery);
  expect(questions.map(({ owner }) => owner === first!.owner)).toEqual([false, false, false]);
  expect(encoder.done.at(-1)).toMatchObject({ owner: first!.owner, isQuery: false });
  for (const { others } of questions) expect(others).toBeLessThanOrEqual(encoder.longest);
});
