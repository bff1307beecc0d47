/**
 * Figures of retrieval (pure): recall, reciprocal rank and discounted gain of the messages, and of the conversations, that answer.
 *
 * @module
 */
import { USUAL_RESULTS, type Answer } from "./trial.ts";

export const CUTS = [1, 5, 10, 20, 50] as const;
type Cut = (typeof CUTS)[number];
const GAIN_CUT = 10;
/** Lowest score of what a search gives, unless it is asked for another. */
export const THRESHOLD = 0.7;

/** Figures of one question, of messages or of conversations. */
interface Ranking {
  /** Share of all that answer which is among the first k. */
  readonly recall: Readonly<Record<Cut, number>>;
  readonly reciprocalRank: number;
  readonly gain: number;
}

/** Figures of a group of questions; shares are 0 to 1. */
export interface Level {
  readonly questions: number;
  readonly hit_at_1: number;
  /** Mean share of all that answer which is among the first k. */
  readonly recall_at: Readonly<Record<string, number>>;
  /** Share of questions with one, and with all, that answer among the first k. */
  readonly any_at: Readonly<Record<string, number>>;
  readonly all_at: Readonly<Record<string, number>>;
  readonly mrr: number;
  readonly ndcg_at_10: number;
}

export interface Group {
  readonly name: string;
  readonly messages: Level;
  readonly conversations: Level;
}

export interface Summary {
  /** All questions that something stored answers, then those of each category, then of each language where there are several. */
  readonly groups: readonly Group[];
  readonly unanswerable: Readonly<Record<string, { readonly questions: number; readonly answered: number }>>;
  /** Questions that name no evidence that is in the file, which are left out; and questions some of whose evidence is not in it. */
  readonly missing: { readonly left_out: number; readonly partly: number };
  /** Tokens of the first ten results. */
  readonly tokens: { readonly mean: number; readonly p95: number };
  readonly search_ms: { readonly p50: number; readonly p95: number };
  /** Results at the threshold that searches have unless they are asked for another, on average. */
  readonly results_at_threshold: number;
}

interface Measured {
  readonly category: string;
  readonly language: string;
  readonly messages: Ranking | undefined;
  readonly conversations: Ranking | undefined;
}

/** Takes answers one by one, and keeps of each its figures alone. */
export class Figures {
  readonly #limit: number;
  readonly #measured: Measured[] = [];
  readonly #unanswerable = new Map<string, { questions: number; answered: number }>();
  readonly #ms: number[] = [];
  readonly #tokens: number[] = [];
  #shown = 0;
  #partly = 0;
  #leftOut = 0;

  /** @param limit - results that each question asked for */
  constructor(limit: number) {
    this.#limit = limit;
  }

  add(answer: Answer): void {
    this.#ms.push(answer.ms);
    this.#tokens.push(answer.tokens);
    const shown = answer.found.slice(0, USUAL_RESULTS).filter(({ score }) => score >= THRESHOLD).length;
    this.#shown += shown;
    if (answer.unanswerable) {
      const one = this.#unanswerable.get(answer.category) ?? { questions: 0, answered: 0 };
      this.#unanswerable.set(answer.category, { questions: one.questions + 1, answered: one.answered + (shown > 0 ? 1 : 0) });
      return;
    }
    const { category, language } = answer;
    const messages = rankingOf(
      answer.relevant,
      answer.found.map(({ message }) => message),
    );
    const inOrder = Array.from(new Set(answer.found.map(({ conversation }) => conversation)));
    const conversations = rankingOf(answer.relevant_conversations, inOrder);
    if (messages === undefined && conversations === undefined) {
      this.#leftOut += 1;
      return;
    }
    if (answer.missing.length > 0) this.#partly += 1;
    this.#measured.push({ category, language, messages, conversations });
  }

  get summary(): Summary {
    const byCategory = Map.groupBy(this.#measured, ({ category }) => category);
    const byLanguage = Map.groupBy(this.#measured, ({ language }) => `language ${language}`);
    const groups: [string, readonly Measured[]][] = [["all", this.#measured], ...byCategory, ...(byLanguage.size > 1 ? byLanguage : [])];
    const count = this.#ms.length;
    return {
      groups: groups.map(([name, measured]) => ({
        name,
        messages: this.#level(measured.flatMap(({ messages }) => messages ?? [])),
        conversations: this.#level(measured.flatMap(({ conversations }) => conversations ?? [])),
      })),
      unanswerable: Object.fromEntries(this.#unanswerable),
      missing: { left_out: this.#leftOut, partly: this.#partly },
      tokens: { mean: count === 0 ? 0 : sum(this.#tokens) / count, p95: quantile(this.#tokens, 0.95) },
      search_ms: { p50: quantile(this.#ms, 0.5), p95: quantile(this.#ms, 0.95) },
      results_at_threshold: count === 0 ? 0 : this.#shown / count,
    };
  }

  #level(rankings: readonly Ranking[]): Level {
    const mean = (of: (ranking: Ranking) => number) => (rankings.length === 0 ? 0 : sum(rankings.map(of)) / rankings.length);
    const cuts = CUTS.filter((cut) => cut <= this.#limit);
    const atCuts = (of: (share: number) => number) =>
      Object.fromEntries(cuts.map((cut) => [String(cut), mean(({ recall }) => of(recall[cut]))]));
    return {
      questions: rankings.length,
      hit_at_1: mean(({ reciprocalRank }) => (reciprocalRank === 1 ? 1 : 0)),
      recall_at: atCuts((share) => share),
      any_at: atCuts((share) => (share > 0 ? 1 : 0)),
      all_at: atCuts((share) => (share === 1 ? 1 : 0)),
      mrr: mean(({ reciprocalRank }) => reciprocalRank),
      ndcg_at_10: mean(({ gain }) => gain),
    };
  }
}

/** @returns undefined where nothing answers */
function rankingOf(relevant: readonly string[], found: readonly string[]): Ranking | undefined {
  if (relevant.length === 0) return undefined;
  const right = new Set(relevant);
  const places = found.flatMap((name, place) => (right.has(name) ? [place] : []));
  const recall = (cut: Cut) => places.filter((place) => place < cut).length / right.size;
  const ideal = Array.from({ length: Math.min(GAIN_CUT, right.size) }, (_, place) => place);
  return {
    recall: { 1: recall(1), 5: recall(5), 10: recall(10), 20: recall(20), 50: recall(50) },
    reciprocalRank: places[0] === undefined ? 0 : 1 / (places[0] + 1),
    gain: gainOf(places.filter((place) => place < GAIN_CUT)) / gainOf(ideal),
  };
}

function gainOf(places: readonly number[]): number {
  return sum(places.map((place) => 1 / Math.log2(place + 2)));
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
