/**
 * Weight of a word of a query, in any language: the rarer the pieces that the encoder's tokenizer cuts it into, the more.
 *
 * It depends on the word alone, needs no table of any language and no list of stop words. Numbers are rare in what they say, and not in
 * how often they are written: of two digits they weigh as a middling word at least, of more nearly as a name.
 *
 * @module
 */
import { type Encoder, openEncoder } from "./encoder.ts";

/** A word whose pieces cost this weighs a half. */
const MIDDLE_COST = 11;
const SLOPE = 1.5;

/** The least that a number weighs, by its digits. */
const NUMBER = /^[\d.,:]*$/;
const TWO_DIGITS_MIN = 0.5;
const MORE_DIGITS_MIN = 0.8;

/** Words of a day; evicted all at once. */
const CACHED_WORDS_MAX = 16_384;

export class WordWeights {
  readonly #cached = new Map<string, number>();
  #encoder: Encoder | undefined;

  /** @param word - as the query writes it. @returns 0 to 1 */
  of(word: string): number {
    const known = this.#cached.get(word);
    if (known !== undefined) return known;
    if (this.#cached.size >= CACHED_WORDS_MAX) this.#cached.clear();
    const weight = this.#weigh(word);
    this.#cached.set(word, weight);
    return weight;
  }

  #weigh(word: string): number {
    this.#encoder ??= openEncoder();
    const isAllCapitals = word === word.toUpperCase() && word !== word.toLowerCase();
    const { costs } = this.#encoder.pieces(isAllCapitals ? word.toLowerCase() : word);
    const cost = costs.reduce((sum, piece) => sum + piece, 0);
    // So that an engine's last bit cannot show.
    return Math.max(leastOf(word), Math.round(2 ** 20 / (1 + Math.exp((MIDDLE_COST - cost) / SLOPE))) / 2 ** 20);
  }
}

function leastOf(word: string): number {
  const digits = NUMBER.test(word) ? word.replaceAll(/\D/g, "").length : 0;
  return digits < 2 ? 0 : digits === 2 ? TWO_DIGITS_MIN : MORE_DIGITS_MIN;
}
