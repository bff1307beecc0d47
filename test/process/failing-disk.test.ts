import { expect } from "bun:test";
import { diskShim, type DiskShim } from "../support/disk-shim.ts";
import { failed, runCairn, scratchDirectory, startProcess, until, type CairnProcess, type Scratch } from "../support/process.ts";
import { bindDatagrams } from "../support/unix-datagrams.ts";
import { onLinux } from "../support/platform.ts";

const test = onLinux("a shim of the calls of a process");

/** EX_IOERR of sysexits.h, as the page on deploying says. */
const STORE_FAILED = 74;

const start = (directory: Scratch, shim: DiskShim, more: Record<string, string> = {}) =>
  startProcess({ dataDirectory: directory.at("data"), environment: { ...shim.environment, ...more } });

test("when a write of LMDB's meta page fails all is answered 503, also readiness; the server says so once, ends with a code of its own, and a new start has what was acknowledged", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path);
  await using server = await start(directory, shim);
  const { id } = await server.createSession({ initial_state: { step: 0 } });
  const acknowledged: string[] = [];
  const statuses = new Set<number>();
  let isFailing = false;
  // Each asks until nobody answers any more; a connection that breaks is the end too.
  const ask = async (request: () => ReturnType<CairnProcess["get"]>, take: (answer: Awaited<ReturnType<typeof request>>) => void) => {
    for (;;) {
      const sentWhileFailing = isFailing;
      const answer = await request().catch(() => undefined);
      if (answer === undefined) return;
      if (sentWhileFailing) statuses.add(answer.status);
      take(answer);
    }
  };
  const notReady: any[] = [];
  const asking = [
    ...Array.from({ length: 20 }, () =>
      ask(
        () => server.post("/v1/sessions", { agent_id: "agent" }),
        ({ status, body }) => {
          if (status === 201) acknowledged.push(body.id);
          else {
            expect([status, body.error.code]).toEqual([503, "service_unavailable"]);
            isFailing = true;
          }
        },
      ),
    ),
    // More reads than fail before the heap is corrupted, if that is what they do.
    ...Array.from({ length: 4 }, () =>
      ask(
        () => server.get(`/v1/sessions/${id}/versions`),
        ({ status, body }) => {
          if (status !== 200) expect([status, body.error.code]).toEqual([503, "service_unavailable"]);
        },
      ),
    ),
    ask(
      () => server.get("/health/ready"),
      ({ status, body }) => {
        if (status !== 200) notReady.push([status, body.status, body.reason]);
      },
    ),
  ];
  await until("changes to be acknowledged", () => acknowledged.length >= 100);
  shim.fail("meta", "EIO", "once");
  expect(await server.ended()).toBe(STORE_FAILED);
  await Promise.all(asking);
  expect([...statuses]).toEqual([503]);
  expect(notReady[0]).toEqual([503, "degraded", "The disk has failed; nothing can be read or written until Cairn is started again."]);
  const ofTheServer = server.stderr.split("\n").filter((line) => line !== "" && !line.includes('"request_id"'));
  expect(ofTheServer.map((line) => JSON.parse(line)).filter(({ message }) => message !== "serving")).toMatchObject([
    { level: "error", message: expect.stringMatching(/^a write of the store's meta page failed/), exit_code: STORE_FAILED },
  ]);

  await using again = await start(directory, shim);
  const kept = (await again.all("/v1/sessions")).map((session) => session.id as string);
  expect(new Set(kept)).toEqual(new Set([id, ...acknowledged]));
  expect(await again.stop()).toBe(0);
  expect(await runCairn(["doctor", "--data-dir", directory.at("data")])).toMatchObject({ code: 0 });
});

/** The id of no session. */
const UNKNOWN_SESSION = "sess_000000000000";

const FAULTS = [
  { kind: "data", error: "EROFS", reason: "The disk is read-only." },
  { kind: "data", error: "ENOSPC", reason: "The disk is full." },
  { kind: "sync", error: "EIO", reason: "The disk has failed." },
] as const;

