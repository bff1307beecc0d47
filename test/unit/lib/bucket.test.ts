import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { fullBucket, take, type Rate } from "../../../src/lib/bucket.ts";

const rates = fc.record({ perMinute: fc.integer({ min: 1, max: 100_000 }), burst: fc.integer({ min: 1, max: 200 }) });
const pauses = fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2_000 }), fc.integer({ min: 1, max: 600_000 })), {
  maxLength: 300,
});

/** The same in whole numbers without any limit, kept as what was taken and what was lost to a full bucket. */
class ExactBucket {
  #parts: bigint;
  readonly #full: bigint;
  readonly #perMs: bigint;

  constructor({ perMinute, burst }: Rate) {
    this.#full = BigInt(burst) * 60_000n;
    this.#parts = this.#full;
    this.#perMs = BigInt(perMinute);
  }

  take(pauseMs: number): boolean {
    const refilled = this.#parts + BigInt(pauseMs) * this.#perMs;
    this.#parts = refilled < this.#full ? refilled : this.#full;
    if (this.#parts < 60_000n) return false;
    this.#parts -= 60_000n;
    return true;
  }
}

test("a bucket lets through exactly what rate and burst allow, whatever the pauses", () => {
  fc.assert(
    fc.property(rates, pauses, (rate, waits) => {
      const bucket = fullBucket(rate, 0);
      const exact = new ExactBucket(rate);
      let now = 0;
      for (const wait of waits) {
        now += wait;
        expect(take(bucket, rate, now, 1).allowed).toBe(exact.take(wait));
      }
    }),
  );
});

test("a token comes after `nextInMs` and not a millisecond before; the bucket is full after `fullInMs`", () => {
  fc.assert(
    fc.property(rates, pauses, (rate, waits) => {
      const bucket = fullBucket(rate, 0);
      let now = 0;
      for (const wait of waits) take(bucket, rate, (now += wait), 1);
      const { nextInMs, fullInMs } = take(bucket, rate, now, 0);
      const at = (ms: number) => take({ ...bucket }, rate, ms, 0);
      expect(at(now + Math.ceil(nextInMs)).remaining).toBeGreaterThanOrEqual(1);
      if (nextInMs >= 1) expect(at(now + Math.ceil(nextInMs) - 1).remaining).toBe(0);
      expect(at(now + Math.ceil(fullInMs)).remaining).toBe(rate.burst);
      if (fullInMs >= 1) expect(at(now + Math.ceil(fullInMs) - 1).remaining).toBeLessThan(rate.burst);
    }),
  );
});

test("looking takes nothing, and an empty bucket loses nothing by being asked", () => {
  const rate = { perMinute: 60, burst: 1 };
  const bucket = fullBucket(rate, 0);
  expect([take(bucket, rate, 0, 0), take(bucket, rate, 0, 0), take(bucket, rate, 0, 1)]).toEqual([
    { allowed: true, remaining: 1, fullInMs: 0, nextInMs: 0 },
    { allowed: true, remaining: 1, fullInMs: 0, nextInMs: 0 },
    { allowed: true, remaining: 0, fullInMs: 1_000, nextInMs: 1_000 },
  ]);
  expect([take(bucket, rate, 400, 1), take(bucket, rate, 999, 1), take(bucket, rate, 1_000, 1)]).toMatchObject([
    { allowed: false, nextInMs: 600 },
    { allowed: false, nextInMs: 1 },
    { allowed: true, nextInMs: 1_000 },
  ]);
});
