/**
 * Times as keys of documents begin with them, so that these are in the order of time.
 *
 * @module
 */
const ISO_LENGTH = 24;
/** Sort before and behind all times, and before and behind all that keys have after a time. */
const [FIRST, LAST] = ["!", "~"];

/**
 * Returns a time as keys begin with it.
 *
 * @param name - of the time, for errors
 * @throws {RangeError} for what is no time, or one whose text does not sort
 */
export function timeOf(date: Date | string | number, name: string): string {
  const time = new Date(date);
  const iso = Number.isNaN(time.getTime()) ? "" : time.toISOString();
  if (iso.length === ISO_LENGTH) return iso;
  throw new RangeError(`${name} must be a date of the years 0 to 9999; got ${String(date)}.`);
}

/** Returns the key that is before those of a time, or behind them. */
export function bound(date: Date | string, side: "before" | "behind"): string {
  const time = new Date(date);
  if (Number.isNaN(time.getTime())) throw new RangeError(`A dateRange must have dates; got ${String(date)}.`);
  const iso = time.toISOString();
  if (iso.length !== ISO_LENGTH) return iso.startsWith("+") ? LAST : FIRST;
  return `${iso} ${side === "before" ? FIRST : LAST}`;
}
