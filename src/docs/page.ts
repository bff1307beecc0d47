/**
 * One page of the documentation as HTML: the text, the table of contents on one side and the headings of the page on the other.
 *
 * It needs no script: search is added by one where there is JavaScript. The text is our own, so its Markdown is rendered as it is.
 *
 * @module
 */
import { addressOf, BASE, INDEX_PATH, withAddresses, type PageEntry, type Part } from "./contents.ts";

export interface Heading {
  readonly level: number;
  readonly id: string;
  readonly text: string;
}

interface Rendered {
  readonly title: string;
  readonly html: string;
  readonly headings: readonly Heading[];
}

/** Fewer are seen without a list of them. */
const LISTED_HEADINGS_MIN = 3;

/** Renders the Markdown of a page, with its links as addresses. */
export function rendered(markdown: string, path: string): Rendered {
  const html = Bun.markdown.html(withAddresses(markdown, path, ""), { headings: { ids: true } });
  const headings = Array.from(html.matchAll(/<h([1-6]) id="([^"]*)">(.*?)<\/h\1>/gs), ([, level, id = "", inner = ""]) => ({
    level: Number(level),
    id,
    text: plain(inner),
  }));
  return { title: headings[0]?.text ?? "", html: withKeyboardScrolling(html), headings: headings.slice(1) };
}

/** Text of HTML that Markdown was rendered to. */
export function plain(html: string): string {
  return html
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&amp;", "&");
}

/** Elements wider than a phone, which scroll by themselves and so have to be reached by the keyboard. */
function withKeyboardScrolling(html: string): string {
  return html
    .replaceAll("<pre>", '<pre tabindex="0">')
    .replaceAll("<table>", '<div class="table" role="group" aria-label="Table" tabindex="0"><table>')
    .replaceAll("</table>", "</table></div>")
    .replaceAll("<th>", '<th scope="col">');
}

/**
 * Returns the whole page.
 *
 * @param version - of Cairn, which the page names
 */
export function pageHtml(markdown: string, path: string, parts: readonly Part[], version: string): string {
  const { title, html, headings } = rendered(markdown, path);
  const all = parts.flatMap(({ pages }) => pages);
  const place = all.findIndex((page) => page.path === path);
  const address = addressOf(path) ?? BASE;
  const isIndex = path === INDEX_PATH;
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="description" content="${escaped(all[place]?.description || title)}">
    <title>${escaped(isIndex ? title : `${title} · Cairn`)}</title>
    <link rel="icon" href="${BASE}/icon.svg" type="image/svg+xml">
    <link rel="alternate" type="text/markdown" href="${isIndex ? `${BASE}/index` : address}.md">
    <link rel="stylesheet" href="${BASE}/style.css">
    <script src="${BASE}/search.js" type="module"></script>
  </head>
  <body>
    <a class="skip" href="#content">Skip to content</a>
    <header>
      <a class="name" href="${BASE}">Cairn documentation</a>
      <a class="narrow" href="#contents">Contents</a>
      <a href="/docs">API reference</a>
      <a href="/dashboard">Dashboard</a>
      <search hidden>
        <label for="query">Search</label>
        <input id="query" type="search" autocomplete="off" spellcheck="false" placeholder="Press / to search" aria-controls="found">
        <p id="status" role="status"></p>
        <ul id="found"></ul>
      </search>
    </header>
    <nav id="contents" aria-label="Contents" tabindex="-1">${contentsHtml(parts, path)}</nav>
    <main id="content" tabindex="-1">
      ${html}
    </main>
    ${headingsHtml(headings)}
    <footer>
      <nav aria-label="Previous and next page">${neighbourHtml("Previous", all[place - 1])}${neighbourHtml("Next", all[place + 1])}</nav>
      <p>Cairn ${escaped(version)} · <a href="${isIndex ? `${BASE}/index` : address}.md">this page as Markdown</a> · <a href="/llms.txt">all pages for programs</a></p>
    </footer>
  </body>
</html>
`;
}

function contentsHtml(parts: readonly Part[], path: string): string {
  const item = (page: PageEntry) =>
    `<li><a href="${addressOf(page.path)}"${page.path === path ? ' aria-current="page"' : ""}>${escaped(page.title)}</a></li>`;
  return parts.map(({ title, pages }) => `<h2>${escaped(title)}</h2><ul>${pages.map(item).join("")}</ul>`).join("");
}

function headingsHtml(headings: readonly Heading[]): string {
  const listed = headings.filter(({ level }) => level <= 3);
  if (listed.length < LISTED_HEADINGS_MIN) return "";
  const items = listed.map(({ level, id, text }) => `<li class="level-${level}"><a href="#${id}">${escaped(text)}</a></li>`);
  return `<nav id="headings" aria-labelledby="on-this-page"><h2 id="on-this-page">On this page</h2><ul>${items.join("")}</ul></nav>`;
}

function neighbourHtml(label: string, page: PageEntry | undefined): string {
  return page === undefined ? "" : `<a href="${addressOf(page.path)}">${label}: ${escaped(page.title)}</a>`;
}

function escaped(text: string): string {
  return Bun.escapeHTML(text);
}
