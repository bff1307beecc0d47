/**
 * The packages for npm, installed from a registry on loopback: the launcher, and the executable that it starts.
 *
 * @module
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { tarGz } from "../../scripts/packaging/archive.ts";
import { npmPackages } from "../../scripts/packaging/npm.ts";
import { hostTarget, TARGET_NAMES } from "../../scripts/targets.ts";
import { buildBinary } from "../support/binary.ts";
import { isHere, NODE as NODE_JS, NPM } from "../support/platform.ts";
import { npmRegistry, type NpmRegistry } from "../support/npm-registry.ts";
import { KEY, scratchDirectory, until, type Scratch } from "../support/process.ts";

setDefaultTimeout(300_000);

const VERSION = "9.9.9";
const HOST = hostTarget();

/** Node with npm where they are here, else Bun, which does the same for its users. */
const HAS_NODE = [NODE_JS, NPM].every((part) => isHere(part, "the packages for npm as npm installs them"));
const NPX = HAS_NODE ? ["npx", "--yes"] : [process.execPath, "x"];
const ADD = HAS_NODE ? ["npm", "install", "--no-audit", "--no-fund"] : [process.execPath, "add"];
const NODE = HAS_NODE ? "node" : process.execPath;

let directory: Scratch;
let registry: NpmRegistry;

/** The executable for this machine is the real one, and the others stand-ins. */
beforeAll(async () => {
  directory = scratchDirectory();
  const files = directory.at("files");
  mkdirSync(files);
  writeFileSync(directory.at("other"), "an executable for another platform\n");
  const others = Object.fromEntries(TARGET_NAMES.map((target) => [target, directory.at("other")]));
  const executables = { ...others, [HOST]: await buildBinary() };
  for (const { file, files: content } of npmPackages(VERSION, executables)) writeFileSync(join(files, file), tarGz(content, 1));
  registry = await npmRegistry(files);
});

afterAll(() => {
  registry[Symbol.dispose]();
  directory[Symbol.dispose]();
});

/**
 * With nothing of this user's configuration, and with nothing that was fetched or installed before: what package managers keep is
 * beside the project, and only for it.
 */
function environment(project: string) {
  const beside = (name: string) => join(dirname(project), name);
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: beside("home"),
    TMPDIR: beside("tmp"),
    BUN_TMPDIR: beside("tmp"),
    BUN_INSTALL_CACHE_DIR: beside("bun-cache"),
    CAIRN_API_KEY: KEY,
    npm_config_cache: beside("npm-cache"),
    npm_config_globalconfig: beside("npmrc-of-all"),
    npm_config_prefix: beside("npm-global"),
    npm_config_registry: registry.url,
    npm_config_update_notifier: "false",
    npm_config_userconfig: beside("npmrc"),
  };
}

