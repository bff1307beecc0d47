/**
 * `cairn import`: reads an export, from a file or standard input, into a data directory that has no store.
 *
 * @module
 */
import { statSync } from "node:fs";
import { systemClock } from "../lib/clock.ts";
import { importLines } from "../operations/import.ts";
import type { CommandLine } from "./command-line.ts";
import { escaped, print, printFindings } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function importAll({ config: { dataDirectory }, file }: CommandLine): Promise<number> {
  const total = file === undefined ? undefined : statSync(file).size;
  const source = file === undefined ? Bun.stdin.stream() : Bun.file(file).stream();
  using progress = showProgress("Importing", "lines");
  const { records, setAgain, left } = await importLines(source, dataDirectory, systemClock, (lines, bytes) =>
    total === undefined ? progress.show(lines) : progress.show(bytes, total),
  );
  progress.clear();
  await print(`Imported ${records} records to ${dataDirectory}`);
  if (setAgain.length > 0) await print("Set again, because the export is without secrets:");
  for (const what of setAgain) await print(`  ${escaped(what)}`);
  if (left.length > 0) await print("Lost, and nothing mends what refers to it:");
  await printFindings(left);
  return 0;
}
