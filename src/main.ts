/**
 * `cairn`: the command line.
 *
 * Native parts are loaded on import, so a command's module is imported once they know where to unpack.
 *
 * @module
 */
import { helpOn } from "./cli/help.ts";
import { escaped, print } from "./cli/print.ts";
import { UsageError, readConfig, type Config } from "./config.ts";
import { configureNative } from "./lib/native.ts";
import { systemSentence } from "./lib/system-errors.ts";
import { commit, version } from "./lib/version.ts";
import { makeDirectory } from "./storage/data-directory.ts";
import { isDamage, isOfLmdb, lmdbReason } from "./storage/disk-errors.ts";

type Command = (args: readonly string[]) => Promise<number>;

const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  [
    "serve",
    async (args) => {
      const config = prepared(args);
      return (await import("./cli/serve.ts")).serve(config);
    },
  ],
  ["keys", async (args) => (await import("./cli/keys.ts")).keys(args, preparedOnce)],
  ["backup", async (args) => (await import("./cli/backup.ts")).backup(args, preparedOnce)],
  ["restore", async (args) => (await import("./cli/restore.ts")).restore(args, preparedOnce)],
  ["export", async (args) => (await import("./cli/export.ts")).exportAll(args, preparedOnce)],
  ["import", async (args) => (await import("./cli/import.ts")).importAll(args, preparedOnce)],
  ["health", async (args) => (await import("./cli/health.ts")).health(args)],
  ["doctor", async (args) => (await import("./cli/doctor.ts")).doctor(args, preparedOnce)],
  ["rebuild-index", async (args) => (await import("./cli/rebuild-index.ts")).rebuildIndex(args, preparedOnce)],
  ["version", () => say(`cairn ${version}${commit === null ? "" : ` (${commit})`}`)],
  ["help", (args) => say(helpOn(args))],
]);
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["--version", "version"],
  ["--help", "help"],
  ["-h", "help"],
]);

async function main([word, ...args]: readonly string[]): Promise<number> {
  if (word === undefined) throw new UsageError("say what to do");
  const name = ALIASES.get(word) ?? word;
  const others = args.filter((arg) => ALIASES.get(arg) !== "help");
  if (name !== "help" && others.length < args.length) return say(helpOn([name, ...others]));
  const command = COMMANDS.get(name);
  if (command === undefined) throw new UsageError(`there is no command ${name}`);
  return command(args);
}

async function say(text: string): Promise<number> {
  await print(text);
  return 0;
}

function prepared(args: readonly string[]): Config {
  const config = readConfig(args);
  makeDirectory(config.dataDirectory);
  configureNative({ directory: config.nativeDirectory, dataDirectory: config.dataDirectory, simd: config.simd });
  return config;
}

/** For a command that ends when it has its answer; a server has a log for this. */
function preparedOnce(args: readonly string[]): Config {
  process.on("unhandledRejection", (reason) => {
    // A commit that fails rejects once more in a promise inside lmdb-js that nobody holds.
    if (!isOfLmdb(reason)) throw reason;
  });
  return prepared(args);
}

process.umask(0o077);
try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const said =
    isOfLmdb(error) || isDamage(error)
      ? `The store cannot be read or changed: ${lmdbReason(error)}. cairn doctor says what is damaged.`
      : systemSentence(error);
  // It may say back what a file or a store holds. Some messages have lines of their own.
  const message = said.split("\n").map(escaped).join("\n");
  console.error(error instanceof UsageError ? `cairn: ${message}\nTry: cairn --help` : `cairn: ${message}`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
