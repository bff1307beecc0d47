import { expect, test } from "bun:test";
import { DEFAULTS } from "../../../src/settings/schema.ts";
import { parseSchedule, parseTimeout, webhookPolicy } from "../../../src/webhooks/policy.ts";

const HOURS = 3_600_000;

test("unless anything is set deliveries have 15 s, and are tried again for 27 h 35 min", () => {
  const { "webhooks.timeout": timeout, "webhooks.retry_schedule": schedule } = DEFAULTS;
  expect(webhookPolicy(false, timeout, schedule)).toEqual({
    allowPrivate: false,
    timeoutMs: 15_000,
    schedule: [5_000, 300_000, 1_800_000, 2 * HOURS, 5 * HOURS, 10 * HOURS, 10 * HOURS],
  });
});

test("a timeout is a time of at most an hour", () => {
  expect(["1ms", "15s", "1h", "60m", "61m", "1d", "0s", "15", ""].map(parseTimeout)).toEqual([
    1,
    15_000,
    HOURS,
    HOURS,
    ...Array.from({ length: 5 }, () => undefined),
  ]);
});

test("a schedule is at most 20 times between commas, and a week in all; one that makes no sense spoils it", () => {
  const taken = ["200ms,1s, 5m", "5s", "7d", "6d,24h", Array.from({ length: 20 }, () => "1s").join()];
  expect(taken.map((text) => parseSchedule(text)?.length)).toEqual([3, 1, 1, 2, 20]);
  expect(parseSchedule("200ms,1s, 5m")).toEqual([200, 1_000, 300_000]);
  const refused = ["", "5s,", "5s,,1m", "5s;1m", "soon", "8d", "6d,25h", Array.from({ length: 21 }, () => "1s").join()];
  expect(refused.map(parseSchedule)).toEqual(refused.map(() => undefined));
});
