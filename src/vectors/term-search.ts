/**
 * Finds the memories that cover most of a query, as `memories/relevance.ts` has it: of the terms that answer to a word the best
 * counts.
 *
 * It goes through the slots in windows, the newest first, adds up what the postings of each are worth, and leaves out what cannot
 * change the answer (MaxScore). Once the best found have a score that the lists of common words cannot reach together, only the
 * other lists are followed, the essential ones; those of common words only for what these have found and what might still be among
 * the best. Where many are wanted, the newest windows say how high the bar will be in the end. After 800,000 postings only those of rare
 * terms are followed, so that no query takes long. `posting-scorer.ts` does what is done for each posting; which lists are followed is
 * decided here. A query of many words is searched for in lots of them (`term-index.ts`).
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
import { COVERED, REMOVED } from "./length-codes.ts";
import type { ListHead, PostingLists } from "./posting-lists.ts";
import { type Scorer, type Wanted, WHOLE_SCORE, WINDOW } from "./posting-scorer.ts";

/** What an index wants to know of a query. */
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

/** The list of a term that answers to a word. */
interface List extends ListHead {
  readonly worth: number;
  /** What a slot in it has of the whole score. */
  readonly score: number;
}

/** A word of a query with the lists of what answers to it, of the largest worth first. */
export interface Word {
  readonly weight: number;
  readonly lists: List[];
}

/** Which memories are too far behind the best: those that cover of the query `gap` less than the one of that rank. */
export interface Leading {
  readonly rank: number;
  readonly gap: number;
}

/** Words that are searched for together: each has a bit in a mask. */
export const WORDS_MAX = 32;

/**
 * Postings that a search looks at, 2 to 4 ns each; after them it follows only lists that are this short together. Of a million texts one in
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

/**
 * From this number wanted on, the newest slots say where the bar will be: when they have more that is better than their share of all, by
 * three standard deviations. Of a million texts the same 99.3 % of the ten best are found, and a search by words takes .79 of the time.
 */
const EXPECTED_MIN = 500;
const EXPECTED_MARGIN = 3;
/** A search that finds less than this share of what is wanted is made again without expecting anything. */
const MISLED_SHARE = 0.5;

/** Asking a list about a slot takes as long as going through this many postings. */
const ASKING_COST = 3;

/** The words of a query to which any memory answers, the heaviest first. */
export function wordsOf({ weights, keys, answers }: QueryWords, postings: PostingLists): Word[] {
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
    lists.push({ ...head, worth, score: Math.max(1, Math.round(scale * weight * worth)) });
  }
  const known = words.filter(({ lists }) => lists.length > 0);
  for (const { lists } of known) lists.sort((a, b) => b.worth - a.worth || a.count - b.count);
  return known.sort((a, b) => b.weight - a.weight || a.lists[0]!.count - b.lists[0]!.count);
}

/** Consecutive lists of a word, and by how much following them lowers what a memory in none of the lists followed can have. */
interface Segment {
  readonly word: number;
  readonly from: number;
  readonly to: number;
  readonly reduction: number;
  readonly postings: number;
}

/** What is searched. */
interface Searched {
  /** By slot, the code of its memory's length. */
  readonly lengths: Uint8Array;
  readonly postings: PostingLists;
  readonly scorer: Scorer;
}

export interface SearchOptions {
  /** Asked only for slots that would be among the best of what was looked at. */
  readonly filter?: SlotFilter | undefined;
  /** Without it none are too far behind. */
  readonly leading?: Leading;
  /** Whether older slots are taken to have as much of what is best as newer ones: not by default where that is little, or with a filter. */
  readonly expects?: boolean;
}

export class TermSearch {
  readonly #lengths: Uint8Array;
  readonly #postings: PostingLists;
  readonly #scorer: Scorer;
  readonly #words: readonly Word[];
  readonly #filter: SlotFilter | undefined;
  readonly #wanted: Wanted;
  readonly #expects: boolean;
  /** Those that lower most for what they cost first. The first `#essential` are followed. */
  readonly #segments: readonly Segment[];
  #essential: number;
  /** How many postings these have. */
  #essentialPostings: number;
  /** By word: how many of its lists are essential. Those behind them are only asked about a memory. */
  readonly #cuts: number[];
  /** The words that have such lists, those first of which they can add most; and what all of them can. */
  readonly #others: number[] = [];
  #rest = 0;
  looks = 0;

  /** @param words - at most `WORDS_MAX` */
  constructor({ lengths, postings, scorer }: Searched, words: readonly Word[], limit: number, { filter, leading, expects }: SearchOptions) {
    this.#lengths = lengths;
    this.#postings = postings;
    this.#scorer = scorer;
    this.#words = words;
    this.#filter = filter;
    const slack = Math.ceil(limit * (filter === undefined ? SLACK : FILTERED_SLACK));
    this.#wanted = { limit, slack, rank: leading?.rank ?? limit, gap: (leading?.gap ?? 1) * WHOLE_SCORE };
    this.#expects = expects ?? (filter === undefined && limit >= EXPECTED_MIN);
    this.#segments = words.flatMap(segmentsOf).sort((a, b) => b.reduction * a.postings - a.reduction * b.postings || a.word - b.word);
    this.#essential = this.#segments.length;
    this.#essentialPostings = this.#segments.reduce((sum, { postings }) => sum + postings, 0);
    this.#cuts = words.map(({ lists }) => lists.length);
  }

