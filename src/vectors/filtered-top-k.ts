/**
 * Finds the nearest that pass a filter, by asking for more and more of the nearest until enough of them pass.
 *
 * @module
 */
import type { BareId } from "../lib/ids.ts";
import { byNearness, type Hit, type Neighbour } from "./top-k.ts";

/**
 * Where the nearest come from: nearest first, fewer than `count` when there are no more, of a graph also when it finds no more.
 * When more than are ever asked for are equal, it chooses: `int8-index.ts` gives the newest, a graph those that it comes upon.
 */
export interface Points {
  nearest(query: Int16Array, count: number): Hit[];
}

/** The memory of a vector if it passes, nothing if it does not; `deleted` when there is no such vector any more. */
export type Resolve = (id: BareId) => BareId | "deleted" | undefined;

/** To begin with: what is beyond the limit shows whether the last places are tied. */
const FIRST = 128;
/** Asked for more than what the share that passed so far calls for, as it varies. */
const MARGIN = 1.25;

/**
 * @param max - never asks for more than this many
 * @param error - how far apart two cosines may be that are equal in truth
 * @param orFewer - when too few of the first `max` pass, those are all that is wanted
 * @param window - what is further than this behind the last of the first `limit` is not looked at
 * @returns those that pass, nearest first: at least `limit` and all that may be equal to the last of them, or all there
 *   are; undefined when too few of the first `max` pass
 */
export function filteredTopK(
  points: Points,
  query: Int16Array,
  {
    limit,
    max,
    error,
    window = error,
    orFewer = false,
    resolve,
  }: { limit: number; max: number; error: number; window?: number; orFewer?: boolean; resolve: Resolve },
): Neighbour[] | undefined {
  const resolved = new Map<BareId, BareId | "deleted" | undefined>();
  let asked = Math.min(max, Math.max(FIRST, limit));
  for (let round = 1; ; round++) {
    const near = points.nearest(query, asked);
    const found: Neighbour[] = [];
    let deleted = 0;
    for (const { id, cosine } of near) {
      const last = found[limit - 1];
      if (last !== undefined && last.cosine - cosine >= window) return found;
      if (!resolved.has(id)) {
        const memory = resolve(id);
        resolved.set(id, memory);
        if (memory === "deleted") deleted++;
      }
      const memory = resolved.get(id);
      if (memory !== undefined && memory !== "deleted") found.push({ id, memory, cosine });
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
export function rescoreTies(candidates: Neighbour[], limit: number, error: number, exact: (id: BareId) => number | undefined): Neighbour[] {
  candidates.sort(byNearness);
  const last = candidates[limit - 1];
  if (last === undefined) return candidates;
  const settled = candidates.flatMap((candidate) => {
    if (Math.abs(candidate.cosine - last.cosine) >= 2 * error) return [candidate];
    const cosine = exact(candidate.id);
    return cosine === undefined ? [] : [{ ...candidate, cosine }];
  });
  return settled.sort(byNearness).slice(0, limit);
}
