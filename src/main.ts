/**
 * `cairn`: the command line.
 *
 * What needs a native part is imported only when that knows where to unpack, because it is loaded on import.
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

async function main([command, ...args]: readonly string[]): Promise<number> {
  if (command !== undefined && command !== "help" && (args.includes("--help") || args.includes("-h"))) {
    return main(["help", command, ...args.filter((arg) => arg !== "--help" && arg !== "-h")]);
  }
  switch (command) {
    case "serve": {
      const config = prepared(args);
      const { serve } = await import("./cli/serve.ts");
      return serve(config);
    }
    case "keys": {
      const { keys } = await import("./cli/keys.ts");
      return keys(args, preparedOnce);
    }
    case "backup": {
      const { backup } = await import("./cli/backup.ts");
      return backup(args, preparedOnce);
    }
    case "restore": {
      const { restore } = await import("./cli/restore.ts");
      return restore(args, preparedOnce);
    }
    case "export": {
      const { exportAll } = await import("./cli/export.ts");
      return exportAll(args, preparedOnce);
    }
    case "import": {
      const { importAll } = await import("./cli/import.ts");
      return importAll(args, preparedOnce);
    }
    case "health": {
      const { health } = await import("./cli/health.ts");
      return health(args);
    }
    case "doctor": {
      const { doctor } = await import("./cli/doctor.ts");
      return doctor(args, preparedOnce);
    }
    case "rebuild-index": {
      const { rebuildIndex } = await import("./cli/rebuild-index.ts");
      return rebuildIndex(args, preparedOnce);
    }
    case "version":
    case "--version":
      await print(`cairn ${version}${commit === null ? "" : ` (${commit})`}`);
      return 0;
    case "help":
    case "--help":
    case "-h":
      await print(helpOn(args));
      return 0;
    default:
      throw new UsageError(command === undefined ? "say what to do" : `there is no command ${command}`);
  }
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
