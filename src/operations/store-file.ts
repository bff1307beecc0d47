/**
 * Whether there is a store, told without opening one: that needs a native part, and makes one where there is none.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { OperationError } from "./report.ts";

/** Where it is in a data directory. */
export const DATA = join("store", "data.mdb");

export function holdsStore(dataDirectory: string): boolean {
  return existsSync(join(dataDirectory, DATA));
}

/** @throws {OperationError} where there is none, so that a wrong `--data-dir` is noticed */
export function assertStore(dataDirectory: string): void {
  if (!holdsStore(dataDirectory)) throw new OperationError(`There is no store in ${dataDirectory}. Say where it is with --data-dir.`);
}
