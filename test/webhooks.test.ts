import { createHmac } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { EVENT_TYPES } from "../src/traces/events.ts";
import { deliveries, deliveriesBySession, deliveriesDue, outbox, payloads } from "../src/storage/tables.ts";
import { idsOf, pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn, type Options } from "./support/cairn.ts";
import { FakeClock } from "./support/clock.ts";
import { until } from "./support/process.ts";
import { dialHere, publicUrl, startReceiver, type Received } from "./support/receiver.ts";

const SECRET = "a secret of my own choice";

/** Signatures are verified against the real time by the library that verifies them. */
function startToday(options: Options = {}): Promise<Cairn> {
  return startCairn({ clock: new FakeClock(new Date().toISOString()), ...options });
}

function subscribe(cairn: Cairn, url: string, more: Record<string, unknown> = {}): Promise<any> {
  return cairn.ok(cairn.post("/v1/webhooks", { url, events: EVENT_TYPES, secret: SECRET, ...more }));
}

/** What the tasks do when they are woken: events become deliveries, and those that are due are made. */
async function deliverAll(cairn: Cairn): Promise<void> {
  await cairn.runTask("webhook outbox");
  await cairn.runTask("webhook deliveries");
}

async function deliveriesOf(cairn: Cairn, id: string): Promise<any[]> {
  return (await cairn.ok(cairn.get(`/v1/webhooks/${id}/deliveries?limit=100`))).data;
}

function webhook(cairn: Cairn, id: string): Promise<any> {
  return cairn.ok(cairn.get(`/v1/webhooks/${id}`));
}

// Events

/** Each does one thing; `events` are those that follow, with their records: `null` stands for the trace. */
const CHANGES: { name: string; run: (cairn: Cairn, id: string) => Promise<{ sessionId: string; record: any }>; events: string[] }[] = [
  {
    name: "creating a session",
    async run(cairn) {
      const record = await cairn.createSession({ user_id: "ada" });
      return { sessionId: record.id, record };
    },
    events: ["session.created", "trace.created"],
  },
  {
    name: "a fork",
    async run(cairn, id) {
      const record = await cairn.ok(cairn.post(`/v1/sessions/${id}/fork`));
      return { sessionId: record.id, record };
    },
    events: ["session.created", "trace.created"],
  },
  {
    name: "a state update",
    run: async (cairn, sessionId) => ({ sessionId, record: await cairn.setState(sessionId, { text: "Grüße 😀" }) }),
    events: ["session.updated", "trace.created"],
  },
  {
    name: "a rollback",
    run: async (cairn, sessionId) => ({ sessionId, record: await cairn.rollback(sessionId, 0) }),
    events: ["session.updated", "trace.created", "trace.rollback"],
  },
  {
    name: "a PATCH of a session",
    run: async (cairn, sessionId) => ({
      sessionId,
      record: await cairn.ok(cairn.patch(`/v1/sessions/${sessionId}`, { metadata: { a: 1 } })),
    }),
    events: ["session.updated", "trace.created"],
  },
  {
    name: "deleting a session",
    async run(cairn, sessionId) {
      const record = await cairn.session(sessionId);
      await cairn.ok(cairn.delete(`/v1/sessions/${sessionId}`));
      return { sessionId, record };
    },
    events: ["session.deleted", "trace.created"],
  },
  {
    name: "the expiry of a session",
    async run(cairn, sessionId) {
      const record = await cairn.session(sessionId);
      cairn.clock.advance({ seconds: 60 });
      await cairn.runTask("session expiry");
      return { sessionId, record };
    },
    events: ["session.expired", "trace.created"],
  },
  {
    name: "a turn",
    run: async (cairn, sessionId) => ({ sessionId, record: await cairn.addTurn(sessionId) }),
    events: ["turn.added", "trace.created"],
  },
  {
    name: "a turn whose output is an error",
    run: async (cairn, sessionId) => ({
      sessionId,
      record: await cairn.addTurn(sessionId, "", "", { output: { type: "error", content: "no answer" } }),
    }),
    events: ["turn.added", "trace.created", "trace.error"],
  },
  {
    name: "a memory",
    run: async (cairn, sessionId) => ({ sessionId, record: await cairn.addMemory(sessionId, "Likes tea.") }),
    events: ["memory.created", "trace.created"],
  },
  {
    name: "a change of a memory",
    async run(cairn, sessionId) {
      const { id } = await cairn.addMemory(sessionId, "Likes tea.");
      await deliverAll(cairn);
      return { sessionId, record: await cairn.ok(cairn.patch(`/v1/memory/${id}`, { tags: ["drink"] })) };
    },
    events: ["trace.created"],
  },
];

for (const { name, run, events } of CHANGES) {
  test(`${name} is told as ${events.join(", ")}: the affected record, signed twice`, async () => {
    await using cairn = await startToday();
    await using receiver = startReceiver();
    const { id } = await cairn.createSession({ ttl_seconds: 60 });
    const { secret } = await subscribe(cairn, receiver.url, { secret: undefined });
    const before = receiver.received;
    const { sessionId, record } = await run(cairn, id);
    before.splice(0);
    await deliverAll(cairn);
    const [trace] = await cairn.traces(sessionId);
    expect(receiver.events).toEqual(
      events.map((type) => ({
        id: expect.stringMatching(/^evt_[0-9A-Za-z]{12}$/),
        type,
        created_at: trace.timestamp,
        data: type.startsWith("trace.") ? trace : record,
      })),
    );
    expect(receiver.events.map((event) => Object.keys(event))).toEqual(events.map(() => ["id", "type", "created_at", "data"]));
    for (const { method, headers, body, event } of receiver.received) {
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
    }
    expect((await deliveriesOf(cairn, (await cairn.get("/v1/webhooks")).body.data[0].id))[0]).toMatchObject({
      status: "delivered",
      attempts: 1,
      event_type: events.at(-1),
      session_id: sessionId,
      next_attempt_at: null,
      response_code: 200,
      response_body: null,
      error: null,
    });
  });
}

