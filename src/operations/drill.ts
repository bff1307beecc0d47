/**
 * A drill: a backup is restored into a scratch directory and checked as `cairn doctor` does it, and the directory goes again.
 *
 * @module
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { SCHEMA_VERSION } from "../storage/tables.ts";
import { restoreBackup, type Restored } from "./backup.ts";
import type { BackupSource } from "./backup-source.ts";
import { examineAll, type Examination } from "./doctor.ts";
import { cleanUpAfter } from "./files.ts";
import type { OnProgress } from "./report.ts";
import { DRILL_DIRECTORY } from "./store-file.ts";
import { withStore } from "./with-store.ts";

export interface Drilled extends Restored {
  /** Undefined for a backup of an older Cairn: its rows are read once a start has brought them up to date. */
  readonly examination: Examination | undefined;
}

/** @throws {OperationError} when the backup cannot be restored */
export async function drillBackup(source: BackupSource, dataDirectory: string, clock: Clock, onProgress?: OnProgress): Promise<Drilled> {
  const scratch = join(dataDirectory, DRILL_DIRECTORY);
  // A drill that was killed has left its own; of one that runs the lock refuses this.
  using _ = cleanUpAfter(() => rmSync(scratch, { recursive: true, force: true }));
  const restored = await restoreBackup(source, scratch, clock, { force: true }, onProgress);
  const isCurrent = restored.schema === SCHEMA_VERSION;
  return { ...restored, examination: isCurrent ? await withStore(scratch, clock, (store) => examineAll(store)) : undefined };
}
