/**
 * Limits the memory of answers that clients do not read.
 *
 * A small answer goes to the system's buffers at once. A large one is a stream, from which Bun pulls the next piece when the
 * socket has taken the last, and which it cancels when the connection ends (seen with Bun 1.4.5, which sends a stream in
 * chunks, without a `Content-Length`). A client that reads nothing loses its connection by the idle timeout.
 *
 * @module
 */
import { ApiError } from "../lib/errors.ts";
import { LIMITS } from "../lib/limits.ts";
import { UTF8_BYTES_PER_UNIT_MAX } from "../lib/text.ts";
import { ByteBudget } from "./byte-budget.ts";
import { packed } from "./gzip.ts";

/** Smaller answers are not counted, so that this costs most requests nothing. */
const SMALL_BYTES = 64 * 1024;
const PIECE_BYTES = 256 * 1024;
/** One is read while the last is on its way. */
const PIECES_HELD = 2;
const RETRY_AFTER_SECONDS = 1;

/** Source of a response in chunks, each read when the client has taken the last: a file. */
export interface Chunks {
  /** Returns the next one, of at most 256 KiB; undefined at the end. */
  next(): Promise<Uint8Array | undefined>;
  close(): Promise<void>;
}

export class ResponseBuffer {
  readonly #budget: ByteBudget;

  constructor(bytesMax: number = LIMITS.unsentBytesMax) {
    this.#budget = new ByteBudget(bytesMax);
  }

  /**
   * Refuses a request before anything is done for it: making a large answer takes more memory for a while than holding it.
   *
   * @throws {ApiError} `service_unavailable` while its key holds answers that leave it no space for a page
   */
  refuseWithoutRoom(owner: string): void {
    if (this.#budget.isHolding(owner) && !this.#budget.hasRoom(owner, LIMITS.pageBytesMax)) throw noRoom();
  }

  /**
   * Returns a text in gzip, whose memory is counted as that of an answer until then; undefined where there is no space for that.
   */
  packedOf(owner: string, text: string): Uint8Array<ArrayBuffer> | Promise<Uint8Array<ArrayBuffer>> | undefined {
    const { length } = text;
    if (!this.#budget.hasRoom(owner, length)) return undefined;
    const bytes = packed(text);
    if (!(bytes instanceof Promise)) return bytes;
    this.#budget.add(owner, length);
    return bytes.finally(() => this.#budget.add(owner, -length));
  }

  /**
   * Returns what to send of a text, or of its bytes in gzip.
   *
   * @param isChange - the change is made and can no longer be refused: without space for the answer the connection ends
   *   without one, and the client asks again with its Idempotency-Key
   * @throws {ApiError} `service_unavailable` when unread answers leave no space for this one
   */
  bodyOf<Body extends string | Uint8Array<ArrayBuffer>>(owner: string, body: Body, isChange: boolean): Body | ReadableStream<Uint8Array> {
    if (body.length * UTF8_BYTES_PER_UNIT_MAX <= SMALL_BYTES) return body;
    const length = Buffer.byteLength(body);
    if (length <= SMALL_BYTES) return body;
    if (this.#budget.hasRoom(owner, length)) return this.#stream(owner, typeof body === "string" ? Buffer.from(body) : body);
    if (isChange) return endingWithoutAnswer();
    throw noRoom();
  }

  /**
   * Returns a stream of pieces, which are closed when it ends, however it ends.
   *
   * @throws {ApiError} `service_unavailable` when unread answers leave no space
   */
  streamOf(owner: string, pieces: Chunks): ReadableStream<Uint8Array> {
    const held = PIECES_HELD * PIECE_BYTES;
    if (!this.#budget.hasRoom(owner, held)) {
      void pieces.close();
      throw noRoom();
    }
    this.#budget.add(owner, held);
    let hasEnded = false;
    const end = async () => {
      if (hasEnded) return;
      hasEnded = true;
      this.#budget.add(owner, -held);
      await pieces.close();
    };
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            const piece = await pieces.next();
            if (hasEnded) return;
            if (piece !== undefined) return controller.enqueue(piece);
            await end();
            controller.close();
          } catch {
            // The connection ends before its answer does, which a client can tell from a whole one.
            await end();
            controller.error(undefined);
          }
        },
        cancel: end,
      },
      { highWaterMark: 0 },
    );
  }

  #stream(owner: string, bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array> {
    this.#budget.add(owner, bytes.length);
    const end = () => this.#budget.add(owner, -bytes.length);
    let sent = 0;
    return new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          if (sent < bytes.length) return controller.enqueue(bytes.subarray(sent, (sent += PIECE_BYTES)));
          end();
          controller.close();
        },
        cancel: end,
      },
      { highWaterMark: 0 },
    );
  }
}

/** Bun closes the connection, without a line on standard error as long as there is no reason. */
function endingWithoutAnswer(): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(undefined) }, { highWaterMark: 0 });
}

function noRoom(): ApiError {
  return new ApiError(
    "service_unavailable",
    "Too many bytes of answers are not read yet, of this API key or of all together. Nothing was changed. Read them first, ask for less, or try again.",
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}
