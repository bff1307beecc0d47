/**
 * Shortens the texts of records that do not fit into a context whole.
 *
 * @module
 */
import { countQuoted, countTokens } from "../embeddings/builtin/token-count.ts";
import { nextTurn } from "../lib/clock.ts";
import { quoted } from "../lib/quoted.ts";
import type { ShownTurn } from "./block.ts";

const MARK = "…";
/** Code units that are counted at once. */
const STEP_LENGTH = 800;

/** Returns the longest beginning of a text that has at most this many tokens when it is quoted, with a mark of what is missing. */
export async function shortened(text: string, tokens: number): Promise<string> {
  let left = tokens - countTokens(quoted(MARK));
  const tokensOf = (from: number, length: number) => countTokens(quoted(text.slice(from, from + length)));
  let at = 0;
  for (let next = tokensOf(0, STEP_LENGTH); next <= left; next = tokensOf(at, STEP_LENGTH)) {
    left -= next;
    at += STEP_LENGTH;
    await nextTurn();
  }
  let [low, high] = [0, STEP_LENGTH];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (tokensOf(at, middle) <= left) low = middle;
    else high = middle - 1;
  }
  return beginning(text, at + low) + MARK;
}

/** No character is cut in two. */
function beginning(text: string, length: number): string {
  const isInside = length > 0 && (text.charCodeAt(length - 1) & 0xfc00) === 0xd800;
  return text.slice(0, isInside ? length - 1 : length);
}

/** Returns a turn whose texts have at most this many tokens together: the shorter one whole where it takes no more than half of them. */
export async function shortenedTurn<Turn extends ShownTurn>(turn: Turn, tokens: number): Promise<Turn> {
  const half = Math.floor(tokens / 2);
  const [input, output] = [await countQuoted(turn.input.content, half), await countQuoted(turn.output.content, half)];
  const ofInput = input <= half ? input : output <= half ? tokens - output : half;
  const ofOutput = output <= half ? output : tokens - ofInput;
  return {
    ...turn,
    input: { ...turn.input, content: input <= half ? turn.input.content : await shortened(turn.input.content, ofInput) },
    output: { ...turn.output, content: output <= half ? turn.output.content : await shortened(turn.output.content, ofOutput) },
  };
}
