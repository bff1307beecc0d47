/**
 * Keeps the index in step with the store, for searches (`index-search.ts`). Runs in the worker; knows nothing of threads.
 *
 * All it needs to know is in the store. A new vector has a greater id than all before; one whose row is gone is deleted. So
 * nothing can be missed, and a start after a crash is a search like any other: every answer is checked against the store
 * before it counts.
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { MEMORIES, type Collection } from "../storage/collections.ts";
import { successor } from "../storage/keys.ts";
import type { Store } from "../storage/lmdb/store.ts";
import { generationOf, vectorOf } from "../storage/memory-records.ts";
import { provider, PROVIDER_KEY } from "../storage/tables.ts";
import type { Filter } from "../storage/walk.ts";
import type { Candidate } from "./candidates.ts";
import { IndexSearch, type Searched, type SearchLimits } from "./index-search.ts";
import { type IndexBytes, type IndexStatus, sumOf } from "./index-status.ts";
import { FilterBitmaps, type FilterBitmapsOptions } from "./filter-bitmaps.ts";
import type { Query } from "./query.ts";
import { SearchIndex, type SavedParts } from "./search-index.ts";
import { flatMax } from "./search-plan.ts";
import type { Shared } from "./scopes/shared-vectors.ts";
import { type LoadedSnapshot, loadSnapshot, removeSnapshot, saveSnapshot } from "./snapshot/snapshot.ts";

export interface IndexerOptions extends SearchLimits {
  collection: Collection;
  /** A graph is built from this number of vectors on, and kept when they become fewer. */
  graphFrom: number;
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
const INGESTED_PER_STEP = 200;
const SWEPT_PER_STEP = 500;

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
  readonly #search: IndexSearch;

  constructor(store: Store, directory: string, options: Partial<IndexerOptions> = {}) {
    this.#store = store;
    this.#directory = directory;
    this.#options = { ...DEFAULTS, ...options };
    this.#collection = this.#options.collection;
    this.#index = this.#newIndex(0);
    this.#filterBitmaps = new FilterBitmaps(this.#collection.records, this.#options.filterBitmaps);
    this.#search = new IndexSearch(this.#searched(), this.#options);
  }

  #searched(): Searched {
    const current = () => this.#index;
    return {
      store: this.#store,
      collection: this.#collection,
      filterBitmaps: this.#filterBitmaps,
      get index() {
        return current();
      },
      catchUp: () => this.catchUp(),
      ingest: () => this.#ingest(),
      forget: (slot) => this.#forget(slot),
      slotOf: (memory) => this.#slotOf(memory),
    };
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
    for (const memory of memories) {
      const slot = this.#slotOf(memory);
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

  /** The best candidates for a query among the memories that pass the filter, as they are stored; in no order. */
  nearest(query: Query, filter: Filter): Generator<undefined, Candidate[]> {
    return this.#search.nearest(query, filter);
  }

  #slotOf(memory: BareId): number | undefined {
    const { slots } = this.#index;
    const known = slots.slotOfMemory(memory);
    if (known !== undefined) return known;
    // Its vector is not the newest that the index has seen of it.
    const id = vectorOf(this.#store.latest, this.#collection, memory)?.id;
    return id === undefined ? undefined : slots.slotOf(id);
  }

  /** Does a bounded piece of work. @returns whether there is more */
  step(): boolean {
    if (this.#ingest()) return true;
    if (this.#saving !== undefined) return false;
    this.#index.removeDeleted();
    return this.#insert() || this.#stepPassing() || this.#stepSweep() || this.#stepRebuild();
  }

  #stepPassing(): boolean {
    return this.#filterBitmaps.step(this.#store.latest, this.#index.slots, (memory) => this.#slotOf(memory));
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
