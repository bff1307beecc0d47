/**
 * The documentation at `/docs/guide`: HTML for people, the same pages as Markdown for programs, and `/llms.txt`, which lists them.
 *
 * It needs no key and no network, and is read from the executable on the first request.
 *
 * @module
 */
import { pagePolicy } from "../http/page-policy.ts";
import { toJson } from "../lib/json.ts";
import { loadOnce } from "../lib/memoize.ts";
import { addressOf, BASE, INDEX_PATH, partsOf, SKILL_PATH, withAddresses } from "./contents.ts";
import { docsFiles } from "./files.ts";
import { pageHtml } from "./page.ts";
import { searchIndex } from "./search-index.ts";

export interface DocsAnswer {
  readonly status: 200;
  readonly body: Blob | string;
  readonly headers: Record<string, string>;
}

const SCRIPT_PATH = "src/docs/browser/search.ts";
const LLMS = "/llms.txt";
export const DOCS_PATHS = [BASE, `${BASE}/*`, LLMS] as const;

const PAGE_HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": pagePolicy(),
  "Referrer-Policy": "no-referrer",
};

const FILE_TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  webp: "image/webp",
};

type Make = () => DocsAnswer;

/** Returns what answers a path of the documentation: undefined where there is nothing. A failure to read it is not cached. */
export function docsServer(version: string): (path: string) => Promise<DocsAnswer | undefined> {
  const site = loadOnce(() => loadSite(version));
  return async (path) => (await site()).get(path)?.();
}

async function loadSite(version: string): Promise<ReadonlyMap<string, Make>> {
  const files = await docsFiles();
  const pages = [...files.keys()].filter((path) => path.endsWith(".md") && path !== SKILL_PATH);
  const texts = new Map(await Promise.all(pages.map(async (path) => [path, await Bun.file(files.get(path) ?? "").text()] as const)));
  const parts = partsOf(texts.get(INDEX_PATH) ?? "");
  const site = new Map<string, Make>();
  for (const [path, text] of texts) {
    const address = addressOf(path) ?? "";
    site.set(
      address,
      made(() => answer(pageHtml(text, path, parts, version), PAGE_HEADERS)),
    );
    site.set(`${path === INDEX_PATH ? `${BASE}/index` : address}.md`, () => markdown(withAddresses(text, path, ".md")));
  }
  for (const [path, file] of files) {
    const type = FILE_TYPES[path.split(".").at(-1) ?? ""];
    if (type === undefined) continue;
    const name = path.startsWith("src/docs/pictures/") ? path.slice("src/docs/".length) : (path.split("/").at(-1) ?? "");
    site.set(`${BASE}/${name}`, () => answer(Bun.file(file), { "Content-Type": type }));
  }
  const script = await Bun.file(files.get(SCRIPT_PATH) ?? "").text();
  site.set(
    `${BASE}/search.js`,
    made(() => answer(transpiled(script), { "Content-Type": "text/javascript; charset=utf-8" })),
  );
  site.set(
    `${BASE}/search.json`,
    made(() => answer(toJson(searchIndex(parts, texts)), { "Content-Type": "application/json" })),
  );
  const skill = await Bun.file(files.get(SKILL_PATH) ?? "").text();
  site.set(`${BASE}/SKILL.md`, () => markdown(skill));
  site.set(LLMS, () => markdown(llmsText(texts.get(INDEX_PATH) ?? "")));
  return site;
}

/** In the form of https://llmstxt.org: a title, a quoted summary, and lists of links to Markdown. */
function llmsText(index: string): string {
  const [title = "", summary = "", ...rest] = withAddresses(index, INDEX_PATH, ".md").split("\n\n");
  return [title, summary.replaceAll(/^/gm, "> "), ...rest].join("\n\n");
}

/** Script of the browser: one file, without imports of values. */
function transpiled(script: string): string {
  return new Bun.Transpiler({ loader: "ts", target: "browser" }).transformSync(script);
}

function made(make: Make): Make {
  let known: DocsAnswer | undefined;
  return () => (known ??= make());
}

function markdown(text: string): DocsAnswer {
  return answer(text, { "Content-Type": "text/markdown; charset=utf-8" });
}

function answer(body: Blob | string, headers: Record<string, string>): DocsAnswer {
  return { status: 200, body, headers: { "Cache-Control": "no-cache", ...headers } };
}
