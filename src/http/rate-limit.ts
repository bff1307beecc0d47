/**
 * Who may call how often: a bucket for each key, and one for each address that presents none.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { remembering } from "../lib/remember.ts";
import { fullBucket, take, type Bucket, type Level, type Rate } from "./bucket.ts";

/** Buckets of keys are as many as there are keys. Of addresses there is no end: beyond this many, some are forgotten. */
const ADDRESSES_MAX = 10_000;

export class RateLimiter {
  readonly #clock: Clock;
  readonly #keys = new Map<string, Bucket>();
  readonly #addresses = new Map<string, Bucket>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a token from the bucket of a key. */
  takeOfKey(keyId: string, rate: Rate): Level {
    return take(this.#bucket(this.#keys, keyId, rate), rate, this.#clock.elapsed(), 1);
  }

  /** Takes a token from the bucket that an address shares among its requests without a key, or with `count` 0 only looks. */
  takeOfAddress(address: string, rate: Rate, count: 0 | 1): Level {
    const now = this.#clock.elapsed();
    if (count === 0) return take(this.#addresses.get(address) ?? fullBucket(rate, now), rate, now, 0);
    if (this.#addresses.size >= ADDRESSES_MAX && !this.#addresses.has(address)) this.#forgetSome(rate);
    return take(this.#bucket(this.#addresses, address, rate), rate, now, 1);
  }

  #bucket(buckets: Map<string, Bucket>, owner: string, rate: Rate): Bucket {
    let bucket = buckets.get(owner);
    if (bucket === undefined) {
      bucket = fullBucket(rate, this.#clock.elapsed());
      buckets.set(owner, bucket);
    }
    return bucket;
  }

  /** Those that are full again, which changes nothing for their owners; when nobody is idle, the older half. */
  #forgetSome({ perMinute, burst }: Rate): void {
    const now = this.#clock.elapsed();
    const fullAfterMs = (burst * 60_000) / perMinute;
    for (const [address, { at }] of this.#addresses) if (now - at >= fullAfterMs) this.#addresses.delete(address);
    if (this.#addresses.size < ADDRESSES_MAX) return;
    for (const address of this.#addresses.keys()) {
      if (this.#addresses.size <= ADDRESSES_MAX / 2) break;
      this.#addresses.delete(address);
    }
  }
}

/** The three headers every response carries. */
export function rateLimitHeaders({ perMinute }: Rate, level: Level, now: number): [limit: string, remaining: string, reset: string] {
  return [decimal(perMinute), decimal(level.remaining), decimal(Math.ceil((now + level.fullInMs) / 1000))];
}

const decimal = remembering(1_000, (number: number) => String(number));
