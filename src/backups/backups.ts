/**
 * Backups that the server makes of its own store.
 *
 * The files are the truth: what is in the directory, under the store's number, and is whole. Only the one that is being made, and
 * why the last one failed, are in memory. A process of its own makes the file (`command.ts`), which has its name once it is whole.
 *
 * @module
 */
import { constants, realpathSync } from "node:fs";
import { lstat, open, readdir, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import type { Tickets } from "../keys/tickets.ts";
import { ApiError, hasCode, messageOf } from "../lib/errors.ts";
import { freeBytes, megabytes } from "../lib/files.ts";
import { bare, bareIdTime, isId, NO_PARTITION, nothingWithId, withPrefix, type Id, type KeyId } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { LIMITS } from "../lib/limits.ts";
import { describeError, type Log } from "../lib/log.ts";
import { isOfSystem, systemReason } from "../lib/system-errors.ts";
import { toIso } from "../lib/time.ts";
import { describeBackup } from "../operations/backup.ts";
import { removeAbandoned } from "../operations/files.ts";
import { backupNumber, backupsDirectory, knownBackupNumber, makeBackupsDirectory } from "../operations/own-backups.ts";
import { OperationError } from "../operations/report.ts";
import { FREE_BYTES_MIN } from "../storage/lmdb/disk/disk-errors.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { pageOf, type Page } from "../storage/page.ts";
import { commitAdmin, commitSecret, recordAdmin, type Caller, type Deps } from "../traces/record.ts";
import { runBackup, type BackupCommand, type RunningBackup } from "./command.ts";

type BackupId = Id<"bkp">;

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
  status: "running" | "failed";
  createdAt: number;
  error: string | null;
  isStopped: boolean;
  running: RunningBackup | undefined;
  /** Resolves when nothing is done for it any more. */
  ended: Promise<void>;
}

interface BackupFile {
  readonly id: BackupId;
  readonly path: string;
}

