/**
 * A data directory belongs to one process at a time: the server, or a command that changes what only the server may.
 *
 * The claim is an exclusive lock of an empty SQLite database: the system gives it back whatever way the process ends, so
 * that nothing stale is ever left. Commands that read, and those that change single records, need no claim.
 *
 * @module
 */
import { Database } from "bun:sqlite";
import { chmodSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";

/** Another process has claimed this data directory. */
class DirectoryInUseError extends Error {
  override name = "DirectoryInUseError";
}

/** Makes a data directory if there is none, for its owner only. @returns its full path */
export function prepareDirectory(dataDirectory: string): string {
  const directory = resolve(dataDirectory);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
  return directory;
}

/**
 * Claims a directory that exists for this process.
 *
 * @returns what gives it back
 * @throws {DirectoryInUseError}
 */
export function claim(directory: string): () => void {
  const path = join(directory, "serve.lock");
  const lock = new Database(path, { create: true, readwrite: true });
  try {
    chmodSync(path, 0o600);
    lock.run("PRAGMA locking_mode = EXCLUSIVE");
    lock.run("BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    throw new DirectoryInUseError(`Another Cairn is serving from ${directory}. Stop it first, or give this one a --data-dir of its own.`, {
      cause: error,
    });
  }
  return () => lock.close();
}
