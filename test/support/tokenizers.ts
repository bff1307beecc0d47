/**
 * Tokenizers of language models, and texts in the languages that they are compared in.
 *
 * @module
 */
import { getTokenizer } from "@anthropic-ai/tokenizer";
import { getEncoding } from "js-tiktoken";
import english from "../retrieval/everyday/english.json" with { type: "json" };
import others from "../retrieval/everyday/languages.json" with { type: "json" };

const o200k = getEncoding("o200k_base");
const claude = getTokenizer();

/** How many tokens a text is by the tokenizer that needs more for it. What looks like a mark of theirs is text. */
export function tokensOfModels(text: string): number {
  return Math.max(o200k.encode(text, [], []).length, claude.encode(text.normalize("NFKC"), [], []).length);
}

/** Texts by their language: memories of everyday life in English and 16 others. */
export const TEXTS: Readonly<Record<string, readonly string[]>> = textsByLanguage();

function textsByLanguage(): Record<string, string[]> {
  const texts: Record<string, string[]> = { en: english.corpora.flatMap(({ memories }) => memories.map(({ text }) => text)) };
  for (const { language, memories } of others.corpora) (texts[language] ??= []).push(...memories.map(({ text }) => text));
  return texts;
}
