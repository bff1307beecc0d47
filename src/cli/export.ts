/**
 * `cairn export`: everything as lines of JSON, to a file or standard output, also while servers are running.
 *
 * @module
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../lib/clock.ts";
import { isOfSystem } from "../lib/system-errors.ts";
import { withDataFile } from "../operations/damage.ts";
import { exportLines } from "../operations/export.ts";
import { writeAtomically } from "../operations/files.ts";
import { OperationError } from "../operations/report.ts";
import { salvageLines, type LeftOut } from "../operations/salvage.ts";
import { withAnyStore } from "../operations/with-store.ts";
import type { CommandLine } from "./command-line.ts";
import { hasReaderLeft, unwritten, writeOut } from "./print.ts";
import { showProgress } from "./progress.ts";

type Lines = Iterable<string> | AsyncIterable<string>;

/** Short lines are written together. */
const CHUNK_LENGTH = 256 * 1024;

export async function exportAll({ config, file, has }: CommandLine): Promise<number> {
  if (has("salvage") && config.database !== undefined)
    throw new OperationError(
      "cairn export --salvage reads the damaged file of a data directory. Of a database write an export without it.",
    );
  using progress = showProgress("Exporting", "records");
  const options = { secrets: has("with-secrets"), onProgress: progress.show };
  const leftOut: LeftOut[] = [];
  const write = (lines: Lines) => (file === undefined ? writeLines(lines, writeOut) : writeFile(file, lines, has("force")));
  try {
    if (has("salvage"))
      await withDataFile(config.dataDirectory, (path) =>
        write(salvageLines(path, { ...options, onEnd: (tables) => leftOut.push(...tables) })),
      );
    else await withAnyStore(config, systemClock, (store) => write(exportLines(store, options, progress.show)));
  } catch (error) {
    // The reader has closed the pipe.
    if (file === undefined && hasReaderLeft(error)) return 1;
    throw file === undefined && isOfSystem(error) ? unwritten(error) : error;
  }
  progress.clear();
  if (file !== undefined) console.error(`Wrote ${file}`);
  if (!has("salvage")) return 0;
  for (const { table, rows, of } of leftOut) console.error(`${table}: ${lossOf(rows, of)}`);
  if (leftOut.length === 0) console.error("Nothing is left out.");
  return leftOut.length === 0 ? 0 : 1;
}

function lossOf(rows: number, of: number | undefined): string {
  if (of === undefined) return "the table has a damaged number of rows, so it is not known how many are left out";
  return of === 0 ? "the table cannot be found" : `${rows} of ${of} rows are left out`;
}

async function writeFile(file: string, lines: Lines, force: boolean): Promise<void> {
  await writeAtomically(file, { force }, async (directory) => {
    const path = join(directory, "export");
    await using handle = await open(path, "wx", 0o600);
    await writeLines(lines, (text) => handle.writeFile(text));
    return path;
  });
}

async function writeLines(lines: Lines, write: (text: string) => Promise<void>): Promise<void> {
  let text = "";
  for await (const line of lines) {
    text += `${line}\n`;
    if (text.length < CHUNK_LENGTH) continue;
    await write(text);
    text = "";
  }
  await write(text);
}
