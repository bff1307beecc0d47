/**
 * Figures of retrieval, in percent.
 *
 * @module
 */

/** Results of a search, best first. */
export type Ranked = readonly { readonly index: number; readonly score: number }[];

/** A question with what a search returned for it and, where it is compared, what BM25 returned. */
export interface Asked {
  readonly category: string;
  readonly language: string;
  /** Indexes of the right texts; empty for a question that nothing stored answers. */
  readonly relevant: ReadonlySet<number>;
  readonly ranked: Ranked;
  readonly byWords: Ranked;
}

/** A client's view without changing a default. */
export const THRESHOLD = 0.7;
const LIMIT = 10;

/** Figures over some questions that something stored answers; shares are 0 to 1. */
export interface Summary {
  readonly questions: number;
  /** Questions whose first result is right. */
  readonly first: number;
  readonly recallAt5: number;
  readonly recallAt10: number;
  readonly meanReciprocalRank: number;
  /** Share with a right result among the first ten at the default threshold. */
  readonly right: number;
  /** Results at the default threshold, on average. */
  readonly results: number;
  readonly byWords: { readonly first: number; readonly recallAt5: number; readonly recallAt10: number };
}

export function summarize(asked: readonly Asked[]): Summary {
  const shown = asked.map(({ relevant, ranked }) => ({
    relevant,
    ranked: ranked.slice(0, LIMIT).filter(({ score }) => score >= THRESHOLD),
  }));
  const byWords = asked.map(({ relevant, byWords: ranked }) => ({ relevant, ranked }));
  return {
    questions: asked.length,
    first: firstRight(asked),
    recallAt5: recall(asked, 5),
    recallAt10: recall(asked, 10),
    meanReciprocalRank: meanReciprocalRank(asked),
    right: mean(shown.map((one) => (hasRight(one) ? 1 : 0))),
    results: mean(shown.map(({ ranked }) => ranked.length)),
    byWords: { first: firstRight(byWords), recallAt5: recall(byWords, 5), recallAt10: recall(byWords, 10) },
  };
}

/** Share of questions that get at least one result at the default threshold. */
export function answeredShare(ranked: readonly Ranked[]): number {
  return mean(ranked.map((results) => ((results[0]?.score ?? 0) >= THRESHOLD ? 1 : 0)));
}

/** All questions, then those of each category, then those of each language where there are several. */
export function groupsOf(asked: readonly Asked[]): Map<string, readonly Asked[]> {
  const byCategory = Map.groupBy(asked, ({ category }) => category);
  const byLanguage = Map.groupBy(asked, ({ language }) => `language ${language}`);
  return new Map<string, readonly Asked[]>([["all", asked], ...byCategory, ...(byLanguage.size > 1 ? byLanguage : [])]);
}

const COLUMNS = ["", "n", "hit@1", "r@5", "r@10", "MRR", `right at ${THRESHOLD}`, "results", "BM25 hit@1", "BM25 r@5", "BM25 r@10"];

/** A table with a row for each group, as text. */
export function tableOf(groups: ReadonlyMap<string, readonly Asked[]>): string {
  const rows = Array.from(groups, ([name, asked]) => {
    const figures = summarize(asked);
    const share = (count: number) => percent(count / figures.questions);
    return [
      name,
      `${figures.questions}`,
      share(figures.first),
      percent(figures.recallAt5),
      percent(figures.recallAt10),
      percent(figures.meanReciprocalRank),
      percent(figures.right),
      figures.results.toFixed(1),
      share(figures.byWords.first),
      percent(figures.byWords.recallAt5),
      percent(figures.byWords.recallAt10),
    ];
  });
  const widths = COLUMNS.map((column, i) => Math.max(column.length, ...rows.map((row) => row[i]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join("  ");
  return [COLUMNS, ...rows].map(line).join("\n");
}

export function sentencePairFigures(human: readonly number[], scores: readonly number[]): string {
  const shares = [0, 1, 2, 3, 4].map((low) => {
    const band = scores.filter((_, i) => Math.min(4, Math.floor(human[i] as number)) === low);
    return percent(mean(band.map((score) => (score >= THRESHOLD ? 1 : 0))));
  });
  return `Spearman ${percent(correlation(ranks(scores), ranks(human)))}   at ${THRESHOLD} or more, by human score 0-1/1-2/2-3/3-4/4-5: ${shares.join(" / ")}`;
}

type Result = Pick<Asked, "relevant" | "ranked">;

function hasRight({ relevant, ranked }: Result): boolean {
  return ranked.some(({ index }) => relevant.has(index));
}

function firstRight(asked: readonly Result[]): number {
  return asked.filter(({ relevant, ranked }) => ranked[0] !== undefined && relevant.has(ranked[0].index)).length;
}

/** Share of the right texts that are among the first `count` results. */
function recall(asked: readonly Result[], count: number): number {
  return mean(
    asked.map(({ relevant, ranked }) => ranked.slice(0, count).filter(({ index }) => relevant.has(index)).length / relevant.size),
  );
}

/** Mean of 1 / the rank of the first right result. */
function meanReciprocalRank(asked: readonly Result[]): number {
  return mean(
    asked.map(({ relevant, ranked }) => {
      const place = ranked.findIndex(({ index }) => relevant.has(index));
      return place === -1 ? 0 : 1 / (place + 1);
    }),
  );
}

/** The place of each value in order; equal ones share the mean of their places. */
function ranks(values: readonly number[]): number[] {
  const order = values.map((value, index) => ({ value, index })).sort((a, b) => a.value - b.value);
  const places: number[] = [];
  for (let start = 0; start < order.length;) {
    let end = start;
    while (end < order.length && order[end]?.value === order[start]?.value) end++;
    for (const { index } of order.slice(start, end)) places[index] = (start + end - 1) / 2;
    start = end;
  }
  return places;
}

function correlation(a: readonly number[], b: readonly number[]): number {
  const [meanA, meanB] = [mean(a), mean(b)];
  let both = 0;
  let squaresA = 0;
  let squaresB = 0;
  a.forEach((value, i) => {
    const [x, y] = [value - meanA, (b[i] as number) - meanB];
    both += x * y;
    squaresA += x * x;
    squaresB += y * y;
  });
  return both / Math.sqrt(squaresA * squaresB);
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function percent(share: number): string {
  return (100 * share).toFixed(1);
}
