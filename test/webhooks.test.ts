import { expect, test } from "bun:test";
import { Webhook } from "standardwebhooks";
import { createHmac } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { EVENT_TYPES } from "../src/traces/events.ts";
import { deliveries, outbox } from "../src/storage/tables.ts";
import { refusal } from "./support/answers.ts";
import { startCairn } from "./support/cairn.ts";
import { FakeClock } from "./support/clock.ts";
import { dialHere, publicUrl, startReceiver, type Received } from "./support/receiver.ts";
import { MOMENT_MS, onEmbedded } from "./support/stores.ts";

const SECRET = "a secret of my own choice";

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
      last_failure: null,
      next_attempt_at: null,
      secret: SECRET,
      created_at: "2026-05-07T08:00:00.000Z",
      updated_at: "2026-05-07T08:00:00.000Z",
    },
  ]);
  const { secret, ...shown } = made.body;
  expect(await cairn.webhook(shown.id)).toEqual(shown);
  expect(await cairn.list("/v1/webhooks")).toEqual([shown]);
  const other = await cairn.ok(cairn.post("/v1/webhooks", { url: "https://agents.example.com/", events: ["turn.added"] }));
  expect(other).toMatchObject({ description: null, enabled: true, secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/) });
  expect(secret).toBe(SECRET);
});

test("a PATCH changes what it names and nothing else", async () => {
  await using cairn = await startCairn();
  const { secret: _, ...made } = await cairn.subscribe("https://agents.example.com/");
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
  const [one, other] = [await cairn.subscribe("http://127.0.0.1:1/"), await cairn.subscribe("http://127.0.0.1:1/")];
  const { id } = await cairn.ok(cairn.post(`/v1/webhooks/${one.id}/test`));
  const answer = refusal(await cairn.post(`/v1/webhooks/${other.id}/deliveries/${id}/retry`));
  expect(answer).toEqual({ status: 404, code: "resource_not_found", param: "delivery_id" });
});

test("there can be 100 webhooks and no more", async () => {
  await using cairn = await startCairn();
  for (let i = 0; i < 100; i++) await cairn.subscribe("http://127.0.0.1:1/");
  expect(refusal(await cairn.post("/v1/webhooks", { url: "http://127.0.0.1:1/", events: ["turn.added"] }))).toMatchObject({ status: 400 });
});

test("a deleted webhook gets nothing more, and what it was owed is removed", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  const { id } = await cairn.subscribe(receiver.url);
  for (let i = 0; i < 150; i++) await cairn.createSession();
  await cairn.runTask("webhook outbox");
  expect(await cairn.ok(cairn.delete(`/v1/webhooks/${id}`))).toEqual({ object: "webhook", id, deleted: true });
  await cairn.createSession();
  await cairn.deliver();
  await cairn.runTask("webhook retention");
  expect(receiver.received).toEqual([]);
  expect(await cairn.counts([outbox, deliveries, deliveries.index.due, deliveries.index.inLine])).toEqual([0, 0, 0, 0]);
});

test("a test sends the webhook itself, once, whether it arrives or not; the deliveries show what came back", async () => {
  await using cairn = await startCairn({ clock: new FakeClock(new Date().toISOString()), network: { dial: dialHere } });
  await using receiver = startReceiver(() => new Response("x".repeat(5_000), { status: 500 }));
  const { secret, ...made } = await cairn.subscribe(publicUrl(receiver.url), { events: ["turn.added"] });
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
      failed_attempts: 0,
      created_at: now,
      last_attempt_at: null,
      next_attempt_at: now,
      response_code: null,
      response_body: null,
      response_withheld: false,
      duration_ms: null,
      error: null,
    },
  ]);
  await cairn.deliver();
  expect(receiver.events).toEqual([{ id: sent.body.event_id, type: "webhook.test", created_at: now, data: made }]);
  expect(new Webhook(secret, { format: "raw" }).verify(receiver.received[0]?.body ?? "", receiver.received[0]?.headers ?? {})).toEqual(
    receiver.events[0],
  );
  expect(await cairn.deliveries(made.id)).toEqual([
    {
      ...sent.body,
      status: "failed",
      attempts: 1,
      failed_attempts: 1,
      last_attempt_at: now,
      next_attempt_at: null,
      response_code: 500,
      response_body: "x".repeat(2_048),
      duration_ms: expect.any(Number),
      error: "The receiver answered 500.",
    },
  ]);
});

test("after a rotation both secrets verify for 24 hours, then the new one alone", async () => {
  const clock = new FakeClock(new Date().toISOString());
  await using cairn = await startCairn({ clock });
  await using receiver = startReceiver();
  const { id, secret: old } = await cairn.subscribe(receiver.url, { secret: undefined, events: ["session.created"] });
  const rotated = await cairn.post(`/v1/webhooks/${id}/rotate_secret`);
  const { secret: next, ...shown } = rotated.body;
  expect([rotated.status, next === old]).toEqual([200, false]);
  expect(shown).toEqual(await cairn.webhook(id));
  const verifiedBy = async () => {
    await cairn.createSession();
    await cairn.deliver();
    const { body = "", headers = {} } = receiver.received.at(-1) ?? {};
    // The library looks at the real clock: so what was signed a day later is compared here.
    const signatures = (headers["webhook-signature"] ?? "").split(" ");
    const signed = (secret: string) =>
      signatures.includes(
        `v1,${createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64"))
          .update(`${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`)
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
  clock.advance({ ms: 24 * 3_600_000 - MOMENT_MS });
  expect(await verifiedBy()).toEqual({ signatures: 2, old: true, next: true, plain: true, previous: true });
  clock.advance({ ms: MOMENT_MS });
  expect(await verifiedBy()).toEqual({ signatures: 1, old: false, next: true, plain: true, previous: false });
});

test("a rotation to a secret of one's own; one that cannot be used changes nothing", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.subscribe("http://127.0.0.1:1/");
  const before = await cairn.webhook(id);
  expect(refusal(await cairn.post(`/v1/webhooks/${id}/rotate_secret`, { secret: "whsec_my-own_secret" }))).toMatchObject({
    status: 400,
    param: "secret",
  });
  expect(await cairn.webhook(id)).toEqual(before);
  expect(await cairn.ok(cairn.post(`/v1/webhooks/${id}/rotate_secret`, { secret: "the next one of my own" }))).toMatchObject({
    secret: "the next one of my own",
  });
});

onEmbedded("it has files")(
  "a secret stands in no other answer, no log, no trace, no kept answer and no other file than the store",
  async () => {
    await using cairn = await startCairn();
    await using receiver = startReceiver(() => new Response(null, { status: 500 }));
    const secret = "the-secret-that-nobody-may-see";
    const { id } = await cairn.ok(
      cairn.post("/v1/webhooks", { url: receiver.url, events: EVENT_TYPES, secret }, { headers: { "idempotency-key": "k" } }),
    );
    const session = await cairn.createSession();
    await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
    await cairn.deliver();
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
  },
);
