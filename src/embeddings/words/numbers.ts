/**
 * Dates and numbers in a text, found where a token begins with a digit: a date means the same in whatever form.
 *
 * @module
 */
import { MONTHS } from "./stems.ts";

const ISO_DATE = /(\d{4})-(\d\d)-(\d\d)(?!\d)(?:[t ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?z?)?/y;
const DOTTED_DATE = /(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)/y;
const SLASHED_DATE = /(\d{1,2})\/(\d{1,2})\/(\d{4})(?!\d)/y;
/** Hours and minutes, with what else may belong to a clock time. */
export const CLOCK_TIME = /(\d{1,2}):(\d\d)(?::\d\d)?(?!\d)(?:\s*[ap]m(?![a-z0-9]))?/y;
/**
 * 1,250 and 3.5: one number each. What follows the point in 40.00 says nothing. Neither looks further ahead than its number:
 * both are tried at each group of digits, and a list of thousands would be read thousands of times. So no number has more than
 * nine groups.
 */
export const GROUPED_NUMBER = /\d{1,3}(?:,\d{3}){1,8}(?:\.\d+)?(?![\d,])/y;
export const DECIMAL_NUMBER = /\d+\.\d+(?!\.*\d)/y;
export const WHOLE_AMOUNT = /\.00?$/;

/** Match of a sticky pattern at one place of a lower-case text. */
export function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

export interface CalendarDay {
  readonly year: string;
  readonly month: string;
  readonly day: string;
  readonly end: number;
}

/** A date in digits, in any of the three usual orders; 25/12 can only be a day and a month, 7/5 is read the American way. */
export function dateAt(text: string, at: number): CalendarDay | undefined {
  const iso = matchAt(ISO_DATE, text, at);
  if (iso !== null) return calendarDay(iso[1]!, iso[2]!, iso[3]!, at + iso[0].length);
  const dotted = matchAt(DOTTED_DATE, text, at);
  if (dotted !== null) return calendarDay(dotted[3]!, dotted[2]!, dotted[1]!, at + dotted[0].length);
  const slashed = matchAt(SLASHED_DATE, text, at);
  if (slashed === null) return undefined;
  const [, first, second, year] = slashed as unknown as [string, string, string, string];
  const end = at + slashed[0].length;
  return calendarDay(year, first, second, end) ?? calendarDay(year, second, first, end);
}

function calendarDay(year: string, month: string, day: string, end: number): CalendarDay | undefined {
  const name = MONTHS[Number(month) - 1];
  return name === undefined || Number(day) > 31 ? undefined : { year, month: name, day: String(Number(day)), end };
}
