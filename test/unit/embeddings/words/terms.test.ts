import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { FINGERPRINT, SYMBOL } from "../../../../src/embeddings/embedder.ts";
import { memoryTerms, queryTerms, spellings, TERMS_VERSION } from "../../../../src/embeddings/words/terms.ts";

const asked = (text: string) => queryTerms(text, () => 1);

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.string({ unit: "grapheme", maxLength: 200 }),
  fc
    .array(
      fc.constantFrom("tea", "user", "Zbigniew", "2024-05-07", "getUserName", "the", "猫", "é", "'", "-", ".", "!", "🍕", "\ud800", " "),
      {
        maxLength: 80,
      },
    )
    .map((parts) => parts.join("")),
);

test("every text has ascending terms, and the same fingerprint as a memory and as a query", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const terms = memoryTerms(text);
      const { ids, weights, fingerprint } = asked(text);
      expect(terms).toEqual(Uint32Array.from(new Set(terms)).sort());
      expect(ids).toEqual(Uint32Array.from(new Set(ids)).sort());
      expect([ids.length === 0, weights.length]).toEqual([terms.length === 0, ids.length]);
      expect(terms.at(-1) ?? 0).toBe(fingerprint);
    }),
  );
});

test("ids say their kind: words, symbols, and the fingerprint last", () => {
  const [tea, name, symbol, fingerprint] = memoryTerms("tea Zbigniew 🍕");
  for (const word of [tea, name]) expect(word).toBeLessThan(SYMBOL);
  expect(symbol).toBeGreaterThanOrEqual(SYMBOL);
  expect(symbol).toBeLessThan(FINGERPRINT);
  expect(fingerprint).toBeGreaterThanOrEqual(FINGERPRINT);
});

test("a text without a letter, digit or symbol asks for nothing", () => {
  for (const text of ["", " ", "\0", "\ud800", "\n\t", "\ufe0f", "\u200d"]) {
    expect(memoryTerms(text).length).toBe(0);
    expect(asked(text).ids.length).toBe(0);
  }
});

test("a text's terms stay what they were: a change needs a new version", () => {
  const texts = [
    "The user prefers tea to coffee.",
    "Caroline's flight BA-2490 leaves on 2024-05-07 at 9:30",
    "我喜欢猫 кошка Straße",
    "",
    "We ❤️ pizza 🍕!!!",
    "🎉?",
  ];
  const digest = new Bun.CryptoHasher("sha256");
  for (const text of texts) digest.update(memoryTerms(text)).update(asked(text).ids);
  expect([TERMS_VERSION, digest.digest("hex").slice(0, 16)]).toEqual(["terms-3", "f38a4bb545af2429"]);
});

test("words weigh what they weigh as the query writes them", () => {
  const weights: Record<string, number> = { "Caroline's": 0.9, "7:30": 0.1, "e-mail": 0.5 };
  const { ids, weights: found } = queryTerms("Caroline's e-mail at 7:30", (word) => weights[word] ?? 0.25);
  const ofTerm = (text: string) => found[ids.indexOf(memoryTerms(text)[0]!)];
  expect([ofTerm("caroline"), ofTerm("7:30"), ofTerm("mail")]).toEqual([0.9, 0.1, 0.25]);
});

test("terms are spelled as the text spells them, in its order", () => {
  const [id] = asked("Élodie").ids;
  expect(spellings("Then (Élodie's) train left", "memory").get(id!)).toBe("Élodie's");
  expect(Array.from(spellings("train to Élodie by Train", "query"), ([, spelling]) => spelling)).toEqual(["train", "Élodie"]);
});

test("a run without spaces is spelled pair by pair, however long", () => {
  const [id] = asked("ねね").ids;
  for (const length of [2, 9, 80, 10_000]) expect([...spellings("ね".repeat(length), "memory")]).toEqual([[id!, "ねね"]]);
});

test("a query of ten thousand words is prepared", () => {
  expect(asked(Array.from({ length: 10_000 }, (_, i) => `w${i}`).join(" ")).ids.length).toBe(10_000);
});
