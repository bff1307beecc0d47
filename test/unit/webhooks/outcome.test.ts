import { expect, test } from "bun:test";
import type { DeliveryRow } from "../../../src/storage/tables.ts";
import { afterAttempt, errorOf, pauseUntil, type Answer } from "../../../src/webhooks/outcome.ts";

const NOW = Date.parse("2026-05-07T08:00:01.000Z");
const AT = NOW - 1_000;
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
  recent: [],
};
function answered(status: number, retryAfter?: string): Answer {
  return { status, retryAfter, body: "said", error: errorOf(status) };
}

function after(answer: Answer, row: DeliveryRow = PENDING) {
  return afterAttempt(row, { ...answer, at: AT, durationMs: 12.5 }, NOW, [5_000, 300_000], 0);
}

test("a status of 200 to 299 is a success, and ends the delivery", () => {
  for (const status of [200, 201, 202, 204, 226, 299]) {
    expect(after(answered(status))).toEqual({
      ...PENDING,
      status: "delivered",
      attempts: 1,
      nextAttemptAt: null,
      recent: [{ at: AT, durationMs: 12.5, status, body: "said", error: null }],
    });
  }
});

for (const [answer, error] of [
  ...[199, 400, 404, 500].map((status) => [answered(status), `The receiver answered ${status}.`] as const),
  ...[301, 302, 304].map((status) => [answered(status), `The receiver answered ${status}; redirects are not followed.`] as const),
  [{ status: null, body: null, error: "No answer within the time limit." }, "No answer within the time limit."],
] as const) {
  test(`a failure is tried again: ${error}`, () => {
    expect(after(answer)).toMatchObject({ status: "pending", attempts: 1, failures: 1, nextAttemptAt: NOW + 5_000, recent: [{ error }] });
    expect(after(answer, { ...PENDING, attempts: 1, failures: 1 })).toMatchObject({ status: "pending", nextAttemptAt: NOW + 300_000 });
    expect(after(answer, { ...PENDING, attempts: 2, failures: 2 })).toMatchObject({ status: "failed", attempts: 3, nextAttemptAt: null });
    expect(after(answer, { ...PENDING, once: true })).toMatchObject({ status: "failed", nextAttemptAt: null });
  });
}

test("410 ends the delivery at once", () => {
  expect(after(answered(410))).toMatchObject({ status: "failed", attempts: 1, nextAttemptAt: null });
});

test("Retry-After puts a delivery off, and with 429 and 503 the whole receiver", () => {
  expect(after(answered(500, "60"))).toMatchObject({ nextAttemptAt: NOW + 60_000 });
  expect(after(answered(503, "2"))).toMatchObject({ nextAttemptAt: NOW + 5_000 });
  expect([429, 503].map((status) => pauseUntil(answered(status, "60"), NOW))).toEqual([NOW + 60_000, NOW + 60_000]);
  const others = [answered(500, "60"), answered(429), answered(429, "later"), answered(200, "60")];
  expect(others.map((answer) => pauseUntil(answer, NOW))).toEqual(others.map(() => undefined));
});
