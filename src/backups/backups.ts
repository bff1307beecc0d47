/**
 * Backups that the server makes of its own store, when it is asked to or by a schedule.
 *
 * The files are the truth: what is in the directory, under the store's number, and is whole. Only the one that is being made, and
 * why the last one failed, are in memory. A process of its own makes the file (`command.ts`), which has its name once it is whole.
 *
 * @module
 */
import { constants, realpathSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Tickets } from "../keys/tickets.ts";
import { ApiError, hasCode, messageOf } from "../lib/errors.ts";
import { freeBytes, megabytes } from "../lib/files.ts";
import { NO_PARTITION, nothingWithId, withPrefix, type KeyId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { describeError, type Log } from "../lib/log.ts";
import { systemReason } from "../lib/system-errors.ts";
import { toIso } from "../lib/time.ts";
import { removeAbandoned } from "../operations/files.ts";
import {
  backupIn,
  backupNumber,
  backupsDirectory,
  fileName,
  knownBackupNumber,
  makeBackupsDirectory,
  type BackupId,
  type BackupTrigger,
} from "../operations/own-backups.ts";
import { FREE_BYTES_MIN } from "../storage/lmdb/disk/disk-errors.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { commitAdmin, commitSecret, recordAdmin, type Caller, type Deps } from "../traces/record.ts";
import { fileJson, FilePieces, filesOf, type BackupFile } from "./backup-files.ts";
import { runBackup, type BackupCommand, type RunningBackup } from "./command.ts";

interface BackupsDeps extends Deps {
  readonly store: Store;
  readonly log: Log;
  readonly tickets: Tickets;
  readonly command: BackupCommand;
  /** The setting `max_store_bytes`. */
  readonly storeBytesMax: () => number | null;
}

/** The one that is being made, or the last one if that has failed. */
interface Attempt {
  id: BackupId;
  trigger: BackupTrigger;
  status: "running" | "failed";
  createdAt: number;
  error: string | null;
  isStopped: boolean;
  running: RunningBackup | undefined;
  /** Resolves when nothing is done for it any more. */
  ended: Promise<void>;
}

/** Besides the space for the backup a share of the store is left for what it may grow by meanwhile. */
const GROWTH_SHARE = 1 / 4;

/** Operations on backups. */
export type BackupOperations = Pick<Backups, "start" | "list" | "get" | "delete" | "issueTicket" | "open">;

export class Backups {
  readonly #deps: BackupsDeps;
  #attempt: Attempt | undefined;
  #isClosed = false;

  constructor(deps: BackupsDeps) {
    this.#deps = deps;
    this.#removeDrafts();
  }

  /**
   * Begins a backup.
   *
   * @throws {ApiError} `already_exists` while one is being made, `invalid_request` when there are as many as are kept,
   * `service_unavailable` without space on the disk
   */
  async start(caller: Caller): Promise<JsonText> {
    return this.#start(caller, { ...NEW_ATTEMPT, trigger: "request" }, await this.#prepare());
  }

  /**
   * Makes one that is due. Where there is no space, say, it fails as one does that has begun: that is seen in the morning.
   *
   * @returns why there is none
   * @throws {ApiError} where none can be begun
   */
  async makeDue(caller: Caller): Promise<string | undefined> {
    const attempt: Attempt = { ...NEW_ATTEMPT, trigger: "schedule" };
    await this.#start(caller, attempt, await this.#prepareDue());
    await attempt.ended;
    return attempt.isStopped ? "It was stopped before it was ready." : (attempt.error ?? undefined);
  }

  async #start(caller: Caller, attempt: Attempt, prepared: PathOf | ApiError): Promise<JsonText> {
    try {
      const answer = await commitAdmin(this.#deps, caller, (tx) => {
        this.#refuseAnother(attempt);
        this.#attempt = attempt;
        attempt.id = withPrefix("bkp", tx.bareId());
        attempt.createdAt = tx.now;
        recordAdmin(tx, caller, "backup.started", { backup_id: attempt.id });
        return attemptJson(attempt);
      });
      attempt.ended = this.#make(attempt, caller, prepared);
      return answer;
    } catch (error) {
      if (this.#attempt === attempt) this.#attempt = undefined;
      throw error;
    }
  }

  /** Newest first. */
  async list(page: Page<BackupId>): Promise<JsonText> {
    const files = await filesOf(this.#deps.store);
    const ids = new Set([...files.keys(), ...(this.#attempt === undefined ? [] : [this.#attempt.id])]);
    const { startingAfter } = page;
    const due = [...ids].filter((id) => startingAfter === undefined || id < startingAfter).toSorted((a, b) => (a < b ? 1 : -1));
    const items = await Promise.all(due.map(async (id) => ({ id, json: await this.#json(id, files) })));
    return pageOf(
      items.flatMap(({ id, json }) => (json === undefined ? [] : [{ id, json }])),
      page.limit,
    );
  }

  async get(id: string): Promise<JsonText> {
    const json = await this.#json(id, await filesOf(this.#deps.store));
    if (json === undefined) throw noBackup(id);
    return json;
  }

  /** Deletes a backup, or stops the one that is being made. */
  async delete(caller: Caller, id: string, reason: string | undefined): Promise<JsonText> {
    const attempt = this.#attempt?.id === id ? this.#attempt : undefined;
    if (attempt !== undefined) await this.#stop(attempt);
    const file = (await filesOf(this.#deps.store)).get(id);
    if (attempt === undefined && file === undefined) throw noBackup(id);
    // Before its trace is written: on a full disk that needs the space.
    if (file !== undefined) {
      await rm(file.path, { force: true }).catch((error: unknown) => {
        throw unusable(`The backup ${id} cannot be deleted`, error);
      });
    }
    if (this.#attempt === attempt) this.#attempt = undefined;
    return commitAdmin(this.#deps, caller, (tx) => {
      recordAdmin(tx, caller, "backup.deleted", { backup_id: id, reason: reason ?? null });
      return toJson({ object: "backup", id, deleted: true });
    });
  }

  /** Makes a ticket for one download. */
  async issueTicket(caller: Caller & { keyId: KeyId }, id: string): Promise<JsonText> {
    await this.#ready(id);
    const path = `/v1/backups/${id}/file`;
    const url = `${path}?ticket=${this.#deps.tickets.issue(caller.keyId, path)}`;
    return commitSecret(this.#deps, caller, (tx) =>
      toJson({ object: "backup_ticket", backup_id: id, url, expires_at: toIso(tx.now + LIMITS.ticketSeconds * 1000) }),
    );
  }

  /** Opens the file of a backup for sending; it stays there until it is closed, also when it is deleted meanwhile. */
  async open(caller: Caller, id: string): Promise<{ name: string; pieces: FilePieces }> {
    const { path } = await this.#ready(id);
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW).catch((error: unknown) => {
      // Deleted since it was looked for.
      throw hasCode(error, "ENOENT") ? noBackup(id) : unusable(`The backup ${id} cannot be read`, error);
    });
    try {
      await commitAdmin(this.#deps, caller, (tx) => {
        recordAdmin(tx, caller, "backup.downloaded", { backup_id: id });
        return toJson(null);
      });
      return { name: `${id}.cairn`, pieces: new FilePieces(file) };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Stops the one that is being made. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#attempt !== undefined) await this.#stop(this.#attempt);
  }

  #refuseAnother(attempt: Attempt): void {
    if (this.#isClosed) throw new ApiError("service_unavailable", "The server is stopping.");
    const other = this.#attempt;
    if (other === undefined || other === attempt || other.status === "failed") return;
    throw new ApiError("already_exists", `The backup ${other.id} is being made. Wait until it is ready, or delete it.`);
  }

  /** Backups of the schedule have a limit of their own. @throws {ApiError} when there are as many as are kept */
  async #prepare(): Promise<PathOf> {
    const path = await this.#space();
    const made = [...(await filesOf(this.#deps.store)).values()].filter(({ trigger }) => trigger === "request");
    if (made.length >= LIMITS.backupsMax)
      throw new ApiError("invalid_request", `There can be at most ${LIMITS.backupsMax} backups. Delete one first.`);
    return path;
  }

  /** @returns why none can be made, where that is so */
  async #prepareDue(): Promise<PathOf | ApiError> {
    try {
      return await this.#space();
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  }

  /** @throws {ApiError} where there is no space for one more, or no place */
  async #space(): Promise<PathOf> {
    const { store, storeBytesMax } = this.#deps;
    const number = await backupNumber(store);
    const directory = this.#madeDirectory();
    const { bytesUsed } = store;
    const growth = Math.min(bytesUsed * GROWTH_SHARE, Math.max(0, (storeBytesMax() ?? Infinity) - bytesUsed));
    const needed = bytesUsed + growth + FREE_BYTES_MIN;
    const free = freeBytes(directory);
    if (free < needed)
      throw new ApiError(
        "service_unavailable",
        `There is no space for a backup: it needs ${megabytes(needed)} on the disk, with what is left for the store to grow, and ${megabytes(free)} are free.`,
      );
    return (id, trigger) => join(directory, fileName({ id, trigger, number }));
  }

  #madeDirectory(): string {
    try {
      const directory = makeBackupsDirectory(this.#deps.store);
      this.#removeDrafts();
      return directory;
    } catch (error) {
      throw unusable("The directory for backups cannot be used", error);
    }
  }

  /** Makes the file of an attempt, and records what became of it. Never rejects. */
  async #make(attempt: Attempt, caller: Caller, prepared: PathOf | ApiError): Promise<void> {
    if (attempt.isStopped) return;
    const problem = await this.#problemOf(attempt, prepared);
    if (attempt.isStopped) return;
    await this.#recordOutcome(attempt, caller, problem);
    if (problem === undefined) this.#attempt = undefined;
    else Object.assign(attempt, { status: "failed", error: problem });
  }

  /** Makes the file. @returns why there is none */
  async #problemOf(attempt: Attempt, prepared: PathOf | ApiError): Promise<string | undefined> {
    if (prepared instanceof ApiError) return prepared.message;
    const { store, command } = this.#deps;
    attempt.running = runBackup(command, store.directory, prepared(attempt.id, attempt.trigger));
    const problem = await attempt.running.ended;
    if (problem !== undefined) this.#removeDrafts();
    return problem;
  }

  async #recordOutcome(attempt: Attempt, caller: Caller, problem: string | undefined): Promise<void> {
    const { store, log } = this.#deps;
    const { id } = attempt;
    // No request waits for it any more, which its trace would say of the time that it took.
    const owner = { ...caller, requestId: null, startedAt: null };
    if (problem === undefined) log.info("backup written", { backup: id });
    else log.error("backup failed", { backup: id, reason: problem });
    const failed = attemptJson({ ...attempt, status: "failed", error: problem ?? null });
    const record = problem === undefined ? await this.#readyJson(id) : failed;
    const [action, details] =
      problem === undefined
        ? (["backup.created", { backup_id: id }] as const)
        : (["backup.failed", { backup_id: id, reason: problem }] as const);
    try {
      await store.commit(NO_PARTITION, (tx) => recordAdmin(tx, owner, action, details, record));
    } catch (error) {
      log.error("could not record a backup", { backup: id, reason: describeError(error) });
    }
  }

  async #readyJson(id: BackupId): Promise<JsonText | undefined> {
    const file = (await filesOf(this.#deps.store)).get(id);
    return file === undefined ? undefined : this.#fileJson(file);
  }

  async #stop(attempt: Attempt): Promise<void> {
    attempt.isStopped = true;
    attempt.running?.kill();
    await attempt.ended;
  }

  /** Removes what processes that are gone have left. */
  #removeDrafts(): void {
    const { store, log } = this.#deps;
    const number = knownBackupNumber(store);
    if (number === undefined) return;
    try {
      removeAbandoned(realpathSync(backupsDirectory(store)), (name) => backupIn(name)?.number === number);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) log.warn("could not remove the drafts of interrupted backups", { reason: messageOf(error) });
    }
  }

  /** Reason why the last one failed; null where one has been made since, or is being made. */
  get error(): string | null {
    return this.#attempt?.error ?? null;
  }

  get isRunning(): boolean {
    return this.#attempt?.status === "running";
  }

  async #json(id: string, files: ReadonlyMap<string, BackupFile>): Promise<JsonText | undefined> {
    if (this.#attempt?.id === id) return attemptJson(this.#attempt);
    const file = files.get(id);
    return file === undefined ? undefined : this.#fileJson(file);
  }

  #fileJson(file: BackupFile): Promise<JsonText | undefined> {
    return fileJson(
      file,
      this.#deps.store.read((reader) => reader.now),
    );
  }

  /** @throws {ApiError} `resource_not_found`, or `invalid_request` for one that is not ready */
  async #ready(id: string): Promise<BackupFile> {
    const file = (await filesOf(this.#deps.store)).get(id);
    const attempt = this.#attempt?.id === id ? this.#attempt : undefined;
    if (attempt !== undefined)
      throw new ApiError("invalid_request", `The backup ${id} is ${attempt.status}, so that there is nothing to download.`, {
        param: "backup_id",
      });
    if (file === undefined || (await this.#fileJson(file)) === undefined) throw noBackup(id);
    return file;
  }
}

/** Path of the file of an id. */
type PathOf = (id: BackupId, trigger: BackupTrigger) => string;

const NEW_ATTEMPT: Attempt = {
  id: "bkp_",
  trigger: "request",
  status: "running",
  createdAt: 0,
  error: null,
  isStopped: false,
  running: undefined,
  ended: Promise.resolve(),
};

function attemptJson({ id, trigger, status, createdAt, error }: Attempt): JsonText {
  return toJson({ object: "backup", id, trigger, status, created_at: toIso(createdAt), bytes: null, version: null, error });
}

export function noBackup(id: string): ApiError {
  return new ApiError("resource_not_found", nothingWithId("backup", "bkp", id), { param: "backup_id" });
}

function unusable(what: string, error: unknown): ApiError {
  return new ApiError("service_unavailable", `${what}: ${systemReason(error)}.`, { cause: error });
}
