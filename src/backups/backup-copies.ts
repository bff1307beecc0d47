/**
 * Copies of the backups in a bucket, as `backups.copy_to` says: the newest is copied, old copies are deleted, and how it stands.
 *
 * The bucket says what is due. A copy that fails is tried again, later each time; the backup that it is of stays.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { SECOND_MS } from "../lib/duration.ts";
import { bare, bareIdTime, NO_PARTITION } from "../lib/ids.ts";
import { messageOf } from "../lib/errors.ts";
import type { JsonText } from "../lib/json.ts";
import { describeError, type Log } from "../lib/log.ts";
import { accessProblem, Bucket, BucketError, parseBucketUrl, type BucketAccess } from "../lib/s3.ts";
import { isOfSystem, systemReason } from "../lib/system-errors.ts";
import { toIso } from "../lib/time.ts";
import { backupObject } from "../operations/backup-source.ts";
import { describeBackup } from "../operations/backup.ts";
import { backupIn, fileName, knownBackupNumber, type BackupId } from "../operations/own-backups.ts";
import { OperationError } from "../operations/report.ts";
import { isOverdue } from "../settings/backup-schedule.ts";
import type { Settings } from "../settings/settings.ts";
import type { Store } from "../storage/lmdb/store.ts";
import type { Task } from "../tasks/task.ts";
import { recordAdmin, type Caller } from "../traces/record.ts";
import { Attempts } from "./attempts.ts";
import { fileJson, keptBackups, superfluous, type KeptBackup } from "./backup-files.ts";

interface BackupCopiesDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly settings: Pick<Settings, "values">;
  readonly access: BucketAccess;
  readonly system: Caller;
  readonly log: Log;
}

/** Standing of the copies, as `/v1/stats` shows it. */
export interface CopiesStatus {
  readonly url: string;
  readonly newest_at: string | null;
  readonly error: string | null;
  readonly failures: number;
  readonly overdue: boolean;
}

interface Copy {
  readonly id: BackupId;
  readonly name: string;
  readonly at: number;
}

/** The setting and the directory are looked at so often. */
const LOOK_MS = 10 * SECOND_MS;

export class BackupCopies {
  readonly #deps: BackupCopiesDeps;
  readonly #attempts: Attempts;
  /** The bucket of the setting; undefined without one. */
  #bucket: { readonly url: string; readonly opened: Bucket } | undefined;
  /** Copies in it, newest first; undefined until they have been asked for. */
  #copies: readonly Copy[] | undefined;
  #isClosed = false;

  constructor(deps: BackupCopiesDeps) {
    this.#deps = deps;
    this.#attempts = new Attempts(deps.clock);
  }

