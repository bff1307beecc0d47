/**
 * Opens the store for serving. A store of an older Cairn is brought up to date first: a backup, then each migration in turn.
 *
 * Only the newest backup before a version is kept, so that repeated starts do not fill the disk.
 *
 * @module
 */
import { readdirSync, realpathSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { freeBytes, megabytes } from "../lib/files.ts";
import type { Log } from "../lib/log.ts";
import { toIso } from "../lib/time.ts";
import type { Durability } from "../storage/durability.ts";
import { FREE_BYTES_MIN } from "../storage/lmdb/disk/disk-errors.ts";
import { migrate, MIGRATIONS, migrationsFrom, type Migration } from "../storage/lmdb/migrate.ts";
import { Store } from "../storage/lmdb/store.ts";
import { writeBackup } from "./backup.ts";
import { removeAbandoned } from "./files.ts";
import { backupNumber, makeBackupsDirectory } from "./own-backups.ts";
import { OperationError } from "./report.ts";

/**
 * The caller has locked the directory.
 *
 * @throws {OperationError} when it could not be brought up to date; then it is as it was before the step that failed
 */
export async function openUpToDate(
  directory: string,
  clock: Clock,
  log: Log,
  {
    migrations = MIGRATIONS,
    durability = "strict",
  }: { migrations?: readonly Migration[] | undefined; durability?: Durability | undefined } = {},
): Promise<Store> {
  const store = await Store.open(directory, clock, { older: true, durability });
  try {
    const due = migrationsFrom(store.schema, migrations);
    const [first] = due;
    if (first !== undefined) {
      const backup = await backUpBefore(`schema-${first.to}`, store, clock, log);
      for (const migration of due) await migrateOrSay(migration, store, backup, log);
    }
    await store.useChangeBuffer();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Backs a store of an older Cairn up before it is changed.
 *
 * @param what - is to come, as the name of the file says it
 * @returns the path of the backup
 * @throws {OperationError} where there is no space for it
 */
export async function backUpBefore(what: string, store: Store, clock: Clock, log: Log): Promise<string> {
  const backups = makeBackupsDirectory(store);
  assertRoom(store, backups);
  const number = await backupNumber(store);
  const isOwn = new RegExp(`^before-(?:schema-\\d+|indexes)-${number}-`);
  // A killed attempt has left these.
  removeAbandoned(realpathSync(backups), (name) => isOwn.test(name));
  const kind = `before-${what}-${number}-`;
  const name = `${kind}${toIso(clock.now()).replaceAll(/[-:]|\.\d+/g, "")}.cairn`;
  const path = join(backups, name);
  log.info("the store is of an older Cairn: writing a backup before it is changed", { schema: store.schema, backup: path });
  const { bytes, sha256 } = await writeBackup(store, clock, path, { force: true });
  log.info("backup written", { backup: path, bytes, sha256 });
  for (const other of readdirSync(backups)) {
    if (other.startsWith(kind) && other !== name) rmSync(join(backups, other));
  }
  return path;
}

function assertRoom(store: Store, backups: string): void {
  const free = freeBytes(backups);
  const needed = store.bytesUsed + FREE_BYTES_MIN;
  if (free >= needed) return;
  throw new OperationError(
    `The store in ${store.directory} is of an older Cairn (schema version ${store.schema}) and has to be migrated, after a backup. That needs ${megabytes(needed)} ` +
      `in ${backups}, and ${megabytes(free)} are free. Nothing was changed. Make space, or make ${backups} a link to a directory where there is.`,
  );
}

async function migrateOrSay(migration: Migration, store: Store, backup: string, log: Log): Promise<void> {
  const { to, says } = migration;
  try {
    await migrate(store, migration);
  } catch (error) {
    const reason = messageOf(error);
    throw new OperationError(
      `The store in ${store.directory} is whole and stays at schema version ${store.schema}: it could not be brought to version ${to} ` +
        `(${says}). A start tries again; to go back to the Cairn that wrote it, restore ${backup} with that one. The reason: ${reason}`,
      { cause: error },
    );
  }
  log.info("store migrated", { schema: to, says });
}
