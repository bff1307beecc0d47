/**
 * Search of the index, in steps. Runs in the worker.
 *
 * It looks from two sides: what has the query's words, and what is near its vector. All that both lead to is scored as it will be in the
 * end (`embeddings/score.ts`), and the best are the candidates.
 *
 * @module
 */
import { distinct } from "../lib/distinct.ts";
import type { BareId } from "../lib/ids.ts";
import { placesOfLargest } from "../lib/kth-largest.ts";
import type { Collection } from "../storage/collections.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { leapfrogJoin, matches, type Filter } from "../storage/walk.ts";
import { CandidateReader, RowCandidate, type Candidate } from "./candidates.ts";
import type { FilterBitmaps, Passing } from "./filter-bitmaps.ts";
import type { Query } from "./query.ts";
import type { SearchIndex } from "./search-index.ts";
import { breadthOf, workerPlan, type Breadth } from "./search-plan.ts";
import type { SlotFilter } from "./words/term-search.ts";

export interface SearchLimits {
  /** Memories that pass a filter are compared up to this number; a number of its own for tests. */
  flatMax: (vectors: number) => number;
  /** At most this many of the nearest are looked at until enough pass the filter; beyond, all that pass are compared. */
  oversampleMax: number;
  /** Index entries that a search reads to find what passes its filter; then the newest that pass, and the nearest, have to do. */
  probesMax: number;
}

/** Index that is searched, which changes between two steps. */
export interface Searched {
  readonly store: Store;
  readonly collection: Collection;
  readonly index: SearchIndex;
  readonly filterBitmaps: FilterBitmaps;
  /** Notes the vectors that were stored since the last look. */
  catchUp(): void;
  /** Ingests some of them. @returns whether there was anything to do */
  ingest(): boolean;
  /** Drops a vector that is no longer in the store. */
  forget(slot: number): void;
  /** Looks a memory up whose vector the index may have seen under another id. */
  slotOf(memory: BareId): number | undefined;
}

/** Enough for most filters: a search that takes more than one step may wait for some of the index's own work. */
const PROBES_PER_STEP = 5_000;
/** Looking a memory up in the indexes of a filter counts as this many postings: a search by words makes at most 40,000 of them. */
const LOOKUP_COST = 20;
const EVENNESS = 1.25;

export class IndexSearch {
  readonly #source: Searched;
  readonly #limits: SearchLimits;

  constructor(source: Searched, limits: SearchLimits) {
    this.#source = source;
    this.#limits = limits;
  }

