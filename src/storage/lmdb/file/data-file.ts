/**
 * The files of the store: made so that they are whole or not there at all, and checked before LMDB opens them.
 *
 * @module
 */
import { closeSync, existsSync, linkSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { hasCode } from "../../../lib/errors.ts";
import { flush } from "../../../lib/files.ts";
import { damaged, emptyDataFile, readMetaPages, type MetaPages } from "./meta-pages.ts";

/** The store's own directory and its two files, inside a data directory. */
export const STORE_DIRECTORY = "store";
export const DATA_FILE = join(STORE_DIRECTORY, "data.mdb");
export const LOCK_FILE = join(STORE_DIRECTORY, "lock.mdb");

/** Prefix of the names of unfinished files. */
const UNFINISHED = "new-";

/** A server may write one meta page after the other between two reads of them. */
const ATTEMPTS = 5;
const ATTEMPT_MS = 5;

/** `none`: there is no file, and never was one. */
export type DataFile = MetaPages | { kind: "none" };

/** Reads the meta pages of a file. To read the same state afterwards, pin its pages first (`pinPages`). */
export function readDataFile(path: string): DataFile {
  for (let attempt = 1; ; attempt++) {
    const found = readOnce(path);
    if (found.kind !== "damaged" || attempt === ATTEMPTS) return found;
    Bun.sleepSync(ATTEMPT_MS);
  }
}

function readOnce(path: string): DataFile {
  if (!existsSync(path)) {
    const directory = dirname(path);
    const left = existsSync(directory) ? readdirSync(directory).filter((name) => !name.startsWith(UNFINISHED)) : [];
    return left.length === 0 ? { kind: "none" } : damaged(`is missing, though other files of a store are there (${left.join(", ")})`);
  }
  const found = statSync(path);
  // Opening a named pipe would wait for somebody who writes to it.
  if (!found.isFile()) return damaged(`is not a file but ${found.isDirectory() ? "a directory" : "something else"}`);
  if (found.size === 0) return damaged("is empty, though there was a store");
  const file = openSync(path, "r");
  try {
    return readMetaPages(file);
  } finally {
    closeSync(file);
  }
}

/** Size of LMDB's table of readers. */
const LOCK_BYTES = 8_272;

/**
 * Makes the files of an empty store, unless they are there. Left to LMDB, an interrupted start would leave an empty data
 * file, and the lock file would be made of holes and mapped, so that the first write to it on a full disk ended the process
 * (SIGBUS).
 *
 * @throws {Error} when the disk does not take them
 */
export async function createFiles(dataDirectory: string): Promise<void> {
  const directory = join(dataDirectory, STORE_DIRECTORY);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (createWhole(join(dataDirectory, DATA_FILE), emptyDataFile)) for (const path of [directory, dataDirectory]) await flush(path);
  createWhole(join(dataDirectory, LOCK_FILE), () => new Uint8Array(LOCK_BYTES));
}

/** @returns whether it was not there yet */
function createWhole(path: string, bytes: () => Uint8Array): boolean {
  if (existsSync(path)) return false;
  const unfinished = join(dirname(path), `${UNFINISHED}${basename(path)}-${process.pid}`);
  try {
    writeFileSync(unfinished, bytes(), { mode: 0o600, flush: true });
    nameFile(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
  return true;
}

/** Leaves a file alone that another process has made meanwhile. */
function nameFile(unfinished: string, path: string): void {
  try {
    linkSync(unfinished, path);
  } catch (error) {
    // There are file systems without links.
    if (!existsSync(path)) renameSync(unfinished, path);
    else if (!hasCode(error, "EEXIST")) throw error;
  }
}
