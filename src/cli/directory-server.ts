/**
 * Asks the server of a data directory, or becomes it: who gets the lock of the directory opens the store, listens on a socket in the
 * directory, or else on a free port of the loopback address, and announces it. When that process has ended, however it did, the next
 * call finds nobody there, takes the directory over, and is sent again with the same `Idempotency-Key`.
 *
 * @module
 */
import { createApp } from "../server/app.ts";
import type { Config } from "../config.ts";
import { makeLocalKey } from "../keys/local-key.ts";
import { systemClock } from "../lib/clock.ts";
import { ApiError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { systemReason } from "../lib/system-errors.ts";
import { version } from "../lib/version.ts";
import { openService, type Service } from "../server/service.ts";
import { DirectoryInUseError } from "../storage/lmdb/directory/directory-lock.ts";
import type { Telemetry } from "../telemetry/otlp.ts";
import { announce, announced, ForeignFileError, withdraw, type Announcement } from "./announcement.ts";
import { partsOf, responseOf, type Answered, type RequestParts } from "./http-client.ts";
import { listen, listenInDirectory, type Listeners } from "./listeners.ts";
import { ProvenServer, UnprovenServerError } from "./proven-server.ts";
import { databaseOf, finishRequests, loadTelemetry } from "./serve.ts";

const HOST = "127.0.0.1";
const JOIN_TIMEOUT_MS = 60_000;
/** A process that takes a directory over has opened its store long before. A client waits for a tool a minute, as a rule. */
const FIND_MS = 15_000;
const LOOK_MS = 25;

interface Serving {
  readonly service: Service;
  readonly listeners: Listeners;
  readonly telemetry: Telemetry | undefined;
}

export class DirectoryServer {
  readonly #config: Config;
  readonly #log: Log;
  readonly #onFailure: () => void;
  #server: ProvenServer | undefined;
  #finding: Promise<ProvenServer> | undefined;
  #serving: Serving | undefined;
  readonly #closing = new AbortController();

  /** @param onFailure - called when this process serves and its store can no longer be used in it */
  constructor(config: Config, log: Log, onFailure: () => void) {
    this.#config = config;
    this.#log = log;
    this.#onFailure = onFailure;
  }

  /**
   * @throws {ApiError} `service_unavailable` when the directory can be neither asked nor served
   * @throws {Error} when the answer did not come: the next call finds who serves the directory by then
   */
  async answer(request: Request): Promise<Response> {
    const end = systemClock.elapsed() + FIND_MS;
    const { pathname, search } = new URL(request.url);
    const parts = await partsOf(request);
    for (;;) {
      const server = await this.open();
      try {
        return responseOf(await ask(server, pathname + search, parts));
      } catch (error) {
        if (this.#server === server) this.#server = undefined;
        server[Symbol.dispose]();
        // To a stranger nothing was sent.
        if (!(error instanceof UnprovenServerError) || systemClock.elapsed() > end) throw error;
      }
      await systemClock.sleep(LOOK_MS);
    }
  }

  /** Finds the server, or becomes it. @throws {ApiError} */
  async open(): Promise<ProvenServer> {
    this.#refuseWhenClosing();
    return (this.#server ??= await this.#find());
  }

  /** Ends what this process serves: another one takes over. Calls under way are refused. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#finding?.catch(() => undefined);
    this.#server?.[Symbol.dispose]();
    if (this.#serving === undefined) return;
    const { service, listeners, telemetry } = this.#serving;
    await finishRequests(service, listeners);
    withdraw(service.directory);
    await telemetry?.close();
    await service.close();
  }

  /** A call that is under way must not have this process serve again what it is about to close. */
  #refuseWhenClosing(): void {
    if (this.#closing.signal.aborted) throw new ApiError("service_unavailable", "This cairn mcp is about to end.");
  }

  /** Calls at the same time look once. */
  #find(): Promise<ProvenServer> {
    return (this.#finding ??= this.#serveOrJoin().finally(() => (this.#finding = undefined)));
  }

  async #serveOrJoin(): Promise<ProvenServer> {
    const end = systemClock.elapsed() + FIND_MS;
    for (;;) {
      this.#refuseWhenClosing();
      try {
        return this.#proven(await this.#serve());
      } catch (error) {
        if (!(error instanceof DirectoryInUseError)) throw unavailable(error);
        const place = announcedIn(this.#config.dataDirectory);
        const found = place === undefined ? unavailable(error) : await this.#join(place);
        if (found instanceof ProvenServer) return found;
        if (systemClock.elapsed() > end) throw found;
      }
      await systemClock.sleep(LOOK_MS);
    }
  }

  /** Returns the server that announced itself, or why it does not answer. */
  async #join(place: Announcement): Promise<ProvenServer | ApiError> {
    const server = this.#proven(place);
    try {
      await ask(server, "/health/live", { signal: AbortSignal.timeout(JOIN_TIMEOUT_MS) });
      return this.#ofThisStore(server);
    } catch (error) {
      server[Symbol.dispose]();
      if (error instanceof ApiError) throw error;
      return this.#silent(place, error);
    }
  }

  #proven(place: Announcement): ProvenServer {
    return new ProvenServer(this.#config.dataDirectory, place);
  }

  #silent({ url }: Announcement, reason: unknown): ApiError {
    const { dataDirectory } = this.#config;
    return new ApiError("service_unavailable", `The server of ${dataDirectory} does not answer at ${url}: ${systemReason(reason)}.`);
  }

  /** @throws {ApiError} where that server keeps its records in another store */
  #ofThisStore(server: ProvenServer): ProvenServer {
    const [{ place }, store] = [server, databaseOf(this.#config)];
    if (place.store === store) return server;
    server[Symbol.dispose]();
    const of = (named: string | undefined) => named ?? "the directory itself";
    throw new ApiError(
      "service_unavailable",
      `The server of ${this.#config.dataDirectory} keeps its records in ${of(place.store)}, not in ${of(store)}: use another --data-dir, or ask a server with --url.`,
    );
  }

  async #serve(): Promise<Announcement> {
    const config = { ...this.#config, host: HOST, port: 0, tls: undefined, httpRedirectPort: undefined };
    const { environment, database, durability, graphFrom, bucketAccess } = config;
    const service = await openService(config.dataDirectory, systemClock, this.#log, {
      database,
      durability,
      environment,
      bucketAccess,
      index: { graphFrom },
      network: { loopback: true },
    });
    let listeners: Listeners | undefined;
    try {
      const localKey = makeLocalKey(systemClock.now());
      const telemetry = await loadTelemetry(config, this.#log);
      const onAnswered = telemetry?.record;
      const app = createApp({ ...service, host: HOST, allowedHosts: [], metrics: "key", localKey, onAnswered, version });
      const onSocket = listenInDirectory(app, config.dataDirectory);
      listeners = onSocket ?? listen(app, config);
      const place = { url: listeners.address, socket: onSocket !== undefined, key: localKey.secret, store: databaseOf(config) };
      announce(service.directory, place);
      service.start();
      this.#serving = { service, listeners, telemetry };
      void service.embedded?.health.panicked.then(this.#onFailure);
      return place;
    } catch (error) {
      await listeners?.stop();
      await service.close();
      throw error;
    }
  }
}

/** @throws {ApiError} when somebody else's files are in the directory @throws {Error} when no answer comes */
async function ask(server: ProvenServer, target: string, sent: RequestParts): Promise<Answered> {
  try {
    return await server.send(target, { ...sent, headers: { ...sent.headers, "x-api-key": server.place.key }, anyCertificate: true });
  } catch (error) {
    throw error instanceof ForeignFileError ? unavailable(error) : error;
  }
}

/** @throws {ApiError} when it is somebody else's */
function announcedIn(directory: string): Announcement | undefined {
  try {
    return announced(directory);
  } catch (error) {
    throw unavailable(error);
  }
}

function unavailable(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError("service_unavailable", systemReason(error), { cause: error });
}
