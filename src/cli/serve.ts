/**
 * `cairn serve`: listens until it is told to stop.
 *
 * @module
 */
import { createApp } from "../app.ts";
import type { Config } from "../config.ts";
import { isLoopback } from "../http/host.ts";
import { createFirstKey, registerKey } from "../keys/keys.ts";
import { systemClock } from "../lib/clock.ts";
import { LIMITS } from "../lib/limits.ts";
import { createLog, describeError } from "../lib/log.ts";
import { version } from "../lib/version.ts";
import { openService } from "../service.ts";
import { memories, sessions } from "../storage/tables.ts";

/** Requests under way when a stop is asked for have this long to finish. */
const STOP_SECONDS = 10;
/** Bun closes a connection that has been silent for so long. */
const IDLE_SECONDS = 60;

export async function serve(config: Config): Promise<number> {
  const log = createLog({
    level: config.logLevel,
    pretty: process.stderr.isTTY,
    now: () => systemClock.now(),
    write: (line) => process.stderr.write(line),
  });
  const service = await openService(config.dataDirectory, systemClock, log);
  if (config.apiKey !== undefined) await registerKey(service, config.apiKey);
  const firstKey = await createFirstKey(service);

  // A commit that fails rejects once more in a promise inside lmdb-js that nobody holds; the request has its answer already.
  process.on("unhandledRejection", (reason) =>
    log.error("a promise was rejected and nobody waited for it", { reason: describeError(reason) }),
  );

  const app = createApp({ ...service, host: config.host, allowedHosts: config.allowedHosts, region: config.region, version });
  // Bun refuses what is larger without a body of an answer: far above our own limit, which answers in full.
  app.listen({ hostname: config.host, port: config.port, maxRequestBodySize: LIMITS.bodyBytesMax * 64, idleTimeout: IDLE_SECONDS });
  service.start();

  const address = `http://${config.host.includes(":") ? `[${config.host}]` : config.host}:${app.server?.port}`;
  if (!isLoopback(config.host))
    log.warn("listening beyond loopback without TLS: put a proxy that speaks HTTPS in front", { host: config.host });
  log.info("serving", {
    version,
    address,
    data: service.store.directory,
    sessions: service.store.count(sessions),
    memories: service.store.count(memories),
  });
  console.log(`Cairn ${version} is serving on ${address}`);
  console.log(`API docs: ${address}/docs`);
  if (firstKey !== undefined) console.log(`Admin key, shown only this once: ${firstKey}`);

  const signal = await new Promise<string>((resolve) => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => resolve(name));
  });
  log.info("stopping", { signal });
  await Promise.race([app.server?.stop(), Bun.sleep(STOP_SECONDS * 1000)]);
  await app.server?.stop(true);
  await service.close();
  log.info("stopped");
  return 0;
}
