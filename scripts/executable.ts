/**
 * The executable as scripts start it, and what the system says it uses.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { FEW_MAX } from "../src/search/search-plan.ts";
import { cpuMs, memoryOf, type Memory } from "../src/cli/bench/process-use.ts";
import { Failure } from "./failure.ts";

const START_SECONDS = 60;
const LOOK_MS = 100;
/** Used processor time per look below which it counts as idle. */
const IDLE_CPU_MS = 10;

export interface ExecutableOptions {
  binary: string;
  dataDirectory: string;
  logLevel: string;
  /** The file that its log goes to. */
  log: string;
  /** Variables besides the admin key. */
  environment?: Record<string, string>;
}

const ADMIN_KEY = "crn_ScriptsAdminKey000000001";
const UNLIMITED = { per_minute: 1_000_000_000, burst: 1_000_000_000 };

/** Variables that set an embedding provider on this machine, or none. */
export function providerEnvironment(port: number | undefined): Record<string, string> {
  if (port === undefined) return {};
  const url = `http://127.0.0.1:${port}/v1`;
  return { CAIRN_EMBEDDING_PROVIDER: "openai", CAIRN_EMBEDDING_BASE_URL: url, CAIRN_EMBEDDING_MODEL: "dense" };
}

export class Executable {
  readonly #process: Bun.Subprocess;
  readonly port: number;
  /** From the start of the process to the moment it listens. */
  readonly startMs: number;

  private constructor(process: Bun.Subprocess, port: number, startMs: number) {
    this.#process = process;
    this.port = port;
    this.startMs = startMs;
  }

  static async start(options: ExecutableOptions): Promise<Executable> {
    const startedAt = performance.now();
    const args = ["serve", "--port", "0", "--data-dir", options.dataDirectory, "--log-level", options.logLevel];
    const child = Bun.spawn([options.binary, ...args], {
      env: { CAIRN_API_KEY: ADMIN_KEY, ...options.environment },
      stdin: "ignore",
      stdout: "pipe",
      stderr: Bun.file(options.log),
    });
    let said = "";
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      said += decoder.decode(chunk, { stream: true });
      const port = /is serving on http:\S+:(\d+)/.exec(said)?.[1];
      if (port !== undefined) return new Executable(child, Number(port), performance.now() - startedAt);
    }
    throw new Failure(`${options.binary} did not start: it ended with code ${await child.exited}.\n${readFileSync(options.log, "utf8")}`);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** A key that no rate limit holds up. */
  async createKey(): Promise<string> {
    const response = await fetch(`${this.url}/v1/api_keys`, {
      method: "POST",
      headers: { "X-API-Key": ADMIN_KEY, "Content-Type": "application/json" },
      body: JSON.stringify({ tier: "enterprise", scopes: ["read", "write"], rate_limit: UNLIMITED }),
    });
    const { key } = (await response.json()) as { key?: string };
    if (key === undefined) throw new Failure(`No key could be made: ${response.status}.`);
    return key;
  }

  /** Changes settings. @throws {Failure} where they are refused */
  async set(settings: object): Promise<void> {
    const response = await fetch(`${this.url}/v1/settings`, {
      method: "PATCH",
      headers: { "X-API-Key": ADMIN_KEY, "Content-Type": "application/json" },
      body: JSON.stringify(settings),
    });
    if (!response.ok) throw new Failure(`The settings were answered with ${response.status}: ${await response.text()}`);
  }

  /** Waits until what the embedding provider's vectors mean is measured. */
  async calibrated(): Promise<void> {
    for (;;) {
      const response = await fetch(`${this.url}/v1/settings`, { headers: { "X-API-Key": ADMIN_KEY } });
      const { embedding } = (await response.json()) as { embedding: { separation: number | null } };
      if (embedding.separation !== null) return;
      await Bun.sleep(LOOK_MS);
    }
  }

  get pid(): number {
    return this.#process.pid;
  }

  memory(): Memory {
    return memoryOf(this.pid);
  }

  /**
   * Waits until all vectors are in the index and it has nothing else to do either.
   *
   * @returns how long it took until they were
   */
  async settled(maxSeconds = START_SECONDS): Promise<number> {
    const startedAt = performance.now();
    const mayGoOn = () => performance.now() - startedAt < maxSeconds * 1000;
    while (mayGoOn() && !(await this.#isIndexed())) await Bun.sleep(LOOK_MS);
    const indexedMs = performance.now() - startedAt;
    for (let quiet = 0; quiet < 3 && mayGoOn();) {
      const before = cpuMs(this.pid);
      await Bun.sleep(LOOK_MS);
      quiet = cpuMs(this.pid) - before <= IDLE_CPU_MS ? quiet + 1 : 0;
    }
    return indexedMs;
  }

  /** Bytes that the index of memories and documents takes, by part. */
  async indexBytes(): Promise<Record<string, number>> {
    const found = (await this.#metrics()).matchAll(/^cairn_vector_index_bytes\{part="(\w+)"\} (\d+)$/gm);
    return Object.fromEntries(Array.from(found, ([, part, bytes]) => [part, Number(bytes)]));
  }

  async #metrics(): Promise<string> {
    const response = await fetch(`${this.url}/metrics`, { headers: { "X-API-Key": ADMIN_KEY } });
    return response.text();
  }

  async #isIndexed(): Promise<boolean> {
    const text = await this.#metrics();
    const figure = (name: string) => Number(new RegExp(`^cairn_${name} (\\d+)$`, "m").exec(text)?.[1]);
    const stored = figure("vectors_stored");
    const [indexed, pending] = [figure('vectors\\{state="indexed"\\}'), figure('vectors\\{state="pending"\\}')];
    return figure("embeddings_pending") === 0 && pending === 0 && (indexed >= stored || stored <= FEW_MAX);
  }

  async stop(): Promise<number> {
    this.#process.kill("SIGTERM");
    return this.#process.exited;
  }

  kill(): void {
    this.#process.kill("SIGKILL");
  }
}
