/**
 * Finds the memories that cover most of a query, as `memories/relevance.ts` has it: of the terms that answer to a word the best
 * counts.
 *
 * It goes through the slots in windows, the newest first, adds up what the postings of each are worth, and leaves out what cannot
 * change the answer (MaxScore). Once the best found have a score that the lists of common words cannot reach together, only the
 * other lists are followed, the essential ones; those of common words only for what these have found and what might still be among
 * the best. After 800,000 postings only those of rare terms are followed, so that no query takes long.
 *
 * ```
 *              newest                                                   oldest
 * caroline      ·        · ·                        ·               ·        essential: every posting
 * group         ·· ··· ··· · ··[·]                 [·]             [·]       until the bar is too high for it alone
 * ```
 * @see https://doi.org/10.1016/0306-4573(95)00020-H (Turtle and Flood: Query Evaluation: Strategies and Optimizations)
 * @module
 */
import { type QueryTerms, WHOLE_WORTH } from "../embeddings/embedder.ts";
import type { BestSlots } from "./best-slots.ts";
import { COVERED, KEPT, REMOVED } from "./length-codes.ts";
import { ListReader, type Window, WINDOW } from "./list-reader.ts";
import type { PostingLists } from "./posting-lists.ts";

/** What an index wants to know of a query: plain arrays, which can be posted to another thread. */
export type QueryWords = Pick<QueryTerms, "weights" | "keys" | "answers">;

/** Memories that have some of a query's words, in no order, and the share of the query that each covers, 0 to 1: until the next search. */
export interface WordHits {
  readonly slots: Uint32Array;
  readonly coverages: Float64Array;
}

/** Which slots may be found. */
export interface SlotFilter {
  passes(slot: number): boolean;
  /** How many of the postings that a search may look at it gives up for asking once. */
  readonly cost: number;
}

/** A word of a query with the lists of what answers to it, of the largest worth first. */
interface Word {
  readonly weight: number;
  readonly lists: ListReader[];
}

/** Words of a query that are looked up, the heaviest: each has a bit in a mask. */
const WORDS_MAX = 32;

/** The score of a memory that covers the whole query, before what is taken off for its length. Scores are whole numbers. */
const WHOLE_SCORE = 2 ** 24;

/**
 * Postings that a search looks at, 3 to 8 ns each; after them it follows only lists that are this short together. Of a million texts one in
 * six questions has more than half of them, and 1.3 % of the ten best are lost where no more are looked at.
 */
const POSTINGS_MAX = 800_000;
const POSTINGS_BEYOND_MAX = 20_000;
/** After this many, what asking a filter costs included, nothing more is found but by rare words. */
const LOOKS_MAX = 1_000_000;

/** A word is rare when at most this many of the memories that may be found have it, of a list that is short enough to look. */
const RARE_MAX = 8;
const RARE_LIST_MAX = 64;

/** How many more than are wanted are held, as a share: fewer where a filter has to be asked about each. */
const SLACK = 2;
const FILTERED_SLACK = 0.25;

/** Asking a list about a slot takes as long as going through this many postings. */
const ASKING_COST = 3;

/** The words of a query to which any memory answers, the heaviest first. */
export function wordsOf({ weights, keys, answers }: QueryWords, postings: PostingLists, window: Window): Word[] {
  const words: Word[] = [];
  let total = 0;
  for (let i = 0; i < weights.length; i++) {
    words.push({ weight: weights[i]!, lists: [] });
    total += weights[i]!;
  }
  const scale = WHOLE_SCORE / WHOLE_WORTH / total;
  for (let entry = 1; entry < keys.length; entry++) {
    const worth = answers[entry]! & 255;
    const head = worth === 0 ? undefined : postings.find(keys[entry]!);
    if (head === undefined) continue;
    const { weight, lists } = words[answers[entry]! >>> 8]!;
    lists.push(new ListReader(postings, head, worth, Math.max(1, Math.round(scale * weight * worth)), window));
  }
  const known = words.filter(({ lists }) => lists.length > 0);
  for (const { lists } of known) lists.sort((a, b) => b.worth - a.worth || a.count - b.count);
  return known.sort((a, b) => b.weight - a.weight || a.lists[0]!.count - b.lists[0]!.count).slice(0, WORDS_MAX);
}