test("a webhook gets the events it wants, from its creation on, and every webhook that wants one gets it with the same id", async () => {
  await using cairn = await startCairn();
  await using turns = startReceiver();
  await using all = startReceiver();
  const { id } = await cairn.createSession();
  await subscribe(cairn, turns.url, { events: ["turn.added", "turn.added"] });
  await cairn.addTurn(id);
  await subscribe(cairn, all.url);
  await cairn.addTurn(id);
  await deliverAll(cairn);
  expect(
    [turns, all].map(({ events }) => events.map(({ type, data }) => `${type} ${data.turn_number ?? data.details.turn_number}`)),
  ).toEqual([
    ["turn.added 1", "turn.added 2"],
    ["turn.added 2", "trace.created 2"],
  ]);
  expect(turns.events[1]).toEqual(all.events[0]);
});

test("the events of a session are delivered in the order of its changes, one at a time", async () => {
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
  await subscribe(cairn, receiver.url, { events: ["turn.added"] });
  const sessions = await Promise.all([1, 2, 3].map(() => cairn.createSession()));
  await Promise.all(Array.from({ length: 60 }, (_, i) => cairn.addTurn(sessions[i % 3].id)));
  await deliverAll(cairn);
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
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  for (let i = 0; i < SESSIONS; i += 100) await Promise.all(Array.from({ length: 100 }, () => cairn.createSession()));
  await deliverAll(cairn);
  expect([rounds, waiting.length, receiver.received.length]).toEqual([SESSIONS / 8, 0, SESSIONS]);
  expect(new Set(idsOf(receiver.events)).size).toBe(SESSIONS);
  const delivered = (await pagesOf(cairn, `/v1/webhooks/${id}/deliveries?limit=100`)).flatMap(({ data }) => data);
  expect(new Set(delivered.map(({ status }) => status))).toEqual(new Set(["delivered"]));
});

test("events that belong to no session do not wait for each other", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Promise(() => undefined));
  const { id } = await subscribe(cairn, receiver.url);
  for (let i = 0; i < 3; i++) await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
  const delivering = deliverAll(cairn);
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
  const { id } = await subscribe(cairn, receiver.url, { events: ["turn.added"] });
  for (let turn = 0; turn < 3; turn++) for (const session of sessions) await cairn.addTurn(session.id);
  const delivering = deliverAll(cairn);
  await receiver.got(58);
  const others = () => receiver.events.filter(({ data }) => data.session_id !== slow);
  expect([others().length, receiver.received.length]).toEqual([57, 58]);
  const waiting = (await deliveriesOf(cairn, id)).filter(({ session_id }) => session_id === slow);
  expect(waiting.map(({ status, next_attempt_at }) => [status, next_attempt_at === null])).toEqual([
    ["pending", true],
    ["pending", true],
    ["pending", false],
  ]);
  isHanging = false;
  cairn.clock.advance({ ms: 15_000 });
  await delivering;
  cairn.clock.advance({ seconds: 6 });
  await deliverAll(cairn);
  expect(receiver.events.filter(({ data }) => data.session_id === slow).map(({ data }) => data.turn_number)).toEqual([1, 1, 2, 3]);
});

test("a commit wakes the delivery; nothing is asked for and no time passes", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  await subscribe(cairn, receiver.url, { events: ["turn.added"] });
  cairn.service.start();
  const { id } = await cairn.createSession();
  for (const number of [1, 2, 3]) {
    await cairn.addTurn(id);
    await receiver.got(number);
  }
  expect(receiver.events.map(({ data }) => data.turn_number)).toEqual([1, 2, 3]);
});

test("what nobody wants leaves no delivery behind, and a disabled webhook gets nothing of what happens meanwhile", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { store } = cairn.service;
  const { id } = await subscribe(cairn, receiver.url, { events: ["memory.created"], enabled: false });
  const session = await cairn.createSession();
  await cairn.addMemory(session.id, "one");
  await deliverAll(cairn);
  await cairn.addMemory(session.id, "two");
  await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: true }));
  await cairn.addMemory(session.id, "three");
  await cairn.addTurn(session.id);
  await deliverAll(cairn);
  expect(receiver.events.map(({ data }) => data.content)).toEqual(["three"]);
  expect([outbox, deliveries, payloads].map((table) => store.count(table))).toEqual([0, 1, 1]);
});

// Retries

test("what fails is tried again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, with the same id, and then given up", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response("not today", { status: 500 }));
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  const waits: number[] = [];
  for (let attempt = 1; attempt <= 8; attempt++) {
    await deliverAll(cairn);
    const [delivery] = await deliveriesOf(cairn, id);
    expect(delivery).toMatchObject({
      attempts: attempt,
      response_code: 500,
      response_body: null,
      error: "The receiver answered 500.",
    });
    if (delivery.next_attempt_at === null) {
      expect(delivery.status).toBe("failed");
      break;
    }
    expect(delivery.status).toBe("pending");
    const wait = Date.parse(delivery.next_attempt_at) - cairn.clock.now();
    waits.push(wait);
    cairn.clock.advance({ ms: wait - 1 });
    await cairn.runTask("webhook deliveries");
    expect(receiver.received).toHaveLength(attempt);
    cairn.clock.advance({ ms: 1 });
  }
  expect(receiver.received).toHaveLength(8);
  expect(new Set(receiver.received.map(({ headers }) => headers["webhook-id"])).size).toBe(1);
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  expect(new Set(receiver.received.map(({ headers }) => headers["webhook-timestamp"])).size).toBe(8);
  const schedule = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000].map((seconds) => seconds * 1000);
  expect(waits.filter((wait, index) => wait < (schedule[index] ?? 0) || wait > (schedule[index] ?? 0) * 1.2)).toEqual([]);
  expect(waits).toHaveLength(7);
});

test("the operator's schedule takes the place of ours", async () => {
  await using cairn = await startCairn({ webhooks: { retry_schedule: "200ms,1s" } });
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  for (let i = 0; i < 5; i++) {
    await deliverAll(cairn);
    cairn.clock.advance({ ms: 1_200 });
  }
  expect(receiver.received).toHaveLength(3);
  expect(await deliveriesOf(cairn, id)).toMatchObject([{ status: "failed", attempts: 3 }]);
});

