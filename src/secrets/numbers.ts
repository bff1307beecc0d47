/**
 * Card and telephone numbers in texts. Pure.
 *
 * A number of a card has the first digits and the length of an issuer, the check digit of Luhn, and stands alone: within a longer
 * number, a word, a UUID or a decimal it is another thing.
 *
 * @module
 */

/** Issuers: the first digits from and to, and the lengths. */
const ISSUERS: readonly { readonly from: number; readonly to: number; readonly lengths: readonly number[] }[] = [
  { from: 4, to: 4, lengths: [16, 19] },
  { from: 51, to: 55, lengths: [16] },
  { from: 2221, to: 2720, lengths: [16] },
  { from: 34, to: 34, lengths: [15] },
  { from: 37, to: 37, lengths: [15] },
  { from: 6011, to: 6011, lengths: [16, 19] },
  { from: 644, to: 659, lengths: [16, 19] },
  { from: 300, to: 305, lengths: [14] },
  { from: 36, to: 36, lengths: [14] },
  { from: 38, to: 39, lengths: [14, 16] },
  { from: 3528, to: 3589, lengths: [16] },
  { from: 62, to: 62, lengths: [16, 17, 18, 19] },
];
const CARD = /\d{14,19}|\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5}/y;
const BESIDE_AFTER = /^(?:[A-Za-z0-9_-]|[.,: /]\d)/;
const PART_BEFORE = /[A-Za-z0-9_.+/#-]/;
const DIGIT_BEFORE = /^\d[ ,:]/;

/** Returns the end of a card number that begins at a digit; undefined where there is none. */
export function cardEnd(text: string, start: number): number | undefined {
  if (start > 0 && (PART_BEFORE.test(text[start - 1]!) || DIGIT_BEFORE.test(text.slice(Math.max(0, start - 2), start)))) return undefined;
  CARD.lastIndex = start;
  const [number] = CARD.exec(text) ?? [];
  if (number === undefined) return undefined;
  const end = start + number.length;
  return !BESIDE_AFTER.test(text.slice(end, end + 2)) && isCard(number.replaceAll(/[ -]/g, "")) ? end : undefined;
}

export function isCard(digits: string): boolean {
  return ISSUERS.some(({ from, to, lengths }) => {
    const first = Number(digits.slice(0, String(from).length));
    return first >= from && first <= to && lengths.includes(digits.length) && passesLuhn(digits);
  });
}

/** From the right, every second digit counts twice, by the sum of its digits; all together are a multiple of ten. */
function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits.at(-1 - i));
    const counted = i % 2 === 0 ? digit : digit * 2;
    sum += counted > 9 ? counted - 9 : counted;
  }
  return sum % 10 === 0;
}

/** In the international form, or in the North American one with a sign between its groups. */
const PHONE = /\+[1-9](?:[ .()/-]{0,2}\d){7,14}(?!\d)|(?:1[-. ])?(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?!\d)/y;

/** Returns the end of a telephone number that begins here; undefined where there is none. */
export function phoneEnd(text: string, start: number): number | undefined {
  PHONE.lastIndex = start;
  const [number] = PHONE.exec(text) ?? [];
  if (number === undefined || (start > 0 && PART_BEFORE.test(text[start - 1]!))) return undefined;
  const end = start + number.length;
  return /^[A-Za-z_-]/.test(text.slice(end, end + 1)) ? undefined : end;
}
