/**
 * The system's errors in words.
 *
 * @module
 */
import { messageOf } from "./errors.ts";

const WORDS = {
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
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was closed before the answer",
  ENOTFOUND: "there is no host of that name",
  EHOSTUNREACH: "there is no way to that host",
  ENETUNREACH: "there is no way to that network",
} as const;

type SystemErrorCode = keyof typeof WORDS;

/** Checks whether this is a failed call of the system that has an entry in the table. */
export function isOfSystem(error: unknown): error is Error & { code: SystemErrorCode; path?: unknown } {
  return error instanceof Error && "code" in error && typeof error.code === "string" && error.code in WORDS;
}

/** A sentence for an error without a message of ours: it names the file where the system does. */
export function systemSentence(error: unknown): string {
  if (!isOfSystem(error)) return messageOf(error);
  const file = typeof error.path === "string" ? error.path : "A file";
  return `${file} cannot be read or written: ${systemReason(error)}.`;
}

/** Reason why a call of the system failed; its own message where there are no better words. */
export function systemReason(error: unknown): string {
  return isOfSystem(error) ? reasonFor(error.code) : messageOf(error);
}

export function reasonFor(code: SystemErrorCode): string {
  return WORDS[code];
}
