import { describe, expect, test } from "bun:test";
import { heapStats } from "bun:jsc";
import * as fc from "fast-check";
import { Splitter } from "../../../../src/embeddings/words/splitter.ts";
import { hashAfter, TokenCache } from "../../../../src/embeddings/words/token-cache.ts";
import { syllables } from "../../../support/flood.ts";
import { ratioOf, shortest } from "../../../support/timing.ts";

const splitter = new Splitter();
const termsOf = (text: string) => new Set(splitter.memory(text).terms);
const asked = (text: string) => new Set(splitter.query(text).terms);

describe("a query has all its words in a memory that writes them otherwise:", () => {
  const cases: { name: string; query: string; memory: string }[] = [
    { name: "upper and lower case", query: "LISBON", memory: "a week in Lisbon" },
    { name: "accents", query: "cafe creme", memory: "Café crème, s'il vous plaît" },
    { name: "letters of another width", query: "ABC 12", memory: "ＡＢＣ　１２" },
    { name: "ligatures and sharp s", query: "strasse oeuvre", memory: "Straße, œuvre" },
    { name: "plurals and other endings", query: "run dog", memory: "dogs running" },
    { name: "irregular forms", query: "go to the mice", memory: "the mouse went" },
    { name: "possessives", query: "Caroline", memory: "Caroline’s sister" },
    { name: "typographic apostrophes", query: "don't worry", memory: "worry" },
    { name: "ISO dates", query: "May 7, 2024", memory: "due 2024-05-07" },
    { name: "ISO times", query: "June 3, 2024", memory: "at 2024-06-03T10:15:00Z" },
    { name: "dotted dates", query: "2024-05-07", memory: "am 7.5.2024" },
    { name: "American dates", query: "7 May 2024", memory: "5/7/2024" },
    { name: "dates that can only be day and month", query: "25 December 2024", memory: "25/12/2024" },
    { name: "short months", query: "3 Sept", memory: "September 3rd" },
    { name: "short days", query: "Tue", memory: "every Tuesday" },
    { name: "number words", query: "seven cats", memory: "7 cats" },
    { name: "ordinals", query: "the 21st", memory: "21 days" },
    { name: "thousands", query: "1250 euros", memory: "1,250 euros" },
    { name: "whole amounts", query: "$40", memory: "$40.00" },
    { name: "clock times", query: "7:30", memory: "dinner at 19:30" },
    { name: "ids with and without signs", query: "ord4471", memory: "order ORD-4471" },
    { name: "spaced out ids", query: "ORD 4471", memory: "ORD-4471" },
    { name: "versions", query: "v2.3.1", memory: "since v2.3.1 it works" },
    { name: "addresses", query: "anna@example.org", memory: "write to anna@example.org." },
    { name: "camel case by its parts", query: "user name", memory: "getUserName()" },
    { name: "snake case by its parts", query: "user name", memory: "get_user_name()" },
    { name: "snake case as camel case", query: "getUserName", memory: "get_user_name()" },
    { name: "camel case as snake case", query: "get_user_name", memory: "getUserName()" },
    { name: "file names", query: "main.ts", memory: "in src/main.ts" },
    { name: "hyphens in words", query: "email", memory: "an e-mail" },
    { name: "short forms of the trade", query: "auth db", memory: "authentication database" },
    { name: "one Chinese character", query: "猫", memory: "我喜欢猫" },
    { name: "a Chinese word", query: "上海", memory: "下周在上海开会" },
    { name: "katakana with voicing marks", query: "ベッド", memory: "新しいベッドです" },
    { name: "half width katakana", query: "ﾍﾞｯﾄﾞ", memory: "ベッド" },
    { name: "long vowel marks", query: "コーヒー", memory: "コーヒーを飲む" },
    { name: "Korean with a particle", query: "고양이", memory: "고양이가 좋아요" },
    { name: "Thai", query: "เชียงใหม่", memory: "ไปเชียงใหม่กัน" },
    { name: "Russian cases", query: "собаку", memory: "большая собака" },
    { name: "ё", query: "ёлка", memory: "елка" },
    { name: "the Arabic article", query: "قهوة", memory: "القهوة" },
    { name: "Arabic vowel points", query: "كتب", memory: "كَتَبَ" },
    { name: "Greek final sigma", query: "ΘΑΛΑΣΣΑΣ", memory: "θάλασσας" },
    { name: "Hindi vowel signs", query: "हिन्दी", memory: "मैं हिन्दी सीखता हूँ" },
  ];
  for (const { name, query, memory } of cases) {
    test(name, () => {
      const wanted = asked(query);
      expect(wanted.size).toBeGreaterThan(0);
      expect(wanted.difference(termsOf(memory))).toEqual(new Set());
    });
  }
});

