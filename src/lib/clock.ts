/**
 * The only place that reads the time and waits for it to pass, so that a test can move it.
 *
 * @module
 */
export interface Clock {
  /** Unix milliseconds. May step back when the system's clock is set. */
  now(): number;
  /** Milliseconds that only rise, for measuring. */
  elapsed(): number;
}

/**
 * The last time that a clock may show. What follows from it, at most the seven years for which traces are kept, still has a
 * key in the store, where times end in 2081.
 */
const LAST_TIME_MS = Date.UTC(2074, 0, 1);

/**
 * A clock that shows a whole millisecond the store can hold, wherever the system's is set: 1970 to 2073. What is outside becomes
 * the nearer end.
 */
export function bounded(clock: Clock): Clock {
  return {
    now: () => {
      const now = clock.now();
      // Not a number is not greater than 0 either.
      return now > 0 ? Math.floor(Math.min(now, LAST_TIME_MS)) : 0;
    },
    elapsed: () => clock.elapsed(),
  };
}

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
};

/** Longer timers fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Resolves after that many milliseconds (at most 24 days), or sooner when the signal aborts: never rejects. */
export type Wait = (ms: number, signal?: AbortSignal) => Promise<void>;

export const wait: Wait = (ms, signal) =>
  new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, Math.min(ms, TIMER_MS_MAX));
    signal?.addEventListener("abort", done);
  });

/** Resolves when what else waits for this thread has had its turn: for long work to be done between requests. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
