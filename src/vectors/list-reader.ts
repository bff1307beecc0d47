/**
 * Reads a posting list from its newest slot to its oldest, for a search that goes through the slots in windows.
 *
 * @module
 */
import { BestSlots } from "./best-slots.ts";
import type { ListHead, PostingLists } from "./posting-lists.ts";

/** Slots that are scored together. */
export const WINDOW = 32_768;

/**
 * What the lists of a query come to in one window. All zero when a search begins and when it ends; kept, because making it takes
 * longer than most searches.
 */
export class Window {
  /** By slot, side by side: which words it has, a bit each, and its score so far. */
  readonly cells = new Int32Array(2 * WINDOW);
  /** The slots that have any, in no order; behind them whatever was written there. */
  readonly touched = new Int32Array(WINDOW + 1);
  touchedCount = 0;
  readonly best = new BestSlots();
}

const NO_DISTANCES: Uint16Array = new Uint16Array(0);

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
  /** The block before that which `next` is in, or 0; and the newest slot before it, or -1. */
  #before = 0;
  #slotBefore = -1;
  /** The distances in the block, from `#from` on; `#at` is that of `next`. */
  #distances = NO_DISTANCES;
  #from = 0;
  #at = -1;

  constructor(lists: PostingLists, head: ListHead, worth: number, score: number, window: Window) {
    this.worth = worth;
    this.score = score;
    this.count = head.count;
    this.next = head.newest;
    this.#lists = lists;
    this.#window = window;
    this.#head = head;
    if (head.block !== 0) this.#enter(head.block);
  }

  /**
   * Notes for the slots of a window that are in the list what that is worth, and the bit of its word.
   *
   * @param touchedOnly - for those alone that are in a list followed before
   * @returns how many were looked at
   */
  follow(from: number, bit: number, touchedOnly: boolean): number {
    if (this.next >= from + WINDOW) this.has(from + WINDOW - 1);
    const { cells, touched } = this.#window;
    const { score } = this;
    let { touchedCount } = this.#window;
    let passed = 0;
    while (this.next >= from) {
      const distances = this.#distances;
      const begin = this.#from;
      let at = this.#at;
      let slot = this.next - from;
      for (;;) {
        passed++;
        const mask = cells[2 * slot]!;
        // Otherwise a list of the same word had it that is worth more.
        if ((mask & bit) === 0 && !(touchedOnly && mask === 0)) {
          // Without a branch, which would be guessed wrong too often.
          touched[touchedCount] = slot;
          touchedCount += mask === 0 ? 1 : 0;
          cells[2 * slot] = mask | bit;
          cells[2 * slot + 1]! += score;
        }
        if (at < begin) {
          this.#enterBefore();
          break;
        }
        slot -= distances[at--]!;
        if (slot < 0) {
          this.next = from + slot;
          this.#at = at;
          break;
        }
      }
    }
    this.#window.touchedCount = touchedCount;
    return passed;
  }

  /** Whether a slot is in the list. Passes what is newer. */
  has(slot: number): boolean {
    while (this.next > slot) {
      if (this.#at < this.#from || this.#slotBefore >= slot) this.#enterBefore();
      else this.next -= this.#distances[this.#at--]!;
    }
    return this.next === slot;
  }

  /** Goes back to the newest. @returns all slots */
  *all(): Generator<number> {
    this.next = this.#head.newest;
    if (this.#head.block !== 0) this.#enter(this.#head.block);
    while (this.next >= 0) {
      yield this.next;
      this.has(this.next - 1);
    }
  }

  /** Stands at the newest slot of a block. */
  #enter(block: number): void {
    const lists = this.#lists;
    this.#before = lists.before(block);
    this.#slotBefore = lists.slotBefore(block);
    this.#distances = lists.distances(block);
    this.#from = lists.distancesFrom(block);
    this.#at = lists.distancesTo(block) - 1;
  }

  #enterBefore(): void {
    this.next = this.#slotBefore;
    if (this.#before !== 0) return this.#enter(this.#before);
    this.#slotBefore = -1;
    this.#at = this.#from - 1;
  }
}
