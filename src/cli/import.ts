/**
 * `cairn import`: reads an export, from a file or standard input, into a data directory that has no store.
 *
 * @module
 */
import { statSync } from "node:fs";
import { systemClock } from "../lib/clock.ts";
import { assertReadable, readCommandLine, type Prepare } from "./command-line.ts";
import { endWhenInterrupted } from "./interrupted.ts";
import { describeFindings } from "./findings.ts";
import { escaped, print } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function importAll(args: readonly string[], prepare: Prepare): Promise<number> {
  const { config, file, removeMade } = readCommandLine(
    { command: "import", file: "optional", needsStore: false, checkFile: assertReadable },
    args,
    prepare,
  );
  endWhenInterrupted();
  const { importLines } = await import("../operations/import.ts");
  const total = file === undefined ? undefined : statSync(file).size;
  const source = file === undefined ? Bun.stdin.stream() : Bun.file(file).stream();
  using progress = showProgress("Importing", "lines");
  const imported = await importLines(source, config.dataDirectory, systemClock, (lines, bytes) =>
    total === undefined ? progress.show(lines) : progress.show(bytes, total),
  ).catch((error: unknown) => {
    removeMade();
    throw error;
  });
  const { records, setAgain, left } = imported;
  progress.clear();
  await print(`Imported ${records} records to ${config.dataDirectory}`);
  if (setAgain.length > 0) await print("Set again, because the export is without secrets:");
  for (const what of setAgain) await print(`  ${escaped(what)}`);
  if (left.length > 0) await print("Lost, and nothing mends what refers to it:");
  await describeFindings(left);
  return 0;
}
