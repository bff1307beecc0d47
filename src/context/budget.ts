/**
 * Chooses what of a context fits into a number of tokens (pure).
 *
 * Something of each kind that exists is there: space for the newest turn and the best memory, shortened if need be, is kept from the
 * beginning. What is left goes to memories that are pinned, then to the state, which stands whole or not at all, and then to turns and the
 * other memories alternately. Turns have no gaps: with the first that does not fit they end. A memory that does not fit is passed over.
 *
 * @module
 */
import { LIMITS } from "../lib/limits.ts";

/** Tokens of a record: what stands around its text, and the text, which can be shortened. */
export interface Cost {
  readonly markup: number;
  readonly content: number;
}

export interface Costs {
  /** Tokens that are there in any case. */
  readonly frame: number;
  /** With its heading; undefined where there is none to show. */
  readonly state: number | undefined;
  /** Pinned memories, then the best first; the first has the heading in its markup. */
  readonly memories: readonly Cost[];
  /** Number of pinned ones. */
  readonly pinned: number;
  /** Newest first; the first has the heading in its markup. */
  readonly turns: readonly Cost[];
}

export interface ChosenRecord {
  /** Its place among those that it was chosen from. */
  readonly place: number;
  /** Number of tokens that its text may have; undefined where it stands whole. */
  readonly shortenedTo?: number;
}

export interface Choice {
  readonly hasState: boolean;
  readonly memories: readonly ChosenRecord[];
  readonly turns: readonly ChosenRecord[];
  /** Tokens of all of it. */
  readonly tokens: number;
}

/** The fewest tokens in which something of each kind fits. */
export function leastTokens({ frame, memories, turns }: Costs): number {
  return frame + leastOf(memories[0]) + leastOf(turns[0]);
}

function leastOf(cost: Cost | undefined): number {
  return cost === undefined ? 0 : cost.markup + Math.min(cost.content, LIMITS.contextShortenedTokensMin);
}

/** @param tokensMax - at least `leastTokens` */
export function choose(costs: Costs, tokensMax: number): Choice {
  const { state } = costs;
  let left = tokensMax - leastTokens(costs);
  const takes = (tokens: number) => {
    if (tokens > left) return false;
    left -= tokens;
    return true;
  };
  const first = (cost: Cost | undefined): ChosenRecord[] => {
    if (cost === undefined) return [];
    if (takes(cost.markup + cost.content - leastOf(cost))) return [{ place: 0 }];
    const more = Math.floor(left / 2);
    left -= more;
    return [{ place: 0, shortenedTo: LIMITS.contextShortenedTokensMin + more }];
  };
  const { pinned } = costs;
  const memories = pinned === 0 ? [] : first(costs.memories[0]);
  const takeMemory = (place: number) => {
    const memory = costs.memories[place];
    if (memory !== undefined && takes(memory.markup + memory.content)) memories.push({ place });
  };
  for (let place = 1; place < pinned; place++) takeMemory(place);
  const hasState = state !== undefined && takes(state);
  const turns = first(costs.turns[0]);
  if (pinned === 0) memories.push(...first(costs.memories[0]));
  else takeMemory(pinned);
  let turnsEnd = turns[0]?.shortenedTo === undefined ? costs.turns.length : 1;
  for (let place = 1; place < Math.max(turnsEnd, costs.memories.length - pinned); place++) {
    const turn = costs.turns[place];
    if (turn !== undefined && place < turnsEnd) {
      if (takes(turn.markup + turn.content)) turns.push({ place });
      else turnsEnd = place;
    }
    takeMemory(pinned + place);
  }
  return { hasState, memories, turns, tokens: tokensMax - left };
}
