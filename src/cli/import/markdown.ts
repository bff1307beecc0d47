/**
 * Notes in Markdown, item by item (pure): each item of a list, or paragraph, with the headings above it.
 *
 * @module
 */
import { timeMs } from "./values.ts";

export interface MarkdownItem {
  /** The text behind its headings. */
  readonly content: string;
  /** The text alone. */
  readonly text: string;
}

/** Front matter of a note, between lines of dashes: as far as it is plain. */
export interface FrontMatter {
  readonly values: ReadonlyMap<string, string>;
  readonly tags: readonly string[];
}

const HEADING = /^ {0,3}(#{1,6})\s+(.+?)\s*#*$/;
/** A paragraph of bold words alone. */
const BOLD_HEADING = /^\*\*([^*\n]+?):?\*\*:?$/;
const ITEM = /^(\s*)(?:[-*+]|\d+[.)])\s+(.*)$/;
/** A file that agents read with this one. */
const FILE = /^@\S+\s*$/;
const FENCE = /^\s*(```|~~~)/;
const COMMENT = /<!--[\s\S]*?(?:-->|$)/g;
const LEVEL_OF_BOLD = 7;
const FRONT_MATTER = /^---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n|$)/;

/** Gives the items of a note without its front matter. */
export function* markdownItems(note: string): Generator<MarkdownItem> {
  const headings: { readonly level: number; readonly text: string }[] = [];
  const lines = note
    .replace(/^\ufeff/, "")
    .replace(FRONT_MATTER, "")
    .replaceAll(COMMENT, "")
    .split(/\r?\n/);
  let block: string[] = [];
  let isInList = false;
  let isInFence = false;
  const item = function* (): Generator<MarkdownItem> {
    const text = block.join("\n").trim();
    [block, isInList] = [[], false];
    const bold = BOLD_HEADING.exec(text)?.[1];
    if (bold !== undefined) enter(headings, LEVEL_OF_BOLD, bold);
    else if (text !== "" && !/^([-*_] ?){3,}$/.test(text))
      yield { text, content: headings.length === 0 ? text : `${headings.map((heading) => heading.text).join(" > ")}: ${text}` };
  };
  for (const line of lines) {
    if (FENCE.test(line)) isInFence = !isInFence;
    const [, marks = "", title = ""] = (isInFence ? null : HEADING.exec(line)) ?? [];
    const [, indent = "", said = ""] = (isInFence ? null : ITEM.exec(line)) ?? [];
    if (marks !== "") {
      yield* item();
      enter(headings, marks.length, title);
    } else if (said !== "" && (!isInList || indent.length < 2)) {
      yield* item();
      [block, isInList] = [[said], true];
    } else if (!isInFence && (FILE.test(line) || (line.trim() === "" && !isInList))) yield* item();
    else if (isInList && !isInFence && /^\S/.test(line) && block.at(-1) === "") {
      yield* item();
      block = [line];
    } else block.push(isInFence ? line : line.trimEnd());
  }
  yield* item();
}

function enter(headings: { readonly level: number; readonly text: string }[], level: number, text: string): void {
  while ((headings.at(-1)?.level ?? 0) >= level) headings.pop();
  headings.push({ level, text: text.replaceAll("**", "").trim() });
}

export function frontMatterOf(note: string): FrontMatter {
  const [, text = ""] = FRONT_MATTER.exec(note.replace(/^\ufeff/, "")) ?? [];
  const values = new Map<string, string>();
  const tags: string[] = [];
  let key = "";
  for (const line of text.split(/\r?\n/)) {
    const [, name, value = ""] = /^([\w-]+):\s*(.*?)\s*$/.exec(line) ?? [];
    if (name !== undefined) values.set((key = name.toLowerCase()), unquoted(value));
    const [, listed] = /^\s*-\s+(.*?)\s*$/.exec(line) ?? [];
    if (name === undefined && listed !== undefined && key === "tags") tags.push(unquoted(listed));
  }
  const inline =
    values
      .get("tags")
      ?.replace(/^\[(.*)\]$/, "$1")
      .split(",")
      .map((tag) => unquoted(tag.trim())) ?? [];
  return { values, tags: [...tags, ...inline].filter((tag) => tag !== "") };
}

function unquoted(text: string): string {
  return text.replace(/^(["'])(.*)\1$/, "$2");
}

/** Reads when a note was written, as its front matter says. */
export function writtenAt({ values }: FrontMatter): number | undefined {
  return timeMs(values.get("created") ?? values.get("date"));
}
