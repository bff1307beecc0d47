/**
 * Asks the questions of a data set, through the public API, of what it has stored.
 *
 * @module
 */
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

/** The calls of the API that a data set needs. */
export interface Api {
  createSession(): Promise<string>;
  addMemory(session: string, content: string): Promise<string>;
  /** Resolves once no vector is pending: the encoder may have had much to do. */
  vectorsMade(): Promise<void>;
  /** The best twenty, without a threshold. */
  search(session: string, query: string): Promise<{ id: string; score: number }[]>;
}

export interface Evaluated {
  /** Questions that something stored answers. */
  readonly answerable: Asked[];
  /** Results of questions near to the subject that nothing stored answers. */
  readonly unanswerable: Ranked[];
  /** Results of other corpora's questions, which are about something else. */
  readonly unrelated: Ranked[];
}

const CONCURRENCY = 16;
/** Of a memory. */
export const CONTENT_MAX = 10_000;
/** Questions of other corpora that each corpus is asked. */
const UNRELATED_PER_CORPUS = 24;

export async function evaluateCorpora(api: Api, corpora: readonly Corpus[]): Promise<Evaluated> {
  const all: Evaluated = { answerable: [], unanswerable: [], unrelated: [] };
  for (const corpus of corpora) {
    const one = await evaluateCorpus(api, corpus, unrelatedQuestions(corpora, corpus));
    all.answerable.push(...one.answerable);
    all.unanswerable.push(...one.unanswerable);
    all.unrelated.push(...one.unrelated);
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

/** Calls `work` for each item, with a bounded number at a time, and keeps the order. */
export async function inParallel<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i] as Item);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  return results;
}

async function evaluateCorpus(api: Api, corpus: Corpus, unrelated: readonly string[]): Promise<Evaluated> {
  const { memories, language = "" } = corpus;
  const session = await api.createSession();
  const ids: string[] = [];
  // One after the other: where many wait, their vectors are made later than they are answered.
  for (const { text } of memories) ids.push(await api.addMemory(session, text.slice(0, CONTENT_MAX) || " "));
  await api.vectorsMade();
  const indexOf = new Map(ids.map((id, index) => [id, index]));
  const indexOfText = new Map(memories.map(({ id }, index) => [id, index]));
  const search = async (text: string): Promise<Ranked> =>
    (await api.search(session, text)).map(({ id, score }) => ({ index: indexOf.get(id) ?? -1, score }));
  const scoreByWords = bm25(memories.map(({ text }) => text));
  const asked = await inParallel(
    corpus.queries.filter(({ category }) => category !== "adversarial"),
    async ({ text, category, relevant }): Promise<Asked> => ({
      category,
      language,
      relevant: new Set(relevant.flatMap((id) => indexOfText.get(id) ?? [])),
      ranked: await search(text),
      byWords: scoreByWords(text)
        .map((score, index) => ({ index, score }))
        .filter(({ score }) => score > 0)
        .sort((a, b) => b.score - a.score),
    }),
  );
  return {
    answerable: asked.filter(({ relevant }) => relevant.size > 0),
    unanswerable: asked.filter(({ relevant }) => relevant.size === 0).map(({ ranked }) => ranked),
    unrelated: await inParallel(unrelated, search),
  };
}

/** The same questions in each run, spread evenly over the other corpora. */
function unrelatedQuestions(corpora: readonly Corpus[], own: Corpus): string[] {
  const others = corpora.filter((corpus) => corpus !== own).flatMap(({ queries }) => queries.map(({ text }) => text));
  const step = Math.max(1, Math.floor(others.length / UNRELATED_PER_CORPUS));
  return others.filter((_, i) => i % step === 0).slice(0, UNRELATED_PER_CORPUS);
}
