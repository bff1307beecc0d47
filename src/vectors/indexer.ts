/**
 * Keeps the graph in step with the store and searches it. Runs in the worker; knows nothing of threads.
 *
 * All it needs to know stands in the store: every vector has a label that is never given twice. Labels above the last one
 * seen are new; a point whose label is gone is deleted. So nothing can be missed, and a start after a crash is a search
 * like any other: until a vector is in the graph it is compared exactly, and what the graph says is checked against the
 * store before it counts.
 *
 * @module
 */
import { fromBase62 } from "../lib/base62.ts";
import type { BareId } from "../lib/ids.ts";
import { AFTER_ALL, numberKey } from "../storage/keys.ts";
import type { Store } from "../storage/store.ts";
import { labels, memories } from "../storage/tables.ts";
import { matches, walk, type Filter } from "../storage/walk.ts";
import { storedVector } from "./encoding.ts";
import { Nearest, scan, type Neighbour } from "./exact.ts";
import { Graph } from "./hnsw.ts";
import { loadSnapshot, saveSnapshot } from "./snapshot.ts";

/** A filter that lets this many through is answered by comparing with each, a few milliseconds at most. */
const SCAN_MAX = 2_000;
/** The graph is asked for more and more until enough pass the filter, up to this many; beyond, a scan is cheaper. */
const OVERSAMPLE_MAX = 3_200;
const OVERSAMPLE_STEP = 4;
const LABELS_PER_READ = 10_000;
/** A graph is built anew when so much of it is deleted points. */
const DELETED_SHARE_MAX = 0.3;
const DELETED_MIN = 1_000;

export interface IndexStatus {
  /** Vectors in the graph, and those not yet in it. */
  indexed: number;
  pending: number;
  /** Points of deleted vectors that still take room. */
  deleted: number;
  /** Changes of the graph since it was last written to disk. */
  unsaved: number;
}

export class Indexer {
  readonly #store: Store;
  readonly #directory: string;
  #graph = Graph.empty();
  /** Labels whose points can be found. */
  #live = new Set<number>();
  #pending: number[] = [];
  #lastLabel = -1;
  #unsaved = 0;
  /** While a snapshot is written the graph may only be read. */
  #saving: Promise<void> | undefined;
  #rebuild: { graph: Graph; live: Set<number>; queue: number[] } | undefined;

  constructor(store: Store, directory: string) {
    this.#store = store;
    this.#directory = directory;
  }

  /** Loads the snapshot and finds what has changed since. @returns why there was none, if so */
  async start(): Promise<string | undefined> {
    const loaded = await loadSnapshot(this.#directory);
    if ("graph" in loaded) {
      this.#graph = loaded.graph;
      this.#live = new Set(loaded.graph.labels());
    }
    this.catchUp();
    this.#pending = this.#pending.filter((label) => !this.#live.has(label));
    this.sweep();
    return "reason" in loaded ? loaded.reason : undefined;
  }

  get status(): IndexStatus {
    return {
      indexed: this.#live.size,
      pending: this.#pending.length + (this.#rebuild?.queue.length ?? 0),
      deleted: this.#graph.size - this.#live.size,
      unsaved: this.#unsaved,
    };
  }

  /** Notes the vectors that were stored since the last look. */
  catchUp(): void {
    this.#store.refresh();
    for (;;) {
      const keys = this.#store.keys(labels, { from: numberKey(this.#lastLabel + 1), to: AFTER_ALL, limit: LABELS_PER_READ });
      for (const key of keys) this.#pending.push(fromBase62(key));
      this.#lastLabel = Math.max(this.#lastLabel, this.#pending.at(-1) ?? -1);
      if (keys.length < LABELS_PER_READ) return;
    }
  }

  /** The memories nearest to a query among those that pass the filter, best first. */
  nearest(query: Float32Array, filter: Filter, limit: number): Neighbour[] {
    this.catchUp();
    const nearest = new Nearest(limit);
    if (filter.length > 0) {
      const passing = firstOf(walk(this.#store, memories, filter), SCAN_MAX + 1);
      if (passing.length <= SCAN_MAX) {
        scan(this.#store, passing, query, nearest);
        return nearest.best();
      }
    }
    const found = this.#throughGraph(query, filter, limit);
    if (found === undefined) {
      scan(this.#store, walk(this.#store, memories, filter), query, nearest);
      return nearest.best();
    }
    for (const { memory, cosine } of found) nearest.offer(memory, cosine);
    scan(this.#store, this.#pendingMemories(filter), query, nearest);
    return nearest.best();
  }

  /** Does a bounded piece of work on the graph. @returns whether there is more */
  step(): boolean {
    if (this.#saving !== undefined) return false;
    const label = this.#pending.shift();
    if (label !== undefined) {
      if (this.#insert(this.#graph, label)) {
        this.#live.add(label);
        this.#rebuild?.queue.push(label);
      }
      return true;
    }
    return this.#stepRebuild();
  }

  /** Takes the points of deleted vectors out of the graph, and builds it anew when too many are. */
  sweep(): void {
    if (this.#saving !== undefined) return;
    this.#store.refresh();
    for (const label of this.#live) {
      if (this.#store.has(labels, numberKey(label))) continue;
      this.#graph.remove(label);
      this.#live.delete(label);
      this.#unsaved++;
    }
    const { deleted } = this.status;
    if (deleted >= DELETED_MIN && deleted > this.#graph.size * DELETED_SHARE_MAX) {
      this.#rebuild ??= { graph: Graph.empty(), live: new Set(), queue: [...this.#live] };
    }
  }

  /** Writes the graph to disk if it has changed. */
  async save(): Promise<void> {
    if (this.#saving !== undefined) return this.#saving;
    if (this.#unsaved === 0) return;
    const unsaved = this.#unsaved;
    this.#saving = saveSnapshot(this.#directory, this.#graph);
    try {
      await this.#saving;
      this.#unsaved -= unsaved;
    } finally {
      this.#saving = undefined;
    }
  }

  #throughGraph(query: Float32Array, filter: Filter, limit: number): Neighbour[] | undefined {
    for (let asked = limit; ; asked *= OVERSAMPLE_STEP) {
      const found: Neighbour[] = [];
      const near = this.#graph.nearest(query, asked);
      for (const { label, cosine } of near) {
        const memory = this.#store.get(labels, numberKey(label));
        if (memory !== undefined && matches(this.#store, filter, memory)) found.push({ memory, cosine });
      }
      if (found.length >= limit || asked >= this.#graph.size) return found;
      if (asked >= OVERSAMPLE_MAX) return filter.length === 0 ? found : undefined;
    }
  }

  *#pendingMemories(filter: Filter): Generator<BareId> {
    for (const label of this.#pending) {
      const memory = this.#store.get(labels, numberKey(label));
      if (memory !== undefined && matches(this.#store, filter, memory)) yield memory;
    }
  }

  #stepRebuild(): boolean {
    const rebuild = this.#rebuild;
    if (rebuild === undefined) return false;
    const label = rebuild.queue.pop();
    if (label === undefined) {
      this.#graph = rebuild.graph;
      this.#live = rebuild.live;
      this.#rebuild = undefined;
      return false;
    }
    if (this.#insert(rebuild.graph, label)) rebuild.live.add(label);
    return true;
  }

  /** @returns false when the vector has been deleted meanwhile */
  #insert(graph: Graph, label: number): boolean {
    const memory = this.#store.get(labels, numberKey(label));
    const bytes = memory === undefined ? undefined : this.#store.vectorBytes(memory);
    if (bytes === undefined) return false;
    graph.add(label, storedVector(bytes));
    this.#unsaved++;
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
