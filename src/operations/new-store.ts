/**
 * Replaces the store of a data directory: the new one is made and checked next to it, then renamed in one step, so that a
 * failure at any moment leaves the old one or the new one.
 *
 * @module
 */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { flush } from "../lib/files.ts";
import { isOfSystem, systemReason } from "../lib/system-errors.ts";
import { makePrivate, prepareDirectory } from "../storage/lmdb/directory/data-directory.ts";
import { DirectoryInUseError, lockDirectory } from "../storage/lmdb/directory/directory-lock.ts";
import { DATA_FILE, LOCK_FILE, STORE_DIRECTORY } from "../storage/lmdb/file/data-file.ts";
import { cleanUpAfter } from "./files.ts";
import { removeGraph } from "./graph.ts";
import { OperationError } from "./report.ts";
import { DRILL_DIRECTORY, holdsStore } from "./store-file.ts";

/**
 * Returns what `make` gives.
 *
 * @param make - makes a store in the data directory it is given, and closes it
 * @param refusal - what to say when there is a store already; undefined replaces it
 */
export async function putStore<Made>(
  dataDirectory: string,
  refusal: string | undefined,
  make: (incoming: string) => Promise<Made>,
): Promise<Made> {
  const directory = prepareDirectory(dataDirectory);
  using _ = lockDirectory(directory);
  if (refusal !== undefined && holdsStore(directory)) throw new OperationError(refusal);
  removeLeftovers(directory);
  using _incoming = cleanUpAfter(() => removeIncoming(directory));
  const incoming = incomingIn(directory);
  const newFile = join(incoming, DATA_FILE);
  mkdirSync(incoming, { mode: 0o700 });
  let made: Made;
  try {
    made = await make(incoming);
  } catch (error) {
    if (!isOfSystem(error)) throw error;
    throw new OperationError(`The store in ${dataDirectory} cannot be made: ${systemReason(error)}.`, { cause: error });
  }
  chmodSync(newFile, 0o600);
  await flush(newFile);
  removeGraph(directory);
  mkdirSync(join(directory, STORE_DIRECTORY), { recursive: true, mode: 0o700 });
  // A process that has the old store open keeps it with its lock; the new one gets a lock of its own.
  rmSync(join(directory, LOCK_FILE), { force: true });
  makePrivate(directory);
  renameSync(newFile, join(directory, DATA_FILE));
  await flush(join(directory, STORE_DIRECTORY));
  await flush(directory);
  return made;
}

/** Removes what killed commands have left, an unfinished store and a drill. The caller has locked the directory. */
export function removeLeftovers(directory: string): void {
  removeIncoming(directory);
  const scratch = join(directory, DRILL_DIRECTORY);
  if (!existsSync(scratch)) return;
  try {
    using _ = lockDirectory(scratch);
    rmSync(scratch, { recursive: true, force: true });
  } catch (error) {
    // The drill is running.
    if (!(error instanceof DirectoryInUseError)) throw error;
  }
}

function incomingIn(directory: string): string {
  return join(directory, "incoming");
}

function removeIncoming(directory: string): void {
  rmSync(incomingIn(directory), { recursive: true, force: true });
}
