/**
 * Finds the memories that pass a filter on their rows.
 *
 * The nearest are compared first, some more each time. Where too few of them pass, all memories are looked at, newest first, as far as a
 * number of rows goes: then what was found by then has to do, and the answer says so.
 *
 * @module
 */
import { nextTurn } from "../lib/clock.ts";
import type { BareId } from "../lib/ids.ts";
import { eachFetched, eachRead, type Reader } from "../storage/access.ts";
import { MEMORIES } from "../storage/collections.ts";
import { stretchesOf } from "../storage/list.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { memories } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Filter } from "../storage/walk.ts";
import { CandidateReader, type Candidate } from "../search/candidates.ts";
import { closenessTo, type Query } from "../search/query.ts";
import type { MemoryDeps } from "./deps.ts";
import { ROWS_AT_ONCE, rowsAtOnce, rowsComparedBy, type RowFilter } from "./filter.ts";
import type { Shown } from "./status.ts";
import { shownMemories } from "./validity.ts";

/** Memories to look among, and what of them is shown. */
export interface Filtered {
  readonly postings: Filter;
  readonly shown: Shown & { readonly rowFilter: RowFilter };
  /** Only those whose ids come before it; all unless given. */
  readonly before?: BareId | undefined;
}

/** Candidates that are compared at first, and at most before all memories are looked at. */
const NEAREST_MIN = 200;
const NEAREST_MAX = 3_200;

interface FilteredCandidates {
  readonly candidates: Candidate[];
  /** True if there may be others. */
  readonly isPartial: boolean;
}

/** Query of a filtered search. */
interface Sought {
  /** The query, for a number of candidates. */
  readonly queryFor: (limit: number) => Query;
  /** Number of passing ones that is enough. */
  readonly wanted: number;
  /** True if one of these is too far away to be found, so that all that are less near are, too. */
  readonly isAnyBelow: (candidates: readonly Candidate[]) => Promise<boolean>;
}

/** The best candidates that pass. */
export async function filteredCandidates(
  deps: Pick<MemoryDeps, "store" | "vectors">,
  { postings, shown }: Filtered,
  { queryFor, wanted, isAnyBelow }: Sought,
): Promise<FilteredCandidates> {
  const { store, vectors } = deps;
  const seen = new Set<BareId>();
  const found: Candidate[] = [];
  for (let limit = Math.max(NEAREST_MIN, wanted); limit <= Math.max(NEAREST_MAX, wanted); limit *= 4) {
    const candidates = (await vectors.nearest(queryFor(limit), postings, true)) ?? [];
    const fresh = candidates.filter(({ memory }) => !seen.has(memory));
    for (const { memory } of fresh) seen.add(memory);
    const { ids, isCut } = await passingOf(
      store,
      fresh.map(({ memory }) => memory),
      shown,
    );
    const passing = new Set(ids);
    found.push(...fresh.filter(({ memory }) => passing.has(memory)));
    const isEnough = candidates.length < limit || found.length >= wanted || (await isAnyBelow(fresh));
    if (isEnough || isCut) return { candidates: found, isPartial: isCut };
  }
  return amongAll(store, { postings, shown }, queryFor(wanted), { seen, found });
}

/** Looks at the memories that were not among the nearest. */
async function amongAll(
  store: RecordStore,
  filtered: Filtered,
  query: Query,
  { seen, found }: { seen: ReadonlySet<BareId>; found: readonly Candidate[] },
): Promise<FilteredCandidates> {
  let candidates = [...found];
  let isPartial = false;
  for await (const { ids, isCut } of walkPassing(store, filtered, seen)) {
    isPartial ||= isCut;
    const reading = eachRead(store, ids, (reader) => {
      const candidateReader = new CandidateReader(reader, MEMORIES, query);
      return (id) => candidateReader.ofMemory(id);
    });
    for await (const some of reading) candidates.push(...some.filter((one) => one !== undefined));
    if (candidates.length > 2 * NEAREST_MIN + query.limit) candidates = nearestOf(query, candidates);
  }
  return { candidates, isPartial };
}

/** As many as are wanted: more need not be held. */
function nearestOf(query: Query, candidates: readonly Candidate[]): Candidate[] {
  const closeness = new Map(candidates.map((one) => [one, closenessTo(query, one.cosine, one.terms)]));
  return candidates.toSorted((a, b) => closeness.get(b)! - closeness.get(a)!).slice(0, NEAREST_MIN + query.limit);
}

export interface Newest {
  readonly keys: readonly BareId[];
  /** True if there may be others. */
  readonly isPartial: boolean;
}

/** The newest that pass. */
export async function newestFiltered(store: RecordStore, filtered: Filtered, limit: number): Promise<Newest> {
  const keys: BareId[] = [];
  if (limit === 0) return { keys, isPartial: false };
  let isPartial = false;
  for await (const { ids, isCut } of walkPassing(store, filtered, new Set())) {
    keys.push(...ids);
    if (keys.length >= limit) return { keys: keys.slice(0, limit), isPartial: false };
    isPartial ||= isCut;
  }
  return { keys, isPartial };
}

interface PassingRows {
  readonly ids: readonly BareId[];
  /** True if there were others that may not be compared any more. */
  readonly isCut: boolean;
}

/** Gives the memories that pass, newest first, some at a time, as far as the request may compare them. */
async function* walkPassing(
  store: RecordStore,
  { postings, shown, before: cursor }: Filtered,
  seen: ReadonlySet<BareId>,
): AsyncGenerator<PassingRows, void, undefined> {
  const { created } = shown.rowFilter;
  for (const { filter, from, before: end } of stretchesOf({ ahead: memories.index.ahead, filter: postings, created }, cursor)) {
    for (let before = end, isEnd = false; !isEnd;) {
      const { ids, next } = await store.walk(memories, filter, { from, before }, ROWS_AT_ONCE);
      const others = ids.filter((id) => !seen.has(id));
      const passing = await passingOf(store, others, shown);
      yield passing;
      if (passing.isCut) return;
      before = next;
      isEnd = next === undefined;
      await nextTurn();
    }
  }
}

/** The memories that are shown and pass, as far as the request may compare them. */
export async function passingOf(store: RecordStore, ids: readonly BareId[], shown: Filtered["shown"]): Promise<PassingRows> {
  const { compared, filter } = shown.rowFilter;
  const others = ids.filter((id) => compared.get(id) === undefined);
  // As many as were cheap before are compared at once, and few where nothing is known of them and all of each is gone through.
  let atOnce = filter === undefined ? ROWS_AT_ONCE : rowsAtOnce(filter);
  let at = 0;
  while (at < others.length && !compared.isSpent) {
    const some = others.slice(at, at + Math.max(1, Math.floor(atOnce)));
    const looked = await store.read((reader) => compare(reader, some, shown));
    for (const { id, isPassing, rows } of looked) compared.note(id, isPassing, rows);
    atOnce = (ROWS_AT_ONCE * some.length) / looked.reduce((sum, { rows }) => sum + rows, 0);
    at += some.length;
    if (at < others.length) await nextTurn();
  }
  return { ids: ids.filter((id) => compared.get(id) === true), isCut: at < others.length };
}

function compare(reader: Reader, ids: readonly BareId[], shown: Filtered["shown"]): { id: BareId; isPassing: boolean; rows: number }[] {
  reader.ahead(memories, ids);
  const find = shownMemories(reader, shown);
  return eachFetched(ids, (id) => {
    const row = unlessUnreadable(() => reader.get(memories, id));
    return { id, isPassing: find(id) !== undefined, rows: row === undefined ? 1 : rowsComparedBy(shown.rowFilter, row) };
  });
}
