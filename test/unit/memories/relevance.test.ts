import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type EmbeddedQuery, NO_COSINE, NO_VECTOR } from "../../../src/embeddings/embedder.ts";
import { WordEmbedder } from "../../../src/embeddings/builtin/builtin.ts";
import { embeddedMemory, embeddedQuery } from "../../support/meaning.ts";
import { BUILTIN_CALIBRATION, calibrated, type Calibration, WORDS_CALIBRATION } from "../../../src/embeddings/score.ts";
import { explainer, relevance } from "../../../src/memories/relevance.ts";
import { floodingSyllables, syllables } from "../../support/flood.ts";
import { ratioOf } from "../../support/timing.ts";

const embedder = { embedMemory: embeddedMemory, embedQuery: embeddedQuery };

function compare(query: string, memory: string, calibration?: Calibration) {
  const asked = embedder.embedQuery(query);
  const { vector, terms } = embedder.embedMemory(memory);
  const cosine = asked.vector.reduce((sum, value, i) => sum + value * vector[i]!, 0);
  return { score: relevance(asked, cosine, terms, calibration), reasons: explainer(asked, calibration)(cosine, terms, memory) };
}

/** The score with the provider `words`. */
function byWords(query: string, memory: string): number {
  const asked = { ...embedder.embedQuery(query), vector: NO_VECTOR };
  return relevance(asked, NO_COSINE, embedder.embedMemory(memory).terms, WORDS_CALIBRATION);
}

describe("a text scores exactly 1 for itself:", () => {
  const long = Array.from({ length: 400 }, (_, i) => `word${i}`).join(" ");
  for (const text of ["tea", "user", "the", "to be or not to be", "I like tea, tea, tea!", "ORD-4471", "猫", "我喜欢猫", "9:30", long]) {
    test(text.slice(0, 30), () => {
      expect(compare(text, text).score).toBe(1);
    });
  }
});

test("no other text scores 1, however alike", () => {
  expect(compare("dog bites man", "man bites dog").score).toBeLessThan(1);
  expect(compare("I like tea", "I do not like tea").score).toBeLessThan(1);
  expect(compare("tea", "tea tea").score).toBeLessThan(1);
});

test("every score is between 0 and 1", () => {
  const text = fc
    .array(fc.constantFrom("tea", "coffee", "cup", "user", "doctor", "Zoë", "2024-05-07", "猫", "the", "?"), { maxLength: 12 })
    .map((words) => words.join(" "));
  fc.assert(
    fc.property(text, text, fc.double({ min: -1, max: 1, noNaN: true }), (query, memory, cosine) => {
      const score = relevance(embedder.embedQuery(query), cosine, embedder.embedMemory(memory).terms);
      expect(score).toBeGreaterThanOrEqual(0);
      expect(score).toBeLessThanOrEqual(1);
    }),
  );
});

test("a greater cosine never scores less, up to the end of the scale", () => {
  const query = embedder.embedQuery("tea for the doctor");
  const { terms } = embedder.embedMemory("the physician drinks tea");
  const scores = Array.from({ length: 101 }, (_, i) => relevance(query, i / 100, terms));
  for (let i = 1; i < scores.length; i++) expect(scores[i]).toBeGreaterThan(scores[i - 1]!);
});

test("the covered share is that of the words that the memory has, found by trying every pair", () => {
  const words = ["tea", "coffee", "cup", "doctor", "physician", "nurse", "train", "car", "Zoë", "1912", "1913"];
  const some = fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(some, some, (query, memory) => {
      const asked = embedder.embedQuery(query.join(" "));
      const { terms } = embedder.embedMemory(memory.join(" "));
      const { lexical } = explainer(asked)(0, terms, memory.join(" "));
      expect(lexical).toBeCloseTo(slowCoverage(asked, terms), 4);
    }),
  );
});

/** Every term of the query against every term of the memory. */
function slowCoverage({ lexical: { ids, weights } }: EmbeddedQuery, terms: Uint32Array): number {
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.reduce((sum, weight, i) => sum + (terms.subarray(0, -1).includes(ids[i]!) ? weight : 0), 0) / all;
}

test("a text without a letter, digit or sign has no relevance, either way", () => {
  for (const [query, memory] of [
    ["", "tea"],
    ["tea", ""],
    [" ", " "],
    ["", ""],
  ] as const) {
    expect(compare(query, memory)).toEqual({ score: 0, reasons: { semantic: 0, lexical: 0, matches: [] } });
  }
});

test("a query of symbols finds by its symbols: an emoji, a run of one, the sign of a currency", () => {
  for (const sign of ["😀", "!!!", "€", "…", "❤️", "🇩🇪"]) {
    expect(byWords(sign, sign)).toBe(1);
    expect(byWords(sign, `That was great ${sign} We go again.`)).toBeGreaterThanOrEqual(0.7);
    expect(byWords(sign, "That was great, we go again 🎉")).toBeLessThan(0.3);
  }
  expect(byWords("!!!", "That was great!!!")).toBeGreaterThan(byWords("!!!", "That was great!"));
  expect(byWords("👍", "fine 👍🏽")).toBeGreaterThanOrEqual(0.7);
  expect(byWords("🇩🇪", "🇮🇹")).toBeLessThan(0.3);
  expect(compare("😀🎉", "so good 😀").reasons.matches).toEqual([{ word: "😀", matched_by: "word", share: expect.any(Number) }]);
});

