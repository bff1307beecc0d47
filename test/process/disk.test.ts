import { expect, spyOn, test } from "bun:test";
import * as fs from "node:fs";
import { join } from "node:path";
import type { EmbeddingSettings } from "../../src/embeddings/embeddings.ts";
import { startCairn } from "../support/cairn.ts";
import { KEY, ownMounts, runCairn, scratchDirectory, startProcess, until, type CairnProcess, type Scratch } from "../support/process.ts";

const WRITABLE_AGAIN_SECONDS = 10;

test("a write that the disk refuses is answered 503 and leaves nothing; reading goes on, and writing once the disk takes it", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.path });
  const { id } = await server.createSession({ initial_state: { step: 0 } });
  const update = (step: number) => server.post(`/v1/sessions/${id}/state`, { state: { step, text: "x".repeat(20_000) } });
  await server.ok(update(1));
  const before = await server.ok(server.get(`/v1/sessions/${id}`));

  // From here on no file of the server's may grow, as on a disk that is full to the last byte.
  limit(server.pid, "fsize", fs.statSync(directory.at("store/data.mdb")).size);
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

test("on a full disk a start succeeds with another embedding provider too, and its vectors are made when there is room", async () => {
  using directory = scratchDirectory();
  await using disk = (await mountedDisk(directory)) ?? simulatedDisk(directory);
  const content = "The boat is moored at pier nine.";
  const before = await disk.start();
  const session = await before.createSession();
  const memory = await before.addMemory(session.id, content);
  expect(memory.vector_available).toBe(true);
  disk.fill();
  await until("a write to be refused", async () => (await before.post("/v1/sessions", { agent_id: "agent" })).status === 503);

  const UNREACHABLE = { provider: "openai", base_url: "http://127.0.0.1:1/v1", api_key: "sk-none-0123456789abcdef" };
  const other = await disk.start(UNREACHABLE);
  expect((await other.get(`/v1/sessions/${session.id}`)).body).toMatchObject({ id: session.id });
  expect((await other.get(`/v1/memory/${memory.id}`)).body).toMatchObject({ content });
  expect((await other.post("/v1/sessions", { agent_id: "agent" })).status).toBe(503);
  expect((await other.get("/v1/settings")).body.embedding).toMatchObject({
    provider: { value: "openai", source: "environment" },
    vectors: { ready: 0, owed: 1 },
  });
  disk.empty();
  await until("the vector of the provider before to be taken out", async () => {
    await disk.work();
    return (await other.get(`/v1/memory/${memory.id}`)).body.vector_available === false;
  });

  disk.fill();
  await until("a write to be refused", async () => (await other.post("/v1/sessions", { agent_id: "agent" })).status === 503);
  const again = await disk.start();
  expect((await again.post("/v1/memory/search", { query: content })).body.data).toEqual([]);
  disk.empty();
  await until("the vector to be made again", async () => {
    await disk.work();
    return (await again.post("/v1/memory/search", { query: content })).body.data.length === 1;
  });
});

test("an import that the disk does not take ends with one line of why, and leaves nothing", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.at("data") });
  const large = "x".repeat(900_000);
  for (let i = 0; i < 10; i++) await server.createSession({ initial_state: { large } });
  expect(await runCairn(["export", directory.at("export"), "--data-dir", directory.at("data")])).toMatchObject({ code: 0 });
  // Less than the records take. The native parts are unpacked already.
  const through = ["prlimit", "--fsize=8000000"];
  const options = { through, environment: { CAIRN_NATIVE_DIR: directory.at("data") } };
  expect(await runCairn(["import", directory.at("export"), "--data-dir", directory.at("imported")], options)).toEqual({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^cairn: The (disk has failed|store cannot grow)[^\n]*\n$/),
  });
  expect(["store", "incoming"].filter((name) => fs.existsSync(join(directory.at("imported"), name)))).toEqual([]);
});

const MIB = 1024 * 1024;
/** From there on the next map is larger than all that the process needs for itself meanwhile. */
const MAP_BYTES_MIN = 128 * MIB;

