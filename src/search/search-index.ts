/**
 * All that searches go through, with one numbering: the words of every vector, its numbers, and the graph.
 *
 * ```
 * store ──▶ discovered ──ingest──▶ slots, terms, rows ──insert──▶ graph, once there are enough
 *                                   all of it                slots before `graphEnd`
 * ```
 * Whatever is ingested is found by its words and can be compared; what is not in the graph yet is compared with every query. Slots
 * rise with ids, so the graph has all slots up to one, but those that were removed before it came to them.
 *
 * @module
 */
import { randomUUID } from "node:crypto";
import type { BareId } from "../lib/ids.ts";
import type { Reader } from "../storage/access.ts";
import { MAX_KEY, successor } from "../storage/keys.ts";
import type { VectorTable } from "../storage/tables.ts";
import { dotStored, hasNoVector, storedGeneration, storedMemory, storedPassages, storedTerms } from "./encoding.ts";
import { HnswIndex } from "./graph/hnsw-index.ts";
import type { IndexBytes } from "./index-status.ts";
import { closenessTo, type Query } from "./query.ts";
import type { Shared } from "./scopes/shared-vectors.ts";
import { Slots } from "./slots.ts";
import { TermIndex } from "./words/term-index.ts";
import { VectorRows } from "./vector-rows.ts";

const IDS_PER_READ = 10_000;

/** Part of an index in a snapshot; rows are read from the store. */
export interface SavedParts {
  slots: Slots;
  terms: TermIndex;
  graph: HnswIndex;
  graphEnd: number;
}

export class SearchIndex {
  /** Vectors of other generations are another provider's. */
  readonly generation: number;
  readonly #table: VectorTable;
  readonly slots: Slots;
  readonly terms: TermIndex;
  readonly rows = new VectorRows();
  /** First id that was not discovered yet: ids are given inside transactions and rise, also across restarts. */
  #trackFrom = "";
  /** Vectors that are not ingested yet, from `#discoveredAt` on, oldest first. */
  #discovered: BareId[] = [];
  #discoveredAt = 0;
  #graph: HnswIndex | undefined;
  #graphEnd: number;
  /** Slots from `#graphEnd` on that were removed. */
  #removedAhead = 0;
  /** Slots to be removed from the graph once it may be written to. */
  #toRemove: number[] = [];
  readonly #name = randomUUID();
  #shared: Shared | undefined;

