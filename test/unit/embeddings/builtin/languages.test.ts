import { expect, test } from "bun:test";
import sentences from "../../../../scripts/encoder/sentences.json";
import { openEncoder } from "../../../../src/embeddings/builtin/encoder.ts";
import { centred, languageOf, LANGUAGES } from "../../../../src/embeddings/builtin/languages.ts";

const encoder = openEncoder();
const encoded = new Map<string, Float32Array>();

function encode(text: string): Float32Array {
  const vector = encoded.get(text) ?? encoder.encode(text, "query")!;
  encoded.set(text, vector);
  return vector;
}

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

test("every language with a mean has sentences that it is made of", () => {
  expect(Object.keys(sentences).toSorted()).toEqual([...LANGUAGES].toSorted());
});

test("the language of most memories is known by its vector", () => {
  const known = LANGUAGES.flatMap((language) =>
    sentences[language as keyof typeof sentences].passages.map((text) => LANGUAGES[languageOf(encode(text), "passage")] === language),
  );
  expect(known.filter(Boolean).length / known.length).toBeGreaterThan(0.8);
});

test("a centred vector has length 1, and the one it was made of is as it was", () => {
  const vector = encode("Anna is allergic to peanuts");
  const before = Float32Array.from(vector);
  const made = centred(vector, "passage");
  expect(dot(made, made)).toBeCloseTo(1, 5);
  expect(vector).toEqual(before);
});

/** Cosines of what answers a question and of what does not, questions in one language, memories in another. */
function cosines(asked: string, told: string): { answers: number[]; others: number[] } {
  const of = (language: string) => sentences[language as keyof typeof sentences];
  const questions = of(asked).queries.map((text) => centred(encode(text), "query"));
  const memories = of(told).passages.map((text) => centred(encode(text), "passage"));
  const all = questions.map((question) => memories.map((memory) => dot(question, memory)));
  return {
    answers: all.map((row, i) => row[i]!),
    others: all.flatMap((row, i) => row.filter((_, j) => j !== i)),
  };
}

test("what has nothing to do with a question is as far from it in its own language as in another", () => {
  const own = LANGUAGES.map((language) => mean(cosines(language, language).others));
  const other = LANGUAGES.map((language, i) => mean(cosines(language, LANGUAGES[(i + 1) % LANGUAGES.length]!).others));
  expect(Math.abs(mean(own) - mean(other))).toBeLessThan(0.05);
  expect(Math.max(...own) - Math.min(...own)).toBeLessThan(0.12);
});

test("what answers a question is far nearer to it than the rest, in every language", () => {
  const near = LANGUAGES.map((language) => {
    const { answers, others } = cosines(language, language);
    return { language, isNear: mean(answers) > mean(others) + 0.15 };
  });
  expect(near.filter(({ isNear }) => !isNear)).toEqual([]);
});
