/**
 * Copies of backups in a bucket.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Bucket, parseBucketUrl, type BucketAccess } from "../src/lib/s3.ts";
import { refusal } from "./support/answers.ts";
import { madeBackup } from "./support/backups.ts";
import { ACCESS, refusedBy, S3PROXY, startBucket, startS3Proxy } from "./support/bucket.ts";
import { startCairn, type Cairn } from "./support/cairn.ts";
import { needs } from "./support/platform.ts";
import { runCairn, scratchDirectory } from "./support/process.ts";
import { startReceiver } from "./support/receiver.ts";
import { isOnPostgres, onEmbedded } from "./support/stores.ts";

const HAS_OWN = "a database has backups of its own";
const URL = "s3://backups/cairn";
const status = async (cairn: Cairn) => (await cairn.ok(cairn.get("/v1/stats"))).backups;
const set = (cairn: Cairn, backups: object) => cairn.ok(cairn.patch("/v1/settings", { backups }));
const variablesOf = ({ accessKeyId = "", secretAccessKey = "", endpoint = "" }: BucketAccess) => ({
  AWS_ACCESS_KEY_ID: accessKeyId,
  AWS_SECRET_ACCESS_KEY: secretAccessKey,
  AWS_ENDPOINT_URL: endpoint,
});

/** Makes what is due, a backup and its copy. */
async function run(cairn: Cairn): Promise<void> {
  await cairn.runTask("scheduled backups");
  await cairn.runTask("copies of backups");
}

test("an address of a bucket is read as S3 names buckets", () => {
  expect(parseBucketUrl("s3://backups")).toEqual({ bucket: "backups", prefix: "" });
  expect(parseBucketUrl("s3://backups/")).toEqual({ bucket: "backups", prefix: "" });
  expect(parseBucketUrl("s3://my.backups-1/of/cairn/")).toEqual({ bucket: "my.backups-1", prefix: "of/cairn" });
  for (const wrong of [
    "",
    "s3://",
    "s3://b",
    "s3:///x",
    "https://backups",
    "s3://Backups",
    "s3://backups/a//b",
    "s3://backups/a b",
    "s3://backups/é",
  ])
    expect(parseBucketUrl(wrong)).toBeUndefined();
});

if (isOnPostgres)
  test("a server on a database takes no bucket", async () => {
    await using cairn = await startCairn();
    expect(refusal(await cairn.patch("/v1/settings", { backups: { copy_to: URL } }))).toMatchObject({
      status: 400,
      param: "backups.copy_to",
    });
  });

const onS3 = isOnPostgres ? onEmbedded(HAS_OWN) : needs(S3PROXY);

