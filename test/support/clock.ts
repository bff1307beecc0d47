/**
 * A clock that stands still until it is moved.
 *
 * @module
 */
import type { Clock } from "../../src/lib/clock.ts";

/** Shorter pauses only gather what comes together: tests do not count them. */
const COUNTED_PAUSE_MS = 10;

interface Timer {
  readonly ms: number;
  readonly due: number;
  readonly onTime: () => void;
}

export class FakeClock implements Clock {
  /** Every pause made, in milliseconds, but for the shortest. */
  readonly pauses: number[] = [];
  readonly #skipsPauses: boolean;
  #now: number;
  #elapsed = 0;
  #timers: Timer[] = [];
  #looks: (() => void)[] = [];

  /** @param options.skipsPauses - a pause ends at once and moves the clock by itself; without it the test moves the clock that far */
  constructor(start = "2026-05-07T08:00:00.000Z", { skipsPauses = false } = {}) {
    this.#now = Date.parse(start);
    this.#skipsPauses = skipsPauses;
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    if (ms > COUNTED_PAUSE_MS) this.pauses.push(ms);
    return new Promise((resolve) => {
      const cancel = this.timer(ms, resolve);
      signal?.addEventListener("abort", () => {
        cancel();
        resolve();
      });
      if (this.#skipsPauses) this.advance({ ms });
    });
  }

  timer(ms: number, onTime: () => void): () => void {
    const timer = { ms, due: this.#elapsed + ms, onTime };
    this.#timers.push(timer);
    for (const look of this.#looks.splice(0)) look();
    return () => void (this.#timers = this.#timers.filter((other) => other !== timer));
  }

  /** Resolves when somebody waits, or limits something, for that many milliseconds. */
  async waiting(ms: number): Promise<void> {
    while (!this.#timers.some((timer) => timer.ms === ms)) await new Promise<void>((resolve) => this.#looks.push(resolve));
  }

  advance(time: { ms?: number; seconds?: number; hours?: number; days?: number }): void {
    const ms = (time.ms ?? 0) + (time.seconds ?? 0) * 1000 + (time.hours ?? 0) * 3_600_000 + (time.days ?? 0) * 86_400_000;
    this.#now += ms;
    this.#elapsed += ms;
    const due = this.#timers.filter((timer) => timer.due <= this.#elapsed);
    this.#timers = this.#timers.filter((timer) => !due.includes(timer));
    for (const { onTime } of due.toSorted((a, b) => a.due - b.due)) onTime();
  }

  /** The system's clock is set: what measures goes on. */
  set(instant: string | number): void {
    this.#now = typeof instant === "number" ? instant : Date.parse(instant);
  }
}
