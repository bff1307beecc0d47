/**
 * The vectors of one session or one user in memory, to compare a query with all of them.
 *
 * Reading a vector in the store takes longer than comparing it. So the vectors stand here as they are stored, without zeros,
 * in a form for `scope-kernel.ts`: 1.5 KB and 0.1 µs for a memory of the built-in provider. A vector of any other provider
 * fits too, with 6.2 KB.
 *
 * ```
 * rows     four numbers of the head and their places; the places of the first leave 0 when divided by 4, of the second 1, …
 * numbers  the tail; or the whole vector, when the head is kept in full: then there are no rows
 * ```
 *
 * @module
 */
import { DIMENSION } from "../embeddings/embedder.ts";
import type { BareId } from "../lib/ids.ts";
import { kthLargest } from "../lib/kth-largest.ts";
import { Arena, roundedUp } from "./arena.ts";
import type { Candidate } from "./candidates.ts";
import { HEAD, storedEmbedding, TAIL } from "./encoding.ts";
import { compareOn, type Compare } from "./scope-kernel.ts";

/** Labels are not negative: this one says that the vector is gone. */
const GONE = -1;

const DOUBLE_BYTES = 8;
const FLOAT_BYTES = 4;
const ENTRY_WORDS = 4;
const ENTRY_BYTES = ENTRY_WORDS * 4;
const ROW_BYTES = 24;
/** At the start of the arena: the query, entries of the kernel's, and the cosines it returns for one batch. */
const AT_ONCE = 2_048;
const QUERY_AT = 0;
const ENTRIES_AT = QUERY_AT + DIMENSION * DOUBLE_BYTES;
const COSINES_AT = ENTRIES_AT + AT_ONCE * ENTRY_BYTES;
const RESERVED = COSINES_AT + AT_ONCE * DOUBLE_BYTES;

/** Where scopes have their vectors, and what compares them. */
export class ScopeMemory extends Arena {
  readonly compare: Compare;

  /** @param kernel - how to compare; for tests to choose */
  constructor(kernel: (memory: WebAssembly.Memory) => Compare = compareOn) {
    super(RESERVED);
    this.compare = kernel(this.memory);
  }
}

export class Scope {
  readonly #memory: ScopeMemory;
  readonly #memories: BareId[] = [];
  readonly #labels: number[] = [];
  /** Where each one is among the others. */
  readonly #positions = new Map<number, number>();
  /** The kernel's entry for each position. */
  #entries = new Uint32Array(16 * ENTRY_WORDS);
  readonly #terms: Uint32Array[] = [];
  /** The last term of each, which stands for all its words in order. */
  readonly #fingerprints: number[] = [];
  #pieceBytes = 0;
  #termBytes = 0;

  constructor(memory: ScopeMemory) {
    this.#memory = memory;
  }

  /** Vectors, without those that are gone. */
  get size(): number {
    return this.#positions.size;
  }

  /** Vectors that are gone and still take room. */
  get gone(): number {
    return this.#labels.length - this.size;
  }

  get bytes(): number {
    return this.#pieceBytes + this.#termBytes + this.#labels.length * BYTES_BESIDE;
  }

  /** A label that is there already changes nothing. */
  add(memory: BareId, bytes: Uint8Array): void {
    const { label, head, places, tail, terms } = storedEmbedding(bytes);
    if (this.#positions.has(label)) return;
    const position = this.#labels.length;
    if (this.#entries.length < (position + 1) * ENTRY_WORDS) {
      const more = new Uint32Array(this.#entries.length * 2);
      more.set(this.#entries);
      this.#entries = more;
    }
    this.#entries.set(places === undefined ? this.#putNumbers(head, tail) : this.#putRows(head, places, tail), position * ENTRY_WORDS);
    this.#terms.push(terms.slice());
    this.#fingerprints.push(terms.at(-1) ?? GONE);
    this.#termBytes += terms.byteLength;
    this.#memories.push(memory);
    this.#labels.push(label);
    this.#positions.set(label, position);
  }

  #putNumbers(head: Float32Array, tail: Float32Array): readonly number[] {
    const at = this.#take(DIMENSION * FLOAT_BYTES);
    const { floats } = this.#memory.views;
    floats.set(head, at / FLOAT_BYTES);
    floats.set(tail, at / FLOAT_BYTES + HEAD);
    return [at, at, at + DIMENSION * FLOAT_BYTES, QUERY_AT];
  }

  #putRows(head: Float32Array, places: Uint16Array, tail: Float32Array): readonly number[] {
    counts.fill(0);
    for (let i = 0; i < places.length; i++) counts[(places[i] as number) & 3]!++;
    const rows = Math.max(...counts);
    const at = this.#take(rows * ROW_BYTES + TAIL * FLOAT_BYTES);
    const { floats, shorts, words } = this.#memory.views;
    const numbersAt = at + rows * ROW_BYTES;
    // What is left of a row adds zero times the query's first number.
    words.fill(0, at / 4, numbersAt / 4);
    counts.fill(0);
    for (let i = 0; i < places.length; i++) {
      const place = places[i] as number;
      const column = place & 3;
      const rowAt = at + counts[column]!++ * ROW_BYTES;
      floats[rowAt / 4 + column] = head[i] as number;
      shorts[rowAt / 2 + 8 + column] = place * DOUBLE_BYTES;
    }
    floats.set(tail, numbersAt / FLOAT_BYTES);
    return [at, numbersAt, numbersAt + TAIL * FLOAT_BYTES, QUERY_AT + HEAD * DOUBLE_BYTES];
  }

  #take(bytes: number): number {
    this.#pieceBytes += roundedUp(bytes);
    return this.#memory.take(bytes);
  }

