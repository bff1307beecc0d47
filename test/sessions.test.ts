import { expect, test } from "bun:test";
import { memories, turns, vectors, versions, sessions } from "../src/storage/tables.ts";
import { errorOf, idsOf, pagesOf, refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { findByWords } from "./support/providers.ts";
import { expectNoSession } from "./support/requests.ts";

test("a session made from an agent_id alone has every other field at its default", async () => {
  await using cairn = await startCairn();
  const made = await cairn.post("/v1/sessions", { agent_id: "support-bot" });
  expect(made.status).toBe(201);
  expect(made.body).toEqual({
    object: "session",
    id: expect.stringMatching(/^sess_[0-9A-Za-z]{12}$/),
    agent_id: "support-bot",
    user_id: null,
    created_at: "2026-05-07T08:00:00.000Z",
    updated_at: "2026-05-07T08:00:00.000Z",
    state: {},
    state_version: 0,
    metadata: {},
    memory_count: 0,
    turn_count: 0,
    ttl_expires_at: "2026-05-08T08:00:00.000Z",
  });
});

test("a session keeps every field it is made with, and is read as it was answered", async () => {
  await using cairn = await startCairn();
  const made = await cairn.createSession({
    agent_id: "support-bot",
    user_id: "user-42",
    initial_state: { step: 0, cart: ["tea", { amount: 2 }], note: null },
    metadata: { channel: "chat", nested: { deep: [1.5, true] } },
    ttl_seconds: 60,
  });
  expect(made).toMatchObject({
    agent_id: "support-bot",
    user_id: "user-42",
    state: { step: 0, cart: ["tea", { amount: 2 }], note: null },
    state_version: 0,
    metadata: { channel: "chat", nested: { deep: [1.5, true] } },
    ttl_expires_at: "2026-05-07T08:01:00.000Z",
  });
  expect(await cairn.get(`/v1/sessions/${made.id}`)).toMatchObject({ status: 200, body: made });
  await cairn.restart();
  expect(await cairn.session(made.id)).toEqual(made);
});

test("sessions are listed newest first, and filters combine with AND", async () => {
  await using cairn = await startCairn();
  const a = await cairn.createSession({ agent_id: "bot", user_id: "ada" });
  const b = await cairn.createSession({ agent_id: "bot", user_id: "bo" });
  const c = await cairn.createSession({ agent_id: "other", user_id: "ada" });
  const d = await cairn.createSession({ agent_id: "bot" });
  const list = async (query: string) => idsOf(await cairn.list(`/v1/sessions?${query}`));
  expect(await list("")).toEqual([d.id, c.id, b.id, a.id]);
  expect(await list("agent_id=bot")).toEqual([d.id, b.id, a.id]);
  expect(await list("user_id=ada")).toEqual([c.id, a.id]);
  expect(await list("agent_id=bot&user_id=ada")).toEqual([a.id]);
  expect(await list("agent_id=bot&user_id=nobody")).toEqual([]);
  expect((await cairn.get("/v1/sessions?agent_id=other")).body).toEqual({
    object: "list",
    data: [c],
    has_more: false,
    first_id: c.id,
    last_id: c.id,
  });
});

test("a list says on request what was said first in each session, and how often it was rolled back", async () => {
  await using cairn = await startCairn();
  const text = (content: string) => ({ type: "text", content });
  const turn = (id: string, said: string) => cairn.ok(cairn.post(`/v1/sessions/${id}/turns`, { input: text(said), output: text("Yes.") }));
  const { id } = await cairn.createSession({ external_id: "thread-1" });
  await turn(id, "🙂".repeat(300));
  await turn(id, "Second.");
  for (const turns of ["hide", "keep"]) await cairn.ok(cairn.post(`/v1/sessions/${id}/rollback`, { version: 0, turns }));
  const { id: fork } = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, { turns: "all" }));
  const list = async (query: string) =>
    (await cairn.list(`/v1/sessions?${query}`)).map(({ id, first_input, rollback_count }) => ({ id, first_input, rollback_count }));
  const first_input = "🙂".repeat(200);
  expect(await list("include=first_input,rollback_count")).toEqual([
    { id: fork, first_input: undefined, rollback_count: 0 },
    { id, first_input, rollback_count: 2 },
  ]);
  expect(await list("include=first_input&external_id=thread-1&exact_user=true")).toEqual([{ id, first_input, rollback_count: undefined }]);
  await turn(fork, "Of the fork.");
  expect(await list(`include=first_input&forked_from=${id}`)).toEqual([
    { id: fork, first_input: "Of the fork.", rollback_count: undefined },
  ]);
  expect(await list("")).toEqual([fork, id].map((one) => ({ id: one, first_input: undefined, rollback_count: undefined })));
  expect(await cairn.get("/v1/sessions?include=last_input")).toMatchObject({ status: 400, body: { error: { param: "include" } } });
});

