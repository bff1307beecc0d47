/**
 * The terms that are known, by id: a hash table with chaining, keyed per process (`bucketOf`). For a text of thousands of new
 * terms it takes a third of the time of a `Map`.
 *
 * @module
 */
import { bucketOf, type TermId } from "../embedder.ts";

/** One term with what is known of it. `count` and `text` belong to the text being cut; read them before the next is cut. */
export interface Term {
  readonly id: TermId;
  /** The table's row, or -1. */
  readonly row: number;
  /** How much it says, 0 to 1; words that the table does not know say most. */
  readonly weight: number;
  /** 32 bits of its characters. */
  readonly hash: number;
  /** How often it is in the text being cut. */
  count: number;
  /** The number of the text it was last seen in. */
  text: number;
  /** The next one of its bucket in the table of terms. */
  next: Term | undefined;
}

export class TermTable {
  #buckets: (Term | undefined)[];
  size = 0;

  constructor(expectedSize: number) {
    this.#buckets = Array.from<Term | undefined>({ length: 2 * expectedSize });
  }

  /** Returns the term with that id, made of the rest if there is none yet. */
  get(id: TermId, row: number, hash: number, weight: number): Term {
    const bucket = bucketOf(id, this.#buckets.length - 1);
    for (let term = this.#buckets[bucket]; term !== undefined; term = term.next) if (term.id === id) return term;
    const term: Term = { id, row, hash, weight, count: 0, text: 0, next: this.#buckets[bucket] };
    this.#buckets[bucket] = term;
    this.size++;
    if (2 * this.size > this.#buckets.length) this.#enlarge();
    return term;
  }

  #enlarge(): void {
    const larger = Array.from<Term | undefined>({ length: 2 * this.#buckets.length });
    for (const first of this.#buckets) {
      for (let term = first, next = term?.next; term !== undefined; term = next, next = term?.next) {
        const bucket = bucketOf(term.id, larger.length - 1);
        term.next = larger[bucket];
        larger[bucket] = term;
      }
    }
    this.#buckets = larger;
  }
}
