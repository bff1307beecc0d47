/**
 * Backups that the server makes of its own store, as tests ask for them.
 *
 * @module
 */
import { OWN_PROGRAM } from "../../src/backups/command.ts";
import type { BucketAccess } from "../../src/lib/s3.ts";
import { refusedBy, startBucket } from "./bucket.ts";
import type { Cairn } from "./cairn.ts";
import { until } from "./process.ts";

/** A Cairn in the test's process, or in one of its own. */
interface Asked {
  get(path: string): Promise<any>;
  ok(answer: Promise<any>): Promise<any>;
}

/** What becomes of a backup that has begun. */
export function endOf(cairn: Asked, id: string): Promise<any> {
  return until("the backup to end", async () => {
    const found = await cairn.ok(cairn.get(`/v1/backups/${id}`));
    return found.status === "running" ? undefined : found;
  });
}

/** Makes a backup and waits for its end. */
export async function madeBackup(cairn: Cairn): Promise<any> {
  return endOf(cairn, (await cairn.ok(cairn.post("/v1/backups"))).id);
}

/** Parts of a Cairn that make and take backups, and can be made to fail. */
export interface BackupParts extends Disposable {
  readonly backupProgram: string[];
  readonly bucketAccess: BucketAccess;
  readonly bucket: ReturnType<typeof startBucket>;
}

export function backupParts(): BackupParts {
  const bucket = startBucket();
  return { backupProgram: [...OWN_PROGRAM], bucketAccess: bucket.access, bucket, [Symbol.dispose]: () => bucket[Symbol.dispose]() };
}

/** Leaves a trace of every action of backups. @param parts - those of the Cairn; they fail afterwards */
export async function leaveBackupTraces(cairn: Cairn, { backupProgram: program, bucket }: BackupParts): Promise<void> {
  const { id } = await madeBackup(cairn);
  for (const url of ["s3://backups/one", "s3://backups/two"]) {
    await cairn.ok(cairn.patch("/v1/settings", { backups: { copy_to: url } }));
    await cairn.runTask("copies of backups");
    bucket.answer = () => Promise.resolve(refusedBy("NoSuchBucket", "The specified bucket does not exist.", 404));
  }
  await cairn.plain("GET", `/v1/backups/${id}/file`);
  await cairn.ok(cairn.delete(`/v1/backups/${id}`));
  program.splice(0, program.length, "false");
  await madeBackup(cairn);
}
