/**
 * Files in which agents keep what they are to remember: `CLAUDE.md`, `AGENTS.md` and such, notes of a `memory` folder or of Basic Memory,
 * and the lines of the MCP server `memory`.
 *
 * @module
 */
import { readFileSync, statSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import type { JsonObject } from "../../lib/json.ts";
import { OperationError } from "../../operations/report.ts";
import type { Found, Selection } from "./found.ts";
import { filesOf, linesOf } from "./files.ts";
import { frontMatterOf, markdownItems, writtenAt } from "./markdown.ts";
import { memoriesOf } from "./memory.ts";
import { hashOf, nonEmpty, objectOfLine } from "./values.ts";

const FROM = "memory-files";
const INSTRUCTIONS = /^(claude|claude\.local|agents|gemini)\.md$/i;
const IN_FOLDER = /^(memory|memories)$/i;
const LINES = /^memory[\w.-]*\.jsonl?$/i;
const NOTE_BYTES_MAX = 4 * 1_048_576;
/** `- [category] text #tag (context)` and `- relation [[Target]]` of Basic Memory. */
const OBSERVATION = /^\[([^\][ xX][^\][]*)\]\s+(.+)$/s;
const RELATION = /^(?:([^[\]\n]+?)\s+)?\[\[([^\]]+)\]\](?:\s*\([^)]*\))?$/;
const TAG = /(?:^|\s)#([\p{L}\p{N}_/-]+)/gu;
/** An entry of an index of notes. */
const POINTER = /^\[[^\]]*\]\([^)]*\.md\)(\s*[—–:-].*)?$/s;

interface Note {
  readonly content: string;
  readonly type: string;
  readonly tags: readonly string[];
}

/** @throws {OperationError} where nothing is to be remembered */
export async function* memoryFiles(paths: readonly string[], selection: Selection): AsyncGenerator<Found> {
  let isAny = false;
  const given = new Set(paths.map((path) => resolve(path)));
  for await (const path of filesOf(paths, (name) => /\.(md|jsonl?)$/i.test(name))) {
    const isNamed = given.has(resolve(path));
    const found = path.toLowerCase().endsWith(".md") ? notesIn(path, isNamed, selection) : linesIn(path, isNamed, selection);
    for await (const one of found) {
      isAny = true;
      yield one;
    }
  }
  if (!isAny) throw new OperationError(`There is nothing to remember in ${paths.join(", ")}.`);
}

function* notesIn(path: string, isNamed: boolean, selection: Selection): Generator<Found> {
  const { size, mtimeMs } = statSync(path);
  if (size > NOTE_BYTES_MAX) {
    if (isNamed || isMemoryFile(path)) yield { kind: "skipped", place: path, reason: `longer than ${NOTE_BYTES_MAX / 1_048_576} MiB` };
    return;
  }
  const text = readFileSync(path, "utf8");
  const front = frontMatterOf(text);
  // Basic Memory gives each note one.
  const isBasicMemory = front.values.has("permalink");
  if (!isNamed && !isMemoryFile(path) && !isBasicMemory) return;
  if (selection.since !== undefined && mtimeMs < selection.since) return;
  const title = nonEmpty(front.values.get("title")) ?? basename(path).replace(/\.md$/i, "");
  for (const item of markdownItems(text)) {
    const note = isBasicMemory ? basicNote(title, item.text) : undefined;
    const type = INSTRUCTIONS.test(basename(path)) ? "policy" : "fact";
    if (POINTER.test(item.text)) continue;
    const { tags, ...of } = note ?? { content: item.content, type, tags: [] };
    yield* memories({ ...of, tags: [...front.tags, ...tags] }, path, writtenAt(front), selection);
  }
}

function isMemoryFile(path: string): boolean {
  return INSTRUCTIONS.test(basename(path)) || IN_FOLDER.test(basename(dirname(resolve(path))));
}

/** Reads an observation or a relation of a note; undefined for plain text. */
function basicNote(title: string, text: string): Note | undefined {
  const [, category, said] = OBSERVATION.exec(text) ?? [];
  if (category !== undefined && said !== undefined) {
    const tags = [...said.matchAll(TAG)].map(([, tag = ""]) => tag);
    return { content: `${title}: ${said}`, type: "fact", tags: [category, ...tags] };
  }
  const [, verb = "relates to", target] = RELATION.exec(text) ?? [];
  return target === undefined
    ? undefined
    : { content: `${title} ${verb.replaceAll("_", " ")} ${target}`, type: "fact", tags: ["relation"] };
}

async function* linesIn(path: string, isNamed: boolean, selection: Selection): AsyncGenerator<Found> {
  if (!isNamed && !LINES.test(basename(path))) return;
  for await (const { number, bytes } of linesOf(path)) {
    const found = bytes === undefined ? "is too long" : notesOfLine(new TextDecoder().decode(bytes));
    if (typeof found === "string") yield { kind: "skipped", place: `${path}, line ${number}`, reason: found };
    else for (const note of found) yield* memories(note, path, undefined, { ...selection, since: undefined });
  }
}

/** @returns why a line is none of the server's, or what it says */
function notesOfLine(text: string): string | readonly Note[] {
  if (text.trim() === "") return [];
  const line = objectOfLine(text);
  if (typeof line === "string") return line;
  if (line["type"] === "entity") return notesOfEntity(line);
  if (line["type"] !== "relation") return "is neither an entity nor a relation";
  const [from, to, verb] = [nonEmpty(line["from"]), nonEmpty(line["to"]), nonEmpty(line["relationType"])];
  if (from === undefined || to === undefined || verb === undefined) return "has no from, to or relationType";
  return [{ content: [from, verb, to].join(" ").replaceAll("_", " "), type: "fact", tags: ["relation"] }];
}

function notesOfEntity({ name, entityType, observations }: JsonObject): string | readonly Note[] {
  if (typeof name !== "string" || name.trim() === "") return "has no name";
  if (!Array.isArray(observations)) return "has no observations";
  const kind = nonEmpty(entityType);
  const tags = kind === undefined ? [] : [kind];
  const said = observations.flatMap((text) => nonEmpty(text) ?? []);
  return (said.length === 0 && kind !== undefined ? [kind] : said).map((text) => ({ content: `${name}: ${text}`, type: "fact", tags }));
}

/** Names a note by what it says: two files that say the same are one memory. */
function memories({ content, type, tags }: Note, path: string, at: number | undefined, selection: Selection): Iterable<Found> {
  const file = resolve(path);
  const name = `${FROM}:${hashOf(content)}`;
  return memoriesOf({ from: FROM, name, content, type, at, owner: {}, tags, document: file }, { ...selection, since: undefined });
}
