/**
 * When a delivery that failed is tried again. Pure: time and chance are arguments.
 *
 * @module
 */
const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** 27 h 35 min in all: long enough to outlive a receiver's bad night. */
export const RETRY_SCHEDULE_MS: readonly number[] = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
];

/** A wait is up to this share longer, so that what failed together does not come back together. */
const JITTER = 0.2;

/** A receiver cannot ask for more patience than this: deliveries are kept for 7 days. */
const RETRY_AFTER_MAX_MS = 12 * HOUR_MS;

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

/** Milliseconds that a Retry-After header asks for, in seconds or as a date; undefined for none that makes sense. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  const ms = /^\d{1,12}$/.test(text) ? Number(text) * SECOND_MS : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), RETRY_AFTER_MAX_MS);
}

const UNITS: Record<string, number> = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: 24 * HOUR_MS };

/** `200ms`, `15s`, `5m`, `2h`, `1d`; undefined for anything else and for nothing. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text.trim());
  const ms = Number(match?.[1]) * (UNITS[match?.[2] ?? ""] ?? 0);
  return ms > 0 && ms <= 7 * 24 * HOUR_MS ? ms : undefined;
}

/** `200ms,1s,5m`: each wait in turn. */
export function parseSchedule(text: string): number[] | undefined {
  const waits = text.split(",").map(parseDuration);
  return waits.every((wait) => wait !== undefined) ? waits : undefined;
}
