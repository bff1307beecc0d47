/**
 * Keeps the index in step with the store and searches it. Runs in the worker; knows nothing of threads.
 *
 * All it needs to know stands in the store: every vector has a label that is never given twice. Labels above the last one
 * seen are new; a point whose label is gone is deleted. So nothing can be missed, and a start after a crash is a search like
 * any other: every answer is checked against the store before it counts.
 *
 * Two things are made of the vectors. `coarse` has all of them and answers while there are not too many to compare with each;
 * the graph is built in the background before there are too many, and answers beyond.
 *
 * ```
 *                           ┌──read──▶ coarse
 * store's labels ──catchUp──┤
 *                           └──pending──▶ live points ──sweep──▶ removed points ──rebuild──▶ none     (of the graph)
 * ```
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import type { BareId } from "../lib/ids.ts";
import { InvariantError } from "../lib/invariant.ts";
import { LIMITS } from "../lib/limits.ts";
import { AFTER_ALL, numberKey } from "../storage/keys.ts";
import { firstLabelOf, nextLabelOf } from "../storage/memory-records.ts";
import type { Store } from "../storage/store.ts";
import { labels, memories } from "../storage/tables.ts";
import { matches, walkInSteps, type Filter } from "../storage/walk.ts";
import { Coarse, COARSE_GAP } from "./coarse.ts";
import { storedVector } from "./encoding.ts";
import { Reading, type Candidate } from "./candidates.ts";
import { Scan, withoutTwice, type Asked, type Neighbour } from "./exact.ts";
import { Graph } from "./hnsw.ts";
import { firstOf, passingNearest, type Look } from "./oversample.ts";
import { loadSnapshot, saveSnapshot, type Snapshot } from "./snapshot.ts";

export interface IndexerOptions {
  /** A filter that lets this many through is answered by comparing with each in the store: 2 µs apiece. */
  scanMax: number;
  /** Up to this number of vectors all are compared coarsely (some 20 ms); beyond it the graph is asked. */
  coarseMax: number;
  /** A graph is built from this number of vectors on, and kept when they become fewer. */
  graphFrom: number;
  /** At most this many are asked for until enough pass the filter; beyond, those that pass are compared one by one. */
  oversampleMax: number;
  /** Index entries that a search reads to find what passes its filter; then the newest that pass, and the nearest, have to do. */
  looksMax: number;
  /** A graph is rebuilt when at least this number of its points, and this share of them, are deleted. */
  removedMin: number;
  removedShareMax: number;
  /** Called with what an operator should know. */
  warn: (message: string) => void;
}

const DEFAULTS: IndexerOptions = {
  scanMax: 2_000,
  coarseMax: 400_000,
  graphFrom: 0,
  oversampleMax: 6_400,
  looksMax: LIMITS.searchLooksMax,
  removedMin: 100,
  removedShareMax: 0.3,
  warn: () => undefined,
};

/** Cosines out of the graph are sums of single precision: this is ten times what was seen. */
const GRAPH_ERROR = 1e-5;
/** The graph is of use when no more than this are to be compared one by one beside it. */
const PENDING_MAX = 1_000;
const LABELS_PER_LOOK = 10_000;
/** Enough for most filters: a search that takes more than one step may wait for some of the index's own work. */
const LOOKS_PER_STEP = 5_000;
const LABELS_PER_READ_STEP = 100;
const LABELS_PER_SWEEP_STEP = 500;
/** Points of a snapshot that are compared with the store's vectors, to be sure that it is of this store. */
const POINTS_COMPARED = 16;

export interface IndexStatus {
  /** Vectors in the index, and those not yet in it: in the graph when there is to be one, else among the coarse ones. */
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
  #coarse = new Coarse();
  /** Labels whose vectors are not yet in it, the newest last. */
  #unread: number[] = [];
  #graph = Graph.empty();
  /** Labels of points that can be found, and of those that cannot any more. */
  #live = new Set<number>();
  #removed = new Set<number>();
  /** Labels not yet in the graph, from `#pendingAt` on, oldest first. */
  #pending: number[] = [];
  #pendingAt = 0;
  #lastLabel = -1;
  /** Vectors with smaller labels are of a provider that is no longer set. */
  #firstLabel = 0;
  #unsaved = 0;
  /** While a snapshot is written the graph may only be read. */
  #saving: Promise<void> | undefined;
  /** What is left to look at of the labels that were there when the sweep began. */
  #sweeping: number[] = [];
  #rebuilding: { graph: Graph; live: Set<number>; queue: number[] } | undefined;

