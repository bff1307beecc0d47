/**
 * Reads a posting list from its newest slot to its oldest, for a search that goes through the slots in windows.
 *
 * @module
 */
import { BLOCK_POSTINGS_MAX, type ListHead, type PostingLists } from "./posting-lists.ts";

/** Slots that are scored together. */
export const WINDOW = 32_768;

/** Blocks that are kept from search to search: as many as most queries need. */
const BLOCKS_KEPT = 256;

/**
 * What the lists of a query come to in one window. All zero when a search begins and when it ends; kept, because making it takes
 * longer than most searches.
 */
export class Window {
  /** By slot: its score so far, and which words it has, a bit each. */
  readonly sums = new Int32Array(WINDOW);
  readonly masks = new Int32Array(WINDOW);
  /** The slots that have any, in no order; behind them whatever was written there. */
  readonly touched = new Int32Array(WINDOW + 1);
  touchedCount = 0;
  readonly #blocks: Int32Array[] = [];
  #blocksInUse = 0;

  /** Scratch for the slots of a block, until the search ends. */
  block(): Int32Array {
    return (this.#blocks[this.#blocksInUse++] ??= new Int32Array(BLOCK_POSTINGS_MAX));
  }

  freeBlocks(): void {
    this.#blocksInUse = 0;
    this.#blocks.length = Math.min(this.#blocks.length, BLOCKS_KEPT);
  }
}

/** The list of a term that answers to a word, and how far a search has come in it. */
export class ListReader {
  readonly worth: number;
  /** What a slot in it has of the whole score. */
  readonly score: number;
  readonly count: number;
  /** The newest slot that was not passed; -1 when all were. */
  next: number;
  readonly #lists: PostingLists;
  readonly #window: Window;
  readonly #head: ListHead;
  /** The slots of the block that `next` is in, from `#at` down; the block before that, or where it is yet to be read, itself. */
  #slots: Int32Array | undefined;
  #at = -1;
  #block: number;

  constructor(lists: PostingLists, head: ListHead, worth: number, score: number, window: Window) {
    this.worth = worth;
    this.score = score;
    this.count = head.count;
    this.next = head.newest;
    this.#lists = lists;
    this.#window = window;
    this.#head = head;
    this.#block = head.block;
  }

  /** Notes for the slots of a window that are in the list what that is worth, and the bit of its word. @returns how many those are */
  follow(from: number, bit: number): number {
    const { sums, masks, touched } = this.#window;
    const { score } = this;
    let { touchedCount } = this.#window;
    let passed = 0;
    while (this.next >= from) {
      const slots = this.#read();
      let at = this.#at;
      const began = at;
      for (; at >= 0; at--) {
        const slot = slots[at]! - from;
        if (slot < 0) break;
        const mask = masks[slot]!;
        // Otherwise a list of the same word had it that is worth more.
        if ((mask & bit) === 0) {
          // Without a branch, which would be guessed wrong too often.
          touched[touchedCount] = slot;
          touchedCount += mask === 0 ? 1 : 0;
          masks[slot] = mask | bit;
          sums[slot]! += score;
        }
      }
      passed += began - at;
      this.#passTo(at);
    }
    this.#window.touchedCount = touchedCount;
    return passed;
  }

  /** The same for the slots alone that are in a list followed before. */
  followTouched(from: number, bit: number): number {
    const { sums, masks } = this.#window;
    const { score } = this;
    if (this.next >= from + WINDOW) this.has(from + WINDOW - 1);
    let passed = 0;
    while (this.next >= from) {
      const slots = this.#read();
      let at = this.#at;
      const began = at;
      for (; at >= 0; at--) {
        const slot = slots[at]! - from;
        if (slot < 0) break;
        const mask = masks[slot]!;
        if (mask !== 0 && (mask & bit) === 0) {
          masks[slot] = mask | bit;
          sums[slot]! += score;
        }
      }
      passed += began - at;
      this.#passTo(at);
    }
    return passed;
  }

  /** Whether a slot is in the list. Passes what is newer. */
  has(slot: number): boolean {
    if (this.next <= slot) return this.next === slot;
    const slots = this.#read();
    if (slots[0]! > slot) {
      while (this.#block !== 0 && this.#lists.firstOf(this.#block) > slot) this.#block = this.#lists.before(this.#block);
      this.#passTo(-1);
      if (this.next <= slot) return this.next === slot;
    }
    let [low, high] = [0, this.#at];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (slots[middle]! <= slot) low = middle;
      else high = middle - 1;
    }
    this.#passTo(low);
    return this.next === slot;
  }

  /** Goes back to the newest. @returns all slots */
  *all(): Generator<number> {
    this.next = this.#head.newest;
    this.#block = this.#head.block;
    this.#at = -1;
    for (; this.next >= 0; this.#passTo(this.#at - 1)) {
      this.#read();
      yield this.next;
    }
  }

  /** The slots of the block that `next` is in. */
  #read(): Int32Array {
    this.#slots ??= this.#window.block();
    if (this.#at >= 0) return this.#slots;
    if (this.#block === 0) {
      this.#slots[0] = this.next;
      this.#at = 0;
    } else {
      this.#at = this.#lists.read(this.#block, this.#slots) - 1;
      this.#block = this.#lists.before(this.#block);
    }
    return this.#slots;
  }

  /** Moves on to a place in the block; to the block before when it is -1. */
  #passTo(at: number): void {
    this.#at = at;
    if (at >= 0) this.next = this.#slots![at]!;
    else if (this.#block === 0) this.next = -1;
    else this.next = this.#read()[this.#at]!;
  }
}
