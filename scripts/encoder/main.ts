/**
 * Makes the means of languages that vectors are centred by: `src/embeddings/builtin/languages.bin`.
 *
 *     bun scripts/encoder/main.ts
 *
 * From texts of the project's own: everyday memories and questions in 17 languages (`test/retrieval/everyday`), and twelve memories and
 * twelve questions that say the same in each of 36 (`sentences.json`), so that their means differ by the language alone.
 *
 * - The mean over languages is that of the everyday data, each of its languages counting once.
 * - The mean of a language is that mean, moved by as much as the language's sentences lie off those of all languages. It is averaged with
 *   the mean of the language's everyday data, where there are some; that of English is of its everyday data alone: 20 corpora.
 *
 * Everyday data that the means are made of are found better than others by a point or two.
 *
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type EncodedKind, openEncoder } from "../../src/embeddings/builtin/encoder.ts";
import { LANGUAGES } from "../../src/embeddings/builtin/languages.ts";
import type { Corpus } from "../evaluation/corpus.ts";
import { runScript } from "../failure.ts";
import sentences from "./sentences.json";

const ROOT = dirname(dirname(import.meta.dir));
const OUTPUT = join(ROOT, "src/embeddings/builtin/languages.bin");
const EVERYDAY = ["english", "languages"].map((name) => join(ROOT, `test/retrieval/everyday/${name}.json`));
const TEXTS = { query: "queries", passage: "passages" } as const;

const encoder = openEncoder();

function meanOfTexts(texts: readonly string[]): Float64Array {
  return meanOf(texts.flatMap((text) => encoder.encode(text, "query") ?? []));
}

function meanOf(vectors: readonly ArrayLike<number>[]): Float64Array {
  const sum = new Float64Array(encoder.dimension);
  for (const vector of vectors) for (let i = 0; i < sum.length; i++) sum[i]! += vector[i]!;
  return sum.map((value) => value / vectors.length);
}

/** By language: the mean of the everyday data. */
function everydayMeans(kind: EncodedKind): Map<string, Float64Array> {
  const corpora = EVERYDAY.flatMap((file) => (JSON.parse(readFileSync(file, "utf8")) as { corpora: Corpus[] }).corpora);
  const texts = Map.groupBy(corpora, ({ language = "" }) => language);
  return new Map(
    Array.from(texts, ([language, own]) => {
      const memories = own.flatMap((corpus) => corpus.memories.map(({ text }) => text));
      const queries = own.flatMap((corpus) => corpus.queries.filter(({ category }) => category !== "cross").map(({ text }) => text));
      return [language, meanOfTexts(kind === "query" ? queries : memories)];
    }),
  );
}

function meansOfLanguages(kind: EncodedKind): Float64Array[] {
  const everyday = everydayMeans(kind);
  const general = meanOf([...everyday.values()]);
  const ofSentences = LANGUAGES.map((language) => meanOfTexts(sentences[language as keyof typeof sentences][TEXTS[kind]]));
  const overSentences = meanOf(ofSentences);
  const own = LANGUAGES.map((language, l) => {
    const moved = general.map((value, i) => value + ofSentences[l]![i]! - overSentences[i]!);
    const data = everyday.get(language);
    if (data === undefined) return moved;
    return language === "en" ? data : meanOf([data, moved]);
  });
  return [general, ...own];
}

await runScript(() => {
  const all = [...meansOfLanguages("query"), ...meansOfLanguages("passage")].flatMap((mean) => Array.from(mean));
  writeFileSync(OUTPUT, new Uint8Array(Float32Array.from(all).buffer));
  console.log(`${OUTPUT}: ${LANGUAGES.length} languages`);
  return Promise.resolve();
});
