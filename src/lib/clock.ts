/**
 * Time as an argument: reading it, pausing and limits. A test hands in a clock that it moves.
 *
 * @module
 */
export interface Clock {
  /** Unix milliseconds. May step back when the system's clock is set. */
  now(): number;
  /** Milliseconds that only rise, for measuring. */
  elapsed(): number;
  /** Resolves after that many milliseconds, 24 days at most, or as soon as the signal aborts. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls back after that many milliseconds, for a limit that is seldom reached. @returns cancels it */
  timer(ms: number, onTime: () => void): () => void;
}

/**
 * The last time that a clock may show. What follows from it, at most the seven years for which traces are kept, still has a
 * key in the store, where times end in 2081.
 */
const LAST_TIME_MS = Date.UTC(2074, 0, 1);

/** The nearest whole millisecond that the store can hold, 1970 to 2073. */
export function boundedTime(ms: number): number {
  // NaN is not greater than 0 either.
  return ms > 0 ? Math.floor(Math.min(ms, LAST_TIME_MS)) : 0;
}

/** Returns a clock that shows only such times, wherever the system's is set. */
export function bounded(clock: Clock): Clock {
  return {
    now: () => boundedTime(clock.now()),
    elapsed: () => clock.elapsed(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    timer: (ms, onTime) => clock.timer(ms, onTime),
  };
}

/** Longer timers fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const end = () => {
        cancel();
        signal?.removeEventListener("abort", end);
        resolve();
      };
      const cancel = systemClock.timer(ms, end);
      signal?.addEventListener("abort", end);
    }),
  timer: (ms, onTime) => {
    const timer = setTimeout(onTime, Math.min(ms, TIMER_MS_MAX));
    return () => clearTimeout(timer);
  },
};

/** Long works that yield to each other and to requests: all of them together have a few milliseconds of each turn of the event loop. */
class Turns {
  /** Beyond it goes the last step of one, whatever that takes. */
  static readonly #TURN_MS = 5;
  /** With short steps more would have time in a turn, and are only asked for it here. */
  static readonly #RESUMED_MAX = 16;
  /** Callbacks of those that wait, in the order in which they came. */
  readonly #waiting: (() => void)[] = [];
  #endsAt: number | undefined;
  /** Calls of `#resume` that are to come. */
  #calls = 0;

  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#callSoon();
    });
  }

  #callSoon(): void {
    if (this.#calls >= Math.min(this.#waiting.length, Turns.#RESUMED_MAX)) return;
    this.#calls++;
    setImmediate(() => this.#resume());
  }

  #resume(): void {
    this.#calls--;
    const now = performance.now();
    if (this.#endsAt === undefined) {
      this.#endsAt = now + Turns.#TURN_MS;
      setImmediate(() => (this.#endsAt = undefined));
    }
    if (now < this.#endsAt) this.#waiting.shift()?.();
    this.#callSoon();
  }
}

const turns = new Turns();

/** Resolves after the event loop has served what else waits: long work yields to requests by this. */
export const nextTurn = (): Promise<void> => turns.next();

/** Calls back in the next turn of the event loop. */
export function afterThisTurn(onTurn: () => void): void {
  setImmediate(onTurn);
}

/** Calls back in the second next turn of the event loop: by then it has served whatever had arrived. */
export function afterNextTurn(onTurn: () => void): void {
  setImmediate(() => setImmediate(onTurn));
}