test("a list that passes over many expired sessions ends its page early and leads on to the live ones", async () => {
  await using cairn = await startCairn({ listProbesMax: 100 });
  const live = await cairn.createSession();
  const expired = [];
  for (let i = 0; i < 25; i++) expired.push(await cairn.createSession({ ttl_seconds: 60 }));
  cairn.clock.advance({ seconds: 61 });
  const pages = await pagesOf(cairn, "/v1/sessions");
  expect(pages.map(({ data }) => idsOf(data))).toEqual([[], [], [live.id]]);
  // A row that is not shown counts as ten looks.
  const [tenth, twentieth] = [expired.at(-10)!.id, expired.at(-20)!.id];
  expect(pages.map(({ has_more, first_id, last_id }) => ({ has_more, first_id, last_id }))).toEqual([
    { has_more: true, first_id: null, last_id: tenth },
    { has_more: true, first_id: null, last_id: twentieth },
    { has_more: false, first_id: live.id, last_id: live.id },
  ]);
});

test("PATCH merges metadata key by key, and a null removes a key", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ metadata: { channel: "chat", tags: { vip: true }, old: 1 } });
  cairn.clock.advance({ seconds: 5 });
  const changed = await cairn.patch(`/v1/sessions/${session.id}`, { metadata: { tags: { new: true }, old: null, added: [] } });
  expect(changed).toMatchObject({ status: 200 });
  expect(changed.body).toEqual({
    ...session,
    metadata: { channel: "chat", tags: { new: true }, added: [] },
    updated_at: "2026-05-07T08:00:05.000Z",
  });
  expect(await cairn.session(session.id)).toEqual(changed.body);
});

test("PATCH sets a new time to live, counted from now, and leaves the rest as it is", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ metadata: { channel: "chat" }, initial_state: { step: 1 }, ttl_seconds: 60 });
  cairn.clock.advance({ seconds: 30 });
  expect(await cairn.ok(cairn.patch(`/v1/sessions/${session.id}`, { ttl_seconds: 3600 }))).toEqual({
    ...session,
    updated_at: "2026-05-07T08:00:30.000Z",
    ttl_expires_at: "2026-05-07T09:00:30.000Z",
  });
});

test("updated_at moves with every change of state, metadata, turns and memories, and reading does not move it", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  let memory = "";
  const changes = {
    "state update": () => cairn.setState(id, { step: 1 }),
    rollback: () => cairn.rollback(id, 0),
    metadata: () => cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { channel: "chat" } })),
    turn: () => cairn.addTurn(id),
    "memory added": async () => (memory = (await cairn.addMemory(id, "Likes tea.")).id),
    "memory changed": () => cairn.ok(cairn.patch(`/v1/memory/${memory}`, { tags: ["drink"] })),
    "memory deleted": () => cairn.ok(cairn.delete(`/v1/memory/${memory}`)),
  };
  for (const [name, change] of Object.entries(changes)) {
    cairn.clock.advance({ seconds: 1 });
    const at = new Date(cairn.clock.now()).toISOString();
    await change();
    cairn.clock.advance({ seconds: 1 });
    await cairn.context(id, { query: "tea" });
    await cairn.search("tea", { session_id: id });
    expect([name, (await cairn.session(id)).updated_at]).toEqual([name, at]);
  }
});

