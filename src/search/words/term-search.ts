/**
 * Finds the memories that have most of a query's words, by what these weigh.
 *
 * It goes through the slots in windows, the newest first, adds up what the words of each weigh, and leaves out what cannot change the
 * answer (MaxScore). Once the best found have more than the common words weigh together, only the other lists are followed, the essential
 * ones; those of common words only for what these have found and what might still be among the best. After 800,000 postings only those of
 * rare terms are followed, so that no query takes long.
 *
 * ```
 *              newest                                                   oldest
 * caroline      ·        · ·                        ·               ·        essential: every posting
 * group         ·· ··· ··· · ··[·]                 [·]             [·]       until the threshold is too high for it alone
 * ```
 * @see https://doi.org/10.1016/0306-4573(95)00020-H (Turtle and Flood: Query Evaluation: Strategies and Optimizations)
 * @module
 */
import type { AskedWords } from "../../embeddings/score.ts";
import { kthLargest } from "../../lib/kth-largest.ts";
import { DamagedListsError, type ListCursor, type ListHead, type PostingLists } from "./posting-lists.ts";

/** Part of a query that an index needs. */
export type QueryWords = Pick<AskedWords, "ids" | "weights">;

/** Slots that may be found. */
export interface SlotFilter {
  passes(slot: number): boolean;
  /** Number of postings of the scan budget that asking once costs. */
  readonly cost: number;
}

/** A word of the query that memories have. */
interface Word {
  readonly head: ListHead;
  readonly cursor: ListCursor;
  /** Share of the whole that a slot with the term has. */
  readonly score: number;
}

/** The score of a memory that has the whole query. Scores are whole numbers. */
const WHOLE_SCORE = 2 ** 24;
/** Slots that are scored together. */
const WINDOW = 32_768;

/**
 * Postings that a search looks at, some 3 ns each, and twice as many for a query of very many words; after them it follows only lists that
 * are this short together.
 */
const POSTINGS_MAX = 800_000;
const MANY_WORDS = 32;
const POSTINGS_BEYOND_MAX = 20_000;
/** After this many more, what asking a filter costs included, nothing is found but by rare words. */
const PROBES_BEYOND_MAX = 200_000;

/** A word is rare when at most this many of the memories that may be found have it, of a list that is short enough to look. */
const RARE_MAX = 8;
const RARE_LIST_MAX = 64;

/** Scratch of a search, all sums zero between two. */
interface Scratch {
  readonly sums: Uint32Array;
  readonly touched: Uint32Array;
}

export function newScratch(): Scratch {
  return { sums: new Uint32Array(WINDOW), touched: new Uint32Array(WINDOW) };
}

export class TermSearch {
  readonly #lists: PostingLists;
  readonly #scratch: Scratch;
  readonly #filter: SlotFilter;
  /** The heaviest first. The first `#essential` are followed. */
  readonly #words: readonly Word[];
  /** By word: what it and those behind it weigh together; 0 behind the last. */
  readonly #rest: readonly number[];
  #essential: number;
  readonly #best: BestSlots;
  readonly #postingsMax: number;
  probes = 0;

  constructor(lists: PostingLists, scratch: Scratch, query: QueryWords, limit: number, filter: SlotFilter) {
    this.#lists = lists;
    this.#scratch = scratch;
    this.#filter = filter;
    this.#words = wordsOf(query, lists);
    this.#rest = restsOf(this.#words);
    this.#essential = this.#words.length;
    this.#best = new BestSlots(limit);
    this.#postingsMax = query.ids.length > MANY_WORDS ? 2 * POSTINGS_MAX : POSTINGS_MAX;
  }

