/**
 * Cairn as it is run: the executable in a process of its own, with nothing of this process's environment.
 *
 * Requests go over real sockets. Nothing waits for a time: what a test needs is waited for by looking, and a look that
 * never succeeds fails with what it was looking for.
 *
 * @module
 */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBinary } from "./binary.ts";
import { expectDocumented } from "./documented.ts";

/** An admin key that tests register, so that it is known. */
export const KEY = "crn_ProcessTestsAdminKey0001";
/** Builds the index of a large store from the first vector on, so that a test has one on disk. */
export const WITH_GRAPH = { CAIRN_GRAPH_FROM: "0" };

const LOOK_MS = 5;
/** Only ends what never comes: machines can be slow. */
const LOOK_SECONDS = 110;

export interface Scratch extends Disposable {
  path: string;
  /** The path of a name in it. */
  at: (name: string) => string;
}

/** A directory that goes with its block. */
export function scratchDirectory(): Scratch {
  const path = mkdtempSync(join(tmpdir(), "cairn-process-"));
  return { path, at: (name) => join(path, name), [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Looks until there is something to see, and gives that. */
export async function until<Found>(
  what: string,
  look: () => Found | Promise<Found>,
  seconds: number = LOOK_SECONDS,
): Promise<Exclude<Found, false | null | undefined>> {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== null && found !== false) return found as Exclude<Found, false | null | undefined>;
    if (performance.now() > end) throw new Error(`waited ${seconds} s for ${what}`);
    await Bun.sleep(LOOK_MS);
  }
}

/** Waits until every memory and document has its vector. */
export async function vectorsMade(server: CairnProcess): Promise<void> {
  await until("every memory to have its vector", async () => (await server.ok(server.get("/v1/stats"))).vectors.pending === 0);
}

export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

const said = (text: unknown) => (text instanceof RegExp ? expect.stringMatching(text) : text) as string;

/** The end of a command that fails, with what it says on standard error. */
export const failed = (stderr: unknown): Ended => ({ code: 1, stdout: "", stderr: said(stderr) });
/** The end of one that succeeds and says nothing on standard error. */
export const succeeded = (stdout: unknown): Ended => ({ code: 0, stdout: said(stdout), stderr: "" });

export interface RunOptions {
  directory?: string;
  environment?: Record<string, string>;
  /** A command that starts the executable: `["nice"]`. */
  through?: readonly string[];
}

/** Runs the executable to its end, with an empty environment unless given one. */
export async function runCairn(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
  const child = await spawnCairn(args, options);
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, stdout, stderr };
}

