/**
 * Says how many tokens a text is for a language model, estimated from above: no model's own tokenizer is here.
 *
 * The text is cut by the encoder's tokenizer, and each piece counts as the models need for it that need most: some for the piece, some
 * for each of its characters, by their script. A piece that the encoder rarely or never saw counts as its bytes, which no tokenizer that
 * works on bytes exceeds. The rates are the least that are enough for the texts of 17 languages in `test/retrieval`, their halves, code
 * and JSON, by the tokenizers o200k and that of Claude, with a twentieth to spare (`decisions/context-tokens.md`).
 *
 * It is the same under every provider, and a function of the text alone: it is stored with records. Words are counted one by one, and their
 * counts cached.
 *
 * @module
 */
import { nextTurn } from "../../lib/clock.ts";
import { Cache } from "../../lib/cache.ts";
import { CACHE_BYTES_MAX } from "../../lib/limits.ts";
import { memoize } from "../../lib/memoize.ts";
import { quoted } from "../../lib/quoted.ts";
import { type Encoder, openEncoder, preparedText } from "./encoder.ts";

/** Tokens of a piece besides its characters. As precise as the rates, so that sums are exact in any order. */
const PER_PIECE = Math.fround(0.3);
const PER_LETTER = 0.42;
/** Words in capitals take more, and so does what was made by chance, such as keys. */
const PER_CAPITAL = 0.6;
const PER_DIGIT = 1;
const PER_SIGN = 0.8;
const PER_BACKSLASH = 1.2;
/** A space after another one; the first is part of the piece that it stands before. */
const PER_FURTHER_SPACE = 0.5;
/** Tokens of a character beyond ASCII: those before each code unit, from the one above. */
const SCRIPTS: readonly (readonly [before: number, rate: number])[] = [
  // Latin with marks.
  [0x250, 2.65],
  // Phonetic signs, and marks that combine.
  [0x370, 2],
  // Greek, Cyrillic, Armenian.
  [0x590, 0.72],
  // Hebrew, Arabic.
  [0x900, 1.4],
  // Of India and South East Asia.
  [0x10a0, 1.5],
  [0x1780, 3],
  [0x1800, 1.5],
  [0x1e00, 3],
  [0x1f00, 2.65],
  [0x2e80, 3],
  // Chinese, Japanese.
  [0xa000, 1.55],
  [0xac00, 3],
  // Korean.
  [0xd7a4, 1.85],
  // Halves of the characters beyond, which have four bytes.
  [0xe000, 2],
  [0x10000, 3],
];
/** A piece that costs this for each of its characters is rare: it counts as its bytes. */
const RARE_COST = 11;

const SPACE = 0x20;
/** The rate of each code unit. */
const RATES = Float32Array.from({ length: 0x10000 }, (_, unit) => {
  if (unit === SPACE) return 0;
  if (unit < 0x80) return rateOfAscii(String.fromCharCode(unit));
  return SCRIPTS.find(([before]) => unit < before)![1];
});

function rateOfAscii(character: string): number {
  if (/[a-z]/.test(character)) return PER_LETTER;
  if (/[A-Z]/.test(character)) return PER_CAPITAL;
  if (/\d/.test(character)) return PER_DIGIT;
  return character === "\\" ? PER_BACKSLASH : PER_SIGN;
}

/** Code units that are cut at once: a fifth of a millisecond. */
const SLICE_LENGTH = 1_600;
/** A slice ends behind the last space within this. */
const SLICE_END_LENGTH = 200;

/** A word that becomes at least this many times its length counts as its bytes. */
const EXPANSION_MAX = 2;

/** Opened with the first text; the weights are shared with the other encoders of the process. */
const encoderOf = memoize<string, Encoder>(() => openEncoder());

/**
 * Counts the tokens of a text.
 *
 * @param enough - where the count exceeds this, the rest of the text is not looked at: then it is some number above
 */
export function countTokens(text: string, enough = Number.POSITIVE_INFINITY): number {
  let count = 0;
  for (const slice of slicesOf(text)) {
    count += tokensOfSlice(slice);
    if (count > enough) break;
  }
  return Math.ceil(count);
}

/** The same for a short text that comes again and again. */
export const countTokensOnce = memoize((text: string) => countTokens(text));

/** Counts the tokens of a text that is quoted, as a context shows it. Of a long one it lets other requests through. */
export async function countQuoted(text: string, enough = Number.POSITIVE_INFINITY): Promise<number> {
  if (text.length <= SLICE_LENGTH / 2) return countTokens(quoted(text));
  let count = 0;
  for (const slice of slicesOf(quoted(text))) {
    if (count > 0) await nextTurn();
    count += tokensOfSlice(slice);
    if (count > enough) break;
  }
  return Math.ceil(count);
}

