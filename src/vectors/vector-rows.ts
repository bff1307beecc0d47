/**
 * The numbers of all vectors by slot, where they can be compared in a tenth of the time that reading one from the store takes.
 *
 * A row is what the store has of a vector's numbers (`encoding.ts`): 0.4 KB for a memory of the built-in provider, 1.5 KB for one of any
 * other; `resident-kernel.ts` compares them. Rows lie in chunks, each a WebAssembly memory of its own, which could otherwise not
 * be larger than 4 GB. A row is never taken out: the index is rebuilt when many are of deleted vectors.
 *
 * @module
 */
import { DIMENSION } from "../embeddings/embedder.ts";
import { cosineOf, HEAD, storedNumbers, type StoredNumbers } from "./encoding.ts";
import { compareOn, type Compare } from "./resident-kernel.ts";

const CHUNK_BITS = 14;
const CHUNK_ROWS = 2 ** CHUNK_BITS;
const ROW_MASK = CHUNK_ROWS - 1;
const PAGE_BYTES = 65_536;
const ENTRY_WORDS = 4;
const ENTRY_BYTES = ENTRY_WORDS * 4;
/** Each chunk begins with the query, entries of the kernel's, and what it returns for one batch. */
const BATCH = 1_024;
const ENTRIES_AT = DIMENSION * 2;
const SUMS_AT = ENTRIES_AT + BATCH * ENTRY_BYTES;
/** A damaged pair can name any of 65,536 places: wherever that leads is inside of the memory. */
const ROWS_AT = 2 * PAGE_BYTES;
const GROWTH_PAGES = 16;
const NOTHING_BYTES = 8;

export class VectorRows {
  readonly #chunks: Chunk[] = [];
  #length = 0;
  #whole = 0;
  readonly #kernel: (memory: WebAssembly.Memory) => Compare;

  /** @param kernel - how to compare; for tests to choose */
  constructor(kernel: (memory: WebAssembly.Memory) => Compare = compareOn) {
    this.#kernel = kernel;
  }

  /** One more than the last slot that has a row. */
  get length(): number {
    return this.#length;
  }

  /** Whether most vectors have all their numbers, as those of providers other than the built-in one. */
  get areDense(): boolean {
    return 2 * this.#whole > this.#length;
  }

  /** Adds the row of the next slot. @param stored - the vector as it is stored, or undefined for one that is gone */
  add(stored: Uint8Array | undefined): void {
    if (this.#length % CHUNK_ROWS === 0) this.#chunks.push(new Chunk(this.#kernel));
    this.#length++;
    const chunk = this.#chunks.at(-1)!;
    if (stored === undefined) return chunk.addNothing();
    const numbers = storedNumbers(stored);
    if (numbers.place === 0) this.#whole++;
    chunk.add(stored, numbers);
  }

  /** The cosines of a query with the vectors of some slots. */
  cosines(query: Int16Array, slots: Uint32Array): Float64Array {
    const cosines = new Float64Array(slots.length);
    if (this.#chunks.length === 1) {
      this.#chunks[0]!.compare(query, slots, cosines);
      return cosines;
    }
    // Those of a chunk one after the other: a counting sort.
    const ends = new Uint32Array(this.#chunks.length);
    for (const slot of slots) ends[slot >>> CHUNK_BITS]!++;
    for (let chunk = 1; chunk < ends.length; chunk++) ends[chunk]! += ends[chunk - 1]!;
    const order = new Uint32Array(slots.length);
    for (let i = slots.length - 1; i >= 0; i--) order[--ends[slots[i]! >>> CHUNK_BITS]!] = i;
    const sorted = order.map((i) => slots[i]!);
    const found = new Float64Array(slots.length);
    for (const [chunk, rows] of this.#chunks.entries()) {
      const [from, to] = [ends[chunk]!, ends[chunk + 1] ?? slots.length];
      if (from < to) rows.compare(query, sorted.subarray(from, to), found.subarray(from, to));
    }
    for (let i = 0; i < order.length; i++) cosines[order[i]!] = found[i]!;
    return cosines;
  }
}

class Chunk {
  readonly #memory = new WebAssembly.Memory({ initial: ROWS_AT / PAGE_BYTES });
  readonly #compare: Compare;
  #bytes = new Uint8Array(this.#memory.buffer);
  #end = ROWS_AT;
  #rows = 0;
  /** By row: where it begins, where its pairs begin, and which place of the query its first number belongs to. */
  readonly #starts = new Uint32Array(CHUNK_ROWS + 1);
  readonly #numberBytes = new Uint16Array(CHUNK_ROWS);
  readonly #isSparse = new Uint8Array(CHUNK_ROWS);
  readonly #scales = new Uint16Array(CHUNK_ROWS);

  constructor(kernel: (memory: WebAssembly.Memory) => Compare) {
    this.#compare = kernel(this.#memory);
    this.#starts[0] = ROWS_AT;
  }

  /** Eight zeros stand for a vector that is gone. */
  addNothing(): void {
    this.#reserve(NOTHING_BYTES);
    this.#note(NOTHING_BYTES, NOTHING_BYTES, { isSparse: false, scale: 0 });
  }

  add(stored: Uint8Array, { numbers, place, pairs, scale }: StoredNumbers): void {
    const length = numbers.byteLength + pairs.byteLength;
    this.#reserve(length);
    this.#bytes.set(stored.subarray(0, length), this.#end);
    this.#note(length, numbers.byteLength, { isSparse: place > 0, scale });
  }

  compare(query: Int16Array, slots: Uint32Array, cosines: Float64Array): void {
    const words = new Uint32Array(this.#memory.buffer);
    const sums = new Int32Array(this.#memory.buffer, SUMS_AT, BATCH);
    new Int16Array(this.#memory.buffer, 0, DIMENSION).set(query);
    for (let from = 0; from < slots.length; from += BATCH) {
      const count = Math.min(BATCH, slots.length - from);
      for (let i = 0, at = ENTRIES_AT / 4; i < count; i++, at += ENTRY_WORDS) {
        const row = slots[from + i]! & ROW_MASK;
        words[at] = this.#starts[row]!;
        words[at + 1] = this.#starts[row]! + this.#numberBytes[row]!;
        words[at + 2] = this.#isSparse[row] === 1 ? HEAD * 2 : 0;
        words[at + 3] = this.#starts[row + 1]!;
      }
      this.#compare(ENTRIES_AT, ENTRIES_AT + count * ENTRY_BYTES, 0, SUMS_AT);
      for (let i = 0; i < count; i++) cosines[from + i] = cosineOf(sums[i]!, this.#scales[slots[from + i]! & ROW_MASK]!);
    }
  }

  #reserve(bytes: number): void {
    const missing = this.#end + bytes - this.#memory.buffer.byteLength;
    if (missing <= 0) return;
    this.#memory.grow(Math.max(GROWTH_PAGES, Math.ceil(missing / PAGE_BYTES)));
    this.#bytes = new Uint8Array(this.#memory.buffer);
  }

  #note(length: number, numberBytes: number, { isSparse, scale }: { isSparse: boolean; scale: number }): void {
    this.#end += length;
    this.#numberBytes[this.#rows] = numberBytes;
    this.#isSparse[this.#rows] = isSparse ? 1 : 0;
    this.#scales[this.#rows] = scale;
    this.#starts[++this.#rows] = this.#end;
  }
}
