import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { diskShim, type DiskShim } from "../support/disk-shim.ts";
import { failed, KEY, runCairn, scratchDirectory, startProcess, until, type CairnProcess, type Scratch } from "../support/process.ts";
import { onLinux } from "../support/platform.ts";

const it = onLinux("limits and maps of another process, and a shim of its calls");

const WRITABLE_AGAIN_SECONDS = 10;

it("a write that the disk refuses is answered 503 and leaves nothing; reading goes on, and writing once the disk takes it", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.path });
  const { id } = await server.createSession({ initial_state: { step: 0 } });
  const update = (step: number) => server.post(`/v1/sessions/${id}/state`, { state: { step, text: "x".repeat(20_000) } });
  await server.ok(update(1));
  const before = await server.ok(server.get(`/v1/sessions/${id}`));

  // From here on no file of the server's may grow, as on a disk that is full to the last byte.
  limit(server.pid, "fsize", statSync(directory.at("store/data.mdb")).size);
  const written = await until("a write to be refused", async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, (_, step) => update(step)));
    return answers.some(({ status }) => status === 503) && answers;
  });
  const refused = await Promise.all([update(7), server.post("/v1/sessions", { agent_id: "agent" }), update(8)]);
  expect([...written, ...refused].map(({ status }) => status).filter((status) => status !== 200 && status !== 503)).toEqual([]);
  const message = "The store cannot grow, because the size of files is limited. Nothing was changed; reading still works.";
  expect(refused.map(({ status, body }) => [status, body.error])).toMatchObject(
    refused.map(() => [503, { code: "service_unavailable", type: "api_error", message }]),
  );
  const acknowledged = written.filter(({ status }) => status === 200).length;
  const { state_version } = await server.ok(server.get(`/v1/sessions/${id}`));
  expect((await server.all(`/v1/traces?session_id=${id}&action=state.updated`)).length).toBe(state_version);
  expect(state_version).toBeGreaterThanOrEqual(before.state_version + acknowledged);
  expect((await server.all("/v1/sessions")).map((session) => session.id)).toEqual([id]);

  limit(server.pid, "fsize", "unlimited");
  expect(await server.ok(update(99))).toMatchObject({ state: { step: 99 }, state_version: state_version + 1 });
  await server.kill();
  await using again = await startProcess({ dataDirectory: directory.path });
  expect(await again.ok(again.get(`/v1/sessions/${id}`))).toMatchObject({ state: { step: 99 }, state_version: state_version + 1 });
  const versions = await again.all(`/v1/sessions/${id}/versions`);
  expect(versions.map(({ version }) => version)).toEqual(Array.from(versions, (_, index) => state_version + 1 - index));
});

test("an import that the disk does not take ends with one line of why, and leaves nothing", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.at("data") });
  const large = "x".repeat(900_000);
  for (let i = 0; i < 10; i++) await server.createSession({ initial_state: { large } });
  expect(await runCairn(["export", directory.at("export"), "--data-dir", directory.at("data")])).toMatchObject({ code: 0 });
  // Less than the records take. The native parts are unpacked already.
  const through = ["sh", "-c", 'ulimit -f 15625; exec "$0" "$@"'];
  const options = { through, environment: { CAIRN_NATIVE_DIR: directory.at("data") } };
  expect(await runCairn(["import", directory.at("export"), "--data-dir", directory.at("imported")], options)).toEqual(
    failed(/^cairn: The (disk has failed|store cannot grow)[^\n]*\n$/),
  );
  expect(["store", "incoming"].filter((name) => existsSync(join(directory.at("imported"), name)))).toEqual([]);
});

const MIB = 1024 * 1024;
/** From there on the next map is larger than all that the process needs for itself meanwhile. */
const MAP_BYTES_MIN = 128 * MIB;

it("where the address space is limited a store that cannot grow refuses writes and goes on reading, and grows again when it may", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.path });
  const session = await server.createSession();
  const update = (step: number) => server.post(`/v1/sessions/${session.id}/state`, { state: { step, text: "x".repeat(900_000) } });
  let step = 0;
  while (mapBytes(server.pid) < MAP_BYTES_MIN) await server.ok(update(++step));
  // The next map is to be twice as large, and would not fit.
  limit(server.pid, "as", addressBytes(server.pid) + Math.floor(1.5 * mapBytes(server.pid)));
  const refused = await until("a write to be refused", async () => {
    const answer = await update(step + 1);
    if (answer.status === 200) step++;
    return answer.status !== 200 && answer;
  });
  expect([refused.status, refused.body.error]).toMatchObject([
    503,
    {
      code: "service_unavailable",
      message: "The store cannot grow, because the address space of the process is limited. Nothing was changed; reading still works.",
    },
  ]);
  for (let i = 0; i < 3; i++) {
    expect((await update(step + 1)).status).toBe(503);
    expect(await server.ok(server.get(`/v1/sessions/${session.id}`))).toMatchObject({ state: { step }, state_version: step });
  }
  limit(server.pid, "as", "unlimited");
  expect(await server.ok(update(++step))).toMatchObject({ state: { step }, state_version: step });
  await server.kill();
  await using again = await startProcess({ dataDirectory: directory.path });
  expect(await again.ok(again.get(`/v1/sessions/${session.id}`))).toMatchObject({ state: { step }, state_version: step });
  expect((await again.all(`/v1/sessions/${session.id}/versions`)).length).toBe(step + 1);
});