test("turn_count and memory_count follow what is added and deleted", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await Promise.all([cairn.addTurn(id), cairn.addTurn(id), cairn.addTurn(id)]);
  const [first] = await Promise.all([cairn.addMemory(id, "Likes tea."), cairn.addMemory(id, "Lives in Oslo.")]);
  expect(await cairn.session(id)).toMatchObject({ turn_count: 3, memory_count: 2 });
  await cairn.ok(cairn.delete(`/v1/memory/${first.id}`));
  expect(await cairn.session(id)).toMatchObject({ turn_count: 3, memory_count: 1 });
});

test("deleting a session answers what was deleted, and from then on it is not found", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession();
  const turn = await cairn.addTurn(session.id);
  const deleted = await cairn.delete(`/v1/sessions/${session.id}?reason=done`);
  expect([deleted.status, deleted.body]).toEqual([200, { object: "session", id: session.id, deleted: true }]);
  await expectNoSession(cairn, session.id, { turn_id: turn.id });
});

test("deleting a session removes its states, turns and memories, and nobody else's", async () => {
  await using cairn = await startCairn();
  const gone = await cairn.createSession({ user_id: "ada", agent_id: "bot" });
  const stays = await cairn.createSession({ user_id: "ada", agent_id: "bot" });
  for (const session of [gone, stays]) {
    await cairn.setState(session.id, { step: 1 });
    await cairn.addTurn(session.id);
    await cairn.addMemory(session.id, "Likes green tea.", { tags: ["drink"] });
  }
  const [memoryGone] = await cairn.list(`/v1/memory?session_id=${gone.id}`);
  const [memoryStays] = await cairn.list(`/v1/memory?session_id=${stays.id}`);
  await cairn.ok(cairn.delete(`/v1/sessions/${gone.id}`));

  expect(refusal(await cairn.get(`/v1/memory/${memoryGone.id}`))).toMatchObject({ status: 404, code: "memory_not_found" });
  expect(await cairn.list("/v1/memory?user_id=ada")).toEqual([memoryStays]);
  expect(idsOf((await cairn.search("green tea")).data)).toEqual([memoryStays.id]);
  expect(await cairn.session(stays.id)).toMatchObject({ state: { step: 1 }, turn_count: 1, memory_count: 1 });
  // Nothing is left behind in the store: two versions, a turn, a memory and its vector are those of the session that stays.
  expect(
    await cairn.counts([
      versions,
      turns,
      memories,
      memories.index.bySession,
      vectors,
      sessions.index.byAgent,
      sessions.index.byUser,
      sessions.index.byExpiry,
    ]),
  ).toEqual([2, 1, 1, 1, 1, 1, 1, 1]);
});

test("the memories of a large session are gone the moment its deletion is answered, by id, list, search and context", async () => {
  await using cairn = await startCairn();
  await findByWords(cairn);
  const large = await cairn.createSession({ user_id: "ada" });
  const other = await cairn.createSession({ user_id: "ada" });
  const kept = await cairn.addMemory(other.id, "Ada asked once whether there is coffee in the office kitchen on Fridays.");
  const added = await Promise.all(Array.from({ length: 450 }, () => cairn.addMemory(large.id, "coffee", { tags: ["drink"] })));
  await cairn.ok(cairn.delete(`/v1/sessions/${large.id}`));

  const look = async () => ({
    byId: await Promise.all(added.map(async ({ id }) => (await cairn.get(`/v1/memory/${id}`)).status)),
    changed: refusal(await cairn.patch(`/v1/memory/${added[449].id}`, { tags: [] })).code,
    deleted: refusal(await cairn.delete(`/v1/memory/${added[448].id}`)).code,
    listed: idsOf(await cairn.list("/v1/memory?limit=100")),
    listedOfUser: idsOf(await cairn.list("/v1/memory?user_id=ada&limit=100")),
    listedByTag: idsOf(await cairn.list("/v1/memory?tags=drink")),
    found: idsOf((await cairn.search("coffee", { threshold: 0 })).data),
    inContext: idsOf((await cairn.context(other.id, { query: "coffee" })).memories),
    newest: idsOf((await cairn.context(other.id)).memories),
  });
  const gone = {
    byId: added.map(() => 404),
    changed: "memory_not_found",
    deleted: "memory_not_found",
    listed: [kept.id],
    listedOfUser: [kept.id],
    listedByTag: [],
    found: [kept.id],
    inContext: [kept.id],
    newest: [kept.id],
  };
  expect(await look()).toEqual(gone);

  // What one commit could not hold is removed later, after a restart too.
  expect(await cairn.count(memories)).toBeGreaterThan(1);
  await cairn.restart();
  expect(await look()).toEqual(gone);
  await cairn.runTask("session removal");
  expect(await cairn.counts([memories, memories.index.bySession, vectors])).toEqual([1, 1, 1]);
  expect(await look()).toEqual(gone);
});

