/**
 * An inverted index: from each term to the memories that have it, so that a search by words looks at few memories of many.
 *
 * Derived from the vectors in the store, each of which is a slot here: a number that rises with the vector's id and is never
 * given again. A word that hardly any memory has leads to all that have it, however little it is of the query.
 *
 * @module
 */
import type { TermId } from "../../embeddings/embedder.ts";
import { mix } from "../../lib/hash.ts";
import { PostingLists } from "./posting-lists.ts";
import type { PartSource } from "../snapshot/snapshot-file.ts";
import { newScratch, type QueryWords, type SlotFilter, TermSearch } from "./term-search.ts";

/** Postings of a text that are looked at, what asking a filter costs included. */
const SAME_PROBES_MAX = 100_000;

/** A key and three counts; the lengths of all other parts follow. */
const HEADER_WORDS = 4;

export class TermIndex {
  readonly #lists: PostingLists;
  readonly #scratch = newScratch();
  #slots: number;
  /** Postings that the last search looked at. */
  probes = 0;

  private constructor(lists: PostingLists, slots: number) {
    this.#lists = lists;
    this.#slots = slots;
  }

  static empty(): TermIndex {
    const key = crypto.getRandomValues(new Uint32Array(1))[0]!;
    return new TermIndex(PostingLists.empty(key), 0);
  }

  /** One more than the last slot. */
  get slots(): number {
    return this.#slots;
  }

  /** Memory taken. */
  get bytes(): number {
    return this.#lists.bytes;
  }

  /** Slots must rise, and may leave some out. @param terms - as they are stored, with the fingerprint as the last */
  add(slot: number, terms: Uint32Array): void {
    for (let i = 0; i < terms.length; i++) this.#lists.append(terms[i]!, slot);
    this.#slots = slot + 1;
  }

  /**
   * The `limit` slots whose memories have most of a query, of equal ones the newest; and whatever else has one of its words that is
   * rare among what passes. Slots that have none of its words are not found.
   *
   * @param filter - which also knows what was removed: its postings stay until the index is rebuilt
   * @throws {DamagedListsError} when the index was read from a file that is not sound
   */
  search(query: QueryWords, limit: number, filter: SlotFilter): Uint32Array {
    const search = new TermSearch(this.#lists, this.#scratch, query, limit, filter);
    const found = search.run(this.#slots);
    this.probes = search.probes;
    return found;
  }

  /** The newest `limit` slots of texts that have exactly these words, in this order. */
  same(fingerprint: TermId, limit: number, filter: SlotFilter): number[] {
    const head = this.#lists.find(fingerprint);
    if (head === undefined) return [];
    const found: number[] = [];
    let probes = 0;
    for (const slot of this.#lists.slots(head)) {
      probes += 1 + filter.cost;
      if (probes > SAME_PROBES_MAX) break;
      if (filter.passes(slot) && found.push(slot) === limit) break;
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
    const parts = [...tables, ...chunks];
    const header = Uint32Array.of(key, tables.length, chunks.length, this.#slots);
    const lengths = Uint32Array.from(parts, ({ byteLength }) => byteLength);
    return [header, lengths, ...parts].map(({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength));
  }

  /** @param source - the parts. Damaged lists are noticed when they are followed @throws {RangeError} when there cannot be such parts */
  static read(source: PartSource): TermIndex {
    const words = (count: number) => new Uint32Array(source.take(4 * count).buffer);
    const [key, tables, chunks, slots] = words(HEADER_WORDS) as unknown as [number, number, number, number];
    const lengths = words(tables + chunks);
    const lists = PostingLists.read(source, { key, tables: lengths.subarray(0, tables), chunks: lengths.subarray(tables) });
    return new TermIndex(lists, slots);
  }
}

/** A number that two different sets of terms have in common with a chance of 1 in 2^32. */
export function digestOf(terms: Iterable<TermId>): number {
  let sum = 0;
  for (const term of new Set(terms)) sum = (sum + mix(term)) >>> 0;
  return sum;
}