test("where the address space is limited a store that cannot grow refuses writes and goes on reading, and grows again when it may", async () => {
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
  const kilobytes = /^VmSize:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) * 1024;
}

/** The largest of the store's maps: LMDB keeps those it has outgrown. */
function mapBytes(pid: number): number {
  const maps = fs.readFileSync(`/proc/${pid}/maps`, "utf8").matchAll(/^([0-9a-f]+)-([0-9a-f]+) .*data\.mdb$/gm);
  return Math.max(0, ...Array.from(maps, ([, from = "", to = ""]) => Number.parseInt(to, 16) - Number.parseInt(from, 16)));
}

interface OnSmallDisk extends Pick<CairnProcess, "createSession" | "addMemory"> {
  get(path: string): Promise<{ status: number; body: any }>;
  post(path: string, body: object): Promise<{ status: number; body: any }>;
  /** The key it is asked with. */
  readonly key: string;
  statusWith(key: string, path: string): Promise<number>;
}

/** A disk that can be filled, and a Cairn on it. */
interface SmallDisk extends AsyncDisposable {
  fill(): void;
  empty(): void;
  /** Has what happens by itself happen, where nothing does. */
  work(): Promise<void>;
  /** Starts Cairn, anew if it is running, with this embedding provider and this key in its environment. */
  start(embedding?: EmbeddingSettings, apiKey?: string): Promise<OnSmallDisk>;
}

test("on a full disk writes are answered 503 and reads go on, a start succeeds, and writing works again when there is room", async () => {
  using directory = scratchDirectory();
  await using disk = (await mountedDisk(directory)) ?? simulatedDisk(directory);
  const cairn = await disk.start();
  const session = await cairn.createSession({ user_id: "user" });
  const memory = await cairn.addMemory(session.id, "The boat is moored at pier nine.");
  const kept = (await cairn.get(`/v1/sessions/${session.id}`)).body;

  const expectFull = async ({ get, post }: Pick<typeof cairn, "get" | "post">) => {
    const refused = await until("a write to be refused", async () => {
      const answer = await post(`/v1/sessions/${session.id}/state`, { state: { step: 1 } });
      return answer.status === 503 && answer;
    });
    expect(refused.body.error).toMatchObject({ code: "service_unavailable", type: "api_error" });
    expect((await post("/v1/sessions", { agent_id: "agent" })).status).toBe(503);
    expect((await get(`/v1/memory/${memory.id}`)).body).toEqual(memory);
    expect((await post("/v1/memory/search", { query: memory.content })).body.data).toMatchObject([{ id: memory.id, score: 1 }]);
    expect((await post(`/v1/sessions/${session.id}/context`, { query: "boat" })).body.memories).toMatchObject([{ id: memory.id }]);
  };
  disk.fill();
  await expectFull(cairn);
  const restarted = await disk.start();
  await expectFull(restarted);

  disk.empty();
  const updated = await until(
    "a write to be taken",
    async () => {
      const answer = await restarted.post(`/v1/sessions/${session.id}/state`, { state: { step: 2 } });
      return answer.status === 200 && answer;
    },
    WRITABLE_AGAIN_SECONDS,
  );
  // Writes between the filling and its notice may have been taken; none was after.
  const versions = (await restarted.get(`/v1/sessions/${session.id}/versions`)).body.data;
  expect(updated.body).toMatchObject({ state: { step: 2 }, state_version: versions.length - 1, memory_count: kept.memory_count });
  expect((await restarted.get("/v1/sessions")).body.data).toEqual([updated.body]);
});

test("on a full disk a start with a CAIRN_API_KEY that is new succeeds too, and that key is good once there is room", async () => {
  using directory = scratchDirectory();
  await using disk = (await mountedDisk(directory)) ?? simulatedDisk(directory);
  const NEW = "crn_ProcessTestsOtherKey0002";
  const before = await disk.start();
  const session = await before.createSession();
  disk.fill();
  await until("a write to be refused", async () => (await before.post("/v1/sessions", { agent_id: "agent" })).status === 503);

  const restarted = await disk.start({}, NEW);
  const statusWith = (key: string) => restarted.statusWith(key, `/v1/sessions/${session.id}`);
  expect([await statusWith(before.key), await statusWith(NEW)]).toEqual([200, 401]);
  disk.empty();
  await until("the new key to be good", async () => {
    await disk.work();
    return (await statusWith(NEW)) === 200;
  });
  expect(await statusWith(before.key)).toBe(200);
});

