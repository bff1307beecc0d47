/**
 * Durations in milliseconds, and as an operator writes them. Pure.
 *
 * @module
 */
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
const UNITS: Record<string, number> = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };

/** `200ms`, `15s`, `5m`, `2h`, `1d` in milliseconds; undefined for anything else, and for nothing. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text.trim());
  const ms = Number(match?.[1]) * (UNITS[match?.[2] ?? ""] ?? 0);
  return ms > 0 ? ms : undefined;
}
