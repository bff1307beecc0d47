/**
 * Turns in a transcript of Claude Code: a prompt with all text of the answer until the next one. The format is internal to the agent, so
 * it is read loosely. Pure.
 *
 * @module
 */

export interface SeenTurn {
  /** Id of the prompt. */
  readonly id: string;
  readonly at: string | undefined;
  readonly input: string;
  readonly output: string;
  readonly model: string | undefined;
  readonly tools: readonly string[];
  /** Offset of its first byte in what was read. */
  readonly from: number;
}

export interface Seen {
  readonly turns: readonly SeenTurn[];
  /** Version of the agent. */
  readonly version: string | undefined;
  /** Number of lines that are not JSON. */
  readonly unread: number;
}

interface Line {
  readonly type?: unknown;
  readonly uuid?: unknown;
  readonly timestamp?: unknown;
  readonly version?: unknown;
  readonly isMeta?: unknown;
  readonly isSidechain?: unknown;
  readonly isCompactSummary?: unknown;
  readonly message?: { readonly content?: unknown; readonly model?: unknown };
}

const TOOLS_MAX = 50;
/** Text that the agent or a hook put into a prompt, and what its author wants nobody to keep. */
const NOT_SAID = /<(cairn-memory|hook_context|system-reminder|private)\b[^>]*>[^]*?(<\/\1>|$)/g;
/** Prompts that are commands of the agent, with what these printed. */
const NO_PROMPT = /^\s*(<(command-|local-command-|bash-)|\[Request interrupted)/;
const NEWLINE = 10;

/** @param bytes - whole lines, of which the first need not be a prompt */
export function turnsIn(bytes: Uint8Array): Seen {
  const turns: { -readonly [Name in keyof SeenTurn]: SeenTurn[Name] }[] = [];
  let version: string | undefined;
  let unread = 0;
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, from);
    const to = end === -1 ? bytes.length : end;
    const line = lineIn(bytes.subarray(from, to));
    if (line === undefined) unread += to > from ? 1 : 0;
    else if (typeof line.version === "string") version = line.version;
    const prompt = line && promptIn(line);
    if (prompt !== undefined) turns.push({ ...prompt, output: "", model: undefined, tools: [], from });
    const turn = turns.at(-1);
    if (line?.type === "assistant" && isOfMain(line) && turn !== undefined) {
      const { text, tools } = answerIn(line);
      if (text !== "") turn.output = turn.output === "" ? text : `${turn.output}\n\n${text}`;
      turn.tools = [...turn.tools, ...tools].slice(0, TOOLS_MAX);
      if (typeof line.message?.model === "string") turn.model = line.message.model;
    }
    from = to + 1;
  }
  return { turns, version, unread };
}

function lineIn(bytes: Uint8Array): Line | undefined {
  try {
    const line = JSON.parse(new TextDecoder().decode(bytes)) as unknown;
    return typeof line === "object" && line !== null ? line : undefined;
  } catch {
    return undefined;
  }
}

function isOfMain({ isMeta, isSidechain, isCompactSummary }: Line): boolean {
  return isMeta !== true && isSidechain !== true && isCompactSummary !== true;
}

function promptIn(line: Line): Pick<SeenTurn, "id" | "at" | "input"> | undefined {
  if (line.type !== "user" || !isOfMain(line) || typeof line.uuid !== "string") return undefined;
  const said = blocksOf(line)
    .map((block) => (block["type"] === "text" && typeof block["text"] === "string" ? block["text"] : ""))
    .filter((text) => !NO_PROMPT.test(text))
    .join("\n");
  const input = said.replaceAll(NOT_SAID, "").trim();
  if (input === "") return undefined;
  return { id: line.uuid, at: typeof line.timestamp === "string" ? line.timestamp : undefined, input };
}

function answerIn(line: Line): { text: string; tools: string[] } {
  const blocks = blocksOf(line);
  const texts = blocks.flatMap((block) => (block["type"] === "text" && typeof block["text"] === "string" ? [block["text"]] : []));
  const tools = blocks.flatMap((block) => (block["type"] === "tool_use" && typeof block["name"] === "string" ? [toolIn(block)] : []));
  return { text: texts.join("\n").trim(), tools };
}

/** Names a tool with the file that it was used on; other inputs can be secrets. */
function toolIn({ name, input }: Readonly<Record<string, unknown>>): string {
  const { file_path: file } = (input ?? {}) as { file_path?: unknown };
  return typeof file === "string" ? `${name as string} ${file}` : (name as string);
}

function blocksOf({ message }: Line): readonly Readonly<Record<string, unknown>>[] {
  const content = message?.content;
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.filter((block): block is Record<string, unknown> => typeof block === "object" && block !== null);
}
