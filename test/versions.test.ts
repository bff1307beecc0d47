import { expect, test } from "bun:test";
import { errorOf } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";

test("a state update replaces the state entirely, as the next version, and answers the session", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ initial_state: { step: 0, cart: ["tea"] } });
  cairn.clock.advance({ seconds: 1 });
  const updated = await cairn.post(`/v1/sessions/${session.id}/state`, { state: { step: 1 }, reasoning: "The order came in." });
  expect(updated.status).toBe(200);
  expect(updated.body).toEqual({ ...session, state: { step: 1 }, state_version: 1, updated_at: "2026-05-07T08:00:01.000Z" });
  expect(await cairn.session(session.id)).toEqual(updated.body);
  await cairn.restart();
  expect(await cairn.session(session.id)).toEqual(updated.body);
});

test("rolling back to version 1 restores its state as version 3", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ initial_state: { step: 0 } });
  await cairn.setState(session.id, { step: 1 });
  await cairn.setState(session.id, { step: 2 });
  expect(await cairn.rollback(session.id, 1)).toMatchObject({ state: { step: 1 }, state_version: 3 });
  expect(await cairn.traces(session.id, "state.rolled_back")).toMatchObject([{ details: { from_version: 2, to_version: 1 } }]);
});

test("an update after a rollback is traced with what it changed of the state that the rollback brought back", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ initial_state: { step: 0, cart: [] } });
  await cairn.setState(session.id, { step: 1, cart: ["tea"] });
  await cairn.rollback(session.id, 0);
  await cairn.setState(session.id, { step: 1, cart: [] });
  const [trace] = await cairn.traces(session.id, "state.updated");
  expect(trace.details.state_diff).toEqual({ added: {}, removed: {}, modified: { step: { from: 0, to: 1 } } });
});

test("a rollback answers 200 with the whole session", async () => {
  await using cairn = await startCairn();
  const session = await cairn.createSession({ initial_state: { step: 0 }, metadata: { channel: "chat" } });
  await cairn.setState(session.id, { step: 1 });
  cairn.clock.advance({ seconds: 1 });
  const back = await cairn.post(`/v1/sessions/${session.id}/rollback`, { version: 0, reason: "The order was cancelled." });
  expect(back.status).toBe(200);
  expect(back.body).toEqual({ ...session, state_version: 2, updated_at: "2026-05-07T08:00:01.000Z" });
  expect(await cairn.session(session.id)).toEqual(back.body);
});

test("a rollback takes any version there is: the initial one, the current one, or one counted back from it", async () => {
  const cases = [
    { name: "the initial state", version: 0, state: { step: 0 } },
    { name: "one that was itself a rollback", version: 4, state: { step: 1 } },
    { name: "the current one", version: 5, state: { step: 5 } },
    { name: "-1 is undo", version: -1, state: { step: 1 } },
    { name: "-2 skips one", version: -2, state: { step: 3 } },
    { name: "-5 is the initial state", version: -5, state: { step: 0 } },
  ];
  await using cairn = await startCairn();
  for (const { name, version, state } of cases) {
    const { id } = await cairn.createSession({ initial_state: { step: 0 } });
    for (const step of [1, 2, 3]) await cairn.setState(id, { step });
    await cairn.rollback(id, 1);
    await cairn.setState(id, { step: 5 });
    const { state: restored, state_version } = await cairn.rollback(id, version);
    expect({ name, restored, state_version }).toEqual({ name, restored: state, state_version: 6 });
  }
});

test("a rollback to a version that does not exist is 404 version_not_found, and nothing changes", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { step: 0 } });
  const before = await cairn.setState(id, { step: 1 });
  for (const version of [2, 1_000_000, Number.MAX_SAFE_INTEGER, -2, -1_000_000]) {
    const answer = await cairn.post(`/v1/sessions/${id}/rollback`, { version });
    const message = `Session ${id} has no version ${version}; its versions are 0 to 1.`;
    expect(errorOf(answer)).toEqual({ status: 404, code: "version_not_found", message, param: "version" });
  }
  expect(await cairn.session(id)).toEqual(before);
  expect(await cairn.traces(id, "state.rolled_back")).toEqual([]);
});

