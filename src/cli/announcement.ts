/**
 * `local.json` in a data directory: where its server listens, and with which key programs of its owner may ask it. Only the owner
 * can read it. Who holds the lock of the directory writes and removes it; one that a killed process left leads to nobody.
 *
 * With it comes `local.sock`, where the server listens for these programs if the system has such sockets.
 *
 * @module
 */
import { lstatSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { isOfSystem } from "../lib/system-errors.ts";

const FILE = "local.json";
const SOCKET = "local.sock";
const ROOT_UID = 0;

/** Address of a server, and its local key. */
export interface Announcement {
  /** The address of its listener for everybody; of the socket where it has no other. */
  readonly url: string;
  /** True if it listens on the socket in the directory. */
  readonly socket: boolean;
  readonly key: string;
  /** Its database, as it may be shown, where its records are not in the directory. */
  readonly store?: string | undefined;
}

/** Refuses a file for the owner's programs that belongs to somebody else. */
export class ForeignFileError extends Error {
  override name = "ForeignFileError";
}

/** @throws {Error} when it cannot be written */
export function announce(directory: string, place: Announcement): void {
  const path = join(directory, FILE);
  const fresh = `${path}.new`;
  // Its mode is given when it is made.
  rmSync(fresh, { force: true });
  writeFileSync(fresh, JSON.stringify(place), { mode: 0o600, flag: "wx" });
  renameSync(fresh, path);
}

export function withdraw(directory: string): void {
  rmSync(join(directory, FILE), { force: true });
}

/**
 * Returns what was announced last; undefined when it is not there or makes no sense.
 *
 * @throws {ForeignFileError} when somebody else wrote it
 */
export function announced(directory: string): Announcement | undefined {
  const path = join(directory, FILE);
  if (!isThere(path)) return undefined;
  refuseForeign(path, directory);
  try {
    const { url, socket, key, store } = JSON.parse(readFileSync(path, "utf8")) as Partial<Announcement>;
    if (typeof url !== "string" || !URL.canParse(url) || typeof key !== "string") return undefined;
    return { url, socket: socket === true, key, store };
  } catch {
    return undefined;
  }
}

/** The path of the socket in a directory, for the server that listens on it. */
export function socketPath(directory: string): string {
  return join(resolve(directory), SOCKET);
}

/**
 * Returns the path of the socket in a directory, for a program that is going to connect; undefined when there is none.
 *
 * @throws {ForeignFileError} when somebody else listens on it
 */
export function socketIn(directory: string): string | undefined {
  const path = socketPath(directory);
  if (!isThere(path)) return undefined;
  refuseForeign(path, directory);
  return lstatSync(path).isSocket() ? path : undefined;
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    if (isOfSystem(error)) return false;
    throw error;
  }
}

function refuseForeign(path: string, directory: string): void {
  const [file, of] = [lstatSync(path).uid, statSync(directory).uid];
  if (isTrusted({ file, directory: of, user: process.geteuid?.() ?? file })) return;
  throw new ForeignFileError(`${path} belongs to another user (${file}), who could read what is sent there: it is not used`);
}

/** Owners whose files a user trusts: their own, root's, and, as root, those of the directory's owner. Takes user ids. */
export function isTrusted({ file, directory, user }: Readonly<Record<"file" | "directory" | "user", number>>): boolean {
  return file === user || file === ROOT_UID || (user === ROOT_UID && file === directory);
}
