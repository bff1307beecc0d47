/**
 * The numbers and terms of all vectors by slot, where they can be compared in a tenth of the time that reading one from the store
 * takes: once, for the worker that writes them and for the request thread, which only reads.
 *
 * A row is what the store has of a vector before whose it is (`encoding.ts`): half a kilobyte for a memory of the built-in provider, up
 * to 1.6 KB for one of another. Rows lie in chunks, where `row-comparer.ts` compares them; what is not written yet of one takes no memory.
 * A row is never taken out: the index is rebuilt when many are of deleted vectors. Rows of one partition lie together, in blocks: those
 * of a user are compared in a third of the time that it takes when each has to come from another page of memory. Those that a start reads
 * stand side by side, which takes another tenth off.
 *
 * ```
 * place  uint32 where the row begins  |  uint16 bytes of numbers, uint16 chunk  |  uint32 terms  |  uint16 scale, uint16 passages
 * ```
 * The request thread knows the places and chunks that there were when it was told, and how many rows those hold by now: that is stored
 * last, and in memory of its own for every such telling.
 *
 * @module
 */
import { NO_COSINE } from "../embeddings/embedder.ts";
import { closenessWithoutWords } from "../embeddings/score.ts";
import { storedHome, storedNumbers, storedTerms } from "./encoding.ts";
import { closenessTo, type Query } from "./query.ts";
import { newRowComparer, type RowComparer } from "./row-comparer.ts";

const PIECE_BITS = 14;
const PIECE_SLOTS = 2 ** PIECE_BITS;
const SLOT_MASK = PIECE_SLOTS - 1;
/** Numbers of a place. */
const PLACE_WORDS = 4;
const CHUNK_BYTES = 64 * 1024 * 1024;
/**
 * Blocks grow with what the partition has, so that little of the last one is empty. A user of 400 memories is compared in .88 of the
 * time that it takes with a quarter and 16 KB, and rows take a fortieth more.
 */
const BLOCK_MIN_BYTES = 2_048;
const BLOCK_MAX_BYTES = 32_768;
const BLOCK_SHARE = 0.5;
/** The processor reads a longer one hardly faster, where rows are expected. */
const EXPECTED_BLOCK_MAX_BYTES = 131_072;
/** Rows are not equally long: with room for two more those of a partition hardly ever need another block. */
const EXPECTED_MORE = 2;

const NO_TERMS = new Uint32Array(0);

/** Memory of rows that threads share. */
export interface SharedRows {
  readonly places: readonly SharedArrayBuffer[];
  readonly chunks: readonly SharedArrayBuffer[];
  /** One uint32: how many rows there are in them by now. */
  readonly length: SharedArrayBuffer;
}

export class VectorRows {
  readonly #chunkBytes: number;
  /** 0 for the thread that writes, 1 for the one that reads. */
  readonly #thread: 0 | 1;
  readonly #chunks: Chunk[] = [];
  readonly #places: Uint32Array[] = [];
  #made: RowComparer | undefined;
  /** By partition: where its next row goes, if it is not too long. */
  readonly #blocks = new Map<number, Block>();
  #told: Uint32Array;
  #shared: SharedRows | undefined;
  #length = 0;
  /** Rows before this slot are expected. */
  #expectedTo = 0;

  /** @param shared - what another thread writes */
  constructor(shared?: SharedRows, chunkBytes = CHUNK_BYTES) {
    this.#chunkBytes = chunkBytes;
    this.#thread = shared === undefined ? 0 : 1;
    this.#told = new Uint32Array(shared?.length ?? new SharedArrayBuffer(4));
    for (const buffer of shared?.chunks ?? []) this.#addChunk(buffer);
    for (const buffer of shared?.places ?? []) this.#addPiece(buffer);
  }

