/**
 * Copies of the backups in a bucket, as `backups.copy_to` says: the newest is copied, old copies are deleted, and how it stands.
 *
 * The bucket says what is due. A copy that fails is tried again, later each time; the backup that it is of stays.
 *
 * @module
 */
import type { Clock } from "../lib/clock.ts";
import { SECOND_MS } from "../lib/duration.ts";
import { NO_PARTITION } from "../lib/ids.ts";
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
import { fileJson, keptBackups, madeAt, newestFirst, superfluous, type Dated, type KeptBackup } from "./backup-files.ts";

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
}

/** The setting and the directory are looked at so often. */
const LOOK_MS = 10 * SECOND_MS;

export class BackupCopies {
  readonly #deps: BackupCopiesDeps;
  readonly #attempts: Attempts;
  /** The setting as it was last seen, and since when it holds; -Infinity for that of the start. */
  #seen: { readonly url: string | null; readonly since: number };
  /** The bucket of the setting; undefined without one, and until it is used. */
  #bucket: Bucket | undefined;
  /** Copies in it; undefined until they have been asked for. */
  #copies: readonly Copy[] | undefined;
  #isClosed = false;

  constructor(deps: BackupCopiesDeps) {
    this.#deps = deps;
    this.#attempts = new Attempts(deps.clock);
    this.#seen = { url: deps.settings.values["backups.copy_to"], since: Number.NEGATIVE_INFINITY };
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
    this.#look(url);
    const { error, failures } = this.#attempts;
    const newest = (await this.#dated()).find(({ at }) => at !== undefined)?.at;
    // Until the bucket has been asked, or cannot be, nobody knows whether a copy is there.
    const due = this.#copies !== undefined || error !== null ? await this.#due() : undefined;
    const now = store.read((reader) => reader.now);
    return {
      url,
      newest_at: newest === undefined ? null : toIso(newest),
      error,
      failures,
      overdue: due !== undefined && isOverdue(Math.max(due.at ?? 0, this.#seen.since), now),
    };
  }

  /** Ends a copy that is being made: that is no failure of it. */
  close(): void {
    this.#isClosed = true;
    this.#bucket?.close();
  }

  async #run(): Promise<number> {
    const { "backups.copy_to": url } = this.#deps.settings.values;
    this.#look(url);
    if (url === null || this.#isClosed || this.#attempts.isPaused) return LOOK_MS;
    const due = await this.#due();
    if (this.#copies !== undefined && due === undefined) return LOOK_MS;
    const seen = this.#seen;
    using _ = this.#watch();
    const problem = await this.#problemOf(url, () => !this.#isClosed && this.#seen === seen);
    // Of another address that says nothing.
    if (this.#seen === seen) this.#attempts.end(problem);
    return LOOK_MS;
  }

  /** Looks at the setting while a copy is being made, until it is disposed of. */
  #watch(): Disposable {
    const { clock, settings } = this.#deps;
    let cancel: () => void;
    const wait = () => {
      cancel = clock.timer(LOOK_MS, () => {
        this.#look(settings.values["backups.copy_to"]);
        wait();
      });
    };
    wait();
    return { [Symbol.dispose]: () => cancel() };
  }

  /** Gives up what is under way for another address, and forgets what is known of it. */
  #look(url: string | null): void {
    if (url === this.#seen.url) return;
    this.#seen = { url, since: this.#deps.store.read((reader) => reader.now) };
    this.#bucket?.close();
    this.#bucket = undefined;
    this.#copies = undefined;
    this.#attempts.end(undefined);
  }

  /** The newest backup, where there is no copy of it. */
  async #due(): Promise<KeptBackup | undefined> {
    const [newest] = await keptBackups(this.#deps.store);
    const copies = await this.#dated();
    if (newest === undefined || copies.some(({ id }) => id === newest.id)) return undefined;
    return (copies[0]?.at ?? 0) > (newest.at ?? Infinity) ? undefined : newest;
  }

  /**
   * Copies what is due.
   *
   * @param isWanted - false once it was given up, which is no failure
   * @returns why not
   */
  async #problemOf(url: string, isWanted: () => boolean): Promise<string | undefined> {
    try {
      const place = parseBucketUrl(url);
      if (place === undefined) throw new BucketError(`${url} is no address of a bucket.`);
      this.#bucket ??= new Bucket(place, this.#deps.access);
      await this.#copyTo(this.#bucket);
      return undefined;
    } catch (error) {
      const due = await this.#due();
      if (due !== undefined && isWanted()) await this.#recordFailure(due, `${url.replace(/\/+$/, "")}/${fileName(due)}`, messageOf(error));
      if (error instanceof BucketError || error instanceof OperationError) return error.message;
      if (isOfSystem(error)) return `${systemReason(error)}.`;
      throw error;
    }
  }

  async #copyTo(bucket: Bucket): Promise<void> {
    const { log } = this.#deps;
    const copies = await this.#copiesIn(bucket);
    this.#copies = copies;
    const due = await this.#due();
    if (due === undefined) return;
    const name = fileName(due);
    await bucket.put(name, due.path);
    // Read back: what is there is what `cairn restore` would find.
    await describeBackup(backupObject(bucket, name));
    log.info("backup copied", { backup: due.id, to: bucket.url(name) });
    await this.#record("backup.copied", { backup_id: due.id, url: bucket.url(name) });
    if (bucket !== this.#bucket) return;
    this.#copies = [{ id: due.id, name }, ...copies];
    await this.#deleteOld(bucket, await this.#dated(), due.id);
  }

  /** Copies of this store. */
  async #copiesIn(bucket: Bucket): Promise<Copy[]> {
    const number = knownBackupNumber(this.#deps.store);
    return (await bucket.list()).flatMap(({ name }) => {
      const named = backupIn(name);
      return named === undefined || named.number !== number ? [] : [{ id: named.id, name }];
    });
  }

  /** The copies with their times as the clock is now, newest first. The file of the same backup says more of its time than the id. */
  async #dated(): Promise<(Copy & Dated)[]> {
    const { store } = this.#deps;
    const now = store.read((reader) => reader.now);
    const kept = new Map((await keptBackups(store)).map(({ id, at }) => [id, at]));
    const copies = this.#copies ?? [];
    return copies.map((copy) => ({ ...copy, at: kept.get(copy.id) ?? madeAt(copy.id, Infinity, now) })).toSorted(newestFirst);
  }

  /** @param made - stays, whatever its time */
  async #deleteOld(bucket: Bucket, copies: readonly (Copy & Dated)[], made: BackupId): Promise<void> {
    const { store, settings, log } = this.#deps;
    const now = store.read((reader) => reader.now);
    const old = superfluous(copies, settings.values, now).filter(({ id }) => id !== made);
    try {
      for (const { name } of old) await bucket.delete(name);
      if (bucket === this.#bucket) this.#copies = copies.filter((copy) => !old.includes(copy));
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
