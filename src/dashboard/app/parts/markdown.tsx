/**
 * Text with the marks of Markdown that models write: headings, lists, quotes, code, bold, italics and links. Everything becomes text
 * nodes; what is no mark stays as it was written. One pass over the lines, and one over each line.
 *
 * @module
 */
import type { ComponentChildren, VNode } from "preact";

const HEADING = /^(#{1,6})\s+(\S.*)$/;
const ITEM = /^\s{0,9}(?:[-*+]|\d{1,9}[.)])\s+(\S.*)$/;
const QUOTE = /^>\s?(.*)$/;
const FENCE = /^\s{0,3}(?:```|~~~)/;
/** Code, bold, italics, a link: each ends on its line, within this many characters. */
const INLINE = /`([^`\n]{1,500})`|\*\*([^*\n]{1,500})\*\*|\*([^*\s][^*\n]{0,500})\*|\[([^\]\n]{1,200})\]\((https?:\/\/[^\s)]{1,1000})\)/g;
/** Longer texts are shown as they are. */
export const MARKDOWN_LENGTH_MAX = 50_000;

export function Markdown({ text }: { text: string }) {
  return <div class="text markdown">{blocksOf(text.split("\n"))}</div>;
}

function blocksOf(lines: readonly string[]): VNode[] {
  const blocks: VNode[] = [];
  for (let at = 0; at < lines.length;) {
    const line = lines[at] ?? "";
    const until = endOf(lines, at);
    blocks.push(<Block key={at} line={line} lines={lines.slice(at, until)} />);
    at = until;
  }
  return blocks;
}

/** The line behind a block: code goes to its fence, a list or a quote as far as its lines go on, all else is a line. */
function endOf(lines: readonly string[], start: number): number {
  const first = lines[start] ?? "";
  let at = start + 1;
  if (FENCE.test(first)) {
    while (at < lines.length && !FENCE.test(lines[at] ?? "")) at++;
    return at + 1;
  }
  const mark = [ITEM, QUOTE].find((one) => one.test(first));
  if (mark === undefined) return at;
  while (mark.test(lines[at] ?? "")) at++;
  return at;
}

function Block({ line, lines }: { line: string; lines: readonly string[] }) {
  if (FENCE.test(line))
    return (
      <pre tabIndex={0}>
        {lines
          .slice(1)
          .filter((one) => !FENCE.test(one))
          .join("\n")}
      </pre>
    );
  const heading = HEADING.exec(line);
  if (heading !== null)
    return (
      <p class="strong" dir="auto">
        {inline(heading[2] ?? "")}
      </p>
    );
  if (ITEM.test(line)) {
    return (
      <ul>
        {lines.map((item, index) => (
          <li key={index} dir="auto">
            {inline(ITEM.exec(item)?.[1] ?? "")}
          </li>
        ))}
      </ul>
    );
  }
  if (QUOTE.test(line))
    return (
      <blockquote>
        {lines.map((one, index) => (
          <p key={index} dir="auto">
            {inline(QUOTE.exec(one)?.[1] ?? "")}
          </p>
        ))}
      </blockquote>
    );
  return <p dir="auto">{inline(line)}</p>;
}

function inline(line: string): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const found of line.matchAll(INLINE)) {
    const [whole, code, bold, italic, name, href] = found;
    if (found.index > end) parts.push(line.slice(end, found.index));
    end = found.index + whole.length;
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (bold !== undefined) parts.push(<b>{bold}</b>);
    else if (italic !== undefined) parts.push(<i>{italic}</i>);
    else if (href !== undefined)
      parts.push(
        <a href={href} rel="noreferrer" target="_blank">
          {name}
        </a>,
      );
  }
  if (end < line.length) parts.push(line.slice(end));
  return parts;
}
