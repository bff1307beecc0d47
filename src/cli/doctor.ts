/**
 * `cairn doctor`: says what is wrong with a store, and mends it when asked to.
 *
 * The file is checked page by page first. Only what holds there is read the way a server reads it, because a damaged page
 * could end this process too.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { readCommandLine, type Prepare } from "./command-line.ts";
import { describeFindings } from "./findings.ts";
import { print } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function doctor(args: readonly string[], prepare: Prepare): Promise<number> {
  const { config, has } = readCommandLine({ command: "doctor", file: "none", switches: ["fix"], needsStore: "damaged" }, args, prepare);
  const { examineAll, mendAll } = await import("../operations/doctor.ts");
  const { withStore, withLockedStore } = await import("../operations/with-store.ts");
  if (!(await isFileWhole(config.dataDirectory, { fix: has("fix") }))) return 1;
  using progress = showProgress("Looking", "rows");
  const onProgress = (done: number, total: number) => progress.show(done, total);
  if (!has("fix")) {
    const { findings, rows, points } = await withStore(config.dataDirectory, systemClock, (store) => examineAll(store, onProgress));
    progress.clear();
    await describeFindings(findings);
    if (findings.length === 0) await print(`Nothing is wrong: ${rows} rows, ${points} vectors in the index on disk.`);
    else if (findings.some(({ canBeMended }) => canBeMended))
      await print("Stop the server and run cairn doctor --fix to mend what can be mended.");
    return findings.length === 0 ? 0 : 1;
  }
  const { found, left } = await withLockedStore(config.dataDirectory, systemClock, (store) => mendAll(store, onProgress));
  progress.clear();
  await describeFindings(found);
  if (left.length === 0) await print(found.length === 0 ? "Nothing was wrong." : "All of it is mended.");
  else {
    await print("\nStill wrong, because the records do not say what would be right:");
    await describeFindings(left);
  }
  return left.length === 0 ? 0 : 1;
}

/** Says what is wrong with the pages of the file, and mends a damaged meta page when asked to. */
async function isFileWhole(dataDirectory: string, { fix }: { fix: boolean }): Promise<boolean> {
  const { checkFile, mendMetaPages, withDataFile } = await import("../operations/damage.ts");
  const mended = fix ? mendMetaPages(dataDirectory) : undefined;
  if (mended !== undefined) await print(mended);
  using progress = showProgress("Reading", "rows");
  const { findings, lostRecords, records } = await withDataFile(dataDirectory, (path) =>
    checkFile(path, { decode: false }, (done, total) => progress.show(done, total)),
  );
  progress.clear();
  if (findings.length === 0) return true;
  await describeFindings(findings);
  const lost = lostRecords === 0 ? "Every record can still be read" : `${lostRecords} of ${records} records cannot be read`;
  await print(
    `\n${lost}. Doctor cannot mend pages. Stop the server, then restore a backup (cairn restore FILE --force), or write what can`,
  );
  await print("be read to a file (cairn export --salvage FILE) and read that into an empty data directory (cairn import FILE).");
  return false;
}
