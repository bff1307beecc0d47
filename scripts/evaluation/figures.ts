/**
 * Figures of retrieval, in percent.
 *
 * @module
 */

/** What a search gave, best first. */
export type Ranked = readonly { readonly index: number; readonly score: number }[];

export interface Found {
  readonly relevant: ReadonlySet<number>;
  readonly ranked: Ranked;
}

/** What a client sees who changes no default. */
const THRESHOLD = 0.7;
const LIMIT = 10;

export function found(relevant: readonly number[], ranked: Ranked): Found {
  return { relevant: new Set(relevant), ranked };
}

/** Share of what is relevant that is among the first `count`. */
function recall(asked: readonly Found[], count: number): number {
  return mean(
    asked.map(({ relevant, ranked }) => ranked.slice(0, count).filter(({ index }) => relevant.has(index)).length / relevant.size),
  );
}

/** Mean of 1 / the place of the first that is relevant. */
function meanReciprocalRank(asked: readonly Found[]): number {
  return mean(
    asked.map(({ relevant, ranked }) => {
      const place = ranked.findIndex(({ index }) => relevant.has(index));
      return place === -1 ? 0 : 1 / (place + 1);
    }),
  );
}

export function retrievalFigures(all: readonly Found[]): string {
  const asked = all.filter(({ relevant }) => relevant.size > 0);
  const aboutNothing = all.filter(({ relevant }) => relevant.size === 0);
  const shown = asked.map(({ relevant, ranked }) => ({
    relevant,
    ranked: ranked.slice(0, LIMIT).filter(({ score }) => score >= THRESHOLD),
  }));
  const right = mean(shown.map(({ relevant, ranked }) => (ranked.some(({ index }) => relevant.has(index)) ? 1 : 0)));
  const firstRight = mean(asked.map(({ relevant, ranked }) => (ranked[0] !== undefined && relevant.has(ranked[0].index) ? 1 : 0)));
  const alarms = mean(aboutNothing.map(({ ranked }) => ((ranked[0]?.score ?? 0) >= THRESHOLD ? 1 : 0)));
  return [
    `recall@5/10/20 ${[5, 10, 20].map((count) => percent(recall(asked, count))).join(" / ")}`,
    `MRR ${percent(meanReciprocalRank(asked))}`,
    `first right ${percent(firstRight)}`,
    `at ${THRESHOLD}: ${percent(right)} % get a right one among ${mean(shown.map(({ ranked }) => ranked.length)).toFixed(1)}`,
    ...(aboutNothing.length === 0 ? [] : [`${percent(alarms)} % of ${aboutNothing.length} questions about nothing stored get one`]),
  ].join("   ");
}

export function sentencePairFigures(human: readonly number[], scores: readonly number[]): string {
  const shares = [0, 1, 2, 3, 4].map((low) => {
    const band = scores.filter((_, i) => Math.min(4, Math.floor(human[i] as number)) === low);
    return percent(mean(band.map((score) => (score >= THRESHOLD ? 1 : 0))));
  });
  return `Spearman ${percent(correlation(ranks(scores), ranks(human)))}   at ${THRESHOLD} or more, by human score 0-1/1-2/2-3/3-4/4-5: ${shares.join(" / ")}`;
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

function percent(share: number): string {
  return (100 * share).toFixed(1);
}
