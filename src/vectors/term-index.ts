/**
 * An inverted index: from each term to the memories that have it, so that a search by words looks at few memories of many.
 *
 * Derived from the vectors in the store, each of which is a slot here: a number that rises with the vector's id and is never
 * given again. A word that hardly any memory has leads to all that have it, however little it is of the query.
 *
 * @module
 */
import { SIGN, type TermId } from "../embeddings/embedder.ts";
import { mix } from "../embeddings/local/semantics.ts";
import { codeOf, REMOVED } from "./length-codes.ts";
import { DamagedListsError, PostingLists } from "./posting-lists.ts";
import { Scorer } from "./posting-scorer.ts";
import type { PartSource } from "./snapshot-file.ts";
import {
  type QueryWords,
  type SearchOptions,
  type SlotFilter,
  TermSearch,
  type Word,
  type WordHits,
  WORDS_MAX,
  wordsOf,
} from "./term-search.ts";

/**
 * Lots of a query's words that are searched for, the heaviest words first, and postings after which no other lot is. Of the ten best for
 * queries of 160 and 300 words 100 % are found among 20,000 texts, instead of 79 and 70 % by one lot, in 2.7 and 4.1 ms instead of 1.1 and
 * 1.5; among a million 78 and 73 % instead of 70 and 30 %.
 */
const LOTS_MAX = 8;
const LOOKS_FOR_LOTS_MAX = 1_600_000;

/** Postings of a text that are looked at, what asking a filter costs included. */
const SAME_LOOKS_MAX = 100_000;

const SLOTS_FIRST = 1024;
const SLOTS_GROWTH = 1.25;

/** A key and two counts; the lengths of all other parts follow. */
const HEADER_WORDS = 3;

export class TermIndex {
  readonly #lists: PostingLists;
  /** By slot: the code of its memory's length. */
  #lengths: Uint8Array;
  #slots: number;
  /** From the first search on. */
  #scorer: Scorer | undefined;
  /** Postings that the last search looked at. */
  looks = 0;

  private constructor(lists: PostingLists, lengths: Uint8Array, slots: number) {
    this.#lists = lists;
    this.#lengths = lengths;
    this.#slots = slots;
  }

  static empty(): TermIndex {
    const key = crypto.getRandomValues(new Uint32Array(1))[0]!;
    return new TermIndex(PostingLists.empty(key), new Uint8Array(SLOTS_FIRST), 0);
  }

  /** One more than the last slot. */
  get slots(): number {
    return this.#slots;
  }

  /** Memory taken. */
  get bytes(): number {
    return this.#lists.bytes + this.#lengths.byteLength;
  }

  has(slot: number): boolean {
    return slot < this.#slots && this.#lengths[slot] !== REMOVED;
  }