  constructor(table: VectorTable, generation: number, parts?: SavedParts) {
    this.#table = table;
    this.generation = generation;
    this.slots = parts?.slots ?? Slots.empty();
    this.terms = parts?.terms ?? TermIndex.empty();
    this.#graph = parts?.graph;
    this.#graphEnd = parts?.graphEnd ?? 0;
    const { length } = this.slots;
    if (length > 0) this.#trackFrom = successor(this.slots.id(length - 1));
    for (let slot = this.#graphEnd; slot < this.slots.length; slot++) if (!this.slots.has(slot)) this.#removedAhead++;
  }

  get graph(): HnswIndex | undefined {
    return this.#graph;
  }

  /** The first slot that is not in the graph. */
  get graphEnd(): number {
    return this.#graphEnd;
  }

  get bytes(): IndexBytes {
    return { rows: this.rows.bytes, ids: this.slots.bytes, terms: this.terms.bytes, graph: this.#graph?.bytes ?? 0 };
  }

  /** Vectors that are not ingested yet. */
  get behind(): number {
    return this.#discovered.length - this.#discoveredAt;
  }

  /** Vectors that are ingested and not in the graph. */
  get waiting(): number {
    return this.slots.length - this.#graphEnd - this.#removedAhead;
  }

  /** Checks whether the numbers of all that is ingested can be compared here. */
  get hasAllRows(): boolean {
    return this.rows.length === this.slots.length;
  }

  /** Message to the request thread: another object whenever that has to be told again. */
  get shared(): Shared {
    const rows = this.rows.shared;
    if (this.#shared?.rows !== rows)
      this.#shared = { index: this.#name, generation: this.generation, ids: [...this.slots.ids.buffers], rows };
    return this.#shared;
  }

  /** Notes the vectors that were stored since the last look. */
  note(reader: Reader): void {
    for (;;) {
      const ids = reader.keys(this.#table, { from: this.#trackFrom, to: MAX_KEY, limit: IDS_PER_READ });
      for (const id of ids) this.#discovered.push(id);
      const last = ids.at(-1);
      if (last !== undefined) this.#trackFrom = successor(last);
      if (ids.length < IDS_PER_READ) return;
    }
  }

  /** Ingests some of what was discovered, or the numbers of what a snapshot had. @returns whether there was anything to do */
  ingest(reader: Reader, count: number): boolean {
    if (!this.hasAllRows) {
      if (this.rows.length === 0) this.rows.expect(this.slots.partitions());
      const end = Math.min(this.slots.length, this.rows.length + count);
      while (this.rows.length < end) this.rows.add(this.#stored(reader, this.slots.id(this.rows.length)));
      if (this.behind === 0) return true;
    }
    if (this.behind === 0) return false;
    const end = Math.min(this.#discovered.length, this.#discoveredAt + count);
    for (; this.#discoveredAt < end; this.#discoveredAt++) this.#add(reader, this.#discovered[this.#discoveredAt]!);
    if (this.behind === 0) {
      this.#discovered = [];
      this.#discoveredAt = 0;
    }
    return true;
  }

  #add(reader: Reader, id: BareId): void {
    const stored = this.#stored(reader, id);
    if (stored === undefined) return;
    const hadAllRows = this.hasAllRows;
    const slot = this.slots.add(id, storedMemory(stored));
    this.terms.add(slot, storedTerms(stored));
    if (hadAllRows) this.rows.add(stored);
  }

  /** Inserts the next slot into the graph, where it has a vector; without one it is found by its words. @returns whether there was one */
  insert(reader: Reader): boolean {
    if (this.#graphEnd === this.slots.length) return false;
    this.#graph ??= HnswIndex.empty();
    const slot = this.#graphEnd;
    if (this.slots.has(slot)) {
      const stored = this.#stored(reader, this.slots.id(slot));
      if (stored === undefined) this.remove(slot);
      else if (!hasNoVector(stored)) this.#graph.add(slot, storedPassages(stored));
    }
    if (!this.slots.has(slot)) this.#removedAhead--;
    this.#graphEnd++;
    return true;
  }

  /** The vector is no longer in the store. */
  remove(slot: number): void {
    if (!this.slots.has(slot)) return;
    this.slots.remove(slot);
    if (slot < this.#graphEnd) this.#toRemove.push(slot);
    else this.#removedAhead++;
  }

  /** Takes out of the graph what was removed; not to be called while it is written to disk. */
  removeDeleted(): void {
    for (const slot of this.#toRemove) this.#graph?.remove(slot);
    this.#toRemove = [];
  }

  /** The cosines of a query with the vectors of some slots; of one that is gone it is 0. */
  cosines(reader: Reader, query: Int16Array, slots: Uint32Array): Float64Array {
    if (this.hasAllRows) return this.rows.cosines(query, slots);
    const rows = this.rows.length;
    const inRows = this.rows.cosines(
      query,
      slots.filter((slot) => slot < rows),
    );
    let next = 0;
    return Float64Array.from(slots, (slot) => {
      if (slot < rows) return inRows[next++]!;
      const stored = this.#stored(reader, this.slots.id(slot));
      return stored === undefined ? 0 : dotStored(query, stored);
    });
  }

  /** Values of `closenessTo` for some slots, by their cosines; -Infinity for one that is gone. */
  closeness(reader: Reader, query: Query, slots: Uint32Array, cosines: Float64Array): Float64Array {
    return cosines.map((cosine, i) => {
      const slot = slots[i]!;
      if (!this.slots.has(slot)) return Number.NEGATIVE_INFINITY;
      if (slot < this.rows.length) return this.rows.closenessTo(query, slot, cosine);
      const stored = this.#stored(reader, this.slots.id(slot));
      return stored === undefined ? Number.NEGATIVE_INFINITY : closenessTo(query, cosine, storedTerms(stored));
    });
  }

  release(): void {
    this.#graph?.release();
    this.#graph = undefined;
  }

  /** Stored form of a vector of this generation, valid until the next read; undefined when it is gone. */
  #stored(reader: Reader, id: BareId): Uint8Array | undefined {
    const bytes = reader.vectorBytes(this.#table, id);
    return bytes !== undefined && storedGeneration(bytes) === this.generation ? bytes : undefined;
  }
}
