/**
 * Traces as they happen: the stream of `GET /v1/events`.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { apiKeys } from "../src/storage/tables.ts";
import { refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { watch, type Watch } from "./support/watch.ts";

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

test("the stream of a key that has ended, or was revoked by another process, ends within a second, also where nothing happens", async () => {
  await using cairn = await startCairn();
  const ending = await watch(cairn, "", { key: await cairn.newKey({ expiresAt: cairn.clock.now() + 500 }) });
  const revoked = await cairn.newKey();
  const [idle, other] = [await watch(cairn, "", { key: revoked }), await watch(cairn, "?action=session.created")];
  // Without a trace of it, this server hears as little of it as of what another process does.
  const hash = Bun.CryptoHasher.hash("sha256", revoked, "hex");
  await cairn.service.store.commit(NO_PARTITION, (tx) => tx.remove(apiKeys, hash));
  cairn.clock.advance({ seconds: 1 });
  expect(await Promise.all([ending.trace(), idle.trace()])).toEqual([undefined, undefined]);
  const { id } = await cairn.createSession();
  expect(await other.trace()).toMatchObject({ action: "session.created", session_id: id });
});

/** Opens as many streams as one key may have. */
async function fillPlaces(cairn: Cairn, key: string, count: number = LIMITS.eventStreamsOfKeyMax): Promise<Watch[]> {
  const streams: Watch[] = [];
  for (let i = 0; i < count; i++) streams.push(await watch(cairn, "?action=session.created", { key, server: 0 }));
  expect(streams.map(({ response }) => response.status)).toEqual(streams.map(() => 200));
  return streams;
}

test("a key has at most ten streams, and one that ends makes room", async () => {
  await using cairn = await startCairn();
  const [first] = await fillPlaces(cairn, cairn.key);
  const another = (key: string) => cairn.get("/v1/events", { key, server: 0 });
  const refused = await another(cairn.key);
  expect({ ...refusal(refused), wait: refused.headers.get("retry-after") }).toEqual({
    status: 429,
    code: "rate_limit_exceeded",
    wait: "1",
  });
  // A session key has no streams of its own.
  const session = await cairn.ok(cairn.post("/v1/sign_in", {}));
  expect((await another(session.key)).status).toBe(429);
  await first!.cancel();
  expect((await cairn.events("", { server: 0 })).status).toBe(200);
});

test("of a hundred streams each key has a fair share: who has fewer takes the newest place of who has most, which can go on later", async () => {
  await using cairn = await startCairn();
  const keys = await Promise.all(Array.from({ length: 10 }, () => cairn.newKey()));
  const streams = await Promise.all(keys.map((key) => fillPlaces(cairn, key)));
  // Ten keys with ten each leave nothing; the eleventh gets nine, one of each but one.
  const eleventh = await cairn.newKey();
  await fillPlaces(cairn, eleventh, 9);
  const refused = await cairn.get("/v1/events", { key: eleventh, server: 0 });
  expect({ ...refusal(refused), wait: refused.headers.get("retry-after") }).toEqual({
    status: 503,
    code: "service_unavailable",
    wait: "1",
  });
  await cairn.createSession();
  const newest = await Promise.all(streams.map((ofKey) => ofKey.at(-1)!.trace()));
  expect(newest.filter((trace) => trace === undefined)).toHaveLength(9);
  const others = await Promise.all(streams.flatMap((ofKey) => ofKey.slice(0, -1).map((stream) => stream.trace())));
  expect(actions(others)).toEqual(others.map(() => "session.created"));
});

test("an admin finds a place among a hundred streams, whoever has them", async () => {
  await using cairn = await startCairn();
  const streams: Watch[] = [];
  for (let i = 0; i < LIMITS.eventStreamsMax; i++) streams.push(...(await fillPlaces(cairn, await cairn.newKey(), 1)));
  // Each has one: nobody has more than a fair share.
  const other = await cairn.get("/v1/events", { key: await cairn.newKey(), server: 0 });
  expect(refusal(other)).toEqual({ status: 503, code: "service_unavailable" });
  const own = await fillPlaces(cairn, cairn.key);
  await cairn.createSession();
  expect(actions(await Promise.all(own.map((stream) => stream.trace())))).toEqual(own.map(() => "session.created"));
  const others = await Promise.all(streams.map((stream) => stream.trace()));
  expect(others.filter((trace) => trace === undefined)).toHaveLength(LIMITS.eventStreamsOfKeyMax);
});

