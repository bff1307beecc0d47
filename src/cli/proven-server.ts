/**
 * The server of a data directory, as programs of its owner reach it: through the socket in the directory, or else where it announced
 * that it listens.
 *
 * A port that a server has left can be taken by anybody. So each connection first proves that it leads to the process that
 * announced itself, and the requests follow on the same connection: if that process ends in between, so does the connection.
 * A nonce is all that a stranger gets to see.
 *
 * @module
 */
import { Agent } from "node:http";
import { connect as connectTo, type Socket } from "node:net";
import { connect as connectWithTls } from "node:tls";
import { isProof, NONCE_LENGTH, PROOF_PATH, type Ends } from "../keys/local-proof.ts";
import { randomBase62 } from "../lib/base62.ts";
import { systemClock } from "../lib/clock.ts";
import { socketIn, type Announcement } from "./announcement.ts";
import { send, type Answered, type HttpRequest } from "./http-client.ts";

const PROOF_TIMEOUT_MS = 5_000;
/** The answer of a server is a tenth of that. */
const ANSWER_BYTES_MAX = 4_096;

/** Somebody listens there who did not prove to be that server. */
export class UnprovenServerError extends Error {
  override name = "UnprovenServerError";
}

/** Address of a server. */
interface Door {
  readonly directory: string;
  readonly place: Announcement;
  readonly url: URL | undefined;
}

export class ProvenServer implements Disposable {
  readonly place: Announcement;
  readonly #agent: ProvenAgent;

  /** @param url - where to ask it, instead of where it announced that it listens */
  constructor(directory: string, place: Announcement, url?: URL) {
    this.place = place;
    this.#agent = new ProvenAgent({ directory, place, url });
  }

  /**
   * @param path - with the query
   * @throws {UnprovenServerError} when somebody else listens there
   * @throws {ForeignFileError} when somebody else listens on the socket
   * @throws {Error} the system's, when no answer comes
   */
  send(path: string, sent: Omit<HttpRequest, "agent">): Promise<Answered> {
    return send(new URL(path, "http://localhost"), { ...sent, agent: this.#agent });
  }

  /** Closes its connections. */
  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

/** Keeps connections for the next requests. What runs over TLS is no matter of its requests. */
class ProvenAgent extends Agent {
  readonly #door: Door;

  constructor(door: Door) {
    super({ keepAlive: true });
    this.#door = door;
  }

  override createConnection(_: unknown, done?: (error: Error | null, socket: Socket) => void): undefined {
    open(this.#door).then(
      (socket) => done?.(null, socket),
      (error: unknown) => done?.(error as Error, undefined as never),
    );
  }
}

async function open(door: Door): Promise<Socket> {
  const { directory, place } = door;
  const path = place.socket && door.url === undefined ? socketIn(directory) : undefined;
  const url = door.url ?? new URL(place.url);
  if (path !== undefined) {
    try {
      return await proven(await connected(connectTo({ path }), "connect"), undefined, door);
    } catch (error) {
      // That of a server that was killed leads nowhere, nor does one on a mount from another machine.
      if (error instanceof UnprovenServerError || url.protocol === "unix:") throw error;
    }
  }
  const isHttps = url.protocol === "https:";
  const to = { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port || (isHttps ? 443 : 80)) };
  // It proves itself by more than a certificate, which seldom names a loopback address.
  const socket = isHttps ? connectWithTls({ ...to, rejectUnauthorized: false }) : connectTo(to);
  const reached = await connected(socket, isHttps ? "secureConnect" : "connect");
  const client = { address: reached.localAddress ?? "", port: reached.localPort ?? 0 };
  return proven(socket, { client, server: { address: reached.remoteAddress ?? "", port: reached.remotePort ?? 0 } }, door);
}

function connected(socket: Socket, event: "connect" | "secureConnect"): Promise<Socket> {
  return within(socket, (resolve) => ({ [event]: () => resolve(socket) }));
}

/** Resolves with the socket, from which nothing but the proof was read. */
async function proven(socket: Socket, ends: Ends, { directory, place }: Door): Promise<Socket> {
  const nonce = randomBase62(NONCE_LENGTH);
  let received = "";
  socket.write(`GET ${PROOF_PATH}?nonce=${nonce} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await within<void>(socket, (resolve) => ({
    data(bytes: Buffer) {
      received += bytes.toString("latin1");
      if (isWhole(received) || received.length > ANSWER_BYTES_MAX) resolve();
    },
    end: () => resolve(),
  }));
  const [, proof = ""] = /^HTTP\/1\.1 200 [^]*\r\n\r\n\{"proof":"([\w-]+)"\}$/.exec(received) ?? [];
  if (isProof(proof, place.key, nonce, ends)) return socket;
  socket.destroy();
  throw new UnprovenServerError(`what listens there did not prove that it is the server of ${directory}`);
}

/** Checks whether an answer has as much after its head as that says. */
function isWhole(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n");
  const [, length] = /\r\ncontent-length: (\d+)\r\n/i.exec(answer.slice(0, end + 2)) ?? [];
  return end !== -1 && length !== undefined && answer.length - end - 4 >= Number(length);
}

/** Waits for an event of a socket, which is closed when that does not come in time. */
async function within<Result>(
  socket: Socket,
  listenersFor: (resolve: (result: Result) => void) => Record<string, (...args: never[]) => void>,
): Promise<Result> {
  const { promise, resolve, reject } = Promise.withResolvers<Result>();
  const listeners = Object.entries({ ...listenersFor(resolve), error: reject });
  for (const [event, listener] of listeners) socket.on(event, listener as () => void);
  const cancel = systemClock.timer(PROOF_TIMEOUT_MS, () => reject(new Error("the connection timed out")));
  try {
    return await promise;
  } catch (error) {
    // One that fails once more while it closes has no other listener.
    socket.on("error", () => undefined);
    socket.destroy();
    throw error;
  } finally {
    cancel();
    for (const [event, listener] of listeners) socket.off(event, listener as () => void);
  }
}
