/**
 * `cairn backup`: the whole store in one file, also while a server is running; with `--drill` the proof that one can be restored.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { isBucketUrl } from "../lib/s3.ts";
import { writeBackup } from "../operations/backup.ts";
import { placedBackup, saying, type BackupSource } from "../operations/backup-source.ts";
import { drillBackup } from "../operations/drill.ts";
import { knownBackupNumber, newestOwn } from "../operations/own-backups.ts";
import { OperationError } from "../operations/report.ts";
import { withStore } from "../operations/with-store.ts";
import { Settings } from "../settings/settings.ts";
import { UsageError } from "../config.ts";
import type { CommandLine } from "./command-line.ts";
import { escaped, print, printFindings } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function backup(line: CommandLine): Promise<number> {
  const { config, file = "", has } = line;
  if (has("drill")) return await drill(line);
  if (isBucketUrl(file))
    throw new UsageError("cairn backup writes to a file; the setting backups.copy_to has the server copy backups to a bucket");
  using _ = endWithParent();
  const { bytes, sha256 } = await withStore(config.dataDirectory, systemClock, (store) =>
    writeBackup(store, systemClock, file, { force: has("force") }),
  );
  await print(`Wrote ${file}: ${bytes.toLocaleString("en")} bytes of store, SHA-256 ${sha256}`);
  return 0;
}

async function drill({ config, file }: CommandLine): Promise<number> {
  using progress = showProgress("Restoring", "bytes");
  const source = file === undefined ? await newest(config) : await placedBackup(file, config.bucketAccess);
  const { sessions, memories, created_at, examination } = await saying(source.name, () =>
    drillBackup(source, config.dataDirectory, systemClock, progress.show),
  );
  progress.clear();
  await print(
    escaped(`Restored ${sessions} sessions and ${memories} memories from ${source.name}, as of ${created_at}, and removed them again`),
  );
  if (examination === undefined) {
    await print("It is of an older Cairn: its pages are whole, and its rows are checked once a start has brought it up to date.");
    return 0;
  }
  await printFindings(examination.findings);
  if (examination.findings.length === 0) await print(`Nothing is wrong: ${examination.rows} rows.`);
  return examination.findings.length === 0 ? 0 : 1;
}

/** The newest in the bucket of the settings, or else in the data directory. */
async function newest({ dataDirectory, environment, bucketAccess }: CommandLine["config"]): Promise<BackupSource> {
  const { place, number } = await withStore(dataDirectory, systemClock, async (store) => {
    const { values } = await Settings.open(store, environment);
    return { place: values["backups.copy_to"] ?? newestOwn(store), number: knownBackupNumber(store) };
  });
  // A store without a number has made no backup, nor a copy of one.
  if (place === undefined || number === undefined)
    throw new OperationError(`There is no backup of the store in ${dataDirectory}. Name a file or an address, or set backups.schedule.`);
  return await placedBackup(place, bucketAccess, number);
}

/** A server that is gone waits for no backup any more; of a command that nobody holds a connection to this is nothing. */
function endWithParent(): Disposable {
  const end = () => process.exit(1);
  process.once("disconnect", end);
  return {
    [Symbol.dispose]() {
      process.off("disconnect", end);
      if (process.connected) process.disconnect?.();
    },
  };
}
