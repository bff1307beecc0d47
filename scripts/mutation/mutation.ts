/**
 * A mutation: one small fault in the code, and the tests that should notice it. Pure.
 *
 * @module
 */
import { Failure } from "../failure.ts";
import { textOf } from "./symbols.ts";

export interface Mutation {
  /** Promise that no longer holds with it. */
  readonly breaks: string;
  readonly file: string;
  /** The declaration of the file in which it is: `readLine`, `Reader.#take`; undefined for the file itself. */
  readonly symbol: string | undefined;
  /** Text that is there exactly once. */
  readonly find: string;
  readonly replace: string;
  /** Test files, of which at least one must fail. */
  readonly tests: readonly string[];
}

/**
 * Returns the source with the fault in it.
 *
 * @throws {Failure} unless the text is in the declaration exactly once: then the mutation has to follow what has become of the code
 */
export function mutate(source: string, { file, symbol, find, replace }: Mutation): string {
  const { start, end } = symbol === undefined ? { start: 0, end: source.length } : textOf(source, symbol, file);
  const text = source.slice(start, end);
  const found = text.split(find).length - 1;
  const place = symbol === undefined ? file : `${symbol} of ${file}`;
  if (found !== 1) throw new Failure(`${place} has this ${found} times instead of once, so the mutation does not apply:\n${find}`);
  if (find === replace) throw new Failure(`${place}: a mutation that changes nothing:\n${find}`);
  return source.slice(0, start) + text.replace(find, () => replace) + source.slice(end);
}

/**
 * Reads mutations. Each is a paragraph:
 *
 * ```
 * src/storage/callback.ts runCallback                  a file and one of its declarations, or the file alone
 * what a commit that threw has written is stored       what it breaks
 * - return [];                                         text of the declaration, of one line or more,
 * + return tx.writes;                                  and what stands there instead, if anything
 * = unit/storage/stores, races                         test files, of which at least one notices
 * ```
 */
export function parseMutations(text: string): Mutation[] {
  const paragraphs = text.split(/\n{2,}/).filter((paragraph) => paragraph.trim() !== "");
  return paragraphs.flatMap((paragraph) => {
    const lines = paragraph.replace(/^\n|\n$/g, "").split("\n");
    return lines[0]!.startsWith("#") ? [] : [mutationOf(lines)];
  });
}

function mutationOf(lines: readonly string[]): Mutation {
  const [place = "", breaks = ""] = lines;
  const marked = (mark: string) => lines.filter((line) => line.startsWith(mark)).map((line) => line.slice(mark.length).replace(/^ /, ""));
  const [find, replace, tests] = ["-", "+", "="].map(marked) as [string[], string[], string[]];
  const known = 2 + find.length + replace.length + tests.length;
  if (lines.length !== known || find.length === 0 || tests.length !== 1 || /^[-+=]/.test(breaks))
    throw new Failure(`This is no mutation:\n${lines.join("\n")}`);
  const [file = "", symbol] = place.split(" ");
  return {
    breaks,
    file,
    symbol,
    find: find.join("\n"),
    replace: replace.join("\n"),
    tests: tests[0]!.split(", ").map((name) => `test/${name}.test.ts`),
  };
}
