/**
 * The system's errors in words.
 *
 * @module
 */
import { messageOf } from "./errors.ts";

const WORDS: Readonly<Record<string, string>> = {
  EACCES: "its mode, or that of a directory above it, does not allow it",
  EPERM: "the system does not allow it",
  EROFS: "the disk is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the quota on the disk is used up",
  EEXIST: "there is a file of that name",
  ENOTDIR: "a part of the path is a file",
  EISDIR: "it is a directory",
  ENOENT: "there is nothing of that name",
  ENAMETOOLONG: "the path is too long",
  ELOOP: "its links lead in a circle",
  EIO: "the disk has failed",
};

/** Why a call of the system failed; its own message where there are no better words. */
export function systemReason(error: unknown): string {
  const code: unknown = (error as { code?: unknown } | undefined)?.code;
  return (typeof code === "string" ? WORDS[code] : undefined) ?? messageOf(error);
}
