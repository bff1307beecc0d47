/**
 * Limits of calls: a bucket for each key, and one for each address that presents none. Servers that share a database share the
 * buckets of keys.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { fullBucket, take, type Bucket, type KeyBuckets, type Level, type Rate } from "../lib/bucket.ts";

/** From this many on, full buckets are evicted: their owners get the same from a new one. */
const BUCKETS_MAX = 10_000;

class Buckets {
  readonly #isBounded: boolean;
  readonly #byOwner = new Map<string, Bucket>();
  #evictAt = BUCKETS_MAX;

  /** @param isBounded - whether the older half is evicted when hardly any bucket is full: keys cannot be made up, addresses can */
  constructor(isBounded: boolean) {
    this.#isBounded = isBounded;
  }

  /** Takes a token from the bucket of an owner, or with `count` 0 only looks. */
  take(owner: string, rate: Rate, now: number, count: 0 | 1): Level {
    let bucket = this.#byOwner.get(owner);
    if (bucket === undefined) {
      bucket = fullBucket(rate, now);
      if (count === 1) this.#add(owner, bucket, now);
    }
    return take(bucket, rate, now, count);
  }

  #add(owner: string, bucket: Bucket, now: number): void {
    if (this.#byOwner.size >= this.#evictAt) this.#evict(now);
    this.#byOwner.set(owner, bucket);
  }

  #evict(now: number): void {
    for (const [owner, { fullAt }] of this.#byOwner) if (fullAt <= now) this.#byOwner.delete(owner);
    // Not again before there are twice as many, so that a request pays for a few buckets only.
    if (!this.#isBounded) this.#evictAt = Math.max(BUCKETS_MAX, 2 * this.#byOwner.size);
    else if (this.#byOwner.size >= BUCKETS_MAX) {
      for (const owner of this.#byOwner.keys()) {
        if (this.#byOwner.size <= BUCKETS_MAX / 2) break;
        this.#byOwner.delete(owner);
      }
    }
  }
}

export class RateLimiter implements KeyBuckets {
  readonly #clock: Clock;
  readonly #keys = new Buckets(false);
  readonly #addresses = new Buckets(true);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes a token from the bucket of a key. */
  takeOfKey(keyId: string, rate: Rate): Level {
    return this.#keys.take(keyId, rate, this.#clock.elapsed(), 1);
  }

  /** Takes a token from the bucket that an address shares among its requests without a key, or with `count` 0 only looks. */
  takeOfAddress(address: string, rate: Rate, count: 0 | 1): Level {
    return this.#addresses.take(address, rate, this.#clock.elapsed(), count);
  }
}

/** The three headers every response carries. */
export function rateLimitHeaders({ perMinute }: Rate, level: Level, now: number): [limit: string, remaining: string, reset: string] {
  return [String(perMinute), String(level.remaining), String(Math.ceil((now + level.fullInMs) / 1000))];
}
