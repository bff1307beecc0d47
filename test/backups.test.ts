/**
 * Backups that the server makes of its own store.
 *
 * @module
 */
import { expect, test } from "bun:test";
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { restoreBackup } from "../src/operations/backup.ts";
import { backupFile } from "../src/operations/backup-source.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { BACKUP_NUMBER, meta } from "../src/storage/tables.ts";
import { refusal } from "./support/answers.ts";
import { endOf, madeBackup } from "./support/backups.ts";
import { failingCommits, startCairn, type Cairn } from "./support/cairn.ts";
import { FakeClock } from "./support/clock.ts";
import { isOnPostgres, onEmbedded } from "./support/stores.ts";

const PAGE_BYTES = 4096;
/** Programs that stand in for `cairn backup`. */
const NEVER_ENDS = ["sh", "-c", "exec sleep 600"];
const failing = (says: string) => ["sh", "-c", `echo "cairn: ${says}" >&2; exit 1`];

const path = (id: string, more = "") => `/v1/backups/${id}${more}`;
const begin = (cairn: Cairn) => cairn.ok(cairn.post("/v1/backups"));
const inDirectory = (cairn: Cairn) => readdirSync(join(cairn.directory, "backups"));

if (isOnPostgres)
  test("a server on a database makes no backups, says what does, and lists none", async () => {
    await using cairn = await startCairn();
    const answer = await cairn.post("/v1/backups");
    expect(refusal(answer)).toMatchObject({ status: 400, code: "invalid_request" });
    expect(answer.body.error.message).toContain("pg_dump");
    expect(await cairn.list("/v1/backups")).toEqual([]);
    expect((await cairn.get("/v1/backups/bkp_0VQk3aB4x2Zq")).status).toBe(404);
  });

onEmbedded("a database has backups of its own")(
  "a backup is made, listed, downloaded, restored and deleted, and each leaves a trace of who did it",
  async () => {
    await using cairn = await startCairn();
    const session = await cairn.createSession({ initial_state: { step: 1 } });
    const begun = await begin(cairn);
    expect(begun).toMatchObject({ object: "backup", status: "running", created_at: "2026-05-07T08:00:00.000Z", bytes: null, error: null });
    cairn.clock.advance({ seconds: 3 });
    const ready = await endOf(cairn, begun.id);
    expect(ready).toMatchObject({ id: begun.id, status: "ready", created_at: begun.created_at, bytes: expect.any(Number), error: null });
    expect(await cairn.list("/v1/backups")).toEqual([ready]);
    const [name = "", ...others] = inDirectory(cairn);
    const file = join(cairn.directory, "backups", name);
    expect([others, (statSync(file).mode & 0o777).toString(8), statSync(file).size]).toEqual([[], "600", ready.bytes]);

    const download = await cairn.plain("GET", path(begun.id, "/file"));
    expect([download.status, download.headers.get("content-type"), download.headers.get("content-disposition")]).toEqual([
      200,
      "application/octet-stream",
      `attachment; filename="${begun.id}.cairn"`,
    ]);
    const scratch = mkdtempSync(join(tmpdir(), "cairn-restored-"));
    await restoreBackup(backupFile(file), join(scratch, "data"), new FakeClock(), { force: false });
    await using restored = await startCairn({ directory: join(scratch, "data"), clock: cairn.clock });
    restored.key = cairn.key;
    expect(await restored.session(session.id)).toEqual(session);
    // The files are those of the other store.
    expect(await restored.list("/v1/backups")).toEqual([]);
    rmSync(scratch, { recursive: true });

    expect(await cairn.ok(cairn.delete(path(begun.id, "?reason=old")))).toEqual({ object: "backup", id: begun.id, deleted: true });
    expect([inDirectory(cairn), await cairn.list("/v1/backups")]).toEqual([[], []]);
    for (const more of ["", "/file"])
      expect(refusal(await cairn.get(path(begun.id, more)))).toMatchObject({ status: 404, param: "backup_id" });
    const traces = (await cairn.list("/v1/traces")).filter(({ action }) => action.startsWith("backup."));
    const backup_id = begun.id;
    expect(traces.map(({ action, details }) => [action, details])).toEqual([
      ["backup.deleted", { backup_id, reason: "old" }],
      ["backup.downloaded", { backup_id }],
      ["backup.created", { backup_id }],
      ["backup.started", { backup_id }],
    ]);
    expect(new Set(traces.map(({ actor }) => actor))).toEqual(new Set([cairn.key.slice(0, 8)]));
  },
);

