/**
 * Every vector again, in one byte a number: little enough to compare a query with all of them.
 *
 * The graph leads from vector to near vector and passes by what lies apart, which is where a text lies that is like no
 * other. Among 3,000 texts of a few patterns and 170 unlike them, of the ten texts nearest to a question about one of the
 * 170 it found 56 %. Looking more widely costs more than looking at all: for 95 % of the ten nearest among 100,000 texts the
 * graph takes 18 ms, this takes 8 and misses none: 0.05 µs for each with a query of the built-in provider, 0.15 µs with any
 * other, more where others use the memory too. Rounding makes a cosine wrong by 0.001 at most as a rule: good enough to find
 * candidates, whose cosines are then computed from the vectors in the store. It is kept in memory only.
 *
 * ```
 * memory:  query, 1536 × int16  |  sums of 1024 points, 4 × int32 each  |  zeros  |  chunk  |  chunk  |  …
 * chunk:   numbers 0 to 15 of 1024 points  |  numbers 16 to 31 of the same points  |  …  |  numbers 1520 to 1535
 * ```
 * Most of a query's numbers are zero when it has few words. So a chunk is laid out number by number, and what would be
 * multiplied with sixteen zeros is not even read.
 *
 * @module
 */
import { DIMENSION } from "../embeddings/embedder.ts";
import { invariant } from "../lib/invariant.ts";
import { kernelOn, type Kernel } from "./coarse-kernel.ts";
import type { LabelledCosine } from "./exact.ts";

/** Two cosines that are further apart than this are in the right order, but for one pair in a thousand. */
export const COARSE_GAP = 0.0015;

const BYTE_MAX = 127;
/** Scales the query's numbers, which are at most 1, so that no sum of products exceeds 2^31. */
const QUERY_SCALE = 16_384;
const LAST_PLACE = DIMENSION - 1;

const BLOCK = 16;
const BLOCKS = DIMENSION / BLOCK;
const CHUNK_POINTS = 1024;
const BLOCK_BYTES = BLOCK * CHUNK_POINTS;
const CHUNK_BYTES = BLOCKS * BLOCK_BYTES;
const PAGE_BYTES = 65_536;
const SUMS_AT = DIMENSION * 2;
/** A block of a query that is zero, for one block too many. */
const ZEROS_AT = SUMS_AT + CHUNK_POINTS * 16;
/** Query and sums have the first page. */
const CHUNKS_AT = PAGE_BYTES;

export class Coarse {
  readonly #memory = new WebAssembly.Memory({ initial: CHUNKS_AT / PAGE_BYTES });
  readonly #kernel: Kernel;
  #bytes = new Int8Array(this.#memory.buffer);
  /** The label of each point, the factor for its products, and its cosine with the last query. */
  readonly #labels: number[] = [];
  #scales = new Float32Array(CHUNK_POINTS);
  #cosines = new Float32Array(CHUNK_POINTS);
  readonly #points = new Map<number, number>();
  #asked: Float32Array | undefined;

  /** @param kernel - how to multiply; for tests to choose */
  constructor(kernel: (memory: WebAssembly.Memory) => Kernel = kernelOn) {
    this.#kernel = kernel(this.#memory);
  }

  get size(): number {
    return this.#labels.length;
  }

  has(label: number): boolean {
    return this.#points.has(label);
  }

  add(label: number, vector: Float32Array): void {
    // What a memory of the built-in provider gives up of its length stands in the last place, and meets nothing in a query:
    // it is not to make the steps of the others larger.
    let largest = 0;
    for (let i = 0; i < LAST_PLACE; i++) largest = Math.max(largest, Math.abs(vector[i] as number));
    invariant(
      vector.length === DIMENSION && Number.isFinite(largest + (vector[LAST_PLACE] as number)),
      "a vector that is not all finite numbers",
    );
    const point = this.size;
    if (point % CHUNK_POINTS === 0) this.#grow(point + CHUNK_POINTS);
    const steps = largest === 0 ? 0 : BYTE_MAX / largest;
    for (let block = 0, at = addressOf(point); block < BLOCKS; block++, at += BLOCK_BYTES) {
      for (let k = 0; k < BLOCK; k++) {
        const value = (vector[block * BLOCK + k] as number) * steps;
        // What is behind the point is cut off when it is stored.
        this.#bytes[at + k] = value < 0 ? value - 0.5 : value + 0.5;
      }
    }
    const lastAt = addressOf(point) + (BLOCKS - 1) * BLOCK_BYTES + BLOCK - 1;
    this.#bytes[lastAt] = Math.max(-BYTE_MAX, Math.min(BYTE_MAX, Math.round((vector[LAST_PLACE] as number) * steps)));
    this.#scales[point] = largest / BYTE_MAX / QUERY_SCALE;
    this.#labels.push(label);
    this.#points.set(label, point);
    this.#asked = undefined;
  }

