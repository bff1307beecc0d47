/**
 * Files of the backups that a store has made by itself.
 *
 * @module
 */
import { lstat, readdir, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { bare, bareIdTime, isId, type Id } from "../lib/ids.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { isOfSystem } from "../lib/system-errors.ts";
import { toIso } from "../lib/time.ts";
import { describeBackup } from "../operations/backup.ts";
import { backupsDirectory, knownBackupNumber } from "../operations/own-backups.ts";
import { OperationError } from "../operations/report.ts";
import type { Store } from "../storage/lmdb/store.ts";

export type BackupId = Id<"bkp">;

/** Occasion of a backup. */
export type BackupTrigger = "request" | "schedule";

export interface BackupFile {
  readonly id: BackupId;
  readonly trigger: BackupTrigger;
  readonly path: string;
}

/** Ends of the names of files. */
const SUFFIXES: Record<BackupTrigger, string> = { request: "", schedule: "-scheduled" };

export function fileName(id: BackupId, trigger: BackupTrigger, number: string): string {
  return `${id}-${number}${SUFFIXES[trigger]}.cairn`;
}

/** The store's own files by their ids. */
export async function filesOf(store: Store): Promise<ReadonlyMap<string, BackupFile>> {
  const number = knownBackupNumber(store);
  const directory = backupsDirectory(store);
  const names = number === undefined ? [] : await readdir(directory).catch(() => []);
  const files = names.flatMap((name) => {
    const found = backupIn(name, number ?? "");
    return found === undefined ? [] : [[found.id, { ...found, path: join(directory, name) }] as const];
  });
  return new Map(files);
}

/** Reads the name of a file, or of a draft's file; undefined unless it is of the store with this number. */
export function backupIn(name: string, number: string): Pick<BackupFile, "id" | "trigger"> | undefined {
  const [, id, of, scheduled] = /^(bkp_\w{12})-(\d+)(-scheduled)?\.cairn$/.exec(name) ?? [];
  if (id === undefined || of !== number || !isId("bkp", id)) return undefined;
  return { id, trigger: scheduled === undefined ? "request" : "schedule" };
}

/** An id that is ahead of the clock does not say when it was asked for; the file says about when it was written. */
export function madeAt(id: BackupId, writtenAt: number, now: number): number {
  const askedAt = bareIdTime(bare(id));
  return askedAt <= now ? askedAt : Math.min(writtenAt, now);
}

/** Undefined for what is no whole backup. */
export async function fileJson({ id, trigger, path }: BackupFile, now: number): Promise<JsonText | undefined> {
  try {
    const found = await lstat(path);
    if (!found.isFile()) return undefined;
    const { cairn } = await describeBackup(path);
    const createdAt = toIso(madeAt(id, found.mtimeMs, now));
    return toJson({
      object: "backup",
      id,
      trigger,
      status: "ready",
      created_at: createdAt,
      bytes: found.size,
      version: cairn,
      error: null,
    });
  } catch (error) {
    // Deleted meanwhile, damaged, or of somebody else.
    if (error instanceof OperationError || isOfSystem(error)) return undefined;
    throw error;
  }
}

/** Read at once from a file that is sent. */
const PIECE_BYTES = 256 * 1024;
/** A file in pieces. */
export class FilePieces {
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