test("a schedule that is set holds from the next failure on, without a restart; a wait that has begun stays as it is", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  await deliverAll(cairn);
  const [waiting] = await deliveriesOf(cairn, id);
  await cairn.ok(cairn.patch("/v1/settings", { webhooks: { retry_schedule: "1s,2m" } }));
  expect(await deliveriesOf(cairn, id)).toEqual([waiting]);
  cairn.clock.advance({ ms: Date.parse(waiting.next_attempt_at) - cairn.clock.now() });
  await deliverAll(cairn);
  const [again] = await deliveriesOf(cairn, id);
  const wait = Date.parse(again.next_attempt_at) - cairn.clock.now();
  expect([again.status, again.attempts, wait >= 120_000 && wait <= 144_000]).toEqual(["pending", 2, true]);
  await cairn.ok(cairn.patch("/v1/settings", { webhooks: { retry_schedule: "1s" } }));
  cairn.clock.advance({ ms: wait });
  await deliverAll(cairn);
  expect(await deliveriesOf(cairn, id)).toMatchObject([{ status: "failed", attempts: 3, next_attempt_at: null }]);
});

test("a time limit that is set holds for the next attempt, without a restart", async () => {
  await using cairn = await startCairn({ webhooks: { retry_schedule: "1h" } });
  await using receiver = startReceiver(() => new Promise(() => undefined));
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  for (const [limit, ms] of [
    ["3s", 3_000],
    ["250ms", 250],
    [null, 15_000],
  ] as const) {
    await cairn.ok(cairn.patch("/v1/settings", { webhooks: { timeout: limit } }));
    await cairn.createSession();
    const delivering = deliverAll(cairn);
    await cairn.clock.waiting(ms);
    await receiver.got(1);
    receiver.received.splice(0);
    cairn.clock.advance({ ms });
    await delivering;
    expect((await deliveriesOf(cairn, id))[0]).toMatchObject({
      attempts: 1,
      response_code: null,
      error: "No answer within the time limit.",
    });
  }
});

test("while an event waits for a retry that is near, later ones of its session wait too; other sessions go on", async () => {
  await using cairn = await startCairn();
  const [one, other] = [await cairn.createSession(), await cairn.createSession()];
  const tell = ({ event }: Received) => `${event.data.session_id === one.id ? "one" : "other"} ${event.data.turn_number}`;
  await using receiver = startReceiver(
    (received, count) => new Response(null, { status: tell(received) === "one 1" && count < 6 ? 500 : 200 }),
  );
  await subscribe(cairn, receiver.url, { events: ["turn.added"] });
  const sent = () => receiver.received.splice(0).map(tell);
  for (const { id } of [one, other, one, other]) await cairn.addTurn(id);
  await deliverAll(cairn);
  expect(sent()).toEqual(["one 1", "other 1", "other 2"]);
  cairn.clock.advance({ seconds: 6 });
  await deliverAll(cairn);
  // The next retry is 5 minutes away: nobody waits for that.
  expect(sent()).toEqual(["one 1", "one 2"]);
  await cairn.addTurn(one.id);
  await deliverAll(cairn);
  expect(sent()).toEqual(["one 3"]);
  cairn.clock.advance({ seconds: 360 });
  receiver.reply = () => new Response();
  await deliverAll(cairn);
  expect(sent()).toEqual(["one 1"]);
});

test("a retry that succeeds keeps the order of its session", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  await using receiver = startReceiver((_, count) => new Response(null, { status: count === 1 ? 503 : 200 }));
  await subscribe(cairn, receiver.url, { events: ["turn.added"] });
  for (let i = 0; i < 4; i++) await cairn.addTurn(id);
  await deliverAll(cairn);
  await cairn.addTurn(id);
  cairn.clock.advance({ seconds: 6 });
  await deliverAll(cairn);
  expect(receiver.events.map(({ data }) => data.turn_number)).toEqual([1, 1, 2, 3, 4, 5]);
});

test("Retry-After puts off everything for a receiver that is overloaded, over a restart too, and keeps the order of a session", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver((_, count) =>
    count === 1 ? new Response(null, { status: 429, headers: { "retry-after": "120" } }) : new Response(),
  );
  const { id } = await subscribe(cairn, receiver.url, { events: ["turn.added"] });
  const [one, other] = [await cairn.createSession(), await cairn.createSession()];
  await cairn.addTurn(one.id);
  await deliverAll(cairn);
  expect((await deliveriesOf(cairn, id))[0].next_attempt_at).toBe(new Date(cairn.clock.now() + 120_000).toISOString());
  await cairn.addTurn(one.id);
  await cairn.addTurn(other.id);
  cairn.clock.advance({ ms: 119_999 });
  await deliverAll(cairn);
  await cairn.restart();
  await deliverAll(cairn);
  expect(receiver.received).toHaveLength(1);
  cairn.clock.advance({ ms: 1 });
  await deliverAll(cairn);
  const turnsOf = ({ id: session }: { id: string }) =>
    receiver.events.filter(({ data }) => data.session_id === session).map(({ data }) => data.turn_number);
  expect([turnsOf(one), turnsOf(other)]).toEqual([[1, 1, 2], [1]]);
  expect(new Set((await deliveriesOf(cairn, id)).map(({ status }) => status))).toEqual(new Set(["delivered"]));
});

test("what was put off while the clock was ahead is delivered once the clock is right", async () => {
  await using cairn = await startCairn();
  let status = 429;
  await using receiver = startReceiver(() => new Response(null, { status, headers: { "retry-after": "60" } }));
  await subscribe(cairn, receiver.url, { events: ["turn.added"] });
  const { id } = await cairn.createSession({ ttl_seconds: 2_592_000 });
  const right = cairn.clock.now();
  cairn.clock.advance({ days: 20 });
  await cairn.addTurn(id);
  await deliverAll(cairn);
  await cairn.addTurn(id);
  await cairn.runTask("webhook outbox");
  cairn.clock.set(right + 1_000);
  status = 200;
  await cairn.runTask("webhook retention");
  await deliverAll(cairn);
  expect(receiver.events.map(({ data }) => data.turn_number)).toEqual([1, 1, 2]);
});

test("a pause that a receiver has asked for does not hold for another receiver in its place", async () => {
  await using cairn = await startCairn();
  await using busy = startReceiver(() => new Response(null, { status: 503, headers: { "retry-after": "3600" } }));
  await using idle = startReceiver();
  const { id } = await subscribe(cairn, busy.url, { events: ["session.created"] });
  await cairn.createSession();
  await deliverAll(cairn);
  await cairn.createSession();
  await deliverAll(cairn);
  expect(busy.received).toHaveLength(1);
  await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { url: idle.url }));
  await deliverAll(cairn);
  expect(idle.received).toHaveLength(1);
});

