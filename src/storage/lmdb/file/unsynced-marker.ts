/**
 * Marks a file that was ever written relaxed.
 *
 * Until a relaxed flush is done LMDB leaves the previous flushed state in the file, and a start after a crash returns to it:
 * the latest changes are lost, but what is there is whole. A file that was ever written so has to be opened so. A marker
 * file says that, until a strict server has flushed the store and removed the marker.
 *
 * @module
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const MARKER = "relaxed";

export function hasUnsyncedMarker(storeDirectory: string): boolean {
  return existsSync(join(storeDirectory, MARKER));
}

export function setUnsyncedMarker(storeDirectory: string): void {
  writeFileSync(join(storeDirectory, MARKER), "", { mode: 0o600 });
}

export function clearUnsyncedMarker(storeDirectory: string): void {
  rmSync(join(storeDirectory, MARKER));
}
