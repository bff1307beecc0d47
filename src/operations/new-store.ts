/**
 * Puts another store in the place of a data directory's own: made and checked beside it, then renamed in one step, so that
 * a failure at any moment leaves the old one or the new one.
 *
 * @module
 */
import { chmodSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isOfSystem, systemReason } from "../lib/system-errors.ts";
import { claim } from "../storage/claim.ts";
import { DATA_FILE, LOCK_FILE, STORE_DIRECTORY } from "../storage/data-file.ts";
import { makePrivate, prepareDirectory } from "../storage/data-directory.ts";
import { draftAt, flush } from "./files.ts";
import { removeGraph } from "./graph.ts";
import { OperationError } from "./report.ts";
import { holdsStore } from "./store-file.ts";

/**
 * @param make - makes a store in the data directory it is given, and closes it
 * @param refusal - what to say when there is a store already; undefined replaces it
 */
export async function putStore(dataDirectory: string, refusal: string | undefined, make: (draft: string) => Promise<void>): Promise<void> {
  const directory = prepareDirectory(dataDirectory);
  const release = claim(directory);
  using draft = draftAt(incomingIn(directory), () => {
    removeIncoming(directory);
    release();
  });
  if (refusal !== undefined && holdsStore(directory)) throw new OperationError(refusal);
  removeIncoming(directory);
  mkdirSync(draft.path, { mode: 0o700 });
  try {
    await make(draft.path);
  } catch (error) {
    if (!isOfSystem(error)) throw error;
    throw new OperationError(`The store in ${dataDirectory} cannot be made: ${systemReason(error)}.`, { cause: error });
  }
  chmodSync(join(draft.path, DATA_FILE), 0o600);
  await flush(join(draft.path, DATA_FILE));
  removeGraph(directory);
  mkdirSync(join(directory, STORE_DIRECTORY), { recursive: true, mode: 0o700 });
  // Who has the old store open keeps it with its lock; the new one gets a lock of its own.
  rmSync(join(directory, LOCK_FILE), { force: true });
  makePrivate(directory);
  renameSync(join(draft.path, DATA_FILE), join(directory, DATA_FILE));
  await flush(join(directory, STORE_DIRECTORY));
  await flush(directory);
}

function incomingIn(directory: string): string {
  return join(directory, "incoming");
}

/** What an attempt has left when it was killed. Needs the claim of the directory. */
export function removeIncoming(directory: string): void {
  rmSync(incomingIn(directory), { recursive: true, force: true });
}
