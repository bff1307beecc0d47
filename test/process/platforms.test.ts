/**
 * What differs from one system to the next, as far as one system can show it, and what of the executable is unpacked on each.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addonPaths } from "../../scripts/build-native.ts";
import { findWeights } from "../../src/embeddings/builtin/native.ts";
import { runtimeFor } from "../../scripts/runtime.ts";
import { hostTarget } from "../../scripts/targets.ts";
import { buildBinary } from "../support/binary.ts";
import { diskShim } from "../support/disk-shim.ts";
import { runCairn, scratchDirectory, startProcess, succeeded, until } from "../support/process.ts";
import { onLinux } from "../support/platform.ts";

const it = onLinux("a shim of the calls of a process");

const ROOT = join(import.meta.dir, "../..");
const VERSION = /^cairn \S+ \S+( \(\S+\))?\n/;
/** Where the first meta page says how large pages are: after the head of the page, its magic number, version, address and map. */
const PAGE_SIZE_AT = 24 + 24;

it("where the system's pages have 16 KiB the store's have 4 KiB all the same: it is the same file everywhere", async () => {
  using directory = scratchDirectory();
  using shim = diskShim(directory.path, { hasLargePages: true, traces: true });
  await using server = await startProcess({ dataDirectory: directory.at("data"), environment: shim.environment });
  const session = await server.createSession();
  expect(await server.command("backup", directory.at("copy"))).toMatchObject({ code: 0 });
  expect(await server.stop()).toBe(0);
  expect(shim.trace()).toContain("pages");
  expect(readFileSync(directory.at("data/store/data.mdb")).readUInt32LE(PAGE_SIZE_AT)).toBe(4096);
  await using again = await startProcess({ dataDirectory: directory.at("data"), environment: {} });
  expect(await again.ok(again.get(`/v1/sessions/${session.id}`))).toEqual(session);
});

test("the add-on of the graph is unpacked once a search needs a graph, and not before", async () => {
  using directory = scratchDirectory();
  const native = () => readdirSync(directory.at(".native")).map((name) => name.replace(/-[0-9a-f]{16}\.node$/, ""));
  await using server = await startProcess({ dataDirectory: directory.path, environment: { CAIRN_GRAPH_FROM: "100" } });
  const session = await server.createSession();
  const addMemories = async (count: number) => {
    for (let i = 0; i < count; i++) await server.addMemory(session.id, `Parcel ${i} waits at counter ${i * 7}.`);
    await until("the index to have every vector", async () =>
      (await server.get("/metrics")).text.includes('cairn_vectors{state="pending"} 0'),
    );
  };
  const search = async () =>
    expect((await server.ok(server.post("/v1/memory/search", { query: "parcel", threshold: 0 }))).data.length).toBeGreaterThan(0);
  await addMemories(90);
  await search();
  expect(native().toSorted()).toEqual(["encoder", "lmdb"]);
  await addMemories(20);
  await search();
  await until("the graph to be built", () => native().length === 3);
  expect(native().toSorted()).toEqual(["encoder", expect.stringMatching(/^hnsw-/), "lmdb"]);
});

test("a server removes the add-ons that other versions have unpacked, once the data directory is its own, and nothing else", async () => {
  using directory = scratchDirectory();
  await using first = await startProcess({ dataDirectory: directory.path, environment: {} });
  // That of the store, and once its thread has started that of the encoder.
  const own = await until("both add-ons to be unpacked", () => {
    const names = readdirSync(directory.at(".native")).filter((name) => name.endsWith(".node"));
    return names.length === 2 && names;
  });
  const older = ["lmdb-0123456789abcdef.node", "hnsw-v3-0123456789abcdef.node", "encoder-0123456789abcdef.node"];
  const foreign = ["notes.txt", "lmdb.node"];
  for (const name of [...older, ...foreign]) writeFileSync(join(directory.at(".native"), name), "");
  // One that does not get the directory removes nothing.
  expect(await runCairn(["serve", "--port", "0", "--data-dir", directory.path])).toMatchObject({ code: 1 });
  expect(readdirSync(directory.at(".native")).toSorted()).toEqual([...own, ...older, ...foreign].toSorted());
  expect(await first.stop()).toBe(0);
  await using second = await startProcess({ dataDirectory: directory.path, environment: {} });
  expect(await second.stop()).toBe(0);
  expect(readdirSync(directory.at(".native")).toSorted()).toEqual([...own, ...foreign].toSorted());
});