async function run(command: readonly string[], cwd: string) {
  const child = Bun.spawn([...command], { cwd, env: environment(cwd), stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, stdout, stderr };
}

function emptyProject(name: string): string {
  const own = mkdtempSync(directory.at(`${name}-`));
  const path = join(own, "project");
  for (const made of [path, join(own, "home"), join(own, "tmp")]) mkdirSync(made);
  writeFileSync(join(path, "package.json"), '{ "private": true }\n');
  return path;
}

/** Starts a command that serves, in a group of processes of its own, and gives where, once it does. */
async function serving(command: readonly string[], cwd: string) {
  const args = [...command, "serve", "--port", "0"];
  const child = Bun.spawn(args, { cwd, env: environment(cwd), stdin: "ignore", stdout: "pipe", stderr: "pipe", detached: true });
  let said = "";
  const read = async (stream: ReadableStream<Uint8Array>) => {
    for await (const chunk of stream) said += Buffer.from(chunk).toString();
  };
  void read(child.stdout);
  void read(child.stderr);
  const url = await until(
    "the server to listen",
    () => {
      if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}: ${said}`);
      return /is serving on (http:\S+)/.exec(said)?.[1];
    },
    120,
  );
  const isServed = async () => {
    try {
      return (await fetch(`${url}/health`)).ok;
    } catch {
      return false;
    }
  };
  return { child, isServed, [Symbol.dispose]: () => endGroup(child.pid) };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}

test("npx fetches the launcher and the executable for this platform alone, and starts the server", async () => {
  const project = emptyProject("npx");
  const before = registry.fetched.length;
  const { code, stdout } = await run([...NPX, "cairn-server", "version", "--native"], project);
  const versions = new RegExp(`^cairn \\S+ ${HOST}.*\\nlmdb: loads\\nhnswlib: loads`);
  expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(versions) });
  const fetched = new Set(registry.fetched.slice(before));
  expect(fetched).toEqual(new Set([`cairn-server-${VERSION}.tgz`, `cairn-server-${HOST}-${VERSION}.tgz`]));
  using server = await serving([...NPX, "cairn-server"], project);
  expect(await server.isServed()).toBe(true);
});

/** A project with the packages as npm installs them, and the launcher in it. */
async function installed(name: string): Promise<{ project: string; launcher: string }> {
  const project = emptyProject(name);
  expect(await run([...ADD, `cairn-server@${VERSION}`], project)).toMatchObject({ code: 0 });
  return { project, launcher: join(project, "node_modules/cairn-server/launcher.cjs") };
}

test("a signal to the launcher ends the server in order, and what it is called with reaches the executable", async () => {
  const { project, launcher } = await installed("signals");
  {
    using server = await serving([NODE, launcher], project);
    server.child.kill("SIGTERM");
    expect(await server.child.exited).toBe(0);
    expect(await server.isServed()).toBe(false);
  }
  expect(await run([NODE, launcher, "serve", "--prot", "1"], project)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--prot"),
  });
  // Where Node can, the launcher becomes the executable.
  const becomes = join(project, "becomes.cjs");
  writeFileSync(becomes, "process.execve = (...call) => { console.log(JSON.stringify(call.slice(0, 2))); process.exit(); };\n");
  const { stdout } = await run([NODE, "--require", becomes, launcher, "serve", "--port", "0"], project);
  const executable = join(project, "node_modules/@cairn-server", HOST, "cairn");
  expect(JSON.parse(stdout)).toEqual([executable, [executable, "serve", "--port", "0"]]);
});

test("without the package for this platform the launcher says which is missing, why, and what to do", async () => {
  const { project, launcher } = await installed("missing");
  rmSync(join(project, "node_modules/@cairn-server"), { recursive: true });
  const { code, stderr } = await run([NODE, launcher, "version"], project);
  expect(code).toBe(1);
  expect(stderr).toStartWith(`cairn: the package @cairn-server/${HOST}, which has the executable for this platform, is not installed.\n`);
  expect(stderr).toEndWith(`npm install @cairn-server/${HOST}@${VERSION}\n`);
  const elsewhere = join(project, "elsewhere.cjs");
  writeFileSync(elsewhere, 'Object.defineProperty(process, "arch", { value: "riscv64" });\n');
  const other = await run([NODE, "--require", elsewhere, launcher, "version"], project);
  expect(other).toEqual({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^cairn: there is no Cairn for linux-riscv64\S*, only for linux-x64, /),
  });
});

test("no package has a script that runs when it is installed, and each is for one platform", () => {
  const executables = Object.fromEntries(TARGET_NAMES.map((target) => [target, directory.at("other")]));
  const manifests = npmPackages(VERSION, executables).map(
    ({ files }) => JSON.parse(Buffer.from(files.find(({ name }) => name === "package/package.json")?.bytes ?? []).toString()) as Manifest,
  );
  const [launcher, ...others] = manifests;
  expect(manifests.filter(({ scripts }) => scripts !== undefined)).toEqual([]);
  expect(launcher?.optionalDependencies).toEqual(Object.fromEntries(others.map(({ name }) => [name, VERSION])));
  expect(others.map(({ name, os, cpu, libc }) => [name, os, cpu, libc])).toEqual([
    ["@cairn-server/linux-x64", ["linux"], ["x64"], ["glibc"]],
    ["@cairn-server/linux-arm64", ["linux"], ["arm64"], ["glibc"]],
    ["@cairn-server/linux-x64-musl", ["linux"], ["x64"], ["musl"]],
    ["@cairn-server/linux-arm64-musl", ["linux"], ["arm64"], ["musl"]],
    ["@cairn-server/darwin-arm64", ["darwin"], ["arm64"], undefined],
    ["@cairn-server/darwin-x64", ["darwin"], ["x64"], undefined],
  ]);
});

interface Manifest {
  name: string;
  scripts?: unknown;
  optionalDependencies?: Record<string, string>;
  os?: string[];
  cpu?: string[];
  libc?: string[];
}