/** A tmpfs that goes with the process that holds it; undefined where mounting is not allowed. */
async function mountedDisk(directory: Scratch): Promise<SmallDisk | undefined> {
  const command = ownMounts();
  if (command === undefined) return undefined;
  const path = directory.at("disk");
  fs.mkdirSync(path);
  const mount = 'mount -t tmpfs -o size=100m tmpfs "$0" && echo mounted && exec cat';
  const holder = Bun.spawn([...command, "sh", "-c", mount, path], { stdin: "pipe", stdout: "pipe", stderr: "inherit" });
  await holder.stdout.getReader().read();
  const user = command.includes("--user") ? ["--user", "--preserve-credentials"] : [];
  const inside = ["nsenter", "--target", `${holder.pid}`, ...user, "--mount"];
  const filler = join(path, "filler");
  let server: Awaited<ReturnType<typeof startProcess>> | undefined;
  return {
    fill: () => void Bun.spawnSync([...inside, "dd", "if=/dev/zero", `of=${filler}`, "bs=1M"]),
    empty: () => void Bun.spawnSync([...inside, "rm", filler]),
    work: () => Promise.resolve(),
    async start({ provider = "", base_url = "", api_key = "" } = {}, apiKey = KEY) {
      await server?.kill();
      const environment = {
        CAIRN_API_KEY: apiKey,
        CAIRN_EMBEDDING_PROVIDER: provider,
        CAIRN_EMBEDDING_BASE_URL: base_url,
        CAIRN_EMBEDDING_API_KEY: api_key,
      };
      server = await startProcess({ dataDirectory: join(path, "data"), through: inside, environment });
      const running = server;
      return {
        get: (path) => running.get(path),
        post: (path, body) => running.post(path, body),
        createSession: (fields) => running.createSession(fields),
        addMemory: (session, content) => running.addMemory(session, content),
        key: KEY,
        statusWith: async (key, path) => (await running.request("GET", path, undefined, { "X-API-Key": key })).status,
      };
    },
    async [Symbol.asyncDispose]() {
      await server?.kill();
      holder.kill();
      await holder.exited;
    },
  };
}

/** What a full disk says of itself, said to a Cairn in this process. */
function simulatedDisk(directory: Scratch): SmallDisk {
  const real = fs.statfsSync;
  let isFull = false;
  const said = spyOn(fs, "statfsSync").mockImplementation(((path: string) => ({
    ...real(path),
    ...(isFull ? { bavail: 0 } : {}),
  })) as never);
  let cairn: Awaited<ReturnType<typeof startCairn>> | undefined;
  return {
    fill: () => void (isFull = true),
    empty: () => void (isFull = false),
    async work() {
      cairn?.clock.advance({ seconds: 1 });
      for (const task of ["embeddings", "registration of CAIRN_API_KEY"]) await cairn?.runTaskOnce(task).catch(() => undefined);
    },
    async start(embedding = {}, apiKey?: string) {
      const key = cairn?.key ?? "";
      await cairn?.close();
      cairn = await startCairn({ directory: directory.at("data"), environment: { embedding }, apiKey });
      if (key !== "") cairn.key = key;
      const running = cairn;
      const later = () => running.clock.advance({ seconds: 1 });
      return {
        get: (path) => running.get(path),
        post: (path, body) => (later(), running.post(path, body)),
        createSession: (fields) => running.createSession(fields),
        addMemory: (session, content) => running.addMemory(session, content),
        key: running.key,
        statusWith: async (key, path) => (later(), (await running.get(path, { key })).status),
      };
    },
    async [Symbol.asyncDispose]() {
      await cairn?.close();
      said.mockRestore();
    },
  };
}
