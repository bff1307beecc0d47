/**
 * Waits that take no time: short ones end at once and move the clock by what they would have taken; long ones, which are
 * limits of patience, end when the test moves the clock that far.
 *
 * @module
 */
import { STORE_WAIT_MS } from "../../src/embeddings/embeddings.ts";
import type { Wait } from "../../src/lib/clock.ts";
import { FakeClock } from "./clock.ts";

/** Below the shortest limit but one, above the longest pause. */
const SHORT_MS = 9_000;

export class FakeTimers {
  readonly clock = new FakeClock();
  /** The pauses that were made, in milliseconds, those of a few milliseconds left out. */
  readonly pauses: number[] = [];
  #waiting: { due: number; end: () => void }[] = [];

  readonly wait: Wait = (ms, signal) => {
    if (signal?.aborted === true) return Promise.resolve();
    if (ms <= SHORT_MS && ms !== STORE_WAIT_MS) {
      if (ms > 10) this.pauses.push(ms);
      this.advance(ms);
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const waiting = { due: this.clock.elapsed() + ms, end: resolve };
      this.#waiting.push(waiting);
      signal?.addEventListener("abort", () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        resolve();
      });
    });
  };

  advance(ms: number): void {
    this.clock.advance({ ms });
    const due = this.#waiting.filter((waiting) => waiting.due <= this.clock.elapsed());
    this.#waiting = this.#waiting.filter((waiting) => !due.includes(waiting));
    for (const { end } of due) end();
  }
}
