/**
 * Keeps the index in step with the store and searches it. Runs in the worker; knows nothing of threads.
 *
 * All it needs to know is in the store. The feed gives the ids of new vectors; a vector whose row is gone is deleted. So
 * nothing can be missed, and a start after a crash is a search like any other: every answer is checked against the store
 * before it counts.
 *
 * Two structures hold the vectors. The int8 index has all of them and answers while there are not too many to compare with
 * each; the graph is built in the background before there are too many, and answers beyond.
 *
 * ```
 *        ┌──quantize──▶ int8 index
 * feed ──┤
 *        └──insert──▶ points ──sweep──▶ removed points ──rebuild──▶ none     (of the graph)
 * ```
 *
 * @module
 */
import { LENGTH_PLACE } from "../embeddings/embedder.ts";
import type { BareId } from "../lib/ids.ts";
import { LIMITS } from "../lib/limits.ts";
import { generationOf } from "../storage/memory-records.ts";
import type { Store } from "../storage/store.ts";
import { memories, vectors } from "../storage/tables.ts";
import { matches, walkInSteps, type Filter } from "../storage/walk.ts";
import { Scan, unique } from "./brute-force.ts";
import { CandidateReader, type Candidate } from "./candidates.ts";
import { allNumbers, storedGeneration, storedMemory, UNIT } from "./encoding.ts";
import { filteredTopK, rescoreTies, type Resolve } from "./filtered-top-k.ts";
import { HnswIndex } from "./hnsw-index.ts";
import { Int8Index, QUANTIZATION_GAP } from "./int8-index.ts";
import { BRUTE_FORCE_MAX, GRAPH_FROM, int8Max, workerPlan } from "./search-plan.ts";
import { loadSnapshot, saveSnapshot } from "./snapshot.ts";
import type { Neighbour, Query } from "./top-k.ts";
import { VectorFeed } from "./vector-feed.ts";

export interface IndexerOptions {
  /** Limits of the plans for a search: see `search-plan.ts`. */
  scanMax: number;
  int8Max: number;
  /** A graph is built from this number of vectors on, and kept when they become fewer. */
  graphFrom: number;
  /** At most this many are asked for until enough pass the filter; beyond, those that pass are compared one by one. */
  oversampleMax: number;
  /** Index entries that a search reads to find what passes its filter; then the newest that pass, and the nearest, have to do. */
  looksMax: number;
  /** A graph is rebuilt when at least this number of its points, and this share of them, are deleted. */
  removedMin: number;
  removedShareMax: number;
}

const DEFAULTS: IndexerOptions = {
  scanMax: BRUTE_FORCE_MAX,
  int8Max: int8Max(GRAPH_FROM),
  graphFrom: 0,
  oversampleMax: 6_400,
  looksMax: LIMITS.searchLooksMax,
  removedMin: 100,
  removedShareMax: 0.3,
};

/** Cosines out of the graph are sums of single precision: this is ten times what was seen. */
const GRAPH_ERROR = 1e-5;
const IDS_PER_LOOK = 10_000;
/** Enough for most filters: a search that takes more than one step may wait for some of the index's own work. */
const LOOKS_PER_STEP = 5_000;
const QUANTIZED_PER_STEP = 100;
const SWEPT_PER_STEP = 500;

export interface IndexStatus {
  /** Vectors in the index, and those not yet in it: in the graph when there is to be one, else in the int8 index. */
  indexed: number;
  pending: number;
  /** Points of deleted vectors that still take room in the graph. */
  removed: number;
  /** Changes of the graph since it was last written to disk. */
  unsaved: number;
}

export class Indexer {
  readonly #store: Store;
  readonly #directory: string;
  readonly #options: IndexerOptions;
  readonly #feed = new VectorFeed();
  /** Vectors of other generations are another provider's. */
  #generation = 0;
  #int8 = new Int8Index();
  /** Vectors not yet in the int8 index, the newest last. */
  #unquantized: BareId[] = [];
  #hnsw = HnswIndex.empty();
  /** Vectors not yet in the graph, from `#pendingAt` on, oldest first. */
  #pending: BareId[] = [];
  #pendingAt = 0;
  #unsaved = 0;
  /** While a snapshot is written the graph may only be read. */
  #saving: Promise<void> | undefined;
  /** What is left to look at of the vectors that were there when the sweep began. */
  #sweeping: BareId[] = [];
  #rebuilding: { hnsw: HnswIndex; queue: BareId[] } | undefined;

