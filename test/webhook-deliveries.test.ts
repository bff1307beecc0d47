/**
 * The log of deliveries: by status, one with its payload and attempts, and failed ones made again.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { bare, NO_PARTITION, type Id } from "../src/lib/ids.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { deliveries } from "../src/storage/tables.ts";
import { newDelivery } from "../src/webhooks/outbox.ts";
import { idsOf, pagesOf, refusal } from "./support/answers.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { startReceiver } from "./support/receiver.ts";

const ONE_RETRY = { environment: { webhooks: { retry_schedule: "1s" } } };

/** Makes attempts until nothing is left to be tried. */
async function giveUp(cairn: Cairn): Promise<void> {
  for (let attempt = 0; attempt < 3; attempt++) {
    await cairn.deliver();
    cairn.clock.advance({ seconds: 3 });
  }
}

test("deliveries are listed by their status, those of a webhook and the failed ones of all", async () => {
  await using cairn = await startCairn(ONE_RETRY);
  await using down = startReceiver(() => new Response("no", { status: 500 }));
  await using up = startReceiver(() => new Response("ok"));
  const events = { events: ["session.created"] };
  const [failing, working] = [await cairn.subscribe(down.url, events), await cairn.subscribe(up.url, events)];
  const other = await cairn.subscribe(`${down.url}/2`, events);
  for (let i = 0; i < 3; i++) await cairn.createSession();
  await giveUp(cairn);
  await cairn.createSession();
  await cairn.runTask("webhook outbox");
  const list = (id: string, status: string) => cairn.list(`/v1/webhooks/${id}/deliveries?status=${status}`);
  const [all, failed, pending] = [await cairn.deliveries(failing.id), await list(failing.id, "failed"), await list(failing.id, "pending")];
  expect([pending.length, failed.length]).toEqual([1, 3]);
  expect([...pending, ...failed]).toEqual(all);
  expect((await list(working.id, "delivered")).map(({ status }) => status)).toEqual(["delivered", "delivered", "delivered"]);
  expect(await list(working.id, "failed")).toEqual([]);
  const ofAll = [...failed, ...(await list(other.id, "failed"))].toSorted((a, b) => (a.id < b.id ? 1 : -1));
  expect(await cairn.list("/v1/failed_deliveries")).toEqual(ofAll);
  expect((await pagesOf(cairn, "/v1/failed_deliveries?limit=4")).map(({ data }) => idsOf(data))).toEqual([
    idsOf(ofAll).slice(0, 4),
    idsOf(ofAll).slice(4),
  ]);
  const page = await cairn.list(`/v1/webhooks/${failing.id}/deliveries?status=failed&limit=1&starting_after=${failed[0].id}`);
  expect(page).toEqual([failed[1]]);
  await cairn.ok(cairn.delete(`/v1/webhooks/${other.id}`));
  await cairn.runTask("webhook retention");
  expect(await cairn.list("/v1/failed_deliveries")).toEqual(failed);
});

test("deliveries are listed by event type, status and time, alone and together, page by page, whatever the clock did", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver((_, count) => new Response("", { status: count % 3 === 0 ? 410 : 200 }));
  const events = { events: ["session.created", "turn.added", "trace.created"] };
  const [{ id }, other] = [await cairn.subscribe(receiver.url, events), await cairn.subscribe(`${receiver.url}/2`, events)];
  const times: string[] = [];
  for (const hours of [1, 5, -3, 1, 1]) {
    const session = await cairn.createSession();
    await cairn.addTurn(session.id);
    await cairn.ok(cairn.post(`/v1/webhooks/${id}/test`));
    await cairn.deliver();
    for (const webhook of [id, other.id]) await cairn.ok(cairn.patch(`/v1/webhooks/${webhook}`, { enabled: true }));
    times.push(new Date(cairn.clock.now()).toISOString());
    cairn.clock.set(cairn.clock.now() + hours * 3_600_000);
  }
  const all = await cairn.deliveries(id);
  const statuses = [undefined, "pending", "delivered", "failed"];
  const types = [undefined, "session.created", "turn.added", "trace.created", "webhook.test", "memory.created"];
  const bounds = [undefined, times[0], times[2], times[4]];
  expect(new Set(all.map(({ status }) => status))).toEqual(new Set(["pending", "delivered", "failed"]));
  for (const [status, event_type, created_after, created_before] of statuses.flatMap((status) =>
    types.flatMap((type) => bounds.flatMap((after) => bounds.map((before) => [status, type, after, before] as const))),
  )) {
    const given = Object.entries({ status, event_type, created_after, created_before }).filter(([, value]) => value !== undefined);
    const query = new URLSearchParams(given as [string, string][]).toString();
    const pages = await pagesOf(cairn, `/v1/webhooks/${id}/deliveries?limit=7&${query}`);
    const wanted = all.filter(
      (one) =>
        (status === undefined || one.status === status) &&
        (event_type === undefined || one.event_type === event_type) &&
        (created_after === undefined || one.created_at > created_after) &&
        (created_before === undefined || one.created_at < created_before),
    );
    expect([query, idsOf(pages.flatMap(({ data }) => data))]).toEqual([query, idsOf(wanted)]);
  }
});