test("410 disables a webhook at once; what it is still owed waits until it is enabled again", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 410 }));
  const { id } = await subscribe(cairn, receiver.url, { events: ["turn.added"] });
  const session = await cairn.createSession();
  const [first, second] = [await cairn.addTurn(session.id), await cairn.addTurn(session.id)];
  await deliverAll(cairn);
  expect(idsOf(receiver.events.map(({ data }) => data))).toEqual([first.id]);
  expect(await webhook(cairn, id)).toMatchObject({
    enabled: false,
    disabled_reason: "The receiver answered 410 Gone at 2026-05-07T08:00:00.000Z.",
  });
  expect((await deliveriesOf(cairn, id)).map(({ status }) => status)).toEqual(["pending", "failed"]);
  expect(cairn.logged.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ level: "warn", message: "webhook disabled", webhook: id }),
  );
  await cairn.addTurn(session.id);
  cairn.clock.advance({ hours: 1 });
  await deliverAll(cairn);
  receiver.reply = () => new Response();
  expect(await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: true }))).toMatchObject({
    enabled: true,
    disabled_reason: null,
    failing_since: null,
  });
  await deliverAll(cairn);
  expect(idsOf(receiver.events.map(({ data }) => data))).toEqual([first.id, second.id]);
});

test("a webhook with nothing but failures for 5 days is disabled and says so; one that delivers in between is not", async () => {
  await using cairn = await startCairn();
  await using dead = startReceiver(() => new Response(null, { status: 500 }));
  await using shaky = startReceiver((_, count) => new Response(null, { status: count % 3 === 0 ? 200 : 500 }));
  const [deadId, shakyId] = [
    (await subscribe(cairn, dead.url, { events: ["session.created"] })).id,
    (await subscribe(cairn, shaky.url, { events: ["session.created"] })).id,
  ];
  for (let hour = 0; hour <= 5 * 24; hour += 6) {
    if (hour > 0) cairn.clock.advance({ hours: 6 });
    expect([hour, (await webhook(cairn, deadId)).enabled]).toEqual([hour, true]);
    await cairn.createSession();
    await deliverAll(cairn);
  }
  expect(await webhook(cairn, deadId)).toMatchObject({
    enabled: false,
    failing_since: "2026-05-07T08:00:00.000Z",
    disabled_reason: "Every attempt since 2026-05-07T08:00:00.000Z has failed. The last: The receiver answered 500.",
  });
  expect(await webhook(cairn, shakyId)).toMatchObject({ enabled: true, disabled_reason: null });
  const failing = await subscribe(cairn, dead.url, { events: ["session.created"] });
  await cairn.createSession();
  await deliverAll(cairn);
  expect((await webhook(cairn, failing.id)).failing_since).toBe(new Date(cairn.clock.now()).toISOString());
  expect(await cairn.ok(cairn.patch(`/v1/webhooks/${failing.id}`, { url: shaky.url }))).toMatchObject({ failing_since: null });
});

test("a redirect is a failure and is not followed", async () => {
  await using cairn = await startCairn();
  await using elsewhere = startReceiver();
  await using receiver = startReceiver(() => Response.redirect(elsewhere.url, 307));
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  await deliverAll(cairn);
  expect(elsewhere.received).toEqual([]);
  expect(await deliveriesOf(cairn, id)).toMatchObject([
    { status: "pending", response_code: 307, error: "The receiver answered 307; redirects are not followed." },
  ]);
});

test("a receiver that does not answer within 15 s has failed; any number of them hold up neither requests nor other receivers", async () => {
  await using cairn = await startCairn();
  const hanging = Array.from({ length: 12 }, () => startReceiver(() => new Promise(() => undefined)));
  await using well = startReceiver();
  const ids: string[] = [];
  for (const { url } of hanging) ids.push((await subscribe(cairn, url, { events: ["session.created"] })).id);
  await subscribe(cairn, well.url, { events: ["session.created"] });
  const inFlight = () => hanging.reduce((sum, { received }) => sum + received.length, 0);
  const createSessions = async (count: number) => {
    for (let i = 0; i < count; i++) await cairn.createSession();
    await cairn.runTask("webhook outbox");
  };
  await createSessions(20);
  const running = cairn.runTask("webhook deliveries");
  await well.got(20);
  // One of its own for each, and all that they share.
  await until("all places to be taken", () => Promise.resolve(inFlight() === 12 + 32));
  expect((await cairn.get("/v1/sessions")).status).toBe(200);
  await createSessions(5);
  void cairn.runTask("webhook deliveries");
  await well.got(25);
  expect(inFlight()).toBe(12 + 32);
  cairn.clock.advance({ ms: 15_000 });
  await until("the failures", async () => (await webhook(cairn, ids[0] ?? "")).failing_since !== null);
  await createSessions(5);
  void cairn.runTask("webhook deliveries");
  await well.got(30);
  expect((await deliveriesOf(cairn, ids[0] ?? "")).at(-1)).toMatchObject({
    status: "pending",
    response_code: null,
    error: "No answer within the time limit.",
  });
  await Promise.all([running, cairn.close()]);
  await cairn.open();
  for (const receiver of hanging) await receiver[Symbol.asyncDispose]();
});

// Restarts

test("a stop ends attempts under way at once; they are made again after the start, with the same id", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Promise(() => undefined));
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  await cairn.runTask("webhook outbox");
  const running = cairn.runTask("webhook deliveries");
  await receiver.got(1);
  await cairn.close();
  await running;
  await cairn.open();
  expect(await deliveriesOf(cairn, id)).toMatchObject([{ status: "pending", attempts: 0, error: null }]);
  receiver.reply = () => new Response();
  await deliverAll(cairn);
  expect(new Set(idsOf(receiver.events)).size).toBe(1);
  expect(receiver.received).toHaveLength(2);
  expect(await deliveriesOf(cairn, id)).toMatchObject([{ status: "delivered", attempts: 1 }]);
});