  constructor(store: Store, directory: string, options: Partial<IndexerOptions> = {}) {
    this.#store = store;
    this.#directory = directory;
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Loads the snapshot and finds what has changed since. @returns why the graph has to be rebuilt, if so */
  async start(options: { useSnapshot: boolean } = { useSnapshot: true }): Promise<string | undefined> {
    this.#generation = generationOf(this.#store.latest);
    const loaded = options.useSnapshot ? await loadSnapshot(this.#directory, this.#generation) : { reason: "the index failed with it" };
    if (loaded instanceof HnswIndex) this.#hnsw = loaded;
    this.catchUp();
    if ("reason" in loaded) return this.hasGraph ? loaded.reason : undefined;
    const stored = new Set(this.#pending);
    this.#pending = this.#pending.filter((id) => !this.#hnsw.has(id));
    for (const id of this.#hnsw.ids) if (id !== undefined && !stored.has(id)) this.#forget(id);
    this.#compactIfSparse();
    return undefined;
  }

  get status(): IndexStatus {
    return {
      indexed: this.hasGraph ? this.#hnsw.size : this.#int8.size,
      pending: this.hasGraph ? this.#pendingCount + (this.#rebuilding?.queue.length ?? 0) : this.#unquantized.length,
      removed: this.#hnsw.removed,
      unsaved: this.#unsaved,
    };
  }

  /** Notes the vectors that were stored since the last look. */
  catchUp(): void {
    this.#store.refresh();
    const generation = generationOf(this.#store.latest);
    if (generation !== this.#generation) this.#resetGeneration(generation);
    for (;;) {
      const ids = this.#feed.next(this.#store.latest, IDS_PER_LOOK);
      this.#pending.push(...ids);
      this.#unquantized.push(...ids);
      if (ids.length < IDS_PER_LOOK) return;
    }
  }

  /**
   * The memories nearest to a query among those that pass the filter, best first. Where each of those is compared exactly, with
   * them as many of those whose words are the query's. In steps of a few milliseconds: between two of them the index and the
   * store may change.
   */
  *nearest(query: Query, filter: Filter): Generator<undefined, Candidate[]> {
    this.catchUp();
    const reader = new CandidateReader(this.#store.latest, query);
    const found = yield* this.#nearest(query, filter, reader);
    return found.flatMap(({ id }) => reader.candidate(id) ?? []);
  }

  *#nearest(query: Query, filter: Filter, reader: CandidateReader): Generator<undefined, Neighbour[]> {
    const { scanMax, looksMax } = this.#options;
    const spent = { looks: 0 };
    let scan = new Scan(this.#store.latest, query);
    const passing: BareId[] = [];
    for (const memory of filter.length === 0 ? [] : this.#passing(filter, spent)) {
      if (memory === undefined) yield;
      else if (passing.push(memory) > scanMax) break;
    }
    const isCounted = filter.length > 0 && spent.looks < looksMax;
    const [vectorCount, pending] = [this.#hnsw.size + this.#pendingCount, this.#pendingCount];
    const plan = workerPlan({ passing: isCounted ? passing.length : Infinity, vectors: vectorCount, pending }, this.#options);
    if (passing.length <= scanMax) for (const memory of passing) scan.compare(memory, this.#int8.idOf(memory));
    if (plan === "brute force") return scan.found();
    if (spent.looks > 0) this.catchUp();
    // Among many equal points the graph does not come to all that are there: fewer than asked for need not be all.
    let found = plan === "graph" ? this.#throughGraph(query, filter, reader) : [];
    if (found !== undefined && found.length < query.limit) found = this.#throughInt8(query, filter, reader);
    if (found !== undefined) return found;
    if (spent.looks < looksMax) {
      scan = new Scan(this.#store.latest, query);
      for (const memory of this.#passing(filter, spent)) {
        if (memory === undefined) yield;
        else scan.compare(memory, this.#int8.idOf(memory));
      }
      if (spent.looks < looksMax) return scan.found();
    }
    // Not all that passes was found: the newest of it, and what is nearest to the query.
    return unique([...scan.found(), ...(this.#throughInt8(query, filter, reader, true) ?? [])]);
  }

  /** What passes, newest first, with an undefined now and then; ends early when this search has looked at too much. */
  *#passing(filter: Filter, spent: { looks: number }): Generator<BareId | undefined> {
    for (const found of walkInSteps(this.#store.latest, memories, filter, {}, LOOKS_PER_STEP)) {
      if (typeof found === "string") {
        yield found;
        continue;
      }
      spent.looks += found.looks;
      if (spent.looks >= this.#options.looksMax) return;
      yield undefined;
    }
  }

  /** Does a bounded piece of work. @returns whether there is more */
  step(): boolean {
    if (this.#stepQuantize()) return true;
    if (this.#saving !== undefined) return false;
    return this.#stepPending() || this.#stepSweep() || this.#stepRebuild();
  }

  /** Has later steps take out what has been deleted, if there is any. */
  sweep(): void {
    this.catchUp();
    if (this.#sweeping.length > 0) return;
    const stored = this.#store.count(vectors);
    if (this.#int8.size + this.#unquantized.length > stored) for (const id of this.#int8.ids()) this.#sweeping.push(id);
    // A graph that was just rebuilt can have points of vectors that were deleted meanwhile.
    if (this.#hnsw.size + this.#pendingCount > stored) for (const id of this.#hnsw.ids) if (id !== undefined) this.#sweeping.push(id);
  }

  /** Has later steps rebuild the graph, without the points of deleted vectors. */
  rebuild(): void {
    this.#rebuilding ??= { hnsw: HnswIndex.empty(), queue: this.#hnsw.ids.filter((id) => id !== undefined) };
  }

  /** Writes the graph to disk if it has changed. */
  async save(): Promise<void> {
    if (this.#saving !== undefined) return this.#saving;
    if (this.#unsaved === 0) return;
    const unsaved = this.#unsaved;
    this.#saving = saveSnapshot(this.#directory, this.#hnsw, this.#generation);
    try {
      await this.#saving;
      this.#unsaved = Math.max(0, this.#unsaved - unsaved);
    } finally {
      this.#saving = undefined;
    }
  }

  /** Whether there is a graph or is to be one. */
  get hasGraph(): boolean {
    return this.#hnsw.size > 0 || this.#pendingCount >= this.#options.graphFrom;
  }

  #throughInt8({ vector, limit }: Query, filter: Filter, reader: CandidateReader, orFewer = false): Neighbour[] | undefined {
    while (this.#stepQuantize());
    const max = this.#options.oversampleMax;
    const found = filteredTopK(this.#int8, vector, { limit, max, error: QUANTIZATION_GAP, orFewer, resolve: this.#resolver(filter) });
    return found && rescoreTies(found, limit, QUANTIZATION_GAP / 2, (id) => reader.candidate(id)?.cosine);
  }

  /** What the graph finds, and what is not in it yet. */
  #throughGraph({ vector, limit }: Query, filter: Filter, reader: CandidateReader): Neighbour[] | undefined {
    const max = this.#options.oversampleMax;
    const resolve = this.#resolver(filter);
    // What the last places add is not in its cosines.
    const off = GRAPH_ERROR + Math.abs(vector[LENGTH_PLACE]! / UNIT);
    const found = filteredTopK(this.#hnsw, vector, { limit, max, error: GRAPH_ERROR, window: 2 * off, resolve });
    if (found === undefined) return undefined;
    const pending = this.#pending.slice(this.#pendingAt).flatMap((id) => reader.candidate(id) ?? []);
    found.push(...pending.filter(({ memory }) => matches(this.#store.latest, filter, memory)));
    return rescoreTies(found, limit, off, (id) => reader.candidate(id)?.cosine);
  }

  /** What is found to be deleted is taken out at once. */
  #resolver(filter: Filter): Resolve {
    return (id) => {
      const bytes = this.#store.latest.vectorBytes(id);
      if (bytes !== undefined) {
        const memory = storedMemory(bytes);
        return matches(this.#store.latest, filter, memory) ? memory : undefined;
      }
      this.#forget(id);
      return "deleted";
    };
  }

  get #pendingCount(): number {
    return this.#pending.length - this.#pendingAt;
  }

  #stepQuantize(): boolean {
    if (this.#unquantized.length === 0) return false;
    for (const id of this.#unquantized.splice(-QUANTIZED_PER_STEP)) {
      const bytes = this.#storedBytes(id);
      if (bytes !== undefined) this.#int8.add(id, storedMemory(bytes), allNumbers(bytes));
    }
    return true;
  }

  #stepPending(): boolean {
    if (this.#pendingCount === 0 || !this.hasGraph) return false;
    const id = this.#pending[this.#pendingAt++]!;
    if (this.#pendingCount === 0) {
      this.#pending = [];
      this.#pendingAt = 0;
    }
    if (this.#insert(this.#hnsw, id)) {
      this.#rebuilding?.queue.push(id);
      this.#unsaved++;
    }
    return true;
  }

  #stepSweep(): boolean {
    if (this.#sweeping.length === 0) return false;
    for (const id of this.#sweeping.splice(-SWEPT_PER_STEP)) if (!this.#store.latest.has(vectors, id)) this.#forget(id);
    if (this.#sweeping.length > 0) return true;
    this.#pending = this.#pending.slice(this.#pendingAt).filter((id) => this.#int8.has(id));
    this.#pendingAt = 0;
    this.#compactIfSparse();
    return true;
  }

  #stepRebuild(): boolean {
    const rebuilding = this.#rebuilding;
    if (rebuilding === undefined) return false;
    const id = rebuilding.queue.pop();
    if (id !== undefined) {
      this.#insert(rebuilding.hnsw, id);
      return true;
    }
    // Whatever was deleted since it went in is found by the next search or sweep, like any other.
    this.#hnsw.release();
    this.#hnsw = rebuilding.hnsw;
    this.#unsaved = this.#hnsw.size + 1;
    this.#rebuilding = undefined;
    return true;
  }

  #compactIfSparse(): void {
    const { removedMin, removedShareMax } = this.#options;
    const { removed, ids } = this.#hnsw;
    if (removed >= removedMin && removed > ids.length * removedShareMax) this.rebuild();
  }

  /** The vector is no longer in the store. */
  #forget(id: BareId): void {
    this.#int8.remove(id);
    if (this.#saving === undefined && this.#hnsw.remove(id)) this.#unsaved++;
  }

  /** What is stored of a vector of the provider that is set, valid until the next read; undefined when it has been deleted. */
  #storedBytes(id: BareId): Uint8Array | undefined {
    const bytes = this.#store.latest.vectorBytes(id);
    return bytes !== undefined && storedGeneration(bytes) === this.#generation ? bytes : undefined;
  }

  /** @returns false when the vector has been deleted meanwhile */
  #insert(hnsw: HnswIndex, id: BareId): boolean {
    const bytes = this.#storedBytes(id);
    if (bytes !== undefined) hnsw.add(id, allNumbers(bytes));
    return bytes !== undefined;
  }

  /** Another provider was set: nothing that is here can be compared any more. */
  #resetGeneration(generation: number): void {
    // While it is being written to disk the graph is needed; then it is freed when that is done.
    if (this.#saving === undefined) this.#hnsw.release();
    this.#generation = generation;
    this.#int8 = new Int8Index();
    this.#unquantized = [];
    this.#hnsw = HnswIndex.empty();
    this.#pending = [];
    this.#pendingAt = 0;
    this.#unsaved = 1;
    this.#sweeping = [];
    this.#rebuilding = undefined;
  }
}