onEmbedded("a database has backups of its own")(
  "one backup is made at a time, a request that is repeated gives the same one, and deleting it stops it",
  async () => {
    await using cairn = await startCairn({ backupProgram: NEVER_ENDS });
    const once = { headers: { "Idempotency-Key": "nightly" } };
    const ask = () => cairn.post("/v1/backups", {}, once);
    const [first, again] = await Promise.all([ask(), ask()]);
    expect([first.status, again.body, (await ask()).body]).toEqual([201, first.body, first.body]);
    expect(refusal(await cairn.post("/v1/backups"))).toEqual({ status: 409, code: "already_exists" });
    expect(await cairn.list("/v1/backups")).toEqual([first.body]);
    expect(refusal(await cairn.get(path(first.body.id, "/file")))).toMatchObject({ status: 400, param: "backup_id" });
    await cairn.ok(cairn.delete(path(first.body.id)));
    expect([await cairn.list("/v1/backups"), inDirectory(cairn)]).toEqual([[], []]);
    expect((await begin(cairn)).status).toBe("running");
  },
);

onEmbedded("a database has backups of its own")(
  "a backup that fails says why, without where files are, and the next one takes its place",
  async () => {
    await using cairn = await startCairn({ backupProgram: failing("$1 cannot be written: the disk is full.") });
    const failed = await madeBackup(cairn);
    expect(failed).toMatchObject({ status: "failed", error: "The backup cannot be written: the disk is full.", bytes: null });
    expect(await cairn.list("/v1/backups")).toEqual([failed]);
    expect((await cairn.list("/v1/traces?action=backup.failed"))[0].details).toEqual({ backup_id: failed.id, reason: failed.error });
    const next = await madeBackup(cairn);
    expect((await cairn.list("/v1/backups")).map(({ id }) => id)).toEqual([next.id]);
    await cairn.ok(cairn.delete(path(next.id)));
    expect(await cairn.list("/v1/backups")).toEqual([]);
  },
);

for (const { name, program, says } of [
  { name: "that is not there", program: ["/nothing/here"], says: "The command cannot be started" },
  { name: "that a signal ends", program: ["sh", "-c", "kill -SEGV $$"], says: "was ended by SIGSEGV" },
]) {
  onEmbedded("a database has backups of its own")(`a program ${name} makes no backup, and the server goes on`, async () => {
    await using cairn = await startCairn({ backupProgram: program });
    expect((await madeBackup(cairn)).error).toContain(says);
    expect((await cairn.createSession()).object).toBe("session");
  });
}

onEmbedded("a database has backups of its own")("a backup of a damaged store is none, and says so", async () => {
  await using cairn = await startCairn();
  await cairn.createSession({ initial_state: { large: "x".repeat(100_000) } });
  const file = join(cairn.directory, "store/data.mdb");
  // The head of the page where that begins.
  const page = Math.floor(readFileSync(file).indexOf("x".repeat(1_000)) / PAGE_BYTES);
  const handle = openSync(file, "r+");
  writeSync(handle, new Uint8Array(16).fill(0xff), 0, 16, page * PAGE_BYTES);
  closeSync(handle);
  expect((await madeBackup(cairn)).error).toContain("The store is damaged, so that no backup was written.");
  expect(inDirectory(cairn)).toEqual([]);
});

