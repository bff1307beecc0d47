/**
 * A drill: a backup is restored into a scratch directory and checked as `cairn doctor` does it, and the directory goes again.
 *
 * @module
 */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { isOfSystem, systemReason } from "../lib/system-errors.ts";
import { DirectoryInUseError, lockDirectory } from "../storage/lmdb/directory/directory-lock.ts";
import { SCHEMA_VERSION } from "../storage/tables.ts";
import { restoreBackup, type Restored } from "./backup.ts";
import type { BackupSource } from "./backup-source.ts";
import { examineAll, type Examination } from "./doctor.ts";
import { cleanUpAfter } from "./files.ts";
import { OperationError, type OnProgress } from "./report.ts";
import { DRILL_DIRECTORY } from "./store-file.ts";
import { withStore } from "./with-store.ts";

export interface Drilled extends Restored {
  /** Undefined for a backup of an older Cairn: its rows are read once a start has brought them up to date. */
  readonly examination: Examination | undefined;
}

/** @throws {OperationError} when the backup cannot be restored, or another drill runs */
export async function drillBackup(source: BackupSource, dataDirectory: string, clock: Clock, onProgress?: OnProgress): Promise<Drilled> {
  const scratch = join(dataDirectory, DRILL_DIRECTORY);
  // Held until all of it has been checked: nobody else may remove the directory meanwhile. What a killed drill has left is not locked.
  using _lock = lockDrill(scratch);
  using _scratch = cleanUpAfter(() => rmSync(scratch, { recursive: true, force: true }));
  const directory = join(scratch, "data");
  rmSync(directory, { recursive: true, force: true });
  const restored = await restoreBackup(source, directory, clock, { force: true }, onProgress);
  const isCurrent = restored.schema === SCHEMA_VERSION;
  return { ...restored, examination: isCurrent ? await withStore(directory, clock, (store) => examineAll(store)) : undefined };
}

function lockDrill(scratch: string): Disposable {
  try {
    mkdirSync(scratch, { recursive: true, mode: 0o700 });
    return lockDirectory(scratch);
  } catch (error) {
    if (isOfSystem(error)) throw new OperationError(`${scratch} cannot be made: ${systemReason(error)}.`, { cause: error });
    if (!(error instanceof DirectoryInUseError)) throw error;
    throw new OperationError(`Another drill is running in ${scratch}. Let it end first.`, { cause: error });
  }
}
