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
import { LIMITS } from "../lib/limits.ts";
import { eachFetched, eachRead } from "../storage/access.ts";
import { MEMORIES } from "../storage/collections.ts";
import { stretchesOf } from "../storage/list.ts";
import type { RecordStore } from "../storage/record-store.ts";
import { memories } from "../storage/tables.ts";
import { unlessUnreadable } from "../storage/unreadable.ts";
import type { Filter } from "../storage/walk.ts";
import { CandidateReader, type Candidate } from "../vectors/candidates.ts";
import { closenessTo, type Query } from "../vectors/query.ts";
import type { MemoryDeps } from "./deps.ts";
import { rowsComparedBy, type RowFilter } from "./filter.ts";
import type { Shown } from "./status.ts";
import { shownMemories } from "./validity.ts";

/** Memories to look among, and what of them is shown. */
export interface Filtered {
  readonly postings: Filter;
  readonly shown: Shown & { readonly rowFilter: RowFilter };
}

/** Candidates that are compared at first, and at most before all memories are looked at. */
const NEAREST_MIN = 200;
const NEAREST_MAX = 3_200;
const ROWS_AT_ONCE = 100;

/** Counts the rows that one search compares. */
class RowBudget {
  #left: number = LIMITS.memoryRowsMax;

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  spend(rows: number): void {
    this.#left -= rows;
  }
}

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
  const budget = new RowBudget();
  const seen = new Set<BareId>();
  const found: Candidate[] = [];
  for (let limit = Math.max(NEAREST_MIN, wanted); limit <= Math.max(NEAREST_MAX, wanted); limit *= 4) {
    const candidates = (await vectors.nearest(queryFor(limit), postings, true)) ?? [];
    const fresh = candidates.filter(({ memory }) => !seen.has(memory));
    for (const { memory } of fresh) seen.add(memory);
    const passing = new Set(
      await passingOf(
        store,
        fresh.map(({ memory }) => memory),
        shown,
        budget,
      ),
    );
    found.push(...fresh.filter(({ memory }) => passing.has(memory)));
    const isEnough = candidates.length < limit || found.length >= wanted || (await isAnyBelow(fresh));
    if (isEnough || budget.isSpent) return { candidates: found, isPartial: budget.isSpent };
  }
  return amongAll(store, { postings, shown }, queryFor(wanted), { seen, found, budget });
}

/** Looks at the memories that were not among the nearest. */
async function amongAll(
  store: RecordStore,
  filtered: Filtered,
  query: Query,
  { seen, found, budget }: { seen: ReadonlySet<BareId>; found: readonly Candidate[]; budget: RowBudget },
): Promise<FilteredCandidates> {
  let candidates = [...found];
  for await (const ids of walkPassing(store, filtered, budget, seen)) {
    const reading = eachRead(store, ids, (reader) => {
      const candidateReader = new CandidateReader(reader, MEMORIES, query);
      return (id) => candidateReader.ofMemory(id);
    });
    for await (const some of reading) candidates.push(...some.filter((one) => one !== undefined));
    if (candidates.length > 2 * NEAREST_MIN + query.limit) candidates = nearestOf(query, candidates);
  }
  return { candidates, isPartial: budget.isSpent };
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
  const budget = new RowBudget();
  const keys: BareId[] = [];
  if (limit === 0) return { keys, isPartial: false };
  for await (const ids of walkPassing(store, filtered, budget, new Set())) {
    keys.push(...ids);
    if (keys.length >= limit) return { keys: keys.slice(0, limit), isPartial: false };
  }
  return { keys, isPartial: budget.isSpent };
}

/** Gives the memories that pass, newest first, some at a time, as far as the budget goes. */
async function* walkPassing(
  store: RecordStore,
  { postings, shown }: Filtered,
  budget: RowBudget,
  seen: ReadonlySet<BareId>,
): AsyncGenerator<BareId[], void, undefined> {
  const { created } = shown.rowFilter;
  for (const { filter, from, before: end } of stretchesOf({ ahead: memories.index.ahead, filter: postings, created }, undefined)) {
    for (let before = end, isEnd = false; !isEnd && !budget.isSpent;) {
      const { ids, next } = await store.walk(memories, filter, { from, before }, ROWS_AT_ONCE);
      const others = ids.filter((id) => !seen.has(id));
      yield await passingOf(store, others, shown, budget);
      before = next;
      isEnd = next === undefined;
      await nextTurn();
    }
  }
}

async function passingOf(store: RecordStore, ids: readonly BareId[], shown: Filtered["shown"], budget: RowBudget): Promise<BareId[]> {
  const passing: BareId[] = [];
  // As many as were cheap before are compared at once, and few where nothing is known of them and all of each is gone through.
  let atOnce = ROWS_AT_ONCE / (shown.rowFilter.filter?.weight ?? 1) ** 2;
  for (let at = 0; at < ids.length && !budget.isSpent;) {
    const some = ids.slice(at, at + Math.max(1, Math.floor(atOnce)));
    const looked = await store.read((reader) => {
      reader.ahead(memories, some);
      const find = shownMemories(reader, shown);
      let rows = 0;
      const shownIds = eachFetched(some, (id) => {
        const row = unlessUnreadable(() => reader.get(memories, id));
        rows += row === undefined ? 1 : rowsComparedBy(shown.rowFilter, row);
        return find(id) === undefined ? [] : [id];
      }).flat();
      return { rows, shownIds };
    });
    budget.spend(looked.rows);
    passing.push(...looked.shownIds);
    atOnce = (ROWS_AT_ONCE * some.length) / looked.rows;
    at += some.length;
    if (at < ids.length) await nextTurn();
  }
  return passing;
}
