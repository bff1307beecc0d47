import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildBinary } from "../support/binary.ts";
import { runCairn, scratchDirectory, startProcess, until, type CairnProcess } from "../support/process.ts";

/** Agents that write until told to stop. */
function writing(server: CairnProcess, sessionId: string): { written: string[]; stop(): Promise<void> } {
  const written: string[] = [];
  const over = new AbortController();
  const agent = async () => {
    while (!over.signal.aborted) {
      const content = `Parcel ${written.length} waits.`;
      const [memory] = await Promise.all([
        server.ok(server.post("/v1/memory", { session_id: sessionId, content, tags: ["parcel"] })),
        server.ok(server.post(`/v1/sessions/${sessionId}/state`, { state: { content } })),
      ]);
      written.push(memory.id);
    }
  };
  const agents = [agent(), agent(), agent()];
  return {
    written,
    async stop() {
      over.abort();
      await Promise.all(agents);
    },
  };
}

const cairn = (...args: string[]) => runCairn(args);

test("beside a server that is written to: backup, export and doctor; and what they made has nothing wrong with it and all that was acknowledged", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.at("data") });
  const session = await server.createSession();
  const agents = writing(server, session.id);
  while (agents.written.length < 150) await server.get(`/v1/sessions/${session.id}`);

  const before = [...agents.written];
  const backup = await cairn("backup", directory.at("backup"), "--data-dir", directory.at("data"));
  expect(backup).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^Wrote .*: [\d,]+ bytes of store, SHA-256 [0-9a-f]{64}\n$/),
    stderr: "",
  });
  const exported = await cairn("export", "--data-dir", directory.at("data"));
  expect({ code: exported.code, stderr: exported.stderr }).toEqual({ code: 0, stderr: "" });
  const looked = await cairn("doctor", "--data-dir", directory.at("data"));
  expect(looked).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^Nothing is wrong: \d+ rows, \d+ vectors in the index on disk\.\n$/),
    stderr: "",
  });
  await agents.stop();

  writeFileSync(directory.at("export"), exported.stdout);
  expect(await cairn("restore", directory.at("backup"), "--data-dir", directory.at("restored"))).toMatchObject({ code: 0, stderr: "" });
  expect(await cairn("import", directory.at("export"), "--data-dir", directory.at("imported"))).toMatchObject({ code: 0, stderr: "" });
  for (const name of ["restored", "imported"]) {
    expect(await cairn("doctor", "--data-dir", directory.at(name))).toMatchObject({ code: 0, stderr: "" });
    await using copy = await startProcess({ dataDirectory: directory.at(name), environment: {}, hasKey: false });
    // It presents the key of the first server: its hash came along.
    const memories = new Set((await copy.all("/v1/memory?tags=parcel")).map(({ id }) => id));
    expect({ name, lost: before.filter((id) => !memories.has(id)) }).toEqual({ name, lost: [] });
    const found = await copy.ok(copy.post("/v1/memory/search", { query: "Which parcel waits?", limit: 5, threshold: 0 }));
    expect(found.data).toHaveLength(5);
  }
});

test("an export piped into an import is the same store; a file is made for its owner only, and not replaced unasked", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.at("first") });
  const session = await server.createSession({ initial_state: { text: "\ud800" } });
  await server.addMemory(session.id, "The parcel is blue.");
  expect(await server.stop()).toBe(0);

  const pipe = `"$0" export --data-dir ${directory.at("first")} | "$0" import - --data-dir ${directory.at("second")}`;
  const piped = Bun.spawnSync(["sh", "-c", pipe, await buildBinary()], { env: {} });
  expect({ code: piped.exitCode, stdout: piped.stdout.toString(), stderr: piped.stderr.toString() }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^Imported \d+ records to /),
    stderr: "",
  });
  expect(await cairn("export", directory.at("export"), "--data-dir", directory.at("second"))).toEqual({
    code: 0,
    stdout: "",
    stderr: `Wrote ${directory.at("export")}\n`,
  });
  expect({ mode: (statSync(directory.at("export")).mode & 0o777).toString(8), text: readFileSync(directory.at("export"), "utf8") }).toEqual(
    {
      mode: "600",
      text: (await cairn("export", "--data-dir", directory.at("first"))).stdout,
    },
  );
  expect(await cairn("export", directory.at("export"), "--data-dir", directory.at("second"))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is there already"),
  });
  expect(await cairn("export", directory.at("export"), "--force", "--data-dir", directory.at("second"))).toMatchObject({ code: 0 });
});

