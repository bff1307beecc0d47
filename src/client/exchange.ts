/**
 * A request and its answer under a time limit, which is set again while a long answer is read.
 *
 * @module
 */
import { CairnError } from "./errors.ts";

/** A timer that is set to more runs at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** @throws {RangeError} */
export function checkTimeout(ms: number): void {
  if (typeof ms !== "number" || !(ms >= 0)) throw new RangeError(`timeoutMs must be a number of at least 0; got ${String(ms)}.`);
}

export class Exchange {
  readonly #address: string;
  readonly #given: AbortSignal | undefined;
  readonly #controller = new AbortController();
  readonly #abort = () => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** @param address - of the server, for errors */
  constructor(address: string, signal: AbortSignal | undefined) {
    this.#address = address;
    this.#given = signal;
    signal?.throwIfAborted();
    signal?.addEventListener("abort", this.#abort);
  }

  /** Ends with the limit and with the signal that was given. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** @param ms - Infinity for no limit @throws {RangeError} for a time that is none */
  limit(ms: number): void {
    checkTimeout(ms);
    clearTimeout(this.#timer);
    if (ms !== Infinity) this.#timer = setTimeout(this.#abort, Math.min(ms, TIMER_MS_MAX));
  }

  /** Waits for a part of it. @throws {CairnError} when that does not come, or the reason of the signal that was given */
  async part<Result>(result: Promise<Result>): Promise<Result> {
    try {
      return await result;
    } catch (cause) {
      this.#given?.throwIfAborted();
      if (cause instanceof CairnError) throw cause;
      if (this.signal.aborted) throw new CairnError(`${this.#address} did not answer in time.`, { code: "timeout", cause });
      throw new CairnError(`${this.#address} cannot be reached.`, { code: "connection_failed", cause });
    }
  }

  /** Ends what is not read to its end. */
  close(): void {
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#abort);
    this.#abort();
  }
}
