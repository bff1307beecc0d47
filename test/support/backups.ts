/**
 * Backups that the server makes of its own store, as tests ask for them.
 *
 * @module
 */
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

/** Leaves a trace of every action of backups. @param program - what makes them, which is replaced by one that fails */
export async function leaveBackupTraces(cairn: Cairn, program: string[]): Promise<void> {
  const { id } = await madeBackup(cairn);
  await cairn.plain("GET", `/v1/backups/${id}/file`);
  await cairn.ok(cairn.delete(`/v1/backups/${id}`));
  program.splice(0, program.length, "false");
  await madeBackup(cairn);
}
