/**
 * What a search looks at closely: memories near to the query, with all that scoring one needs, so that no vector is read
 * again.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { firstLabelOf } from "../storage/memory-records.ts";
import type { Reader } from "../storage/store.ts";
import { storedLabel, storedTerms } from "./encoding.ts";
import { storedDot } from "./exact.ts";

export interface Candidate {
  memory: BareId;
  /** Which of the vectors it ever had: when it has another one by now, the rest is out of date. */
  label: number;
  /** With the query, exactly. */
  cosine: number;
  terms: Uint32Array;
}

/** The same of many, as it goes from one thread to the other. */
export interface PackedCandidates {
  memories: BareId[];
  labels: Uint32Array;
  cosines: Float64Array;
  /** The terms of one memory after the other; `termEnds` says where those of each end. */
  terms: Uint32Array;
  termEnds: Uint32Array;
}

/** Reads for one query from the store what makes candidates of memories, each once. */
export class Reading {
  readonly #store: Reader;
  readonly #query: Float32Array;
  readonly #firstLabel: number;
  readonly #candidates = new Map<BareId, Candidate | undefined>();

  constructor(store: Reader, query: Float32Array) {
    this.#store = store;
    this.#query = query;
    this.#firstLabel = firstLabelOf(store);
  }

  /** Undefined without a vector, or with one of another provider. */
  candidate(memory: BareId): Candidate | undefined {
    if (!this.#candidates.has(memory)) this.#candidates.set(memory, this.#read(memory));
    return this.#candidates.get(memory);
  }

  #read(memory: BareId): Candidate | undefined {
    const bytes = this.#store.vectorBytes(memory);
    const label = bytes === undefined ? undefined : storedLabel(bytes);
    if (bytes === undefined || label === undefined || label < this.#firstLabel) return undefined;
    return { memory, label, cosine: storedDot(this.#query, bytes), terms: storedTerms(bytes).slice() };
  }
}

export function pack(candidates: readonly Candidate[]): PackedCandidates {
  const termEnds = new Uint32Array(candidates.length);
  let end = 0;
  for (const [i, { terms }] of candidates.entries()) termEnds[i] = end += terms.length;
  const terms = new Uint32Array(end);
  for (const [i, candidate] of candidates.entries()) terms.set(candidate.terms, (termEnds[i] as number) - candidate.terms.length);
  return {
    memories: candidates.map(({ memory }) => memory),
    labels: Uint32Array.from(candidates, ({ label }) => label),
    cosines: Float64Array.from(candidates, ({ cosine }) => cosine),
    terms,
    termEnds,
  };
}

export function unpack({ memories, labels, cosines, terms, termEnds }: PackedCandidates): Candidate[] {
  return memories.map((memory, i) => ({
    memory,
    label: labels[i] as number,
    cosine: cosines[i] as number,
    terms: terms.subarray(i === 0 ? 0 : termEnds[i - 1], termEnds[i]),
  }));
}
