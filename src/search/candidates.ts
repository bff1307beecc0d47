/**
 * Candidates that a search looks at closely: memories near to the query, with all that scoring one needs, so that no vector is read
 * again.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import type { Collection } from "../storage/collections.ts";
import { generationOf, vectorOf } from "../storage/memory-records.ts";
import type { Reader } from "../storage/access.ts";
import { dotStored, storedGeneration, storedMemory, storedTerms } from "./encoding.ts";
import type { IdTable } from "./id-table.ts";
import { packed, unpacked } from "./packed.ts";
import type { Neighbour, Query } from "./query.ts";
import type { VectorRows } from "./vector-rows.ts";

/** Candidate, out of date once its memory has another vector. The cosine is exact. */
export interface Candidate extends Neighbour {
  readonly terms: Uint32Array;
  /** Value of `closenessTo` for it, where that is known. */
  readonly closeness?: number | undefined;
}

/** Ids and rows by slot: the same memory on both threads. */
export interface SlotTables {
  readonly ids: IdTable;
  readonly rows: VectorRows;
}

/** A candidate that has a row: its ids and terms are read when they are asked for, and most candidates' ids never are. */
export class RowCandidate implements Candidate {
  readonly slot: number;
  readonly cosine: number;
  readonly closeness: number | undefined;
  readonly #tables: SlotTables;
  #terms: Uint32Array | undefined;

  constructor(tables: SlotTables, slot: number, cosine: number, closeness?: number) {
    this.#tables = tables;
    this.slot = slot;
    this.cosine = cosine;
    this.closeness = closeness;
  }

  get memory(): BareId {
    return this.#tables.ids.memory(this.slot);
  }

  get id(): BareId {
    return this.#tables.ids.id(this.slot);
  }

  get terms(): Uint32Array {
    return (this.#terms ??= this.#tables.rows.terms(this.slot));
  }
}

/** Candidates as the worker posts them. */
export interface PackedCandidates {
  /** Slot and cosine of each that has a row, in the order in which they were found. */
  readonly inRows: string;
  /** Vectors without a row, if there are any. */
  readonly whole: readonly Candidate[] | undefined;
}

/** Reads the candidates of one query from the store. */
export class CandidateReader {
  readonly #reader: Reader;
  readonly #collection: Collection;
  readonly #query: Query;
  readonly #generation: number;

  constructor(reader: Reader, collection: Collection, query: Query) {
    this.#reader = reader;
    this.#collection = collection;
    this.#query = query;
    this.#generation = generationOf(reader);
  }

  /**
   * @param cosine - if it is known
   * @returns undefined when there is no such vector any more, or it is another provider's
   */
  candidate(id: BareId, cosine?: number): Candidate | undefined {
    const bytes = this.#reader.vectorBytes(this.#collection.vectors, id);
    return bytes === undefined ? undefined : this.#candidateOf(id, bytes, cosine);
  }

  /** The candidate that a memory is by its vector. */
  ofMemory(memory: BareId): Candidate | undefined {
    const found = vectorOf(this.#reader, this.#collection, memory);
    return found === undefined ? undefined : this.#candidateOf(found.id, found.bytes);
  }

  #candidateOf(id: BareId, bytes: Uint8Array, cosine?: number): Candidate | undefined {
    if (storedGeneration(bytes) !== this.#generation) return undefined;
    const terms = storedTerms(bytes).slice();
    return { memory: storedMemory(bytes), id, cosine: cosine ?? dotStored(this.#query.vector, bytes), terms };
  }
}

export function pack(candidates: readonly Candidate[]): PackedCandidates {
  const inRows = candidates.filter((candidate) => candidate instanceof RowCandidate);
  return {
    inRows: packed(PAIR_BYTES * inRows.length, (buffer) => {
      const pairs = new Float64Array(buffer);
      for (let i = 0; i < inRows.length; i++) {
        pairs[2 * i] = inRows[i]!.slot;
        pairs[2 * i + 1] = inRows[i]!.cosine;
      }
    }),
    whole: inRows.length === candidates.length ? undefined : candidates.filter((candidate) => !(candidate instanceof RowCandidate)),
  };
}

/** @param tables - of the index that found them, as they were announced last; undefined when there is no row yet */
export function unpack({ inRows, whole = [] }: PackedCandidates, tables: SlotTables | undefined): Candidate[] {
  const found = [...whole];
  if (tables === undefined) return found;
  const pairs = new Float64Array(unpacked(inRows));
  for (let i = 0; i < pairs.length; i += 2) found.push(new RowCandidate(tables, pairs[i]!, pairs[i + 1]!));
  return found;
}

const PAIR_BYTES = 16;