test("expected_version lets an update, a PATCH or a rollback through only from that version; otherwise 409 version_conflict and nothing changes", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { step: 0 } });
  expect(await cairn.setState(id, { step: 1 }, { expected_version: 0 })).toMatchObject({ state_version: 1 });
  expect(await cairn.rollback(id, 0, { expected_version: 1 })).toMatchObject({ state: { step: 0 }, state_version: 2 });
  const before = { session: await cairn.session(id), traces: await cairn.traces(id) };
  for (const request of [
    () => cairn.post(`/v1/sessions/${id}/state`, { state: { step: 9 }, expected_version: 1 }),
    () => cairn.post(`/v1/sessions/${id}/rollback`, { version: 0, expected_version: 1 }),
    () => cairn.patch(`/v1/sessions/${id}/state`, { state: { step: 9 }, expected_version: 1 }),
  ]) {
    const message = `Session ${id} is at version 2, not 1. Nothing was changed.`;
    expect(errorOf(await request())).toEqual({ status: 409, code: "version_conflict", message, param: "expected_version" });
  }
  expect({ session: await cairn.session(id), traces: await cairn.traces(id) }).toEqual(before);
});

test("the versions of a session are listed newest first, with who made each and why, without their states", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { step: 0 } });
  const otherKey = await cairn.newKey();
  cairn.clock.advance({ seconds: 1 });
  await cairn.ok(cairn.post(`/v1/sessions/${id}/state`, { state: { step: 1 }, reasoning: "The order came in." }, { key: otherKey }));
  cairn.clock.advance({ seconds: 1 });
  await cairn.setState(id, { step: 2 });
  cairn.clock.advance({ seconds: 1 });
  await cairn.rollback(id, 1, { reason: "Counted twice." });
  const actor = cairn.key.slice(0, 8);
  const listed = await cairn.get(`/v1/sessions/${id}/versions`);
  expect(listed.status).toBe(200);
  expect(listed.body).toEqual({
    object: "list",
    data: [
      {
        object: "version",
        version: 3,
        created_at: "2026-05-07T08:00:03.000Z",
        reasoning: "Counted twice.",
        actor,
        source: "rollback",
        restored_from_version: 1,
      },
      { object: "version", version: 2, created_at: "2026-05-07T08:00:02.000Z", actor, source: "update" },
      {
        object: "version",
        version: 1,
        created_at: "2026-05-07T08:00:01.000Z",
        reasoning: "The order came in.",
        actor: otherKey.slice(0, 8),
        source: "update",
      },
      { object: "version", version: 0, created_at: "2026-05-07T08:00:00.000Z", actor, source: "initial" },
    ],
    has_more: false,
    first_id: "3",
    last_id: "0",
  });
});

test("a version is read with its state, which no later change touches", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { cart: { tea: 1 } } });
  await cairn.setState(id, { cart: { tea: 2 } }, { reasoning: "One more." });
  await cairn.rollback(id, 0);
  const actor = cairn.key.slice(0, 8);
  const created_at = "2026-05-07T08:00:00.000Z";
  const read = async (version: number) => (await cairn.get(`/v1/sessions/${id}/versions/${version}`)).body;
  expect([await read(0), await read(1), await read(2)]).toEqual([
    { object: "version", version: 0, created_at, actor, source: "initial", state: { cart: { tea: 1 } } },
    { object: "version", version: 1, created_at, reasoning: "One more.", actor, source: "update", state: { cart: { tea: 2 } } },
    { object: "version", version: 2, created_at, actor, source: "rollback", restored_from_version: 0, state: { cart: { tea: 1 } } },
  ]);
});

