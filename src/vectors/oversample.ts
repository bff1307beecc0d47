/**
 * Finds the nearest that pass a filter, by asking for more and more of the nearest until enough of them pass.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { byNearness, type LabelledCosine, type Neighbour } from "./exact.ts";

/**
 * Where the nearest come from: nearest first, fewer than `count` when there are no more, of a graph also when it finds no more.
 * When more than are ever asked for are equal, theirs is the choice which come: `coarse.ts` gives the newest, a graph those that
 * it comes upon.
 */
export interface Points {
  nearest(query: Float32Array, count: number): LabelledCosine[];
}

/** A label's memory if that passes, nothing if it does not; `deleted` when there is no such vector any more. */
export type Look = (label: number) => BareId | "deleted" | undefined;

/** To begin with: what is beyond the limit shows whether the last places are tied. */
const FIRST = 128;
/** Asked for more than what the share that passed so far calls for, as it varies. */
const MARGIN = 1.25;

/**
 * @param max - never asks for more than this many
 * @param error - how far apart two cosines may be that are equal in truth
 * @param orFewer - when too few of the first `max` pass, those are all that is wanted
 * @param reach - what is further than this behind the last of the first `limit` is not looked at
 * @returns those that pass, nearest first: at least `limit` and all that may be equal to the last of them, or all there
 *   are; undefined when too few of the first `max` pass
 */
export function passingNearest(
  points: Points,
  query: Float32Array,
  {
    limit,
    max,
    error,
    reach = error,
    orFewer = false,
    look,
  }: { limit: number; max: number; error: number; reach?: number; orFewer?: boolean; look: Look },
): Neighbour[] | undefined {
  const looked = new Map<number, BareId | "deleted" | undefined>();
  let asked = Math.min(max, Math.max(FIRST, limit));
  for (let round = 1; ; round++) {
    const near = points.nearest(query, asked);
    const found: Neighbour[] = [];
    let deleted = 0;
    for (const { label, cosine } of near) {
      const last = found[limit - 1];
      if (last !== undefined && last.cosine - cosine >= reach) return found;
      if (!looked.has(label)) {
        const memory = look(label);
        looked.set(label, memory);
        if (memory === "deleted") deleted++;
      }
      const memory = looked.get(label);
      if (memory !== undefined && memory !== "deleted") found.push({ memory, cosine });
    }
    if (near.length < asked) return found;
    const last = found[limit - 1];
    if (last !== undefined) {
      // Of equal ones the newest count, so all of those have to be seen.
      const isTied = last.cosine - (near.at(-1)?.cosine ?? -1) < error;
      if (!isTied || asked === max) return found;
      asked = Math.min(max, 4 * asked);
    } else if (deleted > 0) {
      // They stood in the way, and do no more.
      asked = Math.min(max, 2 * asked);
    } else {
      const wanted = found.length === 0 ? Number.POSITIVE_INFINITY : (limit / found.length) * asked * MARGIN;
      if (asked === max && orFewer) return found;
      if (!orFewer && (asked === max || (wanted > max && round > 1))) return undefined;
      asked = Math.min(max, Math.max(2 * asked, Math.ceil(wanted)));
    }
  }
}

/**
 * The first `limit`, of candidates whose cosines may be a little wrong: where one is too near to the last one's to tell, it
 * is computed exactly. What lies nearer than that keeps its cosine as it is.
 *
 * @param error - how far off a cosine may be
 */
export function firstOf(candidates: Neighbour[], limit: number, error: number, exact: (memory: BareId) => number | undefined): Neighbour[] {
  candidates.sort(byNearness);
  const last = candidates[limit - 1];
  if (last === undefined) return candidates;
  const settled = candidates.flatMap(({ memory, cosine }) => {
    if (Math.abs(cosine - last.cosine) >= 2 * error) return [{ memory, cosine }];
    const computed = exact(memory);
    return computed === undefined ? [] : [{ memory, cosine: computed }];
  });
  return settled.sort(byNearness).slice(0, limit);
}
