/**
 * A token bucket, without a clock: `burst` deep, refilled at `perMinute`.
 *
 * @module
 */
export interface Bucket {
  tokens: number;
  /** Milliseconds of the clock that only rises, at which `tokens` was right. */
  at: number;
}

export interface Rate {
  perMinute: number;
  burst: number;
}

export interface Level {
  /** Whether there was a token to take. */
  allowed: boolean;
  remaining: number;
  /** Milliseconds until the bucket is full, and until it holds a token. */
  fullInMs: number;
  nextInMs: number;
}

/** Takes `count` tokens (0 only looks); a bucket that is empty gives none and loses none. */
export function take(bucket: Bucket, { perMinute, burst }: Rate, now: number, count: 0 | 1): Level {
  const msPerToken = 60_000 / perMinute;
  bucket.tokens = Math.min(burst, bucket.tokens + (now - bucket.at) / msPerToken);
  bucket.at = now;
  const allowed = bucket.tokens >= count;
  if (allowed) bucket.tokens -= count;
  return {
    allowed,
    remaining: Math.floor(bucket.tokens),
    fullInMs: (burst - bucket.tokens) * msPerToken,
    nextInMs: Math.max(0, 1 - bucket.tokens) * msPerToken,
  };
}
