/**
 * `cairn restore`: replaces a data directory's store by a backup.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { placedBackup, saying } from "../operations/backup-source.ts";
import { restoreBackup } from "../operations/backup.ts";
import type { CommandLine } from "./command-line.ts";
import { escaped, print } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function restore({ config: { dataDirectory, bucketAccess }, file = "", has }: CommandLine): Promise<number> {
  const source = await placedBackup(file, bucketAccess);
  if (source.name !== file) await print(escaped(`Restoring ${source.name}`));
  using progress = showProgress("Restoring", "bytes");
  const { sessions, memories, created_at, cairn } = await saying(source.name, () =>
    restoreBackup(source, dataDirectory, systemClock, { force: has("force") }, progress.show),
  );
  progress.clear();
  await print(escaped(`Restored ${sessions} sessions and ${memories} memories to ${dataDirectory}, as of ${created_at} (Cairn ${cairn})`));
  return 0;
}
