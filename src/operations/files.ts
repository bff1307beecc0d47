/**
 * Files that are either there whole or not at all, and readable by their owner only.
 *
 * @module
 */
import { chmod, open, rename } from "node:fs/promises";
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  type Stats,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isOfSystem, systemReason } from "../lib/system-errors.ts";
import { claim } from "../storage/claim.ts";
import { OperationError } from "./report.ts";

export interface WriteOptions {
  /** Whether a file that is there already is replaced. */
  force: boolean;
}

/**
 * Has a file made beside, flushes it and gives it its name. What commands that were killed have left of the same is removed.
 *
 * Others who may write to the directory can put anything in the place of a draft, links too. So the draft is reached by
 * a handle, which stays the same directory whatever is renamed, and what is found there is touched only where nobody else
 * can have put it.
 *
 * @param make - makes the file in the directory it is given, and says its path
 */
export async function writeWhole(path: string, { force }: WriteOptions, make: (directory: string) => Promise<string>): Promise<void> {
  const target = resolve(path);
  const refuse = () => {
    if (!existsSync(target)) return;
    // A device would be replaced by a file, also for everybody else.
    const found = statSync(target);
    if (!found.isFile()) throw new OperationError(`${path} is no file, but ${found.isDirectory() ? "a directory" : "something else"}.`);
    if (!force) throw new OperationError(`${path} is there already. Choose another name, or replace it with --force.`);
  };
  refuse();
  if (!existsSync(dirname(target)) || !statSync(dirname(target)).isDirectory())
    throw new OperationError(`There is no directory ${dirname(target)}.`);
  const directory = realpathSync(dirname(target));
  removeAbandoned(directory, (name) => name === basename(target));
  using draft = newDraft(directory, basename(target));
  try {
    const made = await make(draft.path);
    await chmod(made, 0o600);
    await flush(made);
    refuse();
    await rename(made, target);
    await flush(dirname(target));
  } catch (error) {
    if (!isOfSystem(error)) throw error;
    throw new OperationError(`${path} cannot be written: ${systemReason(error)}.`, { cause: error });
  }
}

/** A directory that goes with its block, or with the process. */
export interface Draft extends Disposable {
  path: string;
}

const unfinished = new Set<() => void>();
process.once("exit", () => unfinished.forEach((discard) => discard()));

export function draftAt(path: string, discard: () => void): Draft {
  unfinished.add(discard);
  return {
    path,
    [Symbol.dispose]() {
      unfinished.delete(discard);
      discard();
    },
  };
}

/** Suffix of a draft once it is locked: before, nobody takes it for abandoned. */
const CLAIMED = ".draft";

function makeDraft(start: string): string {
  try {
    return mkdtempSync(start);
  } catch (error) {
    throw new OperationError(`${dirname(start)} cannot be written to: ${systemReason(error)}.`, { cause: error });
  }
}

function newDraft(directory: string, name: string): Draft {
  const made = makeDraft(join(directory, `.${name}-`));
  const handle = openSync(made, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  const path = `/proc/self/fd/${handle}`;
  if (!isOwn(fstatSync(handle)) || readdirSync(path).length > 0) {
    closeSync(handle);
    throw new OperationError(`Somebody else is changing ${directory}. Write to a directory that only you can write to.`);
  }
  const claimed = isOwnersOnly(directory) ? claimDraft(made) : undefined;
  return draftAt(path, () => {
    for (const file of readdirSync(path)) unlinkSync(join(path, file));
    closeSync(handle);
    try {
      rmdirSync(claimed?.path ?? made);
    } catch {
      // Somebody has moved it away.
    }
    claimed?.release();
  });
}

/** There are file systems without locks. What is left on them stays. */
function claimDraft(made: string): { path: string; release: () => void } | undefined {
  try {
    const release = claim(made);
    renameSync(made, made + CLAIMED);
    return { path: made + CLAIMED, release };
  } catch {
    return undefined;
  }
}

/**
 * Removes drafts whose process is gone, as their locks tell; none from a directory where somebody else can have put them.
 *
 * @param isWanted - says by the name of the file that was to be made whether its draft is meant
 */
export function removeAbandoned(directory: string, isWanted: (name: string) => boolean): void {
  if (!isOwnersOnly(directory)) return;
  for (const entry of readdirSync(directory)) {
    const name = /^\.(.+)-\w{6}\.draft$/.exec(entry)?.[1];
    if (name === undefined || !isWanted(name)) continue;
    const draft = join(directory, entry);
    if (!isOwn(lstatSync(draft, { throwIfNoEntry: false }))) continue;
    try {
      const release = claim(draft);
      rmSync(draft, { recursive: true, force: true });
      release();
    } catch {
      // It is being written.
    }
  }
}

/** A directory that this user has made, and nobody else can write to. */
function isOwn(found: Stats | undefined): boolean {
  return found?.isDirectory() === true && found.uid === process.geteuid?.() && (found.mode & FOR_OTHERS) === 0;
}

/**
 * Whether nobody but this user and root can put something else in the place of what they have in a directory.
 *
 * @param directory - without links
 */
function isOwnersOnly(directory: string): boolean {
  const { uid, mode } = statSync(directory);
  const isOfOthers = uid !== ROOT_UID && uid !== process.geteuid?.();
  const canOthersRename = (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
  if (isOfOthers || canOthersRename) return false;
  return directory === dirname(directory) || isOwnersOnly(dirname(directory));
}

const ROOT_UID = 0;
const FOR_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;
/** In a directory with this bit only the owner of an entry can rename it. */
const STICKY = 0o1000;

/** Waits until a file, or the names in a directory, are on the disk. */
export async function flush(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
