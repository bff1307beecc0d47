/**
 * Which events a change becomes, what a receiver gets of them, and in which order.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { createHmac } from "node:crypto";
import { EVENT_TYPES } from "../src/traces/events.ts";
import { deliveries, outbox, payloads } from "../src/storage/tables.ts";
import { idsOf, pagesOf } from "./support/answers.ts";
import { failingCommits, startCairn, type Cairn } from "./support/cairn.ts";
import { FakeClock } from "./support/clock.ts";
import { startReceiver, type Received } from "./support/receiver.ts";

/** What changes something of a session that has a memory, and the events that follow, with the affected record and with the trace. */
const CHANGES: Record<string, [change: (cairn: Cairn, id: string, memory: any) => Promise<any>, events: string]> = {
  "creating a session": [(cairn) => cairn.createSession({ user_id: "ada" }), "session.created trace.created"],
  "a fork": [(cairn, id) => cairn.ok(cairn.post(`/v1/sessions/${id}/fork`)), "session.created trace.created"],
  "a state update": [(cairn, id) => cairn.setState(id, { text: "Grüße 😀" }), "session.updated trace.created"],
  "a rollback": [(cairn, id) => cairn.rollback(id, 0), "session.updated trace.created trace.rollback"],
  "a PATCH of a session": [
    (cairn, id) => cairn.ok(cairn.patch(`/v1/sessions/${id}`, { metadata: { a: 1 } })),
    "session.updated trace.created",
  ],
  // The memory that goes with it is no event of its own.
  "deleting a session": [
    async (cairn, id) => {
      const session = await cairn.session(id);
      await cairn.ok(cairn.delete(`/v1/sessions/${id}`));
      return session;
    },
    "session.deleted trace.created",
  ],
  "the expiry of a session": [
    async (cairn, id) => {
      const session = await cairn.session(id);
      cairn.clock.advance({ seconds: 60 });
      await cairn.runTask("session expiry");
      return session;
    },
    "session.expired trace.created",
  ],
  "a turn": [(cairn, id) => cairn.addTurn(id), "turn.added trace.created"],
  "a turn whose output is an error": [
    (cairn, id) => cairn.addTurn(id, "", "", { output: { type: "error", content: "no answer" } }),
    "turn.added trace.created trace.error",
  ],
  "a memory": [(cairn, id) => cairn.addMemory(id, "Likes coffee."), "memory.created trace.created"],
  "a change of a memory": [(cairn, _, { id }) => cairn.ok(cairn.patch(`/v1/memory/${id}`, { tags: ["drink"] })), "trace.created"],
  "deleting a memory": [
    async (cairn, _, memory) => {
      await cairn.ok(cairn.delete(`/v1/memory/${memory.id}`));
      return memory;
    },
    "trace.created",
  ],
  "the expiry of a memory": [
    async (cairn, _, memory) => {
      cairn.clock.advance({ seconds: 60 });
      await cairn.runTask("memory expiry");
      return memory;
    },
    "memory.expired trace.created",
  ],
};

test("every type of event is that of a change", () => {
  // That one comes with the creation of another memory: `memory-validity.test.ts`; these with backups: `backup-schedule.test.ts`.
  const others = ["memory.superseded", "backup.created", "backup.failed"];
  const types = [...Object.values(CHANGES).flatMap(([, events]) => events.split(" ")), ...others];
  expect(new Set(types)).toEqual(new Set(EVENT_TYPES));
});

for (const [name, [change, events]] of Object.entries(CHANGES)) {
  test(`${name} is sent as ${events.replaceAll(" ", ", ")}: the affected record as it is then`, async () => {
    await using cairn = await startCairn();
    await using receiver = startReceiver();
    const { id } = await cairn.createSession({ ttl_seconds: 60 });
    const memory = await cairn.addMemory(id, "Likes tea.", { ttl_seconds: 60 });
    const webhook = await cairn.subscribe(receiver.url);
    const record = await change(cairn, id, memory);
    await cairn.deliver();
    const sessionId = record.session_id ?? record.id;
    const [trace] = await cairn.traces(sessionId);
    expect(receiver.events).toEqual(
      events.split(" ").map((type) => ({
        id: expect.stringMatching(/^evt_[0-9A-Za-z]{12}$/),
        type,
        created_at: trace.timestamp,
        data: type.startsWith("trace.") ? trace : record,
      })),
    );
    expect((await cairn.deliveries(webhook.id))[0]).toMatchObject({
      status: "delivered",
      attempts: 1,
      event_type: receiver.events.at(-1).type,
      session_id: sessionId,
      next_attempt_at: null,
      response_code: 200,
      response_body: null,
      error: null,
    });
  });
}

