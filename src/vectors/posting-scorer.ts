/**
 * Adds up what the posting lists of a query come to, in windows of slots: the inner loops of `term-search.ts`, which are part of the
 * add-on that has hnswlib (`scripts/hnswlib/postings.h`).
 *
 * @module
 */
import hnswlib from "hnswlib-node";
import { COVERED, KEPT } from "./length-codes.ts";
import type { ListHead, PostingLists } from "./posting-lists.ts";

/** Slots that are scored together. */
export const WINDOW = 32_768;
/** The score of a memory that covers the whole query, before what is taken off for its length. Scores are whole numbers. */
export const WHOLE_SCORE = 2 ** 24;
/** By code of a length: what a memory covers of a query, by its score. */
const COVERAGES = KEPT.map((kept, code) => (kept === 0 ? 0 : COVERED[code]! / kept / WHOLE_SCORE));

const HEAD_WORDS = 3;
const SPAN_WORDS = 3;
/** Slots that pass a filter are offered in parts, so that the bar rises meanwhile. */
const OFFERED = 100;

interface NativeScorer {
  setChunk(number: number, chunk: Uint8Array): void;
  begin(
    heads: Uint32Array,
    count: number,
    spans: Uint32Array,
    lengths: Uint8Array,
    shares: Float64Array,
    coverages: Float64Array,
    limit: number,
    slack: number,
    rank: number,
    gap: number,
  ): void;
  follow(from: number, first: number, end: number, most: number, touchedOnly: boolean): number;
  collect(from: number, first: number, end: number, offers: boolean): number;
  offer(count: number): void;
  expect(rank: number): void;
  found(slots: Uint32Array, coverages: Float64Array): number;
}

/** A class that is not hnswlib's: it is compiled with it. */
const addon = hnswlib as unknown as {
  PostingScorer: new (window: number, slots: Uint32Array, scores: Float64Array, state: Float64Array) => NativeScorer;
};

/** A word's lists, of the largest worth first. */
interface Word {
  readonly lists: readonly (ListHead & { readonly score: number })[];
}

/** Some of a word's lists. */
interface Span {
  readonly word: number;
  readonly from: number;
  readonly to: number;
}

export interface Wanted {
  /** How many of the best are wanted: at least one. */
  readonly limit: number;
  /** How many more are held: as many may be offered for nothing each time that it is full. */
  readonly slack: number;
  /** What has a score that is so much below that of this rank is not wanted. */
  readonly rank: number;
  readonly gap: number;
}

export class Scorer {
  readonly #slots = new Uint32Array(WINDOW);
  readonly #scores = new Float64Array(WINDOW);
  /** In buffers, so that they stay where they are. */
  readonly #state = new Float64Array(new ArrayBuffer(40));
  #heads = new Uint32Array(0);
  #spans = new Uint32Array(0);
  readonly #native = new addon.PostingScorer(WINDOW, this.#slots, this.#scores, this.#state);
  /** Those that the add-on knows, which so stay where they are. */
  readonly #chunks: Uint8Array[] = [];
  /** By word: the number of its first list. */
  #firsts: number[] = [];
  #words: readonly Word[] = [];
  /** Where spans go that hold for one window. */
  #spansOfWindow = 0;
  #limit = 0;
  /** Kept from search to search: arrays of this length are not made in the garbage collector's own memory. */
  #foundSlots = new Uint32Array(0);
  #foundCoverages = new Float64Array(0);

  /** Slots that are in any of the lists followed in this window. */
  get touched(): number {
    return this.#state[0]!;
  }

  /** Postings that were looked at last. */
  get looks(): number {
    return this.#state[1]!;
  }

  /** What has a lower score is not among the best. */
  get bar(): number {
    return this.#state[2]!;
  }

  /** The bar that was expected last. */
  get expected(): number {
    return this.#state[4]!;
  }

  /** Whether a search came to a damaged list, of which it left out the rest. */
  get isDamaged(): boolean {
    return this.#state[3] !== 0;
  }

