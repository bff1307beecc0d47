/**
 * Directory of the backups that a store makes by itself: `backups` in the data directory.
 *
 * That may be a link to a directory that other stores use too. So a store has a number that stands in the names of its backups,
 * and touches no others.
 *
 * @module
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { NO_PARTITION } from "../lib/ids.ts";
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