/** Cuts a text into the slices by which it is counted. */
function* slicesOf(text: string): Generator<string> {
  for (let from = 0; from < text.length;) {
    const to = endOfSlice(text, from);
    yield from === 0 && to === text.length ? text : text.slice(from, to);
    from = to;
  }
}

function endOfSlice(text: string, from: number): number {
  const longest = from + SLICE_LENGTH;
  if (longest >= text.length) return text.length;
  const space = text.lastIndexOf(" ", longest - 1);
  if (space >= longest - SLICE_END_LENGTH) return space;
  return isLowSurrogate(text.charCodeAt(longest)) ? longest - 1 : longest;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000;
}

/** Words longer than this are mostly not words, and do not come again. */
const CACHED_WORD_LENGTH_MAX = 24;
/** Counts of words: most words of a text were in one before. No piece goes beyond a word, so that each can be counted by itself. */
const countsOfWords = new Cache<number>(CACHE_BYTES_MAX.wordTokens);

/** Forgets the words that were counted. */
export const wordsCounted = { forget: () => countsOfWords.clear() };

/** Tokens of one slice of a text, not rounded. */
function tokensOfSlice(slice: string): number {
  let count = 0;
  const unknown: string[] = [];
  for (let from = 0; from < slice.length;) {
    let to = slice.indexOf(" ", from);
    if (to === -1) to = slice.length;
    if (to === from) {
      if (slice.charCodeAt(from - 1) === SPACE) count += PER_FURTHER_SPACE;
    } else {
      const word = slice.slice(from, to);
      const known = knownCount(word);
      if (known === undefined) unknown.push(word);
      else count += known;
    }
    from = Math.max(to, from + 1);
  }
  return unknown.length === 0 ? count : count + tokensOfWords(unknown);
}

/** Few texts share one, so that no cache would know it. */
const LONG_NUMBER = /^\d{4,}[!-/:-@[-`{-~]{0,2}$/;

/** Tokens of a word that need not be cut for that: a long number counts as its bytes and a space, a little more than by its pieces. */
function knownCount(word: string): number | undefined {
  if (LONG_NUMBER.test(word)) return word.length + 1;
  return word.length > CACHED_WORD_LENGTH_MAX ? undefined : countsOfWords.get(word);
}

/** Tokens of words that no cache knows. */
function tokensOfWords(words: readonly string[]): number {
  // Some tokenizers see a word so, in which a character can be many.
  const compatible = words.map((word) => word.normalize("NFKC"));
  const expands = (i: number) => compatible[i]!.length >= EXPANSION_MAX * words[i]!.length;
  // To cut one that expands would take as many times as long, and no tokenizer that works on bytes exceeds these.
  const bytes = (i: number) => Math.max(Buffer.byteLength(words[i]!), Buffer.byteLength(compatible[i]!));
  const counts = words.map((_, i) => (expands(i) ? bytes(i) : 0));
  const cut = [...words.keys()].filter((i) => !expands(i));
  const changed = cut.filter((i) => compatible[i] !== words[i]);
  const estimated = estimates([...cut.map((i) => words[i]!), ...changed.map((i) => compatible[i]!)]);
  for (const [place, i] of [...cut, ...changed].entries()) counts[i] = Math.max(counts[i]!, estimated[place]!);
  let sum = 0;
  for (const [i, word] of words.entries()) {
    if (word.length <= CACHED_WORD_LENGTH_MAX) countsOfWords.set(word, counts[i]!, 2 * word.length);
    sum += counts[i]!;
  }
  return sum;
}

/** Counts each of these words, all cut in one call. */
function estimates(words: readonly string[]): number[] {
  const prepared = words.map(preparedText);
  const text = prepared.join(" ");
  const { starts, ends, costs } = encoderOf("this thread").pieces(text);
  let piece = 0;
  let end = -1;
  return words.map((word, i) => {
    end += prepared[i]!.length + 1;
    let count = ratesOf(word, 0, word.length);
    for (; piece < starts.length && starts[piece]! < end; piece++) {
      const [from, to] = [starts[piece]!, ends[piece]!];
      count += PER_PIECE;
      if (costs[piece]! < RARE_COST * Math.max(1, to - from)) continue;
      count += Math.max(0, Buffer.byteLength(text.slice(from, to)) - PER_PIECE - ratesOf(text, from, to));
    }
    // With the space before it.
    return Math.min(count, Buffer.byteLength(word) + 1);
  });
}

function ratesOf(text: string, from: number, to: number): number {
  let sum = 0;
  for (let i = from; i < to; i++) sum += RATES[text.charCodeAt(i)]!;
  return sum;
}
