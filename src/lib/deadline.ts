/**
 * Limits on how long something may take.
 *
 * @module
 */
import type { Clock } from "./clock.ts";

/** To be disposed of when the work is done, in time or not. */
export class Deadline implements Disposable {
  readonly #limit = new AbortController();
  readonly #abort = () => this.#limit.abort();
  readonly #outer: AbortSignal | undefined;
  readonly #cancel: () => void;

  /** @param outer - a signal that ends the work, too */
  constructor(clock: Clock, ms: number, outer?: AbortSignal) {
    this.#outer = outer;
    outer?.addEventListener("abort", this.#abort);
    if (outer?.aborted === true) this.#abort();
    this.#cancel = clock.timer(ms, this.#abort);
  }

  /** Aborts when the time is over, or when the outer signal does. */
  get signal(): AbortSignal {
    return this.#limit.signal;
  }

  [Symbol.dispose](): void {
    this.#cancel();
    this.#outer?.removeEventListener("abort", this.#abort);
  }
}

/** Resolves with what the promise gives, or with undefined once the signal aborts. The work itself continues. */
export function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** The same for a limit of that many milliseconds. */
export async function within<Value>(clock: Clock, ms: number, promise: Promise<Value>): Promise<Value | undefined> {
  using deadline = new Deadline(clock, ms);
  return await unlessAborted(promise, deadline.signal);
}
