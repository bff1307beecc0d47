/**
 * Syntax of the commands for the whole store: `[FILE] [--switch] [flags of every command]`, in any order.
 *
 * @module
 */
import { accessSync, constants, existsSync, rmSync, statSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { dirname, join, resolve } from "node:path";
import { configOf, parseFlags, UsageError, type Config } from "../config.ts";
import { LIMITS } from "../lib/limits.ts";
import { describeError, type Log } from "../lib/log.ts";
import { configureNative } from "../lib/native.ts";
import { isBucketUrl } from "../lib/s3.ts";
import { systemReason } from "../lib/system-errors.ts";
import { codePointLength, userIdProblem } from "../lib/text.ts";
import { cleanUpAfter } from "../operations/files.ts";
import { OperationError } from "../operations/report.ts";
import { assertDataFile, assertStore, holdsStore } from "../operations/store-file.ts";
import type { StorePlace } from "../operations/with-store.ts";
import { makeDirectory, SERVE_LOCK } from "../storage/lmdb/directory/data-directory.ts";
import { isOfLmdb } from "../storage/lmdb/disk/disk-errors.ts";
import { shownDatabase } from "../storage/postgres/connection/database-url.ts";

export interface Usage {
  file: "needed" | "optional" | "none";
  /** Switch with which a needed file is optional. */
  unless?: string;
  /** Flags without a value. */
  switches?: readonly string[];
  /** Store that it works on; `damaged`: also on one whose file must not be mapped. */
  store: "whole" | "damaged" | "none";
  /** Called with the name of the file before anything is made. */
  checkFile?: (file: string, dataDirectory: string) => void;
  /** Reason why it does not work on a database, and what does; undefined when it works on one. */
  notOnDatabase?: string;
}

export interface CommandLine {
  config: Config;
  /** `-`, or none, is standard input or output. */
  file: string | undefined;
  has: (name: string) => boolean;
}

/**
 * Returns a command for the whole store.
 *
 * @param run - imports what needs a native part, which by then knows where to unpack
 */
export function storeCommand(
  name: string,
  { file: needed, unless = "", switches = [], store, checkFile, notOnDatabase }: Usage,
  run: (line: CommandLine) => Promise<number>,
): (args: readonly string[]) => Promise<number> {
  return async (args) => {
    const { flags, has, positionals } = parseFlags(args, { switches, allowPositionals: true });
    const [named, ...more] = positionals;
    if (more.length > 0 || (needed === "none" && named !== undefined))
      throw new UsageError(`cairn ${name} takes ${needed === "none" ? "no file" : "one file"}`);
    const file = named === "-" ? undefined : named;
    if (needed === "needed" && file === undefined && !has(unless)) throw new UsageError(`cairn ${name} needs the name of a file`);
    const config = storeConfigOf(flags);
    const { dataDirectory, database } = config;
    if (database !== undefined && notOnDatabase !== undefined) throw new OperationError(notOnDatabase);
    if (database === undefined && store === "whole") assertStore(dataDirectory);
    if (database === undefined && store === "damaged") assertDataFile(dataDirectory);
    if (file !== undefined) checkFile?.(file, dataDirectory);
    // Commands without a file hold the thread, and would not hear the signal.
    if (needed !== "none") endWhenInterrupted();
    using _ = prepareOnce(config);
    return await run({ config, file, has });
  };
}

/**
 * Reads the settings of a command that works on a store, wherever that is.
 *
 * @throws {UsageError} as `configOf` does, and where a flag names a data directory and a variable a database: either could be meant
 */
export function storeConfigOf(flags: Parameters<typeof configOf>[0]): Config {
  const config = configOf(flags);
  if (config.database !== undefined && flags["store"] === undefined && flags["data-dir"] !== undefined)
    throw new UsageError("--data-dir and CAIRN_STORE name two stores: name the database with --store, or leave one of the two out");
  return config;
}

/** Returns the name in a flag, which is not empty. @throws {UsageError} for one that no user or agent can have */
export function checkedName<Name extends string | undefined>(flag: "user" | "agent", name: Name): Name {
  if (name === undefined) return name;
  const max = flag === "user" ? LIMITS.userIdLengthMax : LIMITS.agentIdLengthMax;
  const length = codePointLength(name);
  if (length > max) throw new UsageError(`--${flag} must be at most ${max} characters; got ${length}`);
  const problem = flag === "user" ? userIdProblem(name) : undefined;
  if (problem !== undefined) throw new UsageError(`--${flag} ${problem}`);
  return name;
}

/** Settings that say where a store is. */
export function shownPlace({ dataDirectory, database }: StorePlace): string {
  return database === undefined ? dataDirectory : shownDatabase(database);
}

/** Refuses where there is no store in a data directory. That of a database says so when it is opened. @throws {OperationError} */
export function assertPlace({ dataDirectory, database }: StorePlace): void {
  if (database === undefined) assertStore(dataDirectory);
}

/** Makes the data directory, and lets native parts know where to unpack. */
export function prepare({ dataDirectory, nativeDirectory: directory, simd }: Config): void {
  makeDirectory(dataDirectory);
  configureNative({ directory, dataDirectory, simd });
}

/**
 * The same for a command that ends when it has its answer: a rejection that nobody handles ends it. A data directory that was made goes
 * in the end, unless there is a store in it, or a server is using it.
 */
export function prepareOnce(config: Config): Disposable {
  onRejection((reason) => {
    throw reason;
  });
  const { dataDirectory, database } = config;
  const made = firstMissing(resolve(dataDirectory));
  prepare(config);
  return cleanUpAfter(() => {
    const isUsed = database === undefined ? holdsStore(dataDirectory) : existsSync(join(dataDirectory, SERVE_LOCK));
    if (made !== undefined && !isUsed) rmSync(made, { recursive: true, force: true });
  });
}

/** Logs rejections that nobody handles. Called before a store is opened, for a commit may fail meanwhile. */
export function reportRejections(log: Log): void {
  onRejection((reason) => log.error("unhandled rejection", { reason: describeError(reason) }));
}

/** A commit that fails rejects once more in a promise inside lmdb-js that nobody holds; who made it has its error already. */
function onRejection(handle: (reason: unknown) => void): void {
  process.on("unhandledRejection", (reason) => {
    if (!isOfLmdb(reason)) handle(reason);
  });
}

/** Ends the process as after a signal (130, 143), but so that temporary files are removed. */
function endWhenInterrupted(): void {
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(128 + osConstants.signals[signal]));
}

/** The first directory of a path that is not there; undefined when all of it is. */
function firstMissing(path: string): string | undefined {
  if (existsSync(path)) return undefined;
  return firstMissing(dirname(path)) ?? path;
}

/** Refuses a backup as `assertReadable` does; one in a bucket is looked for when it is read. @throws {OperationError} */
export function assertReadableBackup(place: string): void {
  if (!isBucketUrl(place)) assertReadable(place);
}

/** Refuses a file that cannot be read, before anything is made. @throws {OperationError} */
export function assertReadable(file: string): void {
  try {
    const found = statSync(file);
    if (found.isDirectory()) throw new OperationError(`${file} is not a file but a directory.`);
    if (found.isCharacterDevice() || found.isBlockDevice()) throw new OperationError(`${file} is not a file but a device.`);
    accessSync(file, constants.R_OK);
  } catch (error) {
    if (error instanceof OperationError) throw error;
    throw new OperationError(`${file} cannot be read: ${systemReason(error)}.`, { cause: error });
  }
}
