/**
 * Puts another store in the place of a data directory's own: made and checked beside it, then renamed in one step, so that
 * a failure at any moment leaves the old one or the new one.
 *
 * @module
 */
import { chmodSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { claim, prepareDirectory } from "../storage/claim.ts";
import { flush } from "./files.ts";
import { removeGraph } from "./graph.ts";
import { OperationError } from "./report.ts";
import { DATA, holdsStore } from "./store-file.ts";

/**
 * @param make - makes a store in the data directory it is given, and closes it
 * @param refusal - what to say when there is a store already; undefined replaces it
 */
export async function putStore(dataDirectory: string, refusal: string | undefined, make: (draft: string) => Promise<void>): Promise<void> {
  const directory = prepareDirectory(dataDirectory);
  const release = claim(directory);
  const draft = join(directory, "incoming");
  try {
    if (refusal !== undefined && holdsStore(directory)) throw new OperationError(refusal);
    // What an attempt before has left when it was killed.
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(draft, { mode: 0o700 });
    await make(draft);
    chmodSync(join(draft, DATA), 0o600);
    await flush(join(draft, DATA));
    removeGraph(directory);
    mkdirSync(join(directory, "store"), { recursive: true, mode: 0o700 });
    // Who has the old store open keeps it with its lock; the new one gets a lock of its own.
    rmSync(join(directory, "store", "lock.mdb"), { force: true });
    renameSync(join(draft, DATA), join(directory, DATA));
    await flush(join(directory, "store"));
    await flush(directory);
  } finally {
    rmSync(draft, { recursive: true, force: true });
    release();
  }
}
