/**
 * A keep-alive connection that does as little as a client can: bytes made before go out, of an answer only the status and
 * the length are read.
 *
 * @module
 */
import type { Socket } from "bun";

/** A server: its port on this machine, or its URL. */
export type Address = number | URL;
type Answered = (status: number, body: Uint8Array) => void;

const NOTHING = new Uint8Array(0);
const HEAD_END = Buffer.from("\r\n\r\n");
const LENGTH = Buffer.from("ontent-Length: ");
const LINE_END = Buffer.from("\r\n");
const LAST_PIECE = Buffer.from("\r\n0\r\n\r\n");

export class Connection {
  #socket!: Socket;
  #answered: Answered = () => undefined;
  #unsent: Uint8Array = NOTHING;
  /** Received part of an answer. */
  #partial: Buffer = Buffer.alloc(0);
  #failure: Error | undefined;

  static async open(address: Address): Promise<Connection> {
    const connection = new Connection();
    const { protocol, hostname, port } = typeof address === "number" ? new URL(`http://127.0.0.1:${address}`) : address;
    const isTls = protocol === "https:";
    connection.#socket = await Bun.connect({
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port: port === "" ? (isTls ? 443 : 80) : Number(port),
      tls: isTls,
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
    const answer = headEnd === -1 ? undefined : bodyOf(whole, headEnd + HEAD_END.length);
    if (answer !== undefined) {
      this.#partial = NO_BYTES;
      const status = (whole[9]! - 48) * 100 + (whole[10]! - 48) * 10 + (whole[11]! - 48);
      this.#answered(status, answer);
      return;
    }
    // The chunk's bytes are the socket's again after this call.
    this.#partial = whole === bytes ? Buffer.from(bytes) : whole;
  }
}

const NO_BYTES = Buffer.alloc(0);

/** The body of an answer; undefined while it is not there whole. A long one comes in pieces, each behind its length. */
function bodyOf(whole: Buffer, bodyStart: number): Uint8Array | undefined {
  const at = whole.subarray(0, bodyStart).indexOf(LENGTH);
  if (at === -1) return whole.subarray(-LAST_PIECE.length).equals(LAST_PIECE) ? joined(whole, bodyStart) : undefined;
  const end = bodyStart + Number.parseInt(whole.toString("latin1", at + LENGTH.length, bodyStart), 10);
  return whole.length < end ? undefined : whole.subarray(bodyStart, end);
}

function joined(whole: Buffer, bodyStart: number): Uint8Array {
  const pieces: Buffer[] = [];
  for (let at = bodyStart; ;) {
    const lineEnd = whole.indexOf(LINE_END, at);
    const length = Number.parseInt(whole.toString("latin1", at, lineEnd), 16);
    if (length === 0) return Buffer.concat(pieces);
    const start = lineEnd + LINE_END.length;
    pieces.push(whole.subarray(start, start + length));
    at = start + length + LINE_END.length;
  }
}
