/**
 * The mutations of `scripts/mutate` follow the code: each applies to one place of one declaration, and what comes out can be read.
 *
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import { mutate, parseMutations } from "../scripts/mutation/mutation.ts";
import { MUTATIONS } from "../scripts/mutation/mutations.ts";
import { declarationsIn } from "../scripts/mutation/symbols.ts";

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
  const changes = MUTATIONS.map(({ file, symbol, find, replace }) => JSON.stringify([file, symbol, find, replace]));
  expect(new Set(changes).size).toBe(MUTATIONS.length);
});

test("a mutation whose text is missing, or there twice, is refused with its file", () => {
  const mutation = { breaks: "", file: "src/some.ts", symbol: undefined, find: "one", replace: "two", tests: [] };
  expect(mutate("zero one", mutation)).toBe("zero two");
  for (const source of ["zero", "one one"]) expect(() => mutate(source, mutation)).toThrow("src/some.ts");
});

const SOURCE = `import { one } from "./one.ts";

export const LIMITS = {
  one: 1,
};

/** Counts. */
export class Counter implements Disposable {
  readonly #step = one;
  readonly count = (by: number): number => {
    return by;
  };

  /** Adds one. */
  async #add(
    one: number,
  ): Promise<void> {
    if (one) {
      count(one);
    }

    return one;
  }

  get total(): number {
    return one;
  }
}

type Sum =
  | 1
  | 2;

async function add(one: number): Promise<void> {
  return one;
}
`;

test("a mutation is made in the declaration that it names, wherever that stands, and no other", () => {
  const declared = declarationsIn(SOURCE).map(({ symbol, start, end }) => [symbol, SOURCE.slice(start, end).split("\n").length]);
  expect(declared).toEqual([
    ["LIMITS", 3],
    ["Counter", 21],
    ["Counter.#step", 1],
    ["Counter.count", 3],
    ["Counter.#add", 9],
    ["Counter.total", 3],
    ["Sum", 3],
    ["add", 3],
  ]);
  const mutation = { breaks: "", file: "src/some.ts", find: "return one;", replace: "return 2;", tests: [] };
  for (const symbol of ["Counter.#add", "Counter.total", "add"]) {
    const mutated = mutate(SOURCE, { ...mutation, symbol });
    const { start } = declarationsIn(SOURCE).find((declaration) => declaration.symbol === symbol)!;
    expect([mutated.slice(0, start), mutated.split("return 2;").length]).toEqual([SOURCE.slice(0, start), 2]);
    const moved = `const first = 1;\n\n${SOURCE.replaceAll("LIMITS", "BOUNDS")}`;
    expect(mutate(moved, { ...mutation, symbol })).toBe(`const first = 1;\n\n${mutated.replaceAll("LIMITS", "BOUNDS")}`);
  }
  for (const symbol of ["Counter", "count", "LIMITS"]) expect(() => mutate(SOURCE, { ...mutation, symbol })).toThrow("src/some.ts");
});

test("mutations are read with their lines as they stand, and what is none is refused", () => {
  const text =
    "# Storage\n\nsrc/a.ts add\nit adds nothing\n-   a\n- b\n+ - c\n= one, unit/two\n\nsrc/a.tsx\nnothing is shown\n- a\n= one\n";
  const [one, two] = ["test/one.test.ts", "test/unit/two.test.ts"];
  expect(parseMutations(text)).toEqual([
    { breaks: "it adds nothing", file: "src/a.ts", symbol: "add", find: "  a\nb", replace: "- c", tests: [one, two] },
    { breaks: "nothing is shown", file: "src/a.tsx", symbol: undefined, find: "a", replace: "", tests: [one] },
  ]);
  for (const wrong of ["src/a.ts\n- a\n= one", "src/a.ts\nit adds\n= one", "src/a.ts\nit adds\n- a", "src/a.ts\nit adds\n- a\nb\n= one"])
    expect(() => parseMutations(wrong)).toThrow("This is no mutation");
});
