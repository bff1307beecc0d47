/**
 * Directory of the backups that a store makes by itself: `backups` in the data directory.
 *
 * That may be a link to a directory that other stores use too. So a store has a number that stands in the names of its backups,
 * and touches no others.
 *
 * @module
 */
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { isId, NO_PARTITION, type Id } from "../lib/ids.ts";
import { DATA_FILE } from "../storage/lmdb/file/data-file.ts";
import { Pages } from "../storage/lmdb/file/pages.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { BACKUP_NUMBER, meta } from "../storage/tables.ts";
import { textOf } from "./damage.ts";

/** Makes the directory where there is none. @returns its path */
export function makeBackupsDirectory(store: Store): string {
  const directory = backupsDirectory(store);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  return directory;
}

export function backupsDirectory(store: Store): string {
  return join(store.directory, "backups");
}

export type BackupId = Id<"bkp">;

/** Occasion of a backup. */
export type BackupTrigger = "request" | "schedule";

/** Contents of the name of a file. */
export interface NamedBackup {
  readonly id: BackupId;
  readonly trigger: BackupTrigger;
  /** Number of its store. */
  readonly number: string;
}

/** Ends of the names of files. */
const SUFFIXES: Record<BackupTrigger, string> = { request: "", schedule: "-scheduled" };

export function fileName({ id, trigger, number }: NamedBackup): string {
  return `${id}-${number}${SUFFIXES[trigger]}.cairn`;
}

/** Reads the name of a file, or of a draft's file; undefined for any other. */
export function backupIn(name: string): NamedBackup | undefined {
  const [, id, number, scheduled] = /^(bkp_\w{12})-(\d+)(-scheduled)?\.cairn$/.exec(name) ?? [];
  if (id === undefined || number === undefined || !isId("bkp", id)) return undefined;
  return { id, number, trigger: scheduled === undefined ? "request" : "schedule" };
}

/** Returns the path of the newest backup that a store has made by itself; undefined where there is none. */
export function newestOwn(store: Store): string | undefined {
  const [number, directory] = [knownBackupNumber(store), backupsDirectory(store)];
  if (number === undefined || !existsSync(directory)) return undefined;
  const own = readdirSync(directory).filter((name) => backupIn(name)?.number === number);
  const newest = own.toSorted().at(-1);
  return newest === undefined ? undefined : join(directory, newest);
}

/** Returns the number of a store, and gives it one by chance where it has none. */
export async function backupNumber(store: Store): Promise<string> {
  const known = knownBackupNumber(store);
  if (known !== undefined) return known;
  const drawn = String(crypto.getRandomValues(new Uint32Array(1))[0]);
  return store.commit(NO_PARTITION, (tx) => {
    const number = tx.get(meta, BACKUP_NUMBER) ?? drawn;
    tx.put(meta, BACKUP_NUMBER, number);
    return number;
  });
}

export function knownBackupNumber(store: Store): string | undefined {
  return store.read((reader) => reader.get(meta, BACKUP_NUMBER));
}

/** The number of the store in a data directory that may be damaged; undefined where none can be read. */
export function backupNumberIn(dataDirectory: string): string | undefined {
  try {
    using pages = new Pages(join(dataDirectory, DATA_FILE));
    const table = pages.tables().find(({ name }) => name === meta.name);
    if (table === undefined) return undefined;
    for (const { key, value } of pages.rows(table)) if (key === BACKUP_NUMBER) return textOf(value);
  } catch {
    // It is being replaced: what is wrong with it does not matter any more.
  }
  return undefined;
}