test("symbols beside words, in the query or in the memory, change no score but by the vector", () => {
  const long = Array.from({ length: 100 }, (_, i) => `word${i}`).join(" ");
  for (const [query, memory] of [
    ["Which doctor does Caroline see?", "Caroline sees Dr. Webb, a doctor for skin."],
    ["pizza Friday", "We had pizza on Friday"],
    ["word7 word8", long],
  ] as const) {
    const scoreOf = (asked: string, stored: string) => relevance(embedder.embedQuery(asked), 0.3, embedder.embedMemory(stored).terms);
    const score = scoreOf(query, memory);
    for (const signs of ["!!!", " 🍕", " 😀🎉❤️", "€ $ % & ~ ^ | > <"]) {
      expect([scoreOf(query + signs, memory), scoreOf(query, memory + signs)]).toEqual([score, score]);
    }
  }
});

test("by words alone 0.7 parts what is about it from what is not", () => {
  const query = "Which doctor does Caroline see?";
  expect(byWords(query, "Caroline sees Dr. Webb, a doctor for skin.")).toBeGreaterThanOrEqual(0.7);
  expect(byWords(query, "Caroline likes long walks by the river.")).toBeLessThan(0.7);
  expect(byWords(query, "The printer is out of paper.")).toBeLessThan(0.3);
});

test("an id outweighs everything around it", () => {
  const right = byWords("What about ORD-4471?", "ORD-4471 was sent on Monday.");
  const wrong = byWords("What about ORD-4471?", "ORD-4472 was sent on Monday.");
  expect(right).toBeGreaterThan(0.9);
  expect(wrong).toBeLessThan(0.7);
});

test("a number is answered by itself alone", () => {
  expect(compare("1912", "It was built in 1913.").reasons.matches).toEqual([]);
});

test("the reasons name the query's words, what met them, and shares that add up to the lexical part", () => {
  const { reasons } = compare("When did Caroline's physician move to Zürich?", "Caroline's doctor moved to Zurich.");
  expect(reasons.matches.map(({ share, ...match }) => share > 0 && match)).toEqual([
    { word: "Caroline's", matched_by: "word" },
    { word: "move", matched_by: "word", matched_word: "moved" },
    { word: "Zürich", matched_by: "word", matched_word: "Zurich" },
  ]);
  expect(reasons.matches.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(reasons.lexical, 3);
});

test("the words of a query are spelled once, however many memories are explained", () => {
  const { vector, lexical } = embedder.embedQuery("tea for the doctor");
  let readings = 0;
  const watched = Object.defineProperty({ ...lexical }, "text", { get: () => (readings++, lexical.text) });
  const explain = explainer({ vector, lexical: watched });
  for (const memory of ["tea", "the doctor", "a cup of tea"]) {
    expect(explain(0, embedder.embedMemory(memory).terms, memory).matches.length).toBe(1);
  }
  expect(readings).toBe(1);
});

test("a provider's own calibration decides what its cosines mean", () => {
  const query = embedder.embedQuery("tea");
  const { terms } = embedder.embedMemory("a cup");
  const narrow: Calibration = { kind: "measured", lexicalShare: 0.2, cosineOfUnrelated: 0.7, cosineOfSame: 0.9, relevant: 0.5 };
  expect(relevance(query, 0.7, terms, narrow)).toBeLessThan(0.4);
  expect(relevance(query, 0.9, terms, narrow)).toBeGreaterThan(0.85);
});

test("with the built-in provider a query of common words shares less with a text that has them all than one of rare words", () => {
  const words = new WordEmbedder();
  const scores = ["people want things", "people want lighthouses", "keepers of lighthouses in Tromsø"].map((text) => {
    const query = { ...words.embedQuery(text), vector: new Float32Array(1) };
    return relevance(query, 0.1, words.embedMemory(`It is said: ${text}.`).terms, BUILTIN_CALIBRATION);
  });
  for (let i = 1; i < scores.length; i++) expect(scores[i]).toBeGreaterThan(scores[i - 1]! + 0.02);
});

test("the calibration keeps 0 and 1, rises, and shows the relevant mean as 0.7", () => {
  for (const relevant of [0.2, 0.35, 0.5, 0.65]) {
    expect(calibrated(0, relevant)).toBe(0);
    expect(calibrated(relevant, relevant)).toBeCloseTo(0.7, 12);
    expect(calibrated(1, relevant)).toBeCloseTo(1, 12);
  }
});

test("texts whose terms a public hash puts side by side take about as long as others, to embed and to compare", () => {
  const of = (text: string) => ({ text, query: embedder.embedQuery(text), terms: embedder.embedMemory(text).terms });
  const [plain, flood] = [of(syllables(9_990)), of(floodingSyllables(9_990))];
  for (const { terms } of [plain, flood]) expect(terms.length).toBeGreaterThan(8_000);
  const embed = ({ text }: typeof plain) => [embedder.embedMemory(text), embedder.embedQuery(text)];
  const score = ({ query, terms }: typeof plain) => relevance(query, 0.3, terms);
  // With all in one cluster of a table the first takes 20 times as long, the second 1,000 times.
  expect(
    ratioOf(
      () => embed(flood),
      () => embed(plain),
      { bound: 5 },
    ),
  ).toBeLessThan(5);
  expect(
    ratioOf(
      () => score(flood),
      () => score(plain),
      { bound: 5 },
    ),
  ).toBeLessThan(5);
});
