import { expect, test } from "bun:test";
import { NO_PARTITION } from "../src/lib/ids.ts";
import { activity, activityKey } from "../src/storage/tables.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { isOnPostgres } from "./support/stores.ts";

const stats = (cairn: Cairn, query = "") => cairn.ok(cairn.get(`/v1/stats${query}`));

test("the statistics count what is stored, what is pending and how long the server has been up", async () => {
  await using cairn = await startCairn();
  const { traces } = await stats(cairn);
  const { id } = await cairn.createSession();
  await cairn.addTurn(id);
  await cairn.setState(id, { step: 1 });
  await cairn.addMemory(id, "prefers e-mail");
  await cairn.addMemory(id, "not embedded", { embed: false });
  cairn.clock.advance({ seconds: 90 });
  expect(await stats(cairn)).toEqual({
    object: "stats",
    sessions: 1,
    turns: 1,
    versions: 2,
    memories: 2,
    traces: traces + 5,
    vectors: { stored: 1, pending: 0 },
    turn_index: { index_turns: "words", state: "unused", looked_at: 0, indexed: 0, pending: 0 },
    deliveries: { pending: 0, failed: 0, exhausted: 0 },
    store: { bytes: expect.any(Number), used_bytes: expect.any(Number), max_bytes: null },
    backups: isOnPostgres
      ? null
      : { schedule: null, newest_at: null, age_seconds: null, next_at: null, error: null, failures: 0, overdue: false, copies: null },
    certificate: null,
    uptime_seconds: 90,
  });
});

test("the statistics count deliveries that are pending, attempts that failed, and deliveries that are exhausted", async () => {
  await using cairn = await startCairn({ environment: { webhooks: { retry_schedule: "1s" } }, network: { loopback: true } });
  await cairn.subscribe("http://127.0.0.1:9/hook");
  await cairn.createSession();
  await cairn.runTask("webhook outbox");
  const { pending } = (await stats(cairn)).deliveries;
  expect(pending).toBeGreaterThan(0);
  for (let attempt = 0; attempt < 3 * pending; attempt++) {
    await cairn.deliver();
    cairn.clock.advance({ seconds: 5 });
  }
  expect((await stats(cairn)).deliveries).toEqual({ pending: 0, failed: 2 * pending, exhausted: pending });
});

test("the history of an hour is by the minute, that of a day by the quarter of an hour, each of a fixed length", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  cairn.clock.advance({ seconds: 60 });
  await cairn.addTurn(id);
  await cairn.addMemory(id, "prefers e-mail");
  await cairn.ok(cairn.post("/v1/memory/search", { query: "e-mail", session_id: id }));
  const { bucket_seconds, points } = (await stats(cairn, "?history=1h")).history;
  expect([bucket_seconds, points.length]).toEqual([60, 60]);
  const quick = { errors: 0, p50_ms: 0.05, p99_ms: 0.05 };
  expect(points.slice(-2)).toEqual([
    { at: "2026-05-07T08:00:00.000Z", requests: 1, changes: 2, memories: 0, searches: 0, ...quick },
    { at: "2026-05-07T08:01:00.000Z", requests: 3, changes: 2, memories: 1, searches: 1, ...quick },
  ]);
  const none = { requests: 0, errors: 0, changes: 0, memories: 0, searches: 0, p50_ms: null, p99_ms: null };
  expect(points[0]).toEqual({ at: "2026-05-07T07:02:00.000Z", ...none });
  cairn.clock.advance({ seconds: 59 * 60 });
  expect((await stats(cairn, "?history=1h")).history.points.slice(0, 2)).toMatchObject([{ requests: 4, changes: 2 }, { requests: 0 }]);
  const day = (await stats(cairn, "?history=24h")).history;
  expect([day.bucket_seconds, day.points.length]).toEqual([900, 96]);
  expect(day.points.filter(({ requests }: any) => requests > 0)).toMatchObject([
    { at: "2026-05-07T08:00:00.000Z", requests: 5, changes: 4 },
    { at: "2026-05-07T09:00:00.000Z", requests: 1, changes: 0 },
  ]);
  cairn.clock.advance({ days: 2 });
  const later = (await stats(cairn, "?history=24h")).history.points;
  expect(later.reduce((sum: number, { requests }: any) => sum + requests, 0)).toBe(0);
  const week = (await stats(cairn, "?history=7d")).history;
  expect([week.bucket_seconds, week.points.length]).toEqual([7_200, 84]);
  expect(week.points.filter(({ memories }: any) => memories > 0)).toMatchObject([{ at: "2026-05-07T08:00:00.000Z", searches: 1 }]);
});

test("the history is there after a restart, in few rows, those of each server added up; what no span shows is removed", async () => {
  await using cairn = await startCairn();
  const counted = async (span: string) =>
    (await stats(cairn, `?history=${span}`)).history.points.reduce((sum: number, { memories }: any) => sum + memories, 0);
  const { id } = await cairn.createSession();
  for (let minute = 0; minute < 90; minute += 5) {
    if (minute % 30 === 0) await cairn.addMemory(id, `memory of minute ${minute}`, { embed: false });
    await cairn.get("/v1/sessions");
    cairn.clock.advance({ seconds: 300 });
    await cairn.runTask("activity");
  }
  await cairn.addMemory(id, "memory that no task has written", { embed: false });
  await cairn.restart();
  // A part begins with a whole minute: the hour has the last 59 and this one.
  expect([await counted("1h"), await counted("24h"), await counted("7d")]).toEqual([2, 4, 4]);
  const rows = async () => cairn.service.store.count(activity);
  await cairn.runTask("activity");
  expect(await rows()).toBeLessThanOrEqual(14 + 8 + 2);
  cairn.clock.advance({ days: 8 });
  await cairn.get("/v1/sessions");
  await cairn.runTask("activity");
  expect([await rows(), await counted("7d")]).toEqual([3, 0]);
  expect(await cairn.findings()).toEqual([]);
});

test("parts that a clock which was ahead has left are removed, and a row that cannot be read is passed over", async () => {
  await using cairn = await startCairn();
  const row = { requests: 9, errors: 0, changes: 0, memories: 0, searches: 0, bins: [9] };
  const now = cairn.clock.now();
  await cairn.service.store.commit(NO_PARTITION, (tx) => {
    tx.put(activity, activityKey("1h", now + 3_600_000), row);
    tx.put(activity, activityKey("1h", now - 120_000), row);
  });
  await cairn.overwrite(activity, [{ key: activityKey("1h", now - 120_000), text: "{" }]);
  await cairn.createSession();
  await cairn.runTask("activity");
  cairn.clock.advance({ seconds: 3_600 });
  expect((await stats(cairn, "?history=1h")).history.points.every(({ requests }: any) => requests <= 1)).toBe(true);
});

test("what a change that failed would have left is counted as no change", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  const before = (await stats(cairn, "?history=1h")).history.points.at(-1);
  await cairn.post(`/v1/sessions/${id}/state`, { state: {}, expected_version: 7 });
  expect((await stats(cairn, "?history=1h")).history.points.at(-1)).toMatchObject({ changes: before.changes, errors: 0 });
});
