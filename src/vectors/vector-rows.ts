/**
 * The numbers and terms of all vectors by slot, where they can be compared in a tenth of the time that reading one from the store
 * takes: once, for the worker that writes them and for the request thread, which only reads.
 *
 * A row is what the store has of a vector before whose it is (`encoding.ts`): half a kilobyte for a memory of the built-in provider,
 * 1.6 KB for one of any other. Rows lie in chunks, each a WebAssembly memory of its own in which `resident-kernel.ts` compares them;
 * what is not written yet of one takes no memory. A row is never taken out: the index is rebuilt when many are of deleted vectors.
 * Rows of one home lie together, in blocks: those of a user are compared in a third of the time that it takes when each has to come
 * from another page of memory.
 *
 * ```
 * place  uint32 where the row begins  |  uint16 bytes of numbers, uint16 chunk
 *        12 bits pairs, 20 bits terms  |  uint16 scale, uint16 1 if sparse
 * ```
 * The request thread knows the places and chunks that there were when it was told, and how many rows those hold by now: that is stored
 * last, and in memory of its own for every such telling.
 *
 * @module
 */
import { DIMENSION } from "../embeddings/embedder.ts";
import { cosineOf, HEAD, storedHome, storedNumbers, storedTerms } from "./encoding.ts";
import { compareOn, type Compare } from "./resident-kernel.ts";

const PIECE_BITS = 14;
const PIECE_SLOTS = 2 ** PIECE_BITS;
const SLOT_MASK = PIECE_SLOTS - 1;
export const PLACE_WORDS = 4;
const PAIR_BITS = 12;
const PAIR_MASK = 2 ** PAIR_BITS - 1;
const PAGE_BYTES = 65_536;
const CHUNK_PAGES = 1_024;
const ENTRY_WORDS = 4;
const ENTRY_BYTES = ENTRY_WORDS * 4;
/** Each chunk begins, for each thread, with the query, entries of the kernel's, and what it returns for one batch. */
const BATCH = 1_024;
const ENTRIES_AT = DIMENSION * 2;
const SUMS_AT = ENTRIES_AT + BATCH * ENTRY_BYTES;
const THREAD_BYTES = SUMS_AT + BATCH * 4;
/**
 * Of a line of memory one word is read of each row before any are compared. So the processor waits for many lines at once: of rows that lie
 * apart, as a search of everything finds them, comparing takes half to two thirds of the time.
 */
const LINE_BYTES = 64;
/** A damaged pair can name any of 65,536 places: wherever that leads is inside of the memory. */
const ROWS_AT = 3 * PAGE_BYTES;
const NOTHING_BYTES = 8;
/** Blocks grow with what the home has, so that little of the last one is empty; and are as long as reading ahead is of use. */
const BLOCK_MIN_BYTES = 2_048;
const BLOCK_MAX_BYTES = 16_384;
const BLOCK_SHARE = 0.25;

/** What threads have in common of rows. */
export interface SharedRows {
  readonly places: readonly SharedArrayBuffer[];
  readonly chunks: readonly WebAssembly.Memory[];
  /** One uint32: how many rows there are in them by now. */
  readonly length: SharedArrayBuffer;
}

export interface RowsOptions {
  /** How to compare; for tests to choose. */
  kernel?: (memory: WebAssembly.Memory) => Compare;
  chunkPages?: number;
}

export class VectorRows {
  readonly #kernel: (memory: WebAssembly.Memory) => Compare;
  readonly #chunkPages: number;
  /** 0 for the thread that writes, 1 for the one that reads. */
  readonly #thread: 0 | 1;
  readonly #chunks: Chunk[] = [];
  readonly #places: Uint32Array[] = [];
  /** By home: where its next row goes, if it is not too long. */
  readonly #blocks = new Map<number, Block>();
  #told: Uint32Array;
  #shared: SharedRows | undefined;
  #length = 0;
  #whole = 0;
  /** Kept from search to search, as it is long. */
  #sought = new Uint32Array(0);

