/**
 * The server of a benchmark: one of this very executable on a temporary store, or one that the operator names.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cairn } from "../../client/client.ts";
import { readConfig } from "../../config.ts";
import { systemClock } from "../../lib/clock.ts";
import { cleanUpAfter } from "../../operations/files.ts";
import { prepare } from "../command-line.ts";
import { fetchBy } from "../http-client.ts";
import { makeKey, OwnServer } from "../selftest/own-server.ts";

export interface BenchServer extends AsyncDisposable {
  readonly address: URL;
  /** A key that reads and writes. */
  readonly key: string;
  /** Process of the server; undefined of one that was named. */
  readonly pid: number | undefined;
}

const TIMEOUT_MS = 60_000;
const RETRIES = 5;
const POLL_MS = 50;
const UNLIMITED = { per_minute: 1_000_000_000, burst: 1_000_000_000 };

/** @param directory - in which the temporary one is made */
export async function startServer(directory = tmpdir()): Promise<BenchServer> {
  const path = mkdtempSync(join(directory, "cairn-bench-"));
  const leftovers = cleanUpAfter(() => rmSync(path, { recursive: true, force: true }));
  const adminKey = makeKey();
  const server = await OwnServer.start(path, adminKey, { command: ["bench", "server"], stdin: "pipe" });
  const { key } = await server.cairn.keys.create({ tier: "enterprise", scopes: ["read", "write"], rate_limit: UNLIMITED });
  return {
    address: new URL(server.address),
    key: key!,
    pid: server.pid,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      leftovers[Symbol.dispose]();
    },
  };
}

export function namedServer({ url, key }: { url: URL; key: string }): BenchServer {
  return { address: url, key, pid: undefined, [Symbol.asyncDispose]: () => Promise.resolve() };
}

/** `cairn bench server`: serves until standard input ends, no longer than the process that started it, and then removes the store. */
export async function serveUntilLeft(args: readonly string[]): Promise<number> {
  const config = readConfig(args);
  prepare(config);
  const { serve } = await import("../serve.ts");
  process.stdin.once("end", () => process.kill(process.pid, "SIGTERM")).resume();
  const code = await serve(config);
  // It would keep this process.
  process.stdin.destroy();
  rmSync(config.dataDirectory, { recursive: true, force: true });
  return code;
}

/** A client of a server, which asks again. */
export function clientOf({ address, key }: BenchServer): Cairn {
  const fetch = (request: Request) => fetchBy(request, false);
  return new Cairn({ apiKey: key, baseUrl: address.href, timeoutMs: TIMEOUT_MS, retries: RETRIES, fetch });
}

/** Resolves once no vector and no turn waits for its place in the index. */
export async function vectorsMade(client: Cairn): Promise<void> {
  for (;;) {
    const { vectors, turn_index: turns } = await client.stats();
    if (vectors.pending === 0 && turns.pending === 0 && turns.state !== "indexing") return;
    await systemClock.sleep(POLL_MS);
  }
}
