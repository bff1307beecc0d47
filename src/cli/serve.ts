/**
 * `cairn serve`: listens until a signal stops it.
 *
 * @module
 */
import { createApp } from "../server/app.ts";
import { isPrivateListener, type Config } from "../config.ts";
import { createFirstKey } from "../keys/first-key.ts";
import { makeLocalKey, type LocalKey } from "../keys/local-key.ts";
import { createLink } from "../keys/sign-in.ts";
import { isLoopback } from "../lib/addresses.ts";
import { systemClock } from "../lib/clock.ts";
import { bufferedWriter, createLog, describeError, type Log } from "../lib/log.ts";
import { systemReason } from "../lib/system-errors.ts";
import { version } from "../lib/version.ts";
import { openService, type Service } from "../server/service.ts";
import { shownDatabase } from "../storage/postgres/connection/database-url.ts";
import { memories, sessions } from "../storage/tables.ts";
import type { Telemetry } from "../telemetry/otlp.ts";
import type { Server } from "bun";
import { announce, withdraw } from "./announcement.ts";
import { reportRejections } from "./command-line.ts";
import { dashboardLink } from "./dashboard.ts";
import { STORE_FAILED_EXIT_CODE } from "./exit-codes.ts";
import { listenForChallenges, listenWithCertificates } from "./domain-listeners.ts";
import { listen, listenInDirectory, together, type Listeners } from "./listeners.ts";
import { addressOf, hostInUrl } from "./local-server.ts";
import { notify, type State } from "./notify.ts";
import { print } from "./print.ts";

/** A start waits this long for the search index; one of a million memories takes longer, and everything else need not wait for it. */
const INDEX_OPEN_MAX_MS = 1_000;
/** Requests under way when a stop is asked for have this long to finish. */
export const STOP_SECONDS = 10;
/** Time for requests that wait for the embedding provider. */
const STOP_PROVIDER_SECONDS = 2;
const STOP_POLL_MS = 5;
/** Time in which, among several servers, a proxy that asks every second has found out by then that this one stops. */
const DRAIN_MS = 3_000;
/** After such a failure requests and probes are answered 503 for this long, instead of a connection that breaks. */
const FAILED_ANSWER_MS = 1_000;
/** Closing after such a failure may wait for a commit that never ends. */
const FAILED_CLOSE_MS = 5_000;
/** Lines about requests are written together, so that writing them costs none. */
const LOG_FLUSH_MS = 50;

export async function serve(config: Config): Promise<number> {
  // A full disk under the log, or a closed pipe, neither ends the server nor changes its exit code.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
  const log = openLog(config);
  const tellSystemd = (state: State) => {
    try {
      if (config.notifySocket !== undefined) notify(config.notifySocket, state);
    } catch (error) {
      log.warn("could not notify systemd", { state, reason: describeError(error) });
    }
  };
  reportRejections(log);
  const service = await openService(config.dataDirectory, systemClock, log, {
    apiKey: config.apiKey,
    bucketAccess: config.bucketAccess,
    database: config.database,
    durability: config.durability,
    environment: config.environment,
    index: { graphFrom: config.graphFrom, openMaxMs: INDEX_OPEN_MAX_MS },
    network: { loopback: isPrivateListener(config) },
    publicUrl: config.publicUrl,
    certificate: config.domains.length === 0 ? undefined : { domains: config.domains, directory: new URL(config.acmeDirectory) },
    onStoreChange: (problem) => tellSystemd(problem === undefined ? "STATUS=Ready" : `STATUS=Not ready: ${problem}`),
  });
  // Signals are handled before anyone can know that the server is there.
  const signal = new Promise<string>((resolve) => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => resolve(name));
  });
  const telemetry = await loadTelemetry(config, log);
  const plain = await openPlain(service, config);
  if (plain !== undefined && service.certificates?.current === undefined) {
    tellSystemd("READY=1");
    tellSystemd("STATUS=Waiting for the first certificate");
    await print(`Cairn ${version} waits for the first certificate for ${config.domains.join(", ")}`);
    const early = await Promise.race([signal, service.certificates?.first]);
    if (early !== undefined) return stopEarly(early, service, plain, log);
    tellSystemd("STATUS=Ready");
  }
  const listeners = await start(service, config, log, telemetry, plain);
  tellSystemd("READY=1");

  const ended = await Promise.race([signal, ...(service.embedded === undefined ? [] : [service.embedded.health.panicked])]);
  if (ended === undefined) {
    const message = "a write of the store's meta page failed: the store can be neither read nor written before a new start; stopping";
    log.error(message, { exit_code: STORE_FAILED_EXIT_CODE });
    await systemClock.sleep(FAILED_ANSWER_MS);
  } else {
    log.info("stopping", { signal: ended });
  }
  tellSystemd("STOPPING=1");
  service.drain();
  if (service.servers !== undefined) await systemClock.sleep(DRAIN_MS);
  await finishRequests(service, listeners);
  withdraw(service.directory);
  await telemetry?.close();
  if (ended === undefined) return closeFailed(service, log);
  await service.close();
  log.info("stopped");
  return 0;
}

