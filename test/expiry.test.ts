import { expect, test } from "bun:test";
import { memories, removals, sessions, turns, versions } from "../src/storage/tables.ts";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { expectNoSession } from "./support/requests.ts";
import { onEmbedded } from "./support/stores.ts";

type Cairn = Awaited<ReturnType<typeof startCairn>>;

/** What the store holds of sessions: what is not seen any more must also go. */
async function rowsOf(cairn: Cairn) {
  const { byAgent, byUser, byExpiry } = sessions.index;
  const indexes = await cairn.counts([byAgent, byUser, byExpiry]);
  return {
    indexes: indexes.reduce((sum, count) => sum + count, 0),
    ...(await cairn.countsByName([sessions, versions, turns, memories, removals])),
  } as Record<string, number>;
}

test("a session is there until its time has come, and not found from that moment on, whether or not it was removed yet", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ ttl_seconds: 60, user_id: "ada" });
  const { id } = session;
  const turn = await cairn.addTurn(id);
  cairn.clock.advance({ seconds: 60, ms: -1 });
  await cairn.runTask("session expiry");
  expect((await cairn.session(id)).ttl_expires_at).toBe("2026-05-07T08:01:00.000Z");
  cairn.clock.advance({ ms: 1 });

  const expectGone = async () => {
    await expectNoSession(cairn, id, { turn_id: turn.id });
    for (const query of ["", "?agent_id=agent", "?user_id=ada"]) {
      expect([query, await cairn.list(`/v1/sessions${query}`)]).toEqual([query, []]);
    }
  };
  await expectGone();
  expect((await rowsOf(cairn))["sessions"]).toBe(1);
  await cairn.runTask("session expiry");
  expect((await rowsOf(cairn))["sessions"]).toBe(0);
  await expectGone();
});

test("expiry ends the conversation, not the knowledge: states and turns go, memories stay", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada", ttl_seconds: 60 });
  const other = await cairn.createSession({ user_id: "ada", ttl_seconds: 3600 });
  await cairn.setState(id, { step: 1 });
  await cairn.addTurn(id);
  const memory = await cairn.addMemory(id, "Ada drinks green tea in the morning.", { tags: ["drink"] });
  cairn.clock.advance({ seconds: 60 });

  const expectMemory = async () => {
    expect((await cairn.get(`/v1/memory/${memory.id}`)).body).toEqual(memory);
    for (const query of ["", "?user_id=ada", "?tags=drink", "?type=general"]) {
      expect([query, await cairn.list(`/v1/memory${query}`)]).toEqual([query, [memory]]);
    }
    expect(idsOf((await cairn.search("green tea in the morning", { user_id: "ada" })).data)).toEqual([memory.id]);
    expect(idsOf((await cairn.context(other.id)).memories)).toEqual([memory.id]);
  };
  await expectMemory();
  await cairn.runTask("session expiry");
  await cairn.runTask("session removal");
  expect(await rowsOf(cairn)).toEqual({ sessions: 1, indexes: 3, versions: 1, turns: 0, memories: 1, removals: 0 });
  await expectMemory();
  await cairn.restart();
  await expectMemory();
});

test("a memory whose session has expired can still be changed and deleted", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ ttl_seconds: 60 });
  const memory = await cairn.addMemory(id, "Likes tea.");
  cairn.clock.advance({ seconds: 90 });
  const updated_at = "2026-05-07T08:01:30.000Z";
  expect(await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { type: "fact" }))).toEqual({ ...memory, type: "fact", updated_at });
  await cairn.runTask("session expiry");
  expect(await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { tags: ["drink"] }))).toMatchObject({ type: "fact", tags: ["drink"] });
  await cairn.ok(cairn.delete(`/v1/memory/${memory.id}`));
  expect(await rowsOf(cairn)).toEqual({ sessions: 0, indexes: 0, versions: 0, turns: 0, memories: 0, removals: 0 });
  expect((await cairn.traces(id)).map(({ action }) => action)).toEqual([
    "memory.deleted",
    "memory.updated",
    "session.expired",
    "memory.updated",
    "memory.created",
    "session.created",
  ]);
});