  /**
   * The best candidates for a query among the memories that pass the filter, as they are stored; in no order. In steps of a few
   * milliseconds: between two of them the index and the store may change.
   */
  *nearest(query: Query, filter: Filter): Generator<undefined, Candidate[]> {
    this.#source.catchUp();
    while (this.#source.index.behind > 0) {
      this.#source.ingest();
      if (this.#source.index.behind > 0) yield;
    }
    const walk = { probes: 0 };
    let passing: Uint32Array | undefined;
    let isThorough = false;
    if (filter.length > 0) {
      const { slots } = this.#source.index;
      this.#source.filterBitmaps.use(filter, slots);
      passing = yield* this.#passing(filter, walk, this.#limits.flatMax(slots.size));
    }
    for (;;) {
      const { slots, graphEnd } = this.#source.index;
      const isFlat: boolean = isThorough || passing !== undefined || workerPlan({ vectors: slots.size, inGraph: graphEnd }) === "flat";
      if (isFlat && filter.length > 0) passing ??= yield* this.#passing(filter, walk, Infinity);
      if (isFlat && passing === undefined) yield* this.#readRows();
      const found = isFlat ? this.#flat(query, passing) : this.#throughGraph(query, filter);
      if (found !== undefined && walk.probes >= this.#limits.probesMax) {
        // Not all that passes was found: the newest of it, and what words and graph lead to.
        const near = this.#throughGraph(query, filter, true) ?? [];
        const known = new Set(found.map(({ id }) => id));
        return [...found, ...near.filter(({ id }) => !known.has(id))];
      }
      if (found !== undefined) return found;
      // Deleted vectors were in the way and are so no more; or fewer were found than there may be.
      isThorough ||= !isFlat;
    }
  }

  /** The slots of what passes; undefined when more than `max` pass, and the newest of them after too many probes. */
  *#passing(filter: Filter, walk: { probes: number }, max: number): Generator<undefined, Uint32Array | undefined> {
    const known = this.#source.filterBitmaps.of(filter);
    if (known !== undefined) {
      const { slots } = this.#source.index;
      const reader = this.#source.store.latest;
      return known.share * slots.size > max ? undefined : known.all(slots, (slot) => matches(reader, filter, slots.memory(slot)));
    }
    const found: BareId[] = [];
    for (const memory of leapfrogJoin(this.#source.store.latest, this.#source.collection.records, filter, {}, PROBES_PER_STEP)) {
      if (typeof memory === "string") {
        if (found.push(memory) > max) return undefined;
        continue;
      }
      walk.probes += memory.probes;
      if (walk.probes >= this.#limits.probesMax) break;
      yield;
    }
    return Uint32Array.from(found.flatMap((memory) => this.#source.slotOf(memory) ?? []));
  }

  *#readRows(): Generator<undefined, void> {
    while (!this.#source.index.hasAllRows) {
      this.#source.ingest();
      yield;
    }
  }

  /** Compares all that pass, or all there are. @returns undefined when it has to be done again */
  #flat(query: Query, passing: Uint32Array | undefined): Candidate[] | undefined {
    const { slots } = this.#source.index;
    return this.#best(query, passing ?? Uint32Array.from({ length: slots.length }, (_, slot) => slot));
  }

  /**
   * Candidates that words and graph lead to, and those not in the graph yet.
   *
   * @param orFewer - also when all that pass would have to be looked at to find enough
   * @returns undefined when they would, or the search has to be made again
   */
  #throughGraph(query: Query, filter: Filter, orFewer = false): Candidate[] | undefined {
    const { slots, graph, graphEnd } = this.#source.index;
    const breadth = this.#breadth(query, filter.length > 0);
    const { oversampleMax } = this.#limits;
    const reader = this.#source.store.latest;
    const known = filter.length === 0 ? undefined : this.#source.filterBitmaps.of(filter);
    const lookedUp = new Map<number, boolean>();
    const passes = (slot: number): boolean => {
      if (!slots.has(slot)) return false;
      if (filter.length === 0) return true;
      let isPassing = known?.has(slot) ?? lookedUp.get(slot);
      if (isPassing === undefined) lookedUp.set(slot, (isPassing = matches(reader, filter, slots.memory(slot))));
      return isPassing;
    };
    let near: number[] = [];
    for (let asked = firstAsked(breadth, known, oversampleMax); ; asked = Math.min(oversampleMax, 4 * asked)) {
      if (query.vector.length === 0) break;
      const led = graph?.nearest(query.vector, asked) ?? [];
      near = led.filter(passes);
      if (near.length >= (filter.length === 0 ? query.limit : breadth.enough)) break;
      if (led.length >= asked && asked < oversampleMax) continue;
      if (orFewer) break;
      return undefined;
    }
    const pending = this.#nearestFrom(query, graphEnd, oversampleMax, passes);
    if (!pending.isEnough && !orFewer) return undefined;
    const slotFilter: SlotFilter = { passes, cost: filter.length === 0 ? 0 : known === undefined ? LOOKUP_COST : 1 };
    const { terms } = this.#source.index;
    const withWords = terms.search(query.words, breadth.words, slotFilter);
    const same = terms.same(query.words.fingerprint, query.limit, slotFilter);
    const all = distinct([...near, ...pending.found, ...withWords, ...same]);
    // A caller that gets fewer than are wanted may rely on having got all.
    return all.length < query.limit && !orFewer ? undefined : this.#best(query, all);
  }

  /** The nearest of the slots from one on, which are not in the graph. Not enough when too few of the first `max` pass. */
  #nearestFrom(
    { vector, limit }: Query,
    from: number,
    max: number,
    passes: (slot: number) => boolean,
  ): { found: number[]; isEnough: boolean } {
    const pending = new Uint32Array(this.#source.index.slots.length - from);
    for (let i = 0; i < pending.length; i++) pending[i] = from + i;
    const cosines = this.#source.index.cosines(this.#source.store.latest, vector, pending);
    const order = placesOfLargest(cosines, pending, max).sort((a, b) => cosines[b]! - cosines[a]! || b - a);
    const found: number[] = [];
    for (const i of order) if (passes(pending[i]!) && found.push(pending[i]!) === limit) break;
    return { found, isEnough: found.length === limit || order.length === pending.length };
  }

  #breadth({ limit }: Query, isFiltered: boolean): Breadth {
    return breadthOf({ isFiltered, limit, vectors: this.#source.index.slots.size });
  }

  /** The best of some slots. @returns undefined when some of them turned out to be deleted */
  #best(query: Query, slots: Uint32Array): Candidate[] | undefined {
    const reader = this.#source.store.latest;
    const cosines = this.#source.index.cosines(reader, query.vector, slots);
    if (slots.length <= query.limit) return this.#read(query, slots, cosines);
    const scores = this.#source.index.closeness(reader, query, slots, cosines);
    const chosen = placesOfLargest(scores, slots, query.limit);
    const isCut = chosen.length < slots.length;
    return this.#read(
      query,
      Uint32Array.from(chosen, (i) => slots[i]!),
      Float64Array.from(chosen, (i) => cosines[i]!),
      isCut,
    );
  }

  /** Reads the candidates. @returns undefined when one is deleted, and what was left out for it might take its place */
  #read(query: Query, slots: Uint32Array, cosines: Float64Array, isCut = false): Candidate[] | undefined {
    const reader = this.#source.store.latest;
    this.#source.index.note(reader);
    const { slots: known, rows, behind } = this.#source.index;
    const tables = { ids: known.ids, rows };
    const unread = new CandidateReader(reader, this.#source.collection, query);
    const found: Candidate[] = [];
    // Looking each up takes a tenth of the whole search, and who asked does it for those that are answered.
    const isAllThere = known.size + behind === this.#source.store.count(this.#source.collection.vectors);
    let deleted = 0;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!;
      let candidate: Candidate | undefined;
      if (slot >= rows.length) candidate = unread.candidate(known.id(slot), cosines[i]);
      else if (isAllThere ? known.has(slot) : reader.has(this.#source.collection.vectors, known.id(slot)))
        candidate = new RowCandidate(tables, slot, cosines[i]!);
      if (candidate !== undefined) found.push(candidate);
      else {
        deleted++;
        this.#source.forget(slot);
      }
    }
    return deleted > 0 && isCut ? undefined : found;
  }
}

/** Number of the nearest that are looked at first, so that enough of them pass: a few more, for what passes is not spread evenly. */
function firstAsked({ graph, enough }: Breadth, known: Passing | undefined, most: number): number {
  if (known === undefined) return graph;
  return Math.min(most, Math.max(graph, Math.ceil((EVENNESS * enough) / Math.max(known.share, 1 / most))));
}