/** Exporter of spans, loaded only where a collector is named: it is large. */
export async function loadTelemetry({ exportsSpans }: Config, log: Log): Promise<Telemetry | undefined> {
  return exportsSpans ? (await import("../telemetry/otlp.ts")).openTelemetry({ clock: systemClock, log, version }) : undefined;
}

function openLog({ logLevel }: Config): Log {
  return createLog({
    level: logLevel,
    pretty: process.stderr.isTTY,
    now: () => systemClock.now(),
    write: bufferedWriter(
      (lines) => process.stderr.write(lines),
      (flush) => systemClock.timer(LOG_FLUSH_MS, flush),
    ),
  });
}

/** Says what the operator may not have meant. */
function warnOf(config: Config, { durability }: Service, log: Log): void {
  const { host, metrics, requireHttps, tls, domains, unknownVariables } = config;
  if (unknownVariables.length > 0)
    log.warn("environment variables that Cairn does not know are ignored", { variables: unknownVariables.join(", ") });
  if (tls === undefined && domains.length === 0 && !requireHttps && !isLoopback(host))
    log.warn("listening beyond loopback without TLS: put a proxy that speaks HTTPS in front", { host });
  if (metrics === "open" && !isPrivateListener(config)) log.warn("/metrics is open to everybody who can reach this server");
  if (durability === "relaxed") log.warn("relaxed durability: a crash or a power cut can lose what was answered in the last second");
}

/** Listens for plain HTTP where the server gets its own certificate, and starts the tasks, which order the first one. */
async function openPlain(service: Service, config: Config): Promise<Server<undefined> | undefined> {
  if (service.certificates === undefined) return undefined;
  try {
    const plain = listenForChallenges(config, service.certificates);
    service.start();
    return plain;
  } catch (error) {
    await service.close();
    throw error;
  }
}

/** Stops a server that has had no certificate yet, and so no request. */
async function stopEarly(signal: string, service: Service, plain: Server<undefined>, log: Log): Promise<number> {
  log.info("stopping", { signal });
  await plain.stop(true);
  await service.close();
  log.info("stopped");
  return 0;
}

