/**
 * Every vector again, quantised to one byte a number: little enough to compare a query with all of them.
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
import { DIMENSION, LENGTH_PLACE } from "../embeddings/embedder.ts";
import type { BareId } from "../lib/ids.ts";
import { UNIT } from "./encoding.ts";
import { kernelOn, type Kernel } from "./int8-kernel.ts";
import { byCosine, type Hit, TopK } from "./top-k.ts";

/** Two cosines that are further apart than this are in the right order, but for one pair in a thousand. */
export const QUANTIZATION_GAP = 0.0015;

const BYTE_MAX = 127;
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

export class Int8Index {
  readonly #memory = new WebAssembly.Memory({ initial: CHUNKS_AT / PAGE_BYTES });
  readonly #kernel: Kernel;
  #bytes = new Int8Array(this.#memory.buffer);
  /** By point: the vector's id and memory, the factor for its products, and its cosine with the last query. */
  readonly #ids: BareId[] = [];
  readonly #memories: BareId[] = [];
  #scales = new Float32Array(CHUNK_POINTS);
  #cosines = new Float32Array(CHUNK_POINTS);
  readonly #points = new Map<BareId, number>();
  /** The id of each memory's newest vector. */
  readonly #newest = new Map<BareId, BareId>();
  #query: Int16Array | undefined;

  /** @param kernel - how to multiply; for tests to choose */
  constructor(kernel: (memory: WebAssembly.Memory) => Kernel = kernelOn) {
    this.#kernel = kernel(this.#memory);
  }

  get size(): number {
    return this.#ids.length;
  }

  /** The ids of all vectors, in any order. */
  ids(): IterableIterator<BareId> {
    return this.#points.keys();
  }

  has(id: BareId): boolean {
    return this.#points.has(id);
  }

  /** The id of a memory's newest vector, if that is here. */
  idOf(memory: BareId): BareId | undefined {
    return this.#newest.get(memory);
  }

  add(id: BareId, memory: BareId, vector: Int16Array): void {
    if (this.#points.has(id)) return;
    const point = this.size;
    // What a memory of the built-in provider gives up of its length stands in the last place, and meets nothing in a query:
    // it must not make the steps of the others larger.
    let largest = 0;
    for (let i = 0; i < LENGTH_PLACE; i++) largest = Math.max(largest, Math.abs(vector[i]!));
    if (point % CHUNK_POINTS === 0) this.#grow(point + CHUNK_POINTS);
    const steps = largest === 0 ? 0 : BYTE_MAX / largest;
    for (let block = 0, at = addressOf(point); block < BLOCKS; block++, at += BLOCK_BYTES) {
      for (let k = 0; k < BLOCK; k++) {
        const value = vector[block * BLOCK + k]! * steps;
        // What is behind the point is cut off when it is stored.
        this.#bytes[at + k] = value < 0 ? value - 0.5 : value + 0.5;
      }
    }
    const lastAt = addressOf(point) + (BLOCKS - 1) * BLOCK_BYTES + BLOCK - 1;
    this.#bytes[lastAt] = Math.max(-BYTE_MAX, Math.min(BYTE_MAX, Math.round(vector[LENGTH_PLACE]! * steps)));
    this.#scales[point] = largest / BYTE_MAX / UNIT / UNIT;
    this.#ids.push(id);
    this.#memories.push(memory);
    this.#points.set(id, point);
    if ((this.#newest.get(memory) ?? "") < id) this.#newest.set(memory, id);
    this.#query = undefined;
  }

  /** The last point takes the place of the removed one. */
  remove(id: BareId): void {
    const point = this.#points.get(id);
    if (point === undefined) return;
    const memory = this.#memories[point]!;
    if (this.#newest.get(memory) === id) this.#newest.delete(memory);
    this.#points.delete(id);
    this.#query = undefined;
    const last = this.size - 1;
    const [lastId, lastMemory] = [this.#ids.pop()!, this.#memories.pop()!];
    if (point === last) return;
    for (let block = 0, to = addressOf(point), from = addressOf(last); block < BLOCKS; block++, to += BLOCK_BYTES, from += BLOCK_BYTES) {
      this.#bytes.copyWithin(to, from, from + BLOCK);
    }
    this.#scales[point] = this.#scales[last]!;
    this.#ids[point] = lastId;
    this.#memories[point] = lastMemory;
    this.#points.set(lastId, point);
  }

  /**
   * The `count` nearest, nearest first, of equal ones the newer vector; fewer only when there are no more. Asking again with
   * the same query is quick.
   */
  nearest(query: Int16Array, count: number): Hit[] {
    if (this.#query !== query) this.#compareAll(query);
    this.#query = query;
    const top = new TopK<Hit>(count, byCosine);
    // The newest are the last ones as a rule: of many equal ones few are kept and dropped again so.
    for (let point = this.size - 1; point >= 0; point--) {
      const cosine = this.#cosines[point]!;
      if (top.accepts(cosine)) top.offer({ id: this.#ids[point]!, cosine });
    }
    return top.best();
  }

  #compareAll(query: Int16Array): void {
    new Int16Array(this.#memory.buffer, 0, DIMENSION).set(query);
    const blocks = Array.from({ length: BLOCKS }, (_, block) => block).filter((block) =>
      query.subarray(block * BLOCK, (block + 1) * BLOCK).some((number) => number !== 0),
    );
    const sums = new Int32Array(this.#memory.buffer, SUMS_AT, CHUNK_POINTS * 4);
    for (let first = 0; first < this.size; first += CHUNK_POINTS) {
      const points = Math.min(CHUNK_POINTS, this.size - first);
      sums.fill(0);
      for (let i = 0; i < blocks.length; i += 2) {
        const block = blocks[i]!;
        const other = blocks[i + 1];
        const at = addressOf(first) + block * BLOCK_BYTES;
        const otherAt = addressOf(first) + (other ?? block) * BLOCK_BYTES;
        const otherQuery = other === undefined ? ZEROS_AT : other * BLOCK * 2;
        this.#kernel(at, otherAt, at + points * BLOCK, SUMS_AT, block * BLOCK * 2, otherQuery);
      }
      for (let i = 0, s = 0; i < points; i++, s += 4) {
        this.#cosines[first + i] = (sums[s]! + sums[s + 1]! + sums[s + 2]! + sums[s + 3]!) * this.#scales[first + i]!;
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
