/**
 * `cairn import`: reads an export, from a file or standard input, into a data directory that has no store, or a database without records.
 *
 * @module
 */
import { statSync } from "node:fs";
import { systemClock } from "../lib/clock.ts";
import { importIntoDatabase, importLines, type OnRead } from "../operations/import.ts";
import { withDatabase } from "../operations/with-store.ts";
import { shownPlace, type CommandLine } from "./command-line.ts";
import { escaped, print, printFindings } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function importAll({ config, file }: CommandLine): Promise<number> {
  const total = file === undefined ? undefined : statSync(file).size;
  const source = file === undefined ? Bun.stdin.stream() : Bun.file(file).stream();
  using progress = showProgress("Importing", "lines");
  const onRead: OnRead = (lines, bytes) => (total === undefined ? progress.show(lines) : progress.show(bytes, total));
  const { dataDirectory, database } = config;
  const { records, setAgain, left } = await (database === undefined
    ? importLines(source, dataDirectory, systemClock, onRead)
    : withDatabase(database, systemClock, (store) => importIntoDatabase(source, store, onRead), { makes: true }));
  progress.clear();
  await print(`Imported ${records} records to ${shownPlace(config)}`);
  if (setAgain.length > 0) await print("Set again, because the export is without secrets:");
  for (const what of setAgain) await print(`  ${escaped(what)}`);
  if (left.length > 0) await print("Lost, and nothing repairs what refers to it:");
  await printFindings(left);
  return 0;
}
