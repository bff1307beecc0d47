/**
 * The ids of records that were made between two times, newest first.
 *
 * The time of an id is that of its record, or later. So none that is sought is below the lower bound, and those above the upper
 * one are in an index of records whose ids are ahead, which is empty unless the clock was set back.
 *
 * @module
 */
import { firstBareIdAt, type BareId } from "../lib/ids.ts";
import type { Reader } from "./access.ts";
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

/**
 * Every id that passes the filter and is of a record made between the times, and perhaps others that `isCreatedWithin` tells apart.
 *
 * @param ahead - index of the records whose ids are later than their times
 * @param cursor - the page starts after this id
 */
export function* walkCreated(
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