test("an event is a POST with its fields in their order, signed in both ways", async () => {
  // Signatures are verified against the real time by the library that verifies them.
  await using cairn = await startCairn({ clock: new FakeClock(new Date().toISOString()) });
  await using receiver = startReceiver();
  const { secret } = await cairn.subscribe(receiver.url, { events: ["session.created"], secret: undefined });
  await cairn.createSession({ initial_state: { text: "Grüße 😀" } });
  await cairn.deliver();
  const [{ method, headers, body, event }] = receiver.received as [Received];
  expect(Object.keys(event)).toEqual(["id", "type", "created_at", "data"]);
  expect({ method, headers }).toMatchObject({
    method: "POST",
    headers: {
      "content-type": "application/json",
      "user-agent": expect.stringMatching(/^Cairn\/\d+\.\d+\.\d+/),
      "webhook-id": event.id,
      "webhook-timestamp": String(Math.floor(cairn.clock.now() / 1000)),
      "x-webhook-signature": createHmac("sha256", secret).update(body).digest("hex"),
    },
  });
  expect(new Webhook(secret).verify(body, headers)).toEqual(event);
});

test("an event carries the record as it was then, whatever happens to it later", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  await cairn.subscribe(receiver.url, { events: ["session.created", "session.updated", "session.deleted"] });
  const made = await cairn.createSession({ initial_state: { step: 0 } });
  const updated = await cairn.setState(made.id, { step: 1 });
  await cairn.ok(cairn.delete(`/v1/sessions/${made.id}`));
  await cairn.deliver();
  expect(receiver.events.map(({ data }) => data)).toEqual([made, updated, updated]);
});

test("reading, a refused change, a replayed one and one that is not committed are no event", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const headers = { "idempotency-key": "once" };
  const { id } = await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { headers }));
  await cairn.subscribe(receiver.url);
  await cairn.ok(cairn.post("/v1/sessions", { agent_id: "bot" }, { headers }));
  await cairn.context(id, { query: "tea" });
  await cairn.post(`/v1/sessions/${id}/state`, { state: {}, expected_version: 4 });
  await cairn.post(`/v1/sessions/${id}/rollback`, { version: 4 });
  {
    using _ = failingCommits(cairn);
    expect((await cairn.post(`/v1/sessions/${id}/state`, { state: { step: 1 } })).status).toBe(500);
  }
  await cairn.deliver();
  expect(receiver.events).toEqual([]);
  expect(await cairn.traces(id)).toHaveLength(1);
  await cairn.addTurn(id);
  await cairn.deliver();
  expect(receiver.events.map(({ type }) => type)).toEqual(["turn.added", "trace.created"]);
});

test("a change that no webhook wants is not queued", async () => {
  await using cairn = await startCairn();
  await cairn.subscribe("http://127.0.0.1:9/", { events: ["memory.created"] });
  const { id } = await cairn.createSession();
  await cairn.addTurn(id);
  expect(await cairn.count(outbox)).toBe(0);
  await cairn.addMemory(id, "Likes tea.");
  expect(await cairn.count(outbox)).toBe(1);
});

test("a webhook gets the events it wants, from its creation on, and every webhook that wants one gets it with the same id", async () => {
  await using cairn = await startCairn();
  await using turns = startReceiver();
  await using all = startReceiver();
  const { id } = await cairn.createSession();
  await cairn.subscribe(turns.url, { events: ["turn.added", "turn.added"] });
  await cairn.addTurn(id);
  await cairn.subscribe(all.url);
  await cairn.addTurn(id);
  await cairn.deliver();
  expect(
    [turns, all].map(({ events }) => events.map(({ type, data }) => `${type} ${data.turn_number ?? data.details.turn_number}`)),
  ).toEqual([
    ["turn.added 1", "turn.added 2"],
    ["turn.added 2", "trace.created 2"],
  ]);
  expect(turns.events[1]).toEqual(all.events[0]);
});

test("the events of a session are delivered in the order of its changes, one at a time, over a restart too", async () => {
  await using cairn = await startCairn();
  const inFlight = new Map<string, number>();
  let most = 0;
  await using receiver = startReceiver(async ({ event }) => {
    const session: string = event.data.session_id;
    const count = (inFlight.get(session) ?? 0) + 1;
    inFlight.set(session, count);
    most = Math.max(most, count);
    await Promise.resolve();
    inFlight.set(session, count - 1);
    return new Response();
  });
  await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  const sessions = await Promise.all([1, 2, 3].map(() => cairn.createSession()));
  const addTurns = () => Promise.all(Array.from({ length: 30 }, (_, i) => cairn.addTurn(sessions[i % 3].id)));
  await addTurns();
  await cairn.restart();
  await addTurns();
  // Where several servers share a store, the changes of a session are a millisecond apart at least.
  cairn.clock.advance({ seconds: 1 });
  await cairn.deliver();
  const received = sessions.map(({ id }) => receiver.events.filter(({ data }) => data.session_id === id));
  const inOrder = Array.from({ length: 20 }, (_, i) => i + 1);
  expect(received.map((events) => events.map(({ data }) => data.turn_number))).toEqual([inOrder, inOrder, inOrder]);
  for (const events of received) expect(idsOf(events)).toEqual(idsOf(events).toSorted());
  expect(most).toBe(1);
});

