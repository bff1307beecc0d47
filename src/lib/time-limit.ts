/**
 * A limit on how long something may take, as a signal for what it takes long in.
 *
 * @module
 */
import type { Wait } from "./clock.ts";

export interface TimeLimit {
  /** Aborts when the time is over, or when the outer signal does. */
  readonly signal: AbortSignal;
  /** To be called when it is done, in time or not. */
  end(): void;
}

export function timeLimit(wait: Wait, ms: number, outer: AbortSignal): TimeLimit {
  const limit = new AbortController();
  const ended = new AbortController();
  const abort = () => limit.abort();
  outer.addEventListener("abort", abort);
  if (outer.aborted) abort();
  void wait(ms, ended.signal).then(() => {
    if (!ended.signal.aborted) abort();
  });
  return {
    signal: limit.signal,
    end: () => {
      ended.abort();
      outer.removeEventListener("abort", abort);
    },
  };
}

/** What the promise gives, or undefined once the signal aborts; for what cannot be ended itself. */
export function unlessAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const onAbort = () => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
