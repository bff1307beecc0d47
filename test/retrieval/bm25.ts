/**
 * BM25 over stems without stop words: what any search without meaning would do, as the mark to be above.
 *
 * k1 and b are the values of Anserini's published baselines. It needs all memories at once to
 * know how rare a word is among them, which the product's score does without.
 *
 * @module
 */
import { stemmer } from "stemmer";

const K1 = 0.9;
const B = 0.4;

const STOP_WORDS = new Set(
  `a an and are as at be but by can could did do does for from had has have he her him his how i in is it its me my no not of on or our
  she should so than that the their them then there these they this to was we were what when where which who whom whose why will
  with would you your s t`.split(/\s+/),
);

function stems(text: string): string[] {
  const words =
    text
      .normalize("NFKD")
      .replace(/\p{M}/gu, "")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return words.filter((word) => !STOP_WORDS.has(word)).flatMap((word) => (UNSPACED.test(word) ? pairs(word) : stemmer(word)));
}

/** Scripts without spaces between words, of which pairs of characters are compared. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/u;

function pairs(word: string): string[] {
  const characters = Array.from(word);
  return characters.length < 2 ? characters : characters.slice(1).map((second, i) => `${characters[i]}${second}`);
}

/** Scores every text for a query, in the texts' order. */
export function bm25(texts: readonly string[]): (query: string) => number[] {
  const documents = texts.map(stems);
  const meanLength = documents.reduce((sum, document) => sum + document.length, 0) / documents.length;
  const documentFrequency = new Map<string, number>();
  for (const document of documents)
    for (const stem of new Set(document)) documentFrequency.set(stem, (documentFrequency.get(stem) ?? 0) + 1);

  return (query) => {
    const asked = stems(query);
    return documents.map((document) => {
      let score = 0;
      for (const stem of asked) {
        const count = document.filter((other) => other === stem).length;
        const holders = documentFrequency.get(stem) ?? 0;
        const rarity = Math.log(1 + (documents.length - holders + 0.5) / (holders + 0.5));
        score += (rarity * count * (K1 + 1)) / (count + K1 * (1 - B + (B * document.length) / meanLength));
      }
      return score;
    });
  };
}
