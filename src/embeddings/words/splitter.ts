/**
 * Splits a text into terms: the units that are compared and counted.
 *
 * ```
 * "Caroline's flight BA-2490 left on 2024-06-07, didn't it?"
 *    ->  carolin  flight  ba  2490  ba2490  leav  june  7  2024
 * ```
 *
 * Lower case, no accents, dates in one form, small numbers as digits, stop words out, irregular forms to their base,
 * Porter stems. Scripts without spaces are split into pairs of characters. Symbols (emoji, punctuation) are terms where a
 * text has no words; a memory of words has its symbols as extra terms, to be found by symbols alone. One pass of `charCodeAt` finds
 * the tokens, and a bounded cache has the terms of those seen before.
 *
 * @module
 */
import { FINGERPRINT, SYMBOL as SYMBOL_TERM, type TermId } from "../embedder.ts";
import { hashText, mix } from "../../lib/hash.ts";
import { memoize } from "../../lib/memoize.ts";
import { copyOf } from "../../lib/text.ts";
import { DIGIT, fold, HAN, isFlagHalf, kindAt, LETTER, SEPARATOR, SYMBOL, unitsAt, UNSPACED } from "./characters.ts";
import { CLOCK_TIME, dateAt, DECIMAL_NUMBER, GROUPED_NUMBER, matchAt, WHOLE_AMOUNT } from "./numbers.ts";
import { stemOf, STOP_WORDS } from "./stems.ts";
import { hashAfter, type Token, TokenCache } from "./token-cache.ts";

export interface SplitText {
  /** In the order of the text, as often as they come. */
  readonly terms: readonly TermId[];
  /** The same of a memory's symbols, where it has words too. They change nothing for a query of words. */
  readonly symbols: readonly TermId[];
  /** Stands for all the words of the text in order, stop words too, or for its symbols where there are none; 0 for neither. */
  readonly fingerprint: TermId;
}

/** Called for each term with the characters it was made from, lower case and without accents. */
export type OnTerm = (term: TermId, surface: string) => void;

/** Tokens cached between texts, about 200 bytes each; evicted all at once. English text of a day has some 5,000. */
const CACHED_TOKENS_MAX = 16_384;
/** Longer ones hardly come again. */
const CACHED_TOKEN_LENGTH_MAX = 64;

/** `!!!` is a term besides `!`, and the same one as `!!!!`; but for what draws lines and ellipses. */
const RUN_MAX = 3;
const NO_RUN = new Set(Array.from(".-_=*#", (sign) => sign.charCodeAt(0)));

/** Symbols are left out, are terms of their own besides words, or take the place of words where there are none. */
type SymbolMode = "ignore" | "extra" | "words";

const SPACE = 32;
const APOSTROPHE = 39;
/** A stop word, or a month. */
const MAY = "may";
const CONTRACTION = /'(?:s|re|ve|ll|d|m|t)(?![a-z0-9_])/y;
const MONTH_BEFORE = /(?:\d(?:st|nd|rd|th)?|\b(?:in|of|since|until|till|by|last|next|early|late|mid))[\s-]+$/;
const MONTH_AFTER = /\s+\d/y;

/** A symbol that joins the parts of one name: BA-2490, 10.0.0.1, get_user_name, anna@example.org. */
const CONNECTOR = /[-._@]/;

function isPlain(kind: number): boolean {
  return kind === LETTER || kind === DIGIT;
}

function endOfDigits(text: string, from: number): number {
  let at = from;
  while (at < text.length && kindAt(text, at) === DIGIT) at++;
  return at;
}

function isConnector(unit: number): boolean {
  return unit === 45 || unit === 46 || unit === 95 || unit === 64;
}

const IDENTIFIER_LENGTH_MAX = 64;
const HAS_DIGIT = /[0-9]/;
/** Longer parts of a name with digits are words (covid-19); parts of one letter belong to the next (e-mail). */
const CODE_LENGTH_MAX = 3;
const HUMP = /(?<=[a-z0-9])(?=[A-Z])/;

/** Splits texts one after the other, with a cache of its own. */
export class Splitter {
  readonly #tokens = new Map<string, Token>();
  readonly #plainTokens = new TokenCache(tokenOf);

  // The state of the text being split.
  #terms: TermId[] = [];
  #symbols: TermId[] = [];
  #symbolMode: SymbolMode = "ignore";
  #order = 0;
  #stopWordsCount = false;
  #inMemory = false;
  #onTerm: OnTerm | undefined;

  /** Memories also get terms that a query would ask for in another way: the parts of `getUserName`, `get_user_name` as one. */
  memory(text: string, onTerm?: OnTerm): SplitText {
    return this.#split(text, true, onTerm);
  }

  query(text: string, onTerm?: OnTerm): SplitText {
    return this.#split(text, false, onTerm);
  }

  /** Empties its cache, in which are words of texts. */
  forget(): void {
    this.#tokens.clear();
    this.#plainTokens.clear();
  }

