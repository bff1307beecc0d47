/**
 * Cuts a text into terms: the units that are counted, weighed and compared.
 *
 * ```
 * "Caroline's flight BA-2490 left on 2024-06-07, didn't it?"
 *    ->  carolin  flight  ba  2490  ba2490  leav  june  7  2024
 * ```
 *
 * Lower case, no accents, dates in one form, small numbers as digits, stop words out, irregular forms to their base,
 * Porter stems. Scripts without spaces are cut into pairs of characters. A token's way from text to term is kept in a
 * bounded cache, so a word seen before costs one look-up; one pass of `charCodeAt` finds the tokens. What a term means is
 * the table's business (`semantics.ts`); nothing here knows of vectors.
 *
 * @module
 */
import { stemmer } from "stemmer";
import { FINGERPRINT, type TermId, UNKNOWN_WORD } from "./embedder.ts";
import { hashText, mix, type Semantics } from "./semantics.ts";

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
}

export interface Cut {
  /** Distinct terms in the order of their first appearance. */
  readonly terms: readonly Term[];
  /** Stands for all the words of the text in order, stop words too; 0 without a letter or digit. */
  readonly fingerprint: TermId;
}

/** Called for each term with the characters it was made from, lower case and without accents. */
export type OnTerm = (term: Term, surface: string) => void;

