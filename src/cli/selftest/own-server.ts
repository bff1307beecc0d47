/**
 * A server of this very executable, in a directory of its own.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { OWN_PROGRAM } from "../../backups/command.ts";
import { systemClock } from "../../lib/clock.ts";
import { announced } from "../announcement.ts";
import { send } from "../http-client.ts";

const START_MS_MAX = 60_000;
const POLL_MS = 20;
const REQUEST_MS_MAX = 60_000;

/** An admin key that only the servers of one run know. */
export function makeKey(): string {
  return `crn_${randomBytes(12).toString("hex")}`;
}

export class OwnServer implements AsyncDisposable {
  readonly #child: Bun.Subprocess;
  readonly #address: string;
  readonly #key: string;

  private constructor(child: Bun.Subprocess, address: string, key: string) {
    this.#child = child;
    this.#address = address;
    this.#key = key;
  }

  /** @throws {Error} when it is not ready within a minute */
  static async start(directory: string, key: string): Promise<OwnServer> {
    // No environment: settings and keys in it are those of a server that is in use.
    const child = Bun.spawn([...OWN_PROGRAM, "serve", "--data-dir", directory, "--port", "0", "--log-level", "error"], {
      env: { CAIRN_API_KEY: key },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    const until = systemClock.elapsed() + START_MS_MAX;
    while (systemClock.elapsed() < until && child.exitCode === null && child.signalCode === null) {
      // The address that a killed one has announced leads to nobody.
      const address = announced(directory)?.url;
      if (address !== undefined && (await isReady(address))) return new OwnServer(child, address, key);
      await systemClock.sleep(POLL_MS);
    }
    child.kill("SIGKILL");
    throw new Error(`the server did not start in ${directory}`);
  }

  /** The answer to a request. @throws {Error} when none comes, or one that is no success */
  async ask<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const { status, body: text } = await send(new URL(path, this.#address), {
      method,
      headers: { authorization: `Bearer ${this.#key}`, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      timeoutMs: REQUEST_MS_MAX,
      anyCertificate: false,
      keepAlive: true,
    });
    if (status < 200 || status > 299) throw new Error(`${method} ${path} was answered ${status} ${text.slice(0, 200)}`);
    return JSON.parse(text) as Answer;
  }

  /** Records of a list, page by page. */
  async all<Item extends { id: string }>(path: string): Promise<Item[]> {
    const found: Item[] = [];
    const separator = path.includes("?") ? "&" : "?";
    for (let after = ""; ;) {
      const page = await this.ask<{ data: Item[]; has_more: boolean }>("GET", `${path}${separator}limit=100${after}`);
      found.push(...page.data);
      const last = page.data.at(-1);
      if (!page.has_more || last === undefined) return found;
      after = `&starting_after=${last.id}`;
    }
  }

  /** Ends it at once. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#child.exited;
  }
}

async function isReady(address: string): Promise<boolean> {
  try {
    return (await send(new URL("/health/ready", address), { timeoutMs: REQUEST_MS_MAX, anyCertificate: false })).status === 200;
  } catch {
    return false;
  }
}

/** Runs another command of this executable. @throws {Error} with what it said, when it fails */
export async function runOwn(...args: string[]): Promise<void> {
  const child = Bun.spawn([...OWN_PROGRAM, ...args], { env: {}, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [said, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code !== 0) throw new Error(`cairn ${args[0]} ended with ${code}: ${said.trim()}`);
}
