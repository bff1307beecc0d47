/**
 * Plan of a search: a choice by sizes alone. Whatever the way, memories that have the query's words are found by them,
 * and every answer is checked against the store.
 *
 * ```
 * plan       when                                              where            what is compared
 * resident   a session or a user, of up to 2,000 vectors       request thread   all of them, 0.2 µs each
 * few        up to 100 memories pass, or are there at all      request thread   all that pass, 2 µs each
 * flat       up to `flatMax` pass, or there is no graph        worker           all that pass, 0.1 µs each, and their look-up
 * graph      more pass                                         worker           what words and graph lead to, and what is not in it yet
 * ```
 *
 * @module
 */
export const RESIDENT_MAX = 2_000;
/** And with more terms than this, which take about 1 ms, a set is left to the worker. */
export const RESIDENT_TERMS_MAX = 100_000;
/** And with more vectors than this that have no row yet, which take 2 µs each. */
export const RESIDENT_PENDING_MAX = 250;
export const FEW_MAX = 100;
/** Up to here all vectors are compared in less time than the graph takes. */
export const GRAPH_FROM = 5_000;

/** Memories that pass a filter are looked up one by one up to this number. */
const FLAT_MIN = 2_000;
/**
 * To find what passes takes time that grows with its number; to go through the graph until enough passes takes time that grows with the
 * share that does not. They meet at the root of this, times the vectors.
 */
const FLAT_FACTOR = 500;

/** Up to this number of memories that pass a filter, all of those are compared. */
export function flatMax(vectors: number): number {
  return Math.max(FLAT_MIN, Math.round(Math.sqrt(FLAT_FACTOR * vectors)));
}

/** The way a search is answered in the worker when more than `flatMax` pass: without most vectors the graph is of no use. */
export function workerPlan({ vectors, inGraph }: { vectors: number; inGraph: number }): "flat" | "graph" {
  return inGraph > vectors / 2 ? "graph" : "flat";
}

/** Number of candidates that a search looks for on each side. */
export interface Breadth {
  /** Memories that have most of the query's words. */
  words: number;
  /** The nearest in the graph, which knows projections only. */
  graph: number;
  /** The least number of these that pass a filter before the others are left out. */
  enough: number;
}

/**
 * Among more vectors more are near by chance, and more have as much of the query's words. Of the ten best of a million texts for 300
 * questions 99.3 % are found so, among 2,500 by words and 240 by the graph; among 1,250 and 240 98.5 %, among 5,000 and 2,000 99.5 %. Of
 * 20,000 texts it are 99.6 %, among 354 by words.
 */
const WORDS_MIN = 300;
const WORDS_FACTOR = 2.5;
const NEAR = 1_000;
const ENOUGH_NEAR = 500;

interface BreadthOptions {
  isFiltered: boolean;
  limit: number;
  vectors: number;
}

export function breadthOf({ isFiltered, limit, vectors }: BreadthOptions): Breadth {
  return {
    words: Math.max(WORDS_MIN, isFiltered ? 0 : Math.round(WORDS_FACTOR * Math.sqrt(vectors)), 2 * limit),
    graph: Math.max(NEAR, 2 * limit),
    enough: Math.max(ENOUGH_NEAR, limit),
  };
}
