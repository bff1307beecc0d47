/**
 * What a write that the disk did not take says to the caller: why, as far as the system has said so.
 *
 * @module
 */
import { statfsSync } from "node:fs";
import { constants } from "node:os";
import { ApiError } from "../lib/errors.ts";

/** LMDB's own: the file may grow no further. */
const MDB_MAP_FULL = -30_792;

/** Below this a commit is refused: LMDB has to be able to write the pages of everything that waits (64 MiB). */
export const FREE_BYTES_MIN = 64 * 1024 * 1024;

const FULL = "The disk is full.";
const NO_ADDRESSES = "The store cannot grow, because the address space of the process is limited.";
const { errno } = constants;
const REASONS: ReadonlyMap<unknown, string> = new Map([
  [errno.ENOSPC, FULL],
  [errno.EDQUOT, "The quota on the disk is used up."],
  [errno.EROFS, "The disk is read-only."],
  [errno.EACCES, "The store must not be written to."],
  [errno.EPERM, "The store must not be written to."],
  [errno.EFBIG, "The store cannot grow, because the size of files is limited."],
  [errno.EIO, "The disk has failed."],
  [errno.ENOMEM, NO_ADDRESSES],
  [MDB_MAP_FULL, NO_ADDRESSES],
]);

/** Whether the disk that a directory is on has room for commits. */
export function hasRoom(directory: string): boolean {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize >= FREE_BYTES_MIN;
}

/**
 * @param cause - what LMDB has thrown; its `code` is the system's, or EIO for a write that was cut short because the disk is full
 * @param directory - where the store is
 */
export function refusalOf(cause: unknown, directory: string): ApiError {
  const code = (cause as { code?: unknown } | undefined)?.code;
  const reason = code === errno.EIO && !hasRoom(directory) ? FULL : (REASONS.get(code) ?? "The change could not be written to the disk.");
  return new ApiError("service_unavailable", `${reason} Nothing was changed; reading still works.`, { cause });
}
