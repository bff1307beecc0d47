import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildBinary } from "../support/binary.ts";
import { failed, runCairn, scratchDirectory, startProcess, succeeded, until, vectorsMade } from "../support/process.ts";

/** Runs a command of a data directory. */
const cairn = (dataDirectory: string, ...args: string[]) => runCairn([...args, "--data-dir", dataDirectory]);

test("beside a server that is written to: backup, export and doctor; and what they made has nothing wrong with it and all that was acknowledged", async () => {
  using directory = scratchDirectory();
  const { at } = directory;
  await using server = await startProcess({ dataDirectory: at("data") });
  const session = await server.createSession();
  const written: string[] = [];
  const over = new AbortController();
  const agents = Array.from({ length: 3 }, async () => {
    while (!over.signal.aborted) {
      const content = `Parcel ${written.length} waits.`;
      const update = server.ok(server.post(`/v1/sessions/${session.id}/state`, { state: { content } }));
      written.push((await server.addMemory(session.id, content)).id);
      await update;
    }
  });
  while (written.length < 150) await server.get(`/v1/sessions/${session.id}`);

  const before = [...written];
  expect(await server.command("backup", at("backup"))).toEqual(succeeded(/^Wrote .*: [\d,]+ bytes of store, SHA-256 [0-9a-f]{64}\n$/));
  const exported = await server.command("export");
  expect({ code: exported.code, stderr: exported.stderr }).toEqual({ code: 0, stderr: "" });
  expect(await server.command("doctor")).toEqual(
    succeeded(/^Nothing is wrong: \d+ rows(, \d+ vectors in the index on disk|; no vector index on disk, .*)\.\n$/),
  );
  over.abort();
  await Promise.all(agents);

  writeFileSync(at("export"), exported.stdout);
  expect(await cairn(at("restored"), "restore", at("backup"))).toMatchObject({ code: 0, stderr: "" });
  expect(await cairn(at("imported"), "import", at("export"))).toMatchObject({ code: 0, stderr: "" });
  for (const name of ["restored", "imported"]) {
    expect(await cairn(at(name), "doctor")).toMatchObject({ code: 0, stderr: "" });
    await using copy = await startProcess({ dataDirectory: at(name), environment: {}, hasKey: false });
    // It presents the key of the first server: its hash came along.
    const memories = new Set((await copy.all("/v1/memory")).map(({ id }) => id));
    expect({ name, lost: before.filter((id) => !memories.has(id)) }).toEqual({ name, lost: [] });
    const found = await copy.ok(copy.post("/v1/memory/search", { query: "Which parcel waits?", limit: 5, threshold: 0 }));
    expect(found.data).toHaveLength(5);
  }
});

test("an export piped into an import is the same store; a file is made for its owner only, and not replaced unasked", async () => {
  using directory = scratchDirectory();
  const { at } = directory;
  await using server = await startProcess({ dataDirectory: at("first") });
  const session = await server.createSession({ initial_state: { text: "\ud800" } });
  await server.addMemory(session.id, "The parcel is blue.");
  expect(await server.stop()).toBe(0);

  const pipe = `"$0" export --data-dir ${at("first")} | "$0" import - --data-dir ${at("second")}`;
  const { exitCode: code, stdout, stderr } = Bun.spawnSync(["sh", "-c", pipe, await buildBinary()], { env: {} });
  expect({ code, stdout: stdout.toString(), stderr: stderr.toString() }).toEqual(succeeded(/^Imported \d+ records to /));
  const exporting = (...flags: string[]) => cairn(at("second"), "export", at("export"), ...flags);
  expect(await exporting()).toEqual({ code: 0, stdout: "", stderr: `Wrote ${at("export")}\n` });
  expect(statSync(at("export")).mode & 0o777).toBe(0o600);
  expect(readFileSync(at("export"), "utf8")).toBe((await cairn(at("first"), "export")).stdout);
  expect(await exporting()).toEqual(failed(expect.stringContaining("exists already")));
  expect(await exporting("--force")).toMatchObject({ code: 0 });
});

test("what needs the directory for itself is refused beside a server, and changes nothing", async () => {
  using directory = scratchDirectory();
  const backup = directory.at("backup");
  await using server = await startProcess();
  const session = await server.createSession();
  expect(await server.command("backup", backup)).toMatchObject({ code: 0 });
  for (const args of [["restore", backup, "--force"], ["import", backup], ["doctor", "--fix"], ["rebuild-index"]]) {
    expect(await server.command(...args)).toEqual(
      failed(
        `cairn: Another Cairn is using ${server.dataDirectory}: a server, a cairn mcp, or a command that changes all of it, such as restore, import or doctor --fix. Stop it or let it end first, or give this one a --data-dir of its own.\n`,
      ),
    );
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
  await vectorsMade(first);
  await first.kill();

  const rebuilt = await runCairn(["rebuild-index", "--data-dir", dataDirectory], { environment: { CAIRN_GRAPH_FROM: "120" } });
  expect(rebuilt).toEqual(succeeded("Built the vector index of 120 vectors\n"));
  expect(await cairn(dataDirectory, "doctor")).toEqual(succeeded(/ 120 vectors in the index/));
  await using second = await startProcess({ dataDirectory });
  const ready = await until("the index to be ready", () => second.logged("vector index ready")[0]);
  expect(ready).toMatchObject({ indexed: 120, pending: 0 });
  expect(Object.keys(ready)).not.toContain("rebuilding");
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
  expect(await rebuild()).toEqual(succeeded(`${none} 5,000 (CAIRN_GRAPH_FROM); the one that was there is removed\n`));
  expect(existsSync(join(dataDirectory, "vectors"))).toBe(false);
  expect((await rebuild({ CAIRN_GRAPH_FROM: "2" })).stdout).toBe(`${none} 2 (CAIRN_GRAPH_FROM)\n`);
});

test("a reader who leaves early ends an export without noise", async () => {
  await using server = await startProcess();
  const large = "x".repeat(500_000);
  await Promise.all(Array.from({ length: 10 }, () => server.createSession({ initial_state: { large } })));
  const pipe = `"$0" export --data-dir ${server.dataDirectory} | head -c 100`;
  const { stdout, stderr } = Bun.spawnSync(["sh", "-c", pipe, await buildBinary()], { env: { PATH: process.env["PATH"] ?? "" } });
  expect([stdout.toString(), stderr.toString()]).toEqual([expect.stringMatching(/^\{"cairn_export":1,/), ""]);
});
