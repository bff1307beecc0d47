/**
 * How the commands for the whole store are called: `[FILE] [--switch] [flags of every command]`, in any order.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { commonFlags, OPTIONS, UsageError, readConfig, type Config } from "../config.ts";
import { messageOf } from "../lib/errors.ts";
import { assertStore } from "../operations/store-file.ts";

export type Prepare = (args: readonly string[]) => Config;

export interface Usage {
  command: string;
  file: "needed" | "optional" | "none";
  /** Flags without a value. */
  switches?: readonly string[];
  /** Whether it works on a store that is there. */
  needsStore: boolean;
}

export interface CommandLine {
  config: Config;
  /** `-`, or none, is standard input or output. */
  file: string | undefined;
  has: (name: string) => boolean;
}

/**
 * @param prepare - called when everything is right but nothing native is loaded
 * @throws {UsageError}
 */
export function readCommandLine(usage: Usage, args: readonly string[], prepare: Prepare): CommandLine {
  const { command, switches = [] } = usage;
  const flags = Object.values(OPTIONS).map(({ flag }) => flag as string);
  const parsed = parse(args, flags, switches);
  const [file, ...more] = parsed.positionals;
  if (more.length > 0 || (usage.file === "none" && file !== undefined)) {
    throw new UsageError(`cairn ${command} takes ${usage.file === "none" ? "no file" : "one file"}`);
  }
  if (usage.file === "needed" && (file === undefined || file === "-")) throw new UsageError(`cairn ${command} needs the name of a file`);
  const common = commonFlags(parsed.values);
  if (usage.needsStore) assertStore(readConfig(common).dataDirectory);
  return { config: prepare(common), file: file === "-" ? undefined : file, has: (name) => parsed.values[name] === true };
}

interface Parsed {
  values: Record<string, unknown>;
  positionals: string[];
}

function parse(args: readonly string[], flags: readonly string[], switches: readonly string[]): Parsed {
  const options: Record<string, { type: "string" | "boolean" }> = {};
  for (const flag of flags) options[flag] = { type: "string" };
  for (const name of switches) options[name] = { type: "boolean" };
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: true });
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}
