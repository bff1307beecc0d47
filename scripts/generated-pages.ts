/**
 * The parts of the documentation that follow from the code, between `<!-- generated: NAME -->` and `<!-- end -->` in a page:
 * `scripts/test --fix` writes them, and a test fails where a page has others.
 *
 * @module
 */
import type { TSchema } from "@sinclair/typebox";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { EXPORTED } from "../src/operations/export.ts";
import { defaultOf } from "../src/settings/described.ts";
import { SETTINGS, START_SETTINGS, type Setting } from "../src/settings/schema.ts";
import { TARGETS } from "./targets.ts";

const root = dirname(import.meta.dir);

const PARTS: Readonly<Record<string, () => string>> = {
  settings: settingsTable,
  start: startTable,
  tables: exportedTables,
  targets: targetTable,
};

/** The pages that have such parts. */
export const GENERATED_PAGES = ["configuration", "install"]
  .map((name) => `src/docs/operate/${name}.md`)
  .concat("src/docs/reference/export-format.md");

/** Returns a page without what the formatter adds to tables. */
export function unpadded(page: string): string {
  return page.replaceAll(/^\|.*\|$/gm, (line) => line.replaceAll(/ +\|/g, " |").replaceAll(/-{3,}/g, "---"));
}

/** Returns the page as it should be, before it is formatted. */
export function withGeneratedParts(page: string): string {
  return page.replaceAll(/(<!-- generated: (\w+) -->\n)[\s\S]*?(<!-- end -->)/g, (_, start: string, name: string, end: string) => {
    const part = PARTS[name];
    if (part === undefined) throw new Error(`nothing generates the part ${name} of a page`);
    return `${start}\n${part()}\n\n${end}`;
  });
}

function startTable(): string {
  const rows = Object.values<Setting>(START_SETTINGS).map((setting) => [
    code(setting.flag?.replace(/ .*/, "")),
    code(setting.variable),
    fallback(setting),
    setting.description,
  ]);
  return table(["Flag", "Variable", "Default", "What it is"], rows);
}

function settingsTable(): string {
  const rows = Object.entries<Setting>(SETTINGS).map(([name, setting]) => [
    code(name),
    code(setting.variable),
    fallback(setting),
    setting.description,
  ]);
  return table(["Setting", "Variable", "Default", "What it is"], rows);
}

function targetTable(): string {
  return table(
    ["Target", "Needs", "Tested"],
    Object.entries(TARGETS).map(([name, { needs, tested }]) => [code(name), needs, tested]),
  );
}

function exportedTables(): string {
  return EXPORTED.map(({ name, key, schema }) => {
    const members = Object.entries((schema["properties"] ?? {}) as Record<string, TSchema>);
    const required = new Set((schema["required"] ?? []) as string[]);
    const rows = members.map(([member, type]) => [code(member), kindOf(type), required.has(member) ? "yes" : "no"]);
    const row = rows.length === 0 ? `The row is ${kindOf(schema)}.` : table(["Member", "Value", "Always there"], rows);
    return `### ${code(name)}\n\nA key matches ${code(key.source)}.\n\n${row}`;
  }).join("\n\n");
}

/** Description of the types of rows, or their kind of JSON. */
function kindOf(type: TSchema): string {
  const { description, type: kind, const: value } = type as { description?: string; type?: string; const?: unknown };
  if (value !== undefined) return code(JSON.stringify(value));
  return description ?? (kind === "array" ? "a list" : kind === "object" ? "an object" : (kind ?? "any value"));
}

function fallback(setting: Setting): string {
  const text = defaultOf(setting);
  return setting.defaultText === undefined ? code(text) : text;
}

function code(text: string | undefined): string {
  return text === undefined || text === "" ? "" : `\`${text}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

if (import.meta.main) {
  for (const path of GENERATED_PAGES) {
    const file = join(root, path);
    const before = readFileSync(file, "utf8");
    const after = withGeneratedParts(before);
    if (unpadded(after) !== unpadded(before)) writeFileSync(file, after);
  }
}
