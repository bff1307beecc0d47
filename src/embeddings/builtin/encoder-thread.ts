/**
 * The request thread's side of the encoder: texts to vectors as promises, each of which is settled, whatever becomes of the thread.
 *
 * The thread is started with the first text. One that ends by itself is replaced, and encodes again what was under way; if that ends one
 * once more, the texts fail, and the next thread is started after a pause. What waits is bounded for each API key and in all. It is
 * never terminated, it ends by itself: native code may be at work in it.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import { within } from "../../lib/deadline.ts";
import { closed, ProviderError } from "../remote/provider-error.ts";
import type { FromEncoder, ToEncoder } from "./protocol.ts";

export interface EncodedText {
  readonly text: string;
  readonly isQuery: boolean;
  /** Owner of the text: owners get their turns alike. */
  readonly owner: string;
  /** Once it aborts, nobody waits any more. */
  readonly signal?: AbortSignal | undefined;
}

const WAITING_MAX_PER_OWNER = 256;
const WAITING_MAX = 4_096;

/** Number of threads that a text is given to before it is to blame for their ends. */
const ATTEMPTS_MAX = 2;
/** After a thread that could not be kept texts fail at once for so long. */
const PAUSE_MS = 5_000;
/** A thread that has not ended by then is left alone. */
const CLOSE_MAX_MS = 5_000;

class Call {
  readonly #outcome = Promise.withResolvers<Float32Array | undefined>();
  readonly vector = this.#outcome.promise;
  readonly #onAbort = () => this.cancel();
  attempts = 0;

  constructor(
    readonly asked: EncodedText,
    readonly number: number,
    readonly cancel: () => void,
  ) {
    asked.signal?.addEventListener("abort", this.#onAbort);
  }

  settle(outcome: Float32Array | Error | undefined): void {
    this.asked.signal?.removeEventListener("abort", this.#onAbort);
    if (outcome instanceof Error) this.#outcome.reject(outcome);
    else this.#outcome.resolve(outcome);
  }
}

interface Thread {
  readonly worker: Worker;
  readonly ended: PromiseWithResolvers<void>;
}

export class EncoderThread {
  readonly #clock: Clock;
  readonly #newWorker: () => Worker;
  readonly #onFailure: (reason: string) => void;
  readonly #calls = new Map<number, Call>();
  readonly #waitingOf = new Map<string, number>();
  #thread: Thread | undefined;
  #lastNumber = 0;
  #isClosed = false;
  #failure: { readonly error: ProviderError; readonly retryAtMs: number } | undefined;

  /** @param onFailure - told why a thread has ended */
  constructor(clock: Clock, onFailure: (reason: string) => void, newWorker: () => Worker = theWorker) {
    this.#clock = clock;
    this.#onFailure = onFailure;
    this.#newWorker = newWorker;
  }

  /** Set while texts fail at once, since the encoder cannot be kept running. */
  get failure(): ProviderError | undefined {
    return this.#failure?.error;
  }

  /** Starts the thread before there is a text, so that the first one does not wait for that. */
  open(): void {
    if (!this.#isClosed) this.#thread ??= this.#start();
  }

  /** Number of texts that wait. */
  get waiting(): number {
    return this.#calls.size;
  }

  /**
   * Encodes a text in its turn.
   *
   * @returns undefined for a text without a character that the encoder knows
   * @throws {ProviderError}
   */
  async encode(asked: EncodedText): Promise<Float32Array | undefined> {
    if (this.#isClosed || asked.signal?.aborted === true) throw closed();
    if (this.#failure !== undefined && this.#clock.elapsed() < this.#failure.retryAtMs) throw this.#failure.error;
    const { owner } = asked;
    const ofOwner = this.#waitingOf.get(owner) ?? 0;
    if (ofOwner >= WAITING_MAX_PER_OWNER || this.#calls.size >= WAITING_MAX) {
      throw new ProviderError("rate_limited", "Too many texts are waiting for the built-in encoder.");
    }
    const number = ++this.#lastNumber;
    const call = new Call(asked, number, () => {
      this.#send({ kind: "cancel", call: number });
      this.#take(number)?.settle(closed());
    });
    this.#calls.set(number, call);
    this.#waitingOf.set(owner, ofOwner + 1);
    this.#give(call);
    return call.vector;
  }

  /** Ends the thread; what waits fails. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#failAll(closed());
    const thread = this.#thread;
    if (thread === undefined) return;
    thread.worker.ref();
    this.#send({ kind: "close" });
    await within(this.#clock, CLOSE_MAX_MS, thread.ended.promise);
    thread.worker.unref();
  }

  #give(call: Call): void {
    call.attempts++;
    const { text, owner, isQuery } = call.asked;
    this.#thread ??= this.#start();
    this.#send({ kind: "encode", call: call.number, text, owner, isQuery });
  }

  #start(): Thread {
    const thread = { worker: this.#newWorker(), ended: Promise.withResolvers<void>() };
    const { worker } = thread;
    worker.addEventListener("message", ({ data }: MessageEvent<FromEncoder>) => this.#receive(thread, data));
    worker.addEventListener("error", ({ message }) => this.#end(thread, message));
    worker.addEventListener("close", () => this.#end(thread, "the thread has ended"));
    worker.unref();
    return thread;
  }

  #send(message: ToEncoder): void {
    this.#thread?.worker.postMessage(message);
  }

  #receive(thread: Thread, message: FromEncoder): void {
    switch (message.kind) {
      case "ready":
        this.#failure = undefined;
        break;
      case "vector":
        this.#take(message.call)?.settle(message.vector);
        break;
      case "failed":
        this.#take(message.call)?.settle(
          new ProviderError("rejected", `The built-in encoder has failed: ${message.reason}`, { inputRejected: true }),
        );
        break;
      case "fatal":
        this.#end(thread, message.reason);
        break;
      case "closed":
        this.#end(thread, undefined);
        break;
    }
  }

  #take(number: number): Call | undefined {
    const call = this.#calls.get(number);
    if (call === undefined) return undefined;
    this.#calls.delete(number);
    const { owner } = call.asked;
    const left = (this.#waitingOf.get(owner) ?? 0) - 1;
    if (left > 0) this.#waitingOf.set(owner, left);
    else this.#waitingOf.delete(owner);
    return call;
  }

  /** @param reason - undefined after `close` */
  #end(thread: Thread, reason: string | undefined): void {
    thread.ended.resolve();
    if (this.#thread !== thread) return;
    this.#thread = undefined;
    if (reason === undefined || this.#isClosed) return;
    this.#onFailure(reason);
    const waiting = Array.from(this.#calls.values());
    if (waiting.every(({ attempts }) => attempts < ATTEMPTS_MAX)) {
      for (const call of waiting) this.#give(call);
      return;
    }
    const error = new ProviderError("unreachable", `The built-in encoder has ended: ${reason}`);
    this.#failure = { error, retryAtMs: this.#clock.elapsed() + PAUSE_MS };
    this.#failAll(error);
  }

  #failAll(error: ProviderError): void {
    for (const number of Array.from(this.#calls.keys())) this.#take(number)?.settle(error);
  }
}

const theWorker = () => new Worker(new URL("./encoder-worker.ts", import.meta.url).href);