  /** @returns the slots of the best, and those of memories with a rare word, in no order. @throws {DamagedListsError} */
  run(slotCount: number): Uint32Array {
    if (this.#words.some(({ head }) => head.newest >= slotCount)) throw new DamagedListsError();
    for (let from = Math.floor((slotCount - 1) / WINDOW) * WINDOW; from >= 0; from -= WINDOW) {
      // Slots that are only in lists that are left out cannot come above the threshold, and are older than what was found.
      while (this.#essential > 0 && this.#rest[this.#essential - 1]! <= this.#best.threshold) this.#essential--;
      if (this.#essential === 0) break;
      this.#offer(from, this.#followEssential(from));
    }
    const found = this.#best.chosen();
    const rare = this.#rare();
    if (rare.length === 0) return found;
    const known = new Set(found);
    return Uint32Array.from([...found, ...new Set(rare.filter((slot) => !known.has(slot)))]);
  }

  /** Adds up what the slots of a window weigh by the essential lists. @returns how many of them have anything */
  #followEssential(from: number): number {
    const { sums, touched } = this.#scratch;
    let count = 0;
    for (let i = 0; i < this.#essential; i++) {
      const { cursor, score } = this.#words[i]!;
      const before = cursor.passed;
      cursor.has(from + WINDOW - 1);
      count = cursor.add(score, sums, from, touched, count);
      this.probes += cursor.passed - before;
      while (this.probes > this.#postingsMax && this.#essentialPostings() > POSTINGS_BEYOND_MAX) this.#essential--;
    }
    return count;
  }

  #essentialPostings(): number {
    let postings = 0;
    for (let i = 0; i < this.#essential; i++) postings += this.#words[i]!.head.count;
    return postings;
  }

  /** Offers the touched slots of a window with all that they have, and clears it. */
  #offer(from: number, count: number): void {
    const { sums, touched } = this.#scratch;
    const rest = this.#rest[this.#essential]!;
    let kept = 0;
    for (let i = 0; i < count; i++) {
      const slot = touched[i]!;
      if (sums[slot - from]! + rest >= this.#best.threshold) touched[kept++] = slot;
      else sums[slot - from] = 0;
    }
    const isCompleted = rest > 0 && this.probes <= this.#postingsMax;
    // Lists can be asked about older and older slots only.
    if (isCompleted) touched.subarray(0, kept).sort();
    for (let i = kept - 1; i >= 0; i--) {
      const slot = touched[i]!;
      const sum = sums[slot - from]!;
      sums[slot - from] = 0;
      const score = isCompleted ? this.#completed(slot, sum) : sum;
      if (score >= this.#best.threshold && this.#passes(slot)) this.#best.offer(slot, score);
    }
  }

  /** The sum of a slot with what it has in the other lists, until it is clear that it does not come to the threshold. */
  #completed(slot: number, sum: number): number {
    let score = sum;
    for (let i = this.#essential; i < this.#words.length && score + this.#rest[i]! >= this.#best.threshold; i++) {
      this.probes++;
      const word = this.#words[i]!;
      if (word.cursor.has(slot)) score += word.score;
    }
    return score;
  }

  #passes(slot: number): boolean {
    this.probes += this.#filter.cost;
    return this.probes <= this.#postingsMax + PROBES_BEYOND_MAX && this.#filter.passes(slot);
  }

  /** The slots that have a word that is rare among what passes. */
  #rare(): number[] {
    const rare: number[] = [];
    for (const { head } of this.#words) {
      if (head.count > RARE_LIST_MAX) continue;
      const found: number[] = [];
      for (const slot of this.#lists.slots(head)) if (this.#filter.passes(slot) && found.push(slot) > RARE_MAX) break;
      if (found.length <= RARE_MAX) rare.push(...found);
    }
    return rare;
  }
}

/** The words of a query that any memory has, those first that weigh most for each posting. */
function wordsOf({ ids, weights }: QueryWords, lists: PostingLists): Word[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const words: Word[] = [];
  for (let i = 0; i < ids.length; i++) {
    const head = lists.find(ids[i]!);
    if (head === undefined) continue;
    words.push({ head, cursor: lists.cursor(head), score: Math.max(1, Math.round((WHOLE_SCORE * weights[i]!) / total)) });
  }
  return words.sort((a, b) => b.score * a.head.count - a.score * b.head.count);
}

function restsOf(words: readonly Word[]): number[] {
  const rests = Array.from({ length: words.length + 1 }, () => 0);
  for (let i = words.length - 1; i >= 0; i--) rests[i] = rests[i + 1]! + words[i]!.score;
  return rests;
}

/** Scores that are nearly equal are counted together, to know a threshold before the best are chosen. */
const BUCKETS = 4_096;
const BUCKET_SIZE = WHOLE_SCORE / BUCKETS;
const HELD_MORE_MIN = 64;
/** More than there can be slots: a score times this and a slot are one exact number. */
const SLOTS_MAX = 2 ** 28;

/** The best of what is offered, of equal ones the newest. As many more are held, so that choosing is worth while. */
class BestSlots {
  /** Slots of a lower score are not among them. */
  threshold = 0;
  readonly #limit: number;
  /** Scores with their slots: the greater number is better. */
  readonly #held: Float64Array;
  #count = 0;
  readonly #buckets = new Uint32Array(BUCKETS);
  /** The lowest bucket with fewer than are wanted in those above it, and how many these are. */
  #bucket = 0;
  #above = 0;

  constructor(limit: number) {
    this.#limit = limit;
    this.#held = new Float64Array(limit + Math.max(limit, HELD_MORE_MIN));
  }

  offer(slot: number, score: number): void {
    if (this.#count === this.#held.length) this.#choose();
    this.#held[this.#count++] = score * SLOTS_MAX + slot;
    const bucket = Math.min(BUCKETS - 1, Math.floor(score / BUCKET_SIZE));
    this.#buckets[bucket]!++;
    if (bucket <= this.#bucket || ++this.#above < this.#limit) return;
    while (this.#above >= this.#limit) this.#above -= this.#buckets[++this.#bucket]!;
    this.threshold = Math.max(this.threshold, this.#bucket * BUCKET_SIZE);
  }

  chosen(): Uint32Array {
    if (this.#count > this.#limit) this.#choose();
    return Uint32Array.from(this.#held.subarray(0, this.#count), (held) => held - SLOTS_MAX * Math.floor(held / SLOTS_MAX));
  }

  #choose(): void {
    const least = kthLargest(this.#held.subarray(0, this.#count), this.#limit);
    let kept = 0;
    for (let i = 0; i < this.#count; i++) if (this.#held[i]! >= least) this.#held[kept++] = this.#held[i]!;
    this.#count = kept;
    this.threshold = Math.max(this.threshold, Math.floor(least / SLOTS_MAX));
  }
}