test("while changes fail the server is not ready but alive, and reads go on; it is ready again once the disk takes what is written, without a client's change", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path);
  const socket = directory.at("notify");
  using systemd = bindDatagrams(socket);
  await using server = await start(directory, shim, { NOTIFY_SOCKET: socket });
  const { port } = new URL(server.address);
  const told = () => until("systemd to be told", () => systemd.receive());
  expect(await told()).toBe("READY=1\n");
  const session = await server.createSession({ initial_state: { step: 0 } });
  const memory = await server.addMemory(session.id, "The boat is moored at pier nine.");
  const readable = async () => [
    await server.ok(server.get(`/v1/sessions/${session.id}`)),
    (await server.ok(server.get("/v1/sessions"))).data.length,
    await server.ok(server.get(`/v1/memory/${memory.id}`)),
    (await server.ok(server.get(`/v1/traces?session_id=${session.id}`))).data.length,
    (await server.ok(server.post("/v1/memory/search", { query: memory.content }))).data.length,
    (await server.ok(server.post(`/v1/sessions/${session.id}/context`, { query: "boat" }))).memories.length,
  ];
  const before = await readable();
  for (const { kind, error, reason } of FAULTS) {
    shim.fail(kind, error);
    const refused = await Promise.all([
      server.post("/v1/sessions", { agent_id: "agent" }),
      server.post(`/v1/sessions/${session.id}/state`, { state: { step: 1 } }),
      server.delete(`/v1/memory/${memory.id}`),
      server.delete(`/v1/sessions/${session.id}`),
    ]);
    const message = `${reason} Nothing was changed; reading still works.`;
    expect(refused.map(({ status, body }) => [status, body.error.message])).toEqual(refused.map(() => [503, message]));
    // What changes nothing asks the disk for nothing, and says nothing of it.
    expect((await server.delete(`/v1/sessions/${UNKNOWN_SESSION}`)).status).toBe(404);
    for (const path of ["/health", "/health/ready"]) {
      const { status, body } = await server.get(path);
      const rest = { version: expect.any(String), durability: "strict", max_body_bytes: 1_048_576 };
      expect([status, body]).toEqual([503, { status: "degraded", reason, ...rest }]);
    }
    expect((await server.get("/health/live")).status).toBe(200);
    expect(await readable()).toEqual(before);
    expect(await runCairn(["health", "--port", port])).toMatchObject({ code: 1, stderr: expect.stringContaining(reason) });
    expect(await told()).toBe(`STATUS=Not ready: ${reason}\n`);

    shim.repair();
    await until("the server to be ready", async () => (await server.get("/health/ready")).status === 200);
    expect(await runCairn(["health", "--port", port])).toMatchObject({ code: 0 });
    expect(await told()).toBe("STATUS=Ready\n");
  }
  const failures = server.logged("the store fails; the server is not ready");
  expect(failures.map((entry) => entry.reason)).toEqual(FAULTS.map(({ reason }) => reason));
  await until("the log to say so each time", () => server.logged("the store works again").length === FAULTS.length);
  expect(await server.ok(server.post(`/v1/sessions/${session.id}/state`, { state: { step: 1 } }))).toMatchObject({ state_version: 1 });
  expect(await server.stop()).toBe(0);
  // The log is lines of JSON; LMDB prints nothing of its own between them.
  for (const line of server.stderr.trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ level: expect.any(String) });
});

test("asking for health writes nothing, and a disk that fails is tried every few seconds however often it is asked", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path, { traces: true });
  await using server = await start(directory, shim);
  const { id } = await server.createSession();
  const writes = () => shim.trace().filter((line) => line === "data").length;
  const askOften = () => Promise.all(Array.from({ length: 100 }, () => server.get("/health/ready")));
  // What the start and the session have left to do by themselves is done when nothing more is written for a while.
  let seen = -1;
  await until("the server to be idle", async () => {
    if (seen === writes()) return true;
    seen = writes();
    await Bun.sleep(500);
    return false;
  });
  expect((await askOften()).map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 200));
  expect(writes()).toBe(seen);

  shim.fail("sync", "EIO");
  expect((await server.post(`/v1/sessions/${id}/state`, { state: {} })).status).toBe(503);
  const before = writes();
  const startedAt = performance.now();
  for (let round = 0; round < 10; round++) expect((await askOften()).every(({ status }) => status === 503)).toBe(true);
  const seconds = (performance.now() - startedAt) / 1000;
  // A commit of one row is a few writes: one try every two seconds, and one that was due.
  expect(writes() - before).toBeLessThan(20 * (2 + seconds / 2));
});

test("while the disk takes seconds for a change the server is not ready and reads go on; the change is acknowledged in the end", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path);
  await using server = await start(directory, shim);
  const { id } = await server.createSession();
  shim.hang("sync");
  const updated = server.ok(server.post(`/v1/sessions/${id}/state`, { state: { step: 1 } }));
  const { body } = await until("the server not to be ready", async () => {
    const answer = await server.get("/health/ready");
    return answer.status === 503 && answer;
  });
  expect(body).toMatchObject({
    status: "degraded",
    reason: expect.stringMatching(/^A change has been waiting for the disk for \d+ s\.$/),
  });
  expect(await server.ok(server.get(`/v1/sessions/${id}`))).toMatchObject({ state_version: 0 });
  shim.repair();
  expect(await updated).toMatchObject({ state: { step: 1 } });
  expect((await server.get("/health/ready")).status).toBe(200);
});

test("relaxed: a flush that fails is answered 503 that says nothing is known, and keeps neither a command nor the server from ending, nor a strict start from serving reads", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path);
  const dataDirectory = directory.at("data");
  const { environment } = shim;
  const unknown =
    "The disk has failed. Reading still works. It is not known whether the change was kept: send it again with the same Idempotency-Key.";
  const update = (server: CairnProcess) => server.post(`/v1/sessions/${id}/state`, { state: {} }, { "Idempotency-Key": "once" });
  await using server = await startProcess({ dataDirectory, environment, flags: ["--durability", "relaxed"] });
  const { id } = await server.createSession();
  shim.fail("sync", "EIO");
  expect((await update(server)).body.error).toMatchObject({ code: "service_unavailable", message: unknown });
  expect(await runCairn(["keys", "create", "--data-dir", dataDirectory], { environment })).toEqual(failed(`cairn: ${unknown}\n`));
  expect(await server.stop()).toBe(0);

  await using strict = await startProcess({ dataDirectory, environment });
  expect((await strict.get(`/v1/sessions/${id}`)).status).toBe(200);
  expect((await strict.post("/v1/sessions", { agent_id: "agent" })).body.error.message).toBe(unknown);
  shim.repair();
  expect(await strict.ok(update(strict))).toMatchObject({ state_version: 1 });
  expect(await strict.ok(update(strict))).toMatchObject({ state_version: 1 });
  expect(await strict.stop()).toBe(0);
});
