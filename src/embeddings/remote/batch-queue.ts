/**
 * Gets texts embedded by a server that may be slow, busy, choosy or gone.
 *
 * ```
 * embed ─► queue ─► one request of many texts ─┬─ answered ──────────────► vectors
 *                        ▲      ▲              ├─ busy ─── backoff, retry
 *                        │      └──────────────┤
 *                        └─ halves ◄───────────┼─ refused, and the probe text is not: it is the texts
 *                                              └─ anything else ─────────► circuit open, until a probe succeeds
 * ```
 *
 * Queries and memories have a queue each, with its own requests in flight, so no query waits behind a thousand memories.
 * Texts that arrive while all requests of their queue are in flight share the next one. Every call ends before its deadline.
 * While the circuit is open calls fail at once with the reason; nothing here decides when to probe. Knows nothing of HTTP.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import { Deadline } from "../../lib/deadline.ts";
import { UTF8_BYTES_PER_UNIT_MAX } from "../../lib/text.ts";
import { closed, ProviderError, tooLate } from "./provider-error.ts";

export type TextKind = "query" | "memory";

/** OpenAI takes 300,000 tokens in a request, Text Embeddings Inference 32 texts unless told otherwise. */
const BATCH_TEXTS_MAX = 32;
const IN_FLIGHT_MAX_PER_QUEUE = 2;
const WAITING_MAX_PER_QUEUE = 1000;

/** OpenAI's models read 8,192 tokens of a text. Common tokenizers make one of 2.5 bytes or more of ordinary text. */
const TEXT_BYTES_MAX = 8192 * 2.5;
/** Every model reads this much, so a shorter text is not refused for its length, whatever the server says. */
const TEXT_BYTES_MIN = 160;

const DEADLINE_MS: Readonly<Record<TextKind, number>> = { query: 10_000, memory: 30_000 };
/** A local server may have to load the model first, and some start over when nobody waits for it. */
const PROBE_MS = 60_000;

/** The waits between attempts are 0.5 s, 1 s and 2 s, each shortened by up to a half by chance. */
const ATTEMPTS_MAX = 4;
const BACKOFF_MS = 500;

/** An open circuit may be probed after 5 s, 10 s, 20 s … 5 min. */
const PROBE_AFTER_MS = 5_000;
const PROBE_AFTER_MS_MAX = 300_000;
/** No user's text: what a server says of it can be shown. */
export const PROBE_TEXT = "The quick brown fox jumps over the lazy dog.";

/**
 * One request.
 *
 * @returns for each text its vector or why it has none; at least one vector
 * @throws {ProviderError}
 */
export type Ask = (texts: readonly string[], signal: AbortSignal) => Promise<(Float32Array | ProviderError)[]>;

export interface BatchQueueDeps {
  readonly clock: Clock;
  /** Chance, 0 to 1, for the pauses between attempts. */
  readonly random: () => number;
}

/** Reason why calls fail at once, and the `clock.elapsed()` before which a probe makes no sense. */
export interface OpenCircuit {
  readonly error: ProviderError;
  readonly retryAtMs: number;
}

/** A text to be embedded, and the promise that its caller has. It rejects at the deadline at the latest. */
class Call {
  readonly #outcome = Promise.withResolvers<Float32Array>();
  readonly vector = this.#outcome.promise;
  readonly #cancelTimer: () => void;
  text: string;
  /** By `clock.elapsed()`. */
  readonly deadline: number;
  state: "open" | "embedded" | "failed" = "open";

  constructor(text: string, limitMs: number, clock: Clock) {
    this.text = text;
    this.deadline = clock.elapsed() + limitMs;
    this.#cancelTimer = clock.timer(limitMs, () => this.settle(tooLate(limitMs)));
  }

  settle(outcome: Float32Array | Error): void {
    if (this.state !== "open") return;
    this.#cancelTimer();
    this.state = outcome instanceof Error ? "failed" : "embedded";
    if (outcome instanceof Error) this.#outcome.reject(outcome);
    else this.#outcome.resolve(outcome);
  }
}

interface Queue {
  waiting: Call[];
  inFlight: number;
}

export class BatchQueue {
  readonly #ask: Ask;
  readonly #deps: BatchQueueDeps;
  readonly #queues: Record<TextKind, Queue> = { query: { waiting: [], inFlight: 0 }, memory: { waiting: [], inFlight: 0 } };
  readonly #closing = new AbortController();
  /** Slow start: one text after a failure, then twice as many with each request that is answered. */
  #batchTextsMax = BATCH_TEXTS_MAX;
  /** Falls to the length at which a text was taken that had been refused for its length. */
  #textBytesMax = TEXT_BYTES_MAX;
  #openCircuit: OpenCircuit | undefined;
  #failuresInARow = 0;

  constructor(ask: Ask, deps: BatchQueueDeps) {
    this.#ask = ask;
    this.#deps = deps;
  }

  get openCircuit(): OpenCircuit | undefined {
    return this.#openCircuit;
  }

