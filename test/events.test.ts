/**
 * Traces as they happen: the stream of `GET /v1/events`.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { LIMITS } from "../src/lib/limits.ts";
import { refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { watch } from "./support/watch.ts";

const actions = (traces: any[]) => traces.map(({ action }) => action);

test("traces come as they happen, each as it is read later, and nothing that was before", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const stream = await watch(cairn);
  expect(
    Object.fromEntries(["content-type", "cache-control", "x-accel-buffering"].map((name) => [name, stream.response.headers.get(name)])),
  ).toEqual({
    "content-type": "text/event-stream",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  await cairn.addTurn(id);
  await cairn.setState(id, { step: 1 });
  const traces = await stream.traces(2);
  expect(actions(traces)).toEqual(["turn.added", "state.updated"]);
  expect(traces.toReversed()).toEqual((await cairn.traces(id)).slice(0, 2));
});

test("filters are those of the list of traces, and combine", async () => {
  await using cairn = await startCairn();
  const [one, other] = [await cairn.createSession({ user_id: "ada" }), await cairn.createSession({ user_id: "bob" })];
  const streams = [
    await watch(cairn, `?session_id=${one.id}`),
    await watch(cairn, "?user_id=bob"),
    await watch(cairn, "?action=state.updated"),
    await watch(cairn, `?session_id=${other.id}&action=turn.added`),
  ];
  for (const { id } of [one, other]) {
    await cairn.addTurn(id);
    await cairn.setState(id, {});
  }
  const last = await cairn.createSession({ user_id: "bob" });
  await cairn.ok(cairn.delete(`/v1/sessions/${last.id}`));
  const got = await Promise.all([streams[0]!.traces(2), streams[1]!.traces(4), streams[2]!.traces(2), streams[3]!.traces(1)]);
  expect(got.map((traces) => traces.map(({ action, session_id }) => `${action} ${session_id}`))).toEqual([
    [`turn.added ${one.id}`, `state.updated ${one.id}`],
    [`turn.added ${other.id}`, `state.updated ${other.id}`, `session.created ${last.id}`, `session.deleted ${last.id}`],
    [`state.updated ${one.id}`, `state.updated ${other.id}`],
    [`turn.added ${other.id}`],
  ]);
});

test("the erasure of a user brings nothing again that was before", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ user_id: "ada" });
  await cairn.addTurn(id);
  const streams = [await watch(cairn), await watch(cairn, "?user_id=ada")];
  await cairn.ok(cairn.delete("/v1/users/ada"));
  expect(actions(await Promise.all(streams.map((stream) => stream.trace())))).toEqual(["user.erased", "user.erased"]);
});

for (const [name, filter] of Object.entries({
  everything: () => "",
  "a session": (id: string) => `?session_id=${id}`,
  "a user": () => "?user_id=ada",
  "an action": () => "?action=turn.added",
})) {
  test(`after the id of an event those come that followed it, all of them once, then what is new: ${name}`, async () => {
    await using cairn = await startCairn();
    const { id } = await cairn.createSession({ user_id: "ada" });
    // More than are read at once.
    for (let turn = 0; turn < 230; turn++)
      await cairn.addTurn(id, "x".repeat(turn % 50 === 0 ? 200_000 : 1), "", { reasoning: "r".repeat(2_000) });
    const all = (await cairn.list(`/v1/traces?action=turn.added&limit=100`)).concat(
      await cairn.list(
        `/v1/traces?action=turn.added&limit=100&starting_after=${(await cairn.list("/v1/traces?action=turn.added&limit=100")).at(-1).id}`,
      ),
    );
    const [after, ...expected] = all.toReversed().map((trace) => trace.id);
    const stream = await watch(cairn, filter(id), { after: after! });
    const first = await stream.traces(3);
    await cairn.addTurn(id);
    const [newest] = await cairn.traces(id);
    const ids = [...first, ...(await stream.traces(expected.length - 3 + 1))].map((trace) => trace.id);
    expect(ids).toEqual([...expected, newest.id]);
  });
}

test("an id that is none, and an unknown action, are refused", async () => {
  await using cairn = await startCairn();
  for (const id of ["", "5", "evt_0VQk3aB4x1Zq", "trace_0VQk3aB4x1Zq0"]) {
    const answer = await cairn.get("/v1/events", { headers: { "Last-Event-ID": id } });
    expect([id, refusal(answer)]).toEqual([id, { status: 400, code: "invalid_request", param: "Last-Event-ID" }]);
  }
  expect(refusal(await cairn.get("/v1/events?action=nothing"))).toMatchObject({ status: 400, param: "action" });
});

test("changes of keys, settings and webhooks come to admin keys alone, live and after an id", async () => {
  await using cairn = await startCairn();
  const [before] = await cairn.list("/v1/traces?limit=1");
  const key = await cairn.newKey({ scopes: ["read"] });
  const streams = [
    await watch(cairn, "", { key }),
    await watch(cairn, "", { key, after: before.id }),
    await watch(cairn, "", { after: before.id }),
  ];
  await cairn.ok(cairn.patch("/v1/settings", { region: "eu" }));
  await cairn.createSession();
  const [live, later, admin] = [await streams[0]!.traces(1), await streams[1]!.traces(1), await streams[2]!.traces(3)];
  expect([actions(live), actions(later), actions(admin)]).toEqual([
    ["session.created"],
    ["session.created"],
    ["api_key.created", "settings.updated", "session.created"],
  ]);
});

test("a key that is bound to a user or an agent has the traces of these alone, live and after an id, whatever it filters by", async () => {
  await using cairn = await startCairn();
  const [before] = await cairn.list("/v1/traces?limit=1");
  const user = await cairn.newKey({ scopes: ["read"], owner: { userId: "ada" } });
  const agent = await cairn.newKey({ scopes: ["read"], owner: { agentId: "helper" } });
  const other = await cairn.createSession({ user_id: "bob", agent_id: "other" });
  const bobs = await watch(cairn, "?user_id=bob", { key: user, after: before.id });
  const sessions = await watch(cairn, `?session_id=${other.id}`, { key: user, after: before.id });
  const streams = [user, agent].flatMap((key) => [watch(cairn, "", { key }), watch(cairn, "", { key, after: before.id })]);
  const opened = await Promise.all(streams);
  await cairn.addTurn(other.id);
  const { id } = await cairn.createSession({ user_id: "ada", agent_id: "helper" });
  for (const stream of opened) expect(await stream.trace()).toMatchObject({ action: "session.created", session_id: id });
  cairn.clock.advance({ seconds: 20 });
  for (const stream of [bobs, sessions]) expect([await stream.part(), await stream.part()]).toEqual([`retry: 2000\nid: ${before.id}`, ":"]);
});

test("a comment comes every 20 s", async () => {
  await using cairn = await startCairn();
  const stream = await watch(cairn);
  expect(await stream.part()).toMatch(/^retry: 2000\nid: trace_[0-9A-Za-z]{12}$/);
  for (let i = 0; i < 3; i++) {
    cairn.clock.advance({ seconds: 20 });
    expect(await stream.part()).toBe(":");
  }
});

test("the stream of a key ends when that is revoked, before what comes after, and those of others go on", async () => {
  await using cairn = await startCairn();
  const { id, key } = await cairn.ok(cairn.post("/v1/api_keys", {}));
  const session = await cairn.ok(cairn.post("/v1/sign_in", {}, { key }));
  const streams = [await watch(cairn, "", { key }), await watch(cairn, "", { key: session.key })];
  const own = await watch(cairn);
  await Promise.all([cairn.ok(cairn.delete(`/v1/api_keys/${id}`)), cairn.createSession()]);
  expect(await Promise.all(streams.map((stream) => stream.trace()))).toEqual([undefined, undefined]);
  expect(actions(await own.traces(2)).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(["api_key.revoked", "session.created"]);
});

test("what is committed while what came before is being sent is sent, too", async () => {
  await using cairn = await startCairn();
  const stream = await watch(cairn, "?action=session.created");
  const made: string[] = [];
  const clients = Array.from({ length: 8 }, async (_, client) => {
    for (let i = 0; i < 10; i++) {
      const { id } = await cairn.createSession({ user_id: `${client}` });
      made.push(id);
      // After a change of keys each stream finds out whether it may go on.
      if (i % 2 === 0) await cairn.ok(cairn.post("/v1/api_keys", {}));
    }
  });
  await Promise.all(clients);
  const sent = await stream.traces(made.length);
  expect(new Set(sent.map((trace) => trace.session_id))).toEqual(new Set(made));
  expect(sent.length).toBe(made.length);
});

test("the stream of a key that has ended, or was revoked by another process, ends with the next comment", async () => {
  await using cairn = await startCairn();
  const stream = await watch(cairn, "", { key: await cairn.newKey({ expiresAt: cairn.clock.now() + 5_000 }) });
  cairn.clock.advance({ seconds: 20 });
  expect(await stream.trace()).toBeUndefined();
});

test("a key has at most ten streams, all together have a hundred, and one that ends makes room", async () => {
  await using cairn = await startCairn();
  const first = await watch(cairn);
  for (let i = 1; i < 10; i++) await watch(cairn);
  expect(refusal(await cairn.get("/v1/events"))).toEqual({ status: 429, code: "rate_limit_exceeded" });
  // A session key has no streams of its own.
  const session = await cairn.ok(cairn.post("/v1/sign_in", {}));
  expect((await cairn.get("/v1/events", { key: session.key })).status).toBe(429);
  await first.cancel();
  expect((await cairn.events()).status).toBe(200);
  for (let i = 1; i < 10; i++) {
    const key = await cairn.newKey();
    for (let j = 0; j < 10; j++) expect((await cairn.events("", { key })).status).toBe(200);
  }
  expect(refusal(await cairn.get("/v1/events", { key: await cairn.newKey() }))).toEqual({ status: 503, code: "service_unavailable" });
});

test("a reader that takes nothing is dropped at 256 KiB, others are not, and it gets the rest when it asks again", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const slow = (await cairn.events()).body!.getReader();
  const quick = await Promise.all(Array.from({ length: LIMITS.eventStreamsOfKeyMax - 1 }, () => watch(cairn)));
  const seen: string[] = [];
  // As long as it is there it has one of the places of its key. Each event has 40 KiB and a little more.
  for (let next = await cairn.events(); next.status !== 200; next = await cairn.events()) {
    expect([next.status, seen.length < 20]).toEqual([429, true]);
    await cairn.addTurn(id, "in", "out", { reasoning: "r".repeat(40 * 1024) });
    const [first, ...same] = (await Promise.all(quick.map((stream) => stream.trace()))).map((trace) => trace.id);
    expect(new Set(same)).toEqual(new Set([first]));
    seen.push(first);
  }
  // Six are less than that, with the seventh it is more, and the eighth finds that nothing was taken.
  expect(seen.length).toBe(8);
  const given = await slow.read().then(
    ({ done }) => (done ? "its end" : "an event"),
    () => "an error",
  );
  // What was kept for it is gone, too.
  expect(given).toBe("an error");
  await quick[0]!.cancel();
  const again = await watch(cairn, "", { after: seen[0]! });
  expect((await again.traces(7)).map((trace) => trace.id)).toEqual(seen.slice(1));
});

test("streams end when the server stops, and HEAD opens none", async () => {
  const cairn = await startCairn();
  const stream = await watch(cairn);
  for (let i = 0; i < 20; i++) expect((await cairn.request("HEAD", "/v1/events")).status).toBe(200);
  await cairn[Symbol.asyncDispose]();
  expect(await stream.trace()).toBeUndefined();
});