describe("a memory does not have all the words of a near miss:", () => {
  const cases: { name: string; query: string; memory: string }[] = [
    { name: "ids one digit apart", query: "ORD-4472", memory: "ORD-4471" },
    { name: "versions of the same numbers", query: "3.2.1", memory: "1.2.3" },
    { name: "decimals of the same digits", query: "3.5 km", memory: "5.3 km" },
    { name: "another day of the month", query: "2024-05-07", memory: "2024-05-08" },
    { name: "impossible dates", query: "May 45", memory: "45.5.2024" },
    { name: "may as a verb", query: "May 2024", memory: "you may come in 2024" },
    { name: "numbers and words of the same digits", query: "12", memory: "a12" },
    { name: "long names with the same beginning", query: "a".repeat(41), memory: "a".repeat(42) },
    { name: "Chinese characters in another order", query: "海上", memory: "上海" },
  ];
  for (const { name, query, memory } of cases) {
    test(name, () => {
      expect(asked(query).difference(termsOf(memory)).size).toBeGreaterThan(0);
    });
  }
});

test("stop words are left out beside other words and kept where there is nothing else", () => {
  expect(termsOf("is it in the kitchen").size).toBe(1);
  expect(termsOf("to be or not to be").size).toBe(4);
});

test("a word that occurs twice is the same term", () => {
  const [first, second, other] = splitter.memory("tea, tea and coffee").terms;
  expect([first === second, first === other]).toEqual([true, false]);
});

test("the fingerprint tells apart order, repetition and stop words, and not case or punctuation", () => {
  const of = (text: string) => splitter.memory(text).fingerprint;
  expect(of("Dog bites man!")).toBe(of("dog bites man"));
  for (const other of ["man bites dog", "dog bites man man", "the dog bites man", "dog bites"])
    expect(of(other)).not.toBe(of("dog bites man"));
  expect(of(" \n")).toBe(0);
  // Where there are no words, signs take their place.
  expect(of("?!")).not.toBe(of("!?"));
});

test("a memory and a query have the same fingerprint for the same text", () => {
  for (const text of ["call getUserName at 9:30", "2024-05-07", "我喜欢猫", "猫", "the", "ORD-4471", "don't"]) {
    expect(splitter.memory(text).fingerprint).toBe(splitter.query(text).fingerprint);
  }
});

test("what was split before does not change how a text is split, not even when the cache is full", () => {
  const { terms } = splitter.memory("tea at Zbigniew's on 2024-05-07");
  for (let round = 0; round < 10; round++) splitter.memory(Array.from({ length: 4000 }, (_, i) => `word${round}x${i}`).join(" "));
  expect(splitter.memory("tea at Zbigniew's on 2024-05-07").terms).toEqual(terms);
});

test("words are forgotten after a while, however many there are", () => {
  const held = () => {
    Bun.gc(true);
    return heapStats().heapSize;
  };
  const before = held();
  for (let round = 0; round < 50; round++) splitter.query(Array.from({ length: 8_000 }, (_, i) => `w${round}x${i}`).join(" "));
  // All of them would take 80 MB.
  expect(held() - before).toBeLessThan(20_000_000);
});

test("a number in groups is one term, as far as anyone writes numbers", () => {
  const grouped = (groups: number) => `1${",234".repeat(groups)}`;
  for (const groups of [1, 2, 8]) {
    const text = grouped(groups);
    for (const around of [`${text} euros`, `(${text}.50)`, `${text}.`]) {
      expect(splitter.memory(around).terms[0]).toBe(splitter.query(around.replaceAll(",", "")).terms[0]);
    }
  }
  expect(splitter.memory("1,234,").terms.length).toBe(2);
  expect(splitter.memory("1.5..2").terms).toEqual(splitter.memory("1 5 2").terms);
});

test("a text is not kept in memory for the words that were new in it", () => {
  const held = () => {
    Bun.gc(true);
    return heapStats().extraMemorySize;
  };
  const before = held();
  for (const letter of ["x", "ж"]) {
    for (let i = 0; i < 100; i++)
      splitter.query(`${"tea or coffee ".repeat(4_000)} ${letter.repeat(20)}${i} ${letter.repeat(50_000)}${i} end`);
  }
  // All the texts together have 30 MB.
  expect(held() - before).toBeLessThan(3_000_000);
});

