/**
 * Lifetime of a document.
 *
 * @module
 */
import { LAST_YEAR_END_MS } from "../lib/time.ts";
import type { DocumentRow } from "../storage/tables.ts";

/** In seconds, which can have fractions. */
export type TimeToLive = number | "never";

/** The end of a document that lives so long from now on; a time that no answer can show is the last that one can. */
export function lifetimeOf(ttl: TimeToLive | undefined, now: number): Pick<DocumentRow, "expiresAt" | "ttlSeconds"> {
  if (ttl === undefined || ttl === "never") return {};
  return { expiresAt: Math.min(now + Math.max(1, Math.round(ttl * 1000)), LAST_YEAR_END_MS), ttlSeconds: ttl };
}

/** The time to live that a document was given last; one that a Cairn of before has put does not say it. */
export function ttlOf({ expiresAt, ttlSeconds, updatedAt }: DocumentRow): TimeToLive {
  return ttlSeconds ?? (expiresAt === undefined ? "never" : (expiresAt - updatedAt) / 1000);
}
