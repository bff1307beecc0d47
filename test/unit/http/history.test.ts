import { expect, test } from "bun:test";
import { History } from "../../../src/http/history.ts";
import { FakeClock } from "../../support/clock.ts";

/** The newest point of the last hour. */
function latest(history: History) {
  return history.of("1h").points.at(-1);
}

test("of a thousand latencies the median and the 99th percentile are found, to a quarter", () => {
  const clock = new FakeClock();
  const history = new History(clock);
  for (let ms = 1; ms <= 1_000; ms++) history.addRequest(clock.elapsed(), ms, ms === 7 ? 500 : 200);
  const { requests, errors, p50Ms, p99Ms } = latest(history)!;
  expect({ requests, errors }).toEqual({ requests: 1_000, errors: 1 });
  expect([p50Ms! >= 500 && p50Ms! <= 625, p99Ms! >= 990 && p99Ms! <= 1_238]).toEqual([true, true]);
});

test("a latency below the first bin or above the last one is in it", () => {
  const clock = new FakeClock();
  const history = new History(clock);
  for (const ms of [-1, 0, 0.001]) history.addRequest(clock.elapsed(), ms, 200);
  expect(latest(history)).toMatchObject({ requests: 3, p99Ms: 0.05 });
  clock.advance({ seconds: 60 });
  history.addRequest(clock.elapsed(), 1e9, 200);
  expect(latest(history)!.p50Ms).toBeGreaterThan(60_000);
});

test("a clock that is set moves the times, and no count", () => {
  const clock = new FakeClock();
  const history = new History(clock);
  history.addChanges(3);
  clock.set(clock.now() - 3_600_000);
  history.addChanges(4);
  expect(latest(history)).toMatchObject({ at: Date.parse("2026-05-07T07:00:00.000Z"), changes: 7 });
});