test("a restart at any point loses nothing: between commit and outbox, outbox and attempt, attempt and retry", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  const session = await cairn.createSession();
  await cairn.restart();
  await cairn.runTask("webhook outbox");
  await cairn.restart();
  await cairn.runTask("webhook deliveries");
  await cairn.restart();
  await cairn.runTask("webhook deliveries");
  expect(await deliveriesOf(cairn, id)).toMatchObject([{ status: "pending", attempts: 1 }]);
  cairn.clock.advance({ seconds: 6 });
  receiver.reply = () => new Response();
  await cairn.runTask("webhook deliveries");
  expect(receiver.events.map(({ data }) => data.id)).toEqual([session.id, session.id]);
  expect(await deliveriesOf(cairn, id)).toMatchObject([{ status: "delivered", attempts: 2 }]);
});

test("while results cannot be written nothing more is sent, and what arrived is not sent again", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  for (let i = 0; i < 3; i++) await cairn.createSession();
  await cairn.runTask("webhook outbox");
  const { store } = cairn.service;
  const commit = store.commit.bind(store);
  store.commit = () => Promise.reject(new Error("the disk is full"));
  expect(await cairn.runTask("webhook deliveries").catch(String)).toBe("Error: the disk is full");
  const sent = receiver.received.length;
  expect(await cairn.runTask("webhook deliveries").catch(String)).toBe("Error: the disk is full");
  expect(receiver.received).toHaveLength(sent);
  store.commit = commit;
  await cairn.runTask("webhook deliveries");
  expect(receiver.received).toHaveLength(3);
  expect(new Set(idsOf(receiver.events)).size).toBe(3);
  expect((await deliveriesOf(cairn, id)).map(({ status, attempts }) => [status, attempts])).toEqual(
    Array.from({ length: 3 }, () => ["delivered", 1]),
  );
});

// Targets

const HERE: Options = {};
const OUTSIDE: Options = { network: { loopback: false } };
const ANYWHERE: Options = { network: { loopback: false }, webhooks: { allow_private: true } };
const TARGETS: { url: string; status: [here: number, outside: number, anywhere: number] }[] = [
  { url: "https://agents.example.com/hook", status: [201, 201, 201] },
  { url: "http://127.0.0.1:3000/hook", status: [201, 400, 201] },
  { url: "http://2130706433/", status: [201, 400, 201] },
  { url: "http://[::ffff:127.0.0.1]/", status: [201, 400, 201] },
  { url: "http://10.1.2.3/", status: [400, 400, 201] },
  { url: "http://inside.example.com/", status: [400, 400, 201] },
  { url: "http://169.254.169.254/latest/meta-data/", status: [400, 400, 400] },
  { url: "http://metadata.example.com/", status: [400, 400, 400] },
  { url: "http://user:word@agents.example.com/", status: [400, 400, 400] },
  { url: "ftp://agents.example.com/", status: [400, 400, 400] },
  { url: "http://unknown.example.com/", status: [201, 201, 201] },
];
const NAMES: Record<string, string> = {
  "inside.example.com": "192.168.1.1",
  "metadata.example.com": "169.254.169.254",
  "agents.example.com": "8.8.8.8",
};
const resolve = (name: string) => (NAMES[name] === undefined ? Promise.reject(new Error(name)) : Promise.resolve(["8.8.8.8", NAMES[name]]));

for (const [index, [listening, options]] of (
  [
    ["on loopback", HERE],
    ["beyond loopback", OUTSIDE],
    ["where private targets are allowed", ANYWHERE],
  ] as const
).entries()) {
  test(`${listening}: a URL that leads where it must not is refused when it is set and when it is changed`, async () => {
    await using cairn = await startCairn({ ...options, network: { resolve, ...options.network } });
    const { id } = await subscribe(cairn, "https://agents.example.com/");
    for (const { url, status } of TARGETS) {
      const made = await cairn.post("/v1/webhooks", { url, events: ["turn.added"] });
      const changed = await cairn.patch(`/v1/webhooks/${id}`, { url });
      const expected = status[index];
      expect({ url, made: made.status, changed: changed.status }).toEqual({
        url,
        made: expected,
        changed: expected === 201 ? 200 : 400,
      } as never);
      if (expected === 400) expect(refusal(made)).toEqual({ status: 400, code: "invalid_request", param: "url" });
      else expect([made.body.url, changed.body.url]).toEqual([url, url]);
    }
  });
}

test("a name that leads elsewhere later is not followed there", async () => {
  let address = "127.0.0.1";
  await using cairn = await startCairn({ network: { resolve: () => Promise.resolve([address]) } });
  await using receiver = startReceiver();
  const { id } = await subscribe(cairn, receiver.url.replace("127.0.0.1", "agents.example.com"), { events: ["session.created"] });
  await cairn.createSession();
  await deliverAll(cairn);
  address = "10.0.0.1";
  await cairn.createSession();
  await deliverAll(cairn);
  expect(receiver.received).toHaveLength(1);
  expect((await deliveriesOf(cairn, id))[0]).toMatchObject({
    status: "pending",
    response_code: null,
    error: expect.stringContaining("10.0.0.1"),
  });
});

test("what is set of private targets holds at once, for a URL that is set and for the next attempt; metadata services stay refused", async () => {
  await using cairn = await startCairn({ network: { loopback: false, resolve } });
  await using receiver = startReceiver();
  const allow = (allow_private: boolean | null) => cairn.ok(cairn.patch("/v1/settings", { webhooks: { allow_private } }));
  const statusOf = async (url: string) => (await cairn.post("/v1/webhooks", { url, events: ["turn.added"], enabled: false })).status;
  const statuses = async () => [
    await statusOf(receiver.url),
    await statusOf("http://inside.example.com/"),
    await statusOf("http://metadata.example.com/"),
    await statusOf("http://[::ffff:169.254.169.254]/"),
    await statusOf("http://[fd00:ec2::254]/"),
  ];
  expect(await statuses()).toEqual([400, 400, 400, 400, 400]);
  await allow(true);
  expect(await statuses()).toEqual([201, 201, 400, 400, 400]);
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  for (const [allowed, expected] of [
    [true, { status: "delivered", error: null }],
    [false, { status: "pending", response_code: null, error: expect.stringContaining("127.0.0.1 is this machine") }],
    [true, { status: "delivered", error: null }],
    [null, { status: "pending", response_code: null, error: expect.stringContaining("webhooks.allow_private") }],
  ] as const) {
    await allow(allowed);
    await cairn.createSession();
    await deliverAll(cairn);
    expect((await deliveriesOf(cairn, id))[0]).toMatchObject(expected);
  }
  expect(receiver.received).toHaveLength(2);
});

