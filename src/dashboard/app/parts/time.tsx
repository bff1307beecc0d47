/**
 * Times, as long ago and exact.
 *
 * The page is in English: a browser can name a language that `Intl` refuses (`en-US@posix`).
 *
 * @module
 */
import { signal } from "@preact/signals";

const TICK_MS = 15_000;
const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** Older than this, a date says more than a number of days. */
const DATE_FROM = 14 * DAY;
/** A server's clock is never exactly the browser's. */
const NOW_WITHIN = 2;

const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
const date = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });

const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, TICK_MS);

export function exactTime(at: string): string {
  return exact.format(new Date(at));
}

/** A sentence of the server, with its times as every screen shows them. */
export function withLocalTimes(text: string): string {
  return text.replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, exactTime);
}

/** `4 min ago`, `in 22 h`; a date when it is long ago. */
export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={exactTime(at)}>
      {distance((Date.parse(at) - Math.max(now.value, Date.now())) / 1000) ?? date.format(new Date(at))}
    </time>
  );
}

/** `4 min`, `22 h`: how long it has been so. */
export function Elapsed({ since }: { since: string }) {
  return (
    <time dateTime={since} title={`since ${exactTime(since)}`}>
      {duration(Math.max(0, Math.max(now.value, Date.now()) - Date.parse(since)) / 1000)}
    </time>
  );
}

function distance(seconds: number): string | undefined {
  const size = Math.abs(seconds);
  if (size < NOW_WITHIN) return "just now";
  if (size >= DATE_FROM) return undefined;
  return seconds < 0 ? `${duration(size)} ago` : `in ${duration(size)}`;
}

/** `42 s`, `3 min`, `22 h`, `5 d`: rounded to the largest unit that it fills. */
export function duration(seconds: number): string {
  if (seconds < MINUTE) return `${Math.floor(seconds)} s`;
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`;
  return seconds < 2 * DAY ? `${Math.floor(seconds / HOUR)} h` : `${Math.floor(seconds / DAY)} d`;
}

/** A time as a field of the kind `datetime-local` has it. */
export function localTime(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  return new Date(time.getTime() - time.getTimezoneOffset() * MINUTE * 1000).toISOString().slice(0, 16);
}
