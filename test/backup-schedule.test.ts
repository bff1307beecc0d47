/**
 * Backups by a schedule.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../src/lib/limits.ts";
import { isOverdue, nextBackupAt, parseBackupSchedule } from "../src/settings/backup-schedule.ts";
import { refusal } from "./support/answers.ts";
import { madeBackup } from "./support/backups.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { until } from "./support/process.ts";
import { startReceiver } from "./support/receiver.ts";
import { isOnPostgres, onEmbedded } from "./support/stores.ts";

const HAS_OWN = "a database has backups of its own";
const TASK = "scheduled backups";
const failing = ["sh", "-c", 'echo "cairn: the disk is full." >&2; exit 1'];
const status = async (cairn: Cairn) => (await cairn.ok(cairn.get("/v1/stats"))).backups;
const listed = (cairn: Cairn): Promise<any[]> => cairn.list("/v1/backups");
const set = (cairn: Cairn, backups: object) => cairn.ok(cairn.patch("/v1/settings", { backups }));

test("a moment of a day or week is due once after each that has passed, a wait that long after the newest", () => {
  const nextOf = (text: string, newest: string) =>
    new Date(nextBackupAt(parseBackupSchedule(text)!, Date.parse(newest), 0)).toISOString().slice(0, 16);
  // A Thursday.
  expect(nextOf("03:00", "2026-05-07T08:00:00Z")).toBe("2026-05-08T03:00");
  expect(nextOf("08:00", "2026-05-07T07:59:59.999Z")).toBe("2026-05-07T08:00");
  expect(nextOf("08:00", "2026-05-07T08:00:00Z")).toBe("2026-05-08T08:00");
  expect(nextOf("sun 03:00", "2026-05-07T08:00:00Z")).toBe("2026-05-10T03:00");
  expect(nextOf("thu 08:00", "2026-05-07T08:00:00Z")).toBe("2026-05-14T08:00");
  expect(nextOf("wed 23:59", "2026-05-07T08:00:00Z")).toBe("2026-05-13T23:59");
  expect(nextOf("6h", "2026-05-07T08:00:00Z")).toBe("2026-05-07T14:00");
  expect(nextBackupAt(parseBackupSchedule("03:00")!, undefined, 5)).toBe(5);
  expect([isOverdue(0, 3_600_000), isOverdue(0, 3_600_001)]).toEqual([false, true]);
  for (const wrong of ["", "3:00", "24:00", "03:60", "sunday 03:00", "9m", "32d", "0h", "daily"])
    expect(parseBackupSchedule(wrong)).toBeUndefined();
});

if (isOnPostgres)
  test("a server on a database takes no schedule, says what does, and is never overdue", async () => {
    await using cairn = await startCairn();
    const answer = await cairn.patch("/v1/settings", { backups: { schedule: "03:00" } });
    expect(refusal(answer)).toMatchObject({ status: 400, code: "invalid_request", param: "backups.schedule" });
    expect(answer.body.error.message).toContain("pg_dump");
    await set(cairn, { keep: 3, schedule: null });
    expect(await status(cairn)).toBeNull();
  });

onEmbedded(HAS_OWN)("one is made when it is due, the newest are kept, and those that were asked for stay", async () => {
  await using cairn = await startCairn();
  await using receiver = startReceiver();
  await cairn.runTask(TASK);
  expect(await listed(cairn)).toEqual([]);
  const own = await madeBackup(cairn);
  expect(own.trigger).toBe("request");
  await set(cairn, { schedule: "6h", keep: 2 });
  await cairn.runTask(TASK);
  // The one that was asked for counts until its time has passed.
  expect(await listed(cairn)).toEqual([own]);
  await cairn.subscribe(receiver.url, { events: ["backup.created", "backup.failed"] });
  for (let made = 1; made <= 3; made++) {
    cairn.clock.advance({ hours: 6 });
    await cairn.runTask(TASK);
    await cairn.runTask(TASK);
    const all = await listed(cairn);
    expect(all.map(({ trigger }) => trigger)).toEqual([...Array.from({ length: Math.min(made, 2) }, () => "schedule"), "request"]);
    expect(all[0]).toMatchObject({ status: "ready", created_at: new Date(cairn.clock.now()).toISOString() });
  }
  const [newest] = await listed(cairn);
  expect(await status(cairn)).toEqual({
    schedule: "6h",
    newest_at: newest.created_at,
    age_seconds: 0,
    next_at: "2026-05-08T08:00:00.000Z",
    error: null,
    failures: 0,
    overdue: false,
    copies: null,
  });
  await cairn.deliver();
  const events = receiver.events;
  expect(events.map(({ type }) => type)).toEqual(["backup.created", "backup.created", "backup.created"]);
  expect(events.at(-1).data).toEqual(newest);
  const deleted = (await cairn.list("/v1/traces")).filter(({ action }) => action === "backup.deleted");
  expect(deleted).toMatchObject([{ actor: "system", details: { reason: expect.stringContaining("backups.keep") } }]);
});

onEmbedded(HAS_OWN)("those older than their days go, but for the newest", async () => {
  await using cairn = await startCairn();
  await set(cairn, { schedule: "03:00", keep_days: 2 });
  for (let day = 0; day < 4; day++) {
    await cairn.runTask(TASK);
    cairn.clock.advance({ days: 1 });
  }
  expect((await listed(cairn)).map(({ created_at }) => created_at.slice(0, 10))).toEqual(["2026-05-10", "2026-05-09", "2026-05-08"]);
  cairn.clock.advance({ days: 10 });
  await cairn.runTask(TASK);
  expect((await listed(cairn)).map(({ created_at }) => created_at.slice(0, 10))).toEqual(["2026-05-21"]);
});

onEmbedded(HAS_OWN)("one that fails is seen everywhere, is tried again after a while, and the service goes on", async () => {
  const program = [...failing];
  await using cairn = await startCairn({ backupProgram: program, metrics: "open" });
  await using receiver = startReceiver();
  await cairn.subscribe(receiver.url, { events: ["backup.failed"] });
  await set(cairn, { schedule: "1h" });
  await cairn.runTask(TASK);
  await cairn.runTask(TASK);
  expect(await status(cairn)).toMatchObject({ error: "the disk is full.", failures: 1, overdue: false, newest_at: null });
  cairn.clock.advance({ seconds: 300 });
  await cairn.runTask(TASK);
  expect((await status(cairn)).failures).toBe(2);
  // The pause has grown.
  cairn.clock.advance({ seconds: 540 });
  await cairn.runTask(TASK);
  expect((await status(cairn)).failures).toBe(2);
  cairn.clock.advance({ hours: 1 });
  expect((await status(cairn)).overdue).toBe(true);
  const metrics = (await cairn.plain("GET", "/metrics")).text;
  for (const line of ["cairn_backup_overdue 1", "cairn_backups_failed_total 2", "cairn_backup_newest_time_seconds 0"])
    expect(metrics).toContain(line);
  await cairn.deliver();
  expect(receiver.events).toHaveLength(2);
  expect(receiver.events[0]).toMatchObject({
    type: "backup.failed",
    data: { status: "failed", trigger: "schedule", error: "the disk is full." },
  });
  expect((await listed(cairn)).map((one) => one.status)).toEqual(["failed"]);
  await cairn.createSession();
});

onEmbedded(HAS_OWN)("without a place for it one fails as one does that has begun", async () => {
  await using cairn = await startCairn();
  writeFileSync(join(cairn.directory, "backups"), "a file");
  await set(cairn, { schedule: "1h" });
  await cairn.runTask(TASK);
  expect(await status(cairn)).toMatchObject({ failures: 1, error: expect.stringContaining("directory") });
  const traces = (await cairn.list("/v1/traces")).filter(({ action }) => action.startsWith("backup."));
  expect(traces.map(({ action }) => action)).toEqual(["backup.failed", "backup.started"]);
});

onEmbedded(HAS_OWN)("a server that was off makes the one that it missed", async () => {
  await using cairn = await startCairn();
  await set(cairn, { schedule: "03:00" });
  await cairn.runTask(TASK);
  cairn.clock.advance({ days: 3 });
  await cairn.restart();
  await cairn.runTask(TASK);
  expect((await listed(cairn)).map(({ created_at }) => created_at.slice(0, 10))).toEqual(["2026-05-10", "2026-05-07"]);
  expect(readdirSync(join(cairn.directory, "backups"))).toHaveLength(2);
});

onEmbedded(HAS_OWN)("one that was made while the clock was ahead does not put off the next one", async () => {
  await using cairn = await startCairn();
  const today = cairn.clock.now();
  cairn.clock.advance({ days: 30 });
  const { id } = await madeBackup(cairn);
  const ahead = cairn.clock.now() / 1000;
  const path = (name: string) => join(cairn.directory, "backups", name);
  const [file = ""] = readdirSync(path("."));
  utimesSync(path(file), ahead, ahead);
  cairn.clock.set(today);
  await set(cairn, { schedule: "6h", keep_days: 1 });
  expect(await status(cairn)).toMatchObject({ newest_at: null, age_seconds: null, overdue: false });
  for (let made = 1; made <= 2; made++) {
    await cairn.runTask(TASK);
    const [newest = "", other = ""] = readdirSync(path("."))
      .filter((name) => name !== file)
      .toSorted()
      .toReversed();
    // Its id is ahead, too: its file says when it was made.
    utimesSync(path(newest), cairn.clock.now() / 1000, cairn.clock.now() / 1000);
    expect((await status(cairn)).newest_at).toBe(new Date(cairn.clock.now()).toISOString());
    expect(other !== "").toBe(made === 2);
    await cairn.runTask(TASK);
    expect(await listed(cairn)).toHaveLength(made + 1);
    cairn.clock.advance({ hours: 6 });
  }
  expect((await listed(cairn)).map((one) => one.id)).toContain(id);
});

onEmbedded(HAS_OWN)("a clock that was set back before the first one does not put it off", async () => {
  await using cairn = await startCairn();
  cairn.clock.set(cairn.clock.now() - 86_400_000);
  await set(cairn, { schedule: "6h" });
  await cairn.runTask(TASK);
  expect(await listed(cairn)).toMatchObject([{ trigger: "schedule", status: "ready" }]);
});

onEmbedded(HAS_OWN)("a schedule that is set late is overdue no sooner than an hour later", async () => {
  await using cairn = await startCairn({ backupProgram: failing });
  cairn.clock.advance({ hours: 5 });
  await set(cairn, { schedule: "1h" });
  expect((await status(cairn)).overdue).toBe(false);
  cairn.clock.advance({ hours: 1, seconds: 1 });
  expect((await status(cairn)).overdue).toBe(true);
});

onEmbedded(HAS_OWN)("one that is stopped has failed, and is not begun again at once", async () => {
  await using cairn = await startCairn({ backupProgram: ["sh", "-c", "exec sleep 600"] });
  await set(cairn, { schedule: "1h" });
  const task = cairn.runTask(TASK);
  const { id } = await until("it to begin", async () => (await listed(cairn))[0]);
  await cairn.ok(cairn.delete(`/v1/backups/${id}`));
  await task;
  await cairn.runTask(TASK);
  expect(await status(cairn)).toMatchObject({ newest_at: null, failures: 1, error: "It was stopped before it was ready." });
  expect(await listed(cairn)).toEqual([]);
});

test("a hundred backups of the schedule may be kept, and no more", async () => {
  await using cairn = await startCairn();
  expect((await set(cairn, { keep: LIMITS.scheduledBackupsMax })).backups.keep.value).toBe(100);
  expect(refusal(await cairn.patch("/v1/settings", { backups: { keep: 101 } }))).toMatchObject({ status: 400, param: "backups.keep" });
});
