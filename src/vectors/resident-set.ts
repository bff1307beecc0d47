/**
 * The vectors of one session or one user in memory, to compare a query with all of them.
 *
 * Reading a vector in the store takes longer than comparing it. So the numbers are kept here as they are stored: 0.4 KB and
 * 0.06 µs for a memory of the built-in provider, 1.5 KB for one of any other.
 *
 * @module
 */
import { DIMENSION } from "../embeddings/embedder.ts";
import type { BareId } from "../lib/ids.ts";
import { kthLargest } from "../lib/kth-largest.ts";
import { Arena, roundedUp } from "./arena.ts";
import type { Candidate } from "./candidates.ts";
import { cosineOf, storedMemory, storedNumbers, storedTerms } from "./encoding.ts";
import { compareOn, type Compare } from "./resident-kernel.ts";
import type { ScoredQuery } from "./query.ts";

const NUMBER_BYTES = 2;
const ENTRY_WORDS = 4;
const ENTRY_BYTES = ENTRY_WORDS * 4;
/** At the start of the arena: the query, entries of the kernel's, and the sums it returns for one batch. */
const BATCH = 2_048;
const QUERY_AT = 0;
const ENTRIES_AT = QUERY_AT + DIMENSION * NUMBER_BYTES;
const SUMS_AT = ENTRIES_AT + BATCH * ENTRY_BYTES;
/** A damaged pair can name any of 65,536 places: wherever that leads is inside of the memory. */
const RESERVED = Math.max(SUMS_AT + BATCH * 4, QUERY_AT + 65_536 * NUMBER_BYTES);

/** Terms that share their last bits share a place in a table of those that a query asks for. */
const MASK = 16_383;
/** The terms of a memory that has no word but a fingerprint. */
const NO_WORDS = Uint32Array.of(0);

/** What a vector takes besides its numbers and terms: its two ids, its position and its entry. */
const BYTES_PER_VECTOR = 200;

/** Where resident sets have their vectors, and what compares them. */
export class VectorArena extends Arena {
  readonly compare: Compare;

  /** @param kernel - how to compare; for tests to choose */
  constructor(kernel: (memory: WebAssembly.Memory) => Compare = compareOn) {
    super(RESERVED);
    this.compare = kernel(this.memory);
  }
}

export class ResidentSet {
  readonly #arena: VectorArena;
  /** By position; a deleted vector has no id, and keeps its position. */
  readonly #ids: (BareId | undefined)[] = [];
  readonly #memories: BareId[] = [];
  /** The terms of one vector after the other, and where those of each end: less work for the garbage collector than an array each. */
  #terms = new Uint32Array(256);
  readonly #termEnds: number[] = [];
  readonly #positions = new Map<BareId, number>();
  /** The kernel's entry for each position. */
  #entries = new Uint32Array(16 * ENTRY_WORDS);
  /** By position. */
  readonly #scales: number[] = [];
  #numberBytes = 0;

  constructor(arena: VectorArena) {
    this.#arena = arena;
  }

  /** Vectors, without deleted ones. */
  get size(): number {
    return this.#positions.size;
  }

  /** Deleted vectors that still take room. */
  get deleted(): number {
    return this.#ids.length - this.size;
  }

  /** Terms of all vectors together. */
  get terms(): number {
    return this.#termEnds.at(-1) ?? 0;
  }

  get bytes(): number {
    return this.#numberBytes + this.#terms.byteLength + this.#ids.length * BYTES_PER_VECTOR;
  }

