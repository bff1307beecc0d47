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
 * text has no words; a memory that has some keeps its signs beside them, to be found by signs alone. A token's way from text to
 * term is kept in a bounded cache, so a word seen before costs one look-up; one pass of `charCodeAt` finds the tokens. What a term
 * means is the table's business (`semantics.ts`); nothing here knows of vectors.
 *
 * @module
 */
import { DIGIT, fold, HAN, HIRAGANA, isDigit, isFlagHalf, kindAt, LETTER, SEPARATOR, signAt, unitsAt, UNSPACED } from "./characters.ts";
import { copyOf } from "../../lib/text.ts";
import { bucketOf, FINGERPRINT, SIGN, type TermId, UNKNOWN_WORD } from "../embedder.ts";
import { CLOCK_TIME, dateAt, DECIMAL_NUMBER, GROUPED_NUMBER, matchAt, WHOLE_AMOUNT } from "./numbers.ts";
import { hashText, mix, type Semantics } from "./semantics.ts";
import { SMALL_WORD_WEIGHT, SMALL_WORDS, stemOf, STOP_WORDS } from "./words.ts";

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

export interface TermCutter {
  /** Memories also get terms that a query would ask for in another way: the parts of `getUserName`, `get_user_name` as one. */
  memory(text: string, onTerm?: OnTerm): Cut;
  query(text: string, onTerm?: OnTerm): Cut;
}

/** What a token leads to. */
interface Token {
  readonly term: Term;
  readonly isStopWord: boolean;
}

/** Tokens kept between texts, about 200 bytes each; forgotten all at once. English text of a day has some 5,000. */
const CACHED_MAX = 16_384;
/** A longer one, as 10,000 letters without a space, hardly comes again. */
const CACHED_LENGTH_MAX = 64;

/** Logs put a clock time before everything, so it says little; a digit alone says less than a longer number. */
const CLOCK_WEIGHT = 0.2;
const DIGIT_WEIGHT = 0.8;
const DIGIT_ALONE = /^\d$/;

/** Two hiragana are mostly grammar (した, です): they say little. A Chinese character alone says less than a pair. */
const GRAMMAR_WEIGHT = 0.2;
const SINGLE_CHARACTER_WEIGHT = 0.4;

/** Punctuation and the signs of ASCII stand in nearly every text. */
const COMMON_SIGN_WEIGHT = 0.3;
const PUNCTUATION = /^\p{P}$/u;
/** `!!!` is a term beside `!`, and the same one as `!!!!`; but for what draws lines and ellipses. */
const RUN_MAX = 3;
const NO_RUN = new Set(Array.from(".-_=*#", (sign) => sign.charCodeAt(0)));

/** What becomes of signs: left out, kept beside words, or taken for words where there are none. */
type SignsAre = "nothing" | "beside" | "words";

const SPACE = 32;
const APOSTROPHE = 39;
const CONTRACTION = /'(?:s|re|ve|ll|d|m|t)(?![a-z0-9_])/y;
const MONTH_BEFORE = /(?:\d(?:st|nd|rd|th)?|\b(?:in|of|since|until|till|by|last|next|early|late|mid))[\s-]+$/;
const MONTH_AFTER = /\s+\d/y;

/** Signs that join the parts of one name: BA-2490, 10.0.0.1, get_user_name, anna@example.org. */
function isConnector(unit: number): boolean {
  return unit === 45 || unit === 46 || unit === 95 || unit === 64;
}

const IDENTIFIER_LENGTH_MAX = 64;
const HUMP = /(?<=[a-z0-9])(?=[A-Z])/;