test("the trace of an expiry is the system's, with the time to live and the last activity before it", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada", ttl_seconds: 60 });
  const memory = await cairn.addMemory(id, "Likes tea.");
  cairn.clock.advance({ seconds: 20 });
  await cairn.addTurn(id);
  cairn.clock.advance({ seconds: 100 });
  await cairn.ok(cairn.patch(`/v1/memory/${memory.id}`, { tags: ["drink"] }));
  await cairn.runTask("session expiry");
  const [trace] = await cairn.traces(id);
  expect(trace).toEqual({
    object: "trace",
    id: expect.stringMatching(/^trace_/),
    session_id: id,
    user_id: "ada",
    action: "session.expired",
    actor: "system",
    timestamp: "2026-05-07T08:02:00.000Z",
    details: { ttl_seconds: 60, last_activity: "2026-05-07T08:00:20.000Z" },
    metadata: {},
  });
});

test("activity does not extend the time to live", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ ttl_seconds: 60 });
  cairn.clock.advance({ seconds: 50 });
  await cairn.setState(id, { step: 1 });
  await cairn.rollback(id, 0);
  await cairn.addTurn(id);
  await cairn.addMemory(id, "Likes tea.");
  await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { channel: "chat" } }));
  expect((await cairn.session(id)).ttl_expires_at).toBe("2026-05-07T08:01:00.000Z");
  cairn.clock.advance({ seconds: 10 });
  expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
});

test("PATCH of ttl_seconds extends or shortens the time to live, and the removal follows it", async () => {
  await using cairn = await startCairn();
  const longer = await cairn.createSession({ ttl_seconds: 60 });
  const shorter = await cairn.createSession({ ttl_seconds: 3600 });
  cairn.clock.advance({ seconds: 30 });
  await cairn.ok(cairn.patch(`/v1/sessions/${longer.id}`, { ttl_seconds: 60 }));
  await cairn.ok(cairn.patch(`/v1/sessions/${shorter.id}`, { ttl_seconds: 60 }));
  cairn.clock.advance({ seconds: 60, ms: -1 });
  await cairn.runTask("session expiry");
  for (const { id } of [longer, shorter]) expect((await cairn.session(id)).ttl_expires_at).toBe("2026-05-07T08:01:30.000Z");
  cairn.clock.advance({ ms: 1 });
  await cairn.runTask("session expiry");
  for (const { id } of [longer, shorter]) {
    expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
    expect(await cairn.traces(id, "session.expired")).toMatchObject([{ details: { ttl_seconds: 60 } }]);
  }
  expect(await rowsOf(cairn)).toEqual({ sessions: 0, indexes: 0, versions: 0, turns: 0, memories: 0, removals: 0 });
});

test("however many sessions expire at once, each is removed and traced once, however often the task runs", async () => {
  await using cairn = await startCairn();
  const stays = await cairn.createSession();
  const made = await Promise.all(Array.from({ length: 90 }, () => cairn.createSession({ ttl_seconds: 60, user_id: "ada" })));
  cairn.clock.advance({ hours: 1 });
  await cairn.runTask("session expiry");
  await cairn.runTask("session expiry");
  expect(await rowsOf(cairn)).toEqual({ sessions: 1, indexes: 2, versions: 1, turns: 0, memories: 0, removals: 0 });
  const traced = (await cairn.list("/v1/traces?action=session.expired&limit=100")).map((trace): string => trace.session_id);
  expect(traced.toSorted()).toEqual(idsOf(made).toSorted());
  expect(idsOf(await cairn.list("/v1/sessions"))).toEqual([stays.id]);
});

test("a session that was deleted in time leaves no trace of an expiry", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ ttl_seconds: 60 });
  await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
  cairn.clock.advance({ hours: 1 });
  await cairn.runTask("session expiry");
  expect((await cairn.traces(id)).map(({ action }) => action)).toEqual(["session.deleted", "session.created"]);
});

test("a large session that expires is removed in pieces, across a restart, and keeps its memories", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ ttl_seconds: 60, user_id: "ada" });
  const other = await cairn.createSession();
  await cairn.addTurn(other.id);
  await Promise.all(Array.from({ length: 150 }, (_, step) => cairn.setState(id, { step })));
  await Promise.all(Array.from({ length: 450 }, () => cairn.addTurn(id)));
  const added = await Promise.all(Array.from({ length: 3 }, (_, i) => cairn.addMemory(id, `Memory ${i}.`)));
  cairn.clock.advance({ seconds: 60 });
  await cairn.runTask("session expiry");
  // The first commit takes 200 records with the session's row and notes that there are more.
  expect(await rowsOf(cairn)).toEqual({ sessions: 1, indexes: 2, versions: 1, turns: 402, memories: 3, removals: 1 });
  await cairn.restart();
  expect(await rowsOf(cairn)).toMatchObject({ turns: 402, removals: 1 });
  expect((await cairn.get(`/v1/sessions/${id}/turns`)).status).toBe(404);
  await cairn.runTask("session removal");
  expect(await rowsOf(cairn)).toEqual({ sessions: 1, indexes: 2, versions: 1, turns: 1, memories: 3, removals: 0 });
  expect(idsOf(await cairn.list("/v1/memory?user_id=ada")).toSorted()).toEqual(idsOf(added).toSorted());
  expect(await cairn.list(`/v1/sessions/${other.id}/turns`)).toHaveLength(1);
});

