/**
 * Cuts a text into terms: the units that are counted, weighed and compared.
 *
 * ```
 * "Caroline's flight BA-2490 left on 2024-06-07, didn't it?"
 *    ->  carolin  flight  ba  2490  ba2490  leav  june  7  2024
 * ```
 *
 * Lower case, no accents, dates in one form, small numbers as digits, stop words out, irregular forms to their base,
 * Porter stems. Scripts without spaces are cut into pairs of characters. Signs (emoji, symbols, punctuation) are terms where a
 * text has no words; a memory of words has its signs as extra terms, to be found by signs alone. One pass of `charCodeAt` finds
 * the tokens, and a bounded cache has the terms of those seen before. What a term means is the table's business
 * (`semantics.ts`); nothing here knows of vectors.
 *
 * @module
 */
import { DIGIT, fold, HAN, HIRAGANA, isFlagHalf, kindAt, LETTER, SEPARATOR, SIGN, unitsAt, UNSPACED } from "./characters.ts";
import { copyOf } from "../../lib/text.ts";
import { FINGERPRINT, SIGN as SIGN_TERM, type TermId, UNKNOWN_WORD } from "../embedder.ts";
import { CLOCK_TIME, dateAt, DECIMAL_NUMBER, GROUPED_NUMBER, matchAt, WHOLE_AMOUNT } from "./numbers.ts";
import { hashText, mix, type Semantics } from "./semantics.ts";
import { type Term, TermTable } from "./term-table.ts";
import { SMALL_WORD_WEIGHT, SMALL_WORDS, stemOf, STOP_WORDS } from "./words.ts";

export interface Cut {
  /** Distinct terms in the order of their first appearance. */
  readonly terms: readonly Term[];
  /** The same of a memory's signs, where it has words too. They change nothing for a query of words. */
  readonly signs: readonly Term[];
  /** Stands for all the words of the text in order, stop words too, or for its signs where there are none; 0 for neither. */
  readonly fingerprint: TermId;
}

/** Called for each term with the characters it was made from, lower case and without accents. */
export type OnTerm = (term: Term, surface: string) => void;

/** A token as it is cached. */
interface Token {
  readonly term: Term;
  readonly isStopWord: boolean;
}

/** Tokens cached between texts, about 200 bytes each; evicted all at once. English text of a day has some 5,000. */
const CACHED_TOKENS_MAX = 16_384;
/** Longer ones hardly come again. */
const CACHED_TOKEN_LENGTH_MAX = 64;

/** Logs put a clock time before everything, so it says little; a digit alone says less than a longer number. */
const CLOCK_WEIGHT = 0.2;
const DIGIT_WEIGHT = 0.8;
const DIGIT_ALONE = /^\d$/;

/** Two hiragana are mostly grammar (した, です): they say little. A Chinese character alone says less than a pair. */
const GRAMMAR_WEIGHT = 0.2;
const SINGLE_CHARACTER_WEIGHT = 0.4;

/** Punctuation and the signs of ASCII are in nearly every text. */
const COMMON_SIGN_WEIGHT = 0.3;
const PUNCTUATION = /^\p{P}$/u;
/** `!!!` is a term besides `!`, and the same one as `!!!!`; but for what draws lines and ellipses. */
const RUN_MAX = 3;
const NO_RUN = new Set(Array.from(".-_=*#", (sign) => sign.charCodeAt(0)));

/** Signs are left out, are terms of their own besides words, or take the place of words where there are none. */
type SignMode = "ignore" | "extra" | "words";

const APOSTROPHE = 39;
const CONTRACTION = /'(?:s|re|ve|ll|d|m|t)(?![a-z0-9_])/y;
const MONTH_BEFORE = /(?:\d(?:st|nd|rd|th)?|\b(?:in|of|since|until|till|by|last|next|early|late|mid))[\s-]+$/;
const MONTH_AFTER = /\s+\d/y;

/** A sign that joins the parts of one name: BA-2490, 10.0.0.1, get_user_name, anna@example.org. */
const CONNECTOR = /[-._@]/;

function isConnector(unit: number): boolean {
  return unit === 45 || unit === 46 || unit === 95 || unit === 64;
}

