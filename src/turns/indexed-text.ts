/**
 * The text that a turn is found by: what came in, what went out and why, a line each. Passages and words are of this text.
 *
 * @module
 */
import { type Embedding, NO_VECTOR } from "../embeddings/embedder.ts";
import { memoryTerms } from "../embeddings/words/terms.ts";
import { nextTurn } from "../lib/clock.ts";
import { distinct } from "../lib/distinct.ts";
import { LIMITS } from "../lib/limits.ts";
import type { TurnRow } from "../storage/tables.ts";

export const TURN_FIELDS = ["input", "output", "reasoning"] as const;
export type TurnField = (typeof TURN_FIELDS)[number];
export type TurnTexts = Readonly<Record<TurnField, string>>;

/** Place of a field in the text, in units of UTF-16. */
export interface FieldPlace {
  readonly field: TurnField;
  readonly from: number;
  readonly to: number;
}

/** A line end, behind which a sentence begins: no passage has the end of one field and more than a few words of the next. */
const BETWEEN = "\n";
/** To split as many characters into words takes a millisecond or two. */
const SPLIT_LENGTH = 10_000;

/** The texts of a stored turn. */
export function textsOf({ shown, rest }: TurnRow): TurnTexts {
  const { input, output } = JSON.parse(`{${shown}}`) as Record<"input" | "output", { content: string }>;
  const { reasoning = "" } = JSON.parse(`{${rest}}`) as { reasoning?: string };
  return { input: input.content, output: output.content, reasoning };
}

/** The text of a turn, up to where it is not found any more. */
export function indexedText(texts: TurnTexts): string {
  return TURN_FIELDS.map((field) => texts[field])
    .join(BETWEEN)
    .slice(0, LIMITS.indexedTurnLengthMax)
    .trimEnd();
}

/** Returns the place of each field in that text, as far as it is in it. */
export function placesOf(texts: TurnTexts, text: string): FieldPlace[] {
  let from = 0;
  return TURN_FIELDS.flatMap((field) => {
    const place = { field, from, to: Math.min(text.length, from + texts[field].length) };
    from += texts[field].length + BETWEEN.length;
    return place.from < place.to ? [place] : [];
  });
}

/** Splits a text into its words. Of a long one it lets other requests through. */
export async function wordsOfTurn(text: string): Promise<Embedding> {
  if (text.length <= SPLIT_LENGTH) return { vector: NO_VECTOR, terms: memoryTerms(text) };
  const terms: number[] = [];
  for (let from = 0; from < text.length;) {
    const space = text.lastIndexOf(" ", from + SPLIT_LENGTH);
    const to = from + SPLIT_LENGTH < text.length && space > from ? space : from + SPLIT_LENGTH;
    for (const term of memoryTerms(text.slice(from, to))) terms.push(term);
    from = to;
    await nextTurn();
  }
  return { vector: NO_VECTOR, terms: distinct(terms) };
}
