/**
 * Files that are either there whole or not at all, and readable by their owner only.
 *
 * @module
 */
import { chmod, mkdtemp, open, rename, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { OperationError } from "./report.ts";

export interface WriteOptions {
  /** Whether a file that is there already is replaced. */
  force: boolean;
}

/**
 * Has a file made beside, flushes it and gives it its name.
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
  const draft = await mkdtemp(join(dirname(target), `.${basename(target)}-`));
  try {
    const made = await make(draft);
    await chmod(made, 0o600);
    await flush(made);
    refuse();
    await rename(made, target);
    await flush(dirname(target));
  } finally {
    await rm(draft, { recursive: true, force: true });
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
