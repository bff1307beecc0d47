/**
 * The operator's settings for deliveries, from the texts of the API and the environment to numbers. Pure.
 *
 * @module
 */
import { DAY_MS, HOUR_MS, parseDuration } from "../lib/duration.ts";
import { invariant } from "../lib/invariant.ts";
import { LIMITS } from "../lib/limits.ts";

export interface WebhookPolicy {
  /** True if webhooks may lead into private networks, and to this machine wherever the server listens. */
  readonly allowPrivate: boolean;
  /** An attempt has this long to be answered. */
  readonly timeoutMs: number;
  /** The delay before each further attempt. */
  readonly schedule: readonly number[];
}

/** Syntax of `parseTimeout` and `parseSchedule`, in words. */
export const TIMEOUT_FORM = "a time such as 15s or 500ms, of at most 1h";
export const SCHEDULE_FORM = "times such as 200ms,5s,5m,2h: at most 20, and 7d in all";

/** A receiver that hangs takes one of the few places for attempts for this long. */
const TIMEOUT_MS_MAX = HOUR_MS;
const RETRIES_MAX = 20;
/** Deliveries are kept for no longer. */
const SCHEDULE_MS_MAX = LIMITS.deliveryDays * DAY_MS;

/** @param timeout, retrySchedule - texts that were checked when they were set */
export function webhookPolicy(allowPrivate: boolean, timeout: string, retrySchedule: string): WebhookPolicy {
  const [timeoutMs, schedule] = [parseTimeout(timeout), parseSchedule(retrySchedule)];
  invariant(timeoutMs !== undefined && schedule !== undefined, "times of webhooks are checked when they are set");
  return { allowPrivate, timeoutMs, schedule };
}

/** The time limit of an attempt in milliseconds; undefined for any other text. */
export function parseTimeout(text: string): number | undefined {
  const ms = parseDuration(text);
  return ms !== undefined && ms <= TIMEOUT_MS_MAX ? ms : undefined;
}

/** The delays of `200ms,1s,5m` in milliseconds; undefined for any other text. */
export function parseSchedule(text: string): number[] | undefined {
  const waits = text.split(",").map(parseDuration);
  if (waits.length > RETRIES_MAX || !waits.every((wait) => wait !== undefined)) return undefined;
  return waits.reduce((sum, wait) => sum + wait, 0) <= SCHEDULE_MS_MAX ? waits : undefined;
}
