/**
 * Who may call how often: a bucket for each key, and one for each address that presents none.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { take, type Bucket, type Level, type Rate } from "./bucket.ts";

/** Beyond this many buckets those that are full again are forgotten, which changes nothing for their owners. */
const BUCKETS_MAX = 10_000;

export class RateLimiter {
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a token from the bucket of `owner`, or with `count` 0 only looks. */
  take(owner: string, rate: Rate, count: 0 | 1): Level {
    const now = this.#clock.elapsed();
    let bucket = this.#buckets.get(owner);
    if (bucket === undefined) {
      bucket = { tokens: rate.burst, at: now };
      if (count === 1) {
        if (this.#buckets.size >= BUCKETS_MAX) this.#forgetFull(now, rate);
        this.#buckets.set(owner, bucket);
      }
    }
    return take(bucket, rate, now, count);
  }

  #forgetFull(now: number, { perMinute, burst }: Rate): void {
    const fullAfterMs = (burst * 60_000) / perMinute;
    for (const [owner, { at }] of this.#buckets) if (now - at >= fullAfterMs) this.#buckets.delete(owner);
    // Nobody is idle: the oldest go, rather than memory without bound.
    for (const owner of this.#buckets.keys()) {
      if (this.#buckets.size < BUCKETS_MAX) break;
      this.#buckets.delete(owner);
    }
  }
}

/** The three headers every response carries. */
export function rateLimitHeaders({ perMinute }: Rate, level: Level, now: number): [limit: string, remaining: string, reset: string] {
  return [String(perMinute), String(level.remaining), String(Math.ceil((now + level.fullInMs) / 1000))];
}