  #addChunk(buffer: SharedArrayBuffer): Chunk {
    const chunk = new Chunk(buffer);
    this.#chunks.push(chunk);
    this.#made?.addChunk(chunk.bytes);
    return chunk;
  }

  #addPiece(buffer: SharedArrayBuffer): void {
    const places = new Uint32Array(buffer);
    this.#places.push(places);
    this.#made?.addPiece(places);
  }

  /** Made with the first comparison: a store that nobody searches does not load the add-on. */
  get #comparer(): RowComparer {
    if (this.#made !== undefined) return this.#made;
    this.#made = newRowComparer();
    for (const { bytes } of this.#chunks) this.#made.addChunk(bytes);
    for (const places of this.#places) this.#made.addPiece(places);
    return this.#made;
  }

  /** One more than the last slot that has a row. */
  get length(): number {
    return this.#thread === 0 ? this.#length : Atomics.load(this.#told, 0);
  }

  /** Memory taken. Chunks are longer than what is written of them, which takes none. */
  get bytes(): number {
    return this.#chunks.reduce((sum, { end }) => sum + end, this.#places.length * PIECE_SLOTS * PLACE_WORDS * 4);
  }

  /** Message to the other thread: another object whenever that has to be told again. */
  get shared(): SharedRows {
    return (this.#shared ??= {
      places: this.#places.map(sharedBuffer),
      chunks: this.#chunks.map(({ buffer }) => buffer),
      length: sharedBuffer(this.#told),
    });
  }

  /** There is a place or chunk that was not announced: rows in it are not counted where it is not known. */
  #tellAgain(): void {
    this.#shared = undefined;
    this.#told = new Uint32Array(new SharedArrayBuffer(4));
  }

  /** Announces rows that will be added, so that those of a partition get room side by side. @param partitions - undefined: none */
  expect(partitions: Iterable<number | undefined>): void {
    this.#expectedTo = this.#length;
    for (const partition of partitions) {
      this.#expectedTo++;
      if (partition !== undefined) this.#blockOf(partition).expected++;
    }
  }

  /** Adds the row of the next slot. @param stored - the vector as it is stored, or undefined for one that is gone */
  add(stored: Uint8Array | undefined): void {
    const slot = this.#length;
    if ((slot & SLOT_MASK) === 0) {
      this.#addPiece(new SharedArrayBuffer(PIECE_SLOTS * PLACE_WORDS * 4));
      this.#tellAgain();
    }
    if (stored !== undefined) {
      const { numbers, passages, scale } = storedNumbers(stored);
      const terms = storedTerms(stored);
      const bytes = numbers.byteLength + terms.byteLength;
      const [chunk, at] = this.#ingest(storedHome(stored), bytes);
      this.#chunks[chunk]!.bytes.set(stored.subarray(0, bytes), at);
      this.#put(slot, at, numbers.byteLength | (chunk << 16), terms.length, scale | (passages << 16));
    }
    this.#length++;
    Atomics.store(this.#told, 0, this.#length);
  }

  /** Takes room where other rows of the partition are. */
  #ingest(partition: number, bytes: number): [chunk: number, at: number] {
    const block = this.#blockOf(partition);
    block.taken += bytes;
    block.rows++;
    const isExpected = this.#length < this.#expectedTo;
    if (block.at + bytes > block.end) {
      const length = isExpected
        ? Math.min(EXPECTED_BLOCK_MAX_BYTES, (block.expected + EXPECTED_MORE) * (block.taken / block.rows))
        : Math.min(BLOCK_MAX_BYTES, Math.max(BLOCK_MIN_BYTES, BLOCK_SHARE * block.taken));
      // A multiple of four, as all that is compared.
      const size = Math.max(bytes, Math.floor(length / 4) * 4);
      const [chunk, at] = this.#take(size);
      block.chunk = chunk;
      block.at = at;
      block.end = at + size;
    }
    if (isExpected) block.expected--;
    const { chunk, at } = block;
    block.at += bytes;
    return [chunk, at];
  }

  #blockOf(partition: number): Block {
    let block = this.#blocks.get(partition);
    if (block === undefined) this.#blocks.set(partition, (block = { chunk: 0, at: 0, end: 0, taken: 0, rows: 0, expected: 0 }));
    return block;
  }

  #take(bytes: number): [chunk: number, at: number] {
    let last = this.#chunks.at(-1);
    if (last === undefined || last.end + bytes > last.bytes.byteLength) {
      last = this.#addChunk(new SharedArrayBuffer(this.#chunkBytes));
      this.#tellAgain();
    }
    const at = last.end;
    last.end += bytes;
    return [this.#chunks.length - 1, at];
  }

  #put(slot: number, ...words: [number, number, number, number]): void {
    this.#places[slot >>> PIECE_BITS]!.set(words, (slot & SLOT_MASK) * PLACE_WORDS);
  }

  /** Checks whether a slot's vector was there when its row was made. */
  has(slot: number): boolean {
    return this.#places[slot >>> PIECE_BITS]![(slot & SLOT_MASK) * PLACE_WORDS + 3]! !== 0;
  }

  /** The terms of a slot's memory, where they are: they never change. */
  terms(slot: number): Uint32Array {
    const places = this.#places[slot >>> PIECE_BITS]!;
    const at = (slot & SLOT_MASK) * PLACE_WORDS;
    if (places[at + 3] === 0) return NO_TERMS;
    const numbers = places[at + 1]!;
    const from = (places[at]! + (numbers & 0xffff)) / 4;
    return this.#chunks[numbers >>> 16]!.words.subarray(from, from + places[at + 2]!);
  }

  termCount(slot: number): number {
    return this.#places[slot >>> PIECE_BITS]![(slot & SLOT_MASK) * PLACE_WORDS + 2]!;
  }

  /** The cosines of a query with the vectors of some slots; 0 with one that is gone, and of a query without a vector. */
  cosines(query: Int16Array, slots: Uint32Array): Float64Array {
    const cosines = new Float64Array(slots.length);
    if (query.length > 0) this.#comparer.compare(query, slots, cosines);
    return cosines;
  }

  /** Value of `closenessTo` for the vector of a slot. Its terms are read where they are, without an object for them. */
  closenessTo(query: Query, slot: number, cosine: number): number {
    const places = this.#places[slot >>> PIECE_BITS]!;
    const at = (slot & SLOT_MASK) * PLACE_WORDS;
    if (places[at + 3] === 0) return closenessTo(query, cosine, NO_TERMS);
    const numbers = places[at + 1]!;
    const from = (places[at]! + (numbers & 0xffff)) / 4;
    return closenessTo(query, cosine, this.#chunks[numbers >>> 16]!.words, from, from + places[at + 2]!);
  }

  /** The same for several slots: most have none of the query's words, which is found out without a look at each of their terms here. */
  closenessesTo(query: Query, slots: Uint32Array, cosines: Float64Array): Float64Array {
    const hasWords = new Uint8Array(slots.length);
    this.#comparer.match(query.words.ids, slots, hasWords);
    const { calibration } = query;
    const isByWords = query.vector.length === 0;
    const scores = new Float64Array(slots.length);
    for (let i = 0; i < scores.length; i++) {
      if (hasWords[i] === 1) scores[i] = this.closenessTo(query, slots[i]!, cosines[i]!);
      else scores[i] = closenessWithoutWords(calibration, isByWords ? NO_COSINE : cosines[i]!);
    }
    return scores;
  }
}

function sharedBuffer({ buffer }: Uint32Array): SharedArrayBuffer {
  return buffer as SharedArrayBuffer;
}

/** The rest of the last block of a partition, what it has of rows in all, and how many more are expected. */
interface Block {
  chunk: number;
  at: number;
  end: number;
  taken: number;
  rows: number;
  expected: number;
}

/** A chunk as one thread sees it. */
class Chunk {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;
  /** Position of the next row, for the thread that writes. */
  end = 0;

  constructor(readonly buffer: SharedArrayBuffer) {
    this.bytes = new Uint8Array(buffer);
    this.words = new Uint32Array(buffer);
  }
}
