import { expect, test } from "bun:test";
import { Budget } from "../../../src/documents/budget.ts";

test("texts are scored until they have taken a turn of the event loop: then others are let through, or a permit is needed", async () => {
  let areThrough = false;
  setImmediate(() => (areThrough = true));
  const budget = new Budget(true, "key");
  expect([await budget.score(0.6), areThrough]).toEqual([true, false]);
  expect([await budget.score(0.6), areThrough]).toEqual([true, true]);
  const without = new Budget(false, "key");
  expect([await without.score(0.6), without.needsPermit]).toEqual([true, false]);
  expect([await without.score(0.6), without.needsPermit, without.isSpent]).toEqual([false, true, true]);
});
