/**
 * Locks a data directory for one process at a time: the server, or a command that changes what only the server may.
 *
 * The lock is an exclusive lock of an empty SQLite database, which the system releases however the process ends, so that no
 * stale lock is ever left. Commands that read, and those that change single records, need no lock.
 *
 * @module
 */
import { Database, SQLiteError } from "bun:sqlite";
import { closeSync, constants, lstatSync, openSync } from "node:fs";
import { join } from "node:path";
import { systemReason } from "../../../lib/system-errors.ts";
import { SERVE_LOCK } from "./data-directory.ts";

export class DirectoryInUseError extends Error {
  override name = "DirectoryInUseError";
}

/**
 * Locks a directory that exists.
 *
 * @returns the lock, which is released when it is disposed of
 * @throws {DirectoryInUseError} while another process has locked it
 * @throws {Error} when it cannot be written to, or its lock is no regular file
 */
export function lockDirectory(directory: string): Disposable {
  const path = join(directory, SERVE_LOCK);
  let lock: Database | undefined;
  try {
    makeLockFile(path);
    lock = new Database(path, { create: false, readwrite: true });
    // Else the lock begins with a journal, which a full disk does not take.
    lock.run("PRAGMA journal_mode = MEMORY");
    lock.run("PRAGMA locking_mode = EXCLUSIVE");
    lock.run("BEGIN EXCLUSIVE");
  } catch (error) {
    lock?.close();
    if (error instanceof SQLiteError && error.code === "SQLITE_BUSY") {
      throw new DirectoryInUseError(
        `Another Cairn is using ${directory}: a server, a cairn mcp, or a command that changes all of it, such as restore, import or doctor --fix. Stop it or let it end first, or give this one a --data-dir of its own.`,
        { cause: error },
      );
    }
    throw new Error(`${path} cannot be locked: ${systemReason(error)}.`, { cause: error });
  }
  return lock;
}

/** SQLite would follow a link, and make a file where that leads. */
function makeLockFile(path: string): void {
  try {
    closeSync(openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_RDWR, 0o600));
  } catch (error) {
    // Opened and closed here, a lock that this process holds would be released.
    if (!lstatSync(path, { throwIfNoEntry: false })?.isFile()) throw error;
  }
}