  /** The last point takes the place of the one that goes. */
  remove(label: number): void {
    const point = this.#points.get(label);
    if (point === undefined) return;
    this.#points.delete(label);
    this.#asked = undefined;
    const last = this.size - 1;
    const lastLabel = this.#labels.pop() as number;
    if (point === last) return;
    for (let block = 0, to = addressOf(point), from = addressOf(last); block < BLOCKS; block++, to += BLOCK_BYTES, from += BLOCK_BYTES) {
      this.#bytes.copyWithin(to, from, from + BLOCK);
    }
    this.#scales[point] = this.#scales[last] as number;
    this.#labels[point] = lastLabel;
    this.#points.set(lastLabel, point);
  }

  /**
   * The `count` nearest, nearest first, of equal ones the higher label; fewer only when there are no more. Asking again with
   * the same query is quick.
   */
  nearest(query: Float32Array, count: number): LabelledCosine[] {
    if (this.#asked !== query) this.#compareAll(query);
    this.#asked = query;
    const found: LabelledCosine[] = [];
    let bar = Number.NEGATIVE_INFINITY;
    const cut = () => {
      found.sort((a, b) => b.cosine - a.cosine || b.label - a.label);
      found.length = Math.min(found.length, count);
      if (found.length === count) bar = found.at(-1)?.cosine ?? bar;
    };
    for (let point = 0; point < this.size; point++) {
      const cosine = this.#cosines[point] as number;
      if (cosine <= bar) continue;
      found.push({ label: this.#labels[point] as number, cosine });
      if (found.length >= 2 * count) cut();
    }
    cut();
    const nearer = found.findIndex(({ cosine }) => cosine === bar);
    return nearer === -1 ? found : [...found.slice(0, nearer), ...this.#newestOf(bar, count - nearer)];
  }

  /**
   * Of those with this cosine the ones with the highest labels, highest first: thousands may be equal, and which was seen first
   * says nothing.
   */
  #newestOf(cosine: number, count: number): LabelledCosine[] {
    const equals: number[] = [];
    for (let point = 0; point < this.size; point++) if (this.#cosines[point] === cosine) equals.push(this.#labels[point] as number);
    const newest = Float64Array.from(equals).sort().reverse().subarray(0, count);
    return Array.from(newest, (label) => ({ label, cosine }));
  }

  #compareAll(query: Float32Array): void {
    const numbers = new Int16Array(this.#memory.buffer, 0, DIMENSION);
    for (let i = 0; i < DIMENSION; i++) numbers[i] = Math.round((query[i] as number) * QUERY_SCALE);
    const blocks = Array.from({ length: BLOCKS }, (_, block) => block).filter((block) =>
      numbers.subarray(block * BLOCK, (block + 1) * BLOCK).some((number) => number !== 0),
    );
    const sums = new Int32Array(this.#memory.buffer, SUMS_AT, CHUNK_POINTS * 4);
    for (let first = 0; first < this.size; first += CHUNK_POINTS) {
      const points = Math.min(CHUNK_POINTS, this.size - first);
      sums.fill(0);
      for (let i = 0; i < blocks.length; i += 2) {
        const block = blocks[i] as number;
        const other = blocks[i + 1];
        const at = addressOf(first) + block * BLOCK_BYTES;
        const otherAt = addressOf(first) + (other ?? block) * BLOCK_BYTES;
        const otherQuery = other === undefined ? ZEROS_AT : other * BLOCK * 2;
        this.#kernel(at, otherAt, at + points * BLOCK, SUMS_AT, block * BLOCK * 2, otherQuery);
      }
      for (let i = 0, s = 0; i < points; i++, s += 4) {
        const sum = (sums[s] as number) + (sums[s + 1] as number) + (sums[s + 2] as number) + (sums[s + 3] as number);
        this.#cosines[first + i] = sum * (this.#scales[first + i] as number);
      }
    }
  }

  #grow(points: number): void {
    const missing = CHUNKS_AT + (points / CHUNK_POINTS) * CHUNK_BYTES - this.#memory.buffer.byteLength;
    if (missing > 0) {
      this.#memory.grow(missing / PAGE_BYTES);
      this.#bytes = new Int8Array(this.#memory.buffer);
    }
    if (points <= this.#scales.length) return;
    const scales = new Float32Array(this.#scales.length * 2);
    scales.set(this.#scales);
    this.#scales = scales;
    this.#cosines = new Float32Array(scales.length);
  }
}

/** Where a point's numbers 0 to 15 are; the next ones are `BLOCK_BYTES` further on. */
function addressOf(point: number): number {
  return CHUNKS_AT + Math.floor(point / CHUNK_POINTS) * CHUNK_BYTES + (point % CHUNK_POINTS) * BLOCK;
}
