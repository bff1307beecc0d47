/**
 * `cairn restore`: puts a backup in the place of a data directory's store.
 *
 * @module
 */
import { systemClock } from "../lib/clock.ts";
import { assertReadable, readCommandLine, type Prepare } from "./command-line.ts";
import { endWhenInterrupted } from "./interrupted.ts";
import { escaped, print } from "./print.ts";
import { showProgress } from "./progress.ts";

export async function restore(args: readonly string[], prepare: Prepare): Promise<number> {
  const {
    config,
    file = "",
    has,
    removeMade,
  } = readCommandLine(
    { command: "restore", file: "needed", switches: ["force"], needsStore: false, checkFile: assertReadable },
    args,
    prepare,
  );
  endWhenInterrupted();
  const { restoreBackup } = await import("../operations/backup.ts");
  using progress = showProgress("Restoring", "bytes");
  const restored = await restoreBackup(file, config.dataDirectory, systemClock, { force: has("force") }, (done, total) =>
    progress.show(done, total),
  ).catch((error: unknown) => {
    removeMade();
    throw error;
  });
  const { sessions, memories, created_at, cairn } = restored;
  await print(
    escaped(`Restored ${sessions} sessions and ${memories} memories to ${config.dataDirectory}, as of ${created_at} (Cairn ${cairn})`),
  );
  return 0;
}
