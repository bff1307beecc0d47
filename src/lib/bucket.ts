/**
 * A token bucket, without a clock: `burst` deep, refilled at `perMinute`.
 *
 * It counts in parts of a token, 60,000 to one: then a millisecond refills `perMinute` parts, and nothing is ever rounded
 * as long as milliseconds are whole.
 *
 * @module
 */
export const PARTS_PER_TOKEN = 60_000;

export interface Bucket {
  parts: number;
  /** Times at which `parts` was right and the bucket will be full, in milliseconds of the clock that only rises. */
  at: number;
  fullAt: number;
}

export interface Rate {
  perMinute: number;
  burst: number;
}

export interface Level {
  /** True if a token was there to take. */
  allowed: boolean;
  /** Whole tokens left. */
  remaining: number;
  /** Milliseconds until the bucket is full, and until it holds a token. */
  fullInMs: number;
  nextInMs: number;
}

export interface KeyBuckets {
  /** Takes a token from the bucket of an API key. */
  takeOfKey(keyId: string, rate: Rate): Level | Promise<Level>;
}

export function fullBucket({ burst }: Rate, now: number): Bucket {
  return { parts: burst * PARTS_PER_TOKEN, at: now, fullAt: now };
}

/** Takes `count` tokens (0 only looks). An empty bucket gives none and loses none. */
export function take(bucket: Bucket, { perMinute, burst }: Rate, now: number, count: 0 | 1): Level {
  const full = burst * PARTS_PER_TOKEN;
  bucket.parts = Math.min(full, bucket.parts + (now - bucket.at) * perMinute);
  bucket.at = now;
  const allowed = bucket.parts >= count * PARTS_PER_TOKEN;
  if (allowed) bucket.parts -= count * PARTS_PER_TOKEN;
  const level = levelOf(allowed, bucket.parts, { perMinute, burst });
  bucket.fullAt = now + level.fullInMs;
  return level;
}

/** @param parts - what is left */
export function levelOf(allowed: boolean, parts: number, { perMinute, burst }: Rate): Level {
  return {
    allowed,
    remaining: Math.floor(parts / PARTS_PER_TOKEN),
    fullInMs: (burst * PARTS_PER_TOKEN - parts) / perMinute,
    nextInMs: Math.max(0, PARTS_PER_TOKEN - parts) / perMinute,
  };
}
