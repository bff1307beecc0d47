/**
 * Removal of what the log has of an erased user: searches that named no session, and retrievals of others that show or name the user.
 *
 * @module
 */
import type { Tx } from "../storage/access.ts";
import { successor } from "../storage/keys.ts";
import { retrievals, type ErasureRow } from "../storage/tables.ts";

/** Takes the next ones away and counts them. @returns the entry behind which the next commit continues; undefined at the end */
export function removeRetrievals(
  tx: Tx,
  by: "byUser" | "byOther",
  hash: string,
  { until, after, counts }: ErasureRow,
  limit: number,
): string | undefined {
  const index = retrievals.index[by];
  const entries = tx.keys(index, { from: after === "" ? hash : successor(after), to: hash + until, limit });
  for (const entry of entries) tx.remove(retrievals, index.recordOf(entry));
  counts.retrievals += entries.length;
  return entries.length < limit ? undefined : entries.at(-1);
}
