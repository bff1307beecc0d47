/**
 * The files of the documentation: Markdown, pictures, and what the page of a browser needs.
 *
 * Run from source they are read where they lie. The executable contains them: `scripts/docs-plugin.ts` replaces this module by one
 * that names its files.
 *
 * @module
 */
import { join } from "node:path";
import { INDEX_PATH, linkedPages, SKILL_PATH } from "./contents.ts";

const ROOT = join(import.meta.dir, "../..");
const ICON_PATH = "src/dashboard/app/icon.svg";

/** Returns where each file is read from, by its path in the project. The index says which pages there are. */
export async function docsFiles(): Promise<ReadonlyMap<string, string>> {
  const pages = linkedPages(await Bun.file(join(ROOT, INDEX_PATH)).text());
  const others = ["src/docs/browser/*.css", "src/docs/browser/*.ts", "src/docs/pictures/*.webp"]
    .flatMap((pattern) => Array.from(new Bun.Glob(pattern).scanSync(ROOT)))
    .toSorted();
  return new Map([INDEX_PATH, ...pages, ...others, SKILL_PATH, ICON_PATH].map((path) => [path, join(ROOT, path)]));
}
