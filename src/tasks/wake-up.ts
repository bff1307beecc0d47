/**
 * A wait that can be cut short.
 *
 * @module
 */
import type { Wait } from "../lib/clock.ts";

export class WakeUp {
  readonly #wait: Wait;
  #isCalled = false;
  #end: () => void = () => undefined;

  constructor(wait: Wait) {
    this.#wait = wait;
  }

  /** Ends the wait; when there is none, the next one ends at once. */
  now(): void {
    this.#isCalled = true;
    this.#end();
  }

  /** Resolves after this time, or sooner when `now` is called. */
  async after(ms: number): Promise<void> {
    if (!this.#isCalled) {
      const woken = new AbortController();
      this.#end = () => woken.abort();
      await this.#wait(ms, woken.signal);
    }
    this.#isCalled = false;
  }
}
