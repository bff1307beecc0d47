/**
 * Orders what a search found by how new and how important it is besides its score (pure).
 *
 * A ranking score is the score times two factors, each at most 1. So one that is known beats every memory whose score is lower than that:
 * what is given in the order of scores is read no further than there.
 *
 * @module
 */
import { DAY_MS } from "../lib/duration.ts";
import type { MemoryRow } from "../storage/tables.ts";

/** Ranking that a request asks for. */
export interface RankingWishes {
  recency?: { half_life_days: number; weight: number } | undefined;
  importanceWeight?: number | undefined;
}

/** Weights besides the score, of which one counts at least. */
export interface Weights {
  readonly recency: number;
  readonly halfLifeDays: number;
  readonly importance: number;
}

/** Parts of a ranking score; the factors are rounded before they are multiplied, so that they give it exactly. */
export interface RankingParts {
  readonly rankingScore: number;
  readonly ageDays: number;
  readonly recency: number;
  readonly importance: number;
}

/** Importance of a memory whose importance nobody has said. */
const IMPORTANCE_UNKNOWN = 0.5;

/** Returns undefined where nothing but the score counts. */
export function weightsOf({ recency, importanceWeight }: RankingWishes): Weights | undefined {
  if (recency === undefined && importanceWeight === undefined) return undefined;
  return { recency: recency?.weight ?? 0, halfLifeDays: recency?.half_life_days ?? 0, importance: importanceWeight ?? 0 };
}

/** The least that a score can be multiplied by. */
export function leastFactor({ recency, importance }: Weights): number {
  return Math.max((1 - recency) * (1 - importance) - ROUNDING, 0);
}
const ROUNDING = 1e-6;

/** @param at - the moment from which ages count; what is later has the age 0 */
export function rankingParts(
  { recency, halfLifeDays, importance }: Weights,
  score: number,
  row: Pick<MemoryRow, "importance" | "occurredAt" | "createdAt">,
  at: number,
): RankingParts {
  const ageDays = Math.max(at - (row.occurredAt ?? row.createdAt), 0) / DAY_MS;
  // With a half-life of 0 all but what is of the moment itself is old.
  const freshness = ageDays === 0 ? 1 : 2 ** (-ageDays / halfLifeDays);
  const byRecency = rounded(1 - recency + recency * freshness);
  const byImportance = rounded(1 - importance + importance * (row.importance ?? IMPORTANCE_UNKNOWN));
  return {
    rankingScore: rounded(score * byRecency * byImportance),
    ageDays: rounded(ageDays),
    recency: byRecency,
    importance: byImportance,
  };
}

interface Scored {
  readonly key: string;
  readonly row: MemoryRow;
  readonly score: number;
}

/**
 * Returns the first `limit` by ranking score, of equal ones the newer first.
 *
 * @param matches - by score, best first; read as far as one of them can still be among the first
 * @param at - the moment from which ages count
 */
export function firstByRanking<Match extends Scored>(
  matches: Iterable<Match>,
  weights: Weights,
  { limit, at }: { limit: number; at: number },
): (Match & { parts: RankingParts })[] {
  let first: (Match & { parts: RankingParts })[] = [];
  let threshold = Number.NEGATIVE_INFINITY;
  for (const match of matches) {
    if (match.score < threshold) break;
    const parts = rankingParts(weights, match.score, match.row, at);
    if (first.length >= limit && parts.rankingScore < threshold) continue;
    first.push({ ...match, parts });
    // Sorted now and then, so that many matches cost little each.
    if (first.length === limit || first.length >= 2 * limit + SPARE) {
      first = first.sort(byRanking).slice(0, limit);
      threshold = first[limit - 1]!.parts.rankingScore;
    }
  }
  return first.sort(byRanking).slice(0, limit);
}
const SPARE = 32;

function byRanking(a: Scored & { parts: RankingParts }, b: Scored & { parts: RankingParts }): number {
  return b.parts.rankingScore - a.parts.rankingScore || (a.key < b.key ? 1 : -1);
}

function rounded(value: number): number {
  return Math.round(value * 1e6) / 1e6;
}
