/**
 * The only place that reads the time, so that a test can move it.
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
