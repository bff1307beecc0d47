/**
 * Failures of work that is tried again after a pause, which grows with each in a row.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { HOUR_MS, MINUTE_MS } from "../lib/duration.ts";

const PAUSE_MS = 5 * MINUTE_MS;
const PAUSE_MS_MAX = HOUR_MS;

export class Attempts {
  readonly #clock: Clock;
  #inARow = 0;
  #failures = 0;
  #error: string | null = null;
  #retryAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** All since the start of the server. */
  get failures(): number {
    return this.#failures;
  }

  /** Reason why the last one failed; null once one has succeeded since. */
  get error(): string | null {
    return this.#error;
  }

  get isPaused(): boolean {
    return this.#clock.elapsed() < this.#retryAt;
  }

  /** @param problem - why it failed; undefined where it did not */
  end(problem: string | undefined): void {
    this.#error = problem ?? null;
    if (problem === undefined) {
      this.#inARow = 0;
      this.#retryAt = 0;
      return;
    }
    this.#failures++;
    this.#retryAt = this.#clock.elapsed() + Math.min(PAUSE_MS * 2 ** this.#inARow++, PAUSE_MS_MAX);
  }
}
