/**
 * The operator's settings for deliveries, from the texts of the API and the environment to numbers. Pure.
 *
 * @module
 */
import { DAY_MS, HOUR_MS, parseDuration } from "../lib/duration.ts";
import { invariant } from "../lib/invariant.ts";
import { LIMITS } from "../lib/limits.ts";

/** As in the API; times and waits are texts as the environment has them, too. */
export interface WebhookSettings {
  allow_private?: boolean;
  timeout?: string;
  retry_schedule?: string;
}

export interface WebhookPolicy {
  /** Whether webhooks may lead into private networks, and to this machine wherever the server listens. */
  readonly allowPrivate: boolean;
  /** An attempt has this long to be answered. */
  readonly timeoutMs: number;
  /** The delay before each further attempt. */
  readonly schedule: readonly number[];
}

export const WEBHOOK_DEFAULTS: Required<WebhookSettings> = {
  allow_private: false,
  timeout: "15s",
  // 27 h 35 min in all: long enough to outlive a receiver's bad night.
  retry_schedule: "5s,5m,30m,2h,5h,10h,10h",
};

/** What `parseTimeout` and `parseSchedule` take, in words. */
export const TIMEOUT_FORM = "a time such as 15s or 500ms, of at most 1h";
export const SCHEDULE_FORM = "times such as 200ms,5s,5m,2h: at most 20, and 7d in all";

/** A receiver that hangs takes one of the few places for attempts for this long. */
const TIMEOUT_MS_MAX = HOUR_MS;
const RETRIES_MAX = 20;
/** Deliveries are kept for no longer. */
const SCHEDULE_MS_MAX = LIMITS.deliveryDays * DAY_MS;

/** A text that no parser takes counts as unset: it may come from an imported file. */
export function policyOf(settings: WebhookSettings): WebhookPolicy {
  const { allow_private, timeout, retry_schedule } = { ...WEBHOOK_DEFAULTS, ...settings };
  const timeoutMs = parseTimeout(timeout) ?? parseTimeout(WEBHOOK_DEFAULTS.timeout);
  const schedule = parseSchedule(retry_schedule) ?? parseSchedule(WEBHOOK_DEFAULTS.retry_schedule);
  invariant(timeoutMs !== undefined && schedule !== undefined, "the defaults of webhooks make sense");
  return { allowPrivate: allow_private, timeoutMs, schedule };
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
