/**
 * Times at which a failed delivery is tried again. Pure.
 *
 * @module
 */
import { HOUR_MS } from "../lib/duration.ts";

/** A delay is up to this share longer, so that deliveries that failed together do not come back together. */
const JITTER = 0.2;

/** A receiver can ask for no longer delay: deliveries are kept for 7 days. */
export const RETRY_AFTER_MS_MAX = 12 * HOUR_MS;

/**
 * @param failures - failed attempts of this schedule, 1 or more
 * @param retryAfterMs - what the receiver asked for; it can only lengthen the delay
 * @param random - 0 (included) to 1 (excluded)
 * @returns undefined when the schedule is exhausted
 */
export function retryDelayMs(
  schedule: readonly number[],
  failures: number,
  retryAfterMs: number | undefined,
  random: number,
): number | undefined {
  const wait = schedule[failures - 1];
  return wait === undefined ? undefined : Math.max(Math.round(wait * (1 + JITTER * random)), retryAfterMs ?? 0);
}