/** Consecutive lists of a word, and by how much following them lowers what a memory in none of the lists followed can have. */
interface Segment {
  readonly word: number;
  readonly from: number;
  readonly to: number;
  readonly reduction: number;
  readonly postings: number;
}

export class TermSearch {
  readonly #lengths: Uint8Array;
  readonly #window: Window;
  readonly #words: readonly Word[];
  readonly #filter: SlotFilter | undefined;
  readonly #best: BestSlots;
  /** Those that lower most for what they cost first. The first `#essential` are followed. */
  readonly #segments: readonly Segment[];
  #essential: number;
  #postings: number;
  /** By word: how many of its lists are essential. Those behind them are only asked about a memory. */
  readonly #cuts: number[];
  /** The words that have such lists, those first of which they can add most; and what all of them can. */
  readonly #others: number[] = [];
  #rest = 0;
  /** Those of them whose lists are asked about each slot of the window. */
  #asked: number[] = [];
  looks = 0;

  /** @param lengths - by slot, the code of its memory's length */
  constructor(lengths: Uint8Array, window: Window, words: readonly Word[], limit: number, filter?: SlotFilter) {
    this.#lengths = lengths;
    this.#window = window;
    this.#words = words;
    this.#filter = filter;
    this.#best = window.best;
    this.#best.begin(limit, Math.ceil(limit * (filter === undefined ? SLACK : FILTERED_SLACK)));
    this.#segments = words.flatMap(segmentsOf).sort((a, b) => b.reduction * a.postings - a.reduction * b.postings || a.word - b.word);
    this.#essential = this.#segments.length;
    this.#postings = this.#segments.reduce((sum, { postings }) => sum + postings, 0);
    this.#cuts = words.map(({ lists }) => lists.length);
  }

