/**
 * Keeps the index in step with the store and searches it. Runs in the worker; knows nothing of threads.
 *
 * All it needs to know is in the store. A new vector has a greater id than all before; one whose row is gone is deleted. So
 * nothing can be missed, and a start after a crash is a search like any other: every answer is checked against the store
 * before it counts.
 *
 * A search looks from two sides: what has the query's words, and what is near its vector. All that both lead to is scored as it will be
 * in the end (`embeddings/score.ts`), and the best are the candidates.
 *
 * @module
 */
import { distinct } from "../lib/distinct.ts";
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { placesOfLargest } from "../lib/kth-largest.ts";
import { LIMITS } from "../lib/limits.ts";
import { MEMORIES, type Collection } from "../storage/collections.ts";
import { successor } from "../storage/keys.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { generationOf, vectorOf } from "../storage/memory-records.ts";
import { provider, PROVIDER_KEY } from "../storage/tables.ts";
import { matches, leapfrogJoin, type Filter } from "../storage/walk.ts";
import { CandidateReader, RowCandidate, type Candidate } from "./candidates.ts";
import { type IndexBytes, type IndexStatus, sumOf } from "./index-status.ts";
import { type Passing, FilterBitmaps, type FilterBitmapsOptions } from "./filter-bitmaps.ts";
import type { Query } from "./query.ts";
import { SearchIndex, type SavedParts } from "./search-index.ts";
import { type Breadth, breadthOf, flatMax, workerPlan } from "./search-plan.ts";
import type { Shared } from "./scopes/shared-vectors.ts";
import { type LoadedSnapshot, loadSnapshot, removeSnapshot, saveSnapshot } from "./snapshot/snapshot.ts";
import type { SlotFilter } from "./words/term-search.ts";

export interface IndexerOptions {
  collection: Collection;
  /** A graph is built from this number of vectors on, and kept when they become fewer. */
  graphFrom: number;
  /** Memories that pass a filter are compared up to this number; a number of its own for tests. */
  flatMax: (vectors: number) => number;
  /** At most this many of the nearest are looked at until enough pass the filter; beyond, all that pass are compared. */
  oversampleMax: number;
  /** Index entries that a search reads to find what passes its filter; then the newest that pass, and the nearest, have to do. */
  probesMax: number;
  /** The index is rebuilt when at least this number of its slots, and this share of them, are of deleted vectors. */
  removedMin: number;
  removedShareMax: number;
  filterBitmaps: Partial<FilterBitmapsOptions>;
}

const DEFAULTS: IndexerOptions = {
  collection: MEMORIES,
  graphFrom: 0,
  flatMax,
  oversampleMax: 6_400,
  probesMax: LIMITS.searchProbesMax,
  removedMin: 100,
  removedShareMax: 0.3,
  filterBitmaps: {},
};

const IDS_PER_READ = 10_000;
/** Enough for most filters: a search that takes more than one step may wait for some of the index's own work. */
const PROBES_PER_STEP = 5_000;
const INGESTED_PER_STEP = 200;
const SWEPT_PER_STEP = 500;
/** Looking a memory up in the indexes of a filter counts as this many postings: a search by words makes at most 40,000 of them. */
const LOOKUP_COST = 20;
export class Indexer {
  readonly #store: Store;
  readonly #directory: string;
  readonly #options: IndexerOptions;
  readonly #collection: Collection;
  #index: SearchIndex;
  #unsaved = 0;
  /** While a snapshot is written the graph may only be read. */
  #saving: Promise<void> | undefined;
  /** Slots that are left to look at, from the newest to the oldest. */
  #sweepFrom = 0;
  #rebuilding: SearchIndex | undefined;
  readonly #filterBitmaps: FilterBitmaps;

  constructor(store: Store, directory: string, options: Partial<IndexerOptions> = {}) {
    this.#store = store;
    this.#directory = directory;
    this.#options = { ...DEFAULTS, ...options };
    this.#collection = this.#options.collection;
    this.#index = this.#newIndex(0);
    this.#filterBitmaps = new FilterBitmaps(this.#collection.records, this.#options.filterBitmaps);
  }

