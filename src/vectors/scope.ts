/**
 * The vectors of one session or one user in memory, to compare a query with all of them.
 *
 * Reading a vector in the store takes longer than comparing it, and of the built-in provider's 1536 numbers four fifths are
 * zero. So the numbers that differ from zero stand here with their places, but for the last ones, which in those vectors are
 * rarely zero and stand in full: 1.3 KB and 0.2 µs for a memory instead of 6.2 KB and 2 µs. A vector of any other provider
 * fits too, with 6.2 KB.
 *
 * The cosines are those of `dot` to the last bit: what is left out adds nothing, and the rest is added in the same order.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { largest } from "../lib/largest.ts";
import type { Candidate } from "./candidates.ts";
import { HEAD, storedEmbedding, TAIL } from "./encoding.ts";

/** Labels are not negative: this one says that the vector is gone. */
const GONE = -1;
const VECTORS_FIRST = 16;

/** The query's numbers. Scratch. */
const asked = new Float64Array(HEAD);
const askedTail = new Float64Array(TAIL);
const sums = new Float64Array(4);

export class Scope {
  readonly #memories: BareId[] = [];
  readonly #labels: number[] = [];
  /** Where each one is among the others. */
  readonly #positions = new Map<number, number>();
  #tails = new Float32Array(VECTORS_FIRST * TAIL);
  /** The numbers of one head after the other that are not zero, where those of each end, and their places unless all are there. */
  #values = new Float32Array(VECTORS_FIRST * 48);
  #places = new Uint16Array(VECTORS_FIRST * 48);
  readonly #headEnds: number[] = [];
  #placesEnd = 0;
  #termBytes = 0;
  readonly #terms: Uint32Array[] = [];

  /** Vectors, without those that are gone. */
  get size(): number {
    return this.#positions.size;
  }

  /** Vectors that are gone and still take room. */
  get gone(): number {
    return this.#labels.length - this.size;
  }

  get bytes(): number {
    const numbers = this.#tails.byteLength + this.#values.byteLength + this.#places.byteLength;
    return numbers + this.#termBytes + this.#labels.length * BYTES_BESIDE;
  }

  /** A label that is there already changes nothing. */
  add(memory: BareId, bytes: Uint8Array): void {
    const { label, head, places, tail, terms } = storedEmbedding(bytes);
    if (this.#positions.has(label)) return;
    const position = this.#labels.length;
    const start = this.#headEnds.at(-1) ?? 0;
    const end = start + head.length;
    this.#values = grown(this.#values, end);
    this.#values.set(head, start);
    if (places !== undefined) {
      this.#places = grown(this.#places, this.#placesEnd + places.length);
      this.#places.set(places, this.#placesEnd);
      this.#placesEnd += places.length;
    }
    this.#tails = grown(this.#tails, (position + 1) * TAIL);
    this.#tails.set(tail, position * TAIL);
    this.#headEnds.push(end);
    this.#terms.push(terms.slice());
    this.#termBytes += terms.byteLength;
    this.#memories.push(memory);
    this.#labels.push(label);
    this.#positions.set(label, position);
  }

  remove(label: number): void {
    const position = this.#positions.get(label);
    if (position === undefined) return;
    this.#positions.delete(label);
    this.#labels[position] = GONE;
  }

  /** The `limit` nearest, of equal ones the newer; or all when they are no more. In no order. */
  nearest(query: Float32Array, limit: number): Candidate[] {
    const cosines = this.#cosines(query);
    const found: Candidate[] = [];
    const bar = this.size > limit ? Math.max(largest(cosines, limit), -Number.MAX_VALUE) : -Number.MAX_VALUE;
    let tied = 0;
    for (let position = 0; position < cosines.length; position++) {
      const cosine = cosines[position] as number;
      if (cosine < bar) continue;
      if (cosine === bar) tied++;
      const memory = this.#memories[position] as BareId;
      found.push({ memory, label: this.#labels[position] as number, cosine, terms: this.#terms[position] as Uint32Array });
    }
    if (tied < 2 || found.length <= limit) return found;
    const kept = found.filter(({ cosine }) => cosine !== bar);
    const equals = found.filter(({ cosine }) => cosine === bar).sort((a, b) => (a.memory < b.memory ? 1 : -1));
    return [...kept, ...equals.slice(0, limit - kept.length)];
  }

  /** By position; of what is gone, and of what is no number, less than any. */
  #cosines(query: Float32Array): Float64Array {
    asked.set(query.subarray(0, HEAD));
    askedTail.set(query.subarray(HEAD));
    const cosines = new Float64Array(this.#labels.length);
    compare(this.#headEnds, this.#places, this.#values, this.#tails, cosines);
    for (let position = 0; position < cosines.length; position++) {
      if (this.#labels[position] === GONE || Number.isNaN(cosines[position])) cosines[position] = Number.NEGATIVE_INFINITY;
    }
    return cosines;
  }
}

function compare(headEnds: readonly number[], places: Uint16Array, values: Float32Array, tails: Float32Array, cosines: Float64Array): void {
  for (let position = 0, at = 0, placeAt = 0, tailAt = 0; position < cosines.length; position++) {
    const end = headEnds[position] as number;
    // Which of the four sums of `dot` a product goes to depends on its place.
    sums[0] = sums[1] = sums[2] = sums[3] = 0;
    const isFull = end - at === HEAD;
    if (!isFull) {
      for (; at < end; at++) {
        const place = places[placeAt++] as number;
        sums[place & 3]! += (asked[place] as number) * (values[at] as number);
      }
    }
    let s0 = sums[0];
    let s1 = sums[1];
    let s2 = sums[2];
    let s3 = sums[3];
    for (let i = 0; at < end; i += 4, at += 4) {
      s0 += (asked[i] as number) * (values[at] as number);
      s1 += (asked[i + 1] as number) * (values[at + 1] as number);
      s2 += (asked[i + 2] as number) * (values[at + 2] as number);
      s3 += (asked[i + 3] as number) * (values[at + 3] as number);
    }
    for (let i = 0; i < TAIL; i += 4, tailAt += 4) {
      s0 += (askedTail[i] as number) * (tails[tailAt] as number);
      s1 += (askedTail[i + 1] as number) * (tails[tailAt + 1] as number);
      s2 += (askedTail[i + 2] as number) * (tails[tailAt + 2] as number);
      s3 += (askedTail[i + 3] as number) * (tails[tailAt + 3] as number);
    }
    cosines[position] = s0 + s1 + s2 + s3;
  }
}

/** The id, the label, its position, where its numbers end, and around its terms. */
const BYTES_BESIDE = 200;
const GROWTH = 1.25;

/** The same with room for so many, or longer. */
function grown<Numbers extends Float32Array | Uint16Array>(numbers: Numbers, length: number): Numbers {
  if (length <= numbers.length) return numbers;
  const longer = new (numbers.constructor as new (length: number) => Numbers)(Math.ceil(Math.max(length, numbers.length * GROWTH)));
  longer.set(numbers);
  return longer;
}