test("deleting a session with hundreds of states and turns removes them all", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await Promise.all(Array.from({ length: 250 }, (_, step) => cairn.setState(id, { step })));
  await Promise.all(Array.from({ length: 250 }, () => cairn.addTurn(id)));
  const count = () => cairn.counts([versions, turns]);
  expect(await count()).toEqual([251, 250]);
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  await cairn.runTask("session removal");
  expect(await count()).toEqual([0, 0]);
});

test("a fork starts from the current state with agent, user, metadata and time to live of its source, and no turns or memories", async () => {
  await using cairn = await startCairn();
  const source = await cairn.createSession({
    agent_id: "bot",
    user_id: "ada",
    initial_state: { step: 0 },
    metadata: { channel: "chat" },
    ttl_seconds: 3600,
  });
  await cairn.setState(source.id, { step: 1 });
  await cairn.addTurn(source.id);
  await cairn.addMemory(source.id, "Likes tea.");
  const before = await cairn.session(source.id);
  cairn.clock.advance({ seconds: 600 });

  const fork = await cairn.post(`/v1/sessions/${source.id}/fork`);
  expect(fork.status).toBe(201);
  expect(fork.body).toEqual({
    object: "session",
    id: expect.stringMatching(/^sess_[0-9A-Za-z]{12}$/),
    agent_id: "bot",
    user_id: "ada",
    created_at: "2026-05-07T08:10:00.000Z",
    updated_at: "2026-05-07T08:10:00.000Z",
    state: { step: 1 },
    state_version: 0,
    metadata: { channel: "chat", forked_from: source.id, forked_version: 1 },
    memory_count: 0,
    turn_count: 0,
    ttl_expires_at: "2026-05-07T09:10:00.000Z",
  });
  expect(fork.body.id).not.toBe(source.id);
  expect(await cairn.session(source.id)).toEqual(before);
  expect(await cairn.list(`/v1/sessions/${fork.body.id}/turns`)).toEqual([]);
  expect(await cairn.list(`/v1/memory?session_id=${fork.body.id}`)).toEqual([]);
  expect(await cairn.list(`/v1/sessions/${fork.body.id}/versions`)).toMatchObject([{ version: 0, source: "initial" }]);
});

test("a fork takes any version of its source, and the two go their own ways", async () => {
  await using cairn = await startCairn();
  const source = await cairn.createSession({ initial_state: { step: 0 } });
  await cairn.setState(source.id, { step: 1 });
  await cairn.setState(source.id, { step: 2 });
  const forkAt = async (version: number | null) => cairn.ok(cairn.post(`/v1/sessions/${source.id}/fork`, { version }));
  const first = await forkAt(0);
  expect(first).toMatchObject({ state: { step: 0 }, metadata: { forked_from: source.id, forked_version: 0 } });
  expect(await forkAt(1)).toMatchObject({ state: { step: 1 }, metadata: { forked_version: 1 } });
  expect(await forkAt(null)).toMatchObject({ state: { step: 2 }, metadata: { forked_version: 2 } });
  expect(await forkAt(-2)).toMatchObject({ state: { step: 0 }, metadata: { forked_version: 0 } });

  await cairn.setState(first.id, { mine: true });
  expect(await cairn.session(source.id)).toMatchObject({ state: { step: 2 }, state_version: 2 });
  await cairn.ok(cairn.delete(`/v1/sessions/${source.id}`));
  expect(await cairn.session(first.id)).toMatchObject({ state: { mine: true }, state_version: 1 });
  const second = await cairn.ok(cairn.post(`/v1/sessions/${first.id}/fork`));
  expect(second.metadata).toEqual({ forked_from: first.id, forked_version: 1 });
});

