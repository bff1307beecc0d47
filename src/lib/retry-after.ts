/**
 * Reads the `Retry-After` header. Pure.
 *
 * @module
 */
import { SECOND_MS } from "./duration.ts";

/**
 * Returns the milliseconds that a `Retry-After` header asks for, in seconds or as an HTTP date; undefined for any other text.
 *
 * @param msMax - a header that asks for more gets this
 */
export function retryAfterMs(header: string | null | undefined, now: number, msMax: number): number | undefined {
  const text = header?.trim() ?? "";
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * SECOND_MS : /^[A-Za-z]/.test(text) ? Date.parse(text) - now : NaN;
  return Number.isNaN(ms) ? undefined : Math.max(0, Math.min(ms, msMax));
}
