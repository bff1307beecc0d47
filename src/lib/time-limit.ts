/**
 * Limits on how long something may take.
 *
 * @module
 */
import type { Clock } from "./clock.ts";

export interface TimeLimit {
  /** Aborts when the time is over, or when the outer signal does. */
  readonly signal: AbortSignal;
  /** To be called when the work is done, in time or not. */
  end(): void;
}

export function timeLimit(clock: Clock, ms: number, outer?: AbortSignal): TimeLimit {
  const limit = new AbortController();
  const abort = () => limit.abort();
  outer?.addEventListener("abort", abort);
  if (outer?.aborted === true) abort();
  const cancel = clock.timer(ms, abort);
  return {
    signal: limit.signal,
    end: () => {
      cancel();
      outer?.removeEventListener("abort", abort);
    },
  };
}

/** Resolves with what the promise gives, or with undefined once the signal aborts. The work itself continues. */
export function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** The same for a limit of that many milliseconds. */
export function within<Value>(clock: Clock, ms: number, promise: Promise<Value>): Promise<Value | undefined> {
  const limit = timeLimit(clock, ms);
  return unlessAborted(promise, limit.signal).finally(() => limit.end());
}
