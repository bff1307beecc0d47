/**
 * Changes that follow from an attempt: to its delivery and its webhook. Pure.
 *
 * @module
 */
import { DAY_MS, HOUR_MS } from "../lib/duration.ts";
import { LIMITS } from "../lib/limits.ts";
import { retryAfterMs } from "../lib/retry-after.ts";
import { toIso } from "../lib/time.ts";
import type { DeliveryRow, WebhookFailuresRow, WebhookRow } from "../storage/tables.ts";
import { RETRY_AFTER_MS_MAX, retryDelayMs } from "./backoff.ts";

/** A webhook with nothing but failures for this long is disabled. */
const FAILING_DAYS_MAX = 5;

const GONE = 410;
/** A failed delivery blocks its session (head of line) while its next attempt is at most this far away. */
const HEAD_OF_LINE_MS = 10_000;

/** With a Retry-After these statuses speak for the whole receiver, not for one delivery. */
const PAUSING = new Set([429, 503]);

export interface Answer {
  /** null without an answer. */
  readonly status: number | null;
  readonly retryAfter?: string | undefined;
  /** Beginning of the body of the answer; null where the address is not public. */
  readonly body: string | null;
  /** Reason why it does not count as delivered, for the operator; null for a success. */
  readonly error: string | null;
}

export interface Attempt extends Answer {
  /** Begin of the attempt in Unix milliseconds. */
  readonly at: number;
  readonly durationMs: number;
}

/** Attempts by outcome, since the start. */
export interface Outcomes {
  delivered: number;
  /** Failed, with a retry to come. */
  retry: number;
  /** Failed, with none to come. */
  exhausted: number;
  /** Webhooks disabled by one of these. */
  disabled: number;
}

/** Reason why an answer of this status is no success, or null. */
export function errorOf(status: number): string | null {
  if (status >= 200 && status <= 299) return null;
  return `The receiver answered ${status}${status >= 300 && status <= 399 ? "; redirects are not followed." : "."}`;
}

/** Until when the receiver wants nothing more. */
export function pauseUntil({ status, retryAfter }: Answer, now: number): number | undefined {
  const ms = status !== null && PAUSING.has(status) ? retryAfterMs(retryAfter, now, RETRY_AFTER_MS_MAX) : undefined;
  return ms === undefined ? undefined : now + ms;
}

/** Until when nothing is sent to a webhook, as its receiver has asked; undefined for one that is not paused. */
export function pauseOf({ pausedUntil }: Pick<WebhookRow, "pausedUntil">, now: number): number | undefined {
  // No receiver can ask for a longer pause: the clock was ahead when it began.
  const isPaused = typeof pausedUntil === "number" && pausedUntil > now && pausedUntil <= now + RETRY_AFTER_MS_MAX;
  return isPaused ? pausedUntil : undefined;
}

export function afterAttempt(row: DeliveryRow, attempt: Attempt, now: number, schedule: readonly number[], random: number): DeliveryRow {
  const { retryAfter, ...last } = attempt;
  const made = { ...row, attempts: row.attempts + 1, recent: [...row.recent, last].slice(-LIMITS.deliveryAttemptsKept) };
  if (attempt.error === null) return { ...made, status: "delivered", failures: 0, nextAttemptAt: null };
  const failures = row.failures + 1;
  const isOver = row.once === true || attempt.status === GONE;
  const asked = retryAfterMs(retryAfter, now, RETRY_AFTER_MS_MAX);
  const delay = isOver ? undefined : retryDelayMs(schedule, failures, asked, random);
  if (delay === undefined) return { ...made, status: "failed", failures, nextAttemptAt: null };
  const nextAttemptAt = now + delay;
  // While nothing is sent at all, nothing can overtake it.
  const isNear = nextAttemptAt - (pauseUntil(attempt, now) ?? now) <= HEAD_OF_LINE_MS;
  return { ...made, status: "pending", failures, nextAttemptAt, ...(isNear ? {} : { unordered: true }) };
}

/** @returns the same row when nothing changes, so that it need not be written */
export function webhookAfterAttempt(webhook: WebhookRow, attempt: Attempt, now: number): WebhookRow {
  const { at, status, error } = attempt;
  if (error === null) return webhook.failingSince === null ? webhook : { ...webhook, failingSince: null };
  // The first failure may have been dated by a clock that was ahead.
  const failingSince = Math.min(webhook.failingSince ?? at, at);
  const pausedUntil = pauseUntil(attempt, now);
  const failing = { ...webhook, failingSince, ...(pausedUntil === undefined ? {} : { pausedUntil }) };
  const reason =
    status === GONE
      ? `The receiver answered 410 Gone at ${toIso(now)}.`
      : now - failingSince >= FAILING_DAYS_MAX * DAY_MS
        ? `Every attempt since ${toIso(failingSince)} has failed. The last: ${error}`
        : undefined;
  if (reason !== undefined && webhook.enabled)
    return { ...failing, enabled: false, disabledReason: reason, updatedAt: Math.max(webhook.updatedAt, now) };
  return webhook.failingSince !== failingSince || pausedUntil !== undefined ? failing : webhook;
}

/** The hours in which attempts are counted: that of a time and the 24 before it, the first one first, in Unix milliseconds. */
export function countedHours(now: number): number[] {
  const last = Math.floor(now / HOUR_MS) * HOUR_MS;
  return Array.from({ length: HOURS_COUNTED }, (_, hour) => last - (HOURS_COUNTED - 1 - hour) * HOUR_MS);
}
const HOURS_COUNTED = DAY_MS / HOUR_MS + 1;

/** Counts of a webhook's failed attempts once one more has failed. Hours of another time than now are forgotten. */
export function failuresAfter(
  before: WebhookFailuresRow | undefined,
  { at, status }: Attempt,
  error: string,
  now: number,
): WebhookFailuresRow {
  const hours = countedHours(now);
  const kept = (before?.hours ?? []).filter(({ start }) => hours.includes(start));
  // One that began while the clock was ahead is of now.
  const start = Math.floor(Math.min(at, now) / HOUR_MS) * HOUR_MS;
  const counted = kept.some((hour) => hour.start === start)
    ? kept.map((hour) => (hour.start === start ? { start, attempts: hour.attempts + 1 } : hour))
    : [...kept, { start, attempts: 1 }].toSorted((a, b) => a.start - b.start);
  return { hours: counted, last: { at, status, error } };
}
