/**
 * Finds the memory of an owner that says the same already.
 *
 * The same is what reads the same: type and content, whatever the form of its characters, its case and its spaces. A memory of a session
 * that has no user is that session's alone, whose contexts show no others.
 *
 * @module
 */
import { withPrefix, type BareId } from "../lib/ids.ts";
import { eachFetched, type Reader } from "../storage/access.ts";
import { MAX_KEY, contentKey, type OwnerOfMemory } from "../storage/keys.ts";
import { isOwned, type Owner } from "../storage/owner.ts";
import { memories, type MemoryRow } from "../storage/tables.ts";
import { ownerNames, type FoundMemory } from "./record.ts";
import { shownMemories } from "./validity.ts";

/** Most often the newest is current. As many are read at once, … */
const ROWS_PER_LOOK = 16;
/** … and only where an owner has had the same said many times. */
const LOOKED_AT_MAX = 1_000;

/**
 * @param owner - whose memories the caller sees
 * @returns the newest current one
 */
export function duplicateOf(
  reader: Reader,
  owner: Owner,
  of: OwnerOfMemory,
  { type, content }: Pick<MemoryRow, "type" | "content">,
): FoundMemory | undefined {
  const { byContent } = memories.index;
  const find = shownMemories(reader, {});
  const from = contentKey(of, type, content);
  for (let [to, looked] = [from + MAX_KEY, 0]; looked < LOOKED_AT_MAX; looked += ROWS_PER_LOOK) {
    const entries = reader.keys(byContent, { from, to, limit: ROWS_PER_LOOK, descending: true });
    const keys = entries.map((entry) => byContent.recordOf(entry) as BareId);
    reader.ahead(memories, keys);
    const rows = eachFetched(keys, (key) => ({ key, row: find(key) }));
    const found = rows.find(({ row }) => row !== undefined && isOwned(owner, ownerNames(row)));
    if (found?.row !== undefined) return { id: withPrefix("mem", found.key), key: found.key, row: found.row };
    if (entries.length < ROWS_PER_LOOK) return undefined;
    to = entries.at(-1)!;
  }
  return undefined;
}
