/**
 * Listeners of servers: `cairn serve` on an address, with HTTPS perhaps also on a port of plain HTTP that redirects there, and it and
 * `cairn mcp` on a socket in their data directory.
 *
 * @module
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, readFileSync, rmSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { Server } from "bun";
import type { createApp } from "../server/app.ts";
import type { Config } from "../config.ts";
import { SERVER_OPTIONS } from "../http/server-options.ts";
import { messageOf } from "../lib/errors.ts";
import { systemReason } from "../lib/system-errors.ts";
import { socketPath } from "./announcement.ts";
import { plainListener } from "./plain-listener.ts";

export interface Listeners {
  /** With the port that was taken. */
  readonly address: string;
  readonly port: number;
  /** Requests whose answer is not sent yet. */
  pending(): number;
  /** Takes no new connections, and keeps the present ones. */
  refuse(): void;
  /** Ends all connections. */
  stop(): Promise<void>;
}

/** @throws {Error} that names the address or the file that is wrong; then nothing listens */
export function listen(app: ReturnType<typeof createApp>, config: Config): Listeners {
  const { host, port, tls, httpRedirectPort } = config;
  const pair = tls === undefined ? undefined : certificateIn(tls);
  listenOn(host, port, () =>
    // Elysia's default lets a second server share the port, each getting some of the requests.
    app.listen({ hostname: host, port, reusePort: false, ...(pair === undefined ? {} : { tls: pair }), ...SERVER_OPTIONS }),
  );
  const server = app.server as Server<unknown>;
  let redirect: Server<undefined> | undefined;
  try {
    if (httpRedirectPort !== undefined)
      redirect = listenOn(host, httpRedirectPort, () => plainListener(config, httpRedirectPort, () => server.port ?? 0));
  } catch (error) {
    void server.stop(true);
    throw error;
  }
  return {
    address: `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${server.port}`,
    port: server.port ?? port,
    pending: () => server.pendingRequests,
    refuse() {
      // The promise also waits for connections that clients keep open without asking anything.
      void server.stop();
      void redirect?.stop(true);
    },
    stop: () => server.stop(true),
  };
}

/** Listens on both. The address is that of the first. */
export function together(first: Listeners, second: Listeners | undefined): Listeners {
  if (second === undefined) return first;
  return {
    address: first.address,
    port: first.port,
    pending: () => first.pending() + second.pending(),
    refuse() {
      first.refuse();
      second.refuse();
    },
    stop: async () => void (await Promise.all([first.stop(), second.stop()])),
  };
}

/**
 * Listens on a Unix socket in a data directory, where nobody but its owner can listen in this one's place. Called by who has the lock
 * of the directory. A path that is longer than those of sockets may be (108 bytes on Linux) is none for the system's call: there Bun
 * names the directory by its open file (seen with Bun 1.4.5).
 *
 * @returns undefined where the system or the file system has no such sockets, or the path is longer than theirs may be
 */
export function listenInDirectory(app: ReturnType<typeof createApp>, directory: string): Listeners | undefined {
  const path = socketPath(directory);
  if (process.platform === "win32") return undefined;
  try {
    // A process that was killed leaves its own.
    rmSync(path, { force: true });
    // Its types know no idleTimeout for sockets; it has one all the same (seen with Bun 1.4.5).
    const options: object = { unix: path, development: false, fetch: app.fetch, ...SERVER_OPTIONS };
    const server = Bun.serve(options as Bun.Serve.Options<undefined>);
    chmodSync(path, 0o600);
    return {
      address: pathToFileURL(path).href.replace("file:", "unix:"),
      port: 0,
      pending: () => server.pendingRequests,
      refuse: () => void server.stop(),
      stop: () => server.stop(true),
    };
  } catch {
    return undefined;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: "something else listens there",
  EADDRNOTAVAIL: "this machine has no such address",
  EACCES:
    "that is not allowed; a port below 1024 needs root or the capability CAP_NET_BIND_SERVICE (in a unit of systemd AmbientCapabilities= and CapabilityBoundingSet=)",
  ENOENT: "there is no such address or name",
  ENOTFOUND: "there is no such address or name",
};

/** @throws {Error} that names the address and says why */
export function listenOn<Result>(host: string, port: number, begin: () => Result): Result {
  try {
    return begin();
  } catch (error) {
    const reason = REASONS[String((error as { code?: unknown }).code)] ?? messageOf(error);
    throw new Error(`Cannot listen on ${host}, port ${port}: ${reason}.`, { cause: error });
  }
}

function certificateIn(files: NonNullable<Config["tls"]>): { cert: string; key: string } {
  const [cert, certificate] = readPem(files.certificate, "a certificate", (text) => new X509Certificate(text));
  const [key, privateKey] = readPem(files.key, "a private key without a passphrase", createPrivateKey);
  if (!certificate.checkPrivateKey(privateKey))
    throw new Error(`The key in ${files.key} is not that of the certificate in ${files.certificate}.`);
  return { cert, key };
}

function readPem<Parsed>(path: string, what: string, parse: (text: string) => Parsed): [text: string, parsed: Parsed] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`${path} cannot be read: ${systemReason(error)}.`, { cause: error });
  }
  try {
    return [text, parse(text)];
  } catch (error) {
    throw new Error(`${path} must hold ${what} in PEM form: ${messageOf(error)}`, { cause: error });
  }
}