  /**
   * Loads the snapshot and finds what has changed since.
   *
   * @param options - `signal`: that it will not be needed
   * @returns why the index has to be rebuilt, if so
   */
  async start({ useSnapshot = true, signal }: { useSnapshot?: boolean; signal?: AbortSignal } = {}): Promise<string | undefined> {
    const reader = this.#store.latest;
    const generation = generationOf(reader);
    this.#index = this.#newIndex(generation);
    let problem: string | undefined = "the index failed with it";
    if (useSnapshot) {
      const loaded = await loadSnapshot(this.#directory, generation, signal);
      problem = "reason" in loaded ? loaded.reason : await this.#takeOver(loaded, generation);
    }
    if (signal?.aborted === true) return undefined;
    this.catchUp();
    this.#compactIfSparse();
    return problem !== undefined && this.hasGraph ? problem : undefined;
  }

  #newIndex(generation: number, parts?: SavedParts): SearchIndex {
    return new SearchIndex(this.#collection.vectors, generation, parts);
  }

  /** @returns why it cannot be gone on from */
  async #takeOver({ slots, terms, graphEnd, graph: loading }: LoadedSnapshot, generation: number): Promise<string | undefined> {
    const gone: number[] = [];
    let isOfThisStore;
    let graph;
    try {
      // While hnswlib reads its part.
      isOfThisStore = slots.keepOnly(this.#storedIds(), (slot) => gone.push(slot));
    } finally {
      // Also after a failure: the thread must not end before hnswlib has read its part.
      graph = await loading;
    }
    if ("reason" in graph) return graph.reason;
    if (!isOfThisStore) {
      graph.release();
      return "the snapshot is of another store";
    }
    const saved = this.#newIndex(generation, { slots, terms, graph, graphEnd });
    const { removed } = slots;
    for (const slot of gone) saved.remove(slot);
    saved.removeDeleted();
    this.#index = saved;
    this.#unsaved = slots.removed - removed;
    return undefined;
  }

  /** The ids of all vectors of this generation as bytes, oldest first, some at a time. */
  *#storedIds(): Generator<Uint8Array> {
    const { replacesUntil } = this.#store.latest.get(provider, PROVIDER_KEY) ?? {};
    const ids = Buffer.alloc(IDS_PER_READ * BARE_ID_LENGTH);
    for (let from = replacesUntil === undefined ? "" : successor(replacesUntil); ;) {
      const count = this.#store.copyKeys(this.#collection.vectors, from, ids, BARE_ID_LENGTH);
      yield ids.subarray(0, count * BARE_ID_LENGTH);
      if (count < IDS_PER_READ) return;
      from = successor(ids.toString("latin1", ids.length - BARE_ID_LENGTH));
    }
  }

  get status(): IndexStatus {
    const { slots, behind, waiting } = this.#index;
    const notInGraph = this.hasGraph ? waiting : 0;
    const rebuilding = this.#rebuilding === undefined ? 0 : this.#rebuilding.behind + this.#rebuilding.waiting;
    return {
      indexed: slots.size - notInGraph,
      pending: notInGraph + behind + rebuilding,
      removed: slots.removed,
      unsaved: this.#unsaved,
    };
  }

  get bytes(): IndexBytes {
    const { bytes } = this.#index;
    return this.#rebuilding === undefined ? bytes : sumOf(bytes, this.#rebuilding.bytes);
  }

  /** Message to the request thread about the index: another object whenever that has to be told again. */
  get shared(): Shared {
    return this.#index.shared;
  }

  /** Checks whether a step has anything to do for searches to come. */
  get isBehind(): boolean {
    return this.status.pending > 0 || this.#filterBitmaps.isBehind;
  }

  /** Rows of these memories were put again, and readers see it: which filters they pass is to be looked up. */
  updated(memories: Iterable<BareId>): void {
    const { slots } = this.#index;
    for (const memory of memories) {
      const slot = slots.slotOfMemory(memory) ?? this.#readSlot(memory);
      if (slot !== undefined) this.#filterBitmaps.updated(slot);
    }
  }