  constructor(store: Store, directory: string, options: Partial<IndexerOptions> = {}) {
    this.#store = store;
    this.#directory = directory;
    this.#options = { ...DEFAULTS, ...options };
  }

  /** Loads the snapshot and finds what has changed since. @returns why the graph has to be rebuilt, if so */
  async start(options: { useSnapshot: boolean } = { useSnapshot: true }): Promise<string | undefined> {
    const loaded = options.useSnapshot ? await loadSnapshot(this.#directory) : { reason: "the index failed with it" };
    this.catchUp();
    const rebuilding = "reason" in loaded ? loaded.reason : this.#isOfThisStore(loaded) ? undefined : "the snapshot is of another store";
    if ("reason" in loaded || rebuilding !== undefined) {
      if ("graph" in loaded) loaded.graph.release();
      return this.hasGraph ? rebuilding : undefined;
    }
    const { graph, live, removed } = loaded;
    this.#graph = graph;
    this.#live = live;
    this.#removed = removed;
    const stored = new Set(this.#pending);
    this.#pending = this.#pending.filter((label) => !live.has(label));
    // Removing from a set while going through it is well defined.
    for (const label of live) if (!stored.has(label)) this.#forget(label);
    this.#rebuildIfHollow();
    return undefined;
  }

  get status(): IndexStatus {
    return {
      indexed: this.hasGraph ? this.#live.size : this.#coarse.size,
      pending: this.hasGraph ? this.#pendingCount + (this.#rebuilding?.queue.length ?? 0) : this.#unread.length,
      removed: this.#removed.size,
      unsaved: this.#unsaved,
    };
  }

  /** Notes the vectors that were stored since the last look. */
  catchUp(): void {
    this.#store.refresh();
    const firstLabel = firstLabelOf(this.#store.latest);
    if (firstLabel > this.#firstLabel) this.#startOver(firstLabel);
    for (;;) {
      const keys = this.#store.latest.keys(labels, { from: numberKey(this.#lastLabel + 1), to: AFTER_ALL, limit: LABELS_PER_LOOK });
      for (const key of keys) {
        this.#lastLabel = fromBase62(key);
        this.#pending.push(this.#lastLabel);
        this.#unread.push(this.#lastLabel);
      }
      if (keys.length < LABELS_PER_LOOK) return;
    }
  }

  /**
   * The `limit` memories nearest to a query among those that pass the filter, best first. Where each of those is compared
   * exactly, with them as many of those whose words are the query's. In steps of a few milliseconds: between two of them the
   * index and the store may change.
   *
   * @param fingerprint - of the query's words; 0 without
   */
  *nearest(query: Float32Array, filter: Filter, limit: number, fingerprint = 0): Generator<undefined, Candidate[]> {
    this.catchUp();
    const read = new Reading(this.#store.latest, query);
    const found = yield* this.#nearest({ query, fingerprint, limit }, filter, read);
    return found.flatMap(({ memory }) => read.candidate(memory) ?? []);
  }

  *#nearest(asked: Asked, filter: Filter, read: Reading): Generator<undefined, Neighbour[]> {
    const { query, limit } = asked;
    const { scanMax, looksMax } = this.#options;
    const spent = { looks: 0 };
    let scan = new Scan(this.#store.latest, asked);
    if (filter.length > 0) {
      const passing: BareId[] = [];
      for (const memory of this.#passing(filter, spent)) {
        if (memory === undefined) yield;
        else if (passing.push(memory) > scanMax) break;
      }
      if (passing.length <= scanMax) {
        for (const memory of passing) scan.compare(memory);
        if (spent.looks < looksMax) return scan.found();
      }
      if (spent.looks > 0) this.catchUp();
    }
    // Among many equal points the graph does not come to all that are there: fewer than asked for need not be all.
    let found = this.#isGraphOfUse() ? this.#throughGraph(query, filter, limit, read) : [];
    if (found !== undefined && found.length < limit) found = this.#throughCoarse(query, filter, limit, read);
    if (found !== undefined) return found;
    if (spent.looks < looksMax) {
      scan = new Scan(this.#store.latest, asked);
      for (const memory of this.#passing(filter, spent)) {
        if (memory === undefined) yield;
        else scan.compare(memory);
      }
      if (spent.looks < looksMax) return scan.found();
    }
    // Not all that passes was found: the newest of it, and what is nearest to the query.
    return withoutTwice([...scan.found(), ...(this.#throughCoarse(query, filter, limit, read, true) ?? [])]);
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
    if (this.#stepRead()) return true;
    if (this.#saving !== undefined) return false;
    return this.#stepPending() || this.#stepSweep() || this.#stepRebuild();
  }

  /** Has later steps take out what has been deleted, if there is any. */
  sweep(): void {
    this.catchUp();
    const deleted = this.#live.size + this.#pendingCount - this.#store.count(labels);
    if (deleted <= 0 || this.#sweeping.length > 0) return;
    if (!this.hasGraph) this.#forgetPending();
    else if (this.#pendingCount === 0) this.#sweeping = [...this.#live];
  }

  /** Has later steps rebuild the graph, without the points of deleted vectors. */
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

  /** Whether there is a graph or is to be one. */
  get hasGraph(): boolean {
    return this.#live.size > 0 || this.#pendingCount >= this.#options.graphFrom;
  }

  /** Not while comparing with all is quick, nor while much is missing from it. */
  #isGraphOfUse(): boolean {
    return this.#live.size + this.#pendingCount > this.#options.coarseMax && this.#pendingCount <= PENDING_MAX;
  }

  #throughCoarse(query: Float32Array, filter: Filter, limit: number, read: Reading, orFewer = false): Neighbour[] | undefined {
    while (this.#stepRead());
    const max = this.#options.oversampleMax;
    const found = passingNearest(this.#coarse, query, { limit, max, error: COARSE_GAP, orFewer, look: this.#lookFor(filter) });
    return found && firstOf(found, limit, COARSE_GAP / 2, (memory) => read.candidate(memory)?.cosine);
  }

  /** What the graph finds, and what is not in it yet. */
  #throughGraph(query: Float32Array, filter: Filter, limit: number, read: Reading): Neighbour[] | undefined {
    const max = this.#options.oversampleMax;
    const look = this.#lookFor(filter);
    // What the last places add is not in its cosines.
    const off = GRAPH_ERROR + Math.abs(query.at(-1) ?? 0);
    const found = passingNearest(this.#graph, query, { limit, max, error: GRAPH_ERROR, reach: 2 * off, look });
    if (found === undefined) return undefined;
    const candidates = [...found];
    for (const label of this.#pending.slice(this.#pendingAt)) {
      const memory = look(label);
      const cosine = memory === undefined || memory === "deleted" ? undefined : read.candidate(memory)?.cosine;
      if (memory !== undefined && cosine !== undefined) candidates.push({ memory, cosine });
    }
    return firstOf(candidates, limit, off, (memory) => read.candidate(memory)?.cosine);
  }

  /** What is found to be deleted is taken out at once. */
  #lookFor(filter: Filter): Look {
    return (label) => {
      const memory = this.#store.latest.get(labels, numberKey(label));
      if (memory !== undefined) return matches(this.#store.latest, filter, memory) ? memory : undefined;
      this.#forget(label);
      return "deleted";
    };
  }

  get #pendingCount(): number {
    return this.#pending.length - this.#pendingAt;
  }

  #stepRead(): boolean {
    if (this.#unread.length === 0) return false;
    for (const label of this.#unread.splice(-LABELS_PER_READ_STEP)) {
      const bytes = this.#storedBytes(label);
      if (bytes === undefined) continue;
      try {
        this.#coarse.add(label, storedVector(bytes));
      } catch (error) {
        if (!(error instanceof InvariantError)) throw error;
        this.#options.warn(
          `The memory mem_${this.#store.latest.get(labels, numberKey(label))} cannot be found by meaning: ${error.message}.`,
        );
      }
    }
    return true;
  }

  #stepPending(): boolean {
    const label = this.#pending[this.#pendingAt];
    if (label === undefined || !this.hasGraph) return false;
    this.#pendingAt++;
    if (this.#pendingCount === 0) {
      this.#pending = [];
      this.#pendingAt = 0;
    }
    if (this.#insert(this.#graph, label)) {
      this.#live.add(label);
      this.#rebuilding?.queue.push(label);
      this.#unsaved++;
    } else {
      this.#coarse.remove(label);
    }
    return true;
  }

  #stepSweep(): boolean {
    if (this.#sweeping.length === 0) return false;
    for (const label of this.#sweeping.splice(-LABELS_PER_SWEEP_STEP)) {
      if (!this.#store.latest.has(labels, numberKey(label))) this.#forget(label);
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
      else this.#coarse.remove(label);
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
  #forget(label: number): void {
    this.#coarse.remove(label);
    if (this.#saving !== undefined || !this.#live.delete(label)) return;
    this.#graph.remove(label);
    this.#removed.add(label);
    this.#unsaved++;
  }

  /** The same of all that are not in the graph: 20 ms where there is none and vectors are many. */
  #forgetPending(): void {
    this.#pending = this.#pending.slice(this.#pendingAt).filter((label) => {
      const isThere = this.#store.latest.has(labels, numberKey(label));
      if (!isThere) this.#coarse.remove(label);
      return isThere;
    });
    this.#pendingAt = 0;
  }

  /** What is stored of the vector that a label means, good until the next read. */
  #storedBytes(label: number): Uint8Array | undefined {
    const memory = this.#store.latest.get(labels, numberKey(label));
    return memory === undefined ? undefined : this.#store.latest.vectorBytes(memory);
  }

  /** @returns false when the vector has been deleted meanwhile, or is none that can be compared */
  #insert(graph: Graph, label: number): boolean {
    const bytes = this.#storedBytes(label);
    if (bytes === undefined) return false;
    try {
      graph.add(label, storedVector(bytes));
      return true;
    } catch (error) {
      if (error instanceof InvariantError) return false;
      throw error;
    }
  }

  /** Another provider was set: nothing that is here can be compared any more. */
  #startOver(firstLabel: number): void {
    // While it is being written to disk the graph is needed; then it goes when that is done.
    if (this.#saving === undefined) this.#graph.release();
    const current = [...this.#live, ...this.#pending.slice(this.#pendingAt)].filter((label) => label >= firstLabel).sort((a, b) => a - b);
    this.#coarse = new Coarse();
    this.#unread = [...current];
    this.#graph = Graph.empty();
    this.#live = new Set();
    this.#removed = new Set();
    this.#pending = current;
    this.#pendingAt = 0;
    this.#firstLabel = firstLabel;
    this.#lastLabel = Math.max(this.#lastLabel, firstLabel - 1);
    this.#unsaved = 1;
    this.#sweeping = [];
    this.#rebuilding = undefined;
  }

  /**
   * Labels are never given twice in one store, so each must mean here what it meant when the snapshot was written. They do
   * not when the store was put back from a backup, or the snapshot was copied from elsewhere.
   */
  #isOfThisStore({ graph, live, removed }: Snapshot): boolean {
    const nextLabel = nextLabelOf(this.#store.latest);
    for (const label of live) if (label >= nextLabel) return false;
    for (const label of removed) {
      if (label >= nextLabel || (label >= this.#firstLabel && this.#store.latest.has(labels, numberKey(label)))) return false;
    }
    const newest = [...live].sort((a, b) => b - a);
    for (let i = 0, compared = 0; i < newest.length && compared < POINTS_COMPARED; i++) {
      const label = newest[i] as number;
      const bytes = this.#storedBytes(label);
      if (bytes === undefined) continue;
      if (!graph.isPointOf(label, storedVector(bytes))) return false;
      compared++;
    }
    return true;
  }
}
