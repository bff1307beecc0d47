/**
 * `cairn export`: everything as lines of JSON, to a file or standard output, beside a running server too.
 *
 * @module
 */
import { open } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../lib/clock.ts";
import { readCommandLine, type Prepare } from "./command-line.ts";
import { endWhenInterrupted } from "./interrupted.ts";
import { hasReaderLeft, writeOut } from "./print.ts";
import { showProgress } from "./progress.ts";

/** Lines are short: many are written at once. */
const CHUNK_LENGTH = 256 * 1024;

export async function exportAll(args: readonly string[], prepare: Prepare): Promise<number> {
  const { config, file, has } = readCommandLine(
    { command: "export", file: "optional", switches: ["force", "with-secrets"], needsStore: true },
    args,
    prepare,
  );
  endWhenInterrupted();
  const { exportLines } = await import("../operations/export.ts");
  const { withStore } = await import("../operations/with-store.ts");
  const { writeWhole } = await import("../operations/files.ts");
  using progress = showProgress("Exporting", "records");
  const writing = withStore(config.dataDirectory, systemClock, async (store) => {
    const lines = () => exportLines(store, { secrets: has("with-secrets") }, (done, total) => progress.show(done, total));
    if (file === undefined) return writeLines(lines(), writeOut);
    await writeWhole(file, { force: has("force") }, async (directory) => {
      const path = join(directory, "export");
      const handle = await open(path, "wx", 0o600);
      try {
        await writeLines(lines(), (text) => handle.writeFile(text));
      } finally {
        await handle.close();
      }
      return path;
    });
  });
  try {
    await writing;
  } catch (error) {
    // Whoever reads has seen enough.
    if (file === undefined && hasReaderLeft(error)) return 1;
    throw error;
  }
  if (file !== undefined) console.error(`Wrote ${file}`);
  return 0;
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
