/**
 * The smoke test of an executable on a system: what every user does in the first hour, with a crash in the midst.
 *
 * @module
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { placed, type System } from "./systems.ts";
import type { TargetName } from "../targets.ts";

const KEY = "crn_ReleaseSmokeTestKey00001";
/** An emulated processor takes a minute to start. */
const START_SECONDS = 180;
const LOOK_MS = 20;
/** With a graph from this many vectors on, and more than are compared without the worker. */
const GRAPH_FROM = 0;
const MEMORIES = 120;

interface Run {
  readonly executable: string;
  readonly system: System;
  /** A directory of this run's, and its path on the system. */
  readonly outside: string;
  readonly inside: string;
}

/** @returns how long the first start took, in ms @throws {Failure} saying what did not work */
export async function smokeTest(executable: string, target: TargetName, system: System): Promise<number> {
  const parent = system.root === undefined ? tmpdir() : join(system.root, "tmp");
  mkdirSync(parent, { recursive: true });
  const outside = mkdtempSync(join(parent, "cairn-smoke-"));
  const inside = system.root === undefined ? outside : outside.slice(system.root.length);
  try {
    return await firstHour({ executable: placed(executable, system, target), system, outside, inside });
  } finally {
    rmSync(outside, { recursive: true, force: true });
  }
}

async function firstHour(run: Run): Promise<number> {
  const native = await command(run, "version", "--native");
  expect("the native add-ons work", /\nlmdb: loads\nhnswlib: loads.*\nencoder: computes what it should/.test(native), native);

  const before = performance.now();
  const server = await start(run);
  const startMs = performance.now() - before;
  const id = String((await server.ask("sessions", { agent_id: "smoke", user_id: "user-1" }))["id"]);
  await server.ask("memory", { session_id: id, content: "The customer prefers e-mail to phone calls.", type: "preference" });
  for (let i = 0; i < MEMORIES; i++) await server.ask("memory", { session_id: id, content: `Parcel ${i} waits at counter ${i * 7}.` });
  const [input, output] = ["Where is my order?", "It arrives tomorrow."].map((content) => ({ type: "text", content }));
  await server.ask(`sessions/${id}/turns`, { input, output });
  await server.ask(`sessions/${id}/state`, { state: { order: "A-17" } });
  await finds(server, id);
  for (const path of ["/openapi.json", "/docs", "/health"]) expect(`${path} is served`, (await fetch(server.url + path)).status === 200);
  await command(run, "backup", join(run.inside, "copy"), "--data-dir", join(run.inside, "data"));
  await server.end("SIGKILL");

  const again = await start(run);
  await finds(again, id);
  expect("cairn health", (await command(run, "health", "--url", again.url)) === "ready\n");
  expect("a stop in order", (await again.end("SIGTERM")) === 0);
  await command(run, "doctor", "--data-dir", join(run.inside, "data"));
  await command(run, "restore", join(run.inside, "copy"), "--data-dir", join(run.inside, "restored"));
  const exported = await command(run, "export", "--data-dir", join(run.inside, "restored"));
  expect("the export has what was backed up", exported.includes("prefers e-mail") && exported.includes("A-17"));
  const unpacked = readdirSync(join(run.outside, "data/.native")).map((name) => name.split("-")[0]);
  expect("the graph's add-on was wanted", unpacked.includes("hnsw"), unpacked.join(", "));
  return startMs;
}

async function finds(server: Server, session: string): Promise<void> {
  const found = JSON.stringify(await server.ask("memory/search", { query: "How does the customer want to be contacted?", threshold: 0 }));
  expect("search finds the memory", found.includes("prefers e-mail"), found.slice(0, 300));
  const context = JSON.stringify(await server.ask(`sessions/${session}/context`, { query: "contact" }));
  expect("the context has state and turn", context.includes("A-17") && context.includes("arrives tomorrow"), context.slice(0, 300));
}

function expect(what: string, is: boolean, found = ""): void {
  if (!is) throw new Failure(`${what}: no${found === "" ? "" : `: ${found}`}`);
}

function spawn({ executable, system, inside }: Run, args: readonly string[]) {
  return Bun.spawn([...system.through, executable, ...args], {
    env: {
      PATH: process.env["PATH"] ?? "",
      CAIRN_API_KEY: KEY,
      CAIRN_GRAPH_FROM: String(GRAPH_FROM),
      TMPDIR: inside,
      ...system.environment,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

/** @returns what a command prints @throws {Failure} when it fails */
async function command(run: Run, ...args: string[]): Promise<string> {
  const child = spawn(run, args);
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  expect(`cairn ${args[0]} ends with 0`, code === 0, `${code} ${stderr}${stdout}`.slice(0, 2000));
  return stdout;
}

interface Server {
  readonly url: string;
  ask(path: string, body: object): Promise<Readonly<Record<string, unknown>>>;
  /** @returns the exit code */
  end(signal: "SIGTERM" | "SIGKILL"): Promise<number>;
}

async function start(run: Run): Promise<Server> {
  const child = spawn(run, ["serve", "--port", "0", "--data-dir", join(run.inside, "data"), "--log-level", "warn"]);
  let said = "";
  const read = Promise.all([child.stdout, child.stderr].map((stream) => collect(stream, (text) => (said += text))));
  for (const until = performance.now() + START_SECONDS * 1000; ; await Bun.sleep(LOOK_MS)) {
    const [, url] = /is serving on (http:\S+)/.exec(said) ?? [];
    if (url !== undefined) return serverAt(url);
    if (child.exitCode !== null || performance.now() > until) {
      child.kill("SIGKILL");
      throw new Failure(`it does not start: ${said.slice(0, 2000)}`);
    }
  }

  function serverAt(url: string): Server {
    return {
      url,
      async ask(path, body) {
        const headers = { "X-API-Key": KEY, "Content-Type": "application/json" };
        const answer = await fetch(`${url}/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
        const text = await answer.text();
        expect(`POST ${path}`, answer.ok, `${answer.status} ${text}`);
        return JSON.parse(text) as Record<string, unknown>;
      },
      async end(signal) {
        child.kill(signal);
        const code = await child.exited;
        await read;
        return code;
      },
    };
  }
}

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}
