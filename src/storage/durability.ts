/**
 * When a commit counts as done: once it is on the disk, or, for who would rather be quick than sure, once others see it.
 *
 * Relaxed, the flush follows at once and meanwhile the next commits go on. Until it is done an older state stays untouched
 * in the file, and that is what a start takes up after a crash: the latest changes are missing then, but what is there is
 * whole. A file that was ever written so needs to be opened so: a mark beside it says that, until a strict server has
 * flushed it and taken the mark away.
 *
 * @module
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const DURABILITIES = ["strict", "relaxed"] as const;
export type Durability = (typeof DURABILITIES)[number];

export function isMarked(path: string): boolean {
  return existsSync(join(path, MARK));
}

export function mark(path: string): void {
  writeFileSync(join(path, MARK), "", { mode: 0o600 });
}

export function unmark(path: string): void {
  rmSync(join(path, MARK));
}

const MARK = "relaxed";
