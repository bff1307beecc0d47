/**
 * The ids of vectors and of their memories by slot, in pieces that several threads can see.
 *
 * Ids rise with slots, so one is found by binary search: 24 bytes a vector, where a map from text takes more than a hundred. One thread
 * writes; what it has written before it announced it others may read.
 *
 * ```
 * by slot: id of the vector, 3 × uint32  |  id of its memory, 3 × uint32       four characters in each, the first the highest byte
 * ```
 *
 * @module
 */
import { BARE_ID_LENGTH, type BareId } from "../lib/ids.ts";
import type { PartSource } from "./snapshot/snapshot-file.ts";

const ID_WORDS = 3;
const SLOT_WORDS = 2 * ID_WORDS;
const SLOT_BYTES = 4 * SLOT_WORDS;
const PIECE_BITS = 14;
const PIECE_SLOTS = 2 ** PIECE_BITS;
const SLOT_MASK = PIECE_SLOTS - 1;

export class IdTable {
  readonly buffers: SharedArrayBuffer[] = [];
  readonly #pieces: Uint32Array[] = [];
  readonly #sought = new Uint32Array(ID_WORDS);

  /** @param buffers - what another thread has of one */
  constructor(buffers: readonly SharedArrayBuffer[] = []) {
    for (const buffer of buffers) this.#addPiece(buffer);
  }

  /** The first slots as bytes, in parts that follow each other. */
  parts(length: number): Uint8Array[] {
    const bytesFrom = (slot: number) => Math.min(PIECE_SLOTS, length - slot) * SLOT_BYTES;
    return this.buffers.map((buffer, i) => new Uint8Array(buffer, 0, bytesFrom(i * PIECE_SLOTS)));
  }

  /** @param source - the parts; `length` is the number of slots */
  static read(source: PartSource, length: number): IdTable {
    const table = new IdTable();
    for (let slot = 0; slot < length; slot += PIECE_SLOTS) {
      table.#addPiece();
      source.readInto(new Uint8Array(table.buffers.at(-1)!, 0, Math.min(PIECE_SLOTS, length - slot) * SLOT_BYTES));
    }
    return table;
  }

  /** Slots must follow each other, and ids rise. */
  put(slot: number, id: BareId, memory: BareId): void {
    if (slot === this.#pieces.length * PIECE_SLOTS) this.#addPiece();
    const piece = this.#pieces[slot >>> PIECE_BITS]!;
    const at = (slot & SLOT_MASK) * SLOT_WORDS;
    write(id, piece, at);
    write(memory, piece, at + ID_WORDS);
  }

  id(slot: number): BareId {
    return read(this.#pieces[slot >>> PIECE_BITS]!, (slot & SLOT_MASK) * SLOT_WORDS);
  }

  memory(slot: number): BareId {
    return read(this.#pieces[slot >>> PIECE_BITS]!, (slot & SLOT_MASK) * SLOT_WORDS + ID_WORDS);
  }

  /** Value of `storedHome` for the vector of a slot. */
  partition(slot: number): number {
    return this.#pieces[slot >>> PIECE_BITS]![(slot & SLOT_MASK) * SLOT_WORDS + SLOT_WORDS - 1]! & 0xffff;
  }

  /** Checks whether a slot's vector has the id of its memory. */
  isOwn(slot: number): boolean {
    const piece = this.#pieces[slot >>> PIECE_BITS]!;
    const at = (slot & SLOT_MASK) * SLOT_WORDS;
    return piece[at] === piece[at + 3] && piece[at + 1] === piece[at + 4] && piece[at + 2] === piece[at + 5];
  }

  /** The slot of a vector, among the first `length`. O(log n) */
  find(id: BareId, length: number): number | undefined {
    write(id, this.#sought, 0);
    let [low, high] = [0, length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#compareSought(middle) < 0) low = middle + 1;
      else high = middle;
    }
    return low < length && this.#compareSought(low) === 0 ? low : undefined;
  }

  /**
   * @param ids - ids as bytes, and `at` where in them one begins
   * @returns less than 0 when the slot's vector comes before that id, more when it comes after
   */
  compare(slot: number, ids: DataView, at: number): number {
    const piece = this.#pieces[slot >>> PIECE_BITS]!;
    const first = (slot & SLOT_MASK) * SLOT_WORDS;
    return piece[first]! - ids.getUint32(at) || piece[first + 1]! - ids.getUint32(at + 4) || piece[first + 2]! - ids.getUint32(at + 8);
  }

  /** @returns less than 0 when the memory of one slot comes before that of the other, more when it comes after */
  compareMemories(slot: number, other: number): number {
    const piece = this.#pieces[slot >>> PIECE_BITS]!;
    const otherPiece = this.#pieces[other >>> PIECE_BITS]!;
    const at = (slot & SLOT_MASK) * SLOT_WORDS + ID_WORDS;
    const otherAt = (other & SLOT_MASK) * SLOT_WORDS + ID_WORDS;
    for (let i = 0; i < ID_WORDS; i++) {
      const [word, otherWord] = [piece[at + i]!, otherPiece[otherAt + i]!];
      if (word !== otherWord) return word - otherWord;
    }
    return 0;
  }

  #compareSought(slot: number): number {
    const piece = this.#pieces[slot >>> PIECE_BITS]!;
    const at = (slot & SLOT_MASK) * SLOT_WORDS;
    return piece[at]! - this.#sought[0]! || piece[at + 1]! - this.#sought[1]! || piece[at + 2]! - this.#sought[2]!;
  }

  #addPiece(buffer = new SharedArrayBuffer(PIECE_SLOTS * SLOT_BYTES)): void {
    this.buffers.push(buffer);
    this.#pieces.push(new Uint32Array(buffer));
  }
}

function write(id: BareId, words: Uint32Array, at: number): void {
  for (let i = 0; i < ID_WORDS; i++) {
    const k = 4 * i;
    words[at + i] = (id.charCodeAt(k) << 24) | (id.charCodeAt(k + 1) << 16) | (id.charCodeAt(k + 2) << 8) | id.charCodeAt(k + 3);
  }
}

const scratch = Buffer.alloc(BARE_ID_LENGTH);

function read(words: Uint32Array, at: number): BareId {
  for (let i = 0; i < ID_WORDS; i++) scratch.writeUInt32BE(words[at + i]!, 4 * i);
  return scratch.toString("latin1");
}