  #split(text: string, inMemory: boolean, onTerm: OnTerm | undefined): SplitText {
    if (this.#tokens.size > CACHED_TOKENS_MAX) this.#tokens.clear();
    this.#inMemory = inMemory;
    this.#onTerm = onTerm;
    this.#stopWordsCount = false;
    this.#symbolMode = inMemory ? "extra" : "ignore";
    this.#scan(text);
    if (this.#terms.length === 0) {
      // "to be or not to be": better its stop words than nothing.
      this.#stopWordsCount = this.#order !== 0;
      if (!this.#stopWordsCount) this.#symbolMode = "words";
      this.#scan(text);
    }
    const fingerprint = this.#terms.length === 0 ? 0 : (FINGERPRINT | (mix(this.#order) & 0x1fffffff)) >>> 0;
    return { terms: this.#terms, symbols: this.#symbols, fingerprint };
  }

  #scan(original: string): void {
    this.#terms = [];
    this.#symbols = [];
    this.#order = 0;
    const cased = fold(original);
    const text = cased.toLowerCase();
    const end = text.length;
    const hasHumps = this.#inMemory && cased.length === end && /[a-z][A-Z]/.test(cased);
    let nameStart = -1; // of tokens joined by symbols so far
    let at = 0;
    while (at < end) {
      const after = nameStart < 0 ? this.#addPlainWord(text, at, hasHumps ? cased : text) : at;
      if (after > at) {
        at = after;
        continue;
      }
      const kind = kindAt(text, at);
      if (kind <= SYMBOL) {
        at = kind === SEPARATOR || this.#symbolMode === "ignore" ? at + 1 : this.#addSymbols(text, at);
        continue;
      }
      if (kind >= UNSPACED) {
        at = this.#addUnspaced(text, at);
        continue;
      }
      const start = at;
      const afterNumber = kind === DIGIT && nameStart < 0 ? this.#addNumber(text, start) : start;
      if (afterNumber > start) {
        at = afterNumber;
        continue;
      }
      while (at < end && isPlain(kindAt(text, at))) at += unitsAt(text, at);
      let token = text.slice(start, at);
      const sign = text.charCodeAt(at);
      if (sign === APOSTROPHE) {
        const contraction = matchAt(CONTRACTION, text, at);
        if (contraction !== null) {
          if (contraction[0] === "'t") token += "t";
          at += contraction[0].length;
        }
      }
      if (token === MAY && (matchAt(MONTH_AFTER, text, at) !== null || MONTH_BEFORE.test(text.slice(Math.max(0, start - 12), start))))
        this.#addMonth(token);
      else this.#add(token);
      if (hasHumps) for (const part of humps(cased, start, at)) this.#addExtra(part);

      const isJoined = isConnector(sign) && isPlain(kindAt(text, at + 1));
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

  /**
   * Adds a word that has nothing but letters of ASCII, and digits behind the first of them, as nearly all words have. Passes a space over.
   *
   * @returns where it ends; `start` where something else begins, or where what follows may belong to it
   */
  #addPlainWord(text: string, start: number, cased: string): number {
    let at = start;
    let unit = text.charCodeAt(at);
    if (unit === SPACE) return at + 1;
    if (this.#onTerm !== undefined || unit < 97 || unit > 122) return start;
    let plain = 0;
    do {
      plain = hashAfter(plain, unit);
      unit = text.charCodeAt(++at);
    } while ((unit >= 97 && unit <= 122) || (unit >= 48 && unit <= 57));
    if (unit > 127 || unit === APOSTROPHE || (isConnector(unit) && kindAt(text, at + 1) > SYMBOL)) return start;
    if (cased !== text && hasCapital(cased, start + 1, at)) return start;
    if (at - start === MAY.length && text.startsWith(MAY, start)) return start;
    const found = this.#plainTokens;
    found.find(text, start, at, plain);
    this.#follow(found.hash);
    if (!found.isStopWord || this.#stopWordsCount) this.#terms.push(found.term);
    return at;
  }

  /** Adds a run without spaces: every two adjacent characters, and the Chinese ones alone. @returns where it ends */
  #addUnspaced(text: string, start: number): number {
    let before = -1;
    let kindBefore = 0;
    let at = start;
    for (let kind = kindAt(text, at); kind >= UNSPACED; kind = at < text.length ? kindAt(text, at) : 0) {
      const next = at + unitsAt(text, at);
      if (before >= 0) this.#addCharacters(text, before, next, true);
      if (kind === HAN) this.#addCharacters(text, at, next, false);
      before = at;
      kindBefore = kind;
      at = next;
    }
    const isAlone = before === start;
    if (isAlone && kindBefore !== HAN) this.#addCharacters(text, start, at, false);
    if (isAlone) this.#follow(hashText(text.slice(start, at)));
    return at;
  }

  #addCharacters(text: string, from: number, to: number, inSequence: boolean): void {
    let hash = 0;
    for (let i = from; i < to; i++) hash = mix(Math.imul(hash, 31) + text.charCodeAt(i));
    if (inSequence) this.#follow(hash);
    this.#put(wordOf(hash), this.#onTerm === undefined ? "" : text.slice(from, to));
  }

  /** Adds what begins with digits and a sign. @returns where it ends, or `at` if it is nothing more than its digits */
  #addNumber(text: string, at: number): number {
    const sign = text.charCodeAt(endOfDigits(text, at));
    // In ASCII , - . / and : stand next to each other.
    if (!(sign >= 44 && sign <= 58)) return at;
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
    this.#addWord(hashText(time), time);
  }

  /** "may" is a stop word, May is not. */
  #addMonth(month: string): void {
    this.#addWord(this.#token(month).hash, month);
  }

