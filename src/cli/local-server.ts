/**
 * Asks a server over HTTP, for commands that run on the same machine as it.
 *
 * Any certificate will do for the server of the same settings: it names no loopback address.
 *
 * @module
 */
import { parseUrl, UsageError, type Config } from "../config.ts";
import { send } from "./http-client.ts";

const TIMEOUT_MS = 5_000;

export interface LocalServer {
  readonly address: URL;
  /** Whether it may show any certificate. */
  readonly anyCertificate: boolean;
}

/** The server at an address of the operator's, or on this machine as the settings say. @throws {UsageError} when there is no telling */
export function serverAt(url: string | undefined, config: () => Config): LocalServer {
  return { address: url === undefined ? addressOf(config()) : parseUrl("--url", url), anyCertificate: url === undefined };
}

function addressOf({ host, port, tls }: Config): URL {
  if (port === 0) throw new UsageError("with port 0 the server took any free port: say where it is with --url");
  return new URL(`${tls === undefined ? "http" : "https"}://${hostInUrl(host)}:${port}`);
}

/** How this machine reaches a listener in a URL: one that listens on every address listens on loopback. */
export function hostInUrl(host: string): string {
  const name = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  return name.includes(":") ? `[${name}]` : name;
}

/** @throws the system's error when there is no answer within 5 s */
export function ask(
  { address, anyCertificate }: LocalServer,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: string }> {
  return send(new URL(path, address), { headers, timeoutMs: TIMEOUT_MS, anyCertificate });
}
