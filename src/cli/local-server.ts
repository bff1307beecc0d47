/**
 * Asks a server over HTTP, for commands that run on the same machine as it.
 *
 * Any certificate will do for the server of the same settings: it names no loopback address. Proxies are ignored.
 *
 * @module
 */
import { get as getOverHttp, type IncomingMessage } from "node:http";
import { get as getOverHttps } from "node:https";
import { text } from "node:stream/consumers";
import { UsageError, type Config } from "../config.ts";

const TIMEOUT_MS = 5_000;

export interface LocalServer {
  readonly address: URL;
  /** Whether it may show any certificate. */
  readonly anyCertificate: boolean;
}

/** The server at an address of the operator's, or on this machine as the settings say. @throws {UsageError} when there is no telling */
export function serverAt(url: string | undefined, config: () => Config): LocalServer {
  return { address: url === undefined ? addressOf(config()) : parseAddress(url), anyCertificate: url === undefined };
}

function addressOf({ host, port, tls }: Config): URL {
  if (port === 0) throw new UsageError("with port 0 nobody knows which one the server took: say where it is with --url");
  return new URL(`${tls === undefined ? "http" : "https"}://${hostInUrl(host)}:${port}`);
}

/** How this machine reaches a listener in a URL: one that listens on every address listens on loopback. */
export function hostInUrl(host: string): string {
  const name = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  return name.includes(":") ? `[${name}]` : name;
}

function parseAddress(url: string): URL {
  const address = URL.parse(url);
  if (address === null || !["http:", "https:"].includes(address.protocol)) {
    throw new UsageError(`--url must be an address such as http://127.0.0.1:8700; got ${url}`);
  }
  return address;
}

/** @throws the system's error when there is no answer within 5 s */
export async function ask(
  { address, anyCertificate }: LocalServer,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number | undefined; body: string }> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const get = address.protocol === "https:" ? getOverHttps : getOverHttp;
    const options = { rejectUnauthorized: !anyCertificate, signal: AbortSignal.timeout(TIMEOUT_MS), agent: false, headers };
    get(new URL(path, address), options, resolve).on("error", reject);
  });
  return { status: answer.statusCode, body: await text(answer) };
}
