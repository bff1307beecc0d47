/**
 * Meaning of LMDB's errors: why a write or a read failed, as far as the system says so, and whether LMDB still works at all.
 *
 * @module
 */
import { constants } from "node:os";
import { ApiError, messageOf } from "../../../lib/errors.ts";
import { freeBytes } from "../../../lib/files.ts";
import { reasonFor } from "../../../lib/system-errors.ts";

/** LMDB: the file may grow no further. */
const MDB_MAP_FULL = -30_792;
/** LMDB: a page makes no sense. */
const MDB_CORRUPTED = -30_796;
/** LMDB: a write of a meta page failed, and nothing is read or written until the process ends. */
const MDB_PANIC = -30_795;

/** Below this a commit is refused: LMDB has to be able to write the pages of all queued commits. */
export const FREE_BYTES_MIN = 64 * 1024 * 1024;

const NO_ADDRESSES = "The store cannot grow, because the address space of the process is limited.";
const { errno } = constants;
const REASONS: ReadonlyMap<unknown, string> = new Map([
  ...(["ENOSPC", "EDQUOT", "EROFS", "EIO"] as const).map((code) => [errno[code], diskSentence(code)] as const),
  [errno.EACCES, "The store is read-only."],
  [errno.EPERM, "The store is read-only."],
  [errno.EFBIG, "The store cannot grow, because the size of files is limited."],
  [errno.ENOMEM, NO_ADDRESSES],
  [MDB_MAP_FULL, NO_ADDRESSES],
]);

/** Checks whether the disk that a directory is on takes commits. */
export function hasFreeSpace(directory: string): boolean {
  try {
    return freeBytes(directory) >= FREE_BYTES_MIN;
  } catch {
    // The commit will say what is wrong with the disk.
    return true;
  }
}

/** Checks whether it has space for what is not worth a change refused later. */
export function hasSpaceToSpare(directory: string): boolean {
  try {
    return freeBytes(directory) >= 2 * FREE_BYTES_MIN;
  } catch {
    return false;
  }
}

/** Reason why the disk refused a write: `cause` is what LMDB threw. EIO also stands for a write cut short because the disk is full. */
export function diskReason(cause: unknown, directory: string): string {
  const code = codeOf(cause);
  return code === errno.EIO && !hasFreeSpace(directory)
    ? diskSentence("ENOSPC")
    : (REASONS.get(code) ?? "The change could not be written to the disk.");
}

function diskSentence(code: "ENOSPC" | "EDQUOT" | "EROFS" | "EIO"): string {
  const reason = reasonFor(code);
  return `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.`;
}

/** The answer to a change that was not made. */
export function unavailable(reason: string, cause?: unknown): ApiError {
  return new ApiError("service_unavailable", `${reason} Nothing was changed; reading still works.`, { cause });
}

/** lmdb-js throws this without a code, when a damaged page has ended the transaction already. */
const ABORT_FAILED = "Can not abort this transaction";

/** Checks whether LMDB threw this: its codes are numbers, those of the system's calls are names. */
export function isOfLmdb(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof DOMException) return false;
  return typeof codeOf(error) === "number" || "commitError" in error || error.message === ABORT_FAILED;
}

/** Checks whether LMDB can do nothing more in this process. A read then fails for lack of a transaction, with a text that says why. */
export function isPanic(error: unknown): boolean {
  return codeOf(error) === MDB_PANIC || (isOfLmdb(error) && messageOf(error).includes("MDB_PANIC"));
}

/** Checks whether LMDB has met a damaged page. A copy of the store fails with its text alone. */
export function isDamage(error: unknown): boolean {
  return error instanceof Error && /^MDB_(CORRUPTED|PAGE_NOTFOUND):/.test(error.message);
}

/**
 * Checks whether nothing of a writing transaction can be committed after a read in it has thrown this: LMDB has met a damaged page. Its
 * commit would fail with an error that lmdb-js hands to nobody.
 */
export function endsTransaction(error: unknown): boolean {
  return isOfLmdb(error) && !(error instanceof KeysOutOfOrder);
}

/** Error that LMDB would throw if it looked at the order of keys. */
class KeysOutOfOrder extends Error {
  readonly code = MDB_CORRUPTED;
}

export function keysOutOfOrder(table: { name: string }): Error {
  return new KeysOutOfOrder(`MDB_CORRUPTED: keys of ${table.name} are out of order`);
}

/** Says why a read of the store failed. */
export function lmdbReason(error: unknown): string {
  return isDamage(error) ? "a page of its file is damaged" : messageOf(error);
}

function codeOf(error: unknown): unknown {
  return (error as { code?: unknown } | undefined)?.code;
}
