/**
 * Lists of sessions, memories and traces: newest first, by any filter and by the time they were made.
 *
 * The time of an id is that of its record, or later. So none that is sought is below the lower bound, and those above the upper
 * one are in an index of records whose ids are ahead, which is empty unless the clock was set back.
 *
 * @module
 */
import { bare, firstBareIdAt, HOME_WIDTH, withPrefix, type BareId, type Id, type IdPrefix } from "../lib/ids.ts";
import type { JsonText } from "../lib/json.ts";
import type { Reader } from "./access.ts";
import { isBound, type Owner } from "./owner.ts";
import { pageOfBatches, type PageEntry, type Page } from "./page.ts";
import type { AnyTable } from "./tables.ts";
import { unlessUnreadable } from "./unreadable.ts";
import { posting, leapfrogJoin, type Filter, type Pause } from "./walk.ts";

/** Unix milliseconds; both ends are excluded. */
export interface CreatedFilter {
  createdAfter?: number | undefined;
  createdBefore?: number | undefined;
}

export function isCreatedWithin(createdAt: number, { createdAfter, createdBefore }: CreatedFilter): boolean {
  return (createdAfter === undefined || createdAt > createdAfter) && (createdBefore === undefined || createdAt < createdBefore);
}

/** Records of a list. */
export interface Listing<Prefix extends IdPrefix> {
  readonly prefix: Prefix;
  /** Its keys are the ids, unless there is a filter. */
  readonly table: AnyTable;
  /** The index of those whose ids are later than their times. */
  readonly ahead: AnyTable;
  readonly filter: Filter;
  /** Caller: a bound key is not given the id of a record that it does not see. */
  readonly owner: Owner;
  readonly created: CreatedFilter;
  /** Scan budget of one page; the usual limit unless a test has its own. */
  readonly probesMax?: number | undefined;
  /** Number of index reads that it takes to show a record that leads to others; left out for records that stand for themselves. */
  readonly probesOf?: (json: JsonText) => number;
  /** Number of records that are read together at most; as many as a page needs unless given. */
  readonly readAtOnce?: number | undefined;
}

/** A record that is read and not shown takes as long as this many probes of an index. */
const PROBES_PER_HIDDEN_ROW = 10;

/** A record that was compared with a filter. */
export interface ComparedRecord {
  /** Undefined if it did not pass. */
  readonly json: JsonText | undefined;
  /** Number of rows that the comparison counts as. */
  readonly rows: number;
}

/** A record as a list shows it; undefined where nothing of it is shown. */
export type ListItem = JsonText | ComparedRecord | undefined;

/**
 * One page of the records that pass a filter and were made between two times.
 *
 * @param read - runs a function of the store as it is; each record is read in a scope of its own
 * @param item - what is shown of a record; of one that cannot be read nothing is. It has to check `isCreatedWithin`: ids alone do not tell
 */
export function listRecords<Prefix extends IdPrefix>(
  read: <Result>(callback: (reader: Reader) => Result) => Result,
  listing: Listing<Prefix>,
  { limit, startingAfter }: Page<Id<Prefix>>,
  item: (reader: Reader, key: BareId, id: Id<Prefix>) => ListItem,
): Promise<JsonText> {
  const { prefix, probesMax } = listing;
  const cursor = startingAfter === undefined ? undefined : bare(startingAfter);
  function* found(): Generator<PageEntry, void, undefined> {
    for (const key of read((reader) => walkCreated(reader, listing, cursor))) {
      if (typeof key !== "string") {
        yield entryAt(listing, key.passed, undefined, key.probes);
        continue;
      }
      const id = withPrefix(prefix, key);
      yield* entriesOf(
        listing,
        key,
        read((reader) => unlessUnreadable(() => item(reader, key, id))),
      );
    }
  }
  return pageOfBatches([found()], limit, probesMax);
}

/** A record of a list as it is or is not shown, and what it took to find that out. */
export function entriesOf<Prefix extends IdPrefix>(
  listing: Pick<Listing<Prefix>, "prefix" | "owner" | "probesOf">,
  key: BareId,
  item: ListItem,
): PageEntry[] {
  if (item === undefined) return [entryAt(listing, key, undefined)];
  const { json, rows } = typeof item === "string" ? { json: item, rows: 0 } : item;
  const probes = PROBES_PER_HIDDEN_ROW * rows + (json === undefined ? 0 : (listing.probesOf?.(json) ?? 0));
  if (json === undefined) return [entryAt(listing, key, undefined, probes)];
  const shown = { id: withPrefix(listing.prefix, key), json };
  return probes === 0 ? [shown] : [shown, { passed: shown.id, probes }];
}

/** A record of a list, or how far the search for one has come where none is shown. */
export function entryAt<Prefix extends IdPrefix>(
  { prefix, owner }: Pick<Listing<Prefix>, "prefix" | "owner">,
  key: BareId,
  json: JsonText | undefined,
  probes = PROBES_PER_HIDDEN_ROW,
): PageEntry {
  if (json !== undefined) return { id: withPrefix(prefix, key), json };
  return { passed: withPrefix(prefix, isBound(owner) ? withoutPartition(key) : key), probes };
}

/** A cursor in the place of an id that may be somebody else's: no two ids differ in their partitions alone. */
function withoutPartition(id: BareId): BareId {
  return id.slice(0, -HOME_WIDTH) + "z".repeat(HOME_WIDTH);
}

/** A part of a list: ids that pass a filter, from `from` (included) to `before` (excluded). */
export interface Stretch {
  readonly filter: Filter;
  readonly from: BareId | undefined;
  readonly before: BareId | undefined;
}

/**
 * The stretches of a list, newest first: every id that passes its filter and is of a record made between its times, and perhaps others
 * that `isCreatedWithin` tells apart.
 *
 * @param cursor - the page starts after this id
 */
export function stretchesOf<Prefix extends IdPrefix>(
  { ahead, filter, created: { createdAfter, createdBefore } }: Pick<Listing<Prefix>, "ahead" | "filter" | "created">,
  cursor: BareId | undefined,
): Stretch[] {
  const from = createdAfter === undefined ? undefined : firstBareIdAt(createdAfter + 1);
  if (createdBefore === undefined) return [{ filter, from, before: cursor }];
  const until = firstBareIdAt(createdBefore);
  const lowest = from === undefined || until > from ? until : from;
  return [
    { filter: [...filter, posting(ahead, "")], from: lowest, before: cursor },
    { filter, from, before: cursor === undefined || until < cursor ? until : cursor },
  ];
}

function* walkCreated<Prefix extends IdPrefix>(
  reader: Reader,
  listing: Listing<Prefix>,
  cursor: BareId | undefined,
): Generator<BareId | Pause, void, undefined> {
  for (const { filter, ...bounds } of stretchesOf(listing, cursor)) {
    yield* leapfrogJoin(reader, listing.table, filter, bounds, listing.probesMax);
  }
}
