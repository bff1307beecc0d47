/**
 * What follows from an attempt: for the delivery, and for the webhook. Pure.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import { retryAfterMs } from "../lib/retry-after.ts";
import { toIso } from "../lib/time.ts";
import type { DeliveryRow, WebhookRow } from "../storage/tables.ts";
import { RETRY_AFTER_MS_MAX, retryDelayMs } from "./backoff.ts";
import type { Answer } from "./delivery.ts";

/** A webhook with nothing but failures for this long is disabled. */
const FAILING_DAYS_MAX = 5;

const GONE = 410;
/** A delivery that failed blocks its session while its next attempt is at most this far away. */
const HEAD_OF_LINE_MS = 10_000;

/** With a Retry-After these speak for the receiver as a whole, not for one delivery. */
const ASKS_FOR_A_PAUSE = new Set([429, 503]);

export interface Attempt {
  /** Unix milliseconds at which it began. */
  at: number;
  durationMs: number;
  answer: Answer;
}

/** How often each came of an attempt, since the start. */
export interface Outcomes {
  delivered: number;
  /** Failed, and to be tried again. */
  retry: number;
  /** Failed, and not to be tried again. */
  failed: number;
  /** Webhooks that were disabled by it, beside one of the others. */
  disabled: number;
}

export function isSuccess(answer: Answer): boolean {
  return answer.kind === "answered" && answer.status >= 200 && answer.status <= 299;
}

/** Until when the receiver wants nothing more. */
export function pauseUntil(answer: Answer, now: number): number | undefined {
  if (answer.kind !== "answered" || !ASKS_FOR_A_PAUSE.has(answer.status)) return undefined;
  const ms = retryAfterMs(answer.retryAfter, now, RETRY_AFTER_MS_MAX);
  return ms === undefined ? undefined : now + ms;
}

export function afterAttempt(
  row: DeliveryRow,
  { at, durationMs, answer }: Attempt,
  now: number,
  schedule: readonly number[],
  random: number,
): DeliveryRow {
  const made: DeliveryRow = {
    ...row,
    attempts: row.attempts + 1,
    last: {
      at,
      durationMs,
      status: answer.kind === "answered" ? answer.status : null,
      body: answer.kind === "answered" ? answer.body : null,
      error: failureOf(answer) ?? null,
    },
  };
  if (isSuccess(answer)) return { ...made, status: "delivered", failures: 0, nextAttemptAt: null };
  const failures = row.failures + 1;
  const isOver = row.once === true || (answer.kind === "answered" && answer.status === GONE);
  const asked = answer.kind === "answered" ? retryAfterMs(answer.retryAfter, now, RETRY_AFTER_MS_MAX) : undefined;
  const delay = isOver ? undefined : retryDelayMs(schedule, failures, asked, random);
  if (delay === undefined) return { ...made, status: "failed", failures, nextAttemptAt: null };
  const nextAttemptAt = now + delay;
  // While nothing is sent at all, nothing can overtake it.
  const isNear = nextAttemptAt - (pauseUntil(answer, now) ?? now) <= HEAD_OF_LINE_MS;
  return { ...made, status: "pending", failures, nextAttemptAt, ...(isNear ? {} : { unordered: true }) };
}

/** The same row when nothing changes, so that it need not be written. */
export function webhookAfterAttempt(webhook: WebhookRow, { at, answer }: Attempt, now: number): WebhookRow {
  if (isSuccess(answer)) return webhook.failingSince === null ? webhook : { ...webhook, failingSince: null };
  // Not after this attempt, which a clock that was ahead could have said of the first one.
  const failingSince = Math.min(webhook.failingSince ?? at, at);
  const pausedUntil = pauseUntil(answer, now);
  const failing = { ...webhook, failingSince, ...(pausedUntil === undefined ? {} : { pausedUntil }) };
  const reason =
    answer.kind === "answered" && answer.status === GONE
      ? `The receiver answered 410 Gone at ${toIso(now)}.`
      : now - failingSince >= FAILING_DAYS_MAX * DAY_MS
        ? `Every attempt since ${toIso(failingSince)} has failed. The last: ${failureOf(answer)}`
        : undefined;
  if (reason !== undefined && webhook.enabled)
    return { ...failing, enabled: false, disabledReason: reason, updatedAt: Math.max(webhook.updatedAt, now) };
  return webhook.failingSince !== failingSince || pausedUntil !== undefined ? failing : webhook;
}

function failureOf(answer: Answer): string | undefined {
  if (answer.kind === "unanswered") return answer.reason;
  if (isSuccess(answer)) return undefined;
  return answer.status >= 300 && answer.status <= 399
    ? `The receiver answered ${answer.status}; redirects are not followed.`
    : `The receiver answered ${answer.status}.`;
}
