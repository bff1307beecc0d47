/**
 * How well the right memory is found, on the project's own questions, beside BM25. Guards against changes that make
 * searching worse; the bounds are a little below what was reached, and above BM25 by a clear margin.
 *
 * @module
 */
import { describe, expect, test } from "bun:test";
import { calibrate, calibrationOf } from "../../src/embeddings/calibration.ts";
import { BUILTIN_CALIBRATION } from "../../src/embeddings/score.ts";
import { relevance } from "../../src/memories/relevance.ts";
import { embeddedMemory, embeddedQuery, rawVector } from "../support/meaning.ts";
import { bm25 } from "./bm25.ts";
import { MEMORIES, type MemoryKey } from "./memories.ts";
import { type Question, QUESTIONS } from "./questions.ts";

type Found = { key: MemoryKey; score: number }[];
type Search = (query: string) => Found;

const CANDIDATES = 100;
const keys = Object.keys(MEMORIES) as MemoryKey[];
const contents = keys.map((key) => MEMORIES[key]);
const bestFirst = (a: { score: number }, b: { score: number }) => b.score - a.score;

const memories = keys.map((key) => ({ key, ...embeddedMemory(MEMORIES[key]) }));

/** A provider whose vectors are not the built-in one's, and not as good: those of the network itself, whose cosines are all above 0.7. */
const calibration = calibrationOf(await calibrate(async (texts) => texts.map(rawVector)));

const searchRemote: Search = (text) => {
  const query = { ...embeddedQuery(text), vector: rawVector(text) };
  const cosine = (vector: Float32Array) => query.vector.reduce((sum, value, i) => sum + value * vector[i]!, 0);
  return memories
    .map(({ key, terms }) => ({ key, score: relevance(query, cosine(rawVector(MEMORIES[key])), terms, calibration) }))
    .sort(bestFirst);
};

/** The two steps of a search: the hundred nearest by cosine, then their relevance. */
const search: Search = (text) => {
  const query = embeddedQuery(text);
  const near = memories.map((memory) => ({ ...memory, score: query.vector.reduce((sum, value, i) => sum + value * memory.vector[i]!, 0) }));
  const candidates = near.sort(bestFirst).slice(0, CANDIDATES);
  return candidates.map(({ key, score, terms }) => ({ key, score: relevance(query, score, terms, BUILTIN_CALIBRATION) })).sort(bestFirst);
};

const scoreByWords = bm25(contents);
const searchByWords: Search = (text) => {
  const scores = scoreByWords(text).map((score, i) => ({ key: keys[i]!, score }));
  return scores.filter(({ score }) => score > 0).sort(bestFirst);
};

const answered = QUESTIONS.filter(({ answers }) => answers.length > 0);
const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const isRight =
  ({ answers }: Question) =>
  ({ key }: { key: MemoryKey }) =>
    answers.includes(key);

const reciprocalRank = (index: number) => (index < 0 ? 0 : 1 / (index + 1));

function figures(method: Search, questions: readonly Question[]) {
  const all = questions.map((question) => ({ question, found: method(question.text) }));
  return {
    recallAt5: mean(all.map(({ question, found }) => found.slice(0, 5).filter(isRight(question)).length / question.answers.length)),
    meanReciprocalRank: mean(all.map(({ question, found }) => reciprocalRank(found.findIndex(isRight(question))))),
  };
}

test("the set is large and varied enough to mean something", () => {
  expect(keys.length).toBeGreaterThanOrEqual(150);
  expect(answered.length).toBeGreaterThanOrEqual(150);
  expect(new Set(keys.map((key) => key.split(".")[0])).size).toBeGreaterThanOrEqual(8);
  expect(new Set(QUESTIONS.map(({ text }) => text)).size).toBe(QUESTIONS.length);
});

test("the right memory is among the first five for 93 of 100 questions, and well before BM25's", () => {
  const own = figures(search, answered);
  const words = figures(searchByWords, answered);
  expect(own.recallAt5).toBeGreaterThanOrEqual(0.93);
  expect(own.meanReciprocalRank).toBeGreaterThanOrEqual(0.87);
  expect(own.recallAt5).toBeGreaterThan(words.recallAt5 + 0.1);
  expect(own.meanReciprocalRank).toBeGreaterThan(words.meanReciprocalRank + 0.1);
});

test("every walk of life is found at least as well as with BM25", () => {
  for (const walk of new Set(keys.map((key) => key.split(".")[0]))) {
    const questions = answered.filter(({ answers }) => answers[0]!.startsWith(`${walk}.`));
    const lead = figures(search, questions).recallAt5 - figures(searchByWords, questions).recallAt5;
    expect({ walk, isBehind: lead < 0 }).toEqual({ walk, isBehind: false });
  }
});

test("with another provider's vectors the right memory is as often among the first five, since words count too", () => {
  const own = figures(searchRemote, answered);
  expect(own.recallAt5).toBeGreaterThanOrEqual(0.93);
  expect(own.meanReciprocalRank).toBeGreaterThanOrEqual(0.87);
});

describe("ids, names and words of any language are among the first three, with another provider's vectors too:", () => {
  const exact = answered.filter(({ text, answers }) => answers[0]!.startsWith("lang.") || /(?<!-)\b\d{3}(?!\d-)|[A-Z]{4}/.test(text));
  for (const question of exact) {
    test(question.text, () => {
      for (const method of [search, searchRemote]) {
        const three = method(question.text).slice(0, 3);
        expect(three.map(({ key }) => key)).toContain(question.answers[0]!);
      }
    });
  }
});