export interface TermCutter {
  /** Memories also get terms that only others would ask for: the parts of `getUserName`, single Chinese characters. */
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

/** Longer words are ids, hashes or addresses: they have no stem, and the stemmer's patterns would take long. */
const STEMMED_LENGTH_MAX = 30;

/** Porter's rules only change words that end in one of these letters; for half of all words that saves the stemmer. */
const ASCII_WORD = /^[a-z]+$/;
const MAY_HAVE_SUFFIX = /[cdeglmnrstyi]$|ou$/;

const STOP_WORDS = new Set(
  `a about after again all also am an and any are arent as at be been before being between both but by can cant could
  couldnt d did didnt do does doesnt doing done dont down during each else few for from further had has have having he
  her here hers him his how i if im in into is isnt it its just ll m may me might mine more most must my no nor not of
  off on once only or other our ours out over own re s same shall she should shouldnt so some such t than that the their
  theirs them then there these they this those to too up us ve very was wasnt we were werent what when where which who
  whom whose why will with within without wont would wouldnt you your yours`.split(/\s+/),
);

const MONTHS = "january february march april may june july august september october november december".split(" ");

/** Short forms and number words by what they stand for. */
const SAME_WORD = new Map<string, string>([
  ...MONTHS.filter((month) => month.length > 5 || month === "april").map((month) => [month.slice(0, 3), month] as const),
  ["jun", "june"],
  ["jul", "july"],
  ["sept", "september"],
  ["mon", "monday"],
  ["tue", "tuesday"],
  ["tues", "tuesday"],
  ["wed", "wednesday"],
  ["thu", "thursday"],
  ["thurs", "thursday"],
  ["fri", "friday"],
  ..."zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"
    .split(" ")
    .map((word, number) => [word, String(number)] as const),
]);

// ---------------------------------------------------------------------------------------------------------- characters

const SEPARATOR = 1;
const LETTER = 2;
const DIGIT = 3;
/** From here on: scripts that put no spaces between words, or join so much to a word that pairs say more than words. */
const UNSPACED = 4;
const HAN = 5;
const HIRAGANA = 6;

const WORD_CHARACTER = /^[\p{L}\p{N}\p{M}]$/u;
const UNSPACED_CHARACTER = /^[\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]$/u;
const HAN_CHARACTER = /^\p{sc=Han}$/u;
const HIRAGANA_CHARACTER = /^\p{sc=Hiragana}$/u;

/** The kind of each UTF-16 unit, found when first met; 0 = not yet. A half without its other half separates. */
const kinds = new Uint8Array(65536).fill(SEPARATOR, 0xd800, 0xe000);

function kindOf(character: string): number {
  if (!WORD_CHARACTER.test(character)) return SEPARATOR;
  if (character >= "0" && character <= "9") return DIGIT;
  if (HAN_CHARACTER.test(character)) return HAN;
  if (HIRAGANA_CHARACTER.test(character)) return HIRAGANA;
  return UNSPACED_CHARACTER.test(character) ? UNSPACED : LETTER;
}

function kindAt(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const known = kinds[unit]!;
  if (known === 0) return (kinds[unit] = kindOf(text[at]!));
  return (unit & 0xfc00) === 0xd800 && unitsAt(text, at) === 2 ? kindOfPair(text.codePointAt(at)!) : known;
}

/** The planes beyond the first: emoji, rare Chinese characters, and old or mathematical letters. */
function kindOfPair(point: number): number {
  if (point >= 0x1f000 && point < 0x20000) return SEPARATOR;
  return point >= 0x20000 && point < 0x40000 ? HAN : kindOf(String.fromCodePoint(point));
}

/** 2 for a character outside the first plane, else 1. */
function unitsAt(text: string, at: number): number {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00 ? 2 : 1;
}

// -------------------------------------------------------------------------------------------------------------- folding

const NOT_ASCII = /[^\x00-\x7f]/;
/** Quotes, dashes, arrows and most emoji separate words and need no folding. */
const NEEDS_FOLDING = /[^\x00-\x7f\u2010-\u2027\u2190-\u2bff\ud83c-\ud83e\udc00-\udfff\ufe0f]/;
/** Accents; vowel points of Arabic and Hebrew and the Arabic stretching sign, written or not at will; invisible joiners. */
const DROPPED = /[\u0300-\u036f\u064b-\u065f\u0670\u0640\u0591-\u05c7\p{Cf}]+/gu;
/** Unicode's own bound on marks in a row is 30; putting thousands of them in order would take quadratic time. */
const TOO_MANY_MARKS = /(\p{M}{30})\p{M}+/gu;
const LIGATURES = new Map(Object.entries({ ß: "ss", ẞ: "SS", æ: "ae", Æ: "AE", œ: "oe", Œ: "OE", ø: "o", Ø: "O", ł: "l", Ł: "L", đ: "d", Đ: "D", ı: "i", ς: "σ" }));
const LIGATURE = new RegExp(`[${[...LIGATURES.keys()].join("")}]`, "g");
/** One character may stand for 18 (U+FDFA); a text made of such is cut off at this many times its length. */
const FOLDED_GROWTH_MAX = 3;

/** One spelling for what readers take for the same letters: "Ｃafé" and "Cafe", "Straße" and "Strasse". */
function fold(text: string): string {
  if (!NOT_ASCII.test(text)) return text;
  const quoted = text.replace(/[’‘]/g, "'");
  if (!NEEDS_FOLDING.test(quoted)) return quoted;
  return quoted
    .replace(TOO_MANY_MARKS, "$1")
    .normalize("NFKD")
    .slice(0, FOLDED_GROWTH_MAX * text.length)
    .replace(DROPPED, "")
    .normalize("NFC")
    .replace(LIGATURE, (character) => LIGATURES.get(character)!);
}

// -------------------------------------------------------------------------------------------------------------- numbers

/** Dates, clock times and numbers with signs inside, tried where a token begins with a digit that a sign follows. */
const ISO_DATE = /(\d{4})-(\d\d)-(\d\d)(?!\d)(?:[t ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?z?)?/y;
const DOTTED_DATE = /(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)/y;
const SLASHED_DATE = /(\d{1,2})\/(\d{1,2})\/(\d{4})(?!\d)/y;
const CLOCK_TIME = /(\d{1,2}):(\d\d)(?::\d\d)?(?!\d)(?:\s*[ap]m(?![a-z0-9]))?/y;
const GROUPED_NUMBER = /\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])/y;
const DECIMAL_NUMBER = /\d+\.\d+(?![\d.]*\d)/y;
const WHOLE_CENTS = /\.00?$/;
const ORDINAL = /^\d{1,2}(?=(?:st|nd|rd|th)$)/;

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

