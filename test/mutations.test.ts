/**
 * The mutations of `scripts/mutate` follow the code: each applies to one place of it, and what comes out can be read.
 *
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import { mutate } from "../scripts/mutation/mutation.ts";
import { MUTATIONS } from "../scripts/mutation/mutations.ts";

const root = dirname(import.meta.dir);

test("each mutation applies to the code exactly once, leaves it readable and names tests that exist", () => {
  const transpilers = { ts: new Bun.Transpiler({ loader: "ts" }), tsx: new Bun.Transpiler({ loader: "tsx" }) };
  const problems: string[] = [];
  for (const mutation of MUTATIONS) {
    try {
      const transpiler = transpilers[mutation.file.endsWith(".tsx") ? "tsx" : "ts"];
      transpiler.scan(mutate(readFileSync(join(root, mutation.file), "utf8"), mutation));
    } catch (error) {
      problems.push(`${mutation.breaks}: ${String(error)}`);
    }
    for (const file of mutation.tests) if (!existsSync(join(root, file))) problems.push(`${mutation.breaks}: there is no ${file}`);
  }
  expect(problems).toEqual([]);
});

test("there are sixty mutations and more, no two of them the same", () => {
  expect(MUTATIONS.length).toBeGreaterThanOrEqual(60);
  expect(new Set(MUTATIONS.map(({ breaks }) => breaks)).size).toBe(MUTATIONS.length);
  expect(new Set(MUTATIONS.map(({ file, find, replace }) => JSON.stringify([file, find, replace]))).size).toBe(MUTATIONS.length);
});

test("a mutation whose text is missing, or there twice, is refused with its file", () => {
  const mutation = { breaks: "", file: "src/some.ts", find: "one", replace: "two", tests: [] };
  expect(mutate("zero one", mutation)).toBe("zero two");
  for (const source of ["zero", "one one"]) expect(() => mutate(source, mutation)).toThrow("src/some.ts");
});
