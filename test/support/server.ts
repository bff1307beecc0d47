/**
 * A Cairn that listens on a free port of the loopback address, and connections to it that send bytes as they are: for what
 * an HTTP client would never do, and for what only a socket shows.
 *
 * @module
 */
import type { Socket } from "bun";
import { createApp } from "../../src/server/app.ts";
import { SERVER_OPTIONS } from "../../src/http/server-options.ts";
import { startCairn, type Answer, type Cairn, type Options } from "./cairn.ts";
import { expectDocumented } from "./documented.ts";

const HOST = "127.0.0.1";

interface ServerOptions extends Options {
  /** Instead of what the executable has. */
  idleTimeoutSeconds?: number;
}

export class Server implements AsyncDisposable {
  readonly cairn: Cairn;
  readonly #app: ReturnType<typeof createApp>;
  readonly #connections: Connection[] = [];

  constructor(cairn: Cairn, options: ServerOptions) {
    this.cairn = cairn;
    this.#app = createApp({
      ...cairn.service,
      host: HOST,
      allowedHosts: options.allowedHosts ?? [],
      metrics: options.metrics ?? "open",
      corsOrigins: options.corsOrigins ?? [],
      version: "test",
    });
    const { idleTimeoutSeconds: idleTimeout = SERVER_OPTIONS.idleTimeout } = options;
    this.#app.listen({ hostname: HOST, port: 0, ...SERVER_OPTIONS, idleTimeout });
  }

  get port(): number {
    const port = this.#app.server?.port;
    if (port === undefined) throw new Error("the server does not listen");
    return port;
  }

  /** Requests that have begun and whose answers are not sent to their end. */
  get pendingRequests(): number {
    return this.#app.server?.pendingRequests ?? 0;
  }

  async connect(): Promise<Connection> {
    const connection = new Connection();
    await connection.open(this.port);
    this.#connections.push(connection);
    return connection;
  }

  /** One request on a connection of its own. */
  async ask(head: string, body = ""): Promise<Answer> {
    const connection = await this.connect();
    connection.send(head + body);
    const [method = "", target = ""] = head.split(" ", 2);
    const answer = await connection.answer({ hasBody: method !== "HEAD" });
    expectDocumented(method, target, answer);
    return answer;
  }

  /** Lines of a request's head, with the key of the Cairn and its end. */
  head(line: string, ...headers: string[]): string {
    return [`${line} HTTP/1.1`, "Host: localhost", `X-API-Key: ${this.cairn.key}`, ...headers, "", ""].join("\r\n");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.#app.server?.stop(true);
    await this.cairn[Symbol.asyncDispose]();
  }
}

export async function startServer(options: ServerOptions = {}): Promise<Server> {
  return new Server(await startCairn(options), options);
}

/** A client of a port of the loopback address. */
export class Connection {
  /** Set when either side has closed it. */
  closed = false;
  #received = Buffer.alloc(0);
  #unsent: Buffer[] = [];
  #socket!: Socket;
  #wake: () => void = () => undefined;

  async open(port: number): Promise<void> {
    this.#socket = await Bun.connect({
      hostname: HOST,
      port,
      socket: {
        data: (_, chunk) => {
          this.#received = Buffer.concat([this.#received, chunk]);
          this.#wake();
        },
        drain: () => this.#flush(),
        close: () => {
          this.closed = true;
          this.#wake();
        },
        error: () => undefined,
      },
    });
  }

  /** Text is sent a byte a character. */
  send(data: string | Uint8Array): void {
    this.#unsent.push(typeof data === "string" ? Buffer.from(data, "latin1") : Buffer.from(data));
    this.#flush();
  }

  /** Whether the system has taken all that was to be sent. */
  get isSent(): boolean {
    return this.#unsent.length === 0;
  }

  /** Nothing more will come from this side; the other may still answer. */
  end(): void {
    this.#socket.shutdown();
  }

  /** From here on nothing is taken from the other side. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Leaves without a word of farewell. */
  close(): void {
    this.#socket.terminate();
  }

  /** The next answer, once it is there as a whole. @throws when the connection ends without one */
  async answer({ hasBody = true } = {}): Promise<Answer> {
    for (;;) {
      const end = this.#received.indexOf("\r\n\r\n");
      if (end !== -1) {
        const [status = "", ...lines] = this.#received.toString("latin1", 0, end).split("\r\n");
        const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s, 2) as [string, string]));
        const from = end + 4;
        const whole = hasBody ? bodyIn(this.#received, from, headers) : { body: "", end: from };
        if (whole !== undefined) {
          this.#received = this.#received.subarray(whole.end);
          return { status: Number(status.split(" ")[1]), headers, body: whole.body === "" ? undefined : JSON.parse(whole.body) };
        }
      }
      if (this.closed) throw new Error(`the connection ended after ${JSON.stringify(this.#received.toString("latin1"))}`);
      await this.#change();
    }
  }

  /** Resolves when the connection is closed, with what came that no `answer` has taken. */
  async ended(): Promise<string> {
    while (!this.closed) await this.#change();
    return this.#received.toString("latin1");
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #flush(): void {
    for (let next = this.#unsent[0]; next !== undefined && !this.closed; next = this.#unsent[0]) {
      const written = this.#socket.write(next);
      if (written < next.length) {
        if (written > 0) this.#unsent[0] = next.subarray(written);
        return;
      }
      this.#unsent.shift();
    }
  }
}

/** The body that begins there, and where it ends; undefined before all of it has come. */
function bodyIn(received: Buffer, from: number, headers: Headers): { body: string; end: number } | undefined {
  if (headers.get("transfer-encoding") !== "chunked") {
    const end = from + Number(headers.get("content-length") ?? 0);
    return received.length < end ? undefined : { body: received.toString("utf8", from, end), end };
  }
  const chunks: Buffer[] = [];
  for (let at = from; ;) {
    const start = received.indexOf("\r\n", at) + 2;
    if (start === 1) return undefined;
    const length = Number.parseInt(received.toString("latin1", at, start), 16);
    at = start + length + 2;
    if (received.length < at) return undefined;
    if (length === 0) return { body: Buffer.concat(chunks).toString("utf8"), end: at };
    chunks.push(received.subarray(start, start + length));
  }
}