  /** @param shared - what another thread writes */
  constructor({ kernel = compareOn, chunkPages = CHUNK_PAGES }: RowsOptions = {}, shared?: SharedRows) {
    this.#kernel = kernel;
    this.#chunkPages = chunkPages;
    this.#thread = shared === undefined ? 0 : 1;
    this.#told = new Uint32Array(shared?.length ?? new SharedArrayBuffer(4));
    for (const memory of shared?.chunks ?? []) this.#chunks.push(new Chunk(memory, kernel, 1));
    for (const buffer of shared?.places ?? []) this.#places.push(new Uint32Array(buffer));
  }

  /** One more than the last slot that has a row. */
  get length(): number {
    return this.#thread === 0 ? this.#length : Atomics.load(this.#told, 0);
  }

  /** Whether most vectors have all their numbers, as those of providers other than the built-in one. */
  get areDense(): boolean {
    return 2 * this.#whole > this.#length;
  }

  /** Memory taken. Chunks are longer than what is written of them, which takes none. */
  get bytes(): number {
    return this.#chunks.reduce((sum, { end }) => sum + end, this.#places.length * PIECE_SLOTS * PLACE_WORDS * 4);
  }

  /** What to tell the other thread: another object whenever that has to be told again. */
  get shared(): SharedRows {
    return (this.#shared ??= {
      places: this.#places.map(sharedBuffer),
      chunks: this.#chunks.map(({ memory }) => memory),
      length: sharedBuffer(this.#told),
    });
  }