  run(slotCount: number): WordHits {
    for (let from = Math.floor((slotCount - 1) / WINDOW) * WINDOW; from >= 0; from -= WINDOW) {
      this.#dropWhatIsNotEssential();
      if (this.#essential === 0) break;
      this.#followEssential(from);
      this.#followOthers(from, slotCount);
      this.#offerTouched(from);
    }
    const { slots, scores } = this.#best.found;
    const coverages = scores;
    for (let i = 0; i < slots.length; i++) coverages[i] = this.#coverage(slots[i]!, scores[i]! / KEPT[this.#lengths[slots[i]!]!]!);
    const rare = this.#rare();
    for (const slot of rare.size === 0 ? [] : slots) rare.delete(slot);
    if (rare.size === 0) return { slots, coverages };
    const rareCoverages = Array.from(rare, ([slot, sum]) => this.#coverage(slot, sum));
    return { slots: Uint32Array.from([...slots, ...rare.keys()]), coverages: Float64Array.from([...coverages, ...rareCoverages]) };
  }

  #coverage(slot: number, sum: number): number {
    return (sum / WHOLE_SCORE) * COVERED[this.#lengths[slot]!]!;
  }

  /** Drops lists until what is only in dropped ones cannot come above the bar, if it is older than what was found. */
  #dropWhatIsNotEssential(): void {
    const bar = this.#best.bar;
    while (this.#essential > 0 && this.#rest + this.#segments[this.#essential - 1]!.reduction <= bar) this.#dropLast();
  }

  #dropLast(): void {
    const { word, from, reduction, postings } = this.#segments[--this.#essential]!;
    this.#postings -= postings;
    this.#rest += reduction;
    if (this.#cuts[word] === this.#words[word]!.lists.length) this.#others.push(word);
    this.#cuts[word] = from;
    this.#others.sort((a, b) => this.#most(b) - this.#most(a));
  }

  /** Adds up what the slots from `from` on have in the essential lists. */
  #followEssential(from: number): void {
    for (let i = 0; i < this.#essential; i++) {
      const { word, from: first, to } = this.#segments[i]!;
      const { lists } = this.#words[word]!;
      for (let list = first; list < to; list++) this.looks += lists[list]!.follow(from, 1 << word, false);
      while (this.looks > POSTINGS_MAX && this.#postings > POSTINGS_BEYOND_MAX) this.#dropLast();
    }
  }

  /**
   * Adds what the touched slots have in the other lists. Where there are many of them, going through the lists of a word takes less
   * time than asking each list about each slot.
   */
  #followOthers(from: number, slotCount: number): void {
    this.#asked = [];
    const { touchedCount: touched } = this.#window;
    if (touched === 0 || this.looks > POSTINGS_MAX) return;
    for (const word of this.#others) {
      const lists = this.#words[word]!.lists.slice(this.#cuts[word]);
      const postings = lists.reduce((sum, { count }) => sum + count, 0) * Math.min(1, WINDOW / slotCount);
      if (postings > ASKING_COST * touched * lists.length) this.#asked.push(word);
      else for (const list of lists) this.looks += list.follow(from, 1 << word, true);
    }
  }

  #passes(slot: number): boolean {
    if (this.#filter === undefined) return true;
    this.looks += this.#filter.cost;
    return this.#filter.passes(slot);
  }

  /** Offers the touched slots with all that they have, and clears the window. */
  #offerTouched(from: number): void {
    const { cells, touched, touchedCount } = this.#window;
    const [lengths, best] = [this.#lengths, this.#best];
    const rest = this.#asked.reduce((sum, word) => sum + this.#most(word), 0);
    // Lists can be asked about older and older slots only.
    if (rest > 0) touched.subarray(0, touchedCount).sort();
    let bar = best.bar;
    for (let i = touchedCount - 1; i >= 0; i--) {
      const at = touched[i]!;
      const mask = cells[2 * at]!;
      let sum = cells[2 * at + 1]!;
      cells[2 * at] = 0;
      cells[2 * at + 1] = 0;
      if (sum + rest < bar) continue;
      const slot = from + at;
      const kept = KEPT[lengths[slot]!]!;
      if ((sum + rest) * kept < bar) continue;
      if (rest > 0) sum = this.#completed(slot, sum, mask, rest, kept, bar);
      const score = sum * kept;
      if (this.looks > LOOKS_MAX || score === 0 || score < bar || !this.#passes(slot)) continue;
      best.offer(slot, score);
      bar = best.bar;
    }
    best.raiseBar();
    this.#window.touchedCount = 0;
  }

  /** What the lists of a word that are not essential can add. */
  #most(word: number): number {
    return this.#words[word]!.lists[this.#cuts[word]!]!.score;
  }

  /** Adds what a slot has in the lists that are to be asked, until it is clear that it does not come above the bar. */
  #completed(slot: number, sum: number, mask: number, most: number, kept: number, bar: number): number {
    let [score, rest] = [sum, most];
    for (const word of this.#asked) if ((mask & (1 << word)) !== 0) rest -= this.#most(word);
    for (const word of this.#asked) {
      if ((mask & (1 << word)) !== 0) continue;
      rest -= this.#most(word);
      const { lists } = this.#words[word]!;
      for (let i = this.#cuts[word]!; i < lists.length; i++) {
        const list = lists[i]!;
        if ((score + rest + list.score) * kept < bar) return 0;
        this.looks++;
        if (!list.has(slot)) continue;
        score += list.score;
        break;
      }
    }
    return score;
  }

  /** What has a word itself that is rare, with what it has of the whole score by such words. */
  #rare(): Map<number, number> {
    const rare = new Map<number, number>();
    for (const { lists } of this.#words) {
      const [list] = lists;
      if (list === undefined || list.worth !== WHOLE_WORTH || list.count > RARE_LIST_MAX) continue;
      const found: number[] = [];
      for (const slot of list.all()) {
        if (this.#lengths[slot] !== REMOVED && this.#passes(slot) && found.push(slot) > RARE_MAX) break;
      }
      if (found.length <= RARE_MAX) for (const slot of found) rare.set(slot, (rare.get(slot) ?? 0) + list.score);
    }
    return rare;
  }
}

/** The lower hull of a word's lists: what those behind a place can add, over the postings of those before it. */
function segmentsOf({ lists }: Word, word: number): Segment[] {
  const segments: Segment[] = [];
  for (let from = 0; from < lists.length;) {
    let best: Segment | undefined;
    let postings = 0;
    for (let to = from + 1; to <= lists.length; to++) {
      postings += lists[to - 1]!.count;
      const reduction = lists[from]!.score - (lists[to]?.score ?? 0);
      if (best === undefined || reduction * best.postings >= best.reduction * postings) best = { word, from, to, postings, reduction };
    }
    segments.push(best!);
    from = best!.to;
  }
  return segments;
}
