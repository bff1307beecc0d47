/**
 * How well everyday questions find the right memory, in English and 16 other languages, through the API with default settings.
 *
 * The data are the project's own. Where a change is meant to move the figures, `scripts/evaluate --record` writes the new ones.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Corpus, evaluated, RESULTS, withUnrelated } from "../../scripts/evaluation/corpus.ts";
import { declines, EVERYDAY, EXPECTED, type Expectation, expectationOf } from "../../scripts/evaluation/expectation.ts";
import { Part } from "../../src/cli/bench/formats/part.ts";
import { plain } from "../../src/cli/bench/formats/plain.ts";
import { Trial, type Answer } from "../../src/cli/bench/trial.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { startCairn } from "../support/cairn.ts";
import { startClient } from "../support/cairn-client.ts";
import { makeVectors } from "../support/providers.ts";

const expected = JSON.parse(readFileSync(EXPECTED, "utf8")) as Record<string, Expectation>;
const corporaOf = (name: string) => (JSON.parse(readFileSync(join(EVERYDAY, `${name}.json`), "utf8")) as { corpora: Corpus[] }).corpora;

for (const name of ["english", "languages"]) {
  test(`no figure of the everyday data in ${name} has fallen`, async () => {
    await using served = await startClient();
    const target = { client: served.cairn, vectorsMade: () => makeVectors(served.server.cairn), clock: systemClock };
    const corpora = withUnrelated(corporaOf(name));
    const answers: Answer[] = [];
    for (const [number, corpus] of corpora.entries()) {
      const haystack = plain(new Part(corpus), number);
      const trial = new Trial(target, `user-${number}`, "memories");
      await trial.store(haystack);
      for (const [question, asked] of haystack.questions.entries())
        answers.push({ haystack: number, question, language: haystack.language, ...(await trial.ask(asked, RESULTS)) });
    }
    expect(declines(expected[name]!, expectationOf(evaluated(corpora, answers)))).toEqual([]);
  });
}

/** Plain memories, and questions as they come to mind, with the number of the memory that answers. */
const MEMORIES = [
  "Lives in Lisbon with two dogs",
  "Is allergic to peanuts",
  "Works night shifts as a nurse",
  "Prefers e-mail to phone calls",
  "Her birthday is on 14 March",
  "Drives an old Renault Clio",
  "Is saving for a trip to Japan in autumn",
  "Speaks Portuguese and a little German",
  "Plays the cello in an amateur orchestra",
  "Her son Tom starts school in September",
  "Cancelled her gym membership in January",
  "Takes tablets against migraine",
];
const QUESTIONS: [string, number][] = [
  ["Does the user have any pets?", 0],
  ["What foods should she avoid?", 1],
  ["What does she do for a living?", 2],
  ["How should we get in touch with her?", 3],
  ["When was she born?", 4],
  ["What car does she have?", 5],
  ["What are her travel plans?", 6],
  ["Which languages can she talk in?", 7],
  ["Is she musical?", 8],
  ["Does she have children?", 9],
  ["Where is her home?", 0],
  ["Is she on any medication?", 11],
  ["Does she still work out?", 10],
  ["What is she putting money aside for?", 6],
  ["Would she like a snack with nuts?", 1],
];

test("at least twelve of fifteen everyday questions find the memory that answers them at the default threshold", async () => {
  await using cairn = await startCairn();
  const { id } = await cairn.createSession();
  for (const content of MEMORIES) await cairn.addMemory(id, content);
  const found = await Promise.all(
    QUESTIONS.map(async ([query, answer]) => {
      const { data } = await cairn.search(query, { session_id: id });
      return (data as { content: string }[]).some(({ content }) => content === MEMORIES[answer]);
    }),
  );
  expect(found.filter(Boolean).length).toBeGreaterThanOrEqual(12);
});

test("a decline of a total, a category or a language is named, and one within the margins is not", () => {
  const before: Expectation = {
    totals: { first: 70, recallAt5: 88, meanReciprocalRank: 79, right: 76 },
    unrelatedAnswered: 20,
    first: { paraphrase: 130, "language de": 20 },
  };
  const within = {
    ...before,
    totals: { ...before.totals, first: 69.5 },
    unrelatedAnswered: 20.5,
    first: { paraphrase: 128, "language de": 18 },
  };
  expect(declines(before, within)).toEqual([]);
  const worse = {
    ...before,
    totals: { ...before.totals, right: 75.4 },
    unrelatedAnswered: 20.6,
    first: { paraphrase: 127, "language de": 20 },
  };
  expect(declines(before, worse)).toEqual([
    "right fell from 76 to 75.4 %",
    "paraphrase: the first result is right for 127 questions instead of 130",
    "20.6 % instead of 20 % of questions about something else get an answer",
  ]);
});