  /**
   * Begins a search at the newest slots.
   *
   * @param lists - the same ones every time; neither they nor `lengths` may change while it is under way
   * @param lengths - by slot, the code of its memory's length
   */
  begin(
    { chunks }: PostingLists,
    words: readonly Word[],
    segments: readonly Span[],
    lengths: Uint8Array,
    { limit, slack, rank, gap }: Wanted,
  ): void {
    for (let i = 0; i < chunks.length; i++) {
      if (this.#chunks[i] !== chunks[i]) this.#native.setChunk(i, (this.#chunks[i] = chunks[i]!));
    }
    const count = words.reduce((sum, { lists }) => sum + lists.length, 0);
    if (this.#heads.length < HEAD_WORDS * count) {
      this.#heads = new Uint32Array(new ArrayBuffer(8 * HEAD_WORDS * count));
      this.#spans = new Uint32Array(new ArrayBuffer(16 * SPAN_WORDS * count));
    }
    this.#words = words;
    this.#firsts = [];
    let at = 0;
    for (const { lists } of words) {
      this.#firsts.push(at / HEAD_WORDS);
      for (const { newest, block, score } of lists) {
        this.#heads[at++] = newest;
        this.#heads[at++] = block;
        this.#heads[at++] = score;
      }
    }
    this.#spansOfWindow = segments.length;
    for (let i = 0; i < segments.length; i++) this.#put(i, segments[i]!);
    this.#limit = limit;
    this.#native.begin(this.#heads, count, this.#spans, lengths, KEPT, COVERAGES, limit, slack, rank, gap);
  }

  #put(place: number, { word, from, to }: Span): void {
    const at = place * SPAN_WORDS;
    this.#spans[at] = word;
    this.#spans[at + 1] = this.#firsts[word]! + from;
    this.#spans[at + 2] = this.#firsts[word]! + to;
  }

  /** The lists of these words that are behind the cuts. @returns where the spans end */
  #putOthers(words: readonly number[], cuts: readonly number[]): number {
    let place = this.#spansOfWindow;
    for (const word of words) this.#put(place++, { word, from: cuts[word]!, to: this.#words[word]!.lists.length });
    return place;
  }

  /**
   * Adds to the slots of a window what each has in some of the segments.
   *
   * @param most - after this number of postings no other segment is followed
   * @returns the first segment that was not
   */
  follow(from: number, first: number, end: number, most: number): number {
    return this.#native.follow(from, first, end, Math.max(0, most), false);
  }

  /** Adds to those that are in the lists followed before what they have in other lists of some words. */
  followTouched(from: number, words: readonly number[], cuts: readonly number[]): void {
    this.#native.follow(from, this.#spansOfWindow, this.#putOthers(words, cuts), 2 ** 32 - 1, true);
  }

  /**
   * Takes the slots of the window whose score is not below the bar, and clears the window.
   *
   * @param asked - words of which each of these slots is looked for in the lists behind the cuts
   * @param passes - whether one may be found, if not all may
   */
  collect(from: number, asked: readonly number[], cuts: readonly number[], passes?: (slot: number) => boolean): void {
    const written = this.#native.collect(from, this.#spansOfWindow, this.#putOthers(asked, cuts), passes === undefined);
    if (passes === undefined) return;
    let count = 0;
    for (let i = 0; i < written; i++) {
      if (this.#scores[i]! < this.bar || !passes(this.#slots[i]!)) continue;
      this.#slots[count] = this.#slots[i]!;
      this.#scores[count++] = this.#scores[i]!;
      if (count === OFFERED) {
        this.#native.offer(count);
        count = 0;
      }
    }
    this.#native.offer(count);
  }

  /** What comes with a lower score than as many of what was collected so far is taken not to be among the best of all. */
  expect(rank: number): void {
    this.#native.expect(rank);
  }

  /** The best, in no order, and what each covers of the query: until the next search. */
  found(): { slots: Uint32Array; coverages: Float64Array } {
    if (this.#foundSlots.length < this.#limit) {
      this.#foundSlots = new Uint32Array(2 * this.#limit);
      this.#foundCoverages = new Float64Array(2 * this.#limit);
    }
    const count = this.#native.found(this.#foundSlots, this.#foundCoverages);
    return { slots: this.#foundSlots.subarray(0, count), coverages: this.#foundCoverages.subarray(0, count) };
  }
}
