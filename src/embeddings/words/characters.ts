/**
 * Characters: which belong to words, which are symbols, and which are written in several ways for the same letter.
 *
 * Text is read by its UTF-16 units, whose kinds follow from Unicode's properties. Nothing here throws: half a surrogate pair just
 * separates words.
 *
 * @module
 */

export const SEPARATOR = 1;
/** Punctuation, a symbol or an emoji. It separates words too. */
export const SYMBOL = 2;
export const LETTER = 3;
export const DIGIT = 4;
/** From here on: scripts that put no spaces between words, or join so much to a word that pairs say more than words. */
export const UNSPACED = 5;
export const HAN = 6;

const WORD_CHARACTER = /^[\p{L}\p{N}\p{M}]$/u;
const SYMBOL_CHARACTER = /^[\p{P}\p{S}]$/u;
const UNSPACED_CHARACTER = /^[\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]$/u;
const HAN_CHARACTER = /^\p{sc=Han}$/u;

/**
 * A cache of each UTF-16 unit's kind, 0 until it is first met: it saves a third of the time for a memory of 200 characters. Halves
 * of pairs separate, as does what says how an emoji looks.
 */
const kinds = new Uint8Array(65536).fill(SEPARATOR, 0xd800, 0xe000).fill(SEPARATOR, 0xfe00, 0xfe10).fill(SEPARATOR, 0x20e3, 0x20e4);

function kindOf(character: string): number {
  if (!WORD_CHARACTER.test(character)) return SYMBOL_CHARACTER.test(character) ? SYMBOL : SEPARATOR;
  if (character >= "0" && character <= "9") return DIGIT;
  if (HAN_CHARACTER.test(character)) return HAN;
  return UNSPACED_CHARACTER.test(character) ? UNSPACED : LETTER;
}

export function kindAt(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const known = kinds[unit]!;
  if (known === 0) return (kinds[unit] = kindOf(text[at]!));
  return (unit & 0xfc00) === 0xd800 && unitsAt(text, at) === 2 ? kindOfPair(text.codePointAt(at)!) : known;
}

/** The planes beyond the first: emoji, rare Chinese characters, and old or mathematical letters. */
function kindOfPair(point: number): number {
  const isSkinTone = point >= 0x1f3fb && point <= 0x1f3ff;
  if (point >= 0x1f000 && point < 0x20000) return isSkinTone ? SEPARATOR : SYMBOL;
  return point >= 0x20000 && point < 0x40000 ? HAN : kindOf(String.fromCodePoint(point));
}

/** 2 for a character outside the first plane, else 1. */
export function unitsAt(text: string, at: number): number {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00 ? 2 : 1;
}

/** Two of these are the flag of a country. */
export function isFlagHalf(point: number): boolean {
  return point >= 0x1f1e6 && point <= 0x1f1ff;
}

// -------------------------------------------------------------------------------------------------------------- folding

const NOT_ASCII = /[^\x00-\x7f]/;
/** Quotes, dashes, arrows and most emoji separate words and need no folding. */
const NEEDS_FOLDING = /[^\ufe0f\x00-\x7f\u2010-\u2027\u2190-\u2bff\u{1f000}-\u{1faff}]/u;
/** Accents; vowel points of Arabic and Hebrew and the Arabic stretching sign, written or not at will; invisible joiners. */
const DROPPED = /[\u0300-\u036f\u064b-\u065f\u0670\u0591-\u05c7\u0640\p{Cf}]+/gu;
/** Unicode's own bound on marks in a row is 30; putting thousands of them in order would take quadratic time. */
const TOO_MANY_MARKS = /(\p{M}{30})\p{M}+/gu;
const LIGATURES = new Map(
  Object.entries({ ß: "ss", ẞ: "SS", æ: "ae", Æ: "AE", œ: "oe", Œ: "OE", ø: "o", Ø: "O", ł: "l", Ł: "L", đ: "d", Đ: "D", ı: "i" }),
);
const LIGATURE = new RegExp(`[${[...LIGATURES.keys()].join("")}]`, "g");
/** One character may stand for 18 (U+FDFA); a text made of such is cut off at this many times its length. */
const FOLDED_GROWTH_MAX = 3;

/** One spelling for what readers take for the same letters: "Ｃafé" and "Cafe", "Straße" and "Strasse". */
export function fold(text: string): string {
  if (!NOT_ASCII.test(text)) return text;
  const quoted = text.replace(/[’‘]/g, "'").replace(/…/g, "...");
  if (!NEEDS_FOLDING.test(quoted)) return quoted;
  return quoted
    .replace(TOO_MANY_MARKS, "$1")
    .normalize("NFKD")
    .slice(0, FOLDED_GROWTH_MAX * text.length)
    .replace(DROPPED, "")
    .normalize("NFC")
    .replace(LIGATURE, (character) => LIGATURES.get(character)!);
}