  /** @throws {ProviderError} at once while the circuit is open, and at the deadline at the latest */
  async embed(text: string, kind: TextKind): Promise<Float32Array> {
    if (this.#closing.signal.aborted) throw closed();
    if (this.#openCircuit !== undefined) throw this.#openCircuit.error;
    const queue = this.#queues[kind];
    if (queue.waiting.length >= WAITING_MAX_PER_QUEUE) {
      throw new ProviderError("rate_limited", "Too many texts are waiting for the embedding provider.");
    }
    const call = new Call(firstBytes(text, this.#textBytesMax), DEADLINE_MS[kind], this.#deps.clock);
    // Calls of the same moment follow before the microtask.
    if (queue.waiting.push(call) === 1) queueMicrotask(() => this.#start(queue));
    return call.vector;
  }

  /** Asks once for the probe text, and closes or opens the circuit accordingly. */
  async probe(): Promise<void> {
    try {
      await this.#within(PROBE_MS, (signal) => this.#askProbeText(signal));
    } catch (error) {
      if (error instanceof ProviderError) this.#open(error);
      throw error;
    }
    this.#openCircuit = undefined;
  }

  close(): void {
    this.#closing.abort();
    this.#failWaiting(closed());
  }

  #start(queue: Queue): void {
    while (queue.inFlight < IN_FLIGHT_MAX_PER_QUEUE && queue.waiting.length > 0) {
      queue.inFlight++;
      void this.#serve(queue.waiting.splice(0, this.#batchTextsMax)).finally(() => {
        queue.inFlight--;
        this.#start(queue);
      });
    }
  }

  /** Settles every call, and opens the circuit if the server is to blame. */
  async #serve(calls: Call[]): Promise<void> {
    try {
      await this.#within(calls.at(-1)!.deadline - this.#deps.clock.elapsed(), (signal) => this.#embedBatch(calls, signal, false));
    } catch (error) {
      const reason = error instanceof Error ? error : new Error(String(error));
      if (reason instanceof ProviderError && this.#openCircuit === undefined && !this.#closing.signal.aborted) this.#open(reason);
      for (const call of calls) call.settle(reason);
    }
  }

  /**
   * Embeds in one request, or where texts were refused, in halves.
   *
   * @param probedOk - the server has taken the probe text since it refused one of these, so it refuses them for themselves
   * @throws {ProviderError} when the server is to blame; calls are then left unsettled
   */
  async #embedBatch(calls: readonly Call[], signal: AbortSignal, probedOk: boolean): Promise<void> {
    let refusal: ProviderError;
    try {
      return await this.#embedWithRetries(calls, signal, probedOk);
    } catch (error) {
      if (!(error instanceof ProviderError) || error.facts.inputRejected !== true) throw error;
      refusal = error;
    }
    // If that fails too, it is the server, and what it says then quotes no user.
    if (!probedOk) await this.#askProbeText(signal);
    if (calls.length === 1) return this.#embedRefused(calls[0]!, refusal, signal);
    const middle = Math.ceil(calls.length / 2);
    await this.#embedBatch(calls.slice(0, middle), signal, true);
    await this.#embedBatch(calls.slice(middle), signal, true);
  }

  /** A text that was refused for itself: half of it is embedded if it is said to be too long. */
  async #embedRefused(call: Call, refusal: ProviderError, signal: AbortSignal): Promise<void> {
    const half = Buffer.byteLength(call.text) / 2;
    if (refusal.facts.isTooLong !== true || half < TEXT_BYTES_MIN) return call.settle(refusal);
    call.text = firstBytes(call.text, half);
    await this.#embedBatch([call], signal, true);
    if (call.state === "embedded") this.#textBytesMax = Math.min(this.#textBytesMax, half);
  }

  async #embedWithRetries(calls: readonly Call[], signal: AbortSignal, probedOk: boolean): Promise<void> {
    const { clock, random } = this.#deps;
    for (let attempt = 1; ; attempt++) {
      const open = calls.filter(({ state }) => state === "open");
      if (open.length === 0) return;
      try {
        const texts = open.map(({ text }) => text);
        const outcomes = await this.#ask(texts, signal);
        open.forEach((call, i) => call.settle(outcomes[i]!));
        this.#failuresInARow = 0;
        this.#batchTextsMax = Math.min(BATCH_TEXTS_MAX, 2 * this.#batchTextsMax);
        return;
      } catch (error) {
        if (!(error instanceof ProviderError)) throw error;
        const { isTransient, inputRejected, retryAfterMs = 0 } = error.facts;
        const pauseMs = Math.max(retryAfterMs, BACKOFF_MS * 2 ** (attempt - 1) * (0.5 + random() / 2));
        const attemptsMax = inputRejected === true && probedOk ? 1 : ATTEMPTS_MAX;
        if (isTransient !== true || attempt >= attemptsMax || clock.elapsed() + pauseMs >= calls.at(-1)!.deadline) throw error;
        await clock.sleep(pauseMs, signal);
      }
    }
  }

  async #askProbeText(signal: AbortSignal): Promise<void> {
    const [outcome] = await this.#ask([PROBE_TEXT], signal);
    if (outcome instanceof ProviderError) throw outcome;
  }

  /** Runs what ends when its signal aborts: after that time, or when this is closed. */
  async #within(ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    using deadline = new Deadline(this.#deps.clock, ms, this.#closing.signal);
    try {
      await work(deadline.signal);
    } catch (error) {
      if (this.#closing.signal.aborted) throw closed();
      throw deadline.signal.aborted ? tooLate(ms) : error;
    }
  }

  #open(error: ProviderError): void {
    const afterMs = Math.min(PROBE_AFTER_MS_MAX, PROBE_AFTER_MS * 2 ** Math.min(this.#failuresInARow, 16));
    this.#failuresInARow++;
    this.#openCircuit = { error, retryAtMs: this.#deps.clock.elapsed() + Math.max(afterMs, error.facts.retryAfterMs ?? 0) };
    this.#batchTextsMax = 1;
    this.#failWaiting(error);
  }

  #failWaiting(error: ProviderError): void {
    for (const { waiting } of Object.values(this.#queues)) for (const call of waiting.splice(0)) call.settle(error);
  }
}

/** The longest beginning of a text that has at most this many bytes of UTF-8; no character is split. */
function firstBytes(text: string, bytesMax: number): string {
  if (UTF8_BYTES_PER_UNIT_MAX * text.length <= bytesMax) return text;
  return text.slice(0, new TextEncoder().encodeInto(text, new Uint8Array(bytesMax)).read);
}