onS3("the newest backup is copied whole to a bucket, old copies go, and a restore and a drill find it there", async () => {
  await using s3 = await startS3Proxy();
  const stored = () => readdirSync(join(s3.directory, "backups/cairn")).toSorted();
  await using cairn = await startCairn({ bucketAccess: s3.access });
  const session = await cairn.createSession({ metadata: { padding: "x".repeat(60_000) } });
  await set(cairn, { copy_to: URL, keep: 2, schedule: "6h" });
  for (let day = 0; day < 3; day++) {
    await run(cairn);
    cairn.clock.advance({ hours: 6 });
  }
  const own = join(cairn.directory, "backups");
  expect(stored()).toEqual(readdirSync(own).toSorted());
  for (const name of stored())
    expect(readFileSync(join(s3.directory, "backups/cairn", name)).equals(readFileSync(join(own, name)))).toBe(true);
  const { copies, newest_at, overdue } = await status(cairn);
  expect({ copies, overdue }).toEqual({ copies: { url: URL, newest_at, error: null, failures: 0, overdue: false }, overdue: false });
  const actions = (await cairn.list("/v1/traces")).map(({ action }) => action);
  expect(actions.filter((action) => action === "backup.copied")).toHaveLength(3);

  using directory = scratchDirectory();
  const environment = variablesOf(s3.access);
  const restored = await runCairn(["restore", URL, "--data-dir", directory.at("data")], { environment });
  expect(restored).toMatchObject({ code: 0, stderr: "" });
  expect(restored.stdout).toStartWith(`Restoring ${URL}/${stored().at(-1)}\nRestored 1 sessions`);
  await using again = await startCairn({ directory: directory.at("data"), clock: cairn.clock });
  again.key = cairn.key;
  expect((await again.session(session.id)).metadata).toEqual(session.metadata);
  const drilled = await runCairn(["backup", "--drill", "--data-dir", cairn.directory], { environment });
  expect(drilled).toMatchObject({ code: 0, stderr: "" });
  expect(drilled.stdout).toMatch(/^Restored 1 sessions and 0 memories from s3:.*, and removed them again\nNothing is wrong: \d+ rows\.\n$/);
  expect(readdirSync(cairn.directory)).not.toContain("drill");

  // In two parts, and read in pieces.
  const bucket = new Bucket({ bucket: "backups", prefix: "large" }, s3.access);
  const large = crypto.getRandomValues(new Uint8Array(65_536)).toHex().repeat(96);
  writeFileSync(directory.at("large"), large);
  await bucket.put("object", directory.at("large"));
  expect(await bucket.list()).toEqual([{ name: "object", bytes: large.length }]);
  expect(Buffer.concat(await Array.fromAsync(bucket.read("object", 5))).equals(Buffer.from(large.slice(5)))).toBe(true);

  const wrong: [BucketAccess, url: string, says: string][] = [
    [{ ...s3.access, secretAccessKey: "another" }, URL, "SignatureDoesNotMatch"],
    [{ ...s3.access, accessKeyId: "another" }, URL, "InvalidAccessKeyId"],
    [s3.access, "s3://nothing/cairn", "NoSuchBucket"],
    [s3.access, "s3://backups/nothing", "There is no backup in"],
    [s3.access, `${URL}/bkp_000000000000-1.cairn`, "NoSuchKey"],
    [s3.access, "s3://BACKUPS", "is no address of a bucket"],
    [{ ...s3.access, endpoint: "http://127.0.0.1:1" }, URL, "refuses connections"],
    [{ endpoint: s3.access.endpoint }, URL, "AWS_ACCESS_KEY_ID"],
  ];
  for (const [access, url, says] of wrong) {
    const ended = await runCairn(["restore", url, "--data-dir", directory.at("other")], { environment: variablesOf(access) });
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toContain(says);
  }
});

onEmbedded(HAS_OWN)("a copy that fails is seen everywhere, costs no backup, and is made once the bucket is there again", async () => {
  using bucket = startBucket();
  await using receiver = startReceiver();
  await using cairn = await startCairn({ bucketAccess: bucket.access, metrics: "open" });
  await cairn.subscribe(receiver.url, { events: ["backup.failed"] });
  bucket.answer = () =>
    Promise.resolve(refusedBy("RequestTimeTooSkewed", "The difference between the request time and the current time is too large."));
  await set(cairn, { copy_to: URL, schedule: "3h" });
  await run(cairn);
  await run(cairn);
  const failed = await status(cairn);
  expect(failed).toMatchObject({ error: null, failures: 0, overdue: false });
  expect(failed.copies).toMatchObject({
    newest_at: null,
    failures: 1,
    error: expect.stringContaining("RequestTimeTooSkewed"),
    overdue: false,
  });
  cairn.clock.advance({ hours: 2 });
  await run(cairn);
  expect(await status(cairn)).toMatchObject({ overdue: true, error: null, copies: { overdue: true, failures: 2 } });
  const metrics = (await cairn.plain("GET", "/metrics")).text;
  for (const line of ["cairn_backup_overdue 1", "cairn_backup_copies_failed_total 2", "cairn_backup_copy_newest_time_seconds 0"])
    expect(metrics).toContain(line);

  // What is listed and read may be, what is written may not.
  bucket.answer = () => undefined;
  bucket.keeps = false;
  cairn.clock.advance({ hours: 1 });
  await run(cairn);
  expect(bucket.objects.size).toBe(0);
  expect((await status(cairn)).copies).toMatchObject({ newest_at: null, failures: 3, error: expect.stringContaining("NoSuchKey") });
  await cairn.deliver();
  expect(receiver.events).toHaveLength(3);
  expect(receiver.events.at(-1)).toMatchObject({
    type: "backup.failed",
    data: { status: "ready", error: expect.stringContaining(`copied to ${URL}/bkp_`) },
  });

  bucket.keeps = true;
  cairn.clock.advance({ hours: 1 });
  await run(cairn);
  expect(bucket.objects.size).toBe(1);
  expect((await status(cairn)).copies).toMatchObject({ error: null, overdue: false });
  // Also after a start, which asks the bucket what is there.
  await cairn.restart();
  await run(cairn);
  expect(bucket.objects.size).toBe(1);
  expect((await status(cairn)).copies.newest_at).not.toBeNull();
});

