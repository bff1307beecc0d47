/**
 * The vectors of one session or one user, to compare a query with all of them.
 *
 * It knows their slots alone: what is compared lies in the worker's rows. A vector that has no row yet is read from the store
 * with each search, which takes twenty times as long.
 *
 * @module
 */
import type { BareId } from "../../lib/ids.ts";
import { kthLargest } from "../../lib/kth-largest.ts";
import { type Candidate, type CandidateReader, RowCandidate } from "../candidates.ts";
import { closenessTo, type Query } from "../query.ts";
import type { SharedVectors } from "./shared-vectors.ts";

/** A set has room for an eighth more than it has, at least for this many. */
const ROOM_MIN = 16;
const ROOM_SHARE = 1 / 8;
/** Bytes of a vector without a row. */
const PENDING_BYTES = 100;

export class ScopeVectors {
  /** In no order. */
  #slots = new Uint32Array(ROOM_MIN);
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
      const longer = new Uint32Array(this.#count + Math.max(ROOM_MIN, Math.floor(this.#count * ROOM_SHARE)));
      longer.set(this.#slots);
      this.#slots = longer;
    }
    this.#slots[this.#count] = slot;
    this.#count++;
    this.#terms += rows.termCount(slot);
  }

  /** Takes a deleted vector out, if it is in it. */
  remove(id: BareId, shared: SharedVectors | undefined): void {
    if (this.#pending.delete(id) || shared === undefined) return;
    const slot = shared.slotOf(id);
    const at = slot === undefined ? -1 : this.#slots.subarray(0, this.#count).indexOf(slot);
    if (slot === undefined || at === -1) return;
    const last = --this.#count;
    this.#slots[at] = this.#slots[last]!;
    this.#terms -= shared.rows.termCount(slot);
  }

  /**
   * As many as are enough of those that score best, of equal ones the newer; or all when they are no more. In no order.
   *
   * @param reader - of this query, for vectors that have no row
   * @param termsMax - at most this many terms are looked at
   * @returns undefined when there are more
   */
  nearest(query: Query, shared: SharedVectors | undefined, reader: CandidateReader, termsMax = Infinity): Candidate[] | undefined {
    const pending: Candidate[] = [];
    let terms = this.#terms;
    for (const id of this.#pending) {
      const candidate = reader.candidate(id);
      if (candidate !== undefined) pending.push(candidate);
      terms += candidate?.terms.length ?? 0;
      if (terms > termsMax) return undefined;
    }
    if (shared === undefined) return best(pending, query);
    return best([...pending, ...this.#best(query, shared)], query);
  }

  /** As many as are enough of those that score best, of equal ones the newer; or all when they are no more. */
  #best(query: Query, shared: SharedVectors): RowCandidate[] {
    const slots = this.#slots.subarray(0, this.#count);
    const cosines = shared.rows.cosines(query.vector, slots);
    if (slots.length <= query.enough) return Array.from(slots, (slot, i) => new RowCandidate(shared, slot, cosines[i]!));
    const scores = shared.rows.closenessesTo(query, slots, cosines);
    const threshold = kthLargest(scores, query.enough);
    const found: RowCandidate[] = [];
    for (let i = 0; i < scores.length; i++) {
      if (scores[i]! > threshold) found.push(new RowCandidate(shared, slots[i]!, cosines[i]!, scores[i]));
    }
    if (threshold <= 0 && query.isZeroLeftOut === true) return found;
    const tied = new NewestSlots(shared, query.enough - found.length);
    // The newest mostly come last: one look at each of the others leaves it out.
    for (let i = scores.length - 1; i >= 0; i--) if (scores[i] === threshold) tied.offer(slots[i]!, cosines[i]!);
    return [...found, ...tied.candidates(threshold)];
  }
}

/** Slots to keep of those that score the same: of equal cosines the newer. By words alone most memories score 0. */
class NewestSlots {
  readonly #shared: SharedVectors;
  readonly #count: number;
  /** The best first. */
  readonly #slots: number[] = [];
  readonly #cosines: number[] = [];

  constructor(shared: SharedVectors, count: number) {
    this.#shared = shared;
    this.#count = count;
  }

  offer(slot: number, cosine: number): void {
    let at = this.#slots.length;
    for (; at > 0 && this.#isBefore(slot, cosine, at - 1); at--);
    if (at === this.#count) return;
    this.#slots.splice(at, 0, slot);
    this.#cosines.splice(at, 0, cosine);
    if (this.#slots.length > this.#count) this.#slots.length = this.#cosines.length = this.#count;
  }

  candidates(closeness: number): RowCandidate[] {
    return this.#slots.map((slot, i) => new RowCandidate(this.#shared, slot, this.#cosines[i]!, closeness));
  }

  #isBefore(slot: number, cosine: number, at: number): boolean {
    const other = this.#cosines[at]!;
    return cosine > other || (cosine === other && this.#shared.ids.compareMemories(slot, this.#slots[at]!) > 0);
  }
}

/** As many as are enough, of equal ones the newer. */
function best(candidates: Candidate[], query: Query): Candidate[] {
  const { enough } = query;
  if (candidates.length <= enough) return candidates;
  const scored = candidates.map((candidate) => ({
    candidate,
    score: candidate.closeness ?? closenessTo(query, candidate.cosine, candidate.terms),
  }));
  scored.sort((a, b) => b.score - a.score || b.candidate.cosine - a.candidate.cosine || (a.candidate.memory < b.candidate.memory ? 1 : -1));
  return scored.slice(0, enough).map(({ candidate }) => candidate);
}