  /** There is a place or chunk that was not told of: rows in it are not counted where it is not known. */
  #tellAgain(): void {
    this.#shared = undefined;
    this.#told = new Uint32Array(new SharedArrayBuffer(4));
  }

  /** Adds the row of the next slot. @param stored - the vector as it is stored, or undefined for one that is gone */
  add(stored: Uint8Array | undefined): void {
    const slot = this.#length;
    if ((slot & SLOT_MASK) === 0) {
      this.#places.push(new Uint32Array(new SharedArrayBuffer(PIECE_SLOTS * PLACE_WORDS * 4)));
      this.#tellAgain();
    }
    if (stored === undefined) {
      const [chunk, at] = this.#take(NOTHING_BYTES);
      this.#put(slot, at, NOTHING_BYTES | (chunk << 16), 0, 0);
    } else {
      const { numbers, place, pairs, scale } = storedNumbers(stored);
      const terms = storedTerms(stored);
      const bytes = numbers.byteLength + pairs.byteLength + terms.byteLength;
      const [chunk, at] = this.#takeIn(storedHome(stored), bytes);
      this.#chunks[chunk]!.bytes.set(stored.subarray(0, bytes), at);
      this.#put(
        slot,
        at,
        numbers.byteLength | (chunk << 16),
        pairs.length | (terms.length << PAIR_BITS),
        scale | (place > 0 ? 1 << 16 : 0),
      );
      if (place === 0) this.#whole++;
    }
    this.#length++;
    Atomics.store(this.#told, 0, this.#length);
  }

  /** Takes room where other rows of the home are. */
  #takeIn(home: number, bytes: number): [chunk: number, at: number] {
    let block = this.#blocks.get(home);
    if (block === undefined) this.#blocks.set(home, (block = { chunk: 0, at: 0, end: 0, taken: 0 }));
    if (block.at + bytes > block.end) {
      const length = Math.min(BLOCK_MAX_BYTES, Math.max(BLOCK_MIN_BYTES, BLOCK_SHARE * block.taken));
      // A multiple of four, as all that is compared.
      const size = Math.max(bytes, Math.floor(length / 4) * 4);
      const [chunk, at] = this.#take(size);
      block.chunk = chunk;
      block.at = at;
      block.end = at + size;
    }
    const { chunk, at } = block;
    block.at += bytes;
    block.taken += bytes;
    return [chunk, at];
  }

  #take(bytes: number): [chunk: number, at: number] {
    let last = this.#chunks.at(-1);
    if (last === undefined || last.end + bytes > last.bytes.byteLength) {
      const memory = new WebAssembly.Memory({ initial: this.#chunkPages, maximum: this.#chunkPages, shared: true });
      this.#chunks.push((last = new Chunk(memory, this.#kernel, 0)));
      this.#tellAgain();
    }
    const at = last.end;
    last.end += bytes;
    return [this.#chunks.length - 1, at];
  }

  #put(slot: number, ...words: [number, number, number, number]): void {
    this.#places[slot >>> PIECE_BITS]!.set(words, (slot & SLOT_MASK) * PLACE_WORDS);
  }

  /** Whether a slot's vector was there when its row was made. */
  has(slot: number): boolean {
    return this.#places[slot >>> PIECE_BITS]![(slot & SLOT_MASK) * PLACE_WORDS + 3]! !== 0;
  }

  /** The terms of a slot's memory, where they are: they never change. */
  terms(slot: number): Uint32Array {
    const places = this.#places[slot >>> PIECE_BITS]!;
    const at = (slot & SLOT_MASK) * PLACE_WORDS;
    const [start, numbers, counts] = [places[at]!, places[at + 1]!, places[at + 2]!];
    const from = (start + (numbers & 0xffff)) / 4 + (counts & PAIR_MASK);
    return this.#chunks[numbers >>> 16]!.words.subarray(from, from + (counts >>> PAIR_BITS));
  }

  termCount(slot: number): number {
    return this.#places[slot >>> PIECE_BITS]![(slot & SLOT_MASK) * PLACE_WORDS + 2]! >>> PAIR_BITS;
  }

  /** Where the rows of some slots are: of each what is written above, one after the other. */
  placesOf(slots: Uint32Array, places = new Uint32Array(slots.length * PLACE_WORDS)): Uint32Array {
    for (let i = 0, to = 0; i < slots.length; i++, to += PLACE_WORDS) {
      const slot = slots[i]!;
      const piece = this.#places[slot >>> PIECE_BITS]!;
      const at = (slot & SLOT_MASK) * PLACE_WORDS;
      places[to] = piece[at]!;
      places[to + 1] = piece[at + 1]!;
      places[to + 2] = piece[at + 2]!;
      places[to + 3] = piece[at + 3]!;
    }
    return places;
  }

  /**
   * What the terms of the `i`th of these rows come to, each counted as it is marked by its last bits; more than all marks where the last
   * is the one asked for, and 1 where it has none.
   */
  sumOfMarks(places: Uint32Array, i: number, marks: Uint16Array, last: number): number {
    const at = i * PLACE_WORDS;
    const [start, numbers, counts] = [places[at]!, places[at + 1]!, places[at + 2]!];
    const { words } = this.#chunks[numbers >>> 16]!;
    const mask = marks.length - 1;
    const from = (start + (numbers & 0xffff)) / 4 + (counts & PAIR_MASK);
    const end = from + (counts >>> PAIR_BITS);
    if (from === end) return 1;
    if (words[end - 1] === last) return Number.POSITIVE_INFINITY;
    let sum = 0;
    for (let word = from; word < end; word++) sum += marks[words[word]! & mask]!;
    return sum;
  }

  /** The cosines of a query with the vectors of some slots; 0 with one that is gone. */
  cosines(query: Int16Array, slots: Uint32Array): Float64Array {
    const length = slots.length * PLACE_WORDS;
    if (this.#sought.length < length) this.#sought = new Uint32Array(2 * length);
    return this.cosinesAt(query, this.placesOf(slots, this.#sought.subarray(0, length)));
  }

  /** The same for rows whose places are known, which is quicker than to look them up. */
  cosinesAt(query: Int16Array, places: Uint32Array): Float64Array {
    const count = places.length / PLACE_WORDS;
    const cosines = new Float64Array(count);
    const chunkOf = (i: number) => places[i * PLACE_WORDS + 1]! >>> 16;
    const runs = runsOf(count, chunkOf);
    if (runs <= this.#chunks.length) {
      // As rows of one home are, in the order in which they came.
      for (let from = 0, to = 1; from < count; from = to) {
        while (to < count && chunkOf(to) === chunkOf(from)) to++;
        this.#chunks[chunkOf(from)]!.compare(query, places.subarray(from * PLACE_WORDS, to * PLACE_WORDS), cosines.subarray(from, to));
      }
      return cosines;
    }
    // Those of a chunk one after the other: a counting sort.
    const ends = new Uint32Array(this.#chunks.length);
    for (let i = 0; i < count; i++) ends[chunkOf(i)]!++;
    for (let chunk = 1; chunk < ends.length; chunk++) ends[chunk]! += ends[chunk - 1]!;
    const order = new Uint32Array(count);
    const sorted = new Uint32Array(places.length);
    for (let i = count - 1; i >= 0; i--) {
      const to = --ends[chunkOf(i)]!;
      order[to] = i;
      for (let word = 0; word < PLACE_WORDS; word++) sorted[to * PLACE_WORDS + word] = places[i * PLACE_WORDS + word]!;
    }
    const found = new Float64Array(count);
    for (const [chunk, rows] of this.#chunks.entries()) {
      const [from, to] = [ends[chunk]!, ends[chunk + 1] ?? count];
      if (from < to) rows.compare(query, sorted.subarray(from * PLACE_WORDS, to * PLACE_WORDS), found.subarray(from, to));
    }
    for (let i = 0; i < order.length; i++) cosines[order[i]!] = found[i]!;
    return cosines;
  }
}

/** How many runs of rows there are that lie in one chunk. */
function runsOf(count: number, chunkOf: (i: number) => number): number {
  let runs = 0;
  for (let i = 0, before = -1; i < count; i++) {
    const chunk = chunkOf(i);
    if (chunk !== before) runs++;
    before = chunk;
  }
  return runs;
}

function sharedBuffer({ buffer }: Uint32Array): SharedArrayBuffer {
  return buffer as SharedArrayBuffer;
}

/** The rest of the last block of a home, and how many bytes of rows that has in all. */
interface Block {
  chunk: number;
  at: number;
  end: number;
  taken: number;
}

/** A chunk as one thread sees it. */
class Chunk {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  readonly #compare: Compare;
  readonly #query: Int16Array;
  readonly #sums: Int32Array;
  readonly #begin: number;
  /** Where the next row goes, for the thread that writes. */
  end = ROWS_AT;

  constructor(memory: WebAssembly.Memory, kernel: (memory: WebAssembly.Memory) => Compare, thread: 0 | 1) {
    this.memory = memory;
    this.bytes = new Uint8Array(memory.buffer);
    this.words = new Uint32Array(memory.buffer);
    this.#compare = kernel(memory);
    this.#begin = thread * THREAD_BYTES;
    this.#query = new Int16Array(memory.buffer, this.#begin, DIMENSION);
    this.#sums = new Int32Array(memory.buffer, this.#begin + SUMS_AT, BATCH);
  }

  compare(query: Int16Array, places: Uint32Array, cosines: Float64Array): void {
    const { words } = this;
    const begin = this.#begin;
    this.#query.set(query);
    for (let from = 0; from < cosines.length; from += BATCH) {
      const count = Math.min(BATCH, cosines.length - from);
      let seen = 0;
      for (let i = 0, at = from * PLACE_WORDS, to = (begin + ENTRIES_AT) / 4; i < count; i++, at += PLACE_WORDS, to += ENTRY_WORDS) {
        const start = places[at]!;
        const pairsAt = start + (places[at + 1]! & 0xffff);
        words[to] = start;
        words[to + 1] = pairsAt;
        words[to + 2] = begin + (places[at + 3]! >>> 16) * HEAD * 2;
        const end = pairsAt + (places[at + 2]! & PAIR_MASK) * 4;
        words[to + 3] = end;
        for (let line = start; line < end; line += LINE_BYTES) seen ^= words[line >>> 2]!;
      }
      // It is written over at once; what is not used would not be read.
      this.#sums[0] = seen;
      this.#compare(begin + ENTRIES_AT, begin + ENTRIES_AT + count * ENTRY_BYTES, begin, begin + SUMS_AT);
      for (let i = 0; i < count; i++) cosines[from + i] = cosineOf(this.#sums[i]!, places[(from + i) * PLACE_WORDS + 3]! & 0xffff);
    }
  }
}
