/**
 * What a search looks for, and the best of what it finds.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";

export interface Query {
  /** As `quantize` gives it. */
  readonly vector: Int16Array;
  /** Hash of the query's words in order; 0 without words. */
  readonly fingerprint: number;
  readonly limit: number;
}

/** A stored vector, by its id, and its cosine with the query. */
export interface Hit {
  readonly id: BareId;
  /** -1 to 1; vectors have unit length. */
  readonly cosine: number;
}

/** A hit of which the memory is known. */
export interface Neighbour extends Hit {
  readonly memory: BareId;
}

/** Orders hits best first, of equal ones the newer vector first. */
export function byCosine(a: Hit, b: Hit): number {
  return b.cosine - a.cosine || (a.id < b.id ? 1 : -1);
}

/** Orders neighbours best first, of equal ones the newer memory first. */
export function byNearness(a: Neighbour, b: Neighbour): number {
  return b.cosine - a.cosine || (a.memory < b.memory ? 1 : -1);
}

/** Keeps the first `limit` of what it is offered, in the order of `compare`, which begins with the cosine. */
export class TopK<Item extends Hit> {
  #kept: Item[] = [];
  /** The last of the best: what comes after it need not be kept. */
  #last: Item | undefined;
  readonly #limit: number;
  readonly #compare: (a: Item, b: Item) => number;

  constructor(limit: number, compare: (a: Item, b: Item) => number) {
    this.#limit = limit;
    this.#compare = compare;
  }

  /** Whether a hit of this cosine might be kept. */
  accepts(cosine: number): boolean {
    return this.#last === undefined || cosine >= this.#last.cosine;
  }

  offer(item: Item): void {
    if (this.#last !== undefined && this.#compare(item, this.#last) > 0) return;
    this.#kept.push(item);
    // Cut rarely: sorting twice the limit once is quicker than keeping order all the time.
    if (this.#kept.length >= this.#limit * 2) this.#cut();
  }

  best(): Item[] {
    this.#cut();
    return this.#kept;
  }

  #cut(): void {
    this.#kept.sort(this.#compare);
    this.#kept.length = Math.min(this.#kept.length, this.#limit);
    if (this.#kept.length === this.#limit) this.#last = this.#kept.at(-1);
  }
}
