/**
 * The search of the documentation, in the browser. It loads the index when somebody begins to search, and looks in it by itself: a section
 * is found when it has, for each word of the query, a word that begins with it.
 *
 * @module
 */
import type { SearchIndex } from "../search-index.ts";

type Section = SearchIndex["sections"][number];

const FOUND_MAX = 12;
const TITLE_WEIGHT = 8;
const PAGE_WEIGHT = 4;
const WEIGHED_LENGTH_MIN = 3;

function element(selector: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
}

const input = element("#query") as HTMLInputElement;
const status = element("#status");
const list = element("#found");

let loading: Promise<SearchIndex> | undefined;

/** Loads the index once. A load that failed is tried again by the next key. */
async function loadIndex(): Promise<SearchIndex> {
  loading ??= fetch("/docs/guide/search.json").then((response) => {
    if (!response.ok) throw new Error(response.statusText);
    return response.json() as Promise<SearchIndex>;
  });
  try {
    return await loading;
  } catch (error) {
    loading = undefined;
    throw error;
  }
}

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
const begins = (text: string, term: string) => wordsOf(text).some((word) => word.startsWith(term));

/** Scores of the sections that have a word beginning with a term, by their numbers. */
function scoresOf({ sections, words }: SearchIndex, term: string): Map<number, number> {
  const numbers = Object.entries(words).flatMap(([word, found]) => (word.startsWith(term) ? found : []));
  const rarity = Math.log(1 + sections.length / (numbers.length + 1));
  const scores = new Map<number, number>();
  for (const number of numbers) {
    const [, title = "", page = ""] = sections[number] ?? [];
    const weight = begins(title, term) ? TITLE_WEIGHT : begins(page, term) ? PAGE_WEIGHT : 1;
    // Titles say little by words such as "on" and "a".
    scores.set(number, rarity * (term.length < WEIGHED_LENGTH_MIN ? 1 : weight));
  }
  return scores;
}

/** Sections that have all terms, best first. */
function search(index: SearchIndex, terms: readonly string[]): Section[] {
  const [first = new Map<number, number>(), ...others] = terms.map((term) => scoresOf(index, term));
  return Array.from(first.keys())
    .filter((number) => others.every((scores) => scores.has(number)))
    .map((number) => ({ number, score: [first, ...others].reduce((sum, scores) => sum + (scores.get(number) ?? 0), 0) }))
    .toSorted((a, b) => b.score - a.score || a.number - b.number)
    .map(({ number }) => index.sections[number])
    .filter((section) => section !== undefined);
}

function itemOf([address, title, page, opening]: Section): HTMLLIElement {
  const link = document.createElement("a");
  link.href = address;
  link.textContent = title === page ? title : `${page}: ${title}`;
  const text = document.createElement("p");
  text.textContent = opening;
  const item = document.createElement("li");
  item.append(link, text);
  return item;
}

async function show(): Promise<void> {
  const query = input.value;
  const terms = wordsOf(query);
  let found: Section[] = [];
  if (terms.length > 0) {
    try {
      found = search(await loadIndex(), terms);
    } catch {
      status.textContent = "The search index could not be loaded. Type again to retry.";
      return;
    }
  }
  // Another key came while the index was loading.
  if (query !== input.value) return;
  list.replaceChildren(...found.slice(0, FOUND_MAX).map(itemOf));
  status.textContent = terms.length === 0 ? "" : found.length === 1 ? "1 section" : `${found.length} sections`;
}

function close(): void {
  input.value = "";
  void show();
}

element("search").hidden = false;
input.addEventListener("input", () => void show());
document.addEventListener("keydown", (event) => {
  const isTyping = event.target === input;
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    input.focus();
  } else if (event.key === "Escape" && (isTyping || list.contains(document.activeElement))) {
    input.focus();
    close();
  } else if (event.key === "Enter" && isTyping) list.querySelector("a")?.click();
});
// A link to a section of this same page loads nothing.
list.addEventListener("click", (event) => {
  if (event.target instanceof HTMLAnchorElement) close();
});
