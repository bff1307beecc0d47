import { expect, test } from "bun:test";
import { retryDelayMs } from "../../../src/webhooks/backoff.ts";
import { policyOf } from "../../../src/webhooks/policy.ts";

test("an attempt that failed is made again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, and then no more", () => {
  const { schedule } = policyOf({});
  const waits = [1, 2, 3, 4, 5, 6, 7, 8].map((failures) => retryDelayMs(schedule, failures, undefined, 0));
  expect(waits).toEqual([5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000, undefined]);
});

test("chance makes a wait up to a fifth longer, never shorter", () => {
  expect([0, 0.5, 0.999999].map((random) => retryDelayMs([10_000], 1, undefined, random))).toEqual([10_000, 11_000, 12_000]);
});

test("what the receiver asks for can lengthen a wait, not shorten it, and not go on for ever", () => {
  expect(retryDelayMs([5_000], 1, 60_000, 0.5)).toBe(60_000);
  expect(retryDelayMs([5_000], 1, 1_000, 0)).toBe(5_000);
  expect(retryDelayMs([5_000], 2, 60_000, 0)).toBeUndefined();
});
