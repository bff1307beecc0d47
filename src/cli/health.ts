/**
 * `cairn health`: asks a server whether it is ready, for containers that have no other client.
 *
 * Without `--url` it asks the server of the same settings on this machine. Any certificate will do then: it names no loopback
 * address, and nothing secret is sent. Proxies are ignored in both cases.
 *
 * @module
 */
import { get as getOverHttp, type IncomingMessage } from "node:http";
import { get as getOverHttps } from "node:https";
import { text } from "node:stream/consumers";
import { configOf, parseFlags, UsageError, type Config } from "../config.ts";
import { systemReason } from "../lib/system-errors.ts";
import { print } from "./print.ts";

const TIMEOUT_MS = 5_000;
const ANSWER_SHOWN_LENGTH = 200;

export async function health(args: readonly string[]): Promise<number> {
  const { flags } = parseFlags(args, { flags: ["url"] });
  const { url } = flags;
  const server = url === undefined ? addressOf(configOf(flags)) : parseAddress(url);
  const problem = await problemOf(new URL("/health/ready", server), { anyCertificate: url === undefined });
  if (problem !== undefined) throw new Error(`${server.origin} is not ready: ${problem}`);
  await print("ready");
  return 0;
}

function addressOf({ host, port, tls }: Config): URL {
  if (port === 0) throw new UsageError("with port 0 nobody knows which one the server took: say where it is with --url");
  // A server that listens on every address listens on loopback.
  const name = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  return new URL(`${tls === undefined ? "http" : "https"}://${name.includes(":") ? `[${name}]` : name}:${port}`);
}

function parseAddress(url: string): URL {
  const address = URL.parse(url);
  if (address === null || !["http:", "https:"].includes(address.protocol)) {
    throw new UsageError(`--url must be an address such as http://127.0.0.1:8700; got ${url}`);
  }
  return address;
}

/** Why it is not ready; undefined when it is. */
async function problemOf(url: URL, { anyCertificate }: { anyCertificate: boolean }): Promise<string | undefined> {
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const get = url.protocol === "https:" ? getOverHttps : getOverHttp;
      get(url, { rejectUnauthorized: !anyCertificate, signal: AbortSignal.timeout(TIMEOUT_MS), agent: false }, resolve).on("error", reject);
    });
    const body = await text(answer);
    return answer.statusCode === 200 && saysReady(body)
      ? undefined
      : `it answered ${answer.statusCode} ${body.slice(0, ANSWER_SHOWN_LENGTH)}`;
  } catch (error) {
    return systemReason(error);
  }
}

function saysReady(body: string): boolean {
  try {
    return (JSON.parse(body) as { status?: unknown } | null)?.status === "ready";
  } catch {
    return false;
  }
}