describe("a text 64 times as long takes about 64 times as long, not the square of it:", () => {
  const cases: Record<string, string> = {
    "groups of digits that are no number": "111,",
    "groups of digits and points": "1,111.1..",
    "groups of digits in other forms": "⑪🄂",
    "decimals that are none": "1.1..",
    "longer ones": "11.111...",
    "clock times that are none": "12:34",
    "dates that are none": "2024-01-011",
  };
  for (const [name, unit] of Object.entries(cases)) {
    test(name, () => {
      // With a letter that has to be folded, so that all are.
      const text = (length: number) => `é ${unit.repeat(Math.ceil(length / unit.length))}`;
      const [short, long] = [text(1_250), text(80_000)];
      shortest(() => splitter.memory(short));
      // The square is 4,096 times as long.
      expect(shortest(() => splitter.memory(long)) / shortest(() => splitter.memory(short))).toBeLessThan(1_000);
    });
  }
});

describe("ten thousand characters are split about as quickly, whatever they are:", () => {
  // Names that no text had before, each a term of its own, as in plain text of another language.
  let name = 0;
  const plain = () => Array.from({ length: 1_430 }, () => `k${(++name).toString(36).padStart(5, "a")}`).join(" ");

  const repeated = (text: string) => text.repeat(Math.ceil(10_000 / text.length)).slice(0, 10_000);
  const cases: Record<string, string> = {
    NUL: repeated("\0"),
    "lone surrogates": repeated("\ud800"),
    "reversed surrogates": repeated("\udc00\ud800"),
    emoji: repeated("😀"),
    "right to left": repeated("\u202eאבג "),
    "one long word": repeated("a"),
    "combining marks": `a${repeated("\u0301")}`,
    "combining marks in the wrong order": `a${repeated("\u0301\u0316")}`,
    "a ligature that unfolds": repeated("\ufdfa"),
    digits: repeated("1"),
    "digits and dots": repeated("1."),
    "digits and hyphens": repeated("1-"),
    underscores: repeated("a_"),
    humps: repeated("aB"),
    apostrophes: repeated("a'"),
    "clock times": repeated("1:23 "),
    "grouped numbers": repeated("1,234,567,"),
    "words with many endings": repeated("relationalizationfulnesses "),
  };
  for (const [name, text] of Object.entries(cases)) {
    test(name, () => {
      expect(
        ratioOf(
          () => splitter.memory(text),
          () => splitter.memory(plain()),
          { bound: 5 },
        ),
      ).toBeLessThan(5);
    });
  }

  test("Chinese characters, all different, beside Korean syllables: nearly each begins a term", () => {
    const chinese = Array.from({ length: 10_000 }, (_, i) => String.fromCharCode(0x4e00 + ((i * 7919) % 20_000))).join("");
    const ratio = ratioOf(
      () => splitter.memory(chinese),
      () => splitter.memory(syllables(10_000, ++name)),
      { bound: 5 },
    );
    expect(ratio).toBeLessThan(5);
  });
});

test("words that are found in the table of the cache are the terms that they are without it", () => {
  const word = fc.constantFrom(
    "may",
    "May",
    "it's",
    "getUserName",
    "BA-2490",
    "e-mail",
    "12.5",
    "7:30",
    "café",
    "x",
    "the",
    "🗝️",
    ". ",
    "don't",
    "may 7",
  );
  const text = fc.array(fc.oneof(word, fc.string({ unit: "grapheme-ascii", maxLength: 24 }), fc.string({ maxLength: 6 })), {
    maxLength: 30,
  });
  // One that is told of each term takes the other way.
  const split = (joined: string) => [splitter.memory(joined), splitter.memory(joined, () => undefined)] as const;
  const check = fc.property(text, fc.constantFrom(" ", ""), (parts, between) => {
    const [found, other] = split(parts.join(between));
    expect(found).toEqual(other);
  });
  fc.assert(check, { numRuns: 2_000 });
});

test("a cache that was filled with other words is emptied, and knows words as before", () => {
  const words = Array.from({ length: 40_000 }, (_, i) => `w${i.toString(36)}`).join(" ");
  const before = splitter.memory(`${words} lighthouse`);
  expect(splitter.memory(`${words} lighthouse`)).toEqual(before);
  expect(before).toEqual(splitter.memory(`${words} lighthouse`, () => undefined));
});

test("a word is known once it was seen, and after it is forgotten no more", () => {
  const made: string[] = [];
  const cache = new TokenCache((word) => {
    made.push(word);
    return { term: word.length, hash: 7, isStopWord: false };
  });
  const find = (word: string) => cache.find(word, 0, word.length, Array.from(Buffer.from(word)).reduce(hashAfter, 0));
  for (const word of ["tea", "tea", "ferry", "tea"]) find(word);
  expect({ made, term: cache.term }).toEqual({ made: ["tea", "ferry"], term: 3 });
  cache.clear();
  find("tea");
  expect(made).toEqual(["tea", "ferry", "tea"]);
});
