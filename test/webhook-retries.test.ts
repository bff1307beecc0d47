/**
 * What is done about receivers that fail, hang or ask for a pause, and about stops in the middle of it.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { deliveries, payloads } from "../src/storage/tables.ts";
import { idsOf, refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { until } from "./support/process.ts";
import { startReceiver, type Received } from "./support/receiver.ts";
import { MOMENT_MS } from "./support/stores.ts";

test("what fails is tried again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, with the same id, and then given up", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response("not today", { status: 500 }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  const waits: number[] = [];
  for (let attempt = 1; attempt <= 8; attempt++) {
    await cairn.deliver();
    const [delivery] = await cairn.deliveries(id);
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

test("a receiver that fails is seen to fail from its first failed attempt on, with the answer and the next try, until it succeeds", async () => {
  await using cairn = await startCairn();
  let status = 500;
  await using receiver = startReceiver(() => new Response(null, { status }));
  const { secret: _, ...made } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  const waiting = { pending: 1, delivered: 0, exhausted: 0 };
  const seen = async () => {
    const { pending, delivered, failed, exhausted, hours } = await cairn.ok(cairn.get(`/v1/webhooks/${made.id}/stats`));
    const webhook = await cairn.webhook(made.id);
    expect(await cairn.list("/v1/webhooks")).toEqual([webhook]);
    expect((await cairn.ok(cairn.get("/v1/stats"))).deliveries).toEqual({ pending, failed, exhausted });
    expect(hours.at(-1)).toMatchObject({ pending, delivered, failed, exhausted });
    const [{ failed_attempts, next_attempt_at }] = await cairn.deliveries(made.id);
    expect(webhook.next_attempt_at).toBe(next_attempt_at);
    return { webhook, failed_attempts, counts: { pending, delivered, failed, exhausted } };
  };
  await cairn.deliver();
  const at = new Date(cairn.clock.now()).toISOString();
  const once = await seen();
  expect(once).toEqual({
    webhook: {
      ...made,
      failing_since: at,
      last_failure: { at, response_code: 500, error: "The receiver answered 500." },
      next_attempt_at: expect.any(String),
    },
    failed_attempts: 1,
    counts: { ...waiting, failed: 1 },
  });
  cairn.clock.advance({ seconds: 7 });
  status = 503;
  await cairn.deliver();
  const later = new Date(cairn.clock.now()).toISOString();
  const twice = await seen();
  expect(twice).toMatchObject({
    webhook: { failing_since: at, last_failure: { at: later, response_code: 503 } },
    failed_attempts: 2,
    counts: { ...waiting, failed: 2 },
  });
  await cairn.restart();
  expect(await seen()).toEqual(twice);

  cairn.clock.advance({ seconds: 600 });
  status = 200;
  await cairn.deliver();
  expect(await seen()).toEqual({
    webhook: { ...made, failing_since: null, last_failure: null, next_attempt_at: null },
    failed_attempts: 0,
    counts: { pending: 0, delivered: 1, failed: 2, exhausted: 0 },
  });
  expect(await cairn.findings()).toEqual([]);
  await cairn.ok(cairn.delete(`/v1/webhooks/${made.id}`));
  expect((await cairn.ok(cairn.get("/v1/stats"))).deliveries.failed).toBe(0);
});

test("failed attempts are counted for a day, by the hours of the clock", async () => {
  await using cairn = await startCairn({ environment: { webhooks: { retry_schedule: "1s" } } });
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  const fail = async () => {
    await cairn.createSession();
    for (const seconds of [0, 2]) {
      cairn.clock.advance({ seconds });
      await cairn.deliver();
    }
  };
  const failures = async () => {
    const { failed, hours } = await cairn.ok(cairn.get(`/v1/webhooks/${id}/stats`));
    expect((await cairn.ok(cairn.get("/v1/stats"))).deliveries.failed).toBe(failed);
    return hours.flatMap(({ failed: count }: any, hour: number) => (count === 0 ? [] : [[hour, count]]));
  };
  await fail();
  cairn.clock.advance({ hours: 1 });
  await fail();
  expect(await failures()).toEqual([
    [23, 2],
    [24, 2],
  ]);
  cairn.clock.advance({ hours: 24 });
  expect(await failures()).toEqual([[0, 2]]);
  await fail();
  expect(await failures()).toEqual([
    [0, 2],
    [24, 2],
  ]);
});

test("a schedule that is set holds from the next failure on, without a restart; a wait that has begun stays as it is", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  await cairn.deliver();
  const [waiting] = await cairn.deliveries(id);
  await cairn.ok(cairn.patch("/v1/settings", { webhooks: { retry_schedule: "1s,2m" } }));
  expect(await cairn.deliveries(id)).toEqual([waiting]);
  cairn.clock.advance({ ms: Date.parse(waiting.next_attempt_at) - cairn.clock.now() });
  await cairn.deliver();
  const [again] = await cairn.deliveries(id);
  const wait = Date.parse(again.next_attempt_at) - cairn.clock.now();
  expect([again.status, again.attempts, wait >= 120_000 && wait <= 144_000]).toEqual(["pending", 2, true]);
  await cairn.ok(cairn.patch("/v1/settings", { webhooks: { retry_schedule: "1s" } }));
  cairn.clock.advance({ ms: wait });
  await cairn.deliver();
  expect(await cairn.deliveries(id)).toMatchObject([{ status: "failed", attempts: 3, next_attempt_at: null }]);
});

test("a time limit that is set holds for the next attempt, without a restart", async () => {
  await using cairn = await startCairn({ environment: { webhooks: { retry_schedule: "1h" } } });
  await using receiver = startReceiver(() => new Promise(() => undefined));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  for (const [limit, ms] of [
    ["3s", 3_000],
    ["250ms", 250],
    [null, 15_000],
  ] as const) {
    await cairn.ok(cairn.patch("/v1/settings", { webhooks: { timeout: limit } }));
    await cairn.createSession();
    const delivering = cairn.deliver();
    await cairn.clock.waiting(ms);
    await receiver.got(1);
    receiver.received.splice(0);
    cairn.clock.advance({ ms });
    await delivering;
    expect((await cairn.deliveries(id))[0]).toMatchObject({
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
  await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  const sent = () => receiver.received.splice(0).map(tell);
  for (const { id } of [one, other, one, other]) await cairn.addTurn(id);
  await cairn.deliver();
  expect(sent()).toEqual(["one 1", "other 1", "other 2"]);
  cairn.clock.advance({ seconds: 6 });
  await cairn.deliver();
  // The next retry is 5 minutes away: nobody waits for that.
  expect(sent()).toEqual(["one 1", "one 2"]);
  await cairn.addTurn(one.id);
  await cairn.deliver();
  expect(sent()).toEqual(["one 3"]);
  cairn.clock.advance({ seconds: 360 });
  receiver.reply = () => new Response();
  await cairn.deliver();
  expect(sent()).toEqual(["one 1"]);
});

test("Retry-After puts off everything for a receiver that is overloaded, over a restart too, and keeps the order of a session", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver((_, count) =>
    count === 1 ? new Response(null, { status: 429, headers: { "retry-after": "120" } }) : new Response(),
  );
  const { id } = await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  const [one, other] = [await cairn.createSession(), await cairn.createSession()];
  await cairn.addTurn(one.id);
  await cairn.deliver();
  expect((await cairn.deliveries(id))[0].next_attempt_at).toBe(new Date(cairn.clock.now() + 120_000).toISOString());
  // What comes now would be due at once.
  const pauseEnd = (await cairn.deliveries(id))[0].next_attempt_at;
  await cairn.addTurn(one.id);
  await cairn.addTurn(other.id);
  await cairn.runTask("webhook outbox");
  expect((await cairn.webhook(id)).next_attempt_at).toBe(pauseEnd);
  cairn.clock.advance({ ms: 120_000 - MOMENT_MS });
  await cairn.deliver();
  await cairn.restart();
  await cairn.deliver();
  expect(receiver.received).toHaveLength(1);
  cairn.clock.advance({ ms: MOMENT_MS });
  await cairn.deliver();
  const turnsOf = ({ id: session }: { id: string }) =>
    receiver.events.filter(({ data }) => data.session_id === session).map(({ data }) => data.turn_number);
  expect([turnsOf(one), turnsOf(other)]).toEqual([[1, 1, 2], [1]]);
  expect(new Set((await cairn.deliveries(id)).map(({ status }) => status))).toEqual(new Set(["delivered"]));
});

test("what was put off while the clock was ahead is delivered once the clock is right", async () => {
  await using cairn = await startCairn();
  let status = 429;
  await using receiver = startReceiver(() => new Response(null, { status, headers: { "retry-after": "60" } }));
  const { id: hook } = await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  const { id } = await cairn.createSession({ ttl_seconds: 2_592_000 });
  const right = cairn.clock.now();
  cairn.clock.advance({ days: 20 });
  await cairn.addTurn(id);
  await cairn.deliver();
  await cairn.addTurn(id);
  await cairn.runTask("webhook outbox");
  cairn.clock.set(right + 1_000);
  status = 200;
  await cairn.runTask("webhook retention");
  // The pause was said to end in 20 days.
  expect(Date.parse((await cairn.webhook(hook)).next_attempt_at)).toBeLessThanOrEqual(cairn.clock.now());
  await cairn.deliver();
  expect(receiver.events.map(({ data }) => data.turn_number)).toEqual([1, 1, 2]);
});

test("a pause that a receiver has asked for does not hold for another receiver in its place", async () => {
  await using cairn = await startCairn();
  await using busy = startReceiver(() => new Response(null, { status: 503, headers: { "retry-after": "3600" } }));
  await using idle = startReceiver();
  const { id } = await cairn.subscribe(busy.url, { events: ["session.created"] });
  await cairn.createSession();
  await cairn.deliver();
  await cairn.createSession();
  await cairn.deliver();
  expect(busy.received).toHaveLength(1);
  await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { url: idle.url }));
  await cairn.deliver();
  expect(idle.received).toHaveLength(1);
});

test("410 disables a webhook at once; what it is still owed waits until it is enabled again", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 410 }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  const session = await cairn.createSession();
  const [first, second] = [await cairn.addTurn(session.id), await cairn.addTurn(session.id)];
  await cairn.deliver();
  expect(idsOf(receiver.events.map(({ data }) => data))).toEqual([first.id]);
  const told = new Date(cairn.clock.now()).toISOString();
  expect(await cairn.webhook(id)).toMatchObject({
    enabled: false,
    disabled_reason: `The receiver answered 410 Gone at ${told}.`,
  });
  expect((await cairn.deliveries(id)).map(({ status }) => status)).toEqual(["pending", "failed"]);
  expect(cairn.logged.map((line) => JSON.parse(line))).toContainEqual(
    expect.objectContaining({ level: "warn", message: "webhook disabled", webhook: id }),
  );
  await cairn.addTurn(session.id);
  cairn.clock.advance({ hours: 1 });
  await cairn.deliver();
  receiver.reply = () => new Response();
  expect(await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: true }))).toMatchObject({
    enabled: true,
    disabled_reason: null,
    failing_since: null,
  });
  await cairn.deliver();
  expect(idsOf(receiver.events.map(({ data }) => data))).toEqual([first.id, second.id]);
});

test("a webhook with nothing but failures for 5 days is disabled and says so; one that delivers in between is not", async () => {
  await using cairn = await startCairn();
  await using dead = startReceiver(() => new Response(null, { status: 500 }));
  await using shaky = startReceiver((_, count) => new Response(null, { status: count % 3 === 0 ? 200 : 500 }));
  const [deadId, shakyId] = [
    (await cairn.subscribe(dead.url, { events: ["session.created"] })).id,
    (await cairn.subscribe(shaky.url, { events: ["session.created"] })).id,
  ];
  let since: string | undefined;
  for (let hour = 0; hour <= 5 * 24; hour += 6) {
    if (hour > 0) cairn.clock.advance({ hours: 6 });
    expect([hour, (await cairn.webhook(deadId)).enabled]).toEqual([hour, true]);
    await cairn.createSession();
    await cairn.deliver();
    since ??= new Date(cairn.clock.now()).toISOString();
  }
  expect(await cairn.webhook(deadId)).toMatchObject({
    enabled: false,
    failing_since: since,
    disabled_reason: `Every attempt since ${since} has failed. The last: The receiver answered 500.`,
  });
  expect(await cairn.webhook(shakyId)).toMatchObject({ enabled: true, disabled_reason: null });
  const failing = await cairn.subscribe(dead.url, { events: ["session.created"] });
  await cairn.createSession();
  await cairn.deliver();
  expect((await cairn.webhook(failing.id)).failing_since).toBe(new Date(cairn.clock.now()).toISOString());
  expect(await cairn.ok(cairn.patch(`/v1/webhooks/${failing.id}`, { url: shaky.url }))).toMatchObject({ failing_since: null });
});

test("a redirect is a failure and is not followed", async () => {
  await using cairn = await startCairn();
  await using elsewhere = startReceiver();
  await using receiver = startReceiver(() => Response.redirect(elsewhere.url, 307));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  await cairn.deliver();
  expect(elsewhere.received).toEqual([]);
  expect(await cairn.deliveries(id)).toMatchObject([
    { status: "pending", response_code: 307, error: "The receiver answered 307; redirects are not followed." },
  ]);
});

test("a receiver that does not answer within 15 s has failed; any number of them hold up neither requests nor other receivers", async () => {
  await using cairn = await startCairn();
  const hanging = Array.from({ length: 12 }, () => startReceiver(() => new Promise(() => undefined)));
  await using well = startReceiver();
  const ids: string[] = [];
  for (const { url } of hanging) ids.push((await cairn.subscribe(url, { events: ["session.created"] })).id);
  await cairn.subscribe(well.url, { events: ["session.created"] });
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
  await until("the failures", async () => (await cairn.webhook(ids[0] ?? "")).failing_since !== null);
  await createSessions(5);
  void cairn.runTask("webhook deliveries");
  await well.got(30);
  expect((await cairn.deliveries(ids[0] ?? "")).at(-1)).toMatchObject({
    status: "pending",
    response_code: null,
    error: "No answer within the time limit.",
  });
  await Promise.all([running, cairn.close()]);
  await cairn.open();
  for (const receiver of hanging) await receiver[Symbol.asyncDispose]();
});

test("a stop ends attempts under way at once; they are made again after the start, with the same id", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Promise(() => undefined));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  await cairn.runTask("webhook outbox");
  const running = cairn.runTask("webhook deliveries");
  await receiver.got(1);
  await cairn.close();
  await running;
  await cairn.open();
  expect(await cairn.deliveries(id)).toMatchObject([{ status: "pending", attempts: 0, error: null }]);
  receiver.reply = () => new Response();
  await cairn.deliver();
  expect(new Set(idsOf(receiver.events)).size).toBe(1);
  expect(receiver.received).toHaveLength(2);
  expect(await cairn.deliveries(id)).toMatchObject([{ status: "delivered", attempts: 1 }]);
});

test("a restart at any point loses nothing: between commit and outbox, outbox and attempt, attempt and retry", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  const session = await cairn.createSession();
  await cairn.restart();
  await cairn.runTask("webhook outbox");
  await cairn.restart();
  await cairn.runTask("webhook deliveries");
  await cairn.restart();
  await cairn.runTask("webhook deliveries");
  expect(await cairn.deliveries(id)).toMatchObject([{ status: "pending", attempts: 1 }]);
  cairn.clock.advance({ seconds: 6 });
  receiver.reply = () => new Response();
  await cairn.runTask("webhook deliveries");
  expect(receiver.events.map(({ data }) => data.id)).toEqual([session.id, session.id]);
  expect(await cairn.deliveries(id)).toMatchObject([{ status: "delivered", attempts: 2 }]);
});

test("while results cannot be written nothing more is sent, and what arrived is not sent again", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
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
  expect((await cairn.deliveries(id)).map(({ status, attempts }) => [status, attempts])).toEqual(
    Array.from({ length: 3 }, () => ["delivered", 1]),
  );
});

test("a retry by hand is made at once, with all its retries, under the same id, whatever became of the delivery", async () => {
  await using cairn = await startCairn({ environment: { webhooks: { retry_schedule: "1s" } } });
  await using receiver = startReceiver(() => new Response(null, { status: 500 }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  const run = async () => {
    for (let i = 0; i < 3; i++) {
      await cairn.deliver();
      cairn.clock.advance({ seconds: 2 });
    }
    return (await cairn.deliveries(id))[0];
  };
  const failed = await run();
  expect(failed).toMatchObject({ status: "failed", attempts: 2 });
  const retried = await cairn.post(`/v1/webhooks/${id}/deliveries/${failed.id}/retry`);
  expect([retried.status, retried.body]).toEqual([
    200,
    { ...failed, status: "pending", failed_attempts: 0, next_attempt_at: new Date(cairn.clock.now()).toISOString() },
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
  const { id } = await cairn.subscribe("http://127.0.0.1:1/");
  const delivery = await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
  await cairn.ok(cairn.patch(`/v1/webhooks/${id}`, { enabled: false }));
  for (const path of [`${id}/test`, `${id}/deliveries/${delivery.id}/retry`]) {
    expect(refusal(await cairn.post(`/v1/webhooks/${path}`))).toEqual({ status: 400, code: "invalid_request", param: "webhook_id" });
  }
});

test("deliveries are kept for 7 days, made or not, and what they posted goes with them", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.subscribe(receiver.url.replace("/hook", "/other"), { events: ["session.created"] });
  for (let i = 0; i < 250; i++) await cairn.createSession();
  await cairn.deliver();
  cairn.clock.advance({ days: 1 });
  await cairn.createSession();
  await cairn.runTask("webhook outbox");
  const count = () => cairn.counts([deliveries, deliveries.index.due, deliveries.index.inLine, payloads]);
  expect(await count()).toEqual([502, 2, 2, 251]);
  cairn.clock.advance({ days: 6 });
  await cairn.runTask("webhook retention");
  expect(await count()).toEqual([502, 2, 2, 251]);
  cairn.clock.advance({ seconds: 61 });
  await cairn.runTask("webhook retention");
  expect(await count()).toEqual([2, 2, 2, 1]);
  expect(await cairn.deliveries(id)).toHaveLength(1);
  cairn.clock.advance({ days: 1 });
  await cairn.runTask("webhook retention");
  expect(await count()).toEqual([0, 0, 0, 0]);
});
