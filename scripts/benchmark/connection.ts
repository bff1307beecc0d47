/**
 * A keep-alive connection that does as little as a client can: bytes made before go out, of an answer only the status and
 * the length are read.
 *
 * @module
 */
import type { Socket } from "bun";

type Answered = (status: number, body: Uint8Array) => void;

const NOTHING = new Uint8Array(0);
const HEAD_END = Buffer.from("\r\n\r\n");
const LENGTH = Buffer.from("ontent-Length: ");

export class Connection {
  #socket!: Socket;
  #answered: Answered = () => undefined;
  #unsent: Uint8Array = NOTHING;
  /** Received part of an answer. */
  #partial: Buffer = Buffer.alloc(0);
  #failure: Error | undefined;

  static async open(port: number): Promise<Connection> {
    const connection = new Connection();
    connection.#socket = await Bun.connect({
      hostname: "127.0.0.1",
      port,
      socket: {
        data: (_, chunk) => connection.#receive(chunk),
        drain: (socket) => {
          if (connection.#unsent.byteLength > 0) connection.#unsent = connection.#unsent.subarray(socket.write(connection.#unsent));
        },
        close: () => {
          connection.#failure = new Error("the server closed a connection");
          connection.#answered(0, NOTHING);
        },
      },
    });
    return connection;
  }

  /** Sends a request; `answered` is called with status 0 when the connection is lost. The body is only good during the call. */
  ask(request: Uint8Array, answered: Answered): void {
    if (this.#failure !== undefined) throw this.#failure;
    this.#answered = answered;
    const written = this.#socket.write(request);
    this.#unsent = request.subarray(Math.max(0, written));
  }

  /** The same as a promise, with the body as text. @throws {Error} when the answer is not a success */
  askFor(request: Uint8Array): Promise<string> {
    return new Promise((resolve, reject) => {
      this.ask(request, (status, body) => {
        const text = Buffer.from(body).toString("utf8");
        if (status >= 200 && status <= 299) resolve(text);
        else reject(new Error(`answered ${status} ${text}`));
      });
    });
  }

  close(): void {
    this.#answered = () => undefined;
    this.#socket.end();
  }

  #receive(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const whole = this.#partial.length === 0 ? bytes : Buffer.concat([this.#partial, bytes]);
    const headEnd = whole.indexOf(HEAD_END);
    if (headEnd !== -1) {
      const bodyStart = headEnd + HEAD_END.length;
      const end = bodyStart + lengthIn(whole);
      if (whole.length >= end) {
        this.#partial = NO_BYTES;
        const status = (whole[9]! - 48) * 100 + (whole[10]! - 48) * 10 + (whole[11]! - 48);
        this.#answered(status, whole.subarray(bodyStart, end));
        return;
      }
    }
    // The chunk's bytes are the socket's again after this call.
    this.#partial = whole === bytes ? Buffer.from(bytes) : whole;
  }
}

const NO_BYTES = Buffer.alloc(0);

function lengthIn(head: Buffer): number {
  let at = head.indexOf(LENGTH) + LENGTH.length;
  let length = 0;
  for (let digit = head[at]! - 48; digit >= 0 && digit <= 9; digit = head[++at]! - 48) length = length * 10 + digit;
  return length;
}
