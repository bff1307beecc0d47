/**
 * When a delivery that failed is tried again. Pure: time and chance are arguments.
 *
 * @module
 */
import { HOUR_MS } from "../lib/duration.ts";

/** A wait is up to this share longer, so that what failed together does not come back together. */
const JITTER = 0.2;

/** A receiver cannot ask for more patience than this: deliveries are kept for 7 days. */
export const RETRY_AFTER_MS_MAX = 12 * HOUR_MS;

/**
 * The wait before the next attempt.
 *
 * @param failures - attempts of this schedule that have failed, 1 or more
 * @param retryAfterMs - what the receiver asked for; it can only lengthen the wait
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
