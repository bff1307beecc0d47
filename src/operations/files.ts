/**
 * Files that are either there whole or not at all, and readable by their owner only.
 *
 * A file is made in a temporary directory next to its place, flushed, and renamed. Others who may write to the directory can
 * replace anything in it, also by links. So the temporary directory is reached by a handle, which stays the same directory
 * whatever is renamed, and leftovers are removed only where nobody else can have put them. Where the system has no paths of
 * handles, as on macOS, a directory that others can write to is refused instead.
 *
 * @module
 */
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
import { chmod, rename } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { flush } from "../lib/files.ts";
import { isOfSystem, systemReason } from "../lib/system-errors.ts";
import { lockDirectory } from "../storage/lmdb/directory/directory-lock.ts";
import { OperationError } from "./report.ts";

export interface WriteOptions {
  /** True if a file that is there already is replaced. */
  force: boolean;
  /** Directory of the system's paths of open files; a test has none. */
  handles?: string;
}

/**
 * Makes a file in a temporary directory, flushes it and renames it. Removes what killed commands have left of the same file.
 *
 * @param make - makes the file in the directory it is given, and returns its path
 */
export async function writeAtomically(
  path: string,
  { force, handles = HANDLES }: WriteOptions,
  make: (directory: string) => Promise<string>,
): Promise<void> {
  const target = resolve(path);
  const assertFree = () => {
    if (!existsSync(target)) return;
    // A device would be replaced by a file, also for everybody else.
    const found = statSync(target);
    if (!found.isFile()) throw new OperationError(`${path} is not a file but ${found.isDirectory() ? "a directory" : "something else"}.`);
    if (!force) throw new OperationError(`${path} exists already. Choose another name, or replace it with --force.`);
  };
  assertFree();
  const parent = dirname(target);
  if (!existsSync(parent) || !statSync(parent).isDirectory()) throw new OperationError(`There is no directory ${parent}.`);
  const directory = realpathSync(parent);
  removeAbandoned(directory, (name) => name === basename(target));
  using temporary = makeTempDirectory(directory, basename(target), handles);
  try {
    const made = await make(temporary.path);
    await chmod(made, 0o600);
    await flush(made);
    assertFree();
    await rename(made, target);
    await flush(parent);
  } catch (error) {
    if (!isOfSystem(error)) throw error;
    throw new OperationError(`${path} cannot be written: ${systemReason(error)}.`, { cause: error });
  }
}

const cleanUps = new Set<() => void>();
process.once("exit", () => cleanUps.forEach((cleanUp) => cleanUp()));

/** Cleans up at the end of the block, or of the process. */
export function cleanUpAfter(cleanUp: () => void): Disposable {
  cleanUps.add(cleanUp);
  return {
    [Symbol.dispose]() {
      cleanUps.delete(cleanUp);
      cleanUp();
    },
  };
}

/** Suffix of a temporary directory once it is locked: without it nobody takes the directory for abandoned. */
const LOCKED = ".draft";

interface TempDirectory extends Disposable {
  path: string;
}

function makeTempDirectory(directory: string, name: string, handles: string): TempDirectory {
  let made: string;
  try {
    made = mkdtempSync(join(directory, `.${name}-`));
  } catch (error) {
    throw new OperationError(`${directory} cannot be written to: ${systemReason(error)}.`, { cause: error });
  }
  const handle = openSync(made, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  const held = pathOfHandle(handle, handles);
  if (!isOwn(fstatSync(handle)) || (held !== undefined && readdirSync(held).length > 0)) {
    closeSync(handle);
    throw new OperationError(`Somebody else is changing ${directory}. ${ADVICE}`);
  }
  const isPrivate = isOwnersOnly(directory);
  if (held === undefined && !isPrivate) {
    closeSync(handle);
    rmdirSync(made);
    throw new OperationError(`Others can replace what is written to ${directory}. ${ADVICE}`);
  }
  const locked = isPrivate ? lockTempDirectory(made) : undefined;
  const named = locked === undefined ? made : made + LOCKED;
  const path = held ?? named;
  const cleanUp = () => {
    for (const file of readdirSync(path)) unlinkSync(join(path, file));
    closeSync(handle);
    try {
      rmdirSync(named);
    } catch {
      // Somebody has moved it away.
    }
    locked?.[Symbol.dispose]();
  };
  return { path, ...cleanUpAfter(cleanUp) };
}

const ADVICE = "Write to a directory that only you can write to.";
/** Directory of Linux with the open files of a process, also as directories; macOS has nothing like it. */
const HANDLES = "/proc/self/fd";

/** A path that leads to an open directory whatever is renamed; undefined where the system has none. */
function pathOfHandle(handle: number, handles: string): string | undefined {
  const path = `${handles}/${handle}`;
  return existsSync(path) ? path : undefined;
}

/** @returns undefined on a file system without locks, where leftovers stay */
function lockTempDirectory(made: string): Disposable | undefined {
  try {
    const lock = lockDirectory(made);
    renameSync(made, made + LOCKED);
    return lock;
  } catch {
    return undefined;
  }
}

/**
 * Removes temporary directories whose process is gone, as their locks tell.
 *
 * @param isWanted - says by the name of the file that was being made whether its temporary directory is meant
 */
export function removeAbandoned(directory: string, isWanted: (name: string) => boolean): void {
  if (!isOwnersOnly(directory)) return;
  for (const entry of readdirSync(directory)) {
    const name = /^\.(.+)-\w{6}\.draft$/.exec(entry)?.[1];
    const path = join(directory, entry);
    if (name === undefined || !isWanted(name) || !isOwn(lstatSync(path, { throwIfNoEntry: false }))) continue;
    try {
      using _ = lockDirectory(path);
      rmSync(path, { recursive: true, force: true });
    } catch {
      // It is being written.
    }
  }
}

const ROOT_UID = 0;
const FOR_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;
/** In a directory with this bit only the owner of an entry can rename it. */
const STICKY = 0o1000;

/** Checks whether this user has made the directory, and nobody else can write to it. */
function isOwn(found: Stats | undefined): boolean {
  return found?.isDirectory() === true && found.uid === process.geteuid?.() && (found.mode & FOR_OTHERS) === 0;
}

/**
 * Checks that nobody but this user and root can replace what they have in a directory.
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
