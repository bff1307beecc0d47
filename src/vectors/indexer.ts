/**
 * Keeps the graph in step with the store and searches it. Runs in the worker; knows nothing of threads.
 *
 * All it needs to know stands in the store: every vector has a label that is never given twice. Labels above the last one
 * seen are new; a point whose label is gone is deleted. So nothing can be missed, and a start after a crash is a search
 * like any other: until a vector is in the graph it is compared exactly, and what the graph says is checked against the
 * store before it counts.
 *
 * ```
 * store's labels ──catchUp──▶ pending ──step──▶ points, live ──sweep──▶ points, removed ──rebuild──▶ none
 * ```
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import type { BareId } from "../lib/ids.ts";
import { InvariantError } from "../lib/invariant.ts";
import { AFTER_ALL, numberKey } from "../storage/keys.ts";
import { firstLabelOf } from "../storage/memory-records.ts";
import type { Store } from "../storage/store.ts";
import { labels, memories, meta } from "../storage/tables.ts";
import { matches, walk, type Filter } from "../storage/walk.ts";
import { storedVector } from "./encoding.ts";
import { byNearness, Nearest, scan, type Neighbour } from "./exact.ts";
import { Graph } from "./hnsw.ts";
import { Pending } from "./pending.ts";
import { loadSnapshot, saveSnapshot, type Snapshot } from "./snapshot.ts";

export interface IndexerOptions {
  /** A filter that lets this many through is answered by comparing with each: 4 µs apiece. */
  scanMax: number;
  /** The graph is asked for more and more until enough pass the filter, up to this many; beyond, a scan is cheaper. */
  oversampleMax: number;
  /** A graph is built anew when at least so many of its points are removed ones, and such a share of it. */
  removedMin: number;
  removedShareMax: number;
  /** Is told what an operator should know. */
  warn: (message: string) => void;
}

const DEFAULTS: IndexerOptions = { scanMax: 2_000, oversampleMax: 6_400, removedMin: 100, removedShareMax: 0.3, warn: () => undefined };

/** hnswlib searches this widely anyway; what it finds beyond the limit shows whether the last places are tied. */
const ASKED_FIRST = 128;
/** Asked for more than what the share that passed so far calls for, as it varies. */
const OVERSAMPLE_MARGIN = 1.25;
/** Cosines out of the graph are sums of single precision: this is ten times what was seen. */
const COSINE_ERROR = 1e-5;
const LABELS_PER_READ = 10_000;
const LABELS_PER_SWEEP_STEP = 500;
/** Points of a snapshot that are compared with the store's vectors, to be sure that it is of this store. */
const POINTS_COMPARED = 16;

export interface IndexStatus {
  /** Vectors in the graph, and those not yet in it. */
  indexed: number;
  pending: number;
  /** Points of deleted vectors that still take room. */
  removed: number;
  /** Changes of the graph since it was last written to disk. */
  unsaved: number;
}

export class Indexer {
  readonly #store: Store;
  readonly #directory: string;
  readonly #options: IndexerOptions;
  #graph = Graph.empty();
  /** Labels of points that can be found, and of those that cannot any more. */
  #live = new Set<number>();
  #removed = new Set<number>();
  readonly #pending = new Pending();
  #lastLabel = -1;
  /** Vectors with smaller labels are of a provider that is no longer set. */
  #firstLabel = 0;
  #unsaved = 0;
  /** While a snapshot is written the graph may only be read. */
  #saving: Promise<void> | undefined;
  /** What is left to look at of the labels that were live when the sweep began. */
  #sweeping: number[] = [];
  #rebuilding: { graph: Graph; live: Set<number>; queue: number[] } | undefined;

