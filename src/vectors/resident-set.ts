/**
 * The vectors of one session or one user, to compare a query with all of them.
 *
 * It knows their slots alone: what is compared lies in the worker's rows. A vector that has no row yet is read from the store with
 * each search, which takes twenty times as long.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { kthLargest } from "../lib/kth-largest.ts";
import type { Candidate, CandidateReader } from "./candidates.ts";
import type { ScoredQuery } from "./query.ts";
import type { SharedVectors } from "./shared-vectors.ts";

const SLOTS_FIRST = 16;
/** Terms that share their last bits share a place in a table of those that a query asks for. */
const MASK = 16_383;
/** The terms of a memory that has no word but a fingerprint. */
const NO_WORDS = Uint32Array.of(0);
/** What a vector without a row takes. */
const PENDING_BYTES = 100;

export class ResidentSet {
  /** In no order. */
  #slots = new Uint32Array(SLOTS_FIRST);
  #count = 0;
  /** Vectors that have no row yet. */
  readonly #pending = new Set<BareId>();
  #rowsSeen = 0;
  /** Terms of those that have rows. */
  #terms = 0;

  /** Vectors, without deleted ones. */
  get size(): number {
    return this.#count + this.#pending.size;
  }

  get pending(): number {
    return this.#pending.size;
  }

  get terms(): number {
    return this.#terms;
  }

  get bytes(): number {
    return this.#slots.byteLength + this.#pending.size * PENDING_BYTES;
  }

  has(id: BareId, shared: SharedVectors | undefined): boolean {
    if (this.#pending.has(id)) return true;
    const slot = shared?.slotOf(id);
    return slot !== undefined && this.#slots.subarray(0, this.#count).includes(slot);
  }

  /** Adds a vector that is not in it. */
  add(id: BareId, shared: SharedVectors | undefined): void {
    const slot = shared?.slotOf(id);
    if (slot === undefined || shared === undefined) this.#pending.add(id);
    else this.#addSlot(slot, shared);
  }

  /** Finds the rows that came since the last look. */
  settle(shared: SharedVectors | undefined): void {
    if (this.#pending.size === 0 || shared === undefined || shared.rows.length === this.#rowsSeen) return;
    this.#rowsSeen = shared.rows.length;
    for (const id of this.#pending) {
      const slot = shared.slotOf(id);
      if (slot === undefined) continue;
      this.#pending.delete(id);
      this.#addSlot(slot, shared);
    }
  }

  #addSlot(slot: number, { rows }: SharedVectors): void {
    if (this.#count === this.#slots.length) {
      const slots = new Uint32Array(2 * this.#count);
      slots.set(this.#slots);
      this.#slots = slots;
    }
    this.#slots[this.#count++] = slot;
    this.#terms += rows.termCount(slot);
  }

  /** Takes a deleted vector out, if it is in it. */
  remove(id: BareId, shared: SharedVectors | undefined): void {
    if (this.#pending.delete(id) || shared === undefined) return;
    const slot = shared.slotOf(id);
    const at = slot === undefined ? -1 : this.#slots.subarray(0, this.#count).indexOf(slot);
    if (slot === undefined || at === -1) return;
    this.#slots[at] = this.#slots[--this.#count]!;
    this.#terms -= shared.rows.termCount(slot);
  }

  /**
   * The `limit` that score best, of equal ones the newer; or all when they are no more. In no order.
   *
   * @param reader - of this query, for vectors that have no row
   * @param termsMax - at most this many terms are looked at
   * @returns undefined when there are more
   */
  nearest(query: ScoredQuery, shared: SharedVectors | undefined, reader: CandidateReader, termsMax = Infinity): Candidate[] | undefined {
    const pending: Candidate[] = [];
    let terms = this.#terms;
    for (const id of this.#pending) {
      const candidate = reader.candidate(id);
      if (candidate !== undefined) pending.push(candidate);
      terms += candidate?.terms.length ?? 0;
      if (terms > termsMax) return undefined;
    }
    if (shared === undefined) return best(pending, query);
    const slots = this.#slots.subarray(0, this.#count);
    const cosines = shared.rows.cosines(query.vector, slots);
    const candidateAt = (i: number): Candidate => {
      const slot = slots[i]!;
      return { memory: shared.ids.memory(slot), id: shared.ids.id(slot), cosine: cosines[i]!, terms: shared.rows.terms(slot) };
    };
    if (slots.length <= query.limit) return best([...pending, ...Array.from(slots, (_, i) => candidateAt(i))], query);
    const scores = this.#scores(query, slots, cosines, shared);
    const bar = kthLargest(scores, query.limit);
    const found = pending;
    for (let i = 0; i < scores.length; i++) if (scores[i]! >= bar) found.push(candidateAt(i));
    return best(found, query);
  }

  /** Most memories have none of the query's words: then their terms do not matter. */
  #scores({ words: { keys }, score }: ScoredQuery, slots: Uint32Array, cosines: Float64Array, { rows }: SharedVectors): Float64Array {
    const mayAnswer = new Uint8Array(MASK + 1);
    for (let entry = 1; entry < keys.length; entry++) mayAnswer[keys[entry]! & MASK] = 1;
    const scores = new Float64Array(cosines.length);
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!;
      const isToBeRead = rows.hasMarked(slot, mayAnswer) || rows.termCount(slot) === 0;
      scores[i] = score(cosines[i]!, isToBeRead ? rows.terms(slot) : NO_WORDS);
    }
    return scores;
  }
}

/** As many as are asked for, of equal ones the newer. */
function best(candidates: Candidate[], { limit, score }: ScoredQuery): Candidate[] {
  if (candidates.length <= limit) return candidates;
  const scored = candidates.map((candidate) => ({ candidate, score: score(candidate.cosine, candidate.terms) }));
  scored.sort((a, b) => b.score - a.score || b.candidate.cosine - a.candidate.cosine || (a.candidate.memory < b.candidate.memory ? 1 : -1));
  return scored.slice(0, limit).map(({ candidate }) => candidate);
}
