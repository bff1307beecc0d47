/**
 * Ids as the server makes them: after the prefix 12 base62 characters, the first 7 of them Unix milliseconds, so that text order
 * is time order, the last 2 the partition of the record.
 *
 * @module
 */

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const TIME_WIDTH = 7;
const WIDTH = 12;
const HOME_WIDTH = 2;

export function bare(id: string): string {
  return id.slice(id.indexOf("_") + 1);
}

/** The millisecond of an id, with its prefix. */
export function timeOf(id: string): number {
  return Array.from(bare(id).slice(0, TIME_WIDTH)).reduce((ms, digit) => ms * DIGITS.length + DIGITS.indexOf(digit), 0);
}

/** The place that all records of a user share. */
export function partitionOf(id: string): string {
  return id.slice(-HOME_WIDTH);
}

/** The first id that a millisecond can have. */
export function idAt(ms: number): string {
  let text = "";
  for (let rest = ms; text.length < TIME_WIDTH; rest = Math.floor(rest / DIGITS.length)) text = DIGITS.charAt(rest % DIGITS.length) + text;
  return text.padEnd(WIDTH, DIGITS.charAt(0));
}

/** The id right after or before another one: a list that starts after that includes it. Beyond the first and the last is none. */
export function neighbourOf(id: string, by: 1 | -1): string {
  const digits = [...id].map((digit) => DIGITS.indexOf(digit));
  for (let place = digits.length - 1; place >= 0; place--) {
    const digit = (digits[place] ?? 0) + by;
    const carried = (digit + DIGITS.length) % DIGITS.length;
    digits[place] = carried;
    if (carried === digit) return digits.map((digit) => DIGITS.charAt(digit)).join("");
  }
  return id;
}

const ID = /^[a-z]+_[0-9A-Za-z]{12}$/;

/** Path of the screen for what somebody looks for: that of a record for its id, otherwise what is found. */
export function screenFor(text: string): string {
  return ID.test(text) ? `go/${text}` : `find?${new URLSearchParams({ q: text })}`;
}
