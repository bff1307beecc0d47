/**
 * Data sets in the form that `cairn bench recall` reads, and what its results are for them.
 *
 * @module
 */
import type { Answer } from "../../src/cli/bench/trial.ts";
import { bm25 } from "../../test/retrieval/bm25.ts";
import type { Asked, Ranked } from "./figures.ts";

/** Texts that belong together, each corpus in a session of its own, with questions about them. */
export interface Corpus {
  /** The language of its memories. */
  readonly language?: string;
  readonly memories: readonly { readonly id: string; readonly text: string }[];
  /** A question without anything relevant asks about nothing stored. The category `adversarial` is left out. */
  readonly queries: readonly { readonly text: string; readonly category: string; readonly relevant: readonly string[] }[];
}

export interface Evaluated {
  /** Questions that something stored answers. */
  readonly answerable: Asked[];
  /** Results of questions near to the subject that nothing stored answers. */
  readonly unanswerable: Ranked[];
  /** Results of other corpora's questions, which are about something else. */
  readonly unrelated: Ranked[];
}

/** Results that each question asks for. */
export const RESULTS = 20;
/** Of a memory. */
export const CONTENT_MAX = 10_000;
/** Questions of other corpora that each corpus is asked. */
const UNRELATED_PER_CORPUS = 24;
/** Their category. */
const UNRELATED = "about something else";

/** Returns the corpora as they are asked: with questions of the others, and without those that are left out. */
export function withUnrelated(corpora: readonly Corpus[]): Corpus[] {
  return corpora.map((corpus) => ({
    ...corpus,
    queries: [
      ...corpus.queries.filter(({ category }) => category !== "adversarial"),
      ...unrelatedQuestions(corpora, corpus).map((text) => ({ text, category: UNRELATED, relevant: [] })),
    ],
  }));
}

/** Sorts the answers to corpora, each with what BM25 finds. */
export function evaluated(corpora: readonly Corpus[], answers: readonly Answer[]): Evaluated {
  const all: Evaluated = { answerable: [], unanswerable: [], unrelated: [] };
  const byCorpus = Map.groupBy(answers, ({ haystack }) => haystack);
  for (const [number, { memories, queries, language = "" }] of corpora.entries()) {
    const indexOf = new Map(memories.map(({ id }, index) => [id, index]));
    const scoreByWords = bm25(memories.map(({ text }) => text));
    const inOrder = (byCorpus.get(number) ?? []).toSorted((one, other) => one.question - other.question);
    for (const { question, category, unanswerable, relevant, found } of inOrder) {
      const ranked = found.map(({ message, score }) => ({ index: indexOf.get(message)!, score }));
      if (unanswerable) (category === UNRELATED ? all.unrelated : all.unanswerable).push(ranked);
      else
        all.answerable.push({
          category,
          language,
          relevant: new Set(relevant.map((id) => indexOf.get(id)!)),
          ranked,
          byWords: scoreByWords(queries[question]!.text)
            .map((score, index) => ({ index, score }))
            .filter(({ score }) => score > 0)
            .toSorted((one, other) => other.score - one.score),
        });
    }
  }
  return all;
}

/**
 * Joins the memories of all corpora, mixed, to texts of about so many characters: what is about many things has to be found by one of
 * them. The same in each run.
 */
export function joined(corpora: readonly Corpus[], characters: number): Corpus {
  const nameOf = (corpus: number, id: string) => `${corpus} ${id}`;
  const facts = corpora.flatMap(({ memories }, corpus) => memories.map(({ id, text }) => ({ id: nameOf(corpus, id), text })));
  const mixed = facts.map((_, i) => facts[(i * stepThrough(facts.length)) % facts.length]!);
  const memories: { id: string; text: string }[] = [];
  const joinedWith = new Map<string, string>();
  for (const { id, text } of mixed) {
    const last = memories.at(-1);
    if (last !== undefined && last.text.length + text.length < characters) last.text += ` ${text}`;
    else memories.push({ id: `${memories.length}`, text });
    joinedWith.set(id, memories.at(-1)!.id);
  }
  const queries = corpora.flatMap(({ queries: asked }, corpus) =>
    asked.map(({ text, category, relevant }) => {
      const among = relevant.map((id) => joinedWith.get(nameOf(corpus, id))!);
      return { text, category, relevant: Array.from(new Set(among)) };
    }),
  );
  return { memories, queries };
}

/** A number that leads through all of them, far from one to the next: about their golden section, and without a divisor in common. */
function stepThrough(count: number): number {
  let step = Math.max(1, Math.round(count * 0.618));
  while (divisor(step, count) > 1) step++;
  return step;
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

/** The same questions in each run, spread evenly over the other corpora. */
function unrelatedQuestions(corpora: readonly Corpus[], own: Corpus): string[] {
  const others = corpora.filter((corpus) => corpus !== own).flatMap(({ queries }) => queries.map(({ text }) => text));
  const step = Math.max(1, Math.floor(others.length / UNRELATED_PER_CORPUS));
  return others.filter((_, i) => i % step === 0).slice(0, UNRELATED_PER_CORPUS);
}
