/**
 * Requests of commands to a server over HTTP: one that the operator names, or that of a data directory.
 *
 * @module
 */
import { parseUrl, UsageError, type Config } from "../config.ts";
import { announced } from "./announcement.ts";
import { send, type Answered } from "./http-client.ts";
import { ProvenServer } from "./proven-server.ts";

const TIMEOUT_MS = 5_000;

export interface LocalServer {
  /** Its address. */
  readonly origin: string;
  /** @throws {Error} the system's when there is no answer within 5 s */
  ask(path: string, headers?: Record<string, string>): Promise<Answered>;
}

/** The server at an address that the operator gave, and so trusts. @throws {UsageError} unless it is one */
export function serverAt(url: string): LocalServer {
  return unproven(parseUrl("--url", url), false);
}

/** The server that listens where the settings say. Who that is shows in nothing: it gets no key. @throws {UsageError} */
export function serverOfSettings(config: Config): LocalServer {
  // No certificate names a loopback address.
  return unproven(addressOf(config), true);
}

function unproven(address: URL, anyCertificate: boolean): LocalServer {
  return {
    origin: address.origin,
    ask: (path, headers = {}) => send(new URL(path, address), { headers, signal: AbortSignal.timeout(TIMEOUT_MS), anyCertificate }),
  };
}

/**
 * The server of a data directory, which proves that it is that before it is asked anything.
 *
 * @param address - where to ask it, instead of where it announced that it listens
 * @returns undefined when none has announced itself
 * @throws {ForeignFileError} when what announces it is somebody else's
 */
export function serverOf(dataDirectory: string, address?: URL): LocalServer | undefined {
  const place = announced(dataDirectory);
  if (place === undefined) return undefined;
  return {
    origin: address?.origin ?? place.url,
    async ask(path, headers = {}) {
      using server = new ProvenServer(dataDirectory, place, address);
      return await server.send(path, { headers, signal: AbortSignal.timeout(TIMEOUT_MS), anyCertificate: true });
    },
  };
}

/** Checks whether flags say where the server listens. */
export function haveAddress(flags: Readonly<Record<string, string | undefined>>): boolean {
  return flags["host"] !== undefined || flags["port"] !== undefined;
}

/** URL at which this machine reaches a server of these settings. @throws {UsageError} when settings do not say */
export function addressOf({ host, port, tls, domains }: Config): URL {
  if (port === 0) throw new UsageError("with port 0 the server took any free port: say where it is with --url");
  return new URL(`${tls === undefined && domains.length === 0 ? "http" : "https"}://${hostInUrl(host)}:${port}`);
}

/** Host of a listener in a URL for this machine: one that listens on every address listens on loopback. */
export function hostInUrl(host: string): string {
  const name = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  return name.includes(":") ? `[${name}]` : name;
}
