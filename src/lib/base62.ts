/**
 * Whole numbers as base62 text of a fixed width, so that text order is number order.
 *
 * The digits stand in ASCII order (0-9 A-Z a-z), which is also the byte order of keys in the store.
 *
 * @module
 */
import { invariant } from "./invariant.ts";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Two digits at a time: the seven of a time take 150 ns so, and 450 one by one. */
const PAIRS = Array.from(DIGITS, (first) => Array.from(DIGITS, (second) => first + second)).flat();
const VALUES = new Map([...DIGITS].map((digit, value) => [digit, value]));

/** `toBase62(61, 3)` is `00z`. The number must fit in `width` digits; what it has beyond a whole one is left out. */
export function toBase62(number: number, width: number): string {
  let rest = Math.floor(number);
  let text = "";
  let left = width;
  for (; left > 1; left -= 2) {
    const next = Math.floor(rest / 3844);
    text = `${PAIRS[rest - next * 3844]}${text}`;
    rest = next;
  }
  invariant(rest >= 0 && rest < (left === 1 ? 62 : 1), "a number outside the width of its base62 text");
  return left === 1 ? `${DIGITS[rest]}${text}` : text;
}

/** The number that `toBase62` wrote; `text` must be base62. */
export function fromBase62(text: string): number {
  let number = 0;
  for (const digit of text) number = number * 62 + (VALUES.get(digit) ?? Number.NaN);
  return number;
}

/** `length` base62 characters from the system's random source, all equally likely: bytes of 248 and above are thrown away. */
export function randomBase62(length: number): string {
  let text = "";
  while (text.length < length) {
    for (const byte of crypto.getRandomValues(new Uint8Array(length * 2))) {
      if (byte < 248 && text.length < length) text += DIGITS.charAt(byte % 62);
    }
  }
  return text;
}