test("cairn version --native tries the add-ons and leaves no file; where it cannot it says why and ends with 1", async () => {
  using directory = scratchDirectory();
  const temporary = directory.at("tmp");
  mkdirSync(temporary);
  const options = { directory: directory.path, environment: { TMPDIR: temporary } };
  const loaded = new RegExp(
    `${VERSION.source}lmdb: loads\nhnswlib: loads( \\((v4|v3|sse)\\))?\nencoder: computes what it should \\([a-z0-9]+(, [a-z0-9]+)*\\)\n$`,
  );
  expect(await runCairn(["version", "--native"], options)).toEqual(succeeded(loaded));
  expect(readdirSync(directory.path, { recursive: true })).toEqual(["tmp"]);

  const level = process.arch === "x64" ? "sse" : undefined;
  if (level !== undefined) {
    const chosen = await runCairn(["version", "--native"], { ...options, environment: { ...options.environment, CAIRN_SIMD: level } });
    expect(chosen.stdout).toContain(`hnswlib: loads (${level})`);
  }
});

test("cairn version --check says which version is newer, whether its schema differs, and the command to get it", async () => {
  let published: Record<string, unknown> = {};
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(published) });
  using directory = scratchDirectory();
  const url = `${server.url.href}releases`;
  const check = () => runCairn(["version", "--check", "--url", url], { directory: directory.path });
  const asked = async (latest: Record<string, unknown>) => {
    published = latest;
    const { code, stdout, stderr } = await check();
    return { code, stderr, lines: stdout.split("\n").slice(1, -1) };
  };
  const [, own = ""] = /^cairn (\S+)/.exec((await runCairn(["version"])).stdout) ?? [];
  const [newer, older] = [{ version: "999.0.0", date: "2027-01-31" }, "0.0.1"];
  const command = expect.stringMatching(/^ {2}(curl -fsSL http\S+\/releases\/install\.sh \| \S+ sh|docker build .*)$/);
  expect(await asked({ ...newer, schema: 1 })).toEqual({
    code: 0,
    stderr: "",
    lines: ["Cairn 999.0.0 of 2027-01-31 is newer.", command],
  });
  expect((await asked({ ...newer, schema: 99 })).lines).toEqual([
    "Cairn 999.0.0 of 2027-01-31 is newer.",
    expect.stringMatching(/^Its store has schema 99, this one's has 1: its first start writes a backup/),
    command,
  ]);
  expect((await asked({ ...newer, version: own, schema: 1 })).lines).toEqual(["This is the newest version."]);
  expect((await asked({ ...newer, version: older, schema: 1 })).lines).toEqual([`The newest version that is published is ${older}.`]);
  // The one that is built here does not know where releases are, and asks nobody.
  if (process.env["CAIRN_TEST_EXECUTABLE"] === undefined)
    expect(await runCairn(["version", "--check"])).toEqual({
      code: 2,
      stdout: "",
      stderr: "cairn: this Cairn was not built by a release: say with --url where releases are published\nTry: cairn version --help\n",
    });
  expect(await asked({})).toMatchObject({ code: 1, stderr: `cairn: ${url}/latest.json does not say which version is the newest.\n` });
  expect(readdirSync(directory.path)).toEqual([]);
});

/** More than the code, its bytecode, the API docs and the native add-ons take. */
const BESIDES_BUN_AND_WEIGHTS_MAX = 27_000_000;

test("the executable is Bun, the weights and at most 27 MB: each file in it once, no source map, and no path of where it was built", async () => {
  const bytes = readFileSync(await buildBinary());
  const runtime = await runtimeFor(hostTarget());
  const weights = findWeights();
  const weightBytes = weights.reduce((sum, part) => sum + part.bytes, 0);
  expect(bytes.length - statSync(runtime).size - weightBytes).toBeLessThan(BESIDES_BUN_AND_WEIGHTS_MAX);
  const toolchain = process.env["CAIRN_TEST_EXECUTABLE"] === undefined ? "system" : "zig";
  const files = [...Object.values(addonPaths(hostTarget(), toolchain)), ...weights.map(({ path }) => path)];
  const timesInside = (path: string) => {
    const content = readFileSync(path);
    let times = 0;
    for (let at = bytes.indexOf(content); at !== -1; at = bytes.indexOf(content, at + 1)) times++;
    return { path, times };
  };
  expect(files.map(timesInside)).toEqual(files.map((path) => ({ path, times: 1 })));
  const own = bytes.subarray(statSync(runtime).size - 1_000_000);
  expect([own.includes('"sourcesContent":'), bytes.includes(ROOT)]).toEqual([false, false]);
});