/** Listens, starts the tasks and says so. */
async function start(
  service: Service,
  config: Config,
  log: Log,
  telemetry: Telemetry | undefined,
  plain: Server<undefined> | undefined,
): Promise<Listeners> {
  const { host, allowedHosts, metrics, corsOrigins, requireHttps } = config;
  const localKey = makeLocalKey(systemClock.now());
  const app = createApp({
    ...service,
    host,
    allowedHosts,
    metrics,
    corsOrigins,
    requireHttps,
    localKey,
    onAnswered: telemetry?.record,
    version,
  });
  let listeners: Listeners | undefined;
  let onSocket: Listeners | undefined;
  let firstKey: string | undefined;
  let link: string | undefined;
  try {
    const { certificates } = service;
    listeners =
      plain === undefined || certificates === undefined ? listen(app, config) : listenWithCertificates(app, config, certificates, plain);
    onSocket = listenInDirectory(app, service.directory);
    listeners = together(listeners, onSocket);
    // Created once it can be used, for it is shown only once.
    firstKey = await createFirstKey(service, service.system);
    // A terminal has somebody who looks at it now, and no log that keeps the link. Without one the first key can sign in.
    if (firstKey !== undefined && process.stdout.isTTY) link = await createLink(service, service.system).catch(() => undefined);
  } catch (error) {
    await listeners?.stop();
    await plain?.stop(true);
    await service.close();
    throw error;
  }
  const { address } = listeners;
  announceLocally(service, config, { port: listeners.port, socket: onSocket !== undefined }, localKey, log);
  service.start();
  warnOf(config, service, log);
  log.info("serving", {
    version,
    address,
    data: service.directory,
    store: databaseOf(config),
    durability: service.durability,
    sessions: await service.store.count(sessions),
    memories: await service.store.count(memories),
  });
  greet(config, address, { firstKey, link }, log);
  return listeners;
}

/** Says on standard output where the server is, and what is shown only once. */
function greet(
  config: Config,
  address: string,
  { firstKey, link }: Partial<Record<"firstKey" | "link", string | undefined>>,
  log: Log,
): void {
  // A certificate names the domain alone.
  const local = config.domains.length > 0 ? address : localAddress(address, config.host);
  const lines = [
    `Cairn ${version} is serving on ${address}`,
    `Documentation: ${address}/docs/guide`,
    `API docs: ${address}/docs`,
    `Dashboard: ${local}/dashboard/`,
  ];
  if (link !== undefined) lines.push(`This link signs in to it, once, within ten minutes: ${dashboardLink(local, link)}`);
  if (firstKey !== undefined) lines.push(`Admin key, shown only this once: ${firstKey}`);
  print(lines.join("\n")).catch((error: unknown) => {
    const advice = firstKey === undefined ? "" : "; the admin key is lost with it: make another one with cairn keys create --scopes admin";
    log.warn(`could not write the startup banner${advice}`, { reason: describeError(error) });
  });
}

/** Location of records that are not in the data directory. */
export function databaseOf({ database }: Config): string | undefined {
  return database === undefined ? undefined : shownDatabase(database);
}

/** The address of a listener as a browser on this machine finds it. */
function localAddress(address: string, host: string): string {
  const url = new URL(address);
  url.hostname = hostInUrl(host);
  return url.origin;
}

/** A full disk keeps no server from starting. */
function announceLocally(
  { directory }: Service,
  config: Config,
  { port, socket }: { port: number; socket: boolean },
  { secret }: LocalKey,
  log: Log,
): void {
  try {
    announce(directory, {
      url: addressOf({ ...config, port }).origin,
      socket,
      key: secret,
      store: databaseOf(config),
    });
  } catch (error) {
    log.warn("cairn mcp and cairn dashboard will not find this server by its data directory", { reason: systemReason(error) });
  }
}

/**
 * Takes no new connections, and ends the old ones when their requests are answered or the time is up. A reader of events that does not
 * read is not waited for: it asks again, with the last event that it has.
 */
export async function finishRequests({ embeddings, feed }: Service, listeners: Listeners): Promise<void> {
  listeners.refuse();
  feed.drain();
  const stoppingAt = systemClock.elapsed();
  const isWithin = (seconds: number) => systemClock.elapsed() - stoppingAt < seconds * 1000;
  while (listeners.pending() > feed.unended && isWithin(STOP_SECONDS)) {
    if (!isWithin(STOP_PROVIDER_SECONDS)) void embeddings.close();
    await systemClock.sleep(STOP_POLL_MS);
  }
  await listeners.stop();
}

async function closeFailed(service: Service, log: Log): Promise<number> {
  setTimeout(() => process.exit(STORE_FAILED_EXIT_CODE), FAILED_CLOSE_MS).unref();
  await service.close().catch((error: unknown) => log.debug("closing failed", { reason: describeError(error) }));
  return STORE_FAILED_EXIT_CODE;
}
