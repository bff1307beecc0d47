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

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
};

/** Resolves after so many milliseconds, or sooner when the signal aborts: never rejects. */
export type Wait = (ms: number, signal?: AbortSignal) => Promise<void>;

export const wait: Wait = (ms, signal) =>
  new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });

/** Resolves when what else waits for this thread has had its turn: for long work to be done between requests. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
