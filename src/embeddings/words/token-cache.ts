/**
 * A cache of the terms of words in lower-case ASCII, found without making a string of each: a text of 2 KB has hundreds of words, nearly
 * all of which were seen before, and to cut and hash them as strings took most of the time that splitting takes.
 *
 * A place is 32 bytes, at half a line of the processor's cache: what is stored of a word and its letters, which are compared one by one, so
 * that no word is taken for another. When half of the places are taken, all are emptied.
 *
 * @module
 */
import type { TermId } from "../embedder.ts";

/** A token as it is cached. */
export interface Token {
  readonly term: TermId;
  readonly hash: number;
  readonly isStopWord: boolean;
}

/** English text of a day has some 5,000 different words. */
const PLACES = 65_536;
const WORDS_MAX = PLACES / 2;
const PLACE_BYTES = 32;
const PLACE_NUMBERS = PLACE_BYTES / 4;
const TERM = 0;
const HASH = 1;
/** The length of a word, 0 of an empty place, and whether it is a stop word. */
const LENGTH = 2;
const STOP_WORD = 0x100;
const LETTERS = 12;
const LENGTH_MAX = PLACE_BYTES - LETTERS;

/** An odd multiplier, random in each process: without it words could be made that all meet in one place. */
const MULTIPLIER = crypto.getRandomValues(new Uint32Array(1))[0]! | 1;

/** Follows the hash of a word, which begins with 0, by one more letter. */
export function hashAfter(hash: number, letter: number): number {
  return Math.imul(hash ^ letter, MULTIPLIER);
}

export class TokenCache {
  readonly #make: (word: string) => Token;
  readonly #numbers = new Uint32Array(PLACES * PLACE_NUMBERS);
  readonly #letters = new Uint8Array(this.#numbers.buffer);
  #words = 0;
  term: TermId = 0;
  hash = 0;
  isStopWord = false;

  constructor(make: (word: string) => Token) {
    this.#make = make;
  }

  /**
   * Has `term`, `hash` and `isStopWord` say what a word is.
   *
   * @param text - has the word, in letters and digits of ASCII alone
   * @param wordHash - what `hashAfter` gives for it
   */
  find(text: string, from: number, to: number, wordHash: number): void {
    const numbers = this.#numbers;
    const length = to - from;
    let place = (wordHash ^ (wordHash >>> 15)) & (PLACES - 1);
    for (let at = place * PLACE_NUMBERS; numbers[at + LENGTH] !== 0; at = place * PLACE_NUMBERS) {
      const lengthAndKind = numbers[at + LENGTH]!;
      if ((lengthAndKind & 0xff) === length && this.#is(at, text, from, length)) {
        this.term = numbers[at + TERM]!;
        this.hash = numbers[at + HASH]!;
        this.isStopWord = (lengthAndKind & STOP_WORD) !== 0;
        return;
      }
      place = (place + 1) & (PLACES - 1);
    }
    this.#add(place, text.slice(from, to));
  }

  clear(): void {
    this.#numbers.fill(0);
    this.#words = 0;
  }

  #is(at: number, text: string, from: number, length: number): boolean {
    const letters = at * 4 + LETTERS;
    for (let i = 0; i < length; i++) if (this.#letters[letters + i] !== text.charCodeAt(from + i)) return false;
    return true;
  }

  #add(place: number, word: string): void {
    ({ term: this.term, hash: this.hash, isStopWord: this.isStopWord } = this.#make(word));
    if (word.length > LENGTH_MAX) return;
    if (this.#words === WORDS_MAX) this.clear();
    this.#words++;
    const at = place * PLACE_NUMBERS;
    this.#numbers[at + TERM] = this.term;
    this.#numbers[at + HASH] = this.hash;
    this.#numbers[at + LENGTH] = word.length | (this.isStopWord ? STOP_WORD : 0);
    for (let i = 0; i < word.length; i++) this.#letters[at * 4 + LETTERS + i] = word.charCodeAt(i);
  }
}