test("a delivery is shown with what is posted and its latest ten attempts, the last one first", async () => {
  await using cairn = await startCairn({ environment: { webhooks: { retry_schedule: Array(15).fill("1s").join() } } });
  await using receiver = startReceiver((_, count) => new Response("no", { status: 500 + (count % 50) }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["turn.added"] });
  const session = await cairn.createSession();
  const turn = await cairn.addTurn(session.id);
  for (let attempt = 0; attempt < 12; attempt++) {
    await cairn.deliver();
    cairn.clock.advance({ seconds: 2 });
  }
  const [listed] = await cairn.deliveries(id);
  const shown = await cairn.ok(cairn.get(`/v1/webhooks/${id}/deliveries/${listed.id}`));
  const { payload, recent_attempts: attempts, ...rest } = shown;
  expect(rest).toEqual(listed);
  expect(payload).toEqual(JSON.parse(receiver.received[0]!.body));
  expect(payload.data).toEqual(turn);
  expect(attempts.map((attempt: any) => attempt.response_code)).toEqual([512, 511, 510, 509, 508, 507, 506, 505, 504, 503]);
  const { last_attempt_at: at, response_code, response_body, response_withheld, error } = listed;
  expect(attempts[0]).toEqual({ at, response_code, response_body, response_withheld, error, duration_ms: expect.any(Number) });
});

