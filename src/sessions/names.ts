/**
 * Names that sessions were given by a Cairn of before, which did not note within what each is unique: a look-up finds none of them.
 * They are taken for names of their users, once in each store.
 *
 * @module
 */
import { eachFetched, type Tx } from "../storage/access.ts";
import { nextKeys, type Fill, type Slice } from "../storage/fills.ts";
import { sessions } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";

const { byExternalId } = sessions.index;
const ENTRIES_PER_COMMIT = 500;

export const NAMES_FILL: Fill = { name: "sessions.namedWithin", tables: [sessions], slice: completeNames };

function completeNames(tx: Tx, from: string): Slice {
  const { keys: entries, ...slice } = nextKeys(tx, byExternalId, from, ENTRIES_PER_COMMIT);
  const keys = Array.from(new Set(entries.map((entry) => byExternalId.recordOf(entry))));
  const rows = eachFetched(keys, (key) => ({ key, row: unlessUnreadable(() => tx.get(sessions, key)) }));
  for (const { key, row } of rows)
    if (row?.externalId !== undefined && row.namedWithin === undefined) tx.put(sessions, key, { ...row, namedWithin: "user" });
  return slice;
}
