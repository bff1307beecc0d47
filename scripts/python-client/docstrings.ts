/**
 * Docstrings.
 *
 * @module
 */
import { wrapped } from "../client-types.ts";
import { refName, responses, WIDTH, type Argument, type Operation } from "./document.ts";

export function docOf({ summary, description = "", responses: all }: Operation, arguments_: readonly Argument[]): string {
  const errors = Object.entries(all)
    .filter(([status]) => ["404", "409"].includes(status))
    .flatMap(([, { $ref }]) => (responses[refName($ref ?? "")]?.description ?? "").split("\n\n"))
    .filter(Boolean);
  const raises = errors.length === 0 ? "" : `\n\nRaises:\n${errors.map((error) => `    CairnError: ${error}`).join("\n")}`;
  return docstring(withArguments(`${summary}.${description === "" ? "" : `\n\n${description}`}`, arguments_) + raises, 8);
}

export function withArguments(text: string, arguments_: readonly Argument[]): string {
  const lines = arguments_
    .filter(({ description }) => description !== "")
    .map(({ name, description }) => `    ${name}: ${description.replaceAll(/\s+/g, " ")}`);
  return lines.length === 0 ? text : `${text}\n\nArgs:\n${lines.join("\n")}`;
}

/** Wraps a text as a docstring; lines of an argument are set in below its name. */
export function docstring(text: string | undefined, indent: number): string {
  if (text === undefined || text === "") return "";
  const space = " ".repeat(indent);
  const escaped = text.replaceAll("\\", "\\\\").replaceAll('"""', '\\"\\"\\"');
  const lines = escaped.split("\n").flatMap((line) => {
    const own = /^ */.exec(line)?.[0] ?? "";
    const [first = "", ...rest] = wrapped(line.trim(), WIDTH - indent - own.length - 8);
    return [own + first, ...rest.map((more) => `${own}${own === "" ? "" : "    "}${more}`)];
  });
  if (lines.length === 1 && !escaped.endsWith('"')) return `${space}"""${escaped}"""\n`;
  return `${[`"""${lines[0] ?? ""}`, ...lines.slice(1), '"""'].map((line) => `${space}${line}`.trimEnd()).join("\n")}\n`;
}