  /** Slots must rise, and may leave some out. @param terms - as they are stored, with the fingerprint as the last */
  add(slot: number, terms: Uint32Array): void {
    let words = 0;
    for (let i = 0; i < terms.length; i++) {
      this.#lists.append(terms[i]!, slot);
      if (terms[i]! < SIGN) words++;
    }
    if (slot >= this.#lengths.length) {
      const longer = new Uint8Array(Math.ceil(Math.max(slot + 1, this.#lengths.length * SLOTS_GROWTH)));
      longer.set(this.#lengths);
      this.#lengths = longer;
    }
    this.#lengths[slot] = codeOf(words === 0 ? terms.length - 1 : words);
    this.#slots = slot + 1;
  }

  /** The slot is found no more; its postings stay until the index is rebuilt. */
  remove(slot: number): void {
    this.#lengths[slot] = REMOVED;
  }

  /**
   * The `limit` slots whose memories cover most of a query, of equal ones the newest; and whatever else has one of its words that is
   * rare among what passes. Slots that have none of its words are not found. Of a query of many words each lot is searched for by itself,
   * and what they find is put together: more than `limit`, and of each what the lots that found it say that it covers.
   *
   * @throws {DamagedListsError} when the index was read from a file that is not sound
   */
  search(query: QueryWords, limit: number, options: SearchOptions = {}): WordHits {
    const words = wordsOf(query, this.#lists);
    this.looks = 0;
    const first = this.#searchLot(words.slice(0, WORDS_MAX), limit, options);
    if (words.length <= WORDS_MAX) return first;
    const coverages = new Map<number, number>();
    const add = (hits: WordHits) => {
      for (const [i, slot] of hits.slots.entries()) coverages.set(slot, (coverages.get(slot) ?? 0) + hits.coverages[i]!);
    };
    add(first);
    const end = Math.min(words.length, LOTS_MAX * WORDS_MAX);
    for (let from = WORDS_MAX; from < end && this.looks < LOOKS_FOR_LOTS_MAX; from += WORDS_MAX)
      add(this.#searchLot(words.slice(from, from + WORDS_MAX), limit, options));
    return { slots: Uint32Array.from(coverages.keys()), coverages: Float64Array.from(coverages.values()) };
  }

  /** @param words - at most `WORDS_MAX` */
  #searchLot(words: readonly Word[], limit: number, options: SearchOptions): WordHits {
    this.#scorer ??= new Scorer();
    const searched = { lengths: this.#lengths, postings: this.#lists, scorer: this.#scorer };
    const search = new TermSearch(searched, words, limit, options);
    let found = search.run(this.#slots);
    this.looks += search.looks;
    if (search.isMisled(found)) {
      const again = new TermSearch(searched, words, limit, { ...options, expects: false });
      found = again.run(this.#slots);
      this.looks += again.looks;
    }
    if (this.#scorer.isDamaged) throw new DamagedListsError();
    return found;
  }

  /** The newest `limit` slots of texts that have exactly these words, in this order. */
  same(fingerprint: TermId, limit: number, filter?: SlotFilter): number[] {
    const head = this.#lists.find(fingerprint);
    if (head === undefined) return [];
    const found: number[] = [];
    let looks = 0;
    for (const slot of this.#lists.slots(head)) {
      looks += 1 + (filter?.cost ?? 0);
      if (looks > SAME_LOOKS_MAX) break;
      if (this.has(slot) && filter?.passes(slot) !== false && found.push(slot) === limit) break;
    }
    return found;
  }

  /** By slot, also of removed ones: the digest of the terms that lead to it. */
  digests(): Uint32Array {
    const digests = new Uint32Array(this.#slots);
    for (const { term, head } of this.#lists.all()) {
      const digest = digestOf([term]);
      for (const slot of this.#lists.slots(head)) digests[slot]! += digest;
    }
    return digests;
  }

  /** Its form on disk, in parts that follow each other: views, so that nothing may be added or removed while they are written. */
  parts(): Uint8Array[] {
    const { key, tables, chunks } = this.#lists.parts();
    const parts = [...tables, ...chunks, this.#lengths.subarray(0, this.#slots)];
    const header = Uint32Array.of(key, tables.length, chunks.length);
    const lengths = Uint32Array.from(parts, ({ byteLength }) => byteLength);
    return [header, lengths, ...parts].map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength));
  }

  /** @param source - the parts. Damaged lists are noticed when they are followed @throws {RangeError} when there cannot be such parts */
  static read(source: PartSource): TermIndex {
    const words = (count: number) => new Uint32Array(source.take(4 * count).buffer);
    const [key, tables, chunks] = words(HEADER_WORDS) as unknown as [number, number, number];
    const lengths = words(tables + chunks + 1);
    const lists = PostingLists.read(source, { key, tables: lengths.subarray(0, tables), chunks: lengths.subarray(tables, -1) });
    const codes = source.take(lengths.at(-1)!);
    return new TermIndex(lists, codes, codes.length);
  }
}

/** A number that two different sets of terms have in common with a chance of 1 in 2^32. */
export function digestOf(terms: Iterable<TermId>): number {
  let sum = 0;
  for (const term of new Set(terms)) sum = (sum + mix(term)) >>> 0;
  return sum;
}
