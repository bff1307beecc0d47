/**
 * Files of the backups that a store has made by itself.
 *
 * @module
 */
import { lstat, readdir, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { bare, bareIdTime } from "../lib/ids.ts";
import { DAY_MS } from "../lib/duration.ts";
import { toJson, type JsonText } from "../lib/json.ts";
import { isOfSystem } from "../lib/system-errors.ts";
import { toIso } from "../lib/time.ts";
import { describeBackup } from "../operations/backup.ts";
import { backupFile } from "../operations/backup-source.ts";
import { backupIn, backupsDirectory, knownBackupNumber, type BackupId, type NamedBackup } from "../operations/own-backups.ts";
import { OperationError } from "../operations/report.ts";
import type { SettingValues } from "../settings/schema.ts";
import type { Store } from "../storage/lmdb/store.ts";

export interface BackupFile extends NamedBackup {
  readonly path: string;
}

/** The store's own files by their ids. */
export async function filesOf(store: Store): Promise<ReadonlyMap<string, BackupFile>> {
  const number = knownBackupNumber(store);
  const directory = backupsDirectory(store);
  const names = number === undefined ? [] : await readdir(directory).catch(() => []);
  const files = names.flatMap((name) => {
    const found = backupIn(name);
    return found === undefined || found.number !== number ? [] : [[found.id, { ...found, path: join(directory, name) }] as const];
  });
  return new Map(files);
}

/**
 * Returns when a backup was made; undefined where the clock was ahead of what it is now, so that nobody knows.
 *
 * Ids go on from the last one when the clock is set back: one ahead of it does not say when it was asked for. The file says about
 * when it was written.
 */
export function madeAt(id: BackupId, writtenAt: number, now: number): number | undefined {
  return [bareIdTime(bare(id)), writtenAt].find((at) => at <= now);
}

/** With its time, where that is known. */
export interface Dated {
  readonly id: BackupId;
  readonly at: number | undefined;
}

export type KeptBackup = BackupFile & Dated;

/** Newest first. Those whose time is not known come last: taken for new, they would hold up the next one until the clock is there. */
export function newestFirst(a: Dated, b: Dated): number {
  return (b.at ?? 0) - (a.at ?? 0) || (a.id < b.id ? 1 : -1);
}

/** The store's own files with their times, newest first. */
export async function keptBackups(store: Store): Promise<KeptBackup[]> {
  const now = store.read((reader) => reader.now);
  const found = await Promise.all(
    Array.from((await filesOf(store)).values(), async (file) => {
      const stat = await lstat(file.path).catch(() => undefined);
      return stat?.isFile() === true ? [{ ...file, at: madeAt(file.id, stat.mtimeMs, now) }] : [];
    }),
  );
  return found.flat().toSorted(newestFirst);
}

/** Those, of some with the newest first, that `backups.keep` and `backups.keep_days` do not keep. */
export function superfluous<Backup extends Dated>(
  backups: readonly Backup[],
  { "backups.keep": keep, "backups.keep_days": days }: Pick<SettingValues, "backups.keep" | "backups.keep_days">,
  now: number,
): Backup[] {
  const oldest = days === null ? Number.NEGATIVE_INFINITY : now - days * DAY_MS;
  return backups.filter(({ at }, place) => place >= keep || (place > 0 && at !== undefined && at < oldest));
}

/**
 * Returns a backup as the API shows it; undefined for what is no whole backup.
 *
 * @param problem - why it was not copied
 */
export async function fileJson(
  { id, trigger, path }: BackupFile,
  now: number,
  problem: string | null = null,
): Promise<JsonText | undefined> {
  try {
    const found = await lstat(path);
    if (!found.isFile()) return undefined;
    const { cairn } = await describeBackup(backupFile(path));
    const createdAt = toIso(madeAt(id, found.mtimeMs, now) ?? now);
    return toJson({
      object: "backup",
      id,
      trigger,
      status: "ready",
      created_at: createdAt,
      bytes: found.size,
      version: cairn,
      error: problem,
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