test("a name that takes long to be looked up does not hold the request", async () => {
  await using cairn = await startCairn({ network: { resolve: () => new Promise(() => undefined) } });
  const making = subscribe(cairn, "https://slow.example.com/");
  await cairn.clock.waiting(2_000);
  cairn.clock.advance({ ms: 2_000 });
  expect(await making).toMatchObject({ url: "https://slow.example.com/" });
});

// Management

test("a webhook keeps what it is made with; the secret is in that answer only", async () => {
  await using cairn = await startCairn();
  const made = await cairn.post("/v1/webhooks", {
    url: "https://agents.example.com/hook?token=x",
    events: ["turn.added", "session.created", "turn.added"],
    description: "the support desk",
    enabled: false,
    secret: SECRET,
  });
  expect([made.status, made.body]).toEqual([
    201,
    {
      object: "webhook",
      id: expect.stringMatching(/^whk_[0-9A-Za-z]{12}$/),
      url: "https://agents.example.com/hook?token=x",
      events: ["turn.added", "session.created"],
      description: "the support desk",
      enabled: false,
      disabled_reason: null,
      failing_since: null,
      secret: SECRET,
      created_at: "2026-05-07T08:00:00.000Z",
      updated_at: "2026-05-07T08:00:00.000Z",
    },
  ]);
  const { secret, ...shown } = made.body;
  expect(await webhook(cairn, shown.id)).toEqual(shown);
  expect((await cairn.get("/v1/webhooks")).body.data).toEqual([shown]);
  const other = await cairn.ok(cairn.post("/v1/webhooks", { url: "https://agents.example.com/", events: ["turn.added"] }));
  expect(other).toMatchObject({ description: null, enabled: true, secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/) });
  expect(secret).toBe(SECRET);
});

test("a PATCH changes what it names and nothing else", async () => {
  await using cairn = await startCairn();
  const { secret: _, ...made } = await subscribe(cairn, "https://agents.example.com/");
  cairn.clock.advance({ seconds: 1 });
  const updated_at = "2026-05-07T08:00:01.000Z";
  const change = async (body: unknown) => cairn.ok(cairn.patch(`/v1/webhooks/${made.id}`, body));
  expect(await change({ events: ["turn.added"] })).toEqual({ ...made, events: ["turn.added"], updated_at });
  expect(await change({ description: "d", url: "https://b.example.com/" })).toMatchObject({
    description: "d",
    url: "https://b.example.com/",
    events: ["turn.added"],
  });
  expect(await change({ enabled: false })).toMatchObject({ enabled: false, disabled_reason: null });
  expect(await change({ secret: "another one of my own", id: "whk_000000000000" })).toMatchObject({ id: made.id });
});

test("a delivery is its own webhook's alone", async () => {
  await using cairn = await startCairn();
  const [one, other] = [await subscribe(cairn, "http://127.0.0.1:1/"), await subscribe(cairn, "http://127.0.0.1:1/")];
  const { id } = await cairn.ok(cairn.post(`/v1/webhooks/${one.id}/test`));
  const answer = refusal(await cairn.post(`/v1/webhooks/${other.id}/deliveries/${id}/retry`));
  expect(answer).toEqual({ status: 404, code: "resource_not_found", param: "delivery_id" });
});

test("there can be 100 webhooks and no more", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 100; i++) await subscribe(cairn, "http://127.0.0.1:1/");
  expect(refusal(await cairn.post("/v1/webhooks", { url: "http://127.0.0.1:1/", events: ["turn.added"] }))).toMatchObject({ status: 400 });
});

test("a deleted webhook gets nothing more, and what it was owed is removed", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { id } = await subscribe(cairn, receiver.url);
  for (let i = 0; i < 150; i++) await cairn.createSession();
  await cairn.runTask("webhook outbox");
  expect(await cairn.ok(cairn.delete(`/v1/webhooks/${id}`))).toEqual({ object: "webhook", id, deleted: true });
  await cairn.createSession();
  await deliverAll(cairn);
  await cairn.runTask("webhook retention");
  expect(receiver.received).toEqual([]);
  const { store } = cairn.service;
  expect([outbox, deliveries, deliveriesDue, deliveriesBySession].map((table) => store.count(table))).toEqual([0, 0, 0, 0]);
});

test("a test sends the webhook itself, once, whether it arrives or not; the deliveries show what came back", async () => {
  await using cairn = await startToday({ network: { dial: dialHere } });
  await using receiver = startReceiver(() => new Response("x".repeat(5_000), { status: 500 }));
  const { secret, ...made } = await subscribe(cairn, publicUrl(receiver.url), { events: ["turn.added"] });
  const sent = await cairn.post(`/v1/webhooks/${made.id}/test`);
  const now = new Date(cairn.clock.now()).toISOString();
  expect([sent.status, sent.body]).toEqual([
    201,
    {
      object: "webhook_delivery",
      id: expect.stringMatching(/^dlv_[0-9A-Za-z]{12}$/),
      webhook_id: made.id,
      event_id: expect.stringMatching(/^evt_[0-9A-Za-z]{12}$/),
      event_type: "webhook.test",
      status: "pending",
      attempts: 0,
      created_at: now,
      last_attempt_at: null,
      next_attempt_at: now,
      response_code: null,
      response_body: null,
      duration_ms: null,
      error: null,
    },
  ]);
  await deliverAll(cairn);
  expect(receiver.events).toEqual([{ id: sent.body.event_id, type: "webhook.test", created_at: now, data: made }]);
  expect(new Webhook(secret, { format: "raw" }).verify(receiver.received[0]?.body ?? "", receiver.received[0]?.headers ?? {})).toEqual(
    receiver.events[0],
  );
  expect(await deliveriesOf(cairn, made.id)).toEqual([
    {
      ...sent.body,
      status: "failed",
      attempts: 1,
      last_attempt_at: now,
      next_attempt_at: null,
      response_code: 500,
      response_body: "x".repeat(2_048),
      duration_ms: expect.any(Number),
      error: "The receiver answered 500.",
    },
  ]);
});

