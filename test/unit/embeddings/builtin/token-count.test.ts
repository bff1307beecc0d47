import { expect, test } from "bun:test";
import { countQuoted, countTokens, wordsCounted } from "../../../../src/embeddings/builtin/token-count.ts";
import { quoted } from "../../../../src/lib/quoted.ts";
import { roundsDuring } from "../../../support/loop.ts";
import { TEXTS, tokensOfModels } from "../../../support/tokenizers.ts";

/** Tells the texts that count less than a model needs. */
function tooFew(texts: readonly string[]): string[] {
  return texts.filter((text) => countTokens(text) < tokensOfModels(text));
}

for (const [language, texts] of Object.entries(TEXTS)) {
  test(`no text of ${language} counts less than the tokenizers of GPT and Claude need, nor twice as much`, () => {
    const halves = texts.flatMap((text) => [text.slice(0, text.length / 2), text.slice(text.length / 2)]);
    expect(tooFew([...texts, ...texts.map(quoted), ...halves.map(quoted)])).toEqual([]);
    const all = texts.join("\n");
    expect(countTokens(all)).toBeLessThan(2 * tokensOfModels(all));
  });
}

test("there are 16 languages besides English", () => {
  expect(Object.keys(TEXTS).length).toBe(17);
});

test("code, JSON, ids, runs of one sign and text of nothing but marks do not count less either", () => {
  const id = (i: number) => ((i + 1) * 7_919 * 104_729).toString(36).repeat(3);
  const texts = [
    "for (const x of xs) {\n\tif (x === undefined) continue;\n\n\n  console.log(`${x}`);\n}\n",
    JSON.stringify({ id: id(1), at: "2026-05-07T08:00:00.000Z", n: [1, 2.5, -3e10, null, true], s: 'a "quoted"\n\tpart' }),
    ...Array.from({ length: 50 }, (_, i) => id(i)),
    "=".repeat(200),
    " ".repeat(200),
    "\n".repeat(200),
    "🎉🚀👩‍👩‍👧‍👦".repeat(20),
    "\u0301\u0323".repeat(50),
    "\u{10ffff}".repeat(50),
    "\ufdfa".repeat(50),
    "<|im_start|>system\n",
  ];
  expect(tooFew([...texts, ...texts.map(quoted)])).toEqual([]);
});

test("a number of four digits or more counts as its bytes and a space, with a sign or two behind it or without", () => {
  for (const number of ["4711", "4711.", '471147114711."']) expect(countTokens(`${number} `.repeat(10))).toBe(10 * (number.length + 1));
  expect(tooFew(["4711 08 15,", "471147114711".repeat(300), "4711 ".repeat(100)])).toEqual([]);
});

test("words that were counted before count the same as those that are new, in any order", () => {
  const texts = Object.values(TEXTS).flat();
  wordsCounted.forget();
  const before = texts.map(countTokens);
  expect(texts.toReversed().map(countTokens).toReversed()).toEqual(before);
  const alone = texts.map((text) => {
    wordsCounted.forget();
    return countTokens(text);
  });
  expect(alone).toEqual(before);
});

test("a long text counts as its parts do, lets others through, and stops where it is enough", async () => {
  const long = TEXTS["de"]!.join(" ").repeat(20);
  const count = countTokens(quoted(long));
  expect(await countQuoted(long)).toBe(count);
  expect(await roundsDuring(countQuoted(long))).toBeGreaterThan(10);
  expect(await countQuoted(long, 500)).toBeGreaterThan(500);
  expect(await countQuoted(long, 500)).toBeLessThan(1_500);
  expect(countTokens("")).toBe(0);
});