test("a reader that takes nothing is dropped at 64 KiB, others are not, and it gets the rest when it asks again", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const slow = (await cairn.events()).body!.getReader();
  const quick = await Promise.all(Array.from({ length: LIMITS.eventStreamsOfKeyMax - 1 }, () => watch(cairn)));
  const seen: string[] = [];
  // As long as it is there it has one of the places of its key. Each event has 20 KiB and a little more.
  for (let next = await cairn.events(); next.status !== 200; next = await cairn.events()) {
    expect([next.status, seen.length < 20]).toEqual([429, true]);
    await cairn.addTurn(id, "in", "out", { reasoning: "r".repeat(20 * 1024) });
    const [first, ...same] = (await Promise.all(quick.map((stream) => stream.trace()))).map((trace) => trace.id);
    expect(new Set(same)).toEqual(new Set([first]));
    seen.push(first);
  }
  // Three are less than that, with the fourth it is more, and the fifth finds that nothing was taken.
  expect(seen.length).toBe(5);
  const given = await slow.read().then(
    ({ done }) => (done ? "its end" : "an event"),
    () => "an error",
  );
  // What was kept for it is gone, too.
  expect(given).toBe("an error");
  await quick[0]!.cancel();
  const again = await watch(cairn, "", { after: seen[0]! });
  expect((await again.traces(4)).map((trace) => trace.id)).toEqual(seen.slice(1));
});

/** Bytes that were waiting for a reader when the server stopped; 0 of a stream that was dropped. */
async function waitingBytes(response: Response): Promise<number> {
  const parts = await Array.fromAsync(response.body!).catch(() => []);
  return parts.reduce((sum, part) => sum + part.byteLength, 0);
}

test("a stream that nobody reads never holds more than 64 KiB, however large events are, live and after an id", async () => {
  const cairn = await startCairn();
  const [before] = await cairn.list("/v1/traces?limit=1");
  const { id } = await cairn.createSession();
  const headers = { "Last-Event-ID": before.id };
  const streams = [await cairn.events("", { server: 0 }), await cairn.events(`?session_id=${id}`, { server: 0 })];
  for (let i = 0; i < 5; i++) {
    await cairn.addTurn(id, "in", "out", { reasoning: "ü".repeat(200_000) });
    streams.push(await cairn.events("", { server: 0, headers }));
  }
  await cairn[Symbol.asyncDispose]();
  const waiting = await Promise.all(streams.map(waitingBytes));
  expect(waiting.filter((bytes) => bytes > 64 * 1024)).toEqual([]);
});

test("events that are larger than what may wait for a reader come whole, one after another, live and after an id", async () => {
  await using cairn = await startCairn();
  const [before] = await cairn.list("/v1/traces?limit=1");
  const { id } = await cairn.createSession();
  const live = await watch(cairn, "?action=turn.added", { server: 0 });
  const got = live.traces(5);
  const texts = ["ü", "x", "😀", "z", "y"].map((character, i) => character.repeat(i % 2 === 0 ? 200_000 : 3));
  for (const reasoning of texts) await cairn.addTurn(id, "in", "out", { reasoning });
  const later = await watch(cairn, "?action=turn.added", { server: 0, after: before.id });
  const all = (await cairn.list("/v1/traces?action=turn.added")).toReversed();
  expect(all.map(({ details }) => details.reasoning)).toEqual(texts);
  expect([await got, await later.traces(texts.length)]).toEqual([all, all]);
  // It is live again.
  const { turn_number } = await cairn.addTurn(id);
  for (const stream of [live, later]) expect(await stream.trace()).toMatchObject({ details: { turn_number } });
});

test("the rest of a large event is not sent once its content is erased: the stream breaks, and continues without it", async () => {
  await using cairn = await startCairn();
  const [before] = await cairn.list("/v1/traces?limit=1");
  const keys = [cairn.key, await cairn.newKey({ scopes: ["read"] })];
  const streams: Watch[] = [];
  const watchAfter = (id: string) =>
    watch(cairn, `?action=turn.added&session_id=${id}`, { key: keys[streams.length % 2]!, after: before.id, server: 0 });
  // More than are held in memory for all: the others are read again. Of the first, two streams share what is held.
  for (let i = 0; i < 12; i++) {
    const { id } = await cairn.createSession({ user_id: "ada" });
    await cairn.addTurn(id, "in", "out", { reasoning: "secret ".repeat(60_000) });
    for (let n = i === 0 ? 2 : 1; n > 0; n--) streams.push(await watchAfter(id));
  }
  // Each has sent a part, and has looked whether it was still the same before the next one.
  for (const stream of streams) {
    expect(await stream.part()).toContain("retry: ");
    while (!(await stream.some()).includes("secret ".repeat(15_000)));
  }
  await cairn.ok(cairn.delete("/v1/users/ada"));
  const given = await Promise.all(streams.map((stream) => stream.trace().catch(() => "broken")));
  expect(given).toEqual(streams.map(() => "broken"));
  const again = await watch(cairn, "?action=turn.added", { after: before.id, server: 0 });
  expect(JSON.stringify(await again.trace())).not.toContain("secret");
});

test("streams end when the server stops, and HEAD opens none", async () => {
  const cairn = await startCairn();
  const stream = await watch(cairn);
  for (let i = 0; i < 20; i++) expect((await cairn.request("HEAD", "/v1/events")).status).toBe(200);
  await cairn[Symbol.asyncDispose]();
  expect(await stream.trace()).toBeUndefined();
});