async function spawnCairn(args: readonly string[], { directory, environment = {}, through = [] }: RunOptions) {
  return Bun.spawn([...through, await buildBinary(), ...args], {
    ...(directory === undefined ? {} : { cwd: directory }),
    // The starting command is looked for where this process looks.
    env: through.length === 0 ? environment : { PATH: process.env["PATH"] ?? "", ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

export interface Answer {
  status: number;
  headers: Headers;
  /** As it came. */
  text: string;
  body: any;
}

export class CairnProcess implements AsyncDisposable {
  readonly #child: Awaited<ReturnType<typeof spawnCairn>>;
  readonly #read: Promise<unknown>;
  /** Removed with the process when it is its own. */
  readonly #scratch: Scratch | undefined;
  readonly dataDirectory: string;
  address = "";
  key = KEY;
  stdout = "";
  stderr = "";

  constructor(child: Awaited<ReturnType<typeof spawnCairn>>, dataDirectory: string, scratch?: Scratch) {
    this.#child = child;
    this.dataDirectory = dataDirectory;
    this.#scratch = scratch;
    this.#read = Promise.all([
      collect(child.stdout, (text) => (this.stdout += text)),
      collect(child.stderr, (text) => (this.stderr += text)),
    ]);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Entries of the log with this message. */
  logged(message: string): any[] {
    return this.stderr
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line))
      .filter((entry) => entry.message === message);
  }

  async listening(): Promise<this> {
    this.address = await until("the server to listen", () => {
      const { exitCode, signalCode } = this.#child;
      if (exitCode !== null) throw new Error(`ended with code ${exitCode}: ${this.stderr}${this.stdout}`);
      if (signalCode !== null) throw new Error(`ended by ${signalCode}: ${this.stderr}${this.stdout}`);
      return /is serving on (https?:\S+)/.exec(this.stdout)?.[1];
    });
    return this;
  }

  async request(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const init: RequestInit = { method, headers: { "X-API-Key": this.key, ...headers } };
    if (body !== undefined) {
      init.headers = { "Content-Type": "application/json", ...(init.headers as Record<string, string>) };
      init.body = JSON.stringify(body);
    }
    const response = await fetch(this.address + path, init);
    const text = await response.text();
    const answer = { status: response.status, headers: response.headers, body: text.startsWith("{") ? JSON.parse(text) : undefined };
    expectDocumented(method, path, answer);
    return { ...answer, text };
  }

  /** Runs a command on the same data directory. */
  command(...args: string[]): Promise<Ended> {
    return runCairn([...args, "--data-dir", this.dataDirectory]);
  }

  get(path: string) {
    return this.request("GET", path);
  }
  post(path: string, body: unknown, headers?: Record<string, string>) {
    return this.request("POST", path, body, headers);
  }
  delete(path: string) {
    return this.request("DELETE", path);
  }

  createSession(fields: Record<string, unknown> = {}): Promise<any> {
    return this.ok(this.post("/v1/sessions", { agent_id: "agent", ...fields }));
  }

  addMemory(session_id: string, content: string): Promise<any> {
    return this.ok(this.post("/v1/memory", { session_id, content }));
  }

  /** The body of an answer of success; anything else fails with what was answered. */
  async ok(answer: Promise<Answer>): Promise<any> {
    const { status, text, body } = await answer;
    if (status < 200 || status > 299) throw new Error(`answered ${status} ${text}`);
    return body;
  }

  /** All records of a list, page by page. */
  async all(path: string): Promise<any[]> {
    const records: any[] = [];
    for (let after = ""; ;) {
      const page = await this.ok(this.get(`${path}${path.includes("?") ? "&" : "?"}limit=100${after}`));
      records.push(...page.data);
      if (!page.has_more) return records;
      after = `&starting_after=${page.last_id}`;
    }
  }

  /** Asks for an orderly end. @returns the exit code */
  stop(): Promise<number> {
    return this.#end("SIGTERM");
  }

  /** Ends the process as a crash does. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  #end(signal: "SIGTERM" | "SIGKILL"): Promise<number> {
    this.#child.kill(signal);
    return this.ended();
  }

  /** Waits for the process to end by itself. @returns the exit code */
  async ended(): Promise<number> {
    const code = await this.#child.exited;
    await this.#read;
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.#scratch?.[Symbol.dispose]();
  }
}

async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}

export interface ServeOptions extends RunOptions {
  /** One of its own unless given. */
  dataDirectory?: string;
  flags?: readonly string[];
  /** Whether `KEY` is an admin key of it. */
  hasKey?: boolean;
}

/** Starts `cairn serve` on any free port. */
export async function startProcess(options: ServeOptions = {}): Promise<CairnProcess> {
  const server = await beginProcess(options);
  try {
    return await server.listening();
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

/** The same, without waiting until it listens. */
export async function beginProcess(options: ServeOptions): Promise<CairnProcess> {
  const scratch = options.dataDirectory === undefined ? scratchDirectory() : undefined;
  const dataDirectory = options.dataDirectory ?? scratch?.path ?? "";
  return new CairnProcess(await spawnServer({ ...options, dataDirectory }), dataDirectory, scratch);
}

function spawnServer({ dataDirectory = "", flags = [], environment = WITH_GRAPH, hasKey = true, ...options }: ServeOptions) {
  const args = ["serve", "--port", "0", "--data-dir", dataDirectory, ...flags];
  return spawnCairn(args, { ...options, environment: { ...(hasKey ? { CAIRN_API_KEY: KEY } : {}), ...environment } });
}

/** Starts `cairn serve` and ends it as a crash does after this many milliseconds, wherever its start has got to by then. */
export async function crashWhileStarting(dataDirectory: string, ms: number): Promise<void> {
  const child = await spawnServer({ dataDirectory });
  await Bun.sleep(ms);
  child.kill("SIGKILL");
  await child.exited;
}

/** Does `work` for each, at most `atOnce` at a time. */
export async function inTurns<Item>(items: readonly Item[], atOnce: number, work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const item of left) await work(item);
    }),
  );
}

/** Numbers that a seed decides (mulberry32). */
export class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** 0 to 1, 1 excluded. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number below `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end);
  }

  pick<Item>(items: readonly Item[]): Item | undefined {
    return items[this.below(items.length)];
  }
}