test("what a receiver answers is shown to admin keys alone, as text whatever bytes it is of, and stands in no log", async () => {
  await using cairn = await startCairn({ network: { dial: dialHere } });
  const answers = [
    {
      sent: new Uint8Array([0x61, 0x00, 0x1b, 0x5b, 0x32, 0x4a, 0x0d, 0x0a, 0x09, 0x7f, 0xc2, 0x9b]),
      shown: "a\ufffd\ufffd[2J\r\n\t\ufffd\ufffd",
    },
    { sent: new Uint8Array([0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x62]), shown: "\ufffd\ufffd(\ufffd\ufffd\ufffdb" },
    { sent: new TextEncoder().encode(`{"object":"list"}</script>\u2028"\\`), shown: `{"object":"list"}</script>\u2028"\\` },
    // The last character would not fit: none of it is shown.
    { sent: new TextEncoder().encode(`${"x".repeat(2_047)}🫖 and more`), shown: "x".repeat(2_047) },
  ];
  await using receiver = startReceiver((_, count) => new Response(answers[count - 1]?.sent, { status: count % 2 === 0 ? 200 : 400 }));
  const { id } = await subscribe(cairn, publicUrl(receiver.url), { events: ["session.created"] });
  for (const _ of answers) {
    await cairn.createSession();
    await deliverAll(cairn);
  }
  const path = `/v1/webhooks/${id}/deliveries`;
  const { text } = await cairn.plain("GET", path);
  expect(text).not.toMatch(/[\p{Cc}]/u);
  expect(JSON.parse(text).data.map((delivery: any) => delivery.response_body)).toEqual(answers.map(({ shown }) => shown).reverse());
  const key = await cairn.newKey({ scopes: ["read", "write"] });
  expect(refusal(await cairn.get(path, { key }))).toMatchObject({ status: 403, code: "permission_denied" });
  const logged = cairn.logged.join("");
  for (const telling of ["[2J", "\ufffd", "script", "xxxx"]) expect(logged).not.toContain(telling);
  await cairn.restart();
  expect((await cairn.plain("GET", path)).text).toBe(text);
});

test("what a receiver answered is kept for public addresses only, not for this machine nor for a private network", async () => {
  const addresses: Record<string, string[]> = {
    "public.example.com": ["93.184.215.14"],
    "here.example.com": ["127.0.0.1"],
    "mapped.example.com": ["::ffff:127.0.0.1"],
    "inside.example.com": ["10.1.2.3"],
  };
  const network = { dial: dialHere, resolve: (name: string) => Promise.resolve(addresses[name] ?? []) };
  await using cairn = await startCairn({ network, webhooks: { allow_private: true } });
  await using receiver = startReceiver(({ path }) => new Response(`what ${path} keeps to itself`, { status: 500 }));
  const { port } = new URL(receiver.url);
  const shown: Record<string, unknown> = {};
  for (const name of ["127.0.0.1", ...Object.keys(addresses)]) {
    const { id } = await subscribe(cairn, `http://${name}:${port}/${name}`, { events: ["session.created"] });
    await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
    await deliverAll(cairn);
    const [{ response_code, response_body, error }] = await deliveriesOf(cairn, id);
    expect([name, response_code, error]).toEqual([name, 500, "The receiver answered 500."]);
    shown[name] = response_body;
  }
  expect(shown).toEqual({
    "127.0.0.1": null,
    "public.example.com": "what /public.example.com keeps to itself",
    "here.example.com": null,
    "mapped.example.com": null,
    "inside.example.com": null,
  });
  const { store } = cairn.service;
  const kept = store.rows(deliveries, { from: "", to: "~" }).filter(({ row }) => JSON.stringify(row).includes("keeps to itself"));
  expect(kept).toHaveLength(1);
});

test("a retry by hand is made at once, with all its retries, under the same id, whatever became of the delivery", async () => {
  await using cairn = await startCairn({ webhooks: { retry_schedule: "1s" } });
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  const run = async () => {
    for (let i = 0; i < 3; i++) {
      await deliverAll(cairn);
      cairn.clock.advance({ seconds: 2 });
    }
    return (await deliveriesOf(cairn, id))[0];
  };
  const failed = await run();
  expect(failed).toMatchObject({ status: "failed", attempts: 2 });
  const retried = await cairn.post(`/v1/webhooks/${id}/deliveries/${failed.id}/retry`);
  expect([retried.status, retried.body]).toEqual([
    200,
    { ...failed, status: "pending", next_attempt_at: new Date(cairn.clock.now()).toISOString() },
  ]);
  expect(await run()).toMatchObject({ status: "failed", attempts: 4 });
  receiver.reply = () => new Response();
  await cairn.ok(cairn.post(`/v1/webhooks/${id}/deliveries/${failed.id}/retry`));
  expect(await run()).toMatchObject({ status: "delivered", attempts: 5 });
  await cairn.ok(cairn.post(`/v1/webhooks/${id}/deliveries/${failed.id}/retry`));
  expect(await run()).toMatchObject({ status: "delivered", attempts: 6 });
  expect(new Set(idsOf(receiver.events)).size).toBe(1);
});

test("nothing is sent to a disabled webhook, by hand neither", async () => {
  await using cairn = await startCairn();
  const { id } = await subscribe(cairn, "http://127.0.0.1:1/");
  const delivery = await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
  await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: false }));
  for (const path of [`${id}/test`, `${id}/deliveries/${delivery.id}/retry`]) {
    expect(refusal(await cairn.post(`/v1/webhooks/${path}`))).toEqual({ status: 400, code: "invalid_request", param: "webhook_id" });
  }
});