onEmbedded("a database has backups of its own")(
  "a ticket downloads once, what it is for, within a minute and while its key is valid",
  async () => {
    await using cairn = await startCairn();
    const [one, other] = [await madeBackup(cairn), await madeBackup(cairn)];
    const ticket = async (id = one.id, key = cairn.key) =>
      (await cairn.ok(cairn.post(path(id, "/ticket"), undefined, { key }))).url as string;
    const download = (url: string) => cairn.plain("GET", url, { key: null });

    const issued = await cairn.ok(cairn.post(path(one.id, "/ticket")));
    expect(issued).toMatchObject({ backup_id: one.id, expires_at: "2026-05-07T08:01:00.000Z" });
    const first = await download(issued.url);
    expect([first.status, (await download(issued.url)).status]).toEqual([200, 401]);
    expect((await cairn.list("/v1/traces?action=backup.downloaded"))[0].actor).toBe(cairn.key.slice(0, 8));

    const foreign = (await ticket()).replace(one.id, other.id);
    expect((await download(foreign)).status).toBe(401);
    const late = await ticket();
    cairn.clock.advance({ seconds: LIMITS.ticketSeconds });
    expect((await download(late)).status).toBe(401);
    const key = await cairn.newKey({ scopes: ["admin"] });
    const ofRevoked = await ticket(one.id, key);
    const { id } = (await cairn.list("/v1/api_keys")).find(({ prefix }: any) => prefix === key.slice(0, 8));
    await cairn.ok(cairn.delete(`/v1/api_keys/${id}`));
    expect((await download(ofRevoked)).status).toBe(401);
    // It opens nothing else, and a key that is presented counts instead of it.
    const [, query] = (await ticket()).split("?");
    expect((await download(`/v1/backups?${query}`)).status).toBe(401);
    const reader = await cairn.newKey({ scopes: ["read"] });
    expect((await cairn.plain("GET", await ticket(), { key: reader })).status).toBe(403);
    expect((await download(`${path(one.id, "/file")}?ticket=`)).status).toBe(401);
    expect(refusal(await cairn.post(path("bkp_000000000000", "/ticket")))).toMatchObject({ status: 404 });
  },
);

onEmbedded("a database has backups of its own")("of many tickets the newest thousand are good", async () => {
  await using cairn = await startCairn();
  const { id } = await madeBackup(cairn);
  const urls: string[] = [];
  for (let i = 0; i <= LIMITS.ticketsMax; i++) urls.push((await cairn.ok(cairn.post(path(id, "/ticket")))).url);
  const statuses = await Promise.all(
    [urls[0]!, urls[1]!, urls.at(-1)!].map(async (url) => (await cairn.plain("GET", url, { key: null })).status),
  );
  expect(statuses).toEqual([401, 200, 200]);
});

onEmbedded("a database has backups of its own")("at most twenty backups are kept, in pages, the newest first", async () => {
  await using cairn = await startCairn();
  const first = await madeBackup(cairn);
  const [name = ""] = inDirectory(cairn);
  const copies = Array.from({ length: LIMITS.backupsMax - 1 }, (_, i) => `bkp_0${String(i).padStart(11, "0")}`);
  for (const id of copies)
    copyFileSync(join(cairn.directory, "backups", name), join(cairn.directory, "backups", name.replace(first.id, id)));
  expect(refusal(await cairn.post("/v1/backups"))).toEqual({ status: 400, code: "invalid_request" });
  const page = await cairn.ok(cairn.get("/v1/backups?limit=15"));
  const rest = await cairn.ok(cairn.get(`/v1/backups?limit=15&starting_after=${page.last_id}`));
  expect([...page.data, ...rest.data].map(({ id }) => id)).toEqual([first.id, ...copies.toReversed()]);
  expect([page.has_more, rest.has_more]).toEqual([true, false]);
  await cairn.ok(cairn.delete(path(copies[0]!)));
  expect((await cairn.post("/v1/backups")).status).toBe(201);
});

