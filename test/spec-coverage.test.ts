/**
 * Every promise of the API is held by a test that exists, and nothing that the API has is without a promise.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";
import { endpointsOf } from "../src/app.ts";
import { DIMENSION } from "../src/embeddings/embedder.ts";
import { ERRORS } from "../src/lib/errors.ts";
import { ID_PREFIXES } from "../src/lib/ids.ts";
import { LIMITS } from "../src/lib/limits.ts";
import { EVENT_TYPES, TRACE_ACTIONS } from "../src/traces/events.ts";
import { startCairn } from "./support/cairn.ts";
import { SPECIFICATION } from "./support/specification.ts";

/** A test as its file names it. */
interface KnownTest {
  /** As it is written. */
  name: string;
  /** Of a template: what any values make of it, in groups. */
  pattern: RegExp;
  /** The file, in which those values stand as text. */
  text: string;
}

function testsIn(file: string): KnownTest[] {
  const text = readFileSync(join(import.meta.dir, file), "utf8");
  // Digits stand in groups in code and not in names.
  const values = text.replaceAll(/(?<=\d)_(?=\d)/g, "");
  return Array.from(text.matchAll(/^\s*test\(\s*(["`])/gm), (match) => {
    const quote = match[1] ?? "";
    const start = match.index + match[0].length;
    const { pieces, end } = literalAt(text, start, quote);
    const pattern = new RegExp(`^${pieces.map((piece) => RegExp.escape(piece)).join("(.+)")}$`, "s");
    return { name: text.slice(start, end), pattern, text: values };
  });
}

/** A text literal from behind its first quote to its last: what stands between the values that it puts in, which may be literals again. */
function literalAt(text: string, start: number, quote: string): { pieces: string[]; end: number } {
  const pieces = [""];
  let i = start;
  for (; i < text.length && text[i] !== quote; i++) {
    if (text[i] === "\\") {
      pieces.push((pieces.pop() ?? "") + (text[++i] ?? ""));
    } else if (quote === "`" && text.startsWith("${", i)) {
      i = valueEnd(text, i + 2);
      // Two values side by side are one.
      if (pieces.length === 1 || pieces.at(-1) !== "") pieces.push("");
    } else {
      pieces.push((pieces.pop() ?? "") + (text[i] ?? ""));
    }
  }
  return { pieces, end: i };
}

/** Where the expression in a template that starts here has its closing brace. */
function valueEnd(text: string, start: number): number {
  for (let i = start, depth = 0; i < text.length; i++) {
    const sign = text[i] ?? "";
    if (sign === "{") depth++;
    else if (sign === "}" && depth-- === 0) return i;
    else if (sign === '"' || sign === "'" || sign === "`") i = literalAt(text, i + 1, sign).end;
  }
  return text.length;
}

const TESTS = new Map(Array.from(new Glob("**/*.test.ts").scanSync(import.meta.dir), (file) => [file, testsIn(file)]));

/** Whether a file has the test: by its name, or as a case of a template whose values all stand in the file, word by word. */
function exists(reference: string): boolean {
  const [file = "", name = ""] = reference.split(" › ", 2);
  return (TESTS.get(file) ?? []).some((known) => {
    if (known.name === name) return true;
    const words =
      known.pattern
        .exec(name)
        ?.slice(1)
        .flatMap((value) => value.split(/,? /)) ?? [];
    return words.length > 0 && words.every((word) => known.text.includes(word));
  });
}

const ROWS = SPECIFICATION.flatMap(({ title, rows }) =>
  Object.entries(rows).map(([row, tests]) => ({ title, row, tests: typeof tests === "string" ? [tests] : tests })),
);

/** The names of a section's rows: what stands before the colon. */
function namesIn(title: string): Set<string> {
  return new Set(ROWS.filter((row) => row.title === title).map(({ row }) => row.split(": ", 1)[0] ?? ""));
}

/** What a section ought to have a row for and has none. */
function missing(title: string, names: Iterable<string>): string[] {
  const there = namesIn(title);
  return Array.from(names).flatMap((name) => (there.has(name) ? [] : [`${title} › ${name}`]));
}

test("every row of the specification names a test, and each of them exists", () => {
  const untested = ROWS.filter(({ tests }) => tests.length === 0).map(({ title, row }) => `${title} › ${row}`);
  const unknown = ROWS.flatMap(({ title, row, tests }) =>
    tests.filter((name) => !exists(name)).map((name) => `${title} › ${row} → ${name}`),
  );
  expect({ untested, unknown }).toEqual({ untested: [], unknown: [] });
  expect(ROWS.length).toBeGreaterThan(300);
});

test("every row says what it promises, and no section stands there twice", () => {
  expect(ROWS.filter(({ row }) => !/^\S[^:]*: \S/.test(row)).map(({ title, row }) => `${title} › ${row}`)).toEqual([]);
  const titles = SPECIFICATION.map(({ title }) => title);
  expect(titles.filter((title, i) => titles.indexOf(title) !== i)).toEqual([]);
});

test("a test that does not exist is found out", () => {
  const known = "sessions.test.ts › a list of nothing has neither a first nor a last id";
  const cases = [
    known,
    known.replace("nothing", "something"),
    known.replace("sessions", "turns"),
    "events.test.ts › turn leaves the events turn.added, trace.created, with the affected record and the trace",
    "events.test.ts › turn leaves the events turn.removed, trace.created, with the affected record and the trace",
    "rate-limit.test.ts › a pro key may make 2000 requests at once and 1000 a minute from then on",
    "http.test.ts › a GET of /v2/sessions is 404 resource_not_found",
    "http.test.ts › a GET of /v7/sessions is 404 resource_not_found",
    "sessions.test.ts",
    "",
  ];
  expect(cases.map(exists)).toEqual([true, false, false, true, false, true, true, false, false, false]);
});

test("every endpoint has its rows, and every field of its query and body", async () => {
  await using cairn = await startCairn();
  const endpoints = endpointsOf(cairn.service);
  const without = endpoints.flatMap(({ method, path, query, body }) =>
    missing(`${method} ${path}`, ["answer", ...Object.keys(query.properties), ...Object.keys(body?.properties ?? {})]),
  );
  expect(without).toEqual([]);
  const known = new Set(endpoints.map(({ method, path }) => `${method} ${path}`));
  expect(SPECIFICATION.map(({ title }) => title).filter((title) => title.includes(" /v1/") && !known.has(title))).toEqual([]);
});

interface Schema {
  title?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
}

/** The fields of every kind of record in an answer. All pages are lists, whatever is on them, and all deletions alike. */
function fieldsOf(schema: Schema, found: Map<string, string[]>): Map<string, string[]> {
  const { title, properties = {}, items } = schema;
  if (title !== undefined) found.set(title.replace(/^.+List$/, "List").replace(/^Deleted.+$/, "Deleted"), Object.keys(properties));
  for (const inner of [...Object.values(properties), ...(items === undefined ? [] : [items])]) fieldsOf(inner, found);
  return found;
}

test("every field of every answer has its row", async () => {
  await using cairn = await startCairn();
  const answers = new Map<string, string[]>();
  for (const { response } of endpointsOf(cairn.service)) fieldsOf(response, answers);
  expect(answers.size).toBeGreaterThan(10);
  expect(Array.from(answers).flatMap(([title, fields]) => missing(title, fields))).toEqual([]);
});

test("embeddings have 1536 numbers", () => {
  expect(DIMENSION).toBe(1536);
});

const LISTS: { title: string; names: readonly string[] }[] = [
  { title: "Error codes", names: Object.keys(ERRORS) },
  { title: "Limits", names: Object.keys(LIMITS) },
  { title: "Trace actions", names: TRACE_ACTIONS },
  { title: "Events", names: EVENT_TYPES },
  { title: "Ids", names: ID_PREFIXES },
];

for (const { title, names } of LISTS) {
  test(`every one of them has its row: ${title}`, () => {
    expect(missing(title, names)).toEqual([]);
  });
}