interface CalendarDay {
  readonly year: string;
  readonly month: string;
  readonly day: string;
  readonly end: number;
}

/** A date in digits, in any of the three usual orders; 25/12 can only be a day and a month, 7/5 is read the American way. */
function dateAt(text: string, at: number): CalendarDay | undefined {
  const iso = matchAt(ISO_DATE, text, at);
  if (iso !== null) return calendarDay(iso[1]!, iso[2]!, iso[3]!, at + iso[0].length);
  const dotted = matchAt(DOTTED_DATE, text, at);
  if (dotted !== null) return calendarDay(dotted[3]!, dotted[2]!, dotted[1]!, at + dotted[0].length);
  const slashed = matchAt(SLASHED_DATE, text, at);
  if (slashed === null) return undefined;
  const [, first, second, year] = slashed as unknown as [string, string, string, string];
  const end = at + slashed[0].length;
  return calendarDay(year, first, second, end) ?? calendarDay(year, second, first, end);
}

function calendarDay(year: string, month: string, day: string, end: number): CalendarDay | undefined {
  const name = MONTHS[Number(month) - 1];
  return name === undefined || Number(day) > 31 ? undefined : { year, month: name, day: String(Number(day)), end };
}

// --------------------------------------------------------------------------------------------------- other languages

/** Endings of Russian nouns, adjectives and verbs, long ones first, й written и: enough for one word's cases to meet. */
const RUSSIAN_ENDING =
  /(?<=[а-я]{3})(?:иями|ями|ами|ого|его|ому|ему|ыми|ими|иях|ях|ах|иеи|ием|иям|ов|ев|еи|ои|ыи|ии|ая|яя|ое|ее|ые|ие|ую|юю|ым|им|ых|их|ом|ем|ам|ям|ия|ию|а|я|о|е|и|ы|у|ю|ь)$/;
/** "the", "and the", "for the" before an Arabic noun. */
const ARABIC_ARTICLE = /^(?:و?ال|لل)(?=[\u0620-\u064a]{3})/;
const CYRILLIC_LETTER = /^[\u0400-\u04ff]/;
const ARABIC_LETTER = /^[\u0620-\u064a]/;

function foreignStem(word: string): string {
  if (CYRILLIC_LETTER.test(word)) return word.replace(RUSSIAN_ENDING, "");
  if (ARABIC_LETTER.test(word)) return word.replace(ARABIC_ARTICLE, "");
  return word;
}

// --------------------------------------------------------------------------------------------------------------- cutting

/** Logs put a clock time before everything, so it says little; a digit alone says less than a longer number. */
const CLOCK_WEIGHT = 0.2;
const DIGIT_WEIGHT = 0.8;
const DIGIT_ALONE = /^\d$/;