  constructor(store: Store, directory: string, options: Partial<IndexerOptions> = {}) {
    this.#store = store;
    this.#directory = directory;
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Loads the snapshot and finds what has changed since. @returns why the graph has to be built anew, if so */
  async start(options: { useSnapshot: boolean } = { useSnapshot: true }): Promise<string | undefined> {
    const loaded = options.useSnapshot ? await loadSnapshot(this.#directory) : { reason: "the index failed with it" };
    this.catchUp();
    if ("reason" in loaded) return loaded.reason;
    if (!this.#isOfThisStore(loaded)) {
      loaded.graph.release();
      return "the snapshot is of another store";
    }
    const { graph, live, removed } = loaded;
    this.#graph = graph;
    this.#live = live;
    this.#removed = removed;
    const stored = this.#pending.labels();
    this.#pending.replace(stored.filter((label) => !live.has(label)));
    const known = new Set(stored);
    // Removing from a set while going through it is well defined.
    for (const label of live) if (!known.has(label)) this.#remove(label);
    this.#rebuildIfHollow();
    return undefined;
  }

  get status(): IndexStatus {
    return {
      indexed: this.#live.size,
      pending: this.#pending.count + (this.#rebuilding?.queue.length ?? 0),
      removed: this.#removed.size,
      unsaved: this.#unsaved,
    };
  }

  /** Notes the vectors that were stored since the last look. */
  catchUp(): void {
    this.#store.refresh();
    const firstLabel = firstLabelOf(this.#store);
    if (firstLabel > this.#firstLabel) this.#startOver(firstLabel);
    for (;;) {
      const keys = this.#store.keys(labels, { from: numberKey(this.#lastLabel + 1), to: AFTER_ALL, limit: LABELS_PER_READ });
      for (const key of keys) {
        this.#lastLabel = fromBase62(key);
        this.#pending.push(this.#lastLabel);
      }
      if (keys.length < LABELS_PER_READ) return;
    }
  }

  /** The memories nearest to a query among those that pass the filter, best first. */
  nearest(query: Float32Array, filter: Filter, limit: number): Neighbour[] {
    this.catchUp();
    const nearest = new Nearest(limit);
    if (filter.length > 0) {
      const passing = firstOf(walk(this.#store, memories, filter), this.#options.scanMax + 1);
      if (passing.length <= this.#options.scanMax) {
        scan(this.#store, passing, query, nearest);
        return nearest.best();
      }
    }
    const found = this.#throughGraph(query, filter, limit);
    if (found === undefined) {
      scan(this.#store, walk(this.#store, memories, filter), query, nearest);
      return nearest.best();
    }
    const last = found[limit - 1];
    const waiting = last === undefined ? nearest : new Nearest(limit, last.cosine - 2 * COSINE_ERROR);
    this.#pending.scan(query, waiting, {
      read: (label) => this.#storedVector(label),
      passing: (label) => this.#passing(label, filter),
    });
    return this.#best([...found, ...waiting.best()], query, limit);
  }

  /** Does a bounded piece of work on the graph. @returns whether there is more */
  step(): boolean {
    if (this.#saving !== undefined) return false;
    return this.#stepPending() || this.#stepSweep() || this.#stepRebuild();
  }

  /** Has later steps take the points of deleted vectors out of the graph, if there are any. */
  sweep(): void {
    this.catchUp();
    const deleted = this.#live.size + this.#pending.count - this.#store.count(labels);
    if (deleted > 0 && this.#pending.count === 0 && this.#sweeping.length === 0) this.#sweeping = [...this.#live];
  }

  /** Has later steps build the graph anew, without the points of deleted vectors. */
  rebuild(): void {
    this.#rebuilding ??= { graph: Graph.empty(), live: new Set(), queue: [...this.#live] };
  }

  /** Writes the graph to disk if it has changed. */
  async save(): Promise<void> {
    if (this.#saving !== undefined) return this.#saving;
    if (this.#unsaved === 0) return;
    const unsaved = this.#unsaved;
    this.#saving = saveSnapshot(this.#directory, { graph: this.#graph, live: this.#live, removed: this.#removed });
    try {
      await this.#saving;
      this.#unsaved = Math.max(0, this.#unsaved - unsaved);
    } finally {
      this.#saving = undefined;
    }
  }

  /** @returns undefined when the graph cannot tell: too few of the nearest pass */
  #throughGraph(query: Float32Array, filter: Filter, limit: number): Neighbour[] | undefined {
    const { oversampleMax } = this.#options;
    const looked = new Map<number, BareId | undefined>();
    let asked = Math.min(oversampleMax, Math.max(ASKED_FIRST, limit));
    for (let round = 1; ; round++) {
      const near = this.#graph.nearest(query, asked);
      const removedBefore = this.#removed.size;
      const found: Neighbour[] = [];
      for (const { label, cosine } of near) {
        if (!looked.has(label)) looked.set(label, this.#passing(label, filter));
        const memory = looked.get(label);
        if (memory !== undefined) found.push({ memory, cosine });
      }
      if (near.length < asked) return found;
      const last = found[limit - 1];
      if (last !== undefined) {
        // Of equal ones the newest count, so all of those have to be seen.
        const isTied = last.cosine - (near.at(-1)?.cosine ?? -1) < COSINE_ERROR;
        if (!isTied || asked === oversampleMax) return found;
        asked = Math.min(oversampleMax, 4 * asked);
      } else if (this.#removed.size > removedBefore) {
        // Points of deleted vectors stood in the way.
        asked = Math.min(oversampleMax, 2 * asked);
      } else {
        const wanted = found.length === 0 ? Number.POSITIVE_INFINITY : (limit / found.length) * asked * OVERSAMPLE_MARGIN;
        if (asked === oversampleMax || (wanted > oversampleMax && round > 1)) return undefined;
        asked = Math.min(oversampleMax, Math.max(2 * asked, Math.ceil(wanted)));
      }
    }
  }

  /** The first `limit`. Where the graph's cosines are too near to the last place to tell, they are computed exactly. */
  #best(candidates: Neighbour[], query: Float32Array, limit: number): Neighbour[] {
    candidates.sort(byNearness);
    const last = candidates[limit - 1];
    if (last === undefined) return candidates;
    const isUnsure = ({ cosine }: Neighbour) => Math.abs(cosine - last.cosine) < 2 * COSINE_ERROR;
    const nearest = new Nearest(limit);
    for (const candidate of candidates) {
      if (isUnsure(candidate)) scan(this.#store, [candidate.memory], query, nearest);
      else nearest.offer(candidate.memory, candidate.cosine);
    }
    return nearest.best();
  }

  /** The memory that a label means, if it passes. */
  #passing(label: number, filter: Filter): BareId | undefined {
    const memory = this.#store.get(labels, numberKey(label));
    if (memory === undefined && this.#live.has(label) && this.#saving === undefined) this.#remove(label);
    return memory !== undefined && matches(this.#store, filter, memory) ? memory : undefined;
  }

  /** The vector that a label means, good until the next read. */
  #storedVector(label: number): Float32Array | undefined {
    const memory = this.#store.get(labels, numberKey(label));
    const bytes = memory === undefined ? undefined : this.#store.vectorBytes(memory);
    return bytes === undefined ? undefined : storedVector(bytes);
  }

  /** Another provider was set: nothing that is in the graph can be compared any more. */
  #startOver(firstLabel: number): void {
    const current = [...this.#live, ...this.#pending.labels()].filter((label) => label >= firstLabel);
    // While it is being written to disk the graph is needed; then it goes when that is done.
    if (this.#saving === undefined) this.#graph.release();
    this.#graph = Graph.empty();
    this.#live = new Set();
    this.#removed = new Set();
    this.#pending.replace(current.sort((a, b) => a - b));
    this.#firstLabel = firstLabel;
    this.#lastLabel = Math.max(this.#lastLabel, firstLabel - 1);
    this.#unsaved = 1;
    this.#sweeping = [];
    this.#rebuilding = undefined;
  }

  #stepPending(): boolean {
    const label = this.#pending.shift();
    if (label === undefined) return false;
    if (this.#insert(this.#graph, label)) {
      this.#live.add(label);
      this.#rebuilding?.queue.push(label);
      this.#unsaved++;
    }
    return true;
  }

  #stepSweep(): boolean {
    if (this.#sweeping.length === 0) return false;
    for (const label of this.#sweeping.splice(-LABELS_PER_SWEEP_STEP)) {
      if (this.#live.has(label) && !this.#store.has(labels, numberKey(label))) this.#remove(label);
    }
    if (this.#sweeping.length === 0) this.#rebuildIfHollow();
    return true;
  }

  #stepRebuild(): boolean {
    const rebuilding = this.#rebuilding;
    if (rebuilding === undefined) return false;
    const label = rebuilding.queue.pop();
    if (label !== undefined) {
      if (this.#insert(rebuilding.graph, label)) rebuilding.live.add(label);
      return true;
    }
    // Whatever was deleted since it went in is found by the next search or sweep, like any other.
    this.#graph.release();
    this.#graph = rebuilding.graph;
    this.#live = rebuilding.live;
    this.#removed = new Set();
    this.#unsaved = this.#graph.size + 1;
    this.#rebuilding = undefined;
    return true;
  }

  #rebuildIfHollow(): void {
    const { removedMin, removedShareMax } = this.#options;
    if (this.#removed.size >= removedMin && this.#removed.size > this.#graph.size * removedShareMax) this.rebuild();
  }

  /** The vector is no longer in the store. */
  #remove(label: number): void {
    this.#graph.remove(label);
    this.#live.delete(label);
    this.#removed.add(label);
    this.#unsaved++;
  }

  /** @returns false when the vector has been deleted meanwhile, or is none that can be compared */
  #insert(graph: Graph, label: number): boolean {
    const vector = this.#storedVector(label);
    if (vector === undefined) return false;
    try {
      graph.add(label, vector);
      return true;
    } catch (error) {
      if (!(error instanceof InvariantError)) throw error;
      this.#options.warn(`The memory mem_${this.#store.get(labels, numberKey(label))} cannot be found by meaning: ${error.message}.`);
      return false;
    }
  }

  /**
   * Labels are never given twice in one store, so each must mean here what it meant when the snapshot was written. They do
   * not when the store was put back from a backup, or the snapshot was copied from elsewhere.
   */
  #isOfThisStore({ graph, live, removed }: Snapshot): boolean {
    const nextLabel = Number(this.#store.get(meta, "nextLabel") ?? "0");
    for (const label of live) if (label >= nextLabel) return false;
    for (const label of removed) {
      if (label >= nextLabel || (label >= this.#firstLabel && this.#store.has(labels, numberKey(label)))) return false;
    }
    const newest = [...live].sort((a, b) => b - a);
    for (let i = 0, compared = 0; i < newest.length && compared < POINTS_COMPARED; i++) {
      const label = newest[i] as number;
      const stored = this.#storedVector(label);
      if (stored === undefined) continue;
      if (graph.vector(label).some((value, k) => value !== stored[k])) return false;
      compared++;
    }
    return true;
  }
}

function firstOf<Item>(items: Iterable<Item>, count: number): Item[] {
  const first: Item[] = [];
  for (const item of items) {
    first.push(item);
    if (first.length === count) break;
  }
  return first;
}