  /** Adds a vector, given as it is stored; one that is there already changes nothing. */
  add(id: BareId, bytes: Uint8Array): void {
    if (this.#positions.has(id)) return;
    const { numbers, place, pairs, scale } = storedNumbers(bytes);
    const position = this.#ids.length;
    if (this.#entries.length < (position + 1) * ENTRY_WORDS) {
      const entries = new Uint32Array(this.#entries.length * 2);
      entries.set(this.#entries);
      this.#entries = entries;
    }
    const length = numbers.byteLength + pairs.byteLength;
    const at = this.#arena.take(length);
    this.#numberBytes += roundedUp(length);
    this.#arena.bytes.set(bytes.subarray(0, length), at);
    this.#entries.set([at, at + numbers.byteLength, QUERY_AT + place * NUMBER_BYTES, at + length], position * ENTRY_WORDS);
    this.#addTerms(storedTerms(bytes));
    const memory = storedMemory(bytes);
    this.#scales.push(scale);
    this.#memories.push(memory === id ? id : memory);
    this.#ids.push(id);
    this.#positions.set(id, position);
  }

  #addTerms(terms: Uint32Array): void {
    const from = this.terms;
    const end = from + terms.length;
    if (end > this.#terms.length) {
      const larger = new Uint32Array(Math.max(end, 1.5 * this.#terms.length));
      larger.set(this.#terms);
      this.#terms = larger;
    }
    this.#terms.set(terms, from);
    this.#termEnds.push(end);
  }

  #termsAt(position: number): Uint32Array {
    return this.#terms.subarray(position === 0 ? 0 : this.#termEnds[position - 1], this.#termEnds[position]);
  }

  remove(id: BareId): void {
    const position = this.#positions.get(id);
    if (position === undefined) return;
    this.#positions.delete(id);
    this.#ids[position] = undefined;
    this.#free(position);
  }

  /** Gives its memory back; it must not be used any more. */
  release(): void {
    for (const position of this.#positions.values()) this.#free(position);
    this.#positions.clear();
  }

  #free(position: number): void {
    const at = this.#entries[position * ENTRY_WORDS]!;
    const length = this.#entries[position * ENTRY_WORDS + 3]! - at;
    this.#numberBytes -= roundedUp(length);
    this.#arena.give(at, length);
    // The kernel looks at it all the same: at what is always there.
    this.#entries.set([QUERY_AT, QUERY_AT + 16, QUERY_AT, QUERY_AT + 16], position * ENTRY_WORDS);
  }

  /** The `limit` that score best, of equal ones the newer; or all when they are no more. In no order. */
  nearest(query: ScoredQuery): Candidate[] {
    const cosines = this.#cosines(query.vector);
    const scores = this.size > query.limit ? this.#scores(query, cosines) : cosines;
    const bar = this.size > query.limit ? kthLargest(scores, query.limit) : -Number.MAX_VALUE;
    const found: Candidate[] = [];
    const tied: Candidate[] = [];
    for (let position = 0; position < scores.length; position++) {
      const score = scores[position]!;
      if (score >= bar) (score === bar ? tied : found).push(this.#candidate(position, cosines[position]!));
    }
    if (found.length + tied.length > query.limit) {
      tied.sort((a, b) => b.cosine - a.cosine || (a.memory < b.memory ? 1 : -1)).length = query.limit - found.length;
    }
    return [...found, ...tied];
  }

  /** By position; a deleted vector's is less than any. Most memories have none of the query's words: then their terms do not matter. */
  #scores({ words: { keys }, score }: ScoredQuery, cosines: Float64Array): Float64Array {
    const mayAnswer = new Uint8Array(MASK + 1);
    for (let entry = 1; entry < keys.length; entry++) mayAnswer[keys[entry]! & MASK] = 1;
    const scores = new Float64Array(cosines.length);
    const terms = this.#terms;
    for (let position = 0, at = 0; position < scores.length; position++) {
      const [from, end] = [at, this.#termEnds[position]!];
      let any = 0;
      for (; at < end; at++) any |= mayAnswer[terms[at]! & MASK]!;
      const cosine = cosines[position]!;
      scores[position] = cosine === -Infinity ? cosine : score(cosine, any === 0 && end > from ? NO_WORDS : terms.subarray(from, end));
    }
    return scores;
  }

  #candidate(position: number, cosine: number): Candidate {
    return { memory: this.#memories[position]!, id: this.#ids[position]!, cosine, terms: this.#termsAt(position) };
  }

  /** By position; a deleted vector's is less than any. */
  #cosines(query: Int16Array): Float64Array {
    const { compare, bytes } = this.#arena;
    const words = new Uint32Array(bytes.buffer);
    new Int16Array(bytes.buffer).set(query, QUERY_AT / NUMBER_BYTES);
    const cosines = new Float64Array(this.#ids.length);
    const sums = new Int32Array(bytes.buffer, SUMS_AT, BATCH);
    for (let from = 0; from < cosines.length; from += BATCH) {
      const count = Math.min(BATCH, cosines.length - from);
      words.set(this.#entries.subarray(from * ENTRY_WORDS, (from + count) * ENTRY_WORDS), ENTRIES_AT / 4);
      compare(ENTRIES_AT, ENTRIES_AT + count * ENTRY_BYTES, QUERY_AT, SUMS_AT);
      for (let i = 0; i < count; i++)
        cosines[from + i] = this.#ids[from + i] === undefined ? -Infinity : cosineOf(sums[i]!, this.#scales[from + i]!);
    }
    return cosines;
  }
}
