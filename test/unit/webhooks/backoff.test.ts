import { expect, test } from "bun:test";
import { retryDelayMs } from "../../../src/webhooks/backoff.ts";

test("chance makes a wait up to a fifth longer, never shorter", () => {
  expect([0, 0.5, 0.999999].map((random) => retryDelayMs([10_000], 1, undefined, random))).toEqual([10_000, 11_000, 12_000]);
});

test("what the receiver asks for can lengthen a wait, not shorten it, and not go on for ever", () => {
  expect(retryDelayMs([5_000], 1, 60_000, 0.5)).toBe(60_000);
  expect(retryDelayMs([5_000], 1, 1_000, 0)).toBe(5_000);
  expect(retryDelayMs([5_000], 2, 60_000, 0)).toBeUndefined();
});