/** Makes a cutter with a cache of its own. */
export function termCutter(table: Semantics): TermCutter {
  const tokens = new Map<string, Token>();
  const signTerms = new Map<number, Term>();
  let terms = termTable(2 * CACHED_MAX);

  // Of the text being cut.
  let current = 0;
  let found: Term[] = [];
  let signs: Term[] = [];
  let signsAre: SignsAre = "nothing";
  let order = 0;
  let stopWordsCount = false;
  let inMemory = false;
  let onTerm: OnTerm | undefined;

  const smallWords = new Set(SMALL_WORDS.map((word) => stemOf(table, word)));

  function weightOf(stem: string, row: number): number {
    const weight = row >= 0 ? table.weight(row) : DIGIT_ALONE.test(stem) ? DIGIT_WEIGHT : 1;
    return smallWords.has(stem) ? Math.min(weight, SMALL_WORD_WEIGHT) : weight;
  }

  function termOf(row: number, hash: number, weight: number): Term {
    return termWith(row >= 0 ? row : unknownWord(hash), row, hash, weight);
  }

  function termWith(id: TermId, row: number, hash: number, weight: number): Term {
    const { buckets } = terms;
    const bucket = bucketOf(id, buckets.length - 1);
    for (let term = buckets[bucket]; term !== undefined; term = term.next) if (term.id === id) return term;
    const made: Term = { id, row, hash, weight, count: 0, text: 0, next: buckets[bucket] };
    buckets[bucket] = made;
    terms.size++;
    if (2 * terms.size > buckets.length) terms = enlarged(terms);
    return made;
  }

  function resolve(token: string): Token {
    if (token.length > CACHED_LENGTH_MAX) return tokenOf(token);
    let known = tokens.get(token);
    if (known === undefined) {
      known = tokenOf(token);
      // A token is a piece of its text, and as a key it would keep the whole text in memory.
      tokens.set(copyOf(token), known);
    }
    return known;
  }

  function tokenOf(token: string): Token {
    const stem = stemOf(table, token);
    const row = table.row(stem);
    return { term: termOf(row, hashText(stem), weightOf(stem, row)), isStopWord: STOP_WORDS.has(token) };
  }

  function count(term: Term, surface: string, among = found): void {
    if (term.text === current) term.count++;
    else {
      term.text = current;
      term.count = 1;
      among.push(term);
    }
    onTerm?.(term, surface);
  }

  /** A sign and all of the same behind it: where they end. What is no sign is passed over. */
  function addSigns(text: string, start: number): number {
    const point = signAt(text, start);
    let at = start + unitsAt(text, start);
    if (point === 0) return at;
    if (isFlagHalf(point) && isFlagHalf(signAt(text, at))) {
      at += 2;
      addSign(point * 0x20000 + text.codePointAt(at - 2)!, 1, text.slice(start, at));
      return at;
    }
    let run = 1;
    for (; signAt(text, at) === point; at += unitsAt(text, at)) run++;
    addSign(point, 1, text.slice(start, start + unitsAt(text, start)));
    if (run > 1 && !NO_RUN.has(point)) addSign(point, Math.min(run, RUN_MAX), text.slice(start, at));
    return at;
  }

  function addSign(point: number, run: number, surface: string): void {
    const key = point * (RUN_MAX + 1) + run;
    let term = signTerms.get(key);
    if (term === undefined) {
      const hash = hashText(`sign ${key}`);
      const weight = run === 1 && (point < 128 || PUNCTUATION.test(surface)) ? COMMON_SIGN_WEIGHT : 1;
      term = termWith((SIGN | (hash & 0xffffff)) >>> 0, -1, hash, weight);
      signTerms.set(key, term);
    }
    if (signsAre === "words") {
      follow(term.hash);
      count(term, surface);
    } else count(term, surface, signs);
  }

  function follow(hash: number): void {
    order = Math.imul(order ^ hash, 0x9e3779b1);
    order ^= order >>> 15;
  }

  function add(token: string): void {
    const { term, isStopWord } = resolve(token);
    follow(term.hash);
    if (!isStopWord || stopWordsCount) count(term, token);
  }

  /** A term that is no word of the sequence: it helps to be found, and leaves the fingerprint alone. */
  function addBeside(token: string): void {
    const { term, isStopWord } = resolve(token);
    if (!isStopWord) count(term, token);
  }

  function addCharacters(text: string, from: number, to: number, weight: number, inSequence: boolean): void {
    let hash = 0;
    for (let i = from; i < to; i++) hash = mix(Math.imul(hash, 31) + text.charCodeAt(i));
    const term = termOf(-1, hash, weight);
    if (inSequence) follow(hash);
    count(term, onTerm === undefined ? "" : text.slice(from, to));
  }

  /** A run without spaces: every two characters that stand together, and the Chinese ones alone. */
  function addUnspaced(text: string, start: number): number {
    let before = -1;
    let kindBefore = 0;
    let at = start;
    for (let kind = kindAt(text, at); kind >= UNSPACED; kind = at < text.length ? kindAt(text, at) : 0) {
      const next = at + unitsAt(text, at);
      if (before >= 0) addCharacters(text, before, next, kind === HIRAGANA && kindBefore === HIRAGANA ? GRAMMAR_WEIGHT : 1, true);
      if (kind === HAN) addCharacters(text, at, next, SINGLE_CHARACTER_WEIGHT, false);
      before = at;
      kindBefore = kind;
      at = next;
    }
    const isAlone = before === start;
    if (isAlone && kindBefore !== HAN) addCharacters(text, start, at, SINGLE_CHARACTER_WEIGHT, false);
    if (isAlone) follow(hashText(text.slice(start, at)));
    return at;
  }

  /** What begins with digits and a sign, its terms added: where it ends, or `at` if it is nothing more than its digits. */
  function addNumber(text: string, at: number): number {
    const date = dateAt(text, at);
    if (date !== undefined) {
      addMonth(date.month);
      add(date.day);
      add(date.year);
      return date.end;
    }
    const time = matchAt(CLOCK_TIME, text, at);
    if (time !== null) {
      addClockTime(time[1]!, time[2]!);
      return at + time[0].length;
    }
    const number = matchAt(GROUPED_NUMBER, text, at) ?? matchAt(DECIMAL_NUMBER, text, at);
    if (number === null) return at;
    add(number[0].replaceAll(",", "").replace(WHOLE_AMOUNT, ""));
    return at + number[0].length;
  }

  /** 19:30 and 7:30 pm are one term. */
  function addClockTime(hours: string, minutes: string): void {
    const time = `${((Number(hours) + 11) % 12) + 1}:${minutes}`;
    const term = termOf(-1, hashText(time), CLOCK_WEIGHT);
    follow(term.hash);
    count(term, time);
  }

  function addMonth(month: string): void {
    const { term } = resolve(month); // "may" is a stop word, May is not.
    follow(term.hash);
    count(term, month);
  }

  /**
   * Tokens joined by signs, besides themselves, where the whole is a name: it has a digit and no word in it (BA-2490,
   * v2.3.1, 555-0134), or an @, or is another way to write a word (e-mail), or in memories an underscore.
   */
  function addIdentifier(text: string, start: number, end: number): void {
    if (end - start > IDENTIFIER_LENGTH_MAX) return;
    let joined = "";
    let digits = 0;
    let parts = 0;
    let hasLetters = false;
    let hasWord = false;
    let signs = "";
    for (let at = start; at < end;) {
      const partStart = at;
      let digitsHere = 0;
      for (; at < end && !isConnector(text.charCodeAt(at)); at++) if (isDigit(text.charCodeAt(at))) digitsHere++;
      const part = text.slice(partStart, at);
      parts++;
      digits += digitsHere;
      if (digitsHere === 0) {
        hasLetters = true;
        if (part.length > 2 && resolve(part).term.row >= 0) hasWord = true;
      }
      joined += part;
      const sign = at < end ? text[at++]! : "";
      signs += sign;
      if (sign === "." || sign === "@") joined += sign;
    }
    const isName = digits > 0 && !hasWord && (hasLetters || parts > 2 || digits > 4);
    const isOtherSpelling = digits === 0 && !signs.includes(".") && (signs.includes("_") ? inMemory : resolve(joined).term.row >= 0);
    if (isName || isOtherSpelling || signs.includes("@")) addBeside(joined);
  }

  function scan(original: string): void {
    const cased = fold(original);
    const text = cased.toLowerCase();
    const end = text.length;
    const hasHumps = inMemory && cased.length === end && /[a-z][A-Z]/.test(cased);
    let nameStart = -1; // of tokens joined by signs so far
    let at = 0;
    while (at < end) {
      let kind = kindAt(text, at);
      if (kind === SEPARATOR) {
        at = signsAre === "nothing" || text.charCodeAt(at) === SPACE ? at + 1 : addSigns(text, at);
        continue;
      }
      if (kind >= UNSPACED) {
        at = addUnspaced(text, at);
        continue;
      }
      const start = at;
      if (kind === DIGIT && nameStart < 0) {
        do at++;
        while (at < end && kindAt(text, at) === DIGIT);
        const sign = text.charCodeAt(at);
        // , - . / and : lie side by side
        if (sign >= 44 && sign <= 58) {
          const after = addNumber(text, start);
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
        addMonth(token);
      else add(token);
      if (hasHumps) for (const part of humps(cased, start, at)) addBeside(part);

      const goesOn = isConnector(sign) && at + 1 < end && ((kind = kindAt(text, at + 1)) === LETTER || kind === DIGIT);
      if (goesOn) {
        if (nameStart < 0) nameStart = start;
        at++;
      } else if (nameStart >= 0) {
        addIdentifier(text, nameStart, at);
        nameStart = -1;
      }
    }
  }

  function cut(text: string): Cut {
    if (tokens.size > CACHED_MAX || terms.size > CACHED_MAX) {
      tokens.clear();
      signTerms.clear();
      terms = termTable(2 * CACHED_MAX);
    }
    stopWordsCount = false;
    signsAre = inMemory ? "beside" : "nothing";
    begin();
    scan(text);
    if (found.length === 0) {
      // "to be or not to be": better its stop words than nothing.
      stopWordsCount = order !== 0;
      if (!stopWordsCount) signsAre = "words";
      begin();
      scan(text);
    }
    return { terms: found, signs, fingerprint: found.length === 0 ? 0 : (FINGERPRINT | (mix(order) & 0x1fffffff)) >>> 0 };
  }

  function begin(): void {
    current++;
    found = [];
    signs = [];
    order = 0;
  }

  return {
    memory(text, listener) {
      inMemory = true;
      onTerm = listener;
      return cut(text);
    },
    query(text, listener) {
      inMemory = false;
      onTerm = listener;
      return cut(text);
    },
  };
}

/** 30 bits of its hash, without those of signs. */
function unknownWord(hash: number): TermId {
  const bits = hash & 0x3fffffff;
  return (UNKNOWN_WORD | (bits < 0x3f000000 ? bits : bits - 0x3f000000)) >>> 0;
}

/** Terms by id, a hash table with chaining: for a text of thousands of new terms a third of the time that a `Map` takes. */
interface TermTable {
  readonly buckets: (Term | undefined)[];
  size: number;
}

function termTable(buckets: number): TermTable {
  return { buckets: Array.from<Term | undefined>({ length: buckets }), size: 0 };
}

function enlarged(table: TermTable): TermTable {
  const larger = termTable(2 * table.buckets.length);
  const mask = larger.buckets.length - 1;
  for (const first of table.buckets) {
    for (let term = first, next = term?.next; term !== undefined; term = next, next = term?.next) {
      const bucket = bucketOf(term.id, mask);
      term.next = larger.buckets[bucket];
      larger.buckets[bucket] = term;
    }
  }
  larger.size = table.size;
  return larger;
}

/** `getUserName` → get, user, name; nothing for a word without a capital inside. Parts of two letters are left out. */
function humps(cased: string, start: number, end: number): string[] {
  const parts = cased.slice(start, end).split(HUMP);
  return parts.length < 2 ? [] : parts.filter((part) => part.length > 2).map((part) => part.toLowerCase());
}