test("what needs the directory for itself is refused beside a server, and changes nothing", async () => {
  using directory = scratchDirectory();
  await using server = await startProcess({ dataDirectory: directory.at("data") });
  const session = await server.createSession();
  expect(await cairn("backup", directory.at("backup"), "--data-dir", directory.at("data"))).toMatchObject({ code: 0 });
  for (const args of [
    ["restore", directory.at("backup"), "--force"],
    ["import", directory.at("backup")],
    ["doctor", "--fix"],
    ["rebuild-index"],
  ]) {
    expect(await cairn(...args, "--data-dir", directory.at("data"))).toEqual({
      code: 1,
      stdout: "",
      stderr: `cairn: Another Cairn is using ${directory.at("data")}: a server, or a command that changes all of it, such as restore, import or doctor --fix. Stop it or let it end first, or give this one a --data-dir of its own.\n`,
    });
  }
  expect(await server.ok(server.get(`/v1/sessions/${session.id}`))).toEqual(session);
});

test("the vector index is built anew before a start, which then need not", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.path;
  const first = await startProcess({ dataDirectory });
  const session = await first.createSession();
  const contents = Array.from({ length: 120 }, (_, number) => `Parcel ${number} waits at counter ${number * 7}.`);
  await Promise.all(contents.map((content) => first.addMemory(session.id, content)));
  await first.kill();

  const rebuild = (environment: Record<string, string>) => runCairn(["rebuild-index", "--data-dir", dataDirectory], { environment });
  expect(await rebuild({ CAIRN_GRAPH_FROM: "120" })).toEqual({
    code: 0,
    stdout: "Built the vector index of 120 vectors\n",
    stderr: "",
  });
  expect(await cairn("doctor", "--data-dir", dataDirectory)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(" 120 vectors in the index"),
  });
  await using second = await startProcess({ dataDirectory });
  const ready = await until("the index to be ready", () => second.logged("vector index ready")[0]);
  expect({ indexed: ready.indexed, pending: ready.pending, rebuilding: ready.rebuilding }).toEqual({
    indexed: 120,
    pending: 0,
    rebuilding: undefined,
  });
});

test("of fewer vectors than a server would build an index of, none is built, and what was there is removed", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.path;
  const first = await startProcess({ dataDirectory });
  const session = await first.createSession();
  await first.addMemory(session.id, "The parcel is blue.");
  await first.kill();
  const rebuild = (environment: Record<string, string> = {}) => runCairn(["rebuild-index", "--data-dir", dataDirectory], { environment });
  await rebuild({ CAIRN_GRAPH_FROM: "1" });
  expect(existsSync(join(dataDirectory, "vectors"))).toBe(true);

  const none = "Built no vector index: there are 1 vectors, and it is of no use below";
  expect(await rebuild()).toEqual({
    code: 0,
    stdout: `${none} 200,000 (CAIRN_GRAPH_FROM); the one that was there is removed\n`,
    stderr: "",
  });
  expect(existsSync(join(dataDirectory, "vectors"))).toBe(false);
  expect((await rebuild({ CAIRN_GRAPH_FROM: "2" })).stdout).toBe(`${none} 2 (CAIRN_GRAPH_FROM)\n`);
});

test("a reader who leaves early ends an export without noise", async () => {
  using directory = scratchDirectory();
  const dataDirectory = directory.at("data");
  await using server = await startProcess({ dataDirectory });
  const large = "x".repeat(500_000);
  await Promise.all(Array.from({ length: 10 }, () => server.createSession({ initial_state: { large } })));
  const pipe = `"$0" export --data-dir ${dataDirectory} | head -c 100`;
  const piped = Bun.spawnSync(["sh", "-c", pipe, await buildBinary()], { env: { PATH: process.env["PATH"] ?? "" } });
  expect({ stdout: piped.stdout.toString(), stderr: piped.stderr.toString() }).toEqual({
    stdout: expect.stringMatching(/^\{"cairn_export":1,/),
    stderr: "",
  });
});
