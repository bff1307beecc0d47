/**
 * Times at which backups are made by themselves. Pure.
 *
 * @module
 */
import { DAY_MS, HOUR_MS, MINUTE_MS, parseDuration } from "../lib/duration.ts";

/** A time between two backups, or a moment of every day or week in UTC. */
export type BackupSchedule =
  | { readonly everyMs: number }
  | { readonly periodMs: typeof DAY_MS; /** Milliseconds from the beginning of a period. */ readonly offsetMs: number };

const WEEK_MS = 7 * DAY_MS;
/** The first day of Unix time was a Thursday. */
const WEEKDAYS = ["thu", "fri", "sat", "sun", "mon", "tue", "wed"];
const MOMENT = new RegExp(`^(?:(${WEEKDAYS.join("|")}) )?([01]\\d|2[0-3]):([0-5]\\d)$`);

const EVERY_MS_MIN = 10 * MINUTE_MS;
const EVERY_MS_MAX = 31 * DAY_MS;
/** One that has not been made so long after its time is overdue. */
const GRACE_MS = HOUR_MS;

/** Syntax of `parseBackupSchedule`, in words. */
export const BACKUP_SCHEDULE_FORM =
  "a time of day in UTC such as 03:00, a day and a time such as sun 03:00, or a wait of 10m to 31d such as 6h";

/** A schedule as an operator writes it; undefined for any other text. */
export function parseBackupSchedule(text: string): BackupSchedule | undefined {
  const [, weekday, hours, minutes] = MOMENT.exec(text) ?? [];
  if (hours === undefined) {
    const everyMs = parseDuration(text);
    return everyMs !== undefined && everyMs >= EVERY_MS_MIN && everyMs <= EVERY_MS_MAX ? { everyMs } : undefined;
  }
  const ofDayMs = Number(hours) * HOUR_MS + Number(minutes) * MINUTE_MS;
  if (weekday === undefined) return { periodMs: DAY_MS, offsetMs: ofDayMs };
  return { periodMs: WEEK_MS, offsetMs: WEEKDAYS.indexOf(weekday) * DAY_MS + ofDayMs };
}

/**
 * Returns when the next backup is due, in Unix milliseconds.
 *
 * @param newest - time of the newest backup; undefined where there is none: then one is due at once
 */
export function nextBackupAt(schedule: BackupSchedule, newest: number | undefined, now: number): number {
  if (newest === undefined) return now;
  if ("everyMs" in schedule) return newest + schedule.everyMs;
  const { periodMs, offsetMs } = schedule;
  return (Math.floor((newest - offsetMs) / periodMs) + 1) * periodMs + offsetMs;
}

/** Returns true once a backup that was due then is late. */
export function isOverdue(dueAt: number, now: number): boolean {
  return now - dueAt > GRACE_MS;
}