  /** Reason why no copy can be made, whatever the bucket. */
  get problem(): string | undefined {
    return accessProblem(this.#deps.access);
  }

  task(): Task {
    return { name: "copies of backups", run: () => this.#run() };
  }

  /** Null while none are made. */
  async status(): Promise<CopiesStatus | null> {
    const { store, settings } = this.#deps;
    const { "backups.copy_to": url } = settings.values;
    if (url === null) return null;
    const isLooked = this.#bucket?.url === url;
    const newest = isLooked ? this.#copies?.[0] : undefined;
    const { error, failures } = this.#attempts;
    const due = isLooked ? await this.#due() : undefined;
    return {
      url,
      newest_at: newest === undefined ? null : toIso(newest.at),
      error,
      failures,
      overdue:
        due !== undefined &&
        isOverdue(
          due.at,
          store.read((reader) => reader.now),
        ),
    };
  }

  /** Ends a copy that is being made: that is no failure of it. */
  close(): void {
    this.#isClosed = true;
    this.#bucket?.opened.close();
  }

  async #run(): Promise<number> {
    const { "backups.copy_to": url } = this.#deps.settings.values;
    if (url !== this.#bucket?.url) this.#forget();
    if (url === null || this.#isClosed || this.#attempts.isPaused) return LOOK_MS;
    const due = await this.#due();
    if (this.#copies !== undefined && due === undefined) return LOOK_MS;
    this.#attempts.end(await this.#problemOf(url));
    return LOOK_MS;
  }

  #forget(): void {
    this.#bucket?.opened.close();
    this.#bucket = undefined;
    this.#copies = undefined;
    this.#attempts.end(undefined);
  }

  /** The newest backup, where no copy is as new. */
  async #due(): Promise<KeptBackup | undefined> {
    const [newest] = await keptBackups(this.#deps.store);
    return newest !== undefined && newest.id > (this.#copies?.[0]?.id ?? "") ? newest : undefined;
  }

  /** Copies what is due. @returns why not */
  async #problemOf(url: string): Promise<string | undefined> {
    try {
      const place = parseBucketUrl(url);
      if (place === undefined) throw new BucketError(`${url} is no address of a bucket.`);
      this.#bucket ??= { url, opened: new Bucket(place, this.#deps.access) };
      await this.#copyTo(this.#bucket.opened);
      return undefined;
    } catch (error) {
      if (error instanceof BucketError || error instanceof OperationError) return error.message;
      if (isOfSystem(error)) return `${systemReason(error)}.`;
      throw error;
    }
  }

  async #copyTo(bucket: Bucket): Promise<void> {
    const { log } = this.#deps;
    try {
      this.#copies = await this.#copiesIn(bucket);
      const due = await this.#due();
      if (due === undefined) return;
      const name = fileName(due);
      await bucket.put(name, due.path);
      // Read back: what is there is what `cairn restore` would find.
      await describeBackup(backupObject(bucket, name));
      log.info("backup copied", { backup: due.id, to: bucket.url(name) });
      await this.#record("backup.copied", { backup_id: due.id, url: bucket.url(name) });
      this.#copies = [{ id: due.id, name, at: due.at }, ...this.#copies];
    } catch (error) {
      const due = await this.#due();
      if (due !== undefined && !this.#isClosed) await this.#recordFailure(due, bucket.url(fileName(due)), messageOf(error));
      throw error;
    }
    await this.#deleteOld(bucket, this.#copies);
  }

  /** Copies of this store, newest first. */
  async #copiesIn(bucket: Bucket): Promise<Copy[]> {
    const number = knownBackupNumber(this.#deps.store);
    const found = (await bucket.list()).flatMap(({ name }) => {
      const named = backupIn(name);
      return named === undefined || named.number !== number ? [] : [{ id: named.id, name, at: bareIdTime(bare(named.id)) }];
    });
    return found.toSorted((a, b) => (a.id < b.id ? 1 : -1));
  }

  async #deleteOld(bucket: Bucket, copies: readonly Copy[]): Promise<void> {
    const { store, settings, log } = this.#deps;
    const now = store.read((reader) => reader.now);
    const old = superfluous(copies, settings.values, now);
    try {
      for (const { name } of old) await bucket.delete(name);
      this.#copies = copies.filter((copy) => !old.includes(copy));
    } catch (error) {
      // The copy is there. Access that may only write is as it should be where a rule of the bucket deletes.
      log.warn("old copies of backups cannot be deleted", { url: bucket.url(), reason: messageOf(error) });
    }
  }

  async #recordFailure(due: KeptBackup, url: string, reason: string): Promise<void> {
    const { store, log } = this.#deps;
    log.error("backup not copied", { backup: due.id, to: url, reason });
    const now = store.read((reader) => reader.now);
    const backup = await fileJson(due, now, `It could not be copied to ${url}: ${reason}`);
    await this.#record("backup.copy_failed", { backup_id: due.id, url, reason }, backup);
  }

  async #record(action: "backup.copied" | "backup.copy_failed", details: Record<string, unknown>, backup?: JsonText): Promise<void> {
    const { store, system, log } = this.#deps;
    try {
      await store.commit(NO_PARTITION, (tx) => recordAdmin(tx, system, action, details, backup));
    } catch (error) {
      log.error("could not record the copy of a backup", { reason: describeError(error) });
    }
  }
}
