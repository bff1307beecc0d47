/**
 * Declarations of a source file by their lines: the formatter indents all that belongs to one. Pure.
 *
 * @module
 */
import { Failure } from "../failure.ts";

export interface Declaration {
  /** `name`, or `Class.name` for a member of a class. */
  readonly symbol: string;
  readonly start: number;
  readonly end: number;
}

const TOP = /^(?:export )?(?:default )?(?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|interface|type|const|let|enum) (\w+)/;
const MEMBER = /^ {2}(?:(?:static|readonly|async|override|private|declare|abstract|get|set) )*\*?(#?\w+)(?=[(<:=?!]| =)/;
const CLASS = /^(?:export )?(?:default )?(?:abstract )?class /;
/** A line that goes on with the declaration before it: `): void {`, or one that ends it: `};`. */
const CLOSING = /^\s*[)\]}`]/;
const OPENING = /(?:[([{]|=>)$/;

/** Returns the declarations of a file and the members of its classes, in their order. */
export function declarationsIn(source: string): Declaration[] {
  const lines = source.split("\n");
  const offsets = lines.map(() => 0);
  for (let i = 1; i < lines.length; i++) offsets[i] = offsets[i - 1]! + lines[i - 1]!.length + 1;
  const found: Declaration[] = [];
  const add = (symbol: string, first: number, indent: number): number => {
    const last = lastLineOf(lines, first, indent);
    found.push({ symbol, start: offsets[first]!, end: offsets[last]! + lines[last]!.length });
    return last;
  };
  for (let i = 0; i < lines.length; i++) {
    const name = TOP.exec(lines[i]!)?.[1];
    if (name === undefined) continue;
    const last = add(name, i, 0);
    if (!CLASS.test(lines[i]!)) continue;
    for (let j = i + 1; j < last; j++) {
      const member = MEMBER.exec(lines[j]!)?.[1];
      if (member !== undefined) j = add(`${name}.${member}`, j, 2);
    }
  }
  return found;
}

function lastLineOf(lines: readonly string[], first: number, indent: number): number {
  let last = first;
  for (let i = first + 1; i < lines.length; i++) {
    const line = lines[i]!;
    if (line.trim() === "") continue;
    if (line.length - line.trimStart().length > indent) last = i;
    else if (CLOSING.test(line)) {
      last = i;
      if (!OPENING.test(line)) break;
    } else break;
  }
  return last;
}

/** Returns where a declaration is. One of several lines of that name, such as a getter and its setter, is all of them. */
export function textOf(source: string, symbol: string, file: string): { start: number; end: number } {
  const found = declarationsIn(source).filter((declaration) => declaration.symbol === symbol);
  if (found.length === 0) throw new Failure(`${file} has no ${symbol}, so the mutation does not apply`);
  return { start: found[0]!.start, end: found.at(-1)!.end };
}
