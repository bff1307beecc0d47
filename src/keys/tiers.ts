/**
 * Limits of a key of each tier, and the retention of its traces.
 *
 * @module
 */
export const TIERS = ["free", "pro", "enterprise"] as const;
export type Tier = (typeof TIERS)[number];

/** The operator decides: a key that nobody limited has the widest limits, and its traces stay as long as the settings say. */
export const DEFAULT_TIER: Tier = "enterprise";

/** Requests per minute, and how many may come at once after a pause. */
export interface RateLimit {
  perMinute: number;
  burst: number;
}

/** An enterprise key may have limits of its own; these are what it gets otherwise. */
export const RATE_LIMITS: Record<Tier, RateLimit> = {
  free: { perMinute: 100, burst: 200 },
  pro: { perMinute: 1_000, burst: 2_000 },
  enterprise: { perMinute: 60_000, burst: 120_000 },
};

export const RATE_LIMIT_MAX = 1_000_000_000;

export const TRACE_RETENTION_DAYS: Record<Tier, number> = { free: 7, pro: 90, enterprise: 365 };
