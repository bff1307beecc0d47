import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { passagesOf } from "../../../../src/embeddings/builtin/passages.ts";
import { PASSAGES_MAX } from "../../../../src/embeddings/embedder.ts";

const textsOf = (text: string) => passagesOf(text).map(({ from, to }) => text.slice(from, to));
const wordsIn = (text: string) => text.split(/\s+/).filter((word) => word !== "").length;
const words = (count: number) => Array.from({ length: count }, (_, i) => `w${i}`).join(" ");

test("a text of up to a hundred words is one passage, all of it", () => {
  for (const text of ["", " ", "x", "Tea. ", words(100), "漢".repeat(200), `${" ".repeat(500)}tea`]) expect(textsOf(text)).toEqual([text]);
  expect(textsOf(words(101)).length).toBe(3);
  expect(textsOf("漢".repeat(202)).length).toBe(3);
});

test("a passage has 30 to 40 words and ends with a sentence, and the next begins with one of its last", () => {
  const sentences = Array.from({ length: 30 }, (_, i) => `This is the sentence that has the number n${i} in it${i % 3 === 0 ? "!" : "."}`);
  const passages = textsOf(sentences.join(" "));
  expect(passages.slice(0, 3)).toEqual([sentences.slice(0, 3).join(" "), sentences.slice(2, 5).join(" "), sentences.slice(4, 7).join(" ")]);
  expect(passages.at(-1)).toEndWith(sentences.at(-1)!);
});

test("without sentences a passage has 40 words, of which it has 8 in common with the next", () => {
  const passages = textsOf(words(200)).map((passage) => passage.split(" "));
  expect(passages.slice(0, 3).map((passage) => [passage[0], passage.at(-1), passage.length])).toEqual([
    ["w0", "w39", 40],
    ["w32", "w71", 40],
    ["w64", "w103", 40],
  ]);
});

test("a sentence ends at a full stop of any script, at the end of a line, and behind closing quotes", () => {
  const cases = [
    "Es regnet. ",
    "Is it raining? ",
    "“It is raining.” ",
    "昨日は雨が降りました。",
    "「雨でした。」",
    "बारिश हुई। ",
    "هل تمطر؟ ",
    "A line\n",
  ];
  for (const sentence of cases) {
    const text = sentence.repeat(600 / sentence.length + 200);
    const begins = passagesOf(text).map(({ from }) => from % sentence.length);
    expect(begins).toEqual(begins.map(() => 0));
  }
});

test("all of a text is in some passage, they overlap, are at most 64, and none begins or ends within a character", () => {
  const piece = fc.oneof(
    fc.constantFrom("tea ", "rain. ", "雨", "が降った。", "ฝนตก", "😀", "e\u0301", "\n", "x".repeat(300), " ", "🏳️‍🌈", "a b c d e "),
    fc.string({ unit: "binary", maxLength: 20 }),
  );
  const text = fc.array(fc.tuple(piece, fc.integer({ min: 1, max: 200 })), { maxLength: 40 });
  fc.assert(
    fc.property(text, (parts) => {
      const whole = parts
        .map(([one, times]) => one.repeat(times))
        .join("")
        .slice(0, 20_000);
      const passages = passagesOf(whole);
      expect(passages.length).toBeWithin(1, PASSAGES_MAX + 1);
      for (const [i, { from, to }] of passages.entries()) {
        expect(to).toBeGreaterThanOrEqual(from);
        if (i > 0) {
          expect(from).toBeGreaterThan(passages[i - 1]!.from);
          expect(whole.slice(passages[i - 1]!.to, Math.max(from, passages[i - 1]!.to)).trim()).toBe("");
        }
        for (const at of [from, to]) if (at > 0 && at < whole.length) expect(isWithinPair(whole, at)).toBe(false);
      }
      expect(whole.slice(0, passages[0]!.from).trim()).toBe("");
      expect(whole.slice(passages.at(-1)!.to).trim()).toBe("");
    }),
  );
});

test("no text of 10,000 characters takes more than 64 passages: they are longer instead", () => {
  for (const one of ["a ", "漢", "to be or not to be ", "ก"]) {
    const text = one.repeat(10_000 / one.length);
    const passages = passagesOf(text);
    expect(passages.length).toBeWithin(30, PASSAGES_MAX + 1);
    expect(text.slice(passages.at(-1)!.to).trim()).toBe("");
  }
  expect(wordsIn(textsOf("a ".repeat(5_000))[0]!)).toBeGreaterThan(80);
});

function isWithinPair(text: string, at: number): boolean {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}
