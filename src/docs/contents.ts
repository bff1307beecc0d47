/**
 * Pages of the documentation, their addresses, and how links between them are written there.
 *
 * `index.md` is the table of contents: each item of its lists is a page, under the heading of its part. In the repository links lead
 * from file to file, on a server from address to address, so that a page can be read in both.
 *
 * @module
 */
import { dirname, join, normalize } from "node:path/posix";

export const BASE = "/docs/guide";
const FOLDER = "src/docs/";
export const INDEX_PATH = `${FOLDER}index.md`;
/** Skill for agents, which is no page. */
export const SKILL_PATH = "src/docs/skill/SKILL.md";

/** The pages that lie elsewhere in the project, and where they stand among the others. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "CHANGELOG.md": "changelog",
  "CONTRIBUTING.md": "contributing",
  "SECURITY.md": "security",
  "src/ARCHITECTURE.md": "contribute/architecture",
  "src/adapters/README.md": "adapters",
  "src/client/README.md": "client",
  "src/python/README.md": "python",
  "test/README.md": "contribute/tests",
};

export interface PageEntry {
  /** Path in the project. */
  readonly path: string;
  readonly title: string;
  /** One line; empty where the title says it. */
  readonly description: string;
}

export interface Part {
  readonly title: string;
  readonly pages: readonly PageEntry[];
}

/** Reads the table of contents. */
export function partsOf(index: string): Part[] {
  return index
    .split(/^## /m)
    .slice(1)
    .map((text) => ({
      title: text.slice(0, text.indexOf("\n")).trim(),
      pages: Array.from(text.matchAll(/^- \[(.+?)\]\((\S+\.md)\)(?:: (.+))?$/gm), ([, title = "", target = "", description = ""]) => ({
        path: normalize(join(FOLDER, target)),
        title,
        description,
      })),
    }));
}

/** Returns the path of every page that the table of contents names. */
export function linkedPages(index: string): string[] {
  return partsOf(index).flatMap(({ pages }) => pages.map(({ path }) => path));
}

/** Returns the address of a file: of a page without its `.md`. Undefined for a file that no server serves. */
export function addressOf(path: string): string | undefined {
  if (path === INDEX_PATH) return BASE;
  const elsewhere = ELSEWHERE[path];
  if (elsewhere !== undefined) return `${BASE}/${elsewhere}`;
  if (!path.startsWith(FOLDER)) return undefined;
  return `${BASE}/${path
    .slice(FOLDER.length)
    .replace(/^guide\//, "")
    .replace(/\.md$/, "")}`;
}

/**
 * Rewrites the links of a page from files to addresses. Links to files that are not served are left as they are.
 *
 * @param ending - what stands after the address of a page: `.md` where the text stays Markdown
 */
export function withAddresses(markdown: string, path: string, ending: "" | ".md"): string {
  return outsideCode(markdown, (text) =>
    text.replaceAll(/\]\(([^)\s#:]+)(#[^)\s]*)?\)/g, (link, target: string, anchor = "") => {
      const file = normalize(join(dirname(path), target));
      const address = addressOf(file);
      if (address === undefined) return link;
      return `](${address}${file.endsWith(".md") ? ending : ""}${anchor})`;
    }),
  );
}

/** Replaces what is not in a block of code. */
export function outsideCode(markdown: string, replace: (text: string) => string): string {
  return markdown
    .split(/(^```[\s\S]*?^```$)/m)
    .map((text, i) => (i % 2 === 0 ? replace(text) : text))
    .join("");
}
