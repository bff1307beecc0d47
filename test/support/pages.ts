/**
 * The pages that people read, and the blocks of code in them, which tests run as they are printed.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export const ROOT = dirname(dirname(import.meta.dir));

/** Every page, by its path in the project. */
export const PAGES: readonly string[] = [
  "README.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "CHANGELOG.md",
  "src/ARCHITECTURE.md",
  "src/adapters/README.md",
  "src/client/README.md",
  "src/python/README.md",
  "test/README.md",
  ...Array.from(new Bun.Glob("src/docs/**/*.md").scanSync(ROOT)).toSorted(),
];

export function pageText(path: string): string {
  return readFileSync(join(ROOT, path), "utf8");
}

export interface Block {
  readonly language: string;
  readonly text: string;
}

export function blocksOf(page: string): Block[] {
  return Array.from(page.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm), ([, language = "", text = ""]) => ({ language, text }));
}

/** The one block of a page in a language that holds a text, as it is printed. */
export function block(path: string, language: "sh" | "js" | "ts" | "json" | "python" | "toml" | "", part: string): string {
  const [found, ...more] = blocksOf(pageText(path)).filter((one) => one.language === language && one.text.includes(part));
  if (found === undefined || more.length > 0) throw new Error(`${path} has not one block of ${language} with ${part}`);
  return found.text;
}
