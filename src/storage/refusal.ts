/**
 * What a write that the disk did not take says to the caller: why, as far as the system has said so.
 *
 * @module
 */
import { constants } from "node:os";
import { ApiError } from "../lib/errors.ts";

/** LMDB's own: the file may grow no further. */
const MDB_MAP_FULL = -30_792;

const NO_ADDRESSES = "The store cannot grow, because the address space of the process is limited.";
const { errno } = constants;
const REASONS: ReadonlyMap<unknown, string> = new Map([
  [errno.ENOSPC, "The disk is full."],
  [errno.EDQUOT, "The quota on the disk is used up."],
  [errno.EROFS, "The disk is read-only."],
  [errno.EACCES, "The store must not be written to."],
  [errno.EPERM, "The store must not be written to."],
  [errno.EFBIG, "The store cannot grow, because the size of files is limited."],
  [errno.EIO, "The disk has failed."],
  [errno.ENOMEM, NO_ADDRESSES],
  [MDB_MAP_FULL, NO_ADDRESSES],
]);

/** @param cause - what LMDB has thrown; its `code` is the system's */
export function refusalOf(cause: unknown): ApiError {
  const reason = REASONS.get((cause as { code?: unknown } | undefined)?.code) ?? "The change could not be written to the disk.";
  return new ApiError("service_unavailable", `${reason} Nothing was changed; reading still works.`, { cause });
}
