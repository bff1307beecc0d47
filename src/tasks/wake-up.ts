/**
 * A wait that can be cut short.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";

export class WakeUp {
  readonly #clock: Clock;
  #isCalled = false;
  #end: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the wait; when there is none, the next one ends at once. */
  now(): void {
    this.#isCalled = true;
    this.#end();
  }

  /** Resolves after this time, or sooner when `now` is called. */
  async after(ms: number): Promise<void> {
    if (!this.#isCalled) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancel = this.#clock.timer(ms, resolve);
      this.#end = resolve;
      await promise;
      cancel();
    }
    this.#isCalled = false;
  }
}