  remove(label: number): void {
    const position = this.#positions.get(label);
    if (position === undefined) return;
    this.#positions.delete(label);
    this.#labels[position] = GONE;
    this.#give(position);
  }

  /** To be called when it is of no more use. */
  release(): void {
    for (const position of this.#positions.values()) this.#give(position);
    this.#positions.clear();
  }

  #give(position: number): void {
    const at = this.#entries[position * ENTRY_WORDS] as number;
    const bytes = (this.#entries[position * ENTRY_WORDS + 2] as number) - at;
    this.#pieceBytes -= roundedUp(bytes);
    this.#memory.give(at, bytes);
    // The kernel looks at it all the same: at what is always there.
    this.#entries.set([QUERY_AT, QUERY_AT, QUERY_AT + 4 * FLOAT_BYTES, QUERY_AT], position * ENTRY_WORDS);
  }

  /**
   * The `limit` nearest, of equal ones the newer; or all when they are no more. With them as many of those whose words are the
   * query's, the newest, however far. In no order.
   *
   * @param fingerprint - of the query's words; 0 without
   */
  nearest(query: Float32Array, limit: number, fingerprint = 0): Candidate[] {
    const cosines = this.#cosines(query);
    const found: Candidate[] = [];
    const further: Candidate[] = [];
    const bar = this.size > limit ? Math.max(kthLargest(cosines, limit), -Number.MAX_VALUE) : -Number.MAX_VALUE;
    let tied = 0;
    for (let position = 0; position < cosines.length; position++) {
      const cosine = cosines[position] as number;
      if (cosine >= bar) found.push(this.#candidate(position, cosine));
      else if (this.#fingerprints[position] === fingerprint && cosine >= -Number.MAX_VALUE) further.push(this.#candidate(position, cosine));
      if (cosine === bar) tied++;
    }
    if (tied > 1 && found.length > limit) {
      const kept = found.filter(({ cosine }) => cosine !== bar);
      const equals = found.filter(({ cosine }) => cosine === bar).sort(newerFirst);
      further.push(...equals.slice(limit - kept.length).filter(({ terms }) => terms.at(-1) === fingerprint));
      found.splice(0, found.length, ...kept, ...equals.slice(0, limit - kept.length));
    }
    if (further.length > limit) further.sort(newerFirst).length = limit;
    return further.length === 0 ? found : [...found, ...further];
  }

  #candidate(position: number, cosine: number): Candidate {
    const memory = this.#memories[position] as BareId;
    return { memory, label: this.#labels[position] as number, cosine, terms: this.#terms[position] as Uint32Array };
  }

  /** By position; of what is gone, and of what is no number, less than any. */
  #cosines(query: Float32Array): Float64Array {
    const { compare, views } = this.#memory;
    views.doubles.set(query, QUERY_AT / DOUBLE_BYTES);
    const cosines = new Float64Array(this.#labels.length);
    for (let from = 0; from < cosines.length; from += AT_ONCE) {
      const to = Math.min(cosines.length, from + AT_ONCE);
      views.words.set(this.#entries.subarray(from * ENTRY_WORDS, to * ENTRY_WORDS), ENTRIES_AT / 4);
      compare(ENTRIES_AT, ENTRIES_AT + (to - from) * ENTRY_BYTES, QUERY_AT, COSINES_AT);
      cosines.set(views.doubles.subarray(COSINES_AT / DOUBLE_BYTES, COSINES_AT / DOUBLE_BYTES + to - from), from);
    }
    for (let position = 0; position < cosines.length; position++) {
      if (this.#labels[position] === GONE || Number.isNaN(cosines[position])) cosines[position] = Number.NEGATIVE_INFINITY;
    }
    return cosines;
  }
}

function newerFirst(a: Candidate, b: Candidate): number {
  return a.memory < b.memory ? 1 : -1;
}

/** How many rows have a number in each column. Scratch. */
const counts = new Uint16Array(4);

/** The id, the label, its position, its entry, and around its terms. */
const BYTES_BESIDE = 200;
