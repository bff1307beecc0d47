/**
 * The system's clock is set back an hour while Cairn runs, or while it does not.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { examineAll } from "../src/operations/doctor.ts";
import { idsOf, pagesOf } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { startReceiver } from "./support/receiver.ts";

const HOUR_MS = 3_600_000;

const goBack = (cairn: Cairn) => cairn.clock.set(cairn.clock.now() - HOUR_MS);
const isReplay = ({ headers }: { headers: Headers }) => headers.get("idempotency-replayed") === "true";

/** Every record of a list, one to a page, in the order of the pages. */
async function listed(cairn: Cairn, path: string): Promise<any[]> {
  return (await pagesOf(cairn, `${path}${path.includes("?") ? "&" : "?"}limit=1`)).flatMap(({ data }) => data);
}

function expectRising(texts: readonly string[]): void {
  expect(texts).toEqual(texts.toSorted());
}

function expectFalling(texts: readonly string[]): void {
  expectRising(texts.toReversed());
}

/** One of each, in this order. */
async function makeRecords(cairn: Cairn, id: string, step: number) {
  const made = { state: await cairn.setState(id, { step }), turn: await cairn.addTurn(id) };
  const memory = await cairn.addMemory(id, `The boat is moored at pier ${step}.`);
  return { ...made, memory, fork: await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`, {})) };
}

test("ids and times go on rising over a clock that goes back, and over a restart behind it; every list keeps its order", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const made: Awaited<ReturnType<typeof makeRecords>>[] = [];
  const steps = [
    () => cairn.clock.advance({ seconds: 1 }),
    () => goBack(cairn),
    () => cairn.clock.advance({ seconds: 1 }),
    () => cairn.restart(),
    // As if the process had been down while the clock was set.
    async () => (await cairn.close(), goBack(cairn), await cairn.open()),
    () => cairn.clock.advance({ hours: 1 }),
    // It has caught up.
    () => cairn.clock.advance({ hours: 2 }),
  ];
  for (const [index, step] of steps.entries()) {
    await step();
    made.push(await makeRecords(cairn, id, index));
  }

  const all = made.flatMap(({ turn, memory, fork }) => [turn, memory, fork]);
  const keys = all.map((record) => record.id.slice(record.id.indexOf("_")));
  expectRising(keys);
  expect(new Set(keys).size).toBe(keys.length);
  const times = made.flatMap(({ state, turn, memory, fork }) => [state.updated_at, turn.created_at, memory.created_at, fork.created_at]);
  expectRising(times);

  expect(idsOf(await listed(cairn, "/v1/sessions"))).toEqual([...idsOf(made.map(({ fork }) => fork)).reverse(), id]);
  expect(await listed(cairn, "/v1/memory")).toEqual(made.map(({ memory }) => memory).reverse());
  expect(await listed(cairn, `/v1/sessions/${id}/turns?order=asc`)).toEqual(made.map(({ turn }) => turn));
  expect(made.map(({ turn }) => turn.turn_number)).toEqual([1, 2, 3, 4, 5, 6, 7]);
  const versions = await listed(cairn, `/v1/sessions/${id}/versions`);
  expect(versions.map(({ version }) => version)).toEqual([7, 6, 5, 4, 3, 2, 1, 0]);
  expectFalling(versions.map(({ created_at }) => created_at));
  const traces = await listed(cairn, "/v1/traces");
  // With the first key's.
  expect(traces).toHaveLength(2 + 4 * made.length);
  expectFalling(idsOf(traces));
  expectFalling(traces.map(({ timestamp }) => timestamp));
  for (const { memory } of made)
    expect((await cairn.search(memory.content, { limit: 1 })).data).toMatchObject([{ id: memory.id, score: 1 }]);
  expect((await examineAll(cairn.service.store)).findings).toEqual([]);
});

test("a session lives until the clock shows its ttl_expires_at, however often it has shown an hour before that", async () => {
  await using cairn = await startCairn();
  const [before, removed] = [await cairn.createSession({ ttl_seconds: 7_200 }), await cairn.createSession({ ttl_seconds: 1 })];
  cairn.clock.advance({ seconds: 1 });
  await cairn.runTask("session expiry");
  goBack(cairn);
  // What is removed stays removed, under a clock that shows a time before its end.
  expect((await cairn.get(`/v1/sessions/${removed.id}`)).status).toBe(404);
  // Time goes on from the last that was given, so that no record is older than one before it.
  const behind = await cairn.createSession({ ttl_seconds: 60 });
  expect(Date.parse(behind.created_at)).toBeGreaterThanOrEqual(Date.parse(before.created_at));
  for (const { id, ttl_expires_at } of [behind, before]) {
    cairn.clock.advance({ ms: Date.parse(ttl_expires_at) - cairn.clock.now() - 1 });
    await cairn.runTask("session expiry");
    expect((await cairn.session(id)).ttl_expires_at).toBe(ttl_expires_at);
    cairn.clock.advance({ ms: 1 });
    expect((await cairn.get(`/v1/sessions/${id}`)).status).toBe(404);
    await cairn.runTask("session expiry");
  }
  const expired = (await cairn.get("/v1/traces?action=session.expired")).body.data;
  expect(expired.map((trace: any) => trace.session_id)).toEqual([before.id, behind.id, removed.id]);
});

test("an answer that was kept is given again over a clock that goes back, and one kept behind it when it has caught up", async () => {
  await using cairn = await startCairn();
  const ask = (key: string) => cairn.post("/v1/sessions", { agent_id: "agent" }, { headers: { "idempotency-key": key } });
  const before = await ask("before");
  goBack(cairn);
  const behind = await ask("behind");
  for (const move of [() => undefined, () => cairn.restart(), () => cairn.clock.advance({ hours: 22 })]) {
    await move();
    await cairn.runTask("idempotency retention");
    for (const [key, first] of [
      ["before", before],
      ["behind", behind],
    ] as const) {
      const again = await ask(key);
      expect({ key, replay: isReplay(again), body: again.body }).toEqual({ key, replay: true, body: first.body });
    }
  }
  expect((await cairn.get("/v1/sessions")).body.data).toHaveLength(2);
});

test("an API key ends when the clock shows its expires_at, and its rate is counted by what passes, not by what the clock shows", async () => {
  await using cairn = await startCairn();
  const expiresAt = cairn.clock.now() + 60_000;
  const key = await cairn.newKey({ expiresAt, rateLimit: { perMinute: 60, burst: 2 } });
  const ask = async () => (await cairn.get("/v1/sessions", { key })).status;
  expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429]);
  goBack(cairn);
  expect(await ask()).toBe(429);
  cairn.clock.advance({ seconds: 2 });
  expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429]);
  cairn.clock.advance({ ms: expiresAt - cairn.clock.now() - 1 });
  expect(await ask()).toBe(200);
  cairn.clock.advance({ ms: 1 });
  expect(await ask()).toBe(401);
});

test("events of changes behind the clock are delivered at once and once; a retry that was waiting is made when the clock gets there", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver((_, count) => new Response(null, { status: count === 1 ? 500 : 200 }));
  await cairn.ok(cairn.post("/v1/webhooks", { url: receiver.url, events: ["session.created"] }));
  const deliverAll = async () => {
    await cairn.runTask("webhook outbox");
    await cairn.runTask("webhook deliveries");
  };
  const first = await cairn.createSession();
  await deliverAll();
  goBack(cairn);
  const [second, third] = [await cairn.createSession(), await cairn.createSession()];
  await deliverAll();
  expect(receiver.events.map(({ data }) => data.id)).toEqual([first.id, second.id, third.id]);
  await cairn.restart();
  await deliverAll();
  expect(receiver.events).toHaveLength(3);
  cairn.clock.advance({ hours: 1, seconds: 6 });
  await deliverAll();
  expect(receiver.events.map(({ data }) => data.id)).toEqual([first.id, second.id, third.id, first.id]);
  expect(receiver.events[3].id).toBe(receiver.events[0].id);
  expectRising(receiver.events.slice(0, 3).map(({ created_at }) => created_at));
});
