/**
 * Bytes that a reader of a stream was sent and has not taken yet.
 *
 * @module
 */
/** Bytes that a reader may have been sent and not taken yet. Bun holds as much again, in a buffer of the socket of up to 128 KiB. */
export const UNREAD_BYTES_MAX = 64 * 1024;
/** Bytes that are sent at once: Bun holds it a second time until the socket has taken it. */
const PIECE_BYTES = 32 * 1024;

export class UnreadBytes {
  readonly stream: ReadableStream<Uint8Array>;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #queued = 0;
  #hasEnded = false;
  readonly #waiting: { readonly until: number; readonly onTaken: () => void }[] = [];

  /** @param source - `pull`: called when there is room; `cancel`: when the reader is gone */
  constructor(source: { pull(): Promise<void>; cancel(): void }) {
    const start = (controller: ReadableStreamDefaultController<Uint8Array>) => void (this.#controller = controller);
    const pull = () => {
      this.#reportTaken();
      return source.pull();
    };
    this.stream = new ReadableStream<Uint8Array>(
      { start, pull, cancel: () => source.cancel() },
      new ByteLengthQueuingStrategy({ highWaterMark: UNREAD_BYTES_MAX }),
    );
  }

  /** Number of bytes more that may wait for the reader. */
  get room(): number {
    return this.#controller.desiredSize ?? 0;
  }

  get isEmpty(): boolean {
    return this.room === UNREAD_BYTES_MAX;
  }

  /** Number of bytes that the reader has taken. */
  get taken(): number {
    return this.#queued - (UNREAD_BYTES_MAX - this.room);
  }

  /** Calls back once the reader has taken all that it was sent by now, or the stream has ended. */
  whenTaken(onTaken: () => void): void {
    this.#waiting.push({ until: this.#queued, onTaken });
  }

  #reportTaken(): void {
    while (this.#waiting.length > 0 && this.#waiting[0]!.until <= this.taken) this.#waiting.shift()!.onTaken();
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Copies them piece by piece: a view would hold all of what it is of. */
  send(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.byteLength && !this.#hasEnded; at += PIECE_BYTES)
      this.sendHeld(new Uint8Array(bytes.subarray(at, at + PIECE_BYTES)));
  }

  sendText(text: string): void {
    this.send(new TextEncoder().encode(text));
  }

  /** Avoids a copy of what is held anyway. */
  sendHeld(bytes: Uint8Array): void {
    if (this.#hasEnded) return;
    this.#queued += bytes.byteLength;
    this.#controller.enqueue(bytes);
  }

  /** Takes nothing more. */
  stop(): void {
    this.#hasEnded = true;
    for (const { onTaken } of this.#waiting.splice(0)) onTaken();
  }

  close(): void {
    this.#controller.close();
  }

  /** Without a reason, with which Bun would write a line to standard error. */
  fail(): void {
    this.#controller.error(undefined);
  }
}
