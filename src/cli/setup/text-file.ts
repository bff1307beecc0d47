/**
 * Files of other programs: read as they are, and replaced in one step with the same mode, owner and line ends.
 *
 * @module
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { hasCode } from "../../lib/errors.ts";

const MODE_OF_NEW = 0o600;
const BYTE_ORDER_MARK = "\uFEFF";

/** Text of a file, without the byte order mark that some editors begin it with. */
export interface FileText {
  readonly text: string;
  readonly mark: "" | typeof BYTE_ORDER_MARK;
}

/** @returns undefined where there is no file. @throws {Error} the system's, or where it is not text */
export function readText(path: string): FileText | undefined {
  const bytes = bytesOf(path);
  if (bytes === undefined) return undefined;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error("it is not UTF-8");
  }
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : "";
  return { text: text.slice(mark.length), mark };
}

function bytesOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) throw new Error("it is a link that leads nowhere", { cause: error });
    return undefined;
  }
}

/**
 * Replaces a file, or the one that it links to. The first time, what was there is kept next to it.
 *
 * @param before - undefined where there was none
 * @param keepsFirst - false for a file that is ours alone
 * @returns false where the file has changed since it was read: then nothing is written
 */
export function replaceText(path: string, before: FileText | undefined, after: string, keepsFirst: boolean): boolean {
  mkdirSync(dirname(path), { recursive: true });
  const target = before === undefined ? path : realpathSync(path);
  const fresh = `${target}.cairn-${process.pid}`;
  const old = before === undefined ? undefined : statSync(target);
  const file = openSync(fresh, "wx", MODE_OF_NEW);
  try {
    writeFileSync(file, (before?.mark ?? "") + after);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    if (old !== undefined) {
      if (old.uid !== statSync(fresh).uid || old.gid !== statSync(fresh).gid) chownSync(fresh, old.uid, old.gid);
      chmodSync(fresh, old.mode);
      if (keepsFirst) keepFirst(target);
    }
    const now = readText(path);
    if (now?.text !== before?.text) return false;
    renameSync(fresh, target);
    return true;
  } finally {
    rmSync(fresh, { force: true });
  }
}

/** Removes a file that is ours alone, or the link to it. @throws {Error} where it has changed since it was read */
export function removeText(path: string, before: FileText | undefined): void {
  const now = readText(path);
  if (now !== undefined && now.text !== before?.text) throw new Error("it has changed meanwhile");
  rmSync(path, { force: true });
}

function keepFirst(target: string): void {
  const backup = `${target}.cairn-backup`;
  if (!existsSync(backup)) copyFileSync(target, backup, constants.COPYFILE_EXCL);
}
