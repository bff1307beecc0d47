/**
 * Names of memories (`external_id`), what becomes of a second one, and what else a memory says of itself.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { errorOf, refusal } from "./support/answers.ts";
import { startCairn, type RequestOptions } from "./support/cairn.ts";

const TAKEN = { status: 409, code: "already_exists", param: "external_id" };
const named = (more: object = {}) => ({ user_id: "ada", content: "The customer prefers tea.", external_id: "row-7", ...more });

test("an external_id is unique among the memories of a user, or of an agent without one, and free again once its memory is gone", async () => {
  await using cairn = await startCairn();
  const add = (body: object) => cairn.post("/v1/memory", body);
  const first = await cairn.ok(add(named()));
  expect(first).toMatchObject({ external_id: "row-7" });
  expect(errorOf(await add(named({ content: "another" })))).toEqual({
    ...TAKEN,
    message: `Memory ${first.id} has the external_id "row-7" already. Nothing was changed.`,
  });
  const session = await cairn.createSession({ user_id: "ada" });
  expect(refusal(await add({ session_id: session.id, content: "in a session", external_id: "row-7" }))).toEqual(TAKEN);
  expect(await cairn.session(session.id)).toMatchObject({ memory_count: 0 });
  for (const other of [{ user_id: "bo" }, { user_id: null, agent_id: "bot" }]) {
    expect((await add(named(other))).status).toBe(201);
    expect(refusal(await add(named(other)))).toEqual(TAKEN);
  }
  await cairn.ok(cairn.delete(`/v1/memory/${first.id}`));
  expect((await add(named())).status).toBe(201);
  const soon = await cairn.ok(add(named({ external_id: "soon", ttl_seconds: 1 })));
  cairn.clock.advance({ seconds: 1 });
  // The first has expired, whether it is removed yet or not.
  expect((await cairn.ok(add(named({ external_id: "soon" })))).id).not.toBe(soon.id);
  expect(await cairn.findings()).toEqual([]);
});

test("with if_exists a second request returns the memory of the name, or changes it by what is sent and nothing else", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ user_id: "ada" });
  const first = await cairn.ok(
    cairn.post(
      "/v1/memory",
      named({ session_id: session.id, type: "fact", tags: ["a"], metadata: { a: 1 }, importance: 0.5, source: "user" }),
    ),
  );
  cairn.clock.advance({ seconds: 1 });
  const again = await cairn.post("/v1/memory", named({ content: "other", if_exists: "return" }));
  expect([again.status, again.body]).toEqual([200, first]);
  const updated = await cairn.post(
    "/v1/memory",
    named({ content: "The customer prefers coffee.", if_exists: "update", metadata: { b: 2 } }),
  );
  expect([updated.status, updated.body]).toEqual([
    200,
    {
      ...first,
      content: "The customer prefers coffee.",
      metadata: { b: 2 },
      updated_at: "2026-05-07T08:00:01.000Z",
      embedding_id: updated.body.embedding_id,
    },
  ]);
  expect(updated.body.embedding_id).not.toBe(first.embedding_id);
  expect((await cairn.get(`/v1/memory/${first.id}`)).body).toEqual(updated.body);
  expect((await cairn.search("Does the customer prefer coffee?")).data).toMatchObject([{ id: first.id }]);
  // The same again changes nothing, and leaves no trace.
  const same = await cairn.post("/v1/memory", named({ content: "The customer prefers coffee.", if_exists: "update" }));
  expect([same.status, same.body]).toEqual([200, updated.body]);
  expect((await cairn.traces(session.id)).map(({ action }) => action)).toEqual(["memory.updated", "memory.created", "session.created"]);
  expect(await cairn.session(session.id)).toMatchObject({ memory_count: 1 });
});

test("of many requests for one name at once one creates the memory, and each of the others gets what it asked for", async () => {
  await using cairn = await startCairn();
  for (const [i, if_exists] of ["return", "update", "error"].entries()) {
    const bodies = Array.from({ length: 8 }, (_, n) => named({ external_id: `name ${i}`, content: `content ${n}`, if_exists }));
    const answers = await Promise.all(bodies.map((body) => cairn.post("/v1/memory", body)));
    const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
    expect(statuses).toEqual(if_exists === "error" ? [201, ...Array<number>(7).fill(409)] : [...Array<number>(7).fill(200), 201]);
    const ids = new Set(answers.filter(({ status }) => status < 300).map(({ body }) => body.id));
    expect(ids.size).toBe(1);
    if (if_exists === "return") expect(new Set(answers.map(({ body }) => body.content)).size).toBe(1);
  }
  expect(await cairn.list("/v1/memory?user_id=ada")).toHaveLength(3);
  expect(await cairn.findings()).toEqual([]);
});

test("a retry with an Idempotency-Key is answered as the first request was, whatever if_exists says", async () => {
  await using cairn = await startCairn();
  const options: RequestOptions = { headers: { "idempotency-key": "k" } };
  for (const if_exists of ["error", "update"]) {
    const body = named({ external_id: if_exists, if_exists });
    options.headers = { "idempotency-key": if_exists };
    const [first, again] = [await cairn.post("/v1/memory", body, options), await cairn.post("/v1/memory", body, options)];
    expect([again.status, again.body]).toEqual([first.status, first.body]);
    expect(first.status).toBe(201);
  }
});

test("no key learns or takes a name that another key's memory has, and an agent's key names memories of its agent alone", async () => {
  await using cairn = await startCairn();
  const bot = await cairn.newKey({ owner: { agentId: "bot" } });
  const users = await cairn.ok(cairn.post("/v1/memory", named()));
  const agents = await cairn.post("/v1/memory", named({ content: "the agent's own" }), { key: bot });
  expect(agents).toMatchObject({ status: 201, body: { user_id: "ada", agent_id: "bot" } });
  const found = async (key: string) =>
    (await cairn.post("/v1/memory", named({ if_exists: "return", ...(key === bot ? {} : { agent_id: "bot" }) }), { key })).body.id;
  expect([await found(cairn.key), await found(bot)]).toEqual([users.id, agents.body.id]);
  const bo = await cairn.newKey({ owner: { userId: "bo" } });
  expect((await cairn.post("/v1/memory", named({ user_id: "bo" }), { key: bo })).status).toBe(201);
});

test("a change gives a name, an end and an importance, and a null takes them away", async () => {
  await using cairn = await startCairn();
  const first = await cairn.ok(cairn.post("/v1/memory", named()));
  const other = await cairn.ok(cairn.post("/v1/memory", named({ external_id: "row-8" })));
  const patch = (id: string, body: object) => cairn.patch(`/v1/memory/${id}`, body);
  expect(refusal(await patch(other.id, { external_id: "row-7" }))).toEqual(TAKEN);
  expect((await patch(first.id, { external_id: null })).body).toMatchObject({ external_id: null });
  const all = { external_id: "row-7", importance: 0.25, source: "tool", expires_at: "2026-06-07T08:00:00.000Z" };
  expect((await patch(other.id, all)).body).toMatchObject(all);
  const cleared = { external_id: null, importance: null, expires_at: null };
  expect((await patch(other.id, cleared)).body).toMatchObject({ ...cleared, source: "tool" });
  expect((await patch(other.id, { ttl_seconds: 60 })).body).toMatchObject({ expires_at: "2026-05-07T08:01:00.000Z" });
  // Elsewhere a null is left out.
  expect((await patch(other.id, { source: null, content: null, type: null })).body).toMatchObject({ source: "tool", type: "general" });
});

test("when a memory happened is kept beside when it was added, in years past too, and not in years to come", async () => {
  await using cairn = await startCairn();
  for (const occurred_at of ["1950-01-31T00:00:00.000Z", "2026-05-08T07:00:00.000Z"])
    expect(await cairn.ok(cairn.post("/v1/memory", { user_id: "ada", content: "tea", occurred_at }))).toMatchObject({
      occurred_at,
      created_at: "2026-05-07T08:00:00.000Z",
    });
  expect(refusal(await cairn.post("/v1/memory", { user_id: "ada", content: "tea", occurred_at: "2026-05-08T08:00:00.001Z" }))).toEqual({
    status: 400,
    code: "invalid_request",
    param: "occurred_at",
  });
});