  /** Notes the vectors that were stored since the last look. */
  catchUp(): void {
    this.#store.refresh();
    const generation = generationOf(this.#store.latest);
    if (generation !== this.#index.generation) this.#resetGeneration(generation);
    this.#index.note(this.#store.latest);
    this.#rebuilding?.note(this.#store.latest);
  }

  /**
   * The best candidates for a query among the memories that pass the filter, as they are stored; in no order. In steps of a few
   * milliseconds: between two of them the index and the store may change.
   */
  *nearest(query: Query, filter: Filter): Generator<undefined, Candidate[]> {
    this.catchUp();
    while (this.#index.behind > 0) {
      this.#ingest();
      if (this.#index.behind > 0) yield;
    }
    const walk = { probes: 0 };
    let passing: Uint32Array | undefined;
    let isThorough = false;
    if (filter.length > 0) {
      const { slots } = this.#index;
      this.#filterBitmaps.use(filter, slots);
      passing = yield* this.#passing(filter, walk, this.#options.flatMax(slots.size));
    }
    for (;;) {
      const { slots, graphEnd } = this.#index;
      const isFlat: boolean = isThorough || passing !== undefined || workerPlan({ vectors: slots.size, inGraph: graphEnd }) === "flat";
      if (isFlat && filter.length > 0) passing ??= yield* this.#passing(filter, walk, Infinity);
      if (isFlat && passing === undefined) yield* this.#readRows();
      const found = isFlat ? this.#flat(query, passing) : this.#throughGraph(query, filter);
      if (found !== undefined && walk.probes >= this.#options.probesMax) {
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
    const known = this.#filterBitmaps.of(filter);
    if (known !== undefined) {
      const { slots } = this.#index;
      const reader = this.#store.latest;
      return known.share * slots.size > max ? undefined : known.all(slots, (slot) => matches(reader, filter, slots.memory(slot)));
    }
    const found: BareId[] = [];
    for (const memory of leapfrogJoin(this.#store.latest, this.#collection.records, filter, {}, PROBES_PER_STEP)) {
      if (typeof memory === "string") {
        if (found.push(memory) > max) return undefined;
        continue;
      }
      walk.probes += memory.probes;
      if (walk.probes >= this.#options.probesMax) break;
      yield;
    }
    const { slots } = this.#index;
    return Uint32Array.from(found.flatMap((memory) => slots.slotOfMemory(memory) ?? this.#readSlot(memory) ?? []));
  }

  /** The slot of a memory whose vector is not the newest that the index has seen of it. */
  #readSlot(memory: BareId): number | undefined {
    const id = vectorOf(this.#store.latest, this.#collection, memory)?.id;
    return id === undefined ? undefined : this.#index.slots.slotOf(id);
  }

  *#readRows(): Generator<undefined, void> {
    while (!this.#index.hasAllRows) {
      this.#ingest();
      yield;
    }
  }

  /** Compares all that pass, or all there are. @returns undefined when it has to be done again */
  #flat(query: Query, passing: Uint32Array | undefined): Candidate[] | undefined {
    const { slots } = this.#index;
    return this.#best(query, passing ?? Uint32Array.from({ length: slots.length }, (_, slot) => slot));
  }

  /**
   * Candidates that words and graph lead to, and those not in the graph yet.
   *
   * @param orFewer - also when all that pass would have to be looked at to find enough
   * @returns undefined when they would, or the search has to be made again
   */
  #throughGraph(query: Query, filter: Filter, orFewer = false): Candidate[] | undefined {
    const { slots, graph, graphEnd } = this.#index;
    const breadth = this.#breadth(query, filter.length > 0);
    const { oversampleMax } = this.#options;
    const reader = this.#store.latest;
    const known = filter.length === 0 ? undefined : this.#filterBitmaps.of(filter);
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
    const { terms } = this.#index;
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
    const pending = new Uint32Array(this.#index.slots.length - from);
    for (let i = 0; i < pending.length; i++) pending[i] = from + i;
    const cosines = this.#index.cosines(this.#store.latest, vector, pending);
    const order = placesOfLargest(cosines, pending, max).sort((a, b) => cosines[b]! - cosines[a]! || b - a);
    const found: number[] = [];
    for (const i of order) if (passes(pending[i]!) && found.push(pending[i]!) === limit) break;
    return { found, isEnough: found.length === limit || order.length === pending.length };
  }

  #breadth({ limit }: Query, isFiltered: boolean): Breadth {
    return breadthOf({ isFiltered, limit, vectors: this.#index.slots.size });
  }

  /** The best of some slots. @returns undefined when some of them turned out to be deleted */
  #best(query: Query, slots: Uint32Array): Candidate[] | undefined {
    const reader = this.#store.latest;
    const cosines = this.#index.cosines(reader, query.vector, slots);
    if (slots.length <= query.limit) return this.#read(query, slots, cosines);
    const scores = this.#index.closeness(reader, query, slots, cosines);
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
    const reader = this.#store.latest;
    this.#index.note(reader);
    const { slots: known, rows, behind } = this.#index;
    const tables = { ids: known.ids, rows };
    const unread = new CandidateReader(reader, this.#collection, query);
    const found: Candidate[] = [];
    // Looking each up takes a tenth of the whole search, and who asked does it for those that are answered.
    const isAllThere = known.size + behind === this.#store.count(this.#collection.vectors);
    let deleted = 0;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!;
      let candidate: Candidate | undefined;
      if (slot >= rows.length) candidate = unread.candidate(known.id(slot), cosines[i]);
      else if (isAllThere ? known.has(slot) : reader.has(this.#collection.vectors, known.id(slot)))
        candidate = new RowCandidate(tables, slot, cosines[i]!);
      if (candidate !== undefined) found.push(candidate);
      else {
        deleted++;
        this.#forget(slot);
      }
    }
    return deleted > 0 && isCut ? undefined : found;
  }

  /** Does a bounded piece of work. @returns whether there is more */
  step(): boolean {
    if (this.#ingest()) return true;
    if (this.#saving !== undefined) return false;
    this.#index.removeDeleted();
    return this.#insert() || this.#stepPassing() || this.#stepSweep() || this.#stepRebuild();
  }

  #stepPassing(): boolean {
    const { slots } = this.#index;
    return this.#filterBitmaps.step(this.#store.latest, slots, (memory) => slots.slotOfMemory(memory) ?? this.#readSlot(memory));
  }

  /** Has later steps take out what has been deleted, if there is any. */
  sweep(): void {
    this.catchUp();
    const { slots, behind } = this.#index;
    if (this.#sweepFrom === 0 && slots.size + behind > this.#store.count(this.#collection.vectors)) this.#sweepFrom = slots.length;
  }

  /** Has later steps build the index again, without the slots of deleted vectors. */
  rebuild(): void {
    this.#rebuilding ??= this.#newIndex(this.#index.generation);
    this.#rebuilding.note(this.#store.latest);
  }

  /** Writes the index to disk if it has changed. */
  async save(): Promise<void> {
    if (this.#saving !== undefined) return this.#saving;
    if (this.#unsaved === 0) return;
    const { graph } = this.#index;
    this.#index.removeDeleted();
    const unsaved = this.#unsaved;
    this.#saving = graph === undefined ? removeSnapshot(this.#directory) : saveSnapshot(this.#directory, this.#index, graph);
    try {
      await this.#saving;
      this.#unsaved = Math.max(0, this.#unsaved - unsaved);
    } finally {
      this.#saving = undefined;
    }
  }

  /** Checks whether there is a graph or is to be one. */
  get hasGraph(): boolean {
    const { graph, slots, behind } = this.#index;
    return graph !== undefined || slots.size + behind >= Math.max(1, this.#options.graphFrom);
  }

  #ingest(): boolean {
    return this.#index.ingest(this.#store.latest, INGESTED_PER_STEP);
  }

  #insert(): boolean {
    if (!this.hasGraph || !this.#index.insert(this.#store.latest)) return false;
    this.#unsaved++;
    return true;
  }

  #stepSweep(): boolean {
    if (this.#sweepFrom === 0) return false;
    const until = Math.max(0, this.#sweepFrom - SWEPT_PER_STEP);
    const { slots } = this.#index;
    for (let slot = Math.min(this.#sweepFrom, slots.length) - 1; slot >= until; slot--) {
      if (slots.has(slot) && !this.#store.latest.has(this.#collection.vectors, slots.id(slot))) this.#forget(slot);
    }
    this.#sweepFrom = until;
    if (until === 0) this.#compactIfSparse();
    return true;
  }

  #stepRebuild(): boolean {
    const rebuilding = this.#rebuilding;
    if (rebuilding === undefined) return false;
    const reader = this.#store.latest;
    if (rebuilding.ingest(reader, INGESTED_PER_STEP)) return true;
    if (this.hasGraph && rebuilding.insert(reader)) return true;
    // Whatever was deleted since it was ingested is found by the next search or sweep, like any other.
    this.#index.release();
    this.#index = rebuilding;
    this.#filterBitmaps.clear();
    this.#sweepFrom = 0;
    this.#unsaved = rebuilding.slots.length + 1;
    this.#rebuilding = undefined;
    return true;
  }

  #compactIfSparse(): void {
    const { removedMin, removedShareMax } = this.#options;
    const { removed, length } = this.#index.slots;
    if (removed >= removedMin && removed > length * removedShareMax) this.rebuild();
  }

  /** The vector is no longer in the store. */
  #forget(slot: number): void {
    this.#index.remove(slot);
    this.#unsaved++;
  }

  /** Another provider was set: nothing that is here can be compared any more. */
  #resetGeneration(generation: number): void {
    // While it is being written to disk the graph is needed; then it is freed when that is done.
    if (this.#saving === undefined) this.#index.release();
    this.#index = this.#newIndex(generation);
    this.#filterBitmaps.clear();
    this.#unsaved = 1;
    this.#sweepFrom = 0;
    this.#rebuilding = undefined;
  }
}

/** Number of the nearest that are looked at first, so that enough of them pass: a few more, for what passes is not spread evenly. */
function firstAsked({ graph, enough }: Breadth, known: Passing | undefined, most: number): number {
  if (known === undefined) return graph;
  return Math.min(most, Math.max(graph, Math.ceil((EVENNESS * enough) / Math.max(known.share, 1 / most))));
}

const EVENNESS = 1.25;
