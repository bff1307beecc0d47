/**
 * The passage of a turn that a search shows: at most 300 characters of one field, with most of the query's words.
 *
 * A turn that was cut into passages is nearest to the query in one of them: the passage that is shown is of that one. Pure.
 *
 * @module
 */
import { coverageOf, type AskedWords } from "../embeddings/score.ts";
import { memoryTerms } from "../embeddings/words/terms.ts";
import { LIMITS } from "../lib/limits.ts";
import { codePointLength } from "../lib/text.ts";
import { placesOf, type FieldPlace, type TurnField, type TurnTexts } from "./indexed-text.ts";

export interface ShownPassage {
  readonly text: string;
  readonly field: TurnField;
  /** In code points of the field: its first character, and the one behind its last. */
  readonly start: number;
  readonly end: number;
}

/** A part of a text, in units of UTF-16. */
interface Part {
  readonly from: number;
  readonly to: number;
}

/** A piece ends with a sentence where one ends in its second half, or else with a word. */
const SENTENCE_END = /[.!?…。！？\n](?:\s|$)/gu;

/**
 * Returns the passage; undefined for a turn without any text.
 *
 * @param text - what `indexedText` gives for the texts
 * @param near - the part of it that is nearest to the query, where that is known
 */
export function passageOf(texts: TurnTexts, text: string, words: AskedWords, near: Part | undefined): ShownPassage | undefined {
  let best: { place: FieldPlace; piece: Part; coverage: number } | undefined;
  for (const place of placesOf(texts, text)) {
    const within = { from: Math.max(place.from, near?.from ?? 0), to: Math.min(place.to, near?.to ?? text.length) };
    for (const piece of piecesOf(text, within)) {
      const coverage = coverageOf(words, memoryTerms(text.slice(piece.from, piece.to)));
      if (best === undefined || coverage > best.coverage) best = { place, piece, coverage };
    }
  }
  if (best === undefined) return undefined;
  const { place, piece } = best;
  const shown = text.slice(piece.from, piece.to);
  const start = codePointLength(text.slice(place.from, piece.from));
  return { text: shown, field: place.field, start, end: start + codePointLength(shown) };
}

/** Cuts a part of a text into pieces that may be shown, without the spaces at their ends. */
function* piecesOf(text: string, { from, to }: Part): Generator<Part> {
  for (let at = from; at < to;) {
    const end = endOfPiece(text, at, to);
    const piece = text.slice(at, end);
    const start = at + piece.length - piece.trimStart().length;
    const stop = at + piece.trimEnd().length;
    if (start < stop) yield { from: start, to: stop };
    at = end;
  }
}

function endOfPiece(text: string, from: number, to: number): number {
  const longest = from + LIMITS.turnPassageLengthMax;
  if (longest >= to) return to;
  const piece = text.slice(from, longest);
  const half = LIMITS.turnPassageLengthMax / 2;
  const sentence = Array.from(piece.matchAll(SENTENCE_END)).at(-1);
  if (sentence !== undefined && sentence.index >= half) return from + sentence.index + 1;
  const space = piece.search(/\s\S*$/u);
  if (space >= half) return from + space;
  return isPairBefore(text, longest) ? longest - 1 : longest;
}

function isPairBefore(text: string, at: number): boolean {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}