test("with memories_on_expiry set to delete, the memories of a session go when it is removed, however many", async () => {
  await using cairn = await startCairn();
  await cairn.ok(cairn.patch("/v1/settings", { memories_on_expiry: "delete" }));
  const { id } = await cairn.createSession({ ttl_seconds: 60, user_id: "ada" });
  const other = await cairn.createSession({ user_id: "ada" });
  const kept = await cairn.addMemory(other.id, "Likes tea.");
  const added = await Promise.all(Array.from({ length: 250 }, () => cairn.addMemory(id, "Likes coffee.")));
  cairn.clock.advance({ seconds: 60 });
  await cairn.runTask("session expiry");
  const expectGone = async () => {
    for (const memory of [added[0], added[249]]) expect((await cairn.get(`/v1/memory/${memory.id}`)).status).toBe(404);
    expect(idsOf(await cairn.list("/v1/memory?user_id=ada&limit=100"))).toEqual([kept.id]);
    expect(idsOf((await cairn.context(other.id, { query: "coffee" })).memories)).toEqual([kept.id]);
  };
  await expectGone();
  await cairn.runTask("session removal");
  await expectGone();
  expect(await rowsOf(cairn)).toMatchObject({ memories: 1, removals: 0 });
});

test("a session whose time passed while the server was down is gone at the start and removed after it", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ ttl_seconds: 60 });
  await cairn.close();
  cairn.clock.advance({ days: 2 });
  await cairn.open();
  expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
  await cairn.runTask("session expiry");
  expect(await cairn.traces(id, "session.expired")).toMatchObject([{ timestamp: "2026-05-09T08:00:00.000Z" }]);
});

test("a fork outlives the session that it was forked from", async () => {
  await using cairn = await startCairn();
  const source = await cairn.createSession({ ttl_seconds: 60, initial_state: { step: 0 } });
  cairn.clock.advance({ seconds: 59 });
  const fork = await cairn.ok(cairn.post(`/v1/sessions/${source.id}/fork`));
  cairn.clock.advance({ seconds: 30 });
  await cairn.runTask("session expiry");
  await cairn.runTask("session removal");
  expect((await cairn.get(`/v1/sessions/${source.id}`)).status).toBe(404);
  expect(await cairn.session(fork.id)).toEqual(fork);
});

const onSystemClock = onEmbedded("the time of a database is not set back by that little");
onSystemClock("a session that is given more time between the look for expired ones and their removal stays", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ ttl_seconds: 60 });
  const { store } = cairn.service;
  const commit = store.commit.bind(store);
  store.commit = async (home, work) => {
    store.commit = commit;
    // The system's clock is set back: the session has not expired after all.
    cairn.clock.set("2026-05-07T08:00:30Z");
    await cairn.ok(cairn.patch(`/v1/sessions/${id}`, { ttl_seconds: 600 }));
    return commit(home, work);
  };
  cairn.clock.advance({ seconds: 60 });
  await cairn.runTaskOnce("session expiry");
  expect(await cairn.session(id)).toMatchObject({ ttl_expires_at: "2026-05-07T08:10:30.000Z" });
  expect(await cairn.traces(id, "session.expired")).toEqual([]);
});

test("a memory is not stored when its session expires while its vector is made", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ ttl_seconds: 60 });
  const { embeddings } = cairn.service;
  const embedMemory = embeddings.embedMemory.bind(embeddings);
  embeddings.embedMemory = async (...given) => {
    const embedding = await embedMemory(...given);
    cairn.clock.advance({ seconds: 60 });
    return embedding;
  };
  const answer = await cairn.post("/v1/memory", { session_id: session.id, content: "Likes tea." });
  expect(refusal(answer)).toEqual({ status: 404, code: "session_not_found", param: "session_id" });
  expect(await cairn.list("/v1/memory")).toEqual([]);
});