test("a listing goes on after a page that has nothing but prefixes", async () => {
  using bucket = startBucket();
  for (let i = 0; i < 1_000; i++) bucket.objects.set(`a${i}/below`, Buffer.from("x"));
  bucket.objects.set("z", Buffer.from("xyz"));
  expect(await new Bucket({ bucket: "backups", prefix: "" }, bucket.access).list()).toEqual([{ name: "z", bytes: 3 }]);
});

onEmbedded(HAS_OWN)("an address that is set while a copy is being made ends it, and is overdue no sooner than an hour later", async () => {
  using bucket = startBucket();
  await using cairn = await startCairn({ bucketAccess: bucket.access });
  await madeBackup(cairn);
  cairn.clock.advance({ hours: 5 });
  bucket.answer = () => new Promise(() => undefined);
  await set(cairn, { copy_to: "s3://backups/slow" });
  const task = cairn.runTask("copies of backups");
  await cairn.clock.waiting(10_000);
  await set(cairn, { copy_to: URL });
  cairn.clock.advance({ seconds: 10 });
  await task;
  bucket.answer = () => Promise.resolve(refusedBy("AccessDenied", "Access Denied"));
  await cairn.runTask("copies of backups");
  expect((await status(cairn)).copies).toMatchObject({ url: URL, failures: 1, overdue: false });
  cairn.clock.advance({ hours: 1, seconds: 1 });
  expect((await status(cairn)).copies.overdue).toBe(true);
  bucket.answer = () => undefined;
  await cairn.runTask("copies of backups");
  expect([...bucket.objects.keys()]).toEqual([expect.stringContaining("cairn/bkp_")]);
});

onEmbedded(HAS_OWN)("a copy of a backup that was made while the clock was ahead does not put off the next one", async () => {
  using bucket = startBucket();
  await using cairn = await startCairn({ bucketAccess: bucket.access });
  const today = cairn.clock.now();
  const directory = join(cairn.directory, "backups");
  const write = async (seconds: number) => {
    const before = new Set(existsSync(directory) ? readdirSync(directory) : []);
    await madeBackup(cairn);
    for (const name of readdirSync(directory)) if (!before.has(name)) utimesSync(join(directory, name), seconds, seconds);
    await cairn.runTask("copies of backups");
  };
  await set(cairn, { copy_to: URL, keep: 1 });
  cairn.clock.advance({ days: 30 });
  await write(cairn.clock.now() / 1000);
  expect(bucket.objects.size).toBe(1);
  cairn.clock.set(today);
  expect((await status(cairn)).copies).toMatchObject({ overdue: false });
  await write(today / 1000);
  expect((await status(cairn)).copies).toMatchObject({ newest_at: new Date(today).toISOString(), error: null });
  // The newest stays, and the one of which nobody knows when it was made goes.
  expect(bucket.objects.size).toBe(1);
  await cairn.restart();
  await cairn.runTask("copies of backups");
  expect((await status(cairn)).copies).toMatchObject({ newest_at: new Date(today).toISOString(), error: null });
});

onEmbedded(HAS_OWN)("what half came of a copy is none, and a server that never answers holds up nothing", async () => {
  using bucket = startBucket();
  const opened = new Bucket({ bucket: "backups", prefix: "" }, bucket.access, 50);
  bucket.answer = () => new Promise(() => undefined);
  using directory = scratchDirectory();
  writeFileSync(directory.at("file"), "a backup");
  const steps = [
    opened.list(),
    opened.put("a", directory.at("file")),
    opened.size("a"),
    opened.delete("a"),
    Array.fromAsync(opened.read("a")),
  ];
  for (const ended of await Promise.allSettled(steps))
    expect(String((ended as PromiseRejectedResult).reason)).toContain("Nothing has come of it");
  await using cairn = await startCairn({ bucketAccess: bucket.access });
  await set(cairn, { copy_to: URL });
  await madeBackup(cairn);
  const task = cairn.runTask("copies of backups");
  await cairn.createSession();
  await cairn.close();
  await task;
  expect(bucket.objects.size).toBe(0);
  // A server that stops is no failure.
  bucket.answer = () => undefined;
  await cairn.open();
  expect((await cairn.list("/v1/traces")).map(({ action }) => action)).not.toContain("backup.copy_failed");
});

