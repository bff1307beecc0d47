/**
 * Every promise of the API is held by a test that exists, and every limit by one that is named.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../src/lib/limits.ts";
import { SPECIFICATION } from "./support/specification.ts";

/** The names of a file's tests, as they are written: templates too. */
function namesIn(text: string): Set<string> {
  return new Set(Array.from(text.matchAll(/^\s*test\(\s*(["`])(.*?)\1,\s*(?:async )?\(/gms), ([, , name = ""]) => name));
}

/** The promises whose tests do not exist. */
function withoutTest(file: string, names: readonly string[]): string[] {
  const known = namesIn(readFileSync(join(import.meta.dir, file), "utf8"));
  return names.filter((name) => !known.has(name)).map((name) => `${file} › ${name}`);
}

test("every promise of the specification is the name of a test", () => {
  const promises = Object.entries(SPECIFICATION).map(([file, rows]) => ({ file, names: Object.keys(rows) }));
  expect(promises.flatMap(({ file, names }) => withoutTest(file, names))).toEqual([]);
  expect(promises.flatMap(({ names }) => names).length).toBeGreaterThan(300);
});

test("a test that does not exist is found out", () => {
  const names = ["a list of nothing has neither a first nor a last id", "a list of something has neither a first nor a last id"];
  expect(withoutTest("sessions.test.ts", names)).toEqual([`sessions.test.ts › ${names[1]}`]);
});

test("every limit is held by a test", () => {
  const held = new Set<string>(Object.values(SPECIFICATION).flatMap((rows) => Object.values(rows).flat()));
  expect(Object.keys(LIMITS).filter((name) => !held.has(name))).toEqual([]);
});
