/**
 * Removal of the searches of an erased user that named no session.
 *
 * @module
 */
import type { Tx } from "../storage/access.ts";
import { successor } from "../storage/keys.ts";
import { retrievals, type ErasureRow } from "../storage/tables.ts";

/** Takes the next ones away and counts them. @returns the entry behind which the next commit continues; undefined at the end */
export function removeSearches(tx: Tx, hash: string, { until, after, counts }: ErasureRow, limit: number): string | undefined {
  const { byUser } = retrievals.index;
  const entries = tx.keys(byUser, { from: after === "" ? hash : successor(after), to: hash + until, limit });
  for (const entry of entries) tx.remove(retrievals, byUser.recordOf(entry));
  counts.retrievals += entries.length;
  return entries.length < limit ? undefined : entries.at(-1);
}
