/**
 * Puts candidates in the order of their scores, as far as that is asked for.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { kthLargest } from "../lib/kth-largest.ts";
import type { Candidate } from "../search/candidates.ts";

/**
 * Gives the candidates to look at, best first, of equal ones the newer first unless the older is to be. Most are never asked for: those
 * that can be among the first `few` are sorted alone.
 */
export function* inOrder(
  candidates: readonly Candidate[],
  scores: Float64Array,
  few: number,
  first: "newer" | "older" = "newer",
): Generator<number> {
  const threshold = thresholdOf(scores, few);
  const between = (from: number, to: number) => {
    const found: number[] = [];
    for (let i = 0; i < scores.length; i++) if ((scores[i] as number) >= from && (scores[i] as number) < to) found.push(i);
    const isBefore = (a: number, b: number) => candidates[a]!.memory < candidates[b]!.memory === (first === "older");
    return found.sort((a, b) => (scores[b] as number) - (scores[a] as number) || (isBefore(a, b) ? -1 : 1));
  };
  yield* between(threshold, Number.POSITIVE_INFINITY);
  yield* between(0, threshold);
}

/** The memories that can be among the first `few`, in no order. @param factor - the least that their scores are multiplied by */
export function* amongFirst(candidates: readonly Candidate[], scores: Float64Array, few: number, factor = 1): Generator<BareId> {
  const threshold = thresholdOf(scores, few) * factor;
  for (let i = 0; i < scores.length; i++) if ((scores[i] as number) >= threshold) yield candidates[i]!.memory;
}

function thresholdOf(scores: Float64Array, few: number): number {
  return Math.max(kthLargest(scores, few), 0);
}
