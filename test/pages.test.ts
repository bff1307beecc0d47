/**
 * The documentation: that its links lead somewhere, that what is generated in it is current, that each block of code in it is run by a
 * test or cannot be, and that a server serves it.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { addressOf, BASE, INDEX_PATH, linkedPages, outsideCode } from "../src/docs/contents.ts";
import { createApp } from "../src/server/app.ts";
import { block, blocksOf, PAGES, pageText, ROOT } from "./support/pages.ts";
import { startCairn } from "./support/cairn.ts";
import { BLOCKS, type Held } from "./support/page-blocks.ts";

const README_BYTES_MAX = 8_192;

test("the README is at most 8 KB", () => {
  expect(Buffer.byteLength(pageText("README.md"))).toBeLessThanOrEqual(README_BYTES_MAX);
});

/** Relative links of a page, from its own place and with their fragments. */
function linksOf(path: string): { target: string; anchor: string }[] {
  let text = "";
  outsideCode(pageText(path), (part) => ((text += part), part));
  return Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = ""]) => link)
    .filter((link) => !/^https?:/.test(link))
    .map((link) => {
      const [file = "", anchor = ""] = link.split("#");
      return { target: file === "" ? path : normalize(join(dirname(path), file)), anchor };
    });
}

/** The anchors of headings as a code host makes them, and as a server does. */
function anchorsOf(path: string): { onCodeHost: string[]; onServer: string[] } {
  let text = "";
  outsideCode(pageText(path), (part) => ((text += part), part));
  const headings = Array.from(text.matchAll(/^#+ (.+)$/gm), ([, heading = ""]) => heading.replaceAll(/[`*]/g, ""));
  const slugs = headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-"),
  );
  const html = Bun.markdown.html(pageText(path), { headings: { ids: true } });
  return { onCodeHost: slugs, onServer: Array.from(html.matchAll(/<h[1-6] id="([^"]*)"/g), ([, id = ""]) => id) };
}

test("every link between pages leads to a file that exists, and to a heading of it, on a code host and on a server", () => {
  const wrong = PAGES.flatMap((path) =>
    linksOf(path)
      .filter(({ target, anchor }) => {
        if (!existsSync(join(ROOT, target))) return true;
        if (anchor === "") return false;
        const { onCodeHost, onServer } = anchorsOf(target);
        return !onCodeHost.includes(anchor) || !onServer.includes(anchor);
      })
      .map(({ target, anchor }) => `${path} -> ${target}#${anchor}`),
  );
  expect(wrong).toEqual([]);
});

test("a page that a server serves links to nothing that it does not serve", () => {
  const served = [INDEX_PATH, ...linkedPages(pageText(INDEX_PATH))];
  const wrong = served.flatMap((path) =>
    linksOf(path)
      .filter(({ target }) => !served.includes(target) && !target.startsWith("src/docs/pictures/"))
      .map(({ target }) => `${path} -> ${target}`),
  );
  expect(wrong).toEqual([]);
});

test("every address of the documentation that the product names is one", () => {
  const addresses = new Set([INDEX_PATH, ...linkedPages(pageText(INDEX_PATH))].map(addressOf));
  const files = Array.from(new Bun.Glob("src/**/*.{ts,tsx}").scanSync(ROOT)).filter((path) => !path.startsWith("src/docs/"));
  const named = files.flatMap((path) =>
    Array.from(readFileSync(join(ROOT, path), "utf8").matchAll(/\/docs\/guide(?:\/[\w/-]+)?/g), ([address]) => ({ path, address })),
  );
  expect(named.filter(({ address }) => !addresses.has(address))).toEqual([]);
});

test("every column of a table has a head, which a screen reader says", () => {
  const heads = PAGES.flatMap((path) => Array.from(pageText(path).matchAll(/^(\|.*\|)\n\| ?:?-/gm), ([, head = ""]) => ({ path, head })));
  expect(heads.length).toBeGreaterThan(10);
  expect(heads.filter(({ head }) => /\|\s*\|/.test(head))).toEqual([]);
});

test("every guarantee names tests that exist", () => {
  const page = pageText("src/docs/reference/guarantees.md");
  const held = Array.from(page.matchAll(/^- `(test\/[^`]+)`: (.+)$/gm), ([, file = "", name = ""]) => ({ file, name }));
  expect(held.filter(({ file, name }) => !isTest(file, name === "(any test)" ? "" : name))).toEqual([]);
  expect(held.length).toBeGreaterThan(30);
  // Each promise has a heading, and under it tests.
  const promises = page.split(/^(?=##+ )/m).filter((section) => section.startsWith("### "));
  expect(promises.length).toBeGreaterThan(15);
  expect(promises.filter((section) => !/^- `test\//m.test(section))).toEqual([]);
});

function isTest(file: string, name: string): boolean {
  return existsSync(join(ROOT, file)) && readFileSync(join(ROOT, file), "utf8").includes(name);
}

test("each path of the architecture is files that exist, none of them twice", () => {
  const [, text = ""] = /^## Four paths\n([\s\S]*?)^## /m.exec(pageText("src/ARCHITECTURE.md")) ?? [];
  const paths = blocksOf(text).map((one) =>
    one.text
      .trim()
      .split("\n")
      .map((line) => line.split(/ +/, 1)[0] ?? ""),
  );
  expect(paths.length).toBe(4);
  for (const files of paths) {
    expect(files.filter((file) => !existsSync(join(ROOT, "src", file)))).toEqual([]);
    expect(files.filter((file, i) => files.indexOf(file) !== i)).toEqual([]);
  }
});

const isProse = (path: string) => path === "src/ARCHITECTURE.md" || path.startsWith("src/docs/decisions/");

test("every block of code on a page is run by a test, or there is a reason why not", () => {
  const pages = PAGES.filter((path) => !isProse(path) && blocksOf(pageText(path)).length > 0);
  expect(Object.keys(BLOCKS).toSorted()).toEqual(pages.toSorted());
  for (const path of pages) {
    const known = Object.entries(BLOCKS[path] ?? {});
    const blocks = blocksOf(pageText(path));
    // Each block is one entry's, which its text begins with, and each entry is of a block.
    const found = blocks.map(({ text }) => ({ text, entries: known.filter(([start]) => text.startsWith(start)).map(([start]) => start) }));
    expect({ path, wrong: found.filter(({ entries }) => entries.length !== 1) }).toEqual({ path, wrong: [] });
    expect({ path, used: new Set(found.flatMap(({ entries }) => entries)).size }).toEqual({ path, used: known.length });
  }
});

test("the tests that run the blocks of pages exist", () => {
  const held = Object.values(BLOCKS).flatMap((blocks) => Object.values<Held>(blocks));
  expect(held.filter((one) => "file" in one && !isTest(one.file, one.test))).toEqual([]);
  expect(held.filter((one) => "because" in one && one.because.length < 10)).toEqual([]);
});

type Cairn = Awaited<ReturnType<typeof startCairn>>;

function appOf(cairn: Cairn) {
  const app = createApp({ ...cairn.service, host: "127.0.0.1", allowedHosts: [], metrics: "key", version: "1.2.3" });
  return (path: string) => app.handle(new Request(`http://localhost${path}`, { headers: { host: "localhost" } }));
}

test("a server has every page as HTML and as Markdown, and nothing beside them", async () => {
  await using cairn = await startCairn();
  const get = appOf(cairn);
  for (const path of [INDEX_PATH, ...linkedPages(pageText(INDEX_PATH))]) {
    const address = addressOf(path) ?? "";
    const page = await get(address);
    const html = await page.text();
    const [, title = ""] = /^# (.+)$/m.exec(pageText(path)) ?? [];
    expect({ path, status: page.status, type: page.headers.get("content-type") }).toEqual({
      path,
      status: 200,
      type: "text/html; charset=utf-8",
    });
    expect({ path, isTitled: html.includes(`<title>${Bun.escapeHTML(title.replaceAll("`", ""))}`) }).toEqual({ path, isTitled: true });
    expect({ path, links: await wrongLinks(html, get) }).toEqual({ path, links: [] });
    const markdown = await get(`${path === INDEX_PATH ? `${BASE}/index` : address}.md`);
    expect({ path, status: markdown.status, type: markdown.headers.get("content-type") }).toEqual({
      path,
      status: 200,
      type: "text/markdown; charset=utf-8",
    });
    expect(await markdown.text()).toStartWith(pageText(path).slice(0, 10));
  }
  for (const path of [`${BASE}/nothing`, `${BASE}/files.ts`, `${BASE}/../app.ts`, `${BASE}/constructor`, `${BASE}/`])
    expect({ path, status: (await get(path)).status }).toEqual({ path, status: 404 });
});

const followed = new Map<string, boolean>();

/** What a page links to or loads of this server that does not exist, or of another one without being a link to read. */
async function wrongLinks(html: string, get: (path: string) => Promise<Response> | Response): Promise<string[]> {
  const wrong: string[] = [];
  for (const [, name = "", value = ""] of html.matchAll(/ (src|href)="([^"#]+)(?:#[^"]*)?"/g)) {
    if (/^https?:/.test(value)) {
      if (name === "src") wrong.push(value);
      continue;
    }
    if (!followed.has(value)) followed.set(value, (await get(value)).status < 400);
    if (followed.get(value) !== true) wrong.push(value);
  }
  return wrong;
}

test("a page loads its own files and nothing from elsewhere, by its policy", async () => {
  await using cairn = await startCairn();
  const get = appOf(cairn);
  const page = await get(`${BASE}/webhooks`);
  expect(page.headers.get("content-security-policy")?.split("; ")).toEqual([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]);
  expect(await page.text()).not.toMatch(/<(script|style)[^>]*>[^<]|style="| on\w+="/);
  const types: Record<string, string> = {
    "style.css": "text/css; charset=utf-8",
    "search.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "pictures/session.webp": "image/webp",
    "search.json": "application/json",
  };
  for (const [name, type] of Object.entries(types)) {
    const { status, headers } = await get(`${BASE}/${name}`);
    expect({ name, status, type: headers.get("content-type") }).toEqual({ name, status: 200, type });
  }
});

test("llms.txt has a title, a summary and a link to each page as Markdown", async () => {
  await using cairn = await startCairn();
  const get = appOf(cairn);
  const text = await (await get("/llms.txt")).text();
  expect(text).toMatch(/^# Cairn documentation\n\n> .+\n> .+\n/);
  const links = Array.from(text.matchAll(/^- \[.+?\]\((\S+)\)/gm), ([, link = ""]) => link);
  expect(links).toEqual(linkedPages(pageText(INDEX_PATH)).map((path) => `${addressOf(path)}.md`));
  for (const link of links) expect({ link, status: (await get(link)).status }).toEqual({ link, status: 200 });
});

test("the search index has the sections of all pages, and each word where it stands", async () => {
  await using cairn = await startCairn();
  const { sections, words } = (await (await appOf(cairn)(`${BASE}/search.json`)).json()) as {
    sections: [string, string, string, string][];
    words: Record<string, number[]>;
  };
  const pages = new Set(sections.map(([address]) => address.replace(/#.*/, "")));
  expect([...pages].toSorted()).toEqual(
    linkedPages(pageText(INDEX_PATH))
      .map((path) => addressOf(path) ?? "")
      .toSorted(),
  );
  const named = (word: string) => words[word]?.map((number) => sections[number]?.[0]);
  expect(named("cairn_allowed_hosts")).toContain(`${BASE}/operate/deploy#who-can-connect`);
});

test("the configuration of MCP clients on its page is JSON", () => {
  for (const part of ['"mcpServers": { "cairn": { "command"', '"mcpServers": { "cairn": { "url"', '"promptString"'])
    expect(JSON.parse(block("src/docs/guide/mcp.md", "json", part))).toBeObject();
});
