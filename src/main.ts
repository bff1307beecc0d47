/**
 * `cairn`: the command line.
 *
 * A hook of a coding agent has some milliseconds, so that it loads nothing of the other commands.
 *
 * @module
 */
process.umask(0o077);
const [word, ...args] = process.argv.slice(2);
const isHelp = args.some((arg) => arg === "--help" || arg === "-h");
process.exitCode =
  word === "hook" && !isHelp
    ? await (await import("./cli/hook/hook.ts")).hook(args)
    : await (await import("./cli/commands.ts")).run(process.argv.slice(2));