const IDENTIFIER_LENGTH_MAX = 64;
const HAS_DIGIT = /[0-9]/;
const HUMP = /(?<=[a-z0-9])(?=[A-Z])/;

/** Cuts texts one after the other, with a cache of its own. */
export class TermCutter {
  readonly #table: Semantics;
  readonly #smallWords: ReadonlySet<string>;
  /** A cache of words and signs: it halves the time for a memory of 200 characters, from 24 to 11 µs. */
  readonly #tokens = new Map<string, Token>();
  #terms = new TermTable(CACHED_TOKENS_MAX);

  // The state of the text being cut.
  #current = 0;
  #found: Term[] = [];
  #signs: Term[] = [];
  #signMode: SignMode = "ignore";
  #order = 0;
  #stopWordsCount = false;
  #inMemory = false;
  #onTerm: OnTerm | undefined;

  constructor(table: Semantics) {
    this.#table = table;
    this.#smallWords = new Set(SMALL_WORDS.map((word) => stemOf(table, word)));
  }

  /** Memories also get terms that a query would ask for in another way: the parts of `getUserName`, `get_user_name` as one. */
  memory(text: string, onTerm?: OnTerm): Cut {
    return this.#cut(text, true, onTerm);
  }

  query(text: string, onTerm?: OnTerm): Cut {
    return this.#cut(text, false, onTerm);
  }

  #cut(text: string, inMemory: boolean, onTerm: OnTerm | undefined): Cut {
    if (this.#tokens.size > CACHED_TOKENS_MAX || this.#terms.size > CACHED_TOKENS_MAX) {
      this.#tokens.clear();
      this.#terms = new TermTable(CACHED_TOKENS_MAX);
    }
    this.#inMemory = inMemory;
    this.#onTerm = onTerm;
    this.#stopWordsCount = false;
    this.#signMode = inMemory ? "extra" : "ignore";
    this.#scan(text);
    if (this.#found.length === 0) {
      // "to be or not to be": better its stop words than nothing.
      this.#stopWordsCount = this.#order !== 0;
      if (!this.#stopWordsCount) this.#signMode = "words";
      this.#scan(text);
    }
    const fingerprint = this.#found.length === 0 ? 0 : (FINGERPRINT | (mix(this.#order) & 0x1fffffff)) >>> 0;
    return { terms: this.#found, signs: this.#signs, fingerprint };
  }

  #scan(original: string): void {
    this.#current++;
    this.#found = [];
    this.#signs = [];
    this.#order = 0;
    const cased = fold(original);
    const text = cased.toLowerCase();
    const end = text.length;
    const hasHumps = this.#inMemory && cased.length === end && /[a-z][A-Z]/.test(cased);
    let nameStart = -1; // of tokens joined by signs so far
    let at = 0;
    while (at < end) {
      let kind = kindAt(text, at);
      if (kind <= SIGN) {
        at = kind === SEPARATOR || this.#signMode === "ignore" ? at + 1 : this.#addSigns(text, at);
        continue;
      }
      if (kind >= UNSPACED) {
        at = this.#addUnspaced(text, at);
        continue;
      }
      const start = at;
      if (kind === DIGIT && nameStart < 0) {
        do at++;
        while (at < end && kindAt(text, at) === DIGIT);
        const sign = text.charCodeAt(at);
        // In ASCII , - . / and : stand next to each other.
        if (sign >= 44 && sign <= 58) {
          const after = this.#addNumber(text, start);
          if (after > start) {
            at = after;
            continue;
          }
        }
      }
      while (at < end && ((kind = kindAt(text, at)) === LETTER || kind === DIGIT)) at += unitsAt(text, at);
      let token = text.slice(start, at);
      const sign = text.charCodeAt(at);
      if (sign === APOSTROPHE) {
        const contraction = matchAt(CONTRACTION, text, at);
        if (contraction !== null) {
          if (contraction[0] === "'t") token += "t";
          at += contraction[0].length;
        }
      }
      if (token === "may" && (matchAt(MONTH_AFTER, text, at) !== null || MONTH_BEFORE.test(text.slice(Math.max(0, start - 12), start))))
        this.#addMonth(token);
      else this.#add(token);
      if (hasHumps) for (const part of humps(cased, start, at)) this.#addExtra(part);

      const isJoined = isConnector(sign) && at + 1 < end && ((kind = kindAt(text, at + 1)) === LETTER || kind === DIGIT);
      if (isJoined) {
        if (nameStart < 0) nameStart = start;
        at++;
      } else if (nameStart >= 0) {
        this.#addIdentifier(text.slice(nameStart, at));
        nameStart = -1;
      }
    }
  }

