/**
 * `cairn doctor`: says what is wrong with a store, and repairs it when asked to.
 *
 * The file is checked page by page first. Only what holds there is read the way a server reads it, because a damaged page
 * could end this process too. Of a database its own checksums say that.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { checkFile, repairMetaPages, withDataFile } from "../operations/damage.ts";
import { examineAll, repairAll } from "../operations/doctor.ts";
import { withAnyStore, withDatabase, withLockedStore, type StorePlace } from "../operations/with-store.ts";
import type { RecordStore } from "../storage/record-store.ts";
import type { CommandLine } from "./command-line.ts";
import { print, printFindings } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function doctor({ config: { dataDirectory, database }, has }: CommandLine): Promise<number> {
  const place = { dataDirectory, database };
  if (database === undefined) {
    const repaired = has("fix") ? repairMetaPages(dataDirectory) : undefined;
    if (repaired !== undefined) await print(repaired);
    if (!(await isFileWhole(dataDirectory))) return 1;
  }
  return (await (has("fix") ? repair(place) : examine(place))) ? 0 : 1;
}

async function isFileWhole(dataDirectory: string): Promise<boolean> {
  using progress = showProgress("Reading", "rows");
  const { findings, lostRecords, records } = await withDataFile(dataDirectory, (path) => checkFile(path, { decode: false }, progress.show));
  progress.clear();
  if (findings.length === 0) return true;
  await printFindings(findings);
  const lost = lostRecords === 0 ? "Every record can still be read" : `${lostRecords} of ${records} records cannot be read`;
  await print(
    `\n${lost}. Doctor cannot repair pages. Stop the server, then restore a backup (cairn restore FILE --force), or write what can\n` +
      "be read to a file (cairn export --salvage FILE) and read that into an empty data directory (cairn import FILE).",
  );
  return false;
}

/** @returns whether nothing is wrong */
async function examine(place: StorePlace): Promise<boolean> {
  using progress = showProgress("Looking", "rows");
  const { findings, rows, points } = await withAnyStore(place, systemClock, (store) => examineAll(store, progress.show));
  progress.clear();
  await printFindings(findings);
  if (findings.length === 0) await print(`Nothing is wrong: ${rows} rows${indexOf(points)}.`);
  else if (findings.some(({ canBeMended }) => canBeMended))
    await print(`${place.database === undefined ? "Stop the server and run" : "Run"} cairn doctor --fix to repair what can be repaired.`);
  return findings.length === 0;
}

/** Says how large the vector index is; nothing of a database, where there is none on disk. */
function indexOf(points: number | undefined): string {
  if (points === undefined) return "";
  return points > 0 ? `, ${points} vectors in the index on disk` : "; no vector index on disk, which a server builds once it needs one";
}

/** @returns whether nothing is wrong any more */
async function repair({ dataDirectory, database }: StorePlace): Promise<boolean> {
  using progress = showProgress("Looking", "rows");
  const work = (store: RecordStore) => repairAll(store, progress.show);
  const { found, left } = await (database === undefined
    ? withLockedStore(dataDirectory, systemClock, work)
    : withDatabase(database, systemClock, work));
  progress.clear();
  await printFindings(found);
  if (left.length > 0) await print("\nStill wrong, because the records do not say what would be right:");
  else await print(found.length === 0 ? "Nothing was wrong." : "All problems fixed.");
  await printFindings(left);
  return left.length === 0;
}
