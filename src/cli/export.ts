/**
 * `cairn export`: everything as lines of JSON, to a file or standard output, beside a running server too.
 *
 * @module
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../lib/clock.ts";
import { isOfSystem } from "../lib/system-errors.ts";
import { assertNotOwn } from "../operations/store-file.ts";
import type { LeftOut } from "../operations/salvage.ts";
import { readCommandLine, type Prepare } from "./command-line.ts";
import { endWhenInterrupted } from "./interrupted.ts";
import { hasReaderLeft, unwritten, writeOut } from "./print.ts";
import { showProgress } from "./progress.ts";

/** Lines are short: many are written at once. */
const CHUNK_LENGTH = 256 * 1024;

export async function exportAll(args: readonly string[], prepare: Prepare): Promise<number> {
  const { config, file, has } = readCommandLine(
    { command: "export", file: "optional", switches: ["force", "with-secrets", "salvage"], needsStore: "damaged", checkFile: assertNotOwn },
    args,
    prepare,
  );
  endWhenInterrupted();
  const { exportLines } = await import("../operations/export.ts");
  const { salvageLines } = await import("../operations/salvage.ts");
  const { withDataFile } = await import("../operations/damage.ts");
  const { withStore } = await import("../operations/with-store.ts");
  const { writeAtomically } = await import("../operations/files.ts");
  using progress = showProgress("Exporting", "records");
  const options = { secrets: has("with-secrets") };
  const onProgress = (done: number, total: number) => progress.show(done, total);
  const leftOut: LeftOut[] = [];
  const write = async (lines: () => Iterable<string>) => {
    if (file === undefined) return writeLines(lines(), writeOut);
    await writeAtomically(file, { force: has("force") }, async (directory) => {
      const path = join(directory, "export");
      const handle = await open(path, "wx", 0o600);
      try {
        await writeLines(lines(), (text) => handle.writeFile(text));
      } finally {
        await handle.close();
      }
      return path;
    });
  };
  const { dataDirectory } = config;
  const writing = has("salvage")
    ? withDataFile(dataDirectory, (path) =>
        write(() => salvageLines(path, { ...options, onProgress, onEnd: (tables) => leftOut.push(...tables) })),
      )
    : withStore(dataDirectory, systemClock, (store) => write(() => exportLines(store, options, onProgress)));
  try {
    await writing;
  } catch (error) {
    // The reader has closed the pipe.
    if (file === undefined && hasReaderLeft(error)) return 1;
    throw file === undefined && isOfSystem(error) ? unwritten(error) : error;
  }
  progress.clear();
  if (file !== undefined) console.error(`Wrote ${file}`);
  if (!has("salvage")) return 0;
  for (const { table, rows, of } of leftOut)
    console.error(of === 0 ? `${table}: the table cannot be found` : `${table}: ${rows} of ${of} rows are left out`);
  if (leftOut.length === 0) console.error("Nothing is left out.");
  return leftOut.length === 0 ? 0 : 1;
}

async function writeLines(lines: Iterable<string>, write: (text: string) => Promise<void>): Promise<void> {
  let text = "";
  for (const line of lines) {
    text += `${line}\n`;
    if (text.length < CHUNK_LENGTH) continue;
    await write(text);
    text = "";
  }
  await write(text);
}