test("a fork of a version that does not exist is 404 version_not_found, and none is made", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (const version of [1, 99, -1, Number.MAX_SAFE_INTEGER]) {
    const answer = refusal(await cairn.post(`/v1/sessions/${id}/fork`, { version }));
    expect(answer).toEqual({ status: 404, code: "version_not_found", param: "version" });
  }
  expect(idsOf(await cairn.list("/v1/sessions"))).toEqual([id]);
});

test("a fork of a session whose metadata is as large as can be is made, and its time to live can be changed", async () => {
  await using cairn = await startCairn();
  const source = await cairn.createSession({ metadata: { note: "x".repeat(65_536 - '{"note":""}'.length) } });
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${source.id}/fork`));
  expect(fork.metadata).toEqual({ ...source.metadata, forked_from: source.id, forked_version: 0 });
  expect(await cairn.ok(cairn.patch(`/v1/sessions/${fork.id}`, { ttl_seconds: 60 }))).toMatchObject({
    ttl_expires_at: "2026-05-07T08:01:00.000Z",
  });
  // What makes it no larger is no reason to refuse it.
  expect(await cairn.ok(cairn.patch(`/v1/sessions/${fork.id}`, { metadata: {} }))).toMatchObject({ metadata: fork.metadata });
  expect(refusal(await cairn.patch(`/v1/sessions/${fork.id}`, { metadata: { more: 1 } }))).toMatchObject({ param: "metadata" });
  const { forked_version: _, ...smaller } = fork.metadata;
  expect(await cairn.ok(cairn.patch(`/v1/sessions/${fork.id}`, { metadata: { forked_version: null } }))).toMatchObject({
    metadata: smaller,
  });
});

test("an external_id is the name of one live session of a user: a second is 409 already_exists, or with if_exists the one that is there", async () => {
  await using cairn = await startCairn();
  const create = (more: object) => cairn.post("/v1/sessions", { agent_id: "agent", external_id: "thread-7", ...more });
  const first = await create({ user_id: "ada", initial_state: { step: 1 } });
  expect(first).toMatchObject({ status: 201, body: { external_id: "thread-7", user_id: "ada" } });
  const { id } = first.body;
  expect(await cairn.session(id)).toEqual(first.body);
  expect((await cairn.traces(id)).map(({ details }) => details.external_id)).toEqual(["thread-7"]);
  const refused = {
    status: 409,
    code: "already_exists",
    message: `Session ${id} has the external_id "thread-7" already. Nothing was changed.`,
    param: "external_id",
  };
  for (const more of [{}, { if_exists: "error" }]) expect(errorOf(await create({ user_id: "ada", ...more }))).toEqual(refused);
  const current = await cairn.setState(id, { step: 2 });
  const again = await create({ user_id: "ada", agent_id: "another", initial_state: { step: 0 }, if_exists: "return" });
  expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: current });
  expect((await create({ user_id: "ada", external_id: "Thread-7", if_exists: "return" })).status).toBe(201);
  // Another user's, and that of no user, are other sessions.
  const made = await Promise.all(["bo", undefined].map((user_id) => create({ user_id, if_exists: "return" })));
  expect(made.map(({ status, body }) => [status, body.user_id])).toEqual([
    [201, "bo"],
    [201, null],
  ]);
  const [ofBo, ofNobody] = made.map(({ body }) => body.id);
  for (const user_id of [undefined, null]) expect((await create({ user_id, if_exists: "return" })).body.id).toBe(ofNobody);
  const page = async (query: string) => new Set(idsOf(await cairn.list(`/v1/sessions?${query}`)));
  expect([await page("external_id=thread-7"), await page("external_id=thread-7&user_id=bo"), await page("external_id=none")]).toEqual([
    new Set([id, ofBo, ofNobody]),
    new Set([ofBo]),
    new Set(),
  ]);
});

test("an external_id is free again when its session is deleted or has expired, swept or not, and a fork does not take it over", async () => {
  await using cairn = await startCairn();
  const create = () => cairn.createSession({ external_id: "thread-7", ttl_seconds: 60 });
  const first = await create();
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${first.id}/fork`, {}));
  expect("external_id" in fork).toBe(false);
  await cairn.ok(cairn.delete(`/v1/sessions/${first.id}`));
  const second = await create();
  cairn.clock.advance({ seconds: 60 });
  expect(await cairn.list("/v1/sessions?external_id=thread-7")).toEqual([]);
  const third = await create();
  await cairn.runTask("session expiry");
  expect(await cairn.list("/v1/sessions?external_id=thread-7")).toEqual([third]);
  await cairn.restart();
  const again = await cairn.post("/v1/sessions", { agent_id: "agent", external_id: "thread-7", if_exists: "return" });
  expect([again.status, again.body]).toEqual([200, third]);
  expect(second.id).not.toBe(third.id);
});

