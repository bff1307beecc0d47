/**
 * Which way a search is answered: a choice by sizes alone. Whatever the way, every answer is checked against the store.
 *
 * ```
 * way            who may be in the answer                       where            cost
 * resident set   a session or a user, of up to 2,000 vectors    request thread   0.06 µs a vector
 * inline         up to 100 memories, or up to 100 in all        request thread   2 µs a vector
 * brute force    up to 2,000 memories                           worker           2 µs a vector
 * int8           more of them, of up to 400,000 vectors         worker           0.05 µs a vector of the store
 * graph          more of them, of more vectors                  worker           some 10 ms
 * ```
 *
 * @module
 */
export const RESIDENT_MAX = 2_000;
export const INLINE_MAX = 100;
export const BRUTE_FORCE_MAX = 2_000;
/** The graph is built by the time it is needed, and takes no room and time where it never is. */
export const GRAPH_FROM = 200_000;
/** Vectors that are not in the graph yet are compared one by one: with more of them it is of no use. */
const GRAPH_PENDING_MAX = 1_000;

/** Up to this number of vectors the int8 index answers, from as many on the graph does. */
export function int8Max(graphFrom: number): number {
  return 2 * graphFrom;
}

export type WorkerPlan = "brute force" | "int8" | "graph";

export interface SearchSizes {
  /** Memories that pass the filter; infinite when nobody counted them, since they are more than brute force takes. */
  passing: number;
  /** Vectors in the store, and how many of them are not in the graph yet. */
  vectors: number;
  pending: number;
}

/** The way a search is answered in the worker. */
export function workerPlan({ passing, vectors, pending }: SearchSizes, limits: { scanMax: number; int8Max: number }): WorkerPlan {
  if (passing <= limits.scanMax) return "brute force";
  return vectors > limits.int8Max && pending <= GRAPH_PENDING_MAX ? "graph" : "int8";
}
