/**
 * Index of the documentation's search: each section of each page, and which words are in which sections.
 *
 * It is made once, when the first reader searches, and small: a browser loads all of it and searches by itself (`browser/search.js`).
 *
 * @module
 */
import { addressOf, BASE, withAddresses, type Part } from "./contents.ts";
import { plain, rendered } from "./page.ts";

/** Characters of a section that are shown below its title. */
const OPENING_LENGTH = 140;

export interface SearchIndex {
  /** Address, title, title of its page, and how its text begins. */
  readonly sections: readonly (readonly [address: string, title: string, page: string, opening: string])[];
  /** Sections by the words in them, lower case. */
  readonly words: Readonly<Record<string, readonly number[]>>;
}

/** @param texts - the Markdown of pages by their paths */
export function searchIndex(parts: readonly Part[], texts: ReadonlyMap<string, string>): SearchIndex {
  const sections: SearchIndex["sections"][number][] = [];
  const words = new Map<string, Set<number>>();
  for (const { path } of parts.flatMap(({ pages }) => pages)) {
    const { title: page } = rendered(texts.get(path) ?? "", path);
    for (const { id, title, text } of sectionsOf(texts.get(path) ?? "", path)) {
      const address = `${addressOf(path) ?? BASE}${title === page ? "" : `#${id}`}`;
      for (const word of wordsOf(`${page} ${title} ${text}`)) {
        const found = words.get(word);
        if (found === undefined) words.set(word, new Set([sections.length]));
        else found.add(sections.length);
      }
      sections.push([address, title, page, openingOf(text)]);
    }
  }
  const byWord = Array.from(words, ([word, found]) => [word, [...found]] as const).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return { sections, words: Object.fromEntries(byWord) };
}

function sectionsOf(markdown: string, path: string): { id: string; title: string; text: string }[] {
  const html = Bun.markdown.html(withAddresses(markdown, path, ""), { headings: { ids: true } });
  return html
    .split(/(?=<h[1-6] id=")/)
    .map((section) => /^<h[1-6] id="([^"]*)">(.*?)<\/h[1-6]>(.*)$/s.exec(section))
    .filter((match) => match !== null)
    .map(([, id = "", title = "", text = ""]) => ({ id, title: plain(title), text: plain(text.replaceAll(/<\/(p|li|td|th|pre)>/g, " ")) }));
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu));
}

function openingOf(text: string): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length <= OPENING_LENGTH ? flat : `${flat.slice(0, OPENING_LENGTH).replace(/\S*$/, "").trimEnd()} …`;
}
