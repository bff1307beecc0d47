/**
 * The exact answer: compare with each vector. For small sets it is faster than any index, and it is what the index is
 * measured against.
 *
 * @module
 */
import { DIMENSION } from "../embeddings/embedder.ts";
import type { BareId } from "../lib/ids.ts";
import { firstLabelOf } from "../storage/memory-records.ts";
import type { Reader } from "../storage/store.ts";
import { HEAD, storedEmbedding, storedFingerprint, storedLabel, TAIL } from "./encoding.ts";

export interface Neighbour {
  memory: BareId;
  /** -1 to 1; vectors have unit length. */
  cosine: number;
}

/** The same of a vector that is known by its label. */
export interface LabelledCosine {
  label: number;
  cosine: number;
}

export function dot(a: Float32Array, b: Float32Array): number {
  // Four sums, so that the processor need not wait for one addition before the next.
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  for (let i = 0; i < DIMENSION; i += 4) {
    s0 += (a[i] as number) * (b[i] as number);
    s1 += (a[i + 1] as number) * (b[i + 1] as number);
    s2 += (a[i + 2] as number) * (b[i + 2] as number);
    s3 += (a[i + 3] as number) * (b[i + 3] as number);
  }
  return s0 + s1 + s2 + s3;
}

/** Which of the four sums of `dot` a number adds to depends on its place. Scratch. */
const sums = new Float64Array(4);

/** The same of what is stored, to the last bit: zeros that are left out add nothing, and the rest is added in the same order. */
export function storedDot(query: Float32Array, bytes: Uint8Array): number {
  const { head, places, tail } = storedEmbedding(bytes);
  sums.fill(0);
  if (places === undefined) addProducts(query, head, 0, HEAD);
  else
    for (let i = 0; i < head.length; i++) {
      const place = places[i] as number;
      sums[place & 3]! += (query[place] as number) * (head[i] as number);
    }
  addProducts(query, tail, HEAD, TAIL);
  return (sums[0] as number) + (sums[1] as number) + (sums[2] as number) + (sums[3] as number);
}

function addProducts(query: Float32Array, numbers: Float32Array, from: number, count: number): void {
  let s0 = sums[0] as number;
  let s1 = sums[1] as number;
  let s2 = sums[2] as number;
  let s3 = sums[3] as number;
  for (let i = 0; i < count; i += 4) {
    s0 += (query[from + i] as number) * (numbers[i] as number);
    s1 += (query[from + i + 1] as number) * (numbers[i + 1] as number);
    s2 += (query[from + i + 2] as number) * (numbers[i + 2] as number);
    s3 += (query[from + i + 3] as number) * (numbers[i + 3] as number);
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

/** Best first; of equal ones the newer first. */
export function byNearness(a: Neighbour, b: Neighbour): number {
  return b.cosine - a.cosine || (a.memory < b.memory ? 1 : -1);
}

/** Keeps the best of what it is shown. No memory may be shown twice. */
export class Nearest {
  #kept: Neighbour[] = [];
  /** The last of the best; what comes after it need not be kept. */
  #last: Neighbour | undefined;
  readonly #limit: number;
  readonly #floor: number;

  /** @param floor - nothing less near than this is kept */
  constructor(limit: number, floor = Number.NEGATIVE_INFINITY) {
    this.#limit = limit;
    this.#floor = floor;
  }

  /** Whether anything so near might be kept. What is no number is not. */
  accepts(cosine: number): boolean {
    return cosine >= (this.#last?.cosine ?? this.#floor);
  }

  offer(memory: BareId, cosine: number): void {
    if (!this.accepts(cosine)) return;
    const neighbour = { memory, cosine };
    if (this.#last !== undefined && byNearness(neighbour, this.#last) > 0) return;
    this.#kept.push(neighbour);
    // Cut rarely: sorting twice the limit once beats keeping order all the time.
    if (this.#kept.length >= this.#limit * 2) this.#cut();
  }

  best(): Neighbour[] {
    this.#cut();
    return this.#kept;
  }

  #cut(): void {
    this.#kept.sort(byNearness);
    this.#kept.length = Math.min(this.#kept.length, this.#limit);
    if (this.#kept.length === this.#limit) this.#last = this.#kept.at(-1);
  }
}

/** What is looked for. */
export interface Asked {
  readonly query: Float32Array;
  /** Hash of the query's words; 0 without words. */
  readonly fingerprint: number;
  readonly limit: number;
}

/**
 * Compares memories one by one: keeps the `limit` nearest, and with them as many of those whose words are the query's, however
 * far. One without a vector, or with one of another provider, is passed over.
 */
export class Scan {
  readonly #reader: Reader;
  readonly #asked: Asked;
  readonly #firstLabel: number;
  readonly #nearest: Nearest;
  readonly #same: Nearest;

  constructor(reader: Reader, asked: Asked) {
    this.#reader = reader;
    this.#asked = asked;
    this.#firstLabel = firstLabelOf(reader);
    this.#nearest = new Nearest(asked.limit);
    this.#same = new Nearest(asked.limit);
  }

  /** No memory may be compared twice. */
  compare(memory: BareId): void {
    const { query, fingerprint } = this.#asked;
    const bytes = this.#reader.vectorBytes(memory);
    if (bytes === undefined || storedLabel(bytes) < this.#firstLabel) return;
    const cosine = storedDot(query, bytes);
    this.#nearest.offer(memory, cosine);
    if (fingerprint !== 0 && storedFingerprint(bytes) === fingerprint) this.#same.offer(memory, cosine);
  }

  found(): Neighbour[] {
    return withoutTwice([...this.#nearest.best(), ...this.#same.best()]);
  }
}

/** The first of each memory. */
export function withoutTwice(neighbours: readonly Neighbour[]): Neighbour[] {
  const known = new Set<BareId>();
  return neighbours.filter(({ memory }) => !known.has(memory) && known.add(memory));
}