test("the state is read by itself, with when the session and its version were made", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession({ initial_state: { step: 0 } });
  cairn.clock.advance({ seconds: 1 });
  await cairn.setState(id, { step: 1 });
  cairn.clock.advance({ seconds: 1 });
  await cairn.addTurn(id);
  const state = { object: "state", session_id: id, version: 1, state: { step: 1 } };
  const times = { created_at: "2026-05-07T08:00:00.000Z", updated_at: "2026-05-07T08:00:01.000Z" };
  expect(await cairn.ok(cairn.get(`/v1/sessions/${id}/state`))).toEqual({ ...state, ...times });
});

test("a PATCH of the state changes the keys it names, a null removing one, and makes one version with its trace", async () => {
  await using cairn = await startCairn();
  const before = JSON.parse('{"step":0,"cart":["tea"],"gone":1,"__proto__":{"a":1}}') as object;
  const { id } = await cairn.createSession({ initial_state: before });
  cairn.clock.advance({ seconds: 1 });
  const raw = '{"state":{"step":1,"cart":{"tea":2},"gone":null,"never":null,"constructor":2},"reasoning":"The order came in."}';
  const patched = await cairn.request("PATCH", `/v1/sessions/${id}/state`, { raw, headers: { "content-type": "application/json" } });
  const state = JSON.parse('{"step":1,"cart":{"tea":2},"__proto__":{"a":1},"constructor":2}') as object;
  expect(patched.status).toBe(200);
  expect(patched.body).toMatchObject({ object: "state", session_id: id, version: 1, updated_at: "2026-05-07T08:00:01.000Z" });
  expect(JSON.stringify(patched.body.state)).toBe(JSON.stringify(state));
  expect(await cairn.ok(cairn.get(`/v1/sessions/${id}/state`))).toEqual(patched.body);
  expect(await cairn.session(id)).toMatchObject({ state_version: 1, updated_at: "2026-05-07T08:00:01.000Z" });
  const [version] = await cairn.list(`/v1/sessions/${id}/versions`);
  expect(version).toMatchObject({ version: 1, source: "update", reasoning: "The order came in." });
  const traces = await cairn.traces(id, "state.updated");
  expect(traces.map(({ details }) => details)).toEqual([
    {
      reasoning: "The order came in.",
      state_diff: {
        added: { constructor: 2 },
        removed: { gone: 1 },
        modified: { step: { from: 0, to: 1 }, cart: { from: ["tea"], to: { tea: 2 } } },
      },
      version: 1,
    },
  ]);
});

test("of many PATCHes of one state at once each changes its own key, in a version of its own", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const patched = await Promise.all(
    Array.from({ length: 50 }, (_, i) => cairn.ok(cairn.patch(`/v1/sessions/${id}/state`, { state: { [`k${i}`]: i } }))),
  );
  expect(patched.map(({ version }) => version).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
  const { state } = await cairn.session(id);
  expect(state).toEqual(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`k${i}`, i])));
});

test("a state cannot be patched beyond what a body can bring, and one that is larger already can be made smaller", async () => {
  await using cairn = await startCairn({ environment: { max_body_bytes: 4_096 } });
  const { id } = await cairn.createSession({ initial_state: { a: "x".repeat(2_000) } });
  const path = `/v1/sessions/${id}/state`;
  const before = await cairn.ok(cairn.get(path));
  const message = "The state must be at most 4096 bytes of JSON; merged it would have 5015.";
  const refused = await cairn.patch(path, { state: { b: "é".repeat(1_500) } });
  expect(errorOf(refused)).toEqual({ status: 413, code: "payload_too_large", message, param: "state" });
  expect(await cairn.ok(cairn.get(path))).toEqual(before);
  await cairn.ok(cairn.patch(path, { state: { b: "x".repeat(2_081) } }));
  expect(errorOf(await cairn.patch(path, { state: { b: "x".repeat(2_082) } }))).toMatchObject({ status: 413, param: "state" });
  await cairn.ok(cairn.patch("/v1/settings", { max_body_bytes: 1_024 }));
  expect(await cairn.ok(cairn.patch(path, { state: { b: null } }))).toMatchObject({ state: { a: "x".repeat(2_000) }, version: 2 });
});
