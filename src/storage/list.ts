/**
 * Lists of sessions, memories and traces: newest first, by any filter and by the time they were made.
 *
 * The time of an id is that of its record, or later. So none that is sought is below the lower bound, and those above the upper
 * one are in an index of records whose ids are ahead, which is empty unless the clock was set back.
 *
 * @module
 */
import { bare, firstBareIdAt, withPrefix, type BareId, type Id, type IdPrefix } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import type { Reader } from "./access.ts";
import { pageOfSteps, type Found, type Page } from "./page.ts";
import type { AnyTable, Index } from "./tables.ts";
import { posting, walkInSteps, type Filter, type Pause } from "./walk.ts";

/** Unix milliseconds; both ends are excluded. */
export interface CreatedFilter {
  createdAfter?: number | undefined;
  createdBefore?: number | undefined;
}

export function isCreatedWithin(createdAt: number, { createdAfter, createdBefore }: CreatedFilter): boolean {
  return (createdAfter === undefined || createdAt > createdAfter) && (createdBefore === undefined || createdAt < createdBefore);
}

/** The records of a list; `ahead` is the index of those whose ids are later than their times. */
interface Listed<Prefix extends IdPrefix> {
  readonly prefix: Prefix;
  readonly table: AnyTable;
  readonly ahead: Index;
}

/** A record that is read and not shown takes as long as this many looks at an index. */
const LOOKS_PER_HIDDEN_ROW = 10;

/**
 * One page of the records that pass a filter and were made between two times.
 *
 * @param prepare - returns what gives the JSON of a record, or undefined for one that is not shown; called again whenever other
 *   requests may have been answered. It has to check `isCreatedWithin`: ids alone do not tell
 */
export function listRecords<Prefix extends IdPrefix>(
  { store, listLooksMax }: { readonly store: Reader; readonly listLooksMax?: number | undefined },
  { prefix, table, ahead }: Listed<Prefix>,
  filter: Filter,
  created: CreatedFilter,
  { limit, startingAfter }: Page<Id<Prefix>>,
  prepare: () => (key: BareId, id: Id<Prefix>) => JsonText | undefined,
): Promise<JsonText> {
  const cursor = startingAfter === undefined ? undefined : bare(startingAfter);
  function* found(): Generator<Found, void, undefined> {
    let show = prepare();
    for (const key of walkCreated(store, table, ahead, filter, created, cursor, listLooksMax)) {
      const { passed, looks } = typeof key === "string" ? { passed: key, looks: LOOKS_PER_HIDDEN_ROW } : key;
      const id = withPrefix(prefix, passed);
      const json = typeof key === "string" ? show(key, id) : undefined;
      yield json === undefined ? { passed: id, looks } : { id, json };
      if (json === undefined) show = prepare();
    }
  }
  return pageOfSteps(found(), limit, listLooksMax);
}

/**
 * Every id that passes the filter and is of a record made between the times, and perhaps others that `isCreatedWithin` tells apart.
 *
 * @param ahead - index of the records whose ids are later than their times
 * @param cursor - the page starts after this id
 */
function* walkCreated(
  reader: Reader,
  records: AnyTable,
  ahead: Index,
  filter: Filter,
  { createdAfter, createdBefore }: CreatedFilter,
  cursor: BareId | undefined,
  looks: number | undefined,
): Generator<BareId | Pause, void, undefined> {
  const from = createdAfter === undefined ? undefined : firstBareIdAt(createdAfter + 1);
  let before = cursor;
  if (createdBefore !== undefined) {
    const until = firstBareIdAt(createdBefore);
    const lowest = from === undefined || until > from ? until : from;
    yield* walkInSteps(reader, records, [...filter, posting(ahead, "")], { from: lowest, before: cursor }, looks);
    if (cursor === undefined || until < cursor) before = until;
  }
  yield* walkInSteps(reader, records, filter, { from, before }, looks);
}
