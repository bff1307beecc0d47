/**
 * Entries of a list: its ids are found by one statement, and what is shown of them is read together.
 *
 * @module
 */
import { bare, withPrefix, type BareId, type Id, type IdPrefix } from "../../../lib/ids.ts";
import { eachRead, type Reader } from "../../access.ts";
import { entriesOf, entryAt, stretchesOf, type Listing, type ListItem } from "../../list.ts";
import type { Page, PageEntry } from "../../page.ts";
import type { RecordStore } from "../../record-store.ts";
import { unlessUnreadable } from "../../unreadable.ts";
import type { AnswerRow, Statement } from "../connection/database.ts";
import { listStatement } from "./list-statement.ts";

/** Number of records that one statement of a list looks at, at first and once few of them have passed. */
const RECORDS_WALKED_MIN = 100;
export const RECORDS_WALKED_MAX = 1_000;

export interface ListSource {
  readonly store: RecordStore;
  readonly query: (statement: Statement) => Promise<readonly AnswerRow[]>;
}

/** Yields the entries in order, some at a time, up to one more than the page has: that says whether there is another. */
export async function* listEntries<Prefix extends IdPrefix>(
  { store, query }: ListSource,
  listing: Listing<Prefix>,
  { limit, startingAfter }: Page<Id<Prefix>>,
  item: (reader: Reader, key: BareId, id: Id<Prefix>) => ListItem,
): AsyncGenerator<PageEntry[], void, undefined> {
  const atOnce = limit + 1;
  for (const stretch of stretchesOf(listing, startingAfter === undefined ? undefined : bare(startingAfter))) {
    let { before } = stretch;
    for (let walkMax = Math.max(atOnce, RECORDS_WALKED_MIN); ; walkMax = RECORDS_WALKED_MAX) {
      const { statement, walkedIn } = listStatement(listing.table, { ...stretch, before }, atOnce, walkMax);
      const { ids, walked, last } = walkedIn(await query(statement));
      for (let at = 0, { readAtOnce = ids.length } = listing; at < ids.length; at += readAtOnce) {
        const read = eachRead(store, ids.slice(at, at + readAtOnce), (reader) => (id) => {
          const shown = unlessUnreadable(() => item(reader, id, withPrefix(listing.prefix, id)));
          return entriesOf(listing, id, shown);
        });
        for await (const entries of read) yield entries.flat();
      }
      if (ids.length === atOnce) {
        before = ids.at(-1);
        continue;
      }
      if (walked < walkMax || last === undefined) break;
      before = last;
      yield [entryAt(listing, last, undefined, walked)];
    }
  }
}
