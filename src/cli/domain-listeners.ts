/**
 * Listeners of a server that gets its own certificate: plain HTTP from the start on, HTTPS once there is a certificate.
 *
 * `reload` of Bun's servers ignores a new certificate (oven-sh/bun#43815, seen with Bun 1.4.5). So each one gets a listener of its own on
 * the same port; the one before takes no new connections then, and ends with the last of its own.
 *
 * @module
 */
import type { Server } from "bun";
import type { Certificate } from "../certificates/certificate.ts";
import type { Certificates } from "../certificates/certificates.ts";
import type { Config } from "../config.ts";
import { SERVER_OPTIONS } from "../http/server-options.ts";
import { invariant } from "../lib/invariant.ts";
import type { createApp } from "../server/app.ts";
import { listenOn, type Listeners } from "./listeners.ts";
import { plainListener } from "./plain-listener.ts";

type App = ReturnType<typeof createApp>;

/**
 * Listens for plain HTTP.
 *
 * @throws {Error} also where the port for HTTPS cannot be had: that is said now, and not once there is a certificate
 */
export function listenForChallenges(config: Config, certificates: Certificates): Server<undefined> {
  const { host, port, httpRedirectPort = 80, publicUrl } = config;
  const publicPort = publicUrl === undefined ? "" : new URL(publicUrl).port;
  // A port that others may share is had by a second server, too: only one that may not be shared tells that there is one.
  const probe = listenOn(host, port, () => Bun.serve({ hostname: host, port, reusePort: false, fetch: () => new Response() }));
  void probe.stop(true);
  return listenOn(host, httpRedirectPort, () =>
    plainListener(config, httpRedirectPort, () => (publicPort === "" ? 443 : Number(publicPort)), certificates),
  );
}

/** Listens for HTTPS with the certificate that there is, and with each that comes. @throws {Error} */
export function listenWithCertificates(app: App, config: Config, certificates: Certificates, plain: Server<undefined>): Listeners {
  const { host, port } = config;
  const servers = new Set<Server<undefined>>();
  const take = (certificate: Certificate) => {
    const [before] = Array.from(servers).slice(-1);
    const next = listenOn(host, port, () => handOver(app, config, certificate, before));
    // Elysia asks it for the address of a client.
    app.server = next;
    servers.add(next);
    void before?.stop().then(() => servers.delete(before));
  };
  invariant(certificates.current !== undefined, "there is a certificate");
  take(certificates.current);
  certificates.onRenewal(take);
  return {
    address: config.publicUrl ?? "",
    port,
    pending: () => Array.from(servers).reduce((sum, { pendingRequests }) => sum + pendingRequests, 0),
    refuse() {
      // The promise also waits for connections that clients keep open without asking anything.
      for (const server of servers) void server.stop();
      void plain.stop(true);
    },
    stop: async () => void (await Promise.all(Array.from(servers, (server) => server.stop(true)))),
  };
}

/** Listens next to the listener before; where the system shares no ports, in its place. */
function handOver(app: App, config: Config, { chain, key }: Certificate, before: Server<undefined> | undefined): Server<undefined> {
  const { host: hostname, port } = config;
  const begin = () =>
    Bun.serve({ hostname, port, reusePort: true, development: false, tls: { cert: chain, key }, fetch: app.fetch, ...SERVER_OPTIONS });
  try {
    return begin();
  } catch (error) {
    if (before === undefined) throw error;
    void before.stop();
    return begin();
  }
}
