/**
 * The data directory: for Cairn alone, and for its owner alone.
 *
 * A directory that holds other files is refused, because an operator who names `/srv` by mistake must not find it closed to
 * everybody else. So is one whose mode cannot be changed. The mode is set when a store is in place, so that a command that
 * fails before has changed nothing. The files in it have modes of their own.
 *
 * @module
 */
import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemReason } from "../../../lib/system-errors.ts";
import { AUDIT_KEY_FILE } from "../../audit/audit-key.ts";
import { DATA_FILE, LOCK_FILE } from "../file/data-file.ts";

const PRIVATE_MODE = 0o700;
const PERMISSION_BITS = 0o777;
const ROOT_UID = 0;

/** Locked by the process that the directory belongs to. */
export const SERVE_LOCK = "serve.lock";
/** Any of these shows that Cairn has used the directory. */
const MARKS = [DATA_FILE, LOCK_FILE, SERVE_LOCK, AUDIT_KEY_FILE, ".native"];
/** Entries that systems put into a volume or a directory that is empty otherwise: Linux the first, macOS the others. */
const OF_THE_SYSTEM = new Set<string>(["lost+found", ".DS_Store", ".fseventsd", ".Spotlight-V100", ".Trashes"]);
const NAMES_SHOWN_MAX = 3;

/**
 * Makes a data directory if there is none, for its owner only.
 *
 * @returns its full path
 * @throws {Error} when it cannot be made, holds other files, or cannot be closed to others
 */
export function makeDirectory(dataDirectory: string): string {
  const directory = resolve(dataDirectory);
  try {
    mkdirSync(directory, { recursive: true, mode: PRIVATE_MODE });
  } catch (error) {
    throw cannotBeWritten(directory, error);
  }
  refuseForeignFiles(directory);
  const { mode, uid } = statSync(directory);
  const user = process.geteuid?.();
  if (!isPrivate(mode) && uid !== user && user !== ROOT_UID) {
    throw new Error(
      `The data directory ${directory} belongs to another user (${uid}) and is open to others. Give it to the user that runs Cairn, or close it (chmod 0700).`,
    );
  }
  return directory;
}

/** Makes a data directory and asserts that it can be written to. @returns its full path */
export function prepareDirectory(dataDirectory: string): string {
  const directory = makeDirectory(dataDirectory);
  try {
    accessSync(directory, constants.W_OK);
  } catch (error) {
    throw cannotBeWritten(directory, error);
  }
  return directory;
}

/** Closes a data directory that holds a store to everybody but its owner. */
export function makePrivate(directory: string): void {
  if (isPrivate(statSync(directory).mode)) return;
  try {
    chmodSync(directory, PRIVATE_MODE);
  } catch (error) {
    throw cannotBeWritten(directory, error);
  }
}

function isPrivate(mode: number): boolean {
  return (mode & PERMISSION_BITS) === PRIVATE_MODE;
}

function cannotBeWritten(directory: string, error: unknown): Error {
  return new Error(`The data directory ${directory} cannot be written to: ${systemReason(error)}.`, { cause: error });
}

function refuseForeignFiles(directory: string): void {
  const names = readdirSync(directory).filter((name) => !OF_THE_SYSTEM.has(name));
  // Looked for later than those names: another Cairn may be making its first files.
  if (names.length === 0 || MARKS.some((name) => existsSync(join(directory, name)))) return;
  const shown = names.slice(0, NAMES_SHOWN_MAX).map((name) => JSON.stringify(name));
  const more = names.length > shown.length ? ` and ${names.length - shown.length} more` : "";
  throw new Error(
    `The data directory ${directory} contains other files and no Cairn store: ${shown.join(", ")}${more}. Name an empty directory, or one that is not there yet, with --data-dir.`,
  );
}
