import { expect, test } from "bun:test";
import type { DeliveryRow, WebhookRow } from "../../../src/storage/tables.ts";
import type { Answer } from "../../../src/webhooks/delivery.ts";
import { afterAttempt, pauseUntil, webhookAfterAttempt } from "../../../src/webhooks/outcome.ts";

const NOW = Date.parse("2026-05-07T08:00:01.000Z");
const AT = NOW - 1_000;
const DAY_MS = 86_400_000;
const PENDING: DeliveryRow = {
  payload: "0VQk3bD4z9Xx",
  eventId: "0VQk3bD4z9Xw",
  type: "turn.added",
  sessionId: "sess_0VQk3aB4x1Zq",
  createdAt: AT,
  status: "pending",
  attempts: 0,
  failures: 0,
  nextAttemptAt: AT,
  last: null,
};
const WEBHOOK: WebhookRow = {
  url: "https://agents.example.com/hook",
  events: ["turn.added"],
  description: null,
  enabled: true,
  disabledReason: null,
  secret: "a secret of my own choice",
  previousSecrets: [],
  createdAt: AT,
  updatedAt: AT,
  since: "0VQk3bD4z9Xv",
  failingSince: null,
};

function answered(status: number, retryAfter?: string): Answer {
  return { kind: "answered", status, retryAfter, body: "said" };
}

function after(answer: Answer, row: DeliveryRow = PENDING) {
  return afterAttempt(row, { at: AT, durationMs: 12.5, answer }, NOW, [5_000, 300_000], 0);
}

for (const status of [200, 201, 202, 204, 226, 299]) {
  test(`${status} is a success`, () => {
    expect(after(answered(status))).toEqual({
      ...PENDING,
      status: "delivered",
      attempts: 1,
      nextAttemptAt: null,
      last: { at: AT, durationMs: 12.5, status, body: "said", error: null },
    });
  });
}

for (const [answer, error] of [
  [answered(199), "The receiver answered 199."],
  [answered(301), "The receiver answered 301; redirects are not followed."],
  [answered(302), "The receiver answered 302; redirects are not followed."],
  [answered(304), "The receiver answered 304; redirects are not followed."],
  [answered(400), "The receiver answered 400."],
  [answered(404), "The receiver answered 404."],
  [answered(500), "The receiver answered 500."],
  [{ kind: "unanswered", reason: "No answer within the time limit." } as const, "No answer within the time limit."],
] as const) {
  test(`a failure is tried again: ${error}`, () => {
    expect(after(answer)).toMatchObject({ status: "pending", attempts: 1, failures: 1, nextAttemptAt: NOW + 5_000, last: { error } });
    expect(after(answer, { ...PENDING, attempts: 1, failures: 1 })).toMatchObject({ status: "pending", nextAttemptAt: NOW + 300_000 });
    expect(after(answer, { ...PENDING, attempts: 2, failures: 2 })).toMatchObject({ status: "failed", attempts: 3, nextAttemptAt: null });
    expect(after(answer, { ...PENDING, once: true })).toMatchObject({ status: "failed", nextAttemptAt: null });
  });
}

test("410 ends the delivery and disables the webhook at once, with the reason", () => {
  expect(after(answered(410))).toMatchObject({ status: "failed", attempts: 1, nextAttemptAt: null });
  expect(webhookAfterAttempt(WEBHOOK, { at: AT, durationMs: 1, answer: answered(410) }, NOW)).toEqual({
    ...WEBHOOK,
    enabled: false,
    disabledReason: "The receiver answered 410 Gone at 2026-05-07T08:00:01.000Z.",
    failingSince: AT,
    updatedAt: NOW,
  });
});

test("a webhook is disabled by the first failure 5 days after one, with none delivered in between", () => {
  const fail = (row: WebhookRow, now: number) => webhookAfterAttempt(row, { at: now, durationMs: 1, answer: answered(500) }, now);
  const failing = fail(WEBHOOK, NOW);
  expect(failing).toEqual({ ...WEBHOOK, failingSince: NOW });
  expect(fail(failing, NOW + 5 * DAY_MS - 1)).toBe(failing);
  expect(fail(failing, NOW + 5 * DAY_MS)).toMatchObject({
    enabled: false,
    disabledReason: "Every attempt since 2026-05-07T08:00:01.000Z has failed. The last: The receiver answered 500.",
  });
  const well = webhookAfterAttempt(failing, { at: NOW, durationMs: 1, answer: answered(200) }, NOW);
  expect(well).toEqual(WEBHOOK);
  expect(webhookAfterAttempt(WEBHOOK, { at: NOW, durationMs: 1, answer: answered(200) }, NOW)).toBe(WEBHOOK);
});

test("Retry-After puts a delivery off, and with 429 and 503 the whole receiver", () => {
  expect(after(answered(500, "60"))).toMatchObject({ nextAttemptAt: NOW + 60_000 });
  expect(after(answered(503, "2"))).toMatchObject({ nextAttemptAt: NOW + 5_000 });
  expect([429, 503].map((status) => pauseUntil(answered(status, "60"), NOW))).toEqual([NOW + 60_000, NOW + 60_000]);
  expect([answered(500, "60"), answered(429), answered(429, "later"), answered(200, "60")].map((it) => pauseUntil(it, NOW))).toEqual(
    Array.from({ length: 4 }, () => undefined),
  );
});
