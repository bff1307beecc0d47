/**
 * What a search looks at closely: memories near to the query, with all that scoring one needs, so that no vector is read
 * again.
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import type { Collection } from "../storage/collections.ts";
import { generationOf, vectorOf } from "../storage/memory-records.ts";
import type { Reader } from "../storage/access.ts";
import { dotStored } from "./encoding.ts";
import { storedGeneration, storedMemory, storedTerms } from "./encoding.ts";
import type { Neighbour, Query } from "./query.ts";

/** When its memory has another vector by now, the candidate is out of date. The cosine is exact. */
export interface Candidate extends Neighbour {
  readonly terms: Uint32Array;
}

/** Many candidates, as they are posted from one thread to the other: of few values, since each takes its time. */
export interface PackedCandidates {
  /** The ids of memories, and then of their vectors, end to end. */
  ids: string;
  cosines: Float64Array;
  /** The terms of one memory after the other; `termEnds` says where those of each end. */
  terms: Uint32Array;
  termEnds: Uint32Array;
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
  const termEnds = new Uint32Array(candidates.length);
  let end = 0;
  for (const [i, { terms }] of candidates.entries()) termEnds[i] = end += terms.length;
  const terms = new Uint32Array(end);
  for (const [i, candidate] of candidates.entries()) terms.set(candidate.terms, termEnds[i]! - candidate.terms.length);
  return {
    ids: [...candidates.map(({ memory }) => memory), ...candidates.map(({ id }) => id)].join(""),
    cosines: Float64Array.from(candidates, ({ cosine }) => cosine),
    terms,
    termEnds,
  };
}

export function unpack({ ids, cosines, terms, termEnds }: PackedCandidates): Candidate[] {
  const idAt = (i: number): BareId => ids.slice(i * BARE_ID_LENGTH, (i + 1) * BARE_ID_LENGTH);
  return Array.from(cosines, (cosine, i) => ({
    memory: idAt(i),
    id: idAt(cosines.length + i),
    cosine,
    terms: terms.subarray(i === 0 ? 0 : termEnds[i - 1], termEnds[i]),
  }));
}