  /**
   * Adds tokens joined by symbols as one term too, where the whole is a name: it has a digit and no word in it (BA-2490, v2.3.1,
   * 555-0134), or an @, or is another way to write a word (e-mail), or in memories an underscore.
   */
  #addIdentifier(name: string): void {
    if (name.length > IDENTIFIER_LENGTH_MAX) return;
    const parts = name.split(CONNECTOR);
    const joined = name.replaceAll(/[-_]/g, "");
    let isName = name.includes("@");
    if (HAS_DIGIT.test(name)) {
      const letters = parts.filter((part) => !HAS_DIGIT.test(part));
      const hasWord = letters.some((part) => part.length > CODE_LENGTH_MAX);
      isName ||= !hasWord && (letters.length > 0 || parts.length > 2 || name.replaceAll(/[^0-9]/g, "").length > 4);
    } else if (!name.includes(".")) {
      isName ||= name.includes("_") ? this.#inMemory : parts[0]?.length === 1;
    }
    if (isName) this.#addExtra(joined);
  }

  /** Adds a symbol and all of the same after it. @returns where they end */
  #addSymbols(text: string, start: number): number {
    const point = text.codePointAt(start)!;
    const units = unitsAt(text, start);
    let at = start + units;
    const next = text.codePointAt(at) ?? 0;
    if (isFlagHalf(point) && isFlagHalf(next)) {
      this.#addSymbol(point * 0x20000 + next, 1, text.slice(start, at + 2));
      return at + 2;
    }
    let run = 1;
    for (; text.codePointAt(at) === point; at += units) run++;
    this.#addSymbol(point, 1, text.slice(start, start + units));
    if (run > 1 && !NO_RUN.has(point)) this.#addSymbol(point, Math.min(run, RUN_MAX), text.slice(start, at));
    return at;
  }

  #addSymbol(point: number, run: number, surface: string): void {
    const hash = hashOfSymbol(point * (RUN_MAX + 1) + run);
    if (this.#symbolMode === "words") this.#follow(hash);
    const among = this.#symbolMode === "words" ? this.#terms : this.#symbols;
    this.#put((SYMBOL_TERM | (hash & 0xffffff)) >>> 0, surface, among);
  }

  // ------------------------------------------------------------------------------------------------ from tokens to terms

  #add(token: string): void {
    const { term, hash, isStopWord } = this.#token(token);
    this.#follow(hash);
    if (!isStopWord || this.#stopWordsCount) this.#put(term, token);
  }

  #addWord(hash: number, surface: string): void {
    this.#follow(hash);
    this.#put(wordOf(hash), surface);
  }

  /** Adds a term that is no word of the sequence: it helps to be found, and leaves the fingerprint alone. */
  #addExtra(token: string): void {
    const { term, isStopWord } = this.#token(token);
    if (!isStopWord) this.#put(term, token);
  }

  /** Mixes the next word of the sequence into the fingerprint. */
  #follow(hash: number): void {
    this.#order = Math.imul(this.#order ^ hash, 0x9e3779b1);
    this.#order ^= this.#order >>> 15;
  }

  #put(term: TermId, surface: string, among = this.#terms): void {
    among.push(term);
    this.#onTerm?.(term, surface);
  }

  #token(text: string): Token {
    const cached = this.#tokens.get(text);
    if (cached !== undefined) return cached;
    const token = tokenOf(text);
    // A token is a piece of its text, and as a key it would keep the whole text in memory.
    if (text.length <= CACHED_TOKEN_LENGTH_MAX) this.#tokens.set(copyOf(text), token);
    return token;
  }
}

const hashOfSymbol = memoize((symbol: number) => hashText(`sign ${symbol}`));

function tokenOf(text: string): Token {
  const hash = hashText(stemOf(text));
  return { term: wordOf(hash), hash, isStopWord: STOP_WORDS.has(text) };
}

/** Returns the id of a word by its hash: 31 bits, without those of symbols. */
function wordOf(hash: number): TermId {
  return hash < SYMBOL_TERM ? hash : hash - SYMBOL_TERM;
}

function hasCapital(text: string, from: number, to: number): boolean {
  for (let i = from; i < to; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 65 && unit <= 90) return true;
  }
  return false;
}

/** `getUserName` → get, user, name; nothing for a word without a capital inside. Parts of two letters are left out. */
function humps(cased: string, start: number, end: number): string[] {
  if (!hasCapital(cased, start + 1, end)) return [];
  const parts = cased.slice(start, end).split(HUMP);
  return parts.length < 2 ? [] : parts.filter((part) => part.length > 2).map((part) => part.toLowerCase());
}
