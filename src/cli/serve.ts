/**
 * `cairn serve`: listens until it is told to stop.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import type { Server } from "bun";
import { createApp } from "../app.ts";
import type { Config } from "../config.ts";
import { isLoopback } from "../http/host.ts";
import { redirectTo } from "../http/https.ts";
import { LISTENING } from "../http/listening.ts";
import { createFirstKey } from "../keys/keys.ts";
import { systemClock } from "../lib/clock.ts";
import { bufferedWriter, createLog, describeError } from "../lib/log.ts";
import { version } from "../lib/version.ts";
import { openService } from "../service.ts";
import { memories, sessions } from "../storage/tables.ts";
import { notify, type State } from "./notify.ts";

/** Requests under way when a stop is asked for have this long to finish. */
export const STOP_SECONDS = 10;
/** And so long those among them that wait for the embedding provider. */
const STOP_PROVIDER_SECONDS = 2;
const STOP_LOOK_MS = 5;
/** Lines about requests are written together, so that writing them costs none. */
const LOG_FLUSH_MS = 50;

export async function serve(config: Config): Promise<number> {
  const log = createLog({
    level: config.logLevel,
    pretty: process.stderr.isTTY,
    now: () => systemClock.now(),
    write: bufferedWriter(
      (lines) => process.stderr.write(lines),
      (flush) => setTimeout(flush, LOG_FLUSH_MS),
    ),
  });
  const service = await openService(config.dataDirectory, systemClock, log, {
    apiKey: config.apiKey,
    embedding: config.embedding,
    durability: config.durability,
    region: config.region ?? undefined,
    webhooks: config.webhooks,
    index: { graphFrom: config.graphFrom },
    network: { loopback: isLoopback(config.host) },
  });
  const firstKey = await createFirstKey(service);

  // A commit that fails rejects once more in a promise inside lmdb-js that nobody holds; the request has its answer already.
  process.on("unhandledRejection", (reason) =>
    log.error("a promise was rejected and nobody waited for it", { reason: describeError(reason) }),
  );

  const { host, allowedHosts, corsOrigins, requireHttps } = config;
  const app = createApp({ ...service, host, allowedHosts, corsOrigins, requireHttps, version });
  const tellSystemd = (state: State) => {
    try {
      if (config.notifySocket !== undefined) notify(config.notifySocket, state);
    } catch (error) {
      log.warn("systemd could not be told how far the server is", { state, reason: describeError(error) });
    }
  };
  // Listened for before anyone can know that the server is there.
  const signal = new Promise<string>((resolve) => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => resolve(name));
  });
  try {
    app.listen({
      hostname: config.host,
      port: config.port,
      // Elysia's default lets a second server share the port, each getting some of the requests.
      reusePort: false,
      ...(config.tls === undefined ? {} : { tls: { cert: readPem(config.tls.certificate), key: readPem(config.tls.key) } }),
      ...LISTENING,
    });
  } catch (error) {
    await service.close();
    throw error;
  }
  service.start();
  const redirect =
    config.httpRedirectPort === undefined ? undefined : redirectListener(config.host, config.httpRedirectPort, app.server?.port ?? 0);

  const address = `${config.tls === undefined ? "http" : "https"}://${config.host.includes(":") ? `[${config.host}]` : config.host}:${app.server?.port}`;
  if (config.tls === undefined && !requireHttps && !isLoopback(config.host))
    log.warn("listening beyond loopback without TLS: put a proxy that speaks HTTPS in front", { host: config.host });
  if (service.durability === "relaxed")
    log.warn("relaxed durability: a crash or a power cut can lose what was answered in the last second");
  log.info("serving", {
    version,
    address,
    data: service.store.directory,
    durability: service.durability,
    sessions: service.store.count(sessions),
    memories: service.store.count(memories),
  });
  console.log(`Cairn ${version} is serving on ${address}`);
  console.log(`API docs: ${address}/docs`);
  if (firstKey !== undefined) console.log(`Admin key, shown only this once: ${firstKey}`);
  tellSystemd("READY=1");

  log.info("stopping", { signal: await signal });
  tellSystemd("STOPPING=1");
  // No new connections; the promise of `stop` also waits for those that clients keep open without asking anything.
  void app.server?.stop();
  void redirect?.stop(true);
  const stoppingAt = systemClock.elapsed();
  const isWithin = (seconds: number) => systemClock.elapsed() - stoppingAt < seconds * 1000;
  while ((app.server?.pendingRequests ?? 0) > 0 && isWithin(STOP_SECONDS)) {
    if (!isWithin(STOP_PROVIDER_SECONDS)) service.embeddings.close();
    await Bun.sleep(STOP_LOOK_MS);
  }
  await app.server?.stop(true);
  await service.close();
  log.info("stopped");
  return 0;
}

/** Plain HTTP, for those who type an address without https. */
function redirectListener(hostname: string, port: number, httpsPort: number): Server<undefined> {
  return Bun.serve({
    hostname,
    port,
    fetch: (request) => {
      const { pathname, search } = new URL(request.url);
      const location = redirectTo(request.headers.get("host"), httpsPort, pathname + search);
      return location === undefined ? new Response(null, { status: 400 }) : Response.redirect(location, 308);
    },
  });
}

function readPem(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new Error(`${path} cannot be read: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
