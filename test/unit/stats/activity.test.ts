import { expect, test } from "bun:test";
import { latencyBin, LATENCY_BINS, quantileMs } from "../../../src/stats/latency-bins.ts";

/** Bins of requests that took so long. */
function binsOf(latencies: readonly number[]): number[] {
  const bins = Array.from({ length: LATENCY_BINS }, () => 0);
  for (const ms of latencies) bins[latencyBin(ms)]!++;
  return bins;
}

test("of a thousand latencies the median and the 99th percentile are found, to a quarter", () => {
  const bins = binsOf(Array.from({ length: 1_000 }, (_, index) => index + 1));
  const [p50, p99] = [quantileMs(bins, 0.5)!, quantileMs(bins, 0.99)!];
  expect([p50 >= 500 && p50 <= 625, p99 >= 990 && p99 <= 1_238]).toEqual([true, true]);
});

test("a latency below the first bin or above the last one is in it, and without requests there is none", () => {
  expect(quantileMs(binsOf([-1, 0, 0.001]), 0.99)).toBe(0.05);
  expect(quantileMs(binsOf([1e9]), 0.5)).toBeGreaterThan(60_000);
  expect([quantileMs([], 0.5), quantileMs(binsOf([]), 0.99)]).toEqual([null, null]);
});