test("failed deliveries since a time are made again, the oldest first, and those before are not", async () => {
  await using cairn = await startCairn(ONE_RETRY);
  await using receiver = startReceiver(() => new Response("no", { status: 500 }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  await cairn.createSession();
  await giveUp(cairn);
  cairn.clock.advance({ hours: 1 });
  const since = new Date(cairn.clock.now()).toISOString();
  for (let i = 0; i < 3; i++) await cairn.createSession();
  await giveUp(cairn);
  receiver.reply = () => new Response("ok");
  const sent = receiver.received.length;
  const recovered = await cairn.ok(cairn.post(`/v1/webhooks/${id}/recover`, { since }));
  expect(recovered).toEqual({ object: "webhook_recovery", webhook_id: id, recovered: 3, complete: true });
  expect(await cairn.list(`/v1/webhooks/${id}/deliveries?status=pending`)).toMatchObject([
    { attempts: 2 },
    { attempts: 2 },
    { attempts: 2 },
  ]);
  await cairn.deliver();
  expect((await cairn.deliveries(id)).map(({ status }) => status)).toEqual(["delivered", "delivered", "delivered", "failed"]);
  expect(receiver.received).toHaveLength(sent + 3);
  expect(await cairn.ok(cairn.post(`/v1/webhooks/${id}/recover`, { since }))).toMatchObject({ recovered: 0 });
  expect(await cairn.ok(cairn.post(`/v1/webhooks/${id}/recover`, { since: "1970-01-01T00:00:00Z" }))).toMatchObject({ recovered: 1 });
});

test("a request makes at most 500 failed deliveries again, and says that there are more", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver(() => new Response("gone", { status: 410 }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  const path = `/v1/webhooks/${id}`;
  await Promise.all(Array.from({ length: 520 }, () => cairn.createSession()));
  await cairn.runTask("webhook outbox");
  // Each that is told that the receiver is gone has failed, and disables the webhook.
  for (let failed = 0; failed < 520; failed = (await cairn.ok(cairn.get("/v1/stats"))).deliveries.failed) {
    await cairn.ok(cairn.patch(path, { enabled: true }));
    await cairn.runTask("webhook deliveries");
  }
  expect(refusal(await cairn.post(`${path}/recover`, { since: "2026-01-01T00:00:00Z" }))).toMatchObject({
    status: 400,
    param: "webhook_id",
  });
  await cairn.ok(cairn.patch(path, { enabled: true }));
  const recover = () => cairn.ok(cairn.post(`${path}/recover`, { since: "2026-01-01T00:00:00Z" }));
  expect([await recover(), await recover()]).toMatchObject([
    { recovered: 500, complete: false },
    { recovered: 20, complete: true },
  ]);
});

test("what became of the deliveries of the last 24 hours is counted by the hour and by their status, up to 5,000 of each", async () => {
  await using cairn = await startCairn(ONE_RETRY);
  let status = 200;
  await using receiver = startReceiver(() => new Response("", { status }));
  const { id } = await cairn.subscribe(receiver.url, { events: ["session.created"] });
  const { id: other } = await cairn.subscribe(`${receiver.url}/2`, { events: ["turn.added"] });
  const stats = (of = id) => cairn.ok(cairn.get(`/v1/webhooks/${of}/stats`));
  const make = async (answer: number, hours: number) => {
    status = answer;
    await cairn.createSession();
    await cairn.deliver();
    cairn.clock.advance({ seconds: hours * 3600 });
  };
  // Half past, so that no hour ends while several servers commit.
  cairn.clock.advance({ seconds: 1_800 });
  await make(200, 2);
  await make(200, 21);
  await make(500, 0);
  await giveUp(cairn);
  cairn.clock.advance({ ms: 3_600_000 - 9_000 });
  await cairn.createSession();
  await cairn.runTask("webhook outbox");
  const now = await stats();
  const hoursAgo = (hours: number) => new Date((Math.floor(cairn.clock.now() / 3_600_000) - hours) * 3_600_000).toISOString();
  expect(now).toMatchObject({ object: "webhook_stats", webhook_id: id, since: hoursAgo(24), more: false });
  expect([now.delivered, now.failed, now.exhausted, now.pending, now.hours.length]).toEqual([2, 2, 1, 1, 25]);
  const filled = now.hours
    .map((hour: any, i: number) => [i, hour.delivered, hour.failed, hour.exhausted, hour.pending])
    .filter((hour: number[]) => hour.slice(1).some(Boolean));
  expect(filled).toEqual([
    [0, 1, 0, 0, 0],
    [2, 1, 0, 0, 0],
    [23, 0, 2, 1, 0],
    [24, 0, 0, 0, 1],
  ]);
  expect([now.hours[0].start, now.hours[24].start]).toEqual([hoursAgo(24), hoursAgo(0)]);
  cairn.clock.advance({ ms: 3_600_000 });
  expect((await stats()).delivered).toBe(1);
  expect(await stats(other)).toMatchObject({ delivered: 0, failed: 0, exhausted: 0, pending: 0 });

  const addDeliveries = (count: number, to: Id) =>
    cairn.service.store.commit(NO_PARTITION, (tx) => {
      for (let i = 0; i < count; i++) {
        const row = newDelivery(tx.bareId(), "turn.added", { sessionId: null }, tx.now);
        tx.add(deliveries, bare(to) + tx.bareId(), { ...row, payload: tx.bareId(), status: "delivered", nextAttemptAt: null });
      }
    });
  await addDeliveries(LIMITS.deliveriesCountedMax + 1, other);
  expect(await stats(other)).toMatchObject({ delivered: LIMITS.deliveriesCountedMax, more: true });

  // What is older than the newest of too many would be compared with the part of them that is counted.
  const older = new Date(cairn.clock.now()).toISOString();
  cairn.clock.advance({ seconds: 60 });
  await make(200, 0);
  await addDeliveries(LIMITS.deliveriesCountedMax, id);
  const busy = await stats();
  expect(busy).toMatchObject({ pending: 0, delivered: LIMITS.deliveriesCountedMax, failed: 0, more: true, hours: { length: 1 } });
  expect(busy.since > older).toBe(true);
  expect(await cairn.list("/v1/webhook_stats")).toEqual([await stats(other), busy]);
  expect((await pagesOf(cairn, "/v1/webhook_stats?limit=1")).map(({ data }) => data)).toEqual([[await stats(other)], [busy]]);
});