onEmbedded(HAS_OWN)("old copies that may not be deleted stay, and the new one counts", async () => {
  using bucket = startBucket();
  await using cairn = await startCairn({ bucketAccess: bucket.access });
  await set(cairn, { copy_to: URL, keep: 1, schedule: "1h" });
  bucket.refused = "DELETE";
  for (let i = 1; i <= 2; i++) {
    await run(cairn);
    expect(bucket.objects.size).toBe(i);
    expect((await status(cairn)).copies).toMatchObject({ error: null, failures: 0, overdue: false });
    cairn.clock.advance({ hours: 1 });
  }
  expect(cairn.logged.some((line) => line.includes("old copies of backups cannot be deleted"))).toBe(true);
  bucket.refused = undefined;
  await run(cairn);
  expect(bucket.objects.size).toBe(1);
});

onEmbedded(HAS_OWN)("backups of other stores in the bucket stay, and are not taken for its own", async () => {
  using bucket = startBucket();
  const others = ["bkp_zzzzzzzzzzzz-1-scheduled.cairn", "bkp_zzzzzzzzzzzz.cairn", "notes.txt"];
  for (const name of others) bucket.objects.set(`cairn/${name}`, Buffer.from("x"));
  await using cairn = await startCairn({ bucketAccess: bucket.access });
  await set(cairn, { copy_to: URL, keep: 1, schedule: "1h" });
  for (let i = 0; i < 2; i++) {
    await run(cairn);
    cairn.clock.advance({ hours: 1 });
  }
  const names = [...bucket.objects.keys()].map((key) => key.slice("cairn/".length));
  expect(names.filter((name) => others.includes(name))).toHaveLength(3);
  expect(names).toHaveLength(4);
  using directory = scratchDirectory();
  const restore = (place: string) =>
    runCairn(["restore", place, "--data-dir", directory.at("data")], { environment: variablesOf(bucket.access) });
  expect((await restore(URL)).stderr).toContain("holds backups of 2 stores");
  const own = `${URL}/${names.find((name) => !others.includes(name))}`;
  expect((await restore(own)).code).toBe(0);
  // Of several stores a drill takes its own backup; one that was restored elsewhere has made none yet.
  const drill = (dataDirectory: string) =>
    runCairn(["backup", "--drill", "--data-dir", dataDirectory], {
      environment: { ...variablesOf(bucket.access), CAIRN_BACKUP_COPY_TO: URL },
    });
  const drilled = await drill(cairn.directory);
  expect(drilled).toMatchObject({ code: 0, stderr: "" });
  expect(drilled.stdout).toContain(own);
  expect((await drill(directory.at("data"))).stderr).toContain("There is no backup of the store in");
});

onEmbedded(HAS_OWN)("a bucket is refused without access to it, and another one is asked anew", async () => {
  await using cairn = await startCairn();
  const refused = refusal(await cairn.patch("/v1/settings", { backups: { copy_to: URL } }));
  expect(refused).toMatchObject({ status: 400, code: "invalid_request", param: "backups.copy_to" });
  await using given = await startCairn({ environment: { "backups.copy_to": URL }, bucketAccess: {} });
  await madeBackup(given);
  for (let i = 0; i < 2; i++) await given.runTask("copies of backups");
  const copies = { url: URL, error: expect.stringContaining("AWS_SECRET_ACCESS_KEY"), failures: 1, overdue: false };
  expect((await status(given)).copies).toMatchObject(copies);
  given.clock.advance({ hours: 1, seconds: 1 });
  expect(await status(given)).toMatchObject({ overdue: true, copies: { ...copies, overdue: true } });
  const [failure] = (await given.list("/v1/traces")).filter(({ action }) => action === "backup.copy_failed");
  expect(failure.details).toMatchObject({ url: expect.stringContaining(`${URL}/bkp_`), reason: copies.error });
  using bucket = startBucket();
  await using other = await startCairn({ bucketAccess: { ...bucket.access, ...ACCESS } });
  await madeBackup(other);
  for (const url of [URL, "s3://backups/elsewhere", null]) {
    await set(other, { copy_to: url });
    await other.runTask("copies of backups");
  }
  expect([...bucket.objects.keys()].map((key) => key.split("/")[0])).toEqual(["cairn", "elsewhere"]);
  expect((await status(other)).copies).toBeNull();
});
