/**
 * The clock of a server that shares its database with others: all of them show the database's time.
 *
 * Its time comes from the clock that only counts on, set by the database's, so setting the system's clock changes nothing. The
 * database's time is read somewhere between question and answer; what the clock shows is only corrected as far as that proves it wrong.
 * Small corrections never make it step back: it stands still until the time has come.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../lib/log.ts";
import type { Task } from "../../../tasks/task.ts";

/** An ordinary quartz is off by less than 1 ms after that time. */
const MEASURE_MS = 10_000;
/** The clock is further off than the machines of one system should be. */
const OFFSET_WORTH_A_WARNING_MS = 1_000;
/** The clock rather steps back than stands still for longer. */
const STANDS_STILL_MS_MAX = 60_000;

export class DatabaseClock implements Clock {
  readonly #own: Clock;
  readonly #readTime: () => Promise<number>;
  /** Milliseconds to add to `elapsed()`. */
  #base: number;
  #shown = 0;
  #isMeasured = false;

  /** @param readTime - the database's time, in Unix milliseconds */
  constructor(own: Clock, readTime: () => Promise<number>) {
    this.#own = own;
    this.#readTime = readTime;
    this.#base = own.now() - own.elapsed();
  }

  now(): number {
    const now = Math.floor(this.#base + this.#own.elapsed());
    if (now > this.#shown || now < this.#shown - STANDS_STILL_MS_MAX) this.#shown = now;
    return this.#shown;
  }

  elapsed(): number {
    return this.#own.elapsed();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#own.sleep(ms, signal);
  }

  timer(ms: number, onTime: () => void): () => void {
    return this.#own.timer(ms, onTime);
  }

  /** Lead of the system's clock over the database's, in milliseconds. */
  get offsetMs(): number {
    return this.#own.now() - this.#own.elapsed() - this.#base;
  }

  /** Holds the clock against the database's. */
  async measure(): Promise<void> {
    const sentAt = this.#own.elapsed();
    const earliest = await this.#readTime();
    const answeredAt = this.#own.elapsed();
    const latest = earliest + answeredAt - sentAt;
    this.#base = Math.min(Math.max(this.#base, earliest - answeredAt), latest - answeredAt);
    // The time that it has shown before is this machine's alone: nothing was created at it.
    if (!this.#isMeasured) this.#shown = 0;
    this.#isMeasured = true;
  }

  /** Measures again and again, and warns once of a system whose clock is wrong. */
  task(log: Log): Task {
    let isWarned = false;
    return {
      name: "clock of the database",
      run: async () => {
        await this.measure();
        const isOff = Math.abs(this.offsetMs) >= OFFSET_WORTH_A_WARNING_MS;
        if (isOff && !isWarned)
          log.warn("the system's clock differs from that of the database, which is used", { ahead_ms: Math.round(this.offsetMs) });
        isWarned = isOff;
        return MEASURE_MS;
      },
    };
  }
}