test("of many requests at once for one external_id one creates the session and the others get it, each its own status again", async () => {
  await using cairn = await startCairn();
  const send = (i: number) =>
    cairn.post("/v1/sessions", { agent_id: "agent", external_id: "x", if_exists: "return" }, { headers: { "idempotency-key": `${i}` } });
  const answers = await Promise.all(Array.from({ length: 30 }, (_, i) => send(i)));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  const replays = await Promise.all(answers.map((_, i) => send(i)));
  expect(replays.map(({ status, body }) => [status, body])).toEqual(answers.map(({ status, body }) => [status, body]));
  expect(replays.every(({ headers }) => headers.get("idempotency-replayed") === "true")).toBe(true);
  expect(await cairn.list("/v1/sessions")).toHaveLength(1);
});

test("a session with ttl_seconds never does not expire, nor does its fork, until it is given an end", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ ttl_seconds: "never" });
  expect(await cairn.session(id)).toMatchObject({ ttl_expires_at: null });
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, {}));
  expect(fork).toMatchObject({ ttl_expires_at: null });
  cairn.clock.advance({ days: 20 * 365 });
  await cairn.runTask("session expiry");
  expect(await cairn.session(id)).toMatchObject({ id, ttl_expires_at: null });
  const ended = await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { ttl_seconds: 60 }));
  expect(ended.ttl_expires_at).not.toBeNull();
  expect(await cairn.ok(cairn.patch(`/v1/sessions/${fork.id}`, { ttl_seconds: 60 }))).toMatchObject({ id: fork.id });
  expect(await cairn.ok(cairn.patch(`/v1/sessions/${fork.id}`, { ttl_seconds: "never" }))).toMatchObject({ ttl_expires_at: null });
  expect((await cairn.traces(fork.id, "session.updated"))[0].details).toMatchObject({ ttl_seconds: "never" });
  // Null counts as left out, since SDKs send it for what was not given.
  const usual = await cairn.createSession({ ttl_seconds: null });
  expect(Date.parse(usual.ttl_expires_at) - Date.parse(usual.created_at)).toBe(86_400_000);
  cairn.clock.advance({ seconds: 61 });
  await cairn.runTask("session expiry");
  expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
  for (const ttl_seconds of ["ever", "", 0, 1.5, true]) {
    const refused = await cairn.post("/v1/sessions", { agent_id: "a", ttl_seconds });
    expect(refused).toMatchObject({ status: 400, body: { error: { param: "ttl_seconds" } } });
    expect(refused.body.error.message).toContain('an integer from 1 to 2592000, or "never"');
  }
});

test("only admin keys ask for sessions that do not expire where the setting says so", async () => {
  await using cairn = await startCairn({ environment: { endless_sessions_for_all: false } });
  const key = await cairn.newKey({ scopes: ["read", "write"] });
  const never = { agent_id: "a", ttl_seconds: "never" };
  const refused = { status: 403, code: "permission_denied", param: "ttl_seconds" };
  expect(refusal(await cairn.post("/v1/sessions", never, { key }))).toEqual(refused);
  const { id } = await cairn.createSession();
  expect(refusal(await cairn.patch(`/v1/sessions/${id}`, { ttl_seconds: "never" }, { key }))).toEqual(refused);
  expect(await cairn.post("/v1/sessions", never)).toMatchObject({ status: 201, body: { ttl_expires_at: null } });
  await cairn.ok(cairn.patch("/v1/settings", { endless_sessions_for_all: null }));
  await cairn.ok(cairn.patch("/v1/settings", { endless_sessions_for_all: true }));
  expect(await cairn.post("/v1/sessions", never, { key })).toMatchObject({ status: 201, body: { ttl_expires_at: null } });
});