  // ------------------------------------------------------------------------------------------- from characters to tokens

  /** Adds a run without spaces: every two adjacent characters, and the Chinese ones alone. @returns where it ends */
  #addUnspaced(text: string, start: number): number {
    let before = -1;
    let kindBefore = 0;
    let at = start;
    for (let kind = kindAt(text, at); kind >= UNSPACED; kind = at < text.length ? kindAt(text, at) : 0) {
      const next = at + unitsAt(text, at);
      if (before >= 0) this.#addCharacters(text, before, next, kind === HIRAGANA && kindBefore === HIRAGANA ? GRAMMAR_WEIGHT : 1, true);
      if (kind === HAN) this.#addCharacters(text, at, next, SINGLE_CHARACTER_WEIGHT, false);
      before = at;
      kindBefore = kind;
      at = next;
    }
    const isAlone = before === start;
    if (isAlone && kindBefore !== HAN) this.#addCharacters(text, start, at, SINGLE_CHARACTER_WEIGHT, false);
    if (isAlone) this.#follow(hashText(text.slice(start, at)));
    return at;
  }

  #addCharacters(text: string, from: number, to: number, weight: number, inSequence: boolean): void {
    let hash = 0;
    for (let i = from; i < to; i++) hash = mix(Math.imul(hash, 31) + text.charCodeAt(i));
    const term = this.#termOf(-1, hash, weight);
    if (inSequence) this.#follow(hash);
    this.#count(term, this.#onTerm === undefined ? "" : text.slice(from, to));
  }

  /** Adds what begins with digits and a sign. @returns where it ends, or `at` if it is nothing more than its digits */
  #addNumber(text: string, at: number): number {
    const date = dateAt(text, at);
    if (date !== undefined) {
      this.#addMonth(date.month);
      this.#add(date.day);
      this.#add(date.year);
      return date.end;
    }
    const time = matchAt(CLOCK_TIME, text, at);
    if (time !== null) {
      this.#addClockTime(time[1]!, time[2]!);
      return at + time[0].length;
    }
    const number = matchAt(GROUPED_NUMBER, text, at) ?? matchAt(DECIMAL_NUMBER, text, at);
    if (number === null) return at;
    this.#add(number[0].replaceAll(",", "").replace(WHOLE_AMOUNT, ""));
    return at + number[0].length;
  }

  /** Adds the same term for 19:30 and 7:30 pm. */
  #addClockTime(hours: string, minutes: string): void {
    const time = `${((Number(hours) + 11) % 12) + 1}:${minutes}`;
    this.#addWord(this.#termOf(-1, hashText(time), CLOCK_WEIGHT), time);
  }

  /** "may" is a stop word, May is not. */
  #addMonth(month: string): void {
    this.#addWord(this.#token(month).term, month);
  }

  /**
   * Adds tokens joined by signs as one term too, where the whole is a name: it has a digit and no word in it (BA-2490, v2.3.1,
   * 555-0134), or an @, or is another way to write a word (e-mail), or in memories an underscore.
   */
  #addIdentifier(name: string): void {
    if (name.length > IDENTIFIER_LENGTH_MAX) return;
    const parts = name.split(CONNECTOR);
    const joined = name.replaceAll(/[-_]/g, "");
    let isName = name.includes("@");
    if (HAS_DIGIT.test(name)) {
      const words = parts.filter((part) => !HAS_DIGIT.test(part));
      const hasWord = words.some((word) => word.length > 2 && this.#token(word).term.row >= 0);
      isName ||= !hasWord && (words.length > 0 || parts.length > 2 || name.replaceAll(/[^0-9]/g, "").length > 4);
    } else if (!name.includes(".")) {
      isName ||= name.includes("_") ? this.#inMemory : this.#token(joined).term.row >= 0;
    }
    if (isName) this.#addExtra(joined);
  }

  /** Adds a sign and all of the same after it. @returns where they end */
  #addSigns(text: string, start: number): number {
    const point = text.codePointAt(start)!;
    const units = unitsAt(text, start);
    let at = start + units;
    const next = text.codePointAt(at) ?? 0;
    if (isFlagHalf(point) && isFlagHalf(next)) {
      this.#addSign(point * 0x20000 + next, 1, text.slice(start, at + 2));
      return at + 2;
    }
    let run = 1;
    for (; text.codePointAt(at) === point; at += units) run++;
    this.#addSign(point, 1, text.slice(start, start + units));
    if (run > 1 && !NO_RUN.has(point)) this.#addSign(point, Math.min(run, RUN_MAX), text.slice(start, at));
    return at;
  }

  #addSign(point: number, run: number, surface: string): void {
    const { term } = this.#tokens.get(surface) ?? this.#cache(surface, { term: this.#signTerm(point, run, surface), isStopWord: false });
    if (this.#signMode === "words") this.#follow(term.hash);
    this.#count(term, surface, this.#signMode === "words" ? this.#found : this.#signs);
  }

  #signTerm(point: number, run: number, surface: string): Term {
    const hash = hashText(`sign ${point * (RUN_MAX + 1) + run}`);
    const weight = run === 1 && (point < 128 || PUNCTUATION.test(surface)) ? COMMON_SIGN_WEIGHT : 1;
    return this.#terms.get((SIGN_TERM | (hash & 0xffffff)) >>> 0, -1, hash, weight);
  }

  // ------------------------------------------------------------------------------------------------ from tokens to terms

  #add(token: string): void {
    const { term, isStopWord } = this.#token(token);
    this.#follow(term.hash);
    if (!isStopWord || this.#stopWordsCount) this.#count(term, token);
  }

  #addWord(term: Term, surface: string): void {
    this.#follow(term.hash);
    this.#count(term, surface);
  }

  /** Adds a term that is no word of the sequence: it helps to be found, and leaves the fingerprint alone. */
  #addExtra(token: string): void {
    const { term, isStopWord } = this.#token(token);
    if (!isStopWord) this.#count(term, token);
  }

  /** Mixes the next word of the sequence into the fingerprint. */
  #follow(hash: number): void {
    this.#order = Math.imul(this.#order ^ hash, 0x9e3779b1);
    this.#order ^= this.#order >>> 15;
  }

  #count(term: Term, surface: string, among = this.#found): void {
    if (term.text === this.#current) term.count++;
    else {
      term.text = this.#current;
      term.count = 1;
      among.push(term);
    }
    this.#onTerm?.(term, surface);
  }

  #token(text: string): Token {
    const cached = this.#tokens.get(text);
    if (cached !== undefined) return cached;
    const stem = stemOf(this.#table, text);
    const row = this.#table.row(stem);
    return this.#cache(text, { term: this.#termOf(row, hashText(stem), this.#weightOf(stem, row)), isStopWord: STOP_WORDS.has(text) });
  }

  #cache(text: string, token: Token): Token {
    // A token is a piece of its text, and as a key it would keep the whole text in memory.
    if (text.length <= CACHED_TOKEN_LENGTH_MAX) this.#tokens.set(copyOf(text), token);
    return token;
  }

  #weightOf(stem: string, row: number): number {
    const weight = row >= 0 ? this.#table.weight(row) : DIGIT_ALONE.test(stem) ? DIGIT_WEIGHT : 1;
    return this.#smallWords.has(stem) ? Math.min(weight, SMALL_WORD_WEIGHT) : weight;
  }

  #termOf(row: number, hash: number, weight: number): Term {
    return this.#terms.get(row >= 0 ? row : unknownWord(hash), row, hash, weight);
  }
}

/** 30 bits of its hash, without those of signs. */
function unknownWord(hash: number): TermId {
  const bits = hash & 0x3fffffff;
  return (UNKNOWN_WORD | (bits < 0x3f000000 ? bits : bits - 0x3f000000)) >>> 0;
}

/** `getUserName` → get, user, name; nothing for a word without a capital inside. Parts of two letters are left out. */
function humps(cased: string, start: number, end: number): string[] {
  const parts = cased.slice(start, end).split(HUMP);
  return parts.length < 2 ? [] : parts.filter((part) => part.length > 2).map((part) => part.toLowerCase());
}
