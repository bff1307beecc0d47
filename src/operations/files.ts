/**
 * Files that are either there whole or not at all, and readable by their owner only.
 *
 * @module
 */
import { chmod, open, rename } from "node:fs/promises";
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { claim } from "../storage/claim.ts";
import { OperationError } from "./report.ts";

export interface WriteOptions {
  /** Whether a file that is there already is replaced. */
  force: boolean;
}

/**
 * Has a file made beside, flushes it and gives it its name. What commands that were killed have left of the same is removed.
 *
 * @param make - makes the file in the directory it is given, and says its path
 */
export async function writeWhole(path: string, { force }: WriteOptions, make: (directory: string) => Promise<string>): Promise<void> {
  const target = resolve(path);
  const refuse = () => {
    if (!force && existsSync(target))
      throw new OperationError(`${path} is there already. Choose another name, or replace it with --force.`);
  };
  refuse();
  if (!existsSync(dirname(target))) throw new OperationError(`There is no directory ${dirname(target)}.`);
  removeAbandoned(target);
  using draft = newDraft(target);
  const made = await make(draft.path);
  await chmod(made, 0o600);
  await flush(made);
  refuse();
  await rename(made, target);
  await flush(dirname(target));
}

/** A directory that goes with its block, or with the process. */
export interface Draft extends Disposable {
  path: string;
}

const underWay = new Set<string>();
process.once("exit", () => underWay.forEach(remove));

export function draftAt(path: string, release: () => void): Draft {
  underWay.add(path);
  return {
    path,
    [Symbol.dispose]() {
      remove(path);
      underWay.delete(path);
      release();
    },
  };
}

function remove(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/** Of a claimed draft. One has it only once it is claimed, so that nobody takes it for abandoned before. */
const CLAIMED = ".draft";

function newDraft(target: string): Draft {
  const path = mkdtempSync(join(dirname(target), `.${basename(target)}-`));
  let release;
  try {
    release = claim(path);
  } catch {
    // There are file systems without locks. What is left on them stays.
    return draftAt(path, () => undefined);
  }
  renameSync(path, path + CLAIMED);
  return draftAt(path + CLAIMED, release);
}

/** Removes drafts of a file whose process is gone, of which the claim tells. */
function removeAbandoned(target: string): void {
  const [directory, start] = [dirname(target), `.${basename(target)}-`];
  for (const name of readdirSync(directory)) {
    if (!name.startsWith(start) || !/^\w{6}\.draft$/.test(name.slice(start.length))) continue;
    const draft = join(directory, name);
    try {
      const release = claim(draft);
      remove(draft);
      release();
    } catch {
      // It is being written, or somebody else's.
    }
  }
}

/** Waits until a file, or the names in a directory, are on the disk. */
export async function flush(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
