/**
 * Edits of TOML: one table by its header, everything else stays as it was written. Pure.
 *
 * @module
 */

/** @throws {Error} where it is no TOML */
export function parseToml(text: string): unknown {
  try {
    return Bun.TOML.parse(text.replaceAll("\r\n", "\n"));
  } catch {
    throw new Error("it is not TOML");
  }
}

/** Sets a table, where its header stands or else at the end. */
export function withTable(text: string, name: string, values: Readonly<Record<string, string | readonly string[]>>): string {
  const eol = text.includes("\r\n") ? "\r" : "";
  // Strings and lists of strings are the same in JSON, but for a character that TOML wants escaped.
  const members = Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value).replaceAll("\u007F", "\\u007f")}`);
  const table = [`[${name}]`, ...members].map((line) => line + eol);
  const place = placeOf(text, name);
  if (place !== undefined) return [...place.before, ...table, ...place.after].join("\n");
  const others = text.trim() === "" ? [] : [...text.trimEnd().split("\n"), ""].map((line) => line.replace(/\r$/, "") + eol);
  return [...others, ...table, ""].join("\n");
}

/** Removes a table and the blank lines before it. */
export function withoutTable(text: string, name: string): string {
  const place = placeOf(text, name);
  if (place === undefined) return text;
  const { before, after } = place;
  const kept = before.slice(0, before.findLastIndex((line) => line.trim() !== "") + 1);
  return [...kept, ...after].join("\n");
}

/** Finds a table, with those below it, from its header to its last line: comments behind that belong to what follows. */
function placeOf(text: string, name: string): { before: string[]; after: string[] } | undefined {
  const path = name.replaceAll(".", String.raw`[ \t]*\.[ \t]*`);
  const header = new RegExp(String.raw`^[ \t]*\[[ \t]*${path}[ \t]*\]`);
  const below = new RegExp(String.raw`^[ \t]*\[[ \t]*${path}[ \t]*[.\]]`);
  const lines = text.split("\n");
  const first = lines.findIndex((line) => header.test(line));
  if (first === -1) return undefined;
  const next = lines.findIndex((line, i) => i > first && /^[ \t]*\[/.test(line) && !below.test(line));
  const body = next === -1 ? lines : lines.slice(0, next);
  const last = body.findLastIndex((line) => !/^\s*(#.*)?$/.test(line));
  return { before: lines.slice(0, first), after: lines.slice(last + 1) };
}