/** Two hiragana are mostly grammar (した, です): they say little. A Chinese character alone says less than a pair. */
const GRAMMAR_WEIGHT = 0.2;
const SINGLE_CHARACTER_WEIGHT = 0.4;

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
  const terms = new Map<TermId, Term>();

  // Of the text being cut.
  let current = 0;
  let found: Term[] = [];
  let order = 0;
  let stopWordsCount = false;
  let inMemory = false;
  let onTerm: OnTerm | undefined;

  function termOf(row: number, hash: number, weightIfUnknown: number): Term {
    const id = row >= 0 ? row : (UNKNOWN_WORD | (hash & 0x3fffffff)) >>> 0;
    let term = terms.get(id);
    if (term === undefined) {
      term = { id, row, hash, weight: row >= 0 ? table.weight(row) : weightIfUnknown, count: 0, text: 0 };
      terms.set(id, term);
    }
    return term;
  }

  function resolve(token: string): Token {
    let known = tokens.get(token);
    if (known === undefined) {
      const stem = stemOf(table, token);
      known = { term: termOf(table.row(stem), hashText(stem), DIGIT_ALONE.test(stem) ? DIGIT_WEIGHT : 1), isStopWord: STOP_WORDS.has(token) };
      tokens.set(token, known);
    }
    return known;
  }

  function count(term: Term, surface: string): void {
    if (term.text === current) term.count++;
    else {
      term.text = current;
      term.count = 1;
      found.push(term);
    }
    onTerm?.(term, surface);
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

  /** A run without spaces: every two characters that stand together, and in memories the Chinese ones alone. */
  function addUnspaced(text: string, start: number): number {
    let before = -1;
    let kindBefore = 0;
    let at = start;
    for (let kind = kindAt(text, at); kind >= UNSPACED; kind = at < text.length ? kindAt(text, at) : 0) {
      const next = at + unitsAt(text, at);
      if (before >= 0) addCharacters(text, before, next, kind === HIRAGANA && kindBefore === HIRAGANA ? GRAMMAR_WEIGHT : 1, true);
      if (inMemory && kind === HAN) addCharacters(text, at, next, SINGLE_CHARACTER_WEIGHT, false);
      before = at;
      kindBefore = kind;
      at = next;
    }
    const isAlone = before === start;
    if (isAlone && !(inMemory && kindBefore === HAN)) addCharacters(text, start, at, SINGLE_CHARACTER_WEIGHT, false);
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
    add(number[0].replaceAll(",", "").replace(WHOLE_CENTS, ""));
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
  function addIdentifier(name: string): void {
    if (name.length > IDENTIFIER_LENGTH_MAX) return;
    const joined = name.replace(/[-_]/g, "");
    const parts = name.split(/[-_.@]/);
    const hasDigit = /\d/.test(name);
    if (name.includes("@")) addBeside(joined);
    else if (!hasDigit) {
      if (name.includes("_") ? inMemory : !name.includes(".") && resolve(joined).term.row >= 0) addBeside(joined);
    } else {
      const letters = parts.filter((part) => !/\d/.test(part));
      const digits = name.replace(/\D/g, "").length;
      const hasWord = letters.some((part) => part.length > 2 && resolve(part).term.row >= 0);
      if (!hasWord && (letters.length > 0 || parts.length > 2 || digits > 4)) addBeside(joined);
    }
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
        at++;
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
      if (token === "may" && (matchAt(MONTH_AFTER, text, at) !== null || MONTH_BEFORE.test(text.slice(Math.max(0, start - 12), start)))) addMonth(token);
      else add(token);
      if (hasHumps) for (const part of humps(cased, start, at)) addBeside(part);

      const goesOn = isConnector(sign) && at + 1 < end && ((kind = kindAt(text, at + 1)) === LETTER || kind === DIGIT);
      if (goesOn) {
        if (nameStart < 0) nameStart = start;
        at++;
      } else if (nameStart >= 0) {
        addIdentifier(text.slice(nameStart, at));
        nameStart = -1;
      }
    }
  }

  function cut(text: string): Cut {
    if (tokens.size > CACHED_MAX || terms.size > CACHED_MAX) {
      tokens.clear();
      terms.clear();
    }
    stopWordsCount = false;
    begin();
    scan(text);
    if (found.length === 0 && order !== 0) {
      // "to be or not to be": better its stop words than nothing.
      stopWordsCount = true;
      begin();
      scan(text);
    }
    return { terms: found, fingerprint: found.length === 0 ? 0 : (FINGERPRINT | (mix(order) & 0x1fffffff)) >>> 0 };
  }

  function begin(): void {
    current++;
    found = [];
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

/** `getUserName` → get, user, name; nothing for a word without a capital inside. Parts of two letters are left out. */
function humps(cased: string, start: number, end: number): string[] {
  const parts = cased.slice(start, end).split(HUMP);
  return parts.length < 2 ? [] : parts.filter((part) => part.length > 2).map((part) => part.toLowerCase());
}

function stemOf(table: Semantics, token: string): string {
  const word = SAME_WORD.get(token) ?? ORDINAL.exec(token)?.[0] ?? token;
  const base = table.irregular(word) ?? word;
  if (!ASCII_WORD.test(base)) return foreignStem(base);
  return base.length <= STEMMED_LENGTH_MAX && MAY_HAVE_SUFFIX.test(base) ? stemmer(base) : base;
}