onEmbedded("a database has backups of its own")(
  "only whole files of this store are its backups: no others, no links, nothing outside of the directory",
  async () => {
    await using cairn = await startCairn();
    const { id } = await madeBackup(cairn);
    const [name = ""] = inDirectory(cairn);
    const at = (other: string) => join(cairn.directory, "backups", other);
    const named = (other: string, number?: string) => (number === undefined ? name : name.replace(/-\d+/, `-${number}`)).replace(id, other);
    writeFileSync(at("before-schema-1.cairn"), "of an upgrade");
    writeFileSync(at(named("bkp_000000000001")), "no backup");
    symlinkSync(at(name), at(named("bkp_000000000002")));
    mkdirSync(at(named("bkp_000000000003")));
    copyFileSync(at(name), at(named("bkp_000000000004", "7")));
    copyFileSync(at(name), at(named("bkp_000000000005")));
    truncateSync(at(named("bkp_000000000005")), 100);
    expect((await cairn.list("/v1/backups")).map((one) => one.id)).toEqual([id]);
    for (const other of [..."12345"].map((digit) => `bkp_00000000000${digit}`))
      for (const [method, more] of [
        ["GET", ""],
        ["GET", "/file"],
        ["POST", "/ticket"],
      ] as const)
        expect([other, more, (await cairn.request(method, path(other, more))).status]).toEqual([other, more, 404]);
    for (const odd of ["..%2F..%2Fstore%2Fdata.mdb", `${id}%00`, "%252e", name, "bkp_", "x".repeat(1_000)])
      for (const method of ["GET", "DELETE"]) expect([odd, (await cairn.request(method, path(odd))).status]).toEqual([odd, 404]);
    expect(inDirectory(cairn)).toHaveLength(7);
  },
);

onEmbedded("a database has backups of its own")(
  "without room on the disk, or a directory to write to, no backup begins, and nothing is left of the request",
  async () => {
    await using cairn = await startCairn();
    writeFileSync(join(cairn.directory, "backups"), "a file");
    expect(refusal(await cairn.post("/v1/backups"))).toEqual({ status: 503, code: "service_unavailable" });
    rmSync(join(cairn.directory, "backups"));
    {
      using _ = failingCommits(cairn);
      expect((await cairn.post("/v1/backups")).status).toBeGreaterThanOrEqual(500);
    }
    expect(await cairn.list("/v1/backups")).toEqual([]);
    expect((await madeBackup(cairn)).status).toBe("ready");
  },
);

onEmbedded("a database has backups of its own")(
  "a stop ends the backup that is being made, and a start removes drafts that nobody writes, its own alone",
  async () => {
    await using cairn = await startCairn({ backupProgram: NEVER_ENDS });
    const { id } = await begin(cairn);
    const number = await cairn.read((reader) => reader.get(meta, BACKUP_NUMBER));
    const drafts = [number, "7"].map((of) => `.${id}-${of}.cairn-abcdef.draft`);
    for (const draft of drafts) mkdirSync(join(cairn.directory, "backups", draft), { mode: 0o700 });
    await cairn.restart();
    expect(refusal(await cairn.get(path(id)))).toMatchObject({ status: 404 });
    expect(inDirectory(cairn)).toEqual(drafts.slice(1));
    expect((await begin(cairn)).status).toBe("running");
  },
);

onEmbedded("a database has backups of its own")("what the server is asked for is for admin keys alone", async () => {
  await using cairn = await startCairn({ backupProgram: NEVER_ENDS });
  const { id } = await begin(cairn);
  const writer = await cairn.newKey();
  for (const [method, at] of [
    ["GET", "/v1/backups"],
    ["POST", "/v1/backups"],
    ["GET", path(id)],
    ["DELETE", path(id)],
    ["POST", path(id, "/ticket")],
    ["GET", path(id, "/file")],
  ] as const)
    expect([at, refusal(await cairn.request(method, at, { key: writer })).status]).toEqual([at, 403]);
});