/** Read at once from a file that is sent. */
const PIECE_BYTES = 256 * 1024;
/** Besides the room for the backup a share of the store is left for what it may grow by meanwhile. */
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
   * `service_unavailable` without room on the disk
   */
  async start(caller: Caller): Promise<JsonText> {
    const attempt: Attempt = { ...NEW_ATTEMPT };
    const path = await this.#prepare();
    try {
      const answer = await commitAdmin(this.#deps, caller, (tx) => {
        this.#refuseAnother(attempt);
        this.#attempt = attempt;
        attempt.id = withPrefix("bkp", tx.bareId());
        attempt.createdAt = tx.now;
        recordAdmin(tx, caller, "backup.started", { backup_id: attempt.id });
        return attemptJson(attempt);
      });
      attempt.ended = this.#make(attempt, caller, path(attempt.id));
      return answer;
    } catch (error) {
      if (this.#attempt === attempt) this.#attempt = undefined;
      throw error;
    }
  }

  /** Newest first. */
  async list(page: Page<BackupId>): Promise<JsonText> {
    const files = await this.#files();
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
    const json = await this.#json(id, await this.#files());
    if (json === undefined) throw noBackup(id);
    return json;
  }

  /** Deletes a backup, or stops the one that is being made. */
  async delete(caller: Caller, id: string, reason: string | undefined): Promise<JsonText> {
    const attempt = this.#attempt?.id === id ? this.#attempt : undefined;
    if (attempt !== undefined) await this.#stop(attempt);
    const file = (await this.#files()).get(id);
    if (attempt === undefined && file === undefined) throw noBackup(id);
    // Before its trace is written: on a full disk that needs the room.
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

  /** Checks that one more may be made. @returns where the file of an id goes */
  async #prepare(): Promise<(id: BackupId) => string> {
    const { store, storeBytesMax } = this.#deps;
    const number = await backupNumber(store);
    const directory = this.#madeDirectory();
    if ((await this.#files()).size >= LIMITS.backupsMax)
      throw new ApiError("invalid_request", `There can be at most ${LIMITS.backupsMax} backups. Delete one first.`);
    const { bytesUsed } = store;
    const growth = Math.min(bytesUsed * GROWTH_SHARE, Math.max(0, (storeBytesMax() ?? Infinity) - bytesUsed));
    const needed = bytesUsed + growth + FREE_BYTES_MIN;
    const free = freeBytes(directory);
    if (free < needed)
      throw new ApiError(
        "service_unavailable",
        `There is no room for a backup: it needs ${megabytes(needed)} on the disk, with what is left for the store to grow, and ${megabytes(free)} are free.`,
      );
    return (id) => join(directory, `${id}-${number}.cairn`);
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
  async #make(attempt: Attempt, caller: Caller, path: string): Promise<void> {
    const { store, log, command } = this.#deps;
    const { id } = attempt;
    if (attempt.isStopped) return;
    attempt.running = runBackup(command, store.directory, path);
    const problem = await attempt.running.ended;
    if (problem !== undefined) this.#removeDrafts();
    if (attempt.isStopped) return;
    const outcome = problem === undefined ? ("backup.created" as const) : ("backup.failed" as const);
    // No request waits for it any more, which its trace would say of the time that it took.
    const owner = { ...caller, requestId: null, startedAt: null };
    if (problem === undefined) log.info("backup written", { backup: id });
    else log.error("backup failed", { backup: id, reason: problem });
    try {
      await store.commit(NO_PARTITION, (tx) =>
        recordAdmin(tx, owner, outcome, problem === undefined ? { backup_id: id } : { backup_id: id, reason: problem }),
      );
    } catch (error) {
      log.error("could not record a backup", { backup: id, reason: describeError(error) });
    }
    if (problem === undefined) this.#attempt = undefined;
    else Object.assign(attempt, { status: "failed", error: problem });
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
      removeAbandoned(realpathSync(backupsDirectory(store)), (name) => idIn(name, number) !== undefined);
    } catch (error) {
      if (!hasCode(error, "ENOENT")) log.warn("could not remove the drafts of interrupted backups", { reason: messageOf(error) });
    }
  }

  /** The store's own files by their ids. */
  async #files(): Promise<ReadonlyMap<string, BackupFile>> {
    const { store } = this.#deps;
    const number = knownBackupNumber(store);
    const directory = backupsDirectory(store);
    const names = number === undefined ? [] : await readdir(directory).catch(() => []);
    const files = names.flatMap((name) => {
      const id = idIn(name, number ?? "");
      return id === undefined ? [] : [[id, { id, path: join(directory, name) }] as const];
    });
    return new Map(files);
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
    const file = (await this.#files()).get(id);
    const attempt = this.#attempt?.id === id ? this.#attempt : undefined;
    if (attempt !== undefined)
      throw new ApiError("invalid_request", `The backup ${id} is ${attempt.status}, so that there is nothing to download.`, {
        param: "backup_id",
      });
    if (file === undefined || (await this.#fileJson(file)) === undefined) throw noBackup(id);
    return file;
  }
}

const NEW_ATTEMPT: Attempt = {
  id: "bkp_",
  status: "running",
  createdAt: 0,
  error: null,
  isStopped: false,
  running: undefined,
  ended: Promise.resolve(),
};

/** A file in pieces. */
class FilePieces {
  readonly #file: FileHandle;
  constructor(file: FileHandle) {
    this.#file = file;
  }

  async next(): Promise<Uint8Array | undefined> {
    const piece = new Uint8Array(PIECE_BYTES);
    const { bytesRead } = await this.#file.read(piece, 0, PIECE_BYTES);
    return bytesRead === 0 ? undefined : piece.subarray(0, bytesRead);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** The id in the name of a file, or of a draft's file, of the store with this number. */
function idIn(name: string, number: string): BackupId | undefined {
  const [, id, of] = /^(bkp_\w{12})-(\d+)\.cairn$/.exec(name) ?? [];
  return id !== undefined && of === number && isId("bkp", id) ? id : undefined;
}

function attemptJson({ id, status, createdAt, error }: Attempt): JsonText {
  return toJson({ object: "backup", id, status, created_at: toIso(createdAt), bytes: null, version: null, error });
}

/** Undefined for what is no whole backup. */
async function fileJson({ id, path }: BackupFile, now: number): Promise<JsonText | undefined> {
  try {
    const found = await lstat(path);
    if (!found.isFile()) return undefined;
    const { cairn } = await describeBackup(path);
    const askedAt = bareIdTime(bare(id));
    // An id that is ahead of the clock does not say when it was asked for; the file says about when it was written.
    const createdAt = askedAt <= now ? askedAt : found.mtimeMs;
    return toJson({ object: "backup", id, status: "ready", created_at: toIso(createdAt), bytes: found.size, version: cairn, error: null });
  } catch (error) {
    // Deleted meanwhile, damaged, or of somebody else.
    if (error instanceof OperationError || isOfSystem(error)) return undefined;
    throw error;
  }
}

export function noBackup(id: string): ApiError {
  return new ApiError("resource_not_found", nothingWithId("backup", "bkp", id), { param: "backup_id" });
}

function unusable(what: string, error: unknown): ApiError {
  return new ApiError("service_unavailable", `${what}: ${systemReason(error)}.`, { cause: error });
}
