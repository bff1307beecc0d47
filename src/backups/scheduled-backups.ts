/**
 * Backups by a schedule: made when one is due, old ones deleted, and how it stands.
 *
 * The files say what is due: a server that was off makes the one that it missed once it is on.
 *
 * @module
 */
import { lstat } from "node:fs/promises";
import type { Clock } from "../lib/clock.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { toIso } from "../lib/time.ts";
import type { Settings } from "../settings/settings.ts";
import type { Store } from "../storage/lmdb/store.ts";
import type { Task } from "../tasks/task.ts";
import type { Caller } from "../traces/record.ts";
import { filesOf, madeAt, type BackupFile } from "./backup-files.ts";
import type { Backups } from "./backups.ts";
import { isOverdue, nextBackupAt, parseBackupSchedule } from "../settings/backup-schedule.ts";

interface ScheduledBackupsDeps {
  readonly backups: Backups;
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Pick<Settings, "values">;
  readonly system: Caller;
  readonly log: Log;
}

/** Standing of the schedule, as `/v1/stats` shows it. */
export interface ScheduleStatus {
  readonly schedule: string | null;
  readonly newest_at: string | null;
  readonly age_seconds: number | null;
  readonly next_at: string | null;
  readonly error: string | null;
  readonly failures: number;
  readonly overdue: boolean;
}

type KeptBackup = BackupFile & { readonly at: number };

/** The setting, the clock and the directory are looked at so often. */
const LOOK_MS = 10 * SECOND_MS;
const RETRY_MS = 5 * MINUTE_MS;
const RETRY_MS_MAX = HOUR_MS;

export class ScheduledBackups {
  readonly #deps: ScheduledBackupsDeps;
  readonly #startedAt: number;
  /** Failures since the last one that was made, and since the start. */
  #failuresInARow = 0;
  #failures = 0;
  #error: string | null = null;
  #retryAt = 0;

  constructor(deps: ScheduledBackupsDeps) {
    this.#deps = deps;
    this.#startedAt = this.#now();
  }

  #now(): number {
    return this.#deps.store.read((reader) => reader.now);
  }

  task(): Task {
    return { name: "scheduled backups", run: () => this.#run() };
  }

  async status(): Promise<ScheduleStatus> {
    const { settings } = this.#deps;
    const { "backups.schedule": schedule } = settings.values;
    const newest = (await this.#kept())[0]?.at;
    const now = this.#now();
    const dueAt = this.#dueAt(newest);
    return {
      schedule,
      newest_at: newest === undefined ? null : toIso(newest),
      age_seconds: newest === undefined ? null : Math.floor((now - newest) / SECOND_MS),
      next_at: dueAt === undefined ? null : toIso(Math.max(dueAt, now)),
      error: this.#error ?? this.#deps.backups.error,
      failures: this.#failures,
      overdue: dueAt !== undefined && isOverdue(dueAt, now),
    };
  }

  async #run(): Promise<number> {
    const { backups, clock } = this.#deps;
    const dueAt = this.#dueAt((await this.#kept())[0]?.at);
    if (dueAt === undefined || dueAt > this.#now() || backups.isRunning || clock.elapsed() < this.#retryAt) return LOOK_MS;
    const problem = await this.#make();
    if (problem === undefined) {
      this.#failuresInARow = 0;
      await this.#deleteOld();
    } else {
      this.#failures++;
      this.#retryAt = clock.elapsed() + Math.min(RETRY_MS * 2 ** this.#failuresInARow++, RETRY_MS_MAX);
    }
    this.#error = problem ?? null;
    return LOOK_MS;
  }

  /** Makes one. @returns why there is none */
  async #make(): Promise<string | undefined> {
    const { backups, system, log } = this.#deps;
    try {
      await backups.startDue(system);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.error("no backup can be begun", { reason: error.message });
      return error.message;
    }
    await backups.settled();
    return backups.error ?? undefined;
  }

  async #deleteOld(): Promise<void> {
    const { backups, system, settings } = this.#deps;
    const { "backups.keep": keep, "backups.keep_days": days } = settings.values;
    const scheduled = (await this.#kept()).filter(({ trigger }) => trigger === "schedule");
    const oldest = days === null ? Number.NEGATIVE_INFINITY : this.#now() - days * DAY_MS;
    for (const { id } of scheduled.filter(({ at }, place) => place >= keep || (place > 0 && at < oldest)))
      await backups.delete(system, id, "It is older than those that backups.keep and backups.keep_days keep.");
  }

  /** Undefined without a schedule. */
  #dueAt(newest: number | undefined): number | undefined {
    const { "backups.schedule": text } = this.#deps.settings.values;
    const schedule = text === null ? undefined : parseBackupSchedule(text);
    return schedule && nextBackupAt(schedule, newest, this.#startedAt);
  }

  /** Newest first. */
  async #kept(): Promise<KeptBackup[]> {
    const now = this.#now();
    const found = await Promise.all(
      Array.from((await filesOf(this.#deps.store)).values(), async (file) => {
        const stat = await lstat(file.path).catch(() => undefined);
        return stat?.isFile() === true ? [{ ...file, at: madeAt(file.id, stat.mtimeMs, now) }] : [];
      }),
    );
    return found.flat().toSorted((a, b) => b.at - a.at || (a.id < b.id ? 1 : -1));
  }
}