  run(slotCount: number): WordHits {
    this.#scorer.begin(this.#postings, this.#words, this.#segments, this.#lengths, this.#wanted);
    for (let from = Math.floor((slotCount - 1) / WINDOW) * WINDOW; from >= 0; from -= WINDOW) {
      this.#dropWhatIsNotEssential();
      if (this.#essential === 0) break;
      this.#followEssential(from);
      this.#offerTouched(from, this.#followOthers(from, slotCount));
      if (this.#expects) this.#expect(slotCount - from, slotCount);
    }
    const { slots, coverages } = this.#scorer.found();
    const rare = this.#rare();
    for (const slot of rare.size === 0 ? [] : slots) rare.delete(slot);
    if (rare.size === 0) return { slots, coverages };
    const rareCoverages = Array.from(rare, ([slot, sum]) => this.#coverage(slot, sum));
    return { slots: Uint32Array.from([...slots, ...rare.keys()]), coverages: Float64Array.from([...coverages, ...rareCoverages]) };
  }

  /** Raises the bar to where it will be in the end if older slots have as much of what is best as newer ones, or somewhat more. */
  #expect(seen: number, slotCount: number): void {
    if (seen < WINDOW) return;
    const expected = (this.#wanted.limit * seen) / slotCount;
    this.#scorer.expect(Math.ceil(expected + EXPECTED_MARGIN * Math.sqrt(expected)));
  }

  /** Whether much was left out because older slots do not have as much. */
  isMisled({ slots }: WordHits): boolean {
    const { expected, bar } = this.#scorer;
    return expected > 0 && expected === bar && slots.length < MISLED_SHARE * this.#wanted.limit;
  }

  #coverage(slot: number, sum: number): number {
    return (sum / WHOLE_SCORE) * COVERED[this.#lengths[slot]!]!;
  }

  /** Drops lists until what is only in dropped ones cannot come above the bar, if it is older than what was found. */
  #dropWhatIsNotEssential(): void {
    const { bar } = this.#scorer;
    while (this.#essential > 0 && this.#rest + this.#segments[this.#essential - 1]!.reduction <= bar) this.#dropLast();
  }

  #dropLast(): void {
    const { word, from, reduction, postings } = this.#segments[--this.#essential]!;
    this.#essentialPostings -= postings;
    this.#rest += reduction;
    if (this.#cuts[word] === this.#words[word]!.lists.length) this.#others.push(word);
    this.#cuts[word] = from;
    this.#others.sort((a, b) => this.#most(b) - this.#most(a));
  }

  /** Adds up what the slots from `from` on have in the essential lists. */
  #followEssential(from: number): void {
    for (let next = 0; next < this.#essential;) {
      next = this.#scorer.follow(from, next, this.#essential, POSTINGS_MAX - this.looks);
      this.looks += this.#scorer.looks;
      while (this.looks > POSTINGS_MAX && this.#essentialPostings > POSTINGS_BEYOND_MAX) this.#dropLast();
    }
  }

  /**
   * Adds what the touched slots have in the other lists. Where there are many of them, going through the lists of a word takes less
   * time than asking each list about each slot.
   *
   * @returns the words whose lists are to be asked
   */
  #followOthers(from: number, slotCount: number): number[] {
    const { touched } = this.#scorer;
    const asked: number[] = [];
    if (touched === 0 || this.looks > POSTINGS_MAX) return asked;
    const followed: number[] = [];
    for (const word of this.#others) {
      const lists = this.#words[word]!.lists.slice(this.#cuts[word]);
      const postings = lists.reduce((sum, { count }) => sum + count, 0) * Math.min(1, WINDOW / slotCount);
      (postings > ASKING_COST * touched * lists.length ? asked : followed).push(word);
    }
    this.#scorer.followTouched(from, followed, this.#cuts);
    this.looks += this.#scorer.looks;
    return asked;
  }

  #passes(slot: number): boolean {
    if (this.#filter === undefined) return true;
    this.looks += this.#filter.cost;
    return this.#filter.passes(slot);
  }

  /** Offers the touched slots with all that they have, and clears the window. */
  #offerTouched(from: number, asked: readonly number[]): void {
    const passes = (slot: number) => this.looks <= LOOKS_MAX && this.#passes(slot);
    this.#scorer.collect(from, asked, this.#cuts, this.#filter === undefined ? undefined : passes);
    this.looks += this.#scorer.looks;
  }

  /** What the lists of a word that are not essential can add. */
  #most(word: number): number {
    return this.#words[word]!.lists[this.#cuts[word]!]!.score;
  }

  /** What has a word itself that is rare, with what it has of the whole score by such words. */
  #rare(): Map<number, number> {
    const rare = new Map<number, number>();
    for (const { lists } of this.#words) {
      const [list] = lists;
      if (list === undefined || list.worth !== WHOLE_WORTH || list.count > RARE_LIST_MAX) continue;
      const found: number[] = [];
      for (const slot of this.#postings.slots(list)) {
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
