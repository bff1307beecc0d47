/**
 * Edits of JSON with comments that leave everything else as it was written: comments, order, indentation, line ends. Pure.
 *
 * @module
 */
import { createScanner, findNodeAtLocation, parse, parseTree, type Node, type ParseError } from "jsonc-parser";

const COMMA = ",";
/** `SyntaxKind.CommaToken`, whose enum exists for the compiler alone. */
const COMMA_TOKEN = 5;

/** @throws {Error} where it is no JSON, even with comments and trailing commas */
export function parseJson(text: string): unknown {
  const errors: ParseError[] = [];
  const value = parse(text, errors, { allowTrailingComma: true }) as unknown;
  const [error] = errors;
  if (error === undefined) return value;
  const line = text.slice(0, error.offset).split("\n").length;
  throw new Error(`it is not JSON from line ${line} on`);
}

/** Sets a member, or adds an element behind the others of an array, and makes what is above it. */
export function withValue(text: string, path: readonly string[], value: unknown, isElement = false): string {
  const root = parseTree(text, [], { allowTrailingComma: true });
  const found = root && findNodeAtLocation(root, [...path]);
  if (root === undefined || (found === undefined && path.length === 0)) return text;
  if (found !== undefined && !isElement)
    return text.slice(0, found.offset) + written(value, text, indentAt(text, found.offset)) + text.slice(endOf(found));
  if (found !== undefined) return withChild(text, found, undefined, value);
  const [name = "", above] = [path.at(-1), path.slice(0, -1)];
  const made = isElement ? [value] : value;
  const parent = findNodeAtLocation(root, above);
  return parent === undefined ? withValue(text, above, { [name]: made }) : withChild(text, parent, name, made);
}

/** Adds a member or an element behind the last one: on lines of its own, unless all of them are on one. */
function withChild(text: string, parent: Node, name: string | undefined, value: unknown): string {
  const [first, last] = [parent.children?.[0], parent.children?.at(-1)];
  const close = endOf(parent) - 1;
  const outer = indentAt(text, parent.offset);
  const key = name === undefined ? "" : `${JSON.stringify(name)}: `;
  const eol = lineEndOf(text);
  if (last === undefined) {
    const inner = outer + unitOf(text);
    const kept = text.slice(parent.offset + 1, close).trimEnd();
    return `${text.slice(0, parent.offset + 1)}${kept}${eol}${inner}${key}${written(value, text, inner)}${eol}${outer}${text.slice(close)}`;
  }
  const comma = commaBetween(text, endOf(last), close);
  const [lead = ""] = /\s*$/.exec(text.slice(0, close)) ?? [];
  const isOnLines = text.slice(parent.offset, first?.offset).includes("\n");
  const inner = isOnLines ? indentAt(text, first?.offset ?? close) : "";
  const child = isOnLines ? `${eol}${inner}${key}${written(value, text, inner)}` : ` ${key}${JSON.stringify(value)}`;
  const added = `${child}${comma === undefined ? "" : ","}${isOnLines && !lead.includes("\n") ? eol + outer : ""}`;
  const end = close - lead.length;
  const before = comma === undefined ? `${text.slice(0, endOf(last))},${text.slice(endOf(last), end)}` : text.slice(0, end);
  return before + added + text.slice(end);
}

/** A value as JSON that continues a line with this indentation. */
function written(value: unknown, text: string, indent: string): string {
  return JSON.stringify(value, undefined, unitOf(text)).replaceAll("\n", lineEndOf(text) + indent);
}

function lineEndOf(text: string): "\r\n" | "\n" {
  return text.includes("\r\n") ? "\r\n" : "\n";
}

function unitOf(text: string): string {
  return /^[ \t]+(?=["[{])/m.exec(text)?.[0] ?? "  ";
}

/** Blanks at the beginning of the line of an offset. */
function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(text.lastIndexOf("\n", offset - 1) + 1))?.[0] ?? "";
}

/** Removes a member or an element, and what is above it as long as that is empty then. */
export function withoutValue(text: string, path: readonly (string | number)[]): string {
  const root = parseTree(text, [], { allowTrailingComma: true });
  const value = root && findNodeAtLocation(root, [...path]);
  if (value === undefined || path.length === 0) return text;
  const cut = withoutChild(text, value.parent?.type === "property" ? value.parent : value);
  const above = path.slice(0, -1);
  if (!isBlank(cut, above)) return cut;
  return above.length > 0 ? withoutValue(cut, above) : cut.replace(/^(\s*)([{[])\s+/, "$1$2");
}

/** Checks whether a value holds neither members nor comments. */
function isBlank(text: string, path: readonly (string | number)[]): boolean {
  const root = parseTree(text, [], { allowTrailingComma: true });
  const node = root && findNodeAtLocation(root, [...path]);
  return node !== undefined && /^[{[]\s*[}\]]$/.test(text.slice(node.offset, endOf(node)));
}

/** Cuts a child with one comma, and its lines where nothing else stands there. A comment near it stays. */
function withoutChild(text: string, child: Node): string {
  const siblings = child.parent?.children ?? [];
  const at = siblings.indexOf(child);
  const [before, after] = [siblings[at - 1], siblings[at + 1]];
  const [start, end] = [child.offset, endOf(child)];
  const next = commaBetween(text, end, after?.offset ?? (child.parent === undefined ? end : endOf(child.parent) - 1));
  const previous = next === undefined && before !== undefined ? commaBetween(text, endOf(before), start) : undefined;
  const comma = next ?? previous;
  const isAdjacent = comma === end;
  const [from, to] = blankAround(text, start, isAdjacent ? end + 1 : end, after !== undefined);
  const rest = text.slice(0, from) + text.slice(to);
  if (comma === undefined || isAdjacent) return rest;
  const left = comma < start ? comma : comma - (to - from);
  return rest.slice(0, left) + rest.slice(left + 1);
}

/** Widens a cut to whole lines, or else to the space before what follows. */
function blankAround(text: string, from: number, to: number, hasNext: boolean): [from: number, to: number] {
  const [lead = ""] = /(\r?\n)?[ \t]*$/.exec(text.slice(0, from)) ?? [];
  const [trail = ""] = /^[ \t]*/.exec(text.slice(to)) ?? [];
  const endsLine = /^\r?\n/.test(text.slice(to + trail.length)) || !hasNext;
  if (lead.includes("\n") && endsLine) return [from - lead.length, to + (hasNext ? trail.length : 0)];
  return hasNext ? [from, to + trail.length] : [from - lead.length, to];
}

function commaBetween(text: string, from: number, to: number): number | undefined {
  const scanner = createScanner(text.slice(0, to), false);
  scanner.setPosition(from);
  for (;;) {
    const token: number = scanner.scan();
    if (scanner.getTokenLength() === 0) return undefined;
    if (token === COMMA_TOKEN && text[scanner.getTokenOffset()] === COMMA) return scanner.getTokenOffset();
  }
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}
