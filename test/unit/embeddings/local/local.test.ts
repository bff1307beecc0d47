import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { FINGERPRINT, UNKNOWN_WORD } from "../../../../src/embeddings/embedder.ts";
import { localEmbedder, memoryTerms, queryTerms, spellings } from "../../../../src/embeddings/local/local.ts";

const embedder = localEmbedder;
const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const cosine = (query: string, memory: string) => dot(embedder.embedQuery(query).vector, embedder.embedMemory(memory).vector);

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

test("every text has a vector of unit length and ascending terms", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const { vector, terms } = embedder.embedMemory(text);
      expect(vector.length).toBe(1536);
      expect(dot(vector, vector)).toBeCloseTo(1, 5);
      expect(terms).toEqual(Uint32Array.from(new Set(terms)).sort());
      const query = embedder.embedQuery(text);
      // A query that says nothing is equally far from everything.
      expect(dot(query.vector, query.vector)).toBeCloseTo(terms.length === 0 ? 0 : 1, 5);
      expect(query.lexical.size === 0).toBe(terms.length === 0);
      expect(terms.at(-1) ?? 0).toBe(query.lexical.fingerprint);
    }),
  );
});

test("ids say their kind: rows of the table, unknown words, and the fingerprint last", () => {
  const [tea, name, fingerprint] = embedder.embedMemory("tea Zbigniew").terms;
  expect(tea).toBeLessThan(UNKNOWN_WORD);
  expect(name).toBeGreaterThanOrEqual(UNKNOWN_WORD);
  expect(name).toBeLessThan(FINGERPRINT);
  expect(fingerprint).toBeGreaterThanOrEqual(FINGERPRINT);
});

test("a text without a letter, digit or sign is near to no query and asks for nothing", () => {
  for (const text of ["", " ", "\0", "\ud800", "\n\t", "\ufe0f", "\u200d"]) {
    expect(embedder.embedMemory(text).terms.length).toBe(0);
    expect(embedder.embedQuery(text).lexical.size).toBe(0);
    expect(cosine("tea", text)).toBe(0);
  }
});

test("signs in a memory change no cosine with a query of words, but for a place that two share", () => {
  const words = "We had pizza on Friday, and Caroline paid";
  for (const signs of ["!", "!!!", " 🍕", " 🍕🍕 ❤️ €", "."]) {
    for (const query of ["pizza on Friday", "Who paid?", "Caroline", "🎉 pizza 🎉"]) {
      expect(cosine(query, words + signs)).toBeCloseTo(cosine(query, words), 6);
      expect(embedder.embedQuery(query + signs).vector).toEqual(embedder.embedQuery(query).vector);
    }
  }
});

test("a query of signs is near to a memory that has them, alone or among words, and far from others", () => {
  for (const sign of ["🍕", "!!!", "€", "❤️", "👍🏽", "🇩🇪"]) {
    expect(cosine(sign, sign)).toBeGreaterThan(0.29);
    expect(cosine(sign, `We had pizza on Friday${sign} and Caroline paid.`)).toBeGreaterThan(0.3);
    expect(cosine(sign, "We had pizza on Friday, and Caroline paid for it! 🎉")).toBeLessThan(0.1);
  }
});

test("texts about the same thing are nearer than others, with and without a word in common", () => {
  expect(cosine("When does her physician have time?", "The doctor sees patients on Mondays.")).toBeGreaterThan(0.1);
  expect(cosine("When does her physician have time?", "The car needs new tyres.")).toBeLessThan(0.06);
  expect(cosine("Zbigniew", "Zbigniew prefers tea")).toBeGreaterThan(0.2);
  expect(cosine("Zbigniew", "Ludmila prefers tea")).toBeLessThan(0.1);
});

test("a long memory comes less near to one word than a short one", () => {
  const long = `tea ${Array.from({ length: 200 }, (_, i) => `w${i}`).join(" ")}`;
  expect(cosine("tea", long)).toBeLessThan(cosine("tea", "tea with milk"));
});

test("one common word is nearest to itself among memories that have it", () => {
  for (const other of ["user likes tea", "user and agent", "the user said hello", "a new user"]) {
    expect(cosine("user", "user")).toBeGreaterThan(cosine("user", other));
  }
});

test("a text's vector and terms stay what they were: a change needs a new version", () => {
  const texts = [
    "The user prefers tea to coffee.",
    "Caroline's flight BA-2490 leaves on 2024-05-07 at 9:30",
    "我喜欢猫 кошка Straße",
    "",
    "We ❤️ pizza 🍕!!!",
    "🎉?",
  ];
  const digest = new Bun.CryptoHasher("sha256");
  for (const text of texts) {
    const { vector, terms } = embedder.embedMemory(text);
    digest.update(vector).update(terms).update(embedder.embedQuery(text).vector);
  }
  expect([embedder.version, digest.digest("hex").slice(0, 16)]).toEqual(["local-2", "f7787e6958055fd9"]);
});

test("embedding one text leaves nothing behind in the next", () => {
  const first = embedder.embedMemory("tea").vector.slice();
  embedder.embedMemory("a wholly different text about trains in Norway");
  embedder.embedQuery("and another one");
  expect(embedder.embedMemory("tea").vector).toEqual(first);
});

test("other providers get the same terms as the built-in one", () => {
  const text = "Order ORD-4471 for Zoë";
  expect(memoryTerms(text)).toEqual(embedder.embedMemory(text).terms);
  expect(queryTerms(text)).toEqual(embedder.embedQuery(text).lexical);
});

test("terms are spelled as the text spells them", () => {
  const [id] = embedder.embedQuery("Élodie").lexical.ids;
  expect(spellings("Then (Élodie's) train left", "memory").get(id!)).toBe("Élodie's");
});

test("a run without spaces is spelled pair by pair, however long", () => {
  const [id] = embedder.embedQuery("ねね").lexical.ids;
  for (const length of [2, 9, 80, 10_000]) expect([...spellings("ね".repeat(length), "memory")]).toEqual([[id!, "ねね"]]);
});

test("a query of ten thousand words is prepared and the table of its answers stays within bounds", () => {
  const { lexical } = embedder.embedQuery(Array.from({ length: 10_000 }, (_, i) => `w${i}`).join(" "));
  expect(lexical.size).toBe(10_000);
  expect(lexical.keys.length).toBeLessThanOrEqual(6 * lexical.size);
});

// Words whose two places were the same one, with opposite signs, cancelled themselves out: one in 2,500 had a vector of NaN.
test("every word alone has a vector of length 1, as a memory and as a query", () => {
  const words = ["竱", "ᒋ𐖌", ...Array.from({ length: 15_000 }, (_, i) => `word${i}`)];
  const isUnit = ({ vector }: { vector: Float32Array }) => Math.abs(dot(vector, vector) - 1) < 1e-5;
  expect(words.filter((word) => !isUnit(embedder.embedMemory(word)) || !isUnit(embedder.embedQuery(word)))).toEqual([]);
});