test("after a rotation both secrets verify for 24 hours, then the new one alone", async () => {
  const clock = new FakeClock(new Date().toISOString());
  await using cairn = await startCairn({ clock });
  await using receiver = startReceiver();
  const { id, secret: old } = await subscribe(cairn, receiver.url, { secret: undefined, events: ["session.created"] });
  const rotated = await cairn.post(`/v1/webhooks/${id}/rotate_secret`);
  const { secret: next, ...shown } = rotated.body;
  expect([rotated.status, next === old]).toEqual([200, false]);
  expect(shown).toEqual(await webhook(cairn, id));
  const verifiedBy = async () => {
    const end = clock.now();
    await cairn.createSession();
    await deliverAll(cairn);
    const { body = "", headers = {} } = receiver.received.at(-1) ?? {};
    // The library looks at the real clock: what was signed a day later is moved back to today by signing nothing else anew.
    const signatures = (headers["webhook-signature"] ?? "").split(" ");
    const signed = (secret: string) =>
      signatures.includes(
        `v1,${createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64"))
          .update(`${headers["webhook-id"]}.${Math.floor(end / 1000)}.${body}`)
          .digest("base64")}`,
      );
    const plain = (secret: string) => createHmac("sha256", secret).update(body).digest("hex");
    return {
      signatures: signatures.length,
      old: signed(old),
      next: signed(next),
      plain: headers["x-webhook-signature"] === plain(next),
      previous: headers["x-webhook-signature-previous"] === plain(old),
    };
  };
  expect(await verifiedBy()).toEqual({ signatures: 2, old: true, next: true, plain: true, previous: true });
  const { body, headers } = receiver.received[0] as Received;
  for (const secret of [old, next]) expect(new Webhook(secret).verify(body, headers)).toEqual(receiver.events[0]);
  clock.advance({ ms: 24 * 3_600_000 - 1 });
  expect(await verifiedBy()).toEqual({ signatures: 2, old: true, next: true, plain: true, previous: true });
  clock.advance({ ms: 1 });
  expect(await verifiedBy()).toEqual({ signatures: 1, old: false, next: true, plain: true, previous: false });
});

test("a rotation to a secret of one's own; one that cannot be used changes nothing", async () => {
  await using cairn = await startCairn();
  const { id } = await subscribe(cairn, "http://127.0.0.1:1/");
  const before = await webhook(cairn, id);
  expect(refusal(await cairn.post(`/v1/webhooks/${id}/rotate_secret`, { secret: "whsec_my-own_secret" }))).toMatchObject({
    status: 400,
    param: "secret",
  });
  expect(await webhook(cairn, id)).toEqual(before);
  expect(await cairn.ok(cairn.post(`/v1/webhooks/${id}/rotate_secret`, { secret: "the next one of my own" }))).toMatchObject({
    secret: "the next one of my own",
  });
});

test("a replay makes no second webhook, rotation or test, and gives the first answer", async () => {
  await using cairn = await startCairn();
  const send = async (path: string, body: unknown) => {
    const options = { headers: { "idempotency-key": path } };
    const [first, second] = [await cairn.post(path, body, options), await cairn.post(path, body, options)];
    expect([second.status, second.headers.get("idempotency-replayed")]).toEqual([first.status, "true"]);
    expect(second.body).toEqual(first.body);
    return first.body;
  };
  const made = await send("/v1/webhooks", { url: "http://127.0.0.1:1/", events: ["turn.added"] });
  const rotated = await send(`/v1/webhooks/${made.id}/rotate_secret`, {});
  await send(`/v1/webhooks/${made.id}/test`, {});
  expect([made.secret, rotated.secret].filter((secret) => secret.startsWith("whsec_"))).toHaveLength(2);
  expect((await cairn.get("/v1/webhooks")).body.data).toHaveLength(1);
  expect(await deliveriesOf(cairn, made.id)).toHaveLength(1);
});

test("a secret stands in no other answer, no log, no trace, no kept answer and no other file than the store", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const secret = "the-secret-that-nobody-may-see";
  const { id } = await cairn.ok(
    cairn.post("/v1/webhooks", { url: receiver.url, events: EVENT_TYPES, secret }, { headers: { "idempotency-key": "k" } }),
  );
  const session = await cairn.createSession();
  await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
  await deliverAll(cairn);
  const answers = await Promise.all(
    [`/v1/webhooks/${id}`, "/v1/webhooks", `/v1/webhooks/${id}/deliveries`, `/v1/traces?session_id=${session.id}`, "/v1/settings"].map(
      (path) => cairn.get(path),
    ),
  );
  answers.push(
    await cairn.patch(`/v1/webhooks/${id}`, { description: "d" }),
    await cairn.post("/v1/webhooks", { url: receiver.url, events: [], secret }),
  );
  answers.push(await cairn.post("/v1/webhooks", { url: receiver.url, events: ["turn.added"], secret: `${secret}\n` }));
  expect(answers.map(({ body }) => JSON.stringify(body)).filter((text) => text.includes(secret))).toEqual([]);
  expect(cairn.logged.filter((line) => line.includes(secret))).toEqual([]);
  expect(receiver.received.map((received) => JSON.stringify(received)).filter((text) => text.includes(secret))).toEqual([]);
  const files = readdirSync(cairn.directory, { recursive: true, encoding: "utf8" }).filter((path) =>
    statSync(join(cairn.directory, path)).isFile(),
  );
  expect(files.filter((path) => readFileSync(join(cairn.directory, path)).includes(secret))).toEqual(["store/data.mdb"]);
});

test("deliveries are kept for 7 days, made or not, and what they posted goes with them", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { store } = cairn.service;
  const { id } = await subscribe(cairn, receiver.url, { events: ["session.created"] });
  await subscribe(cairn, receiver.url.replace("/hook", "/other"), { events: ["session.created"] });
  for (let i = 0; i < 250; i++) await cairn.createSession();
  await deliverAll(cairn);
  cairn.clock.advance({ days: 1 });
  await cairn.createSession();
  await cairn.runTask("webhook outbox");
  const count = () => [deliveries, deliveriesDue, deliveriesBySession, payloads].map((table) => store.count(table));
  expect(count()).toEqual([502, 2, 2, 251]);
  cairn.clock.advance({ days: 6 });
  await cairn.runTask("webhook retention");
  expect(count()).toEqual([502, 2, 2, 251]);
  cairn.clock.advance({ seconds: 61 });
  await cairn.runTask("webhook retention");
  expect(count()).toEqual([2, 2, 2, 1]);
  expect(await deliveriesOf(cairn, id)).toHaveLength(1);
  cairn.clock.advance({ days: 1 });
  await cairn.runTask("webhook retention");
  expect(count()).toEqual([0, 0, 0, 0]);
});
