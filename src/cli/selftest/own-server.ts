/**
 * A server of this very executable, in a directory of its own.
 *
 * @module
 */
import { randomBytes } from "node:crypto";
import { OWN_PROGRAM } from "../../backups/command.ts";
import { Cairn } from "../../client/client.ts";
import { systemClock } from "../../lib/clock.ts";
import { announced } from "../announcement.ts";
import { fetchBy } from "../http-client.ts";

const START_MS_MAX = 60_000;
const POLL_MS = 20;
const REQUEST_MS_MAX = 60_000;

/** An admin key that only the servers of one run know. */
export function makeKey(): string {
  return `crn_${randomBytes(12).toString("hex")}`;
}

interface OwnServerOptions {
  readonly command?: readonly string[];
  readonly stdin?: "ignore" | "pipe";
}

export class OwnServer implements AsyncDisposable {
  /** Its API; nothing is sent again. */
  readonly cairn: Cairn;
  readonly address: string;
  readonly #child: Bun.Subprocess;

  private constructor(child: Bun.Subprocess, address: string, cairn: Cairn) {
    this.#child = child;
    this.address = address;
    this.cairn = cairn;
  }

  /** @throws {Error} when it is not ready within a minute */
  static async start(directory: string, key: string, { command = ["serve"], stdin = "ignore" }: OwnServerOptions = {}): Promise<OwnServer> {
    // No environment: settings and keys in it are those of a server that is in use.
    const child = Bun.spawn([...OWN_PROGRAM, ...command, "--data-dir", directory, "--port", "0", "--log-level", "error"], {
      env: { CAIRN_API_KEY: key },
      stdin,
      stdout: "ignore",
      stderr: "ignore",
    });
    const until = systemClock.elapsed() + START_MS_MAX;
    while (systemClock.elapsed() < until && child.exitCode === null && child.signalCode === null) {
      // The address that a killed one has announced leads to nobody.
      const address = announced(directory)?.url;
      const cairn = address === undefined ? undefined : clientOf(address, key);
      if (address !== undefined && cairn !== undefined && (await isReady(cairn))) return new OwnServer(child, address, cairn);
      await systemClock.sleep(POLL_MS);
    }
    child.kill("SIGKILL");
    throw new Error(`the server did not start in ${directory}`);
  }

  get pid(): number {
    return this.#child.pid;
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

function clientOf(baseUrl: string, apiKey: string): Cairn {
  return new Cairn({ baseUrl, apiKey, timeoutMs: REQUEST_MS_MAX, retries: 0, fetch: (request) => fetchBy(request, false) });
}

async function isReady(cairn: Cairn): Promise<boolean> {
  try {
    return (await cairn.health()).status === "ready";
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
