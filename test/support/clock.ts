/**
 * A clock that stands still until a test moves it, or a pause that takes no time otherwise. Limits end when it is moved that far.
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
  #now: number;
  #elapsed = 0;
  #timers: Timer[] = [];
  #looks: (() => void)[] = [];

  constructor(start = "2026-05-07T08:00:00.000Z") {
    this.#now = Date.parse(start);
  }

  now(): number {
    return this.#now;
  }

  elapsed(): number {
    return this.#elapsed;
  }

  /** Takes no time but the clock's. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    if (ms > COUNTED_PAUSE_MS) this.pauses.push(ms);
    this.advance({ ms });
    return Promise.resolve();
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

  /** The clock of another machine, which shows another time. */
  ahead(ms: number): Clock {
    return {
      now: () => this.now() + ms,
      elapsed: () => this.elapsed() + ms,
      sleep: (pause, signal) => this.sleep(pause, signal),
      timer: (wait, onTime) => this.timer(wait, onTime),
    };
  }

  /** Sets the system's clock; elapsed time does not change. */
  set(instant: string | number): void {
    this.#now = typeof instant === "number" ? instant : Date.parse(instant);
  }
}
