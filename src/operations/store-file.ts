/**
 * Looks for a store without opening one: that would need a native part, and make a store where there is none.
 *
 * @module
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { hasCode } from "../lib/errors.ts";
import { systemReason } from "../lib/system-errors.ts";
import { AUDIT_KEY_FILE } from "../storage/audit/audit-key.ts";
import { COLLECTIONS } from "../storage/collections.ts";
import { SERVE_LOCK } from "../storage/lmdb/directory/data-directory.ts";
import { DATA_FILE, STORE_DIRECTORY } from "../storage/lmdb/file/data-file.ts";
import { assertMappable } from "../storage/lmdb/file/pages.ts";
import { OperationError } from "./report.ts";

export function holdsStore(dataDirectory: string): boolean {
  return existsSync(join(dataDirectory, DATA_FILE));
}

/**
 * @throws {OperationError} where there is none, so that a wrong `--data-dir` is noticed
 * @throws {DamagedStoreError} where there was one, or the file of it must not be mapped
 */
export function assertStore(dataDirectory: string): void {
  assertDataFile(dataDirectory);
  assertMappable(dataDirectory);
}

/** Scratch directory of `cairn backup --drill`. */
export const DRILL_DIRECTORY = "drill";

/** Names that Cairn uses in a data directory. All others are the operator's, such as those of backups. */
const OWN_NAMES = [
  STORE_DIRECTORY,
  ...Object.values(COLLECTIONS).map(({ directory }) => directory),
  "incoming",
  DRILL_DIRECTORY,
  ".native",
  SERVE_LOCK,
  AUDIT_KEY_FILE,
];

/** @throws {OperationError} for a file that would be written among, or over, what Cairn itself keeps in a data directory */
export function assertNotOwn(file: string, dataDirectory: string): void {
  const directory = dirname(resolve(file));
  if (!existsSync(directory) || !existsSync(dataDirectory)) return;
  const [own] = relative(realpathSync(dataDirectory), join(realpathSync(directory), basename(file))).split(sep);
  if (own !== undefined && OWN_NAMES.includes(own))
    throw new OperationError(`${file} is where Cairn keeps its own files (${own} of ${dataDirectory}). Choose another place.`);
}

/** @throws {OperationError} where there is no file, however damaged it may be */
export function assertDataFile(dataDirectory: string): void {
  try {
    statSync(join(dataDirectory, DATA_FILE));
  } catch (error) {
    if (hasCode(error, "EACCES"))
      throw new OperationError(
        `The data directory ${dataDirectory} cannot be read: ${systemReason(error)}. Run this as the user that runs the server.`,
        { cause: error },
      );
    assertMappable(dataDirectory);
    throw new OperationError(`There is no store in ${dataDirectory}. Say where it is with --data-dir.`, { cause: error });
  }
}
