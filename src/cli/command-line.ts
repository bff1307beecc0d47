/**
 * How the commands for the whole store are called: `[FILE] [--switch] [flags of every command]`, in any order.
 *
 * @module
 */
import { accessSync, constants, existsSync, rmSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { commonFlags, FLAGS, parseFlags, readConfig, UsageError, type Config } from "../config.ts";
import { systemReason } from "../lib/system-errors.ts";
import { OperationError } from "../operations/report.ts";
import { assertDataFile, assertStore, holdsStore } from "../operations/store-file.ts";

export type Prepare = (args: readonly string[]) => Config;

export interface Usage {
  command: string;
  file: "needed" | "optional" | "none";
  /** Flags without a value. */
  switches?: readonly string[];
  /** Whether it works on a store that is there; `damaged`: also on one whose file must not be mapped. */
  needsStore: boolean | "damaged";
  /** Called with the name of the file before anything is made. */
  checkFile?: (file: string, dataDirectory: string) => void;
}

export interface CommandLine {
  config: Config;
  /** `-`, or none, is standard input or output. */
  file: string | undefined;
  has: (name: string) => boolean;
  /** Takes away the directories that this command line has made, as long as there is no store in them. */
  removeMade: () => void;
}

/**
 * @param prepare - called when everything is right but nothing native is loaded
 * @throws {UsageError}
 */
export function readCommandLine(usage: Usage, args: readonly string[], prepare: Prepare): CommandLine {
  const { command, switches = [] } = usage;
  const { flags, has, positionals } = parseFlags(args, FLAGS, { switches, allowPositionals: true });
  const [file, ...more] = positionals;
  if (more.length > 0 || (usage.file === "none" && file !== undefined)) {
    throw new UsageError(`cairn ${command} takes ${usage.file === "none" ? "no file" : "one file"}`);
  }
  if (usage.file === "needed" && (file === undefined || file === "-")) throw new UsageError(`cairn ${command} needs the name of a file`);
  const common = commonFlags(flags);
  if (usage.needsStore === true) assertStore(readConfig(common).dataDirectory);
  if (usage.needsStore === "damaged") assertDataFile(readConfig(common).dataDirectory);
  const { dataDirectory } = readConfig(common);
  const made = firstMissing(resolve(dataDirectory));
  const removeMade = () => {
    if (made !== undefined && !holdsStore(dataDirectory)) rmSync(made, { recursive: true, force: true });
  };
  if (file !== undefined && file !== "-") usage.checkFile?.(file, dataDirectory);
  return { config: prepare(common), file: file === "-" ? undefined : file, has, removeMade };
}

/** The first directory of a path that is not there; undefined when all of it is. */
function firstMissing(path: string): string | undefined {
  if (existsSync(path)) return undefined;
  return firstMissing(dirname(path)) ?? path;
}

/** Refuses a file to be read that cannot be, before anything is made. @throws {OperationError} */
export function assertReadable(file: string): void {
  try {
    const found = statSync(file);
    if (found.isDirectory()) throw new OperationError(`${file} is no file, but a directory.`);
    if (found.isCharacterDevice() || found.isBlockDevice()) throw new OperationError(`${file} is no file, but a device.`);
    accessSync(file, constants.R_OK);
  } catch (error) {
    if (error instanceof OperationError) throw error;
    throw new OperationError(`${file} cannot be read: ${systemReason(error)}.`, { cause: error });
  }
}
