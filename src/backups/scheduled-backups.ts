/**
 * Backups by a schedule: made when one is due, old ones deleted, and how it stands.
 *
 * The files say what is due: a server that was off makes the one that it missed once it is on.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { SECOND_MS } from "../lib/duration.ts";
import { ApiError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { toIso } from "../lib/time.ts";
import type { Settings } from "../settings/settings.ts";
import type { Store } from "../storage/lmdb/store.ts";
import type { Task } from "../tasks/task.ts";
import type { Caller } from "../traces/record.ts";
import { Attempts } from "./attempts.ts";
import type { BackupCopies, CopiesStatus } from "./backup-copies.ts";
import { keptBackups, superfluous } from "./backup-files.ts";
import type { Backups } from "./backups.ts";
import { isOverdue, nextBackupAt, parseBackupSchedule } from "../settings/backup-schedule.ts";

interface ScheduledBackupsDeps {
  readonly backups: Backups;
  readonly copies: Pick<BackupCopies, "status" | "problem">;
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
  /** True also where the newest copy is late. */
  readonly overdue: boolean;
  readonly copies: CopiesStatus | null;
}

/** The setting, the clock and the directory are looked at so often. */
const LOOK_MS = 10 * SECOND_MS;

export class ScheduledBackups {
  readonly #deps: ScheduledBackupsDeps;
  /** Time from which one is due where there is none: the start of the server, or what the clock says where it was set back since. */
  #startedAt: number;
  /** The schedule as it was last seen, and since when it holds; -Infinity for that of the start. */
  #seen: { readonly schedule: string | null; readonly since: number };
  readonly #attempts: Attempts;

  constructor(deps: ScheduledBackupsDeps) {
    this.#deps = deps;
    this.#attempts = new Attempts(deps.clock);
    this.#startedAt = this.#now();
    this.#seen = { schedule: deps.settings.values["backups.schedule"], since: Number.NEGATIVE_INFINITY };
  }

  #now(): number {
    return this.#deps.store.read((reader) => reader.now);
  }

  /** Reason why no copy can be made, whatever the bucket. */
  get copyProblem(): string | undefined {
    return this.#deps.copies.problem;
  }

  task(): Task {
    return { name: "scheduled backups", run: () => this.#run() };
  }

  async status(): Promise<ScheduleStatus> {
    const { settings } = this.#deps;
    const { "backups.schedule": schedule } = settings.values;
    const newest = (await keptBackups(this.#deps.store))[0]?.at;
    const copies = await this.#deps.copies.status();
    const now = this.#now();
    const dueAt = this.#dueAt(newest);
    return {
      schedule,
      newest_at: newest === undefined ? null : toIso(newest),
      age_seconds: newest === undefined ? null : Math.floor((now - newest) / SECOND_MS),
      next_at: dueAt === undefined ? null : toIso(Math.max(dueAt, now)),
      error: this.#attempts.error ?? this.#deps.backups.error,
      failures: this.#attempts.failures,
      overdue: (dueAt !== undefined && isOverdue(Math.max(dueAt, this.#seen.since), now)) || copies?.overdue === true,
      copies,
    };
  }

  async #run(): Promise<number> {
    const { backups, store } = this.#deps;
    const dueAt = this.#dueAt((await keptBackups(store))[0]?.at);
    if (dueAt === undefined || dueAt > this.#now() || backups.isRunning || this.#attempts.isPaused) return LOOK_MS;
    const problem = await this.#make();
    this.#attempts.end(problem);
    if (problem === undefined) await this.#deleteOld();
    return LOOK_MS;
  }

  /** Makes one. @returns why there is none */
  async #make(): Promise<string | undefined> {
    const { backups, system, log } = this.#deps;
    try {
      return await backups.makeDue(system);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.error("no backup can be begun", { reason: error.message });
      return error.message;
    }
  }

  async #deleteOld(): Promise<void> {
    const { backups, system, settings, store } = this.#deps;
    const scheduled = (await keptBackups(store)).filter(({ trigger }) => trigger === "schedule");
    for (const { id } of superfluous(scheduled, settings.values, this.#now()))
      await backups.delete(system, id, "It is older than those that backups.keep and backups.keep_days keep.");
  }

  /** Undefined without a schedule. */
  #dueAt(newest: number | undefined): number | undefined {
    const { "backups.schedule": text } = this.#deps.settings.values;
    const now = this.#now();
    if (text !== this.#seen.schedule) this.#seen = { schedule: text, since: now };
    this.#startedAt = Math.min(this.#startedAt, now);
    const schedule = text === null ? undefined : parseBackupSchedule(text);
    return schedule && nextBackupAt(schedule, newest, this.#startedAt);
  }
}