function limit(pid: number, what: "fsize" | "as", bytes: number | "unlimited"): void {
  expect(Bun.spawnSync(["prlimit", "--pid", `${pid}`, `--${what}=${bytes}:unlimited`]).exitCode).toBe(0);
}

/** All that a process has mapped. */
function addressBytes(pid: number): number {
  const kilobytes = /^VmSize:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) * 1024;
}

/** The largest of the store's maps: LMDB keeps those it has outgrown. */
function mapBytes(pid: number): number {
  const maps = readFileSync(`/proc/${pid}/maps`, "utf8").matchAll(/^([0-9a-f]+)-([0-9a-f]+) .*data\.mdb$/gm);
  return Math.max(0, ...Array.from(maps, ([, from = "", to = ""]) => Number.parseInt(to, 16) - Number.parseInt(from, 16)));
}

/** Starts Cairn on a disk that can be filled. */
const startOn = (directory: Scratch, shim: DiskShim, environment: Record<string, string> = {}) =>
  startProcess({ dataDirectory: directory.at("data"), environment: { ...shim.environment, ...environment } });

const untilFull = (server: CairnProcess) =>
  until("a write to be refused", async () => (await server.post("/v1/sessions", { agent_id: "agent" })).status === 503);

it("on a full disk writes are answered 503 and reads go on, a start succeeds, and writing works again when there is room", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path);
  await using server = await startOn(directory, shim);
  const session = await server.createSession({ user_id: "user" });
  const memory = await server.addMemory(session.id, "The boat is moored at pier nine.");
  const kept = await server.ok(server.get(`/v1/sessions/${session.id}`));
  const update = (to: CairnProcess) => to.post(`/v1/sessions/${session.id}/state`, { state: { step: 1 } });
  const expectFull = async (full: CairnProcess) => {
    const refused = [await update(full), await full.post("/v1/sessions", { agent_id: "agent" })];
    expect(refused.map(({ status, body }) => [status, body.error.code])).toEqual(refused.map(() => [503, "service_unavailable"]));
    expect((await full.get(`/v1/memory/${memory.id}`)).body).toEqual(memory);
    expect((await full.post("/v1/memory/search", { query: memory.content })).body.data).toMatchObject([{ id: memory.id, score: 1 }]);
    expect((await full.post(`/v1/sessions/${session.id}/context`, { query: "boat" })).body.memories).toMatchObject([{ id: memory.id }]);
  };
  shim.fill();
  await untilFull(server);
  await expectFull(server);
  await server.kill();
  await using restarted = await startOn(directory, shim);
  await expectFull(restarted);

  shim.repair();
  const { body } = await until(
    "a write to be taken",
    async () => {
      const answer = await update(restarted);
      return answer.status === 200 && answer;
    },
    WRITABLE_AGAIN_SECONDS,
  );
  expect(body).toMatchObject({ state: { step: 1 }, state_version: 1, memory_count: kept.memory_count });
  expect((await restarted.all("/v1/sessions")).find(({ id }) => id === session.id)).toEqual(body);
});

it("on a full disk a start succeeds with another embedding provider and a new CAIRN_API_KEY too; both take effect once there is room", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path);
  const NEW_KEY = "crn_ProcessTestsOtherKey0002";
  const UNREACHABLE = {
    CAIRN_EMBEDDING_PROVIDER: "openai",
    CAIRN_EMBEDDING_BASE_URL: "http://127.0.0.1:1/v1",
    CAIRN_EMBEDDING_API_KEY: "sk-none-0123456789abcdef",
  };
  await using first = await startOn(directory, shim);
  const session = await first.createSession();
  const memory = await first.addMemory(session.id, "The boat is moored at pier nine.");
  expect(memory.vector_available).toBe(true);
  shim.fill();
  await untilFull(first);
  await first.kill();

  await using other = await startOn(directory, shim, { ...UNREACHABLE, CAIRN_API_KEY: NEW_KEY });
  const statusWith = async (key: string) => (await other.request("GET", `/v1/memory/${memory.id}`, undefined, { "X-API-Key": key })).status;
  expect([await statusWith(KEY), await statusWith(NEW_KEY)]).toEqual([200, 401]);
  expect((await other.post("/v1/sessions", { agent_id: "agent" })).status).toBe(503);
  expect((await other.get("/v1/settings")).body.embedding).toMatchObject({
    provider: { value: "openai", source: "environment" },
    vectors: { ready: 0, pending: 1 },
  });
  shim.repair();
  await until("the new key to be valid", async () => (await statusWith(NEW_KEY)) === 200);
  expect(await statusWith(KEY)).toBe(200);
  const isEmbedded = async () => (await other.get(`/v1/memory/${memory.id}`)).body.vector_available as boolean;
  await until("the vector of the previous provider to be removed", async () => !(await isEmbedded()));

  shim.fill();
  await untilFull(other);
  await other.kill();
  await using again = await startOn(directory, shim);
  const found = async () => (await again.post("/v1/memory/search", { query: memory.content })).body.data;
  expect(await found()).toEqual([]);
  shim.repair();
  await until("the vector to be made again", async () => (await found()).length === 1);
});
