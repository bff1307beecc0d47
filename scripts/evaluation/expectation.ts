/**
 * Expectations of the gate on the everyday data: figures of the last change that was meant to move them, recorded by
 * `scripts/evaluate --record`, and how far a change that is not meant to may move them.
 *
 * @module
 */
import { dirname, join } from "node:path";
import type { Evaluated } from "./corpus.ts";
import { answeredShare, groupsOf, summarize } from "./figures.ts";

const retrieval = join(dirname(dirname(import.meta.dir)), "test/retrieval");

/** The directory with the project's own everyday data. */
export const EVERYDAY = join(retrieval, "everyday");
export const EXPECTED = join(retrieval, "expected.json");

/** Percent points that a total may fall by. */
const TOTAL_POINTS = 0.5;
/** Questions that a category or language may lose. */
const QUESTIONS_LOST_MAX = 2;

/** Figures of a data set; totals in percent. */
export interface Expectation {
  readonly totals: { readonly first: number; readonly recallAt5: number; readonly meanReciprocalRank: number; readonly right: number };
  /** Percent of questions about something else that get an answer at the default threshold. */
  readonly unrelatedAnswered: number;
  /** By category and language: questions whose first result is right. */
  readonly first: Readonly<Record<string, number>>;
}

export function expectationOf({ answerable, unrelated }: Evaluated): Expectation {
  const { all = [], ...groups } = Object.fromEntries(groupsOf(answerable));
  const totals = summarize(all);
  return {
    totals: {
      first: inPercent(totals.first / totals.questions),
      recallAt5: inPercent(totals.recallAt5),
      meanReciprocalRank: inPercent(totals.meanReciprocalRank),
      right: inPercent(totals.right),
    },
    unrelatedAnswered: inPercent(answeredShare(unrelated)),
    first: Object.fromEntries(Object.entries(groups).map(([name, asked]) => [name, summarize(asked).first])),
  };
}

/** Figures that are worse than expected, a sentence each; empty where none is. */
export function declines(expected: Expectation, found: Expectation): string[] {
  const totals = Object.entries(expected.totals).flatMap(([name, before]) => {
    const now = found.totals[name as keyof Expectation["totals"]];
    return now < before - TOTAL_POINTS ? [`${name} fell from ${before} to ${now} %`] : [];
  });
  const groups = Object.entries(expected.first).flatMap(([name, before]) => {
    const now = found.first[name] ?? 0;
    return now < before - QUESTIONS_LOST_MAX ? [`${name}: the first result is right for ${now} questions instead of ${before}`] : [];
  });
  const { unrelatedAnswered: before } = expected;
  const now = found.unrelatedAnswered;
  const more = now > before + TOTAL_POINTS ? [`${now} % instead of ${before} % of questions about something else get an answer`] : [];
  return [...totals, ...groups, ...more];
}

function inPercent(share: number): number {
  return Math.round(1000 * share) / 10;
}