test("events of 400 sessions are delivered eight at a time: in an eighth of the time that they take one after another", async () => {
  await using cairn = await startCairn();
  const SESSIONS = 400;
  const waiting: (() => void)[] = [];
  let rounds = 0;
  // It answers when eight requests are there, all of them at once: the time that eight sessions take together.
  await using receiver = startReceiver(
    () =>
      new Promise((resolve) => {
        waiting.push(() => resolve(new Response()));
        if (waiting.length < 8) return;
        rounds++;
        for (const answer of waiting.splice(0)) answer();
      }),
  );
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  for (let i = 0; i < SESSIONS; i += 100) await Promise.all(Array.from({ length: 100 }, () => cairn.createSession()));
  await cairn.deliver();
  expect([rounds, waiting.length, receiver.received.length]).toEqual([SESSIONS / 8, 0, SESSIONS]);
  expect(new Set(idsOf(receiver.events)).size).toBe(SESSIONS);
  const delivered = (await pagesOf(cairn, `/v1/webhooks/${id}/deliveries?limit=100`)).flatMap(({ data }) => data);
  expect(new Set(delivered.map(({ status }) => status))).toEqual(new Set(["delivered"]));
});

test("events that belong to no session do not wait for each other", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Promise(() => undefined));
  const { id } = await cairn.subscribe(receiver.url);
  for (let i = 0; i < 3; i++) await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
  const delivering = cairn.deliver();
  await receiver.got(3);
  await Promise.all([cairn.close(), delivering]);
  await cairn.open();
});

test("a session for which the receiver hangs blocks only itself", async () => {
  await using cairn = await startCairn();
  const sessions = await Promise.all(Array.from({ length: 20 }, () => cairn.createSession()));
  const slow: string = sessions[0].id;
  let isHanging = true;
  await using receiver = startReceiver(({ event }) =>
    isHanging && event.data.session_id === slow ? new Promise(() => undefined) : new Response(),
  );
  const { id } = await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  for (let turn = 0; turn < 3; turn++) for (const session of sessions) await cairn.addTurn(session.id);
  const delivering = cairn.deliver();
  await receiver.got(58);
  const others = () => receiver.events.filter(({ data }) => data.session_id !== slow);
  expect([others().length, receiver.received.length]).toEqual([57, 58]);
  const waiting = (await cairn.deliveries(id)).filter(({ session_id }) => session_id === slow);
  expect(waiting.map(({ status, next_attempt_at }) => [status, next_attempt_at === null])).toEqual([
    ["pending", true],
    ["pending", true],
    ["pending", false],
  ]);
  isHanging = false;
  cairn.clock.advance({ ms: 15_000 });
  await delivering;
  cairn.clock.advance({ seconds: 6 });
  await cairn.deliver();
  expect(receiver.events.filter(({ data }) => data.session_id === slow).map(({ data }) => data.turn_number)).toEqual([1, 1, 2, 3]);
});

test("a commit wakes the delivery; nothing is asked for and no time passes", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  cairn.service.start();
  const { id } = await cairn.createSession();
  for (const number of [1, 2, 3]) {
    await cairn.addTurn(id);
    await receiver.got(number);
  }
  expect(receiver.events.map(({ data }) => data.turn_number)).toEqual([1, 2, 3]);
});

test("a webhook that wants other events by the time a change is looked at gets none that it did not want before", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { id } = await cairn.subscribe(receiver.url, { events: ["trace.created"] });
  await cairn.createSession();
  await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { events: ["session.created"] }));
  await cairn.deliver();
  expect(receiver.events).toEqual([]);
});

test("what nobody wants leaves no delivery behind, and a disabled webhook gets nothing of what happens meanwhile", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { id } = await cairn.subscribe(receiver.url, { events: ["memory.created"], enabled: false });
  const session = await cairn.createSession();
  await cairn.addMemory(session.id, "one");
  await cairn.deliver();
  await cairn.addMemory(session.id, "two");
  await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: true }));
  await cairn.addMemory(session.id, "three");
  await cairn.addTurn(session.id);
  await cairn.deliver();
  expect(receiver.events.map(({ data }) => data.content)).toEqual(["three"]);
  expect(await cairn.counts([outbox, deliveries, payloads])).toEqual([0, 1, 1]);
});
