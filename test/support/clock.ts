/**
 * A clock that stands still until it is moved.
 *
 * @module
 */
import type { Clock } from "../../src/lib/clock.ts";

export class FakeClock implements Clock {
  #now: number;
  #elapsed = 0;

  constructor(start = "2026-05-07T08:00:00.000Z") {
    this.#now = Date.parse(start);
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  advance(time: { ms?: number; seconds?: number; hours?: number; days?: number }): void {
    const ms = (time.ms ?? 0) + (time.seconds ?? 0) * 1000 + (time.hours ?? 0) * 3_600_000 + (time.days ?? 0) * 86_400_000;
    this.#now += ms;
    this.#elapsed += ms;
  }

  /** The system's clock is set: what measures goes on. */
  set(instant: string | number): void {
    this.#now = typeof instant === "number" ? instant : Date.parse(instant);
  }
}
