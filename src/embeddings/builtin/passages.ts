/**
 * Cuts a long text into passages, each of which gets a vector of its own: one vector of many facts is near to none of them.
 *
 * ```
 * … Anna moved to Oslo. She works there as a nurse.┊ Boris sold his boat. He wants a larger one.┊ Clara plays …
 * └────────────────────── a passage ──────────────────────┘
 *                               └─────────────────── the next: they overlap ────────────────────┘
 * ```
 * A passage ends with a sentence where one ends within its last quarter. It is measured in words; in scripts that put no spaces between
 * them, and in what else has none, by as many characters as have the pieces of a word, as the network cuts them. Pure.
 *
 * @module
 */
import { PASSAGES_MAX } from "../embedder.ts";

/** Up to this many words a text is one passage, which is all of it. */
const WHOLE_WORDS_MAX = 100;
/** Words of a passage; the last one may have as many more as would not make another. */
const WORDS_MIN = 30;
const WORDS_MAX = 40;
const LAST_WORDS_MAX = 50;
/** Words that two neighbours have in common, about: as many fewer or more as let the second begin with a sentence. */
const OVERLAP_WORDS = 8;
const OVERLAP_WORDS_MIN = 4;
const OVERLAP_WORDS_MAX = 12;
/** A text that would have too many passages has longer ones: they grow by this factor until they are few enough. */
const GROWTH = 1.25;

/** Position of a passage in its text, in UTF-16 units. */
export interface Passage {
  readonly from: number;
  readonly to: number;
}

/** Returns the passages of a text, at least one. All of the text is in one of them. */
export function passagesOf(text: string): Passage[] {
  // No word takes less than a unit, and the space between two another one.
  const units = text.length < 2 * WHOLE_WORDS_MAX ? undefined : cut(text);
  if (units === undefined || units.words.at(-1)! <= WHOLE_WORDS_MAX) return [{ from: 0, to: text.length }];
  for (let scale = 1; ; scale *= GROWTH) {
    const passages = passagesAt(scale, units);
    if (passages.length <= PASSAGES_MAX) return passages;
  }
}

/** @param scale - by how much they are longer @returns one more than there may be, or all */
function passagesAt(scale: number, { starts, ends, words, sentences }: Units): Passage[] {
  const end = starts.length;
  const behind = (place: number, count: number) => placeOf(words, words[place]! + scale * count);
  const passages: Passage[] = [];
  for (let from = 0; passages.length <= PASSAGES_MAX;) {
    const isLast = words[end]! - words[from]! <= scale * LAST_WORDS_MAX;
    const longest = isLast ? end : Math.max(from + 1, behind(from, WORDS_MAX));
    const to = isLast ? end : (lastSentence(sentences, behind(from, WORDS_MIN), longest) ?? longest);
    passages.push({ from: starts[from]!, to: ends[to - 1]! });
    if (isLast) break;
    const next = nearestSentence(sentences, behind(to, -OVERLAP_WORDS_MAX), behind(to, -OVERLAP_WORDS_MIN), behind(to, -OVERLAP_WORDS));
    from = Math.max(from + 1, next);
  }
  return passages;
}

/** A text in units between which it may be cut, each a word or a part of one. */
interface Units {
  /** Begin and end of each, in UTF-16 units; spaces belong to none. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
  /** Number of words before each unit, and at last of all words. */
  readonly words: readonly number[];
  /** True if a sentence begins with it; and at last that one would. */
  readonly sentences: readonly boolean[];
}

/** Characters that count as a word: of scripts with a sign for a syllable or more, of others without spaces, and of any longer word. */
const DENSE_PER_WORD = 2;
const UNSPACED_PER_WORD = 5;
const CHARACTERS_PER_WORD = 12;

const DENSE = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Bopo}\p{sc=Yiii}]/u;
const UNSPACED = /[\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}\p{sc=Java}\p{sc=Bali}]/u;
const SPACE = /\s/u;
const LINE_END = /[\n\r\u0085\u2028\u2029]/u;
/** Ends a sentence where a space follows; and wherever it stands. */
const SENTENCE_END = /[.!?…:;։؟۔።।॥။།៕]/u;
const FULL_STOP = /[。！？｡．]/u;
/** Characters that may stand between that and the next sentence. */
const CLOSING = /[\p{Pe}\p{Pf}\p{Pi}"']/u;
const OPENING = /[\p{Ps}\p{Pi}]/u;
/** Characters that are part of the one before; and joiners, with what stands behind them. */
const MARK = /[\p{M}\p{Cf}]/u;
const TRAILING = /[\p{M}\p{P}\p{S}\p{Cf}]/u;

function cut(text: string): Units {
  const starts: number[] = [];
  const ends: number[] = [];
  const words: number[] = [];
  const sentences: boolean[] = [];
  let count = 0;
  /** Characters of the unit that is being read. */
  let length = 0;
  let ended: "no" | "at space" | "yes" = "yes";
  let isAfterSpace = true;
  let at = 0;
  for (const character of text) {
    const size = character.length;
    if (SPACE.test(character)) {
      if (LINE_END.test(character) || ended === "at space") ended = "yes";
      isAfterSpace = true;
    } else {
      const perWord = DENSE.test(character) ? DENSE_PER_WORD : UNSPACED.test(character) ? UNSPACED_PER_WORD : undefined;
      const isTrailing = (length < CHARACTERS_PER_WORD ? TRAILING : MARK).test(character) && !(ended === "yes" && OPENING.test(character));
      if (isAfterSpace || (!isTrailing && (perWord !== undefined || ended === "yes" || length >= CHARACTERS_PER_WORD))) {
        starts.push(at);
        ends.push(at);
        words.push(count);
        sentences.push(ended === "yes");
        // A character of a script without spaces is a part of a word.
        count += perWord === undefined ? 1 : 1 / perWord;
        length = 0;
        ended = "no";
      }
      length++;
      ends[ends.length - 1] = at + size;
      if (FULL_STOP.test(character)) ended = "yes";
      else if (SENTENCE_END.test(character)) ended = "at space";
      else if (!CLOSING.test(character)) ended = "no";
      isAfterSpace = false;
    }
    at += size;
  }
  words.push(count);
  sentences.push(true);
  return { starts, ends, words, sentences };
}

/** Returns the first unit that has at least this many words before it. */
function placeOf(words: readonly number[], count: number): number {
  let [low, high] = [0, words.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (words[middle]! < count) low = middle + 1;
    else high = middle;
  }
  return low;
}

function lastSentence(sentences: readonly boolean[], from: number, to: number): number | undefined {
  for (let at = to; at >= from; at--) if (sentences[at] === true) return at;
  return undefined;
}

/** Returns the beginning of a sentence that is nearest to a place; the place itself where there is none. */
function nearestSentence(sentences: readonly boolean[], from: number, to: number, place: number): number {
  let nearest: number | undefined;
  for (let at = from; at <= to; at++) {
    if (sentences[at] === true && (nearest === undefined || Math.abs(at - place) < Math.abs(nearest - place))) nearest = at;
  }
  return nearest ?? place;
}
