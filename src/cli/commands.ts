/**
 * The table of commands, and how each ends.
 *
 * Native parts are loaded on import, so a command's module is imported once they know where to unpack.
 *
 * @module
 */
import { assertReadable, assertReadableBackup, prepare, storeCommand } from "./command-line.ts";
import { helpOn } from "./help.ts";
import { escaped, print } from "./print.ts";
import { UsageError, readConfig } from "../config.ts";
import { systemSentence } from "../lib/system-errors.ts";
import { assertNotOwn } from "../operations/store-file.ts";
import { isDamage, isOfLmdb, lmdbReason } from "../storage/lmdb/disk/disk-errors.ts";
import { UnreadableRow } from "../storage/unreadable.ts";

type Command = (args: readonly string[]) => Promise<number>;

const NO_BACKUP =
  "A database is backed up with PostgreSQL's own tools. pg_dump --format=custom --file=FILE URL writes one moment of it to a file. " +
  "pg_basebackup with an archive of the WAL (or your provider's point-in-time recovery) keeps every moment.";
const NO_RESTORE =
  "A database is restored with PostgreSQL's own tools, into a new one that servers are then started on. " +
  "pg_restore --dbname=URL FILE reads what pg_dump wrote. A copy of pg_basebackup becomes a server that replays the WAL up to a recovery_target_time.";
const NO_INDEX = "cairn rebuild-index works on a data directory: of a database each server keeps what it searches by itself.";

const importOfExport = storeCommand("import", { file: "optional", store: "none", checkFile: assertReadable }, async (line) =>
  (await import("./import.ts")).importAll(line),
);

const COMMANDS: ReadonlyMap<string, Command> = new Map(
  Object.entries<Command>({
    serve: async (args) => {
      const config = readConfig(args);
      prepare(config);
      return (await import("./serve.ts")).serve(config);
    },
    mcp: async (args) => (await import("./mcp.ts")).mcp(args),
    setup: async (args) => (await import("./setup/setup.ts")).setup(args),
    // `main.ts` runs it before this is loaded; here it has its help.
    hook: async (args) => (await import("./hook/hook.ts")).hook(args),
    keys: async (args) => (await import("./keys.ts")).keys(args),
    dashboard: async (args) => (await import("./dashboard.ts")).dashboard(args),
    health: async (args) => (await import("./health.ts")).health(args),
    backup: storeCommand(
      "backup",
      { file: "needed", unless: "drill", switches: ["force", "drill"], store: "whole", checkFile: assertNotOwn, notOnDatabase: NO_BACKUP },
      async (line) => (await import("./backup.ts")).backup(line),
    ),
    restore: storeCommand(
      "restore",
      { file: "needed", switches: ["force"], store: "none", checkFile: assertReadableBackup, notOnDatabase: NO_RESTORE },
      async (line) => (await import("./restore.ts")).restore(line),
    ),
    export: storeCommand(
      "export",
      { file: "optional", switches: ["force", "with-secrets", "salvage"], store: "damaged", checkFile: assertNotOwn },
      async (line) => (await import("./export.ts")).exportAll(line),
    ),
    import: async (args) =>
      args.some((arg) => /^--from(=|$)/.test(arg)) ? (await import("./import/from-source.ts")).importFrom(args) : importOfExport(args),
    doctor: async (args) =>
      args.some((arg) => /^--oauth(=|$)/.test(arg)) ? (await import("./doctor-oauth.ts")).doctorOAuth(args) : doctorOfStore(args),
    audit: async (args) => (await import("./audit.ts")).audit(args),
    "rebuild-index": storeCommand("rebuild-index", { file: "none", store: "whole", notOnDatabase: NO_INDEX }, async (line) =>
      (await import("./rebuild-index.ts")).rebuildIndex(line),
    ),
    bench: async (args) => (await import("./bench/bench.ts")).bench(args),
    selftest: async (args) => (await import("./selftest/selftest.ts")).selftest(args),
    version: async (args) => (await import("./version.ts")).printVersion(args),
    help: (args) => say(helpOn(args)),
  }),
);
const doctorOfStore = storeCommand("doctor", { file: "none", switches: ["fix"], store: "damaged" }, async (line) =>
  (await import("./doctor.ts")).doctor(line),
);
const ALIASES: ReadonlyMap<string, string> = new Map([
  ["--version", "version"],
  ["--help", "help"],
  ["-h", "help"],
]);

async function main([word, ...args]: readonly string[]): Promise<number> {
  if (word === undefined) throw new UsageError("a command is needed");
  const name = ALIASES.get(word) ?? word;
  const others = args.filter((arg) => ALIASES.get(arg) !== "help");
  if (name !== "help" && others.length < args.length) return say(helpOn([name, ...others]));
  const command = COMMANDS.get(name);
  if (command === undefined) throw new UsageError(`there is no command ${name}`);
  return command(args);
}

function helpFor(word: string | undefined): string {
  return word !== undefined && COMMANDS.has(word) ? `cairn ${word} --help` : "cairn --help";
}

async function say(text: string): Promise<number> {
  await print(text);
  return 0;
}

/** Runs a command, and says on standard error why it failed. @returns the exit code */
export async function run(args: readonly string[]): Promise<number> {
  try {
    return await main(args);
  } catch (error) {
    const said =
      isOfLmdb(error) || isDamage(error) || error instanceof UnreadableRow
        ? `The store cannot be read or changed: ${lmdbReason(error)}. cairn doctor says what is damaged.`
        : systemSentence(error);
    // It may say back what a file or a store holds. Some messages have lines of their own.
    const message = said.split("\n").map(escaped).join("\n");
    console.error(error instanceof UsageError ? `cairn: ${message}\nTry: ${helpFor(args[0])}` : `cairn: ${message}`);
    return error instanceof UsageError ? 2 : 1;
  }
}
