/**
 * Turns in a transcript: a prompt with all text of the answer until the next one. Formats of transcripts are internal to their agents, so
 * they are read loosely. Pure.
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

/** An answer, of which parts may be known already. */
export type Answered = Pick<SeenTurn, "output" | "model" | "tools">;

export interface Seen {
  /** Rest of an answer, before the first prompt. */
  readonly rest: Answered;
  readonly turns: readonly SeenTurn[];
  /** Version of the agent. */
  readonly version: string | undefined;
  /** Number of lines that are not JSON. */
  readonly unread: number;
  /** Number of prompts and of pieces of an answer: none in a transcript that grew means that its format has changed. */
  readonly understood: number;
}

/** A piece of an answer. */
export interface SeenAnswer {
  /** Id of a piece that the agent writes again as it grows: the last one counts. */
  readonly id?: string | undefined;
  readonly text: string;
  readonly tools?: readonly string[];
  readonly model?: string | undefined;
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** Length of a text in a turn. */
export const TEXT_LENGTH_MAX = 50_000;
const TOOLS_MAX = 50;
/** Text that the agent or a hook put into a prompt, and what its author wants nobody to keep. */
const NOT_SAID = /<(cairn-memory|hook_context|system-reminder|private)\b[^>]*>[^]*?(<\/\1>|$)/g;
/** Prompts that are commands of the agent, with what these printed. */
const NO_PROMPT = /^\s*(<(command-|local-command-|bash-)|\[Request interrupted)/;
const NEWLINE = 10;

/** Collects the turns of a transcript in their order. */
export class SeenTurns {
  readonly #turns: { prompt: Pick<SeenTurn, "id" | "at" | "input">; from: number; answers: Map<string | number, SeenAnswer> }[] = [];
  readonly #rest = new Map<string | number, SeenAnswer>();
  #understood = 0;

  prompt(prompt: Pick<SeenTurn, "id" | "at" | "input">, from: number): void {
    this.#understood += 1;
    this.#turns.push({ prompt, from, answers: new Map() });
  }

  answer(answer: SeenAnswer): void {
    this.#understood += 1;
    const answers = this.#turns.at(-1)?.answers ?? this.#rest;
    answers.set(answer.id ?? answers.size, answer);
  }

  /** @param unread - number of lines that are not JSON */
  seen(version: string | undefined, unread: number): Seen {
    const turns = this.#turns.map(({ prompt, from, answers }) => ({ ...prompt, ...answered(answers), from }));
    return { rest: answered(this.#rest), turns, version, unread, understood: this.#understood };
  }
}

function answered(answers: ReadonlyMap<string | number, SeenAnswer>): Answered {
  const all = [...answers.values()];
  return {
    output: all.flatMap(({ text }) => (text === "" ? [] : [text])).join("\n\n"),
    model: all.findLast(({ model }) => model !== undefined)?.model,
    tools: all.flatMap(({ tools = [] }) => tools).slice(0, TOOLS_MAX),
  };
}

/** Adds to the answer of a turn what was read after it. */
export function continued(open: SeenTurn, rest: Answered): SeenTurn {
  const output = [open.output, rest.output].filter((text) => text !== "").join("\n\n");
  const tools = [...open.tools, ...rest.tools].slice(0, TOOLS_MAX);
  return { ...open, output: output.slice(0, TEXT_LENGTH_MAX), tools, model: rest.model ?? open.model };
}

/** Goes through lines of JSON. @returns how many are none */
export function eachLine(bytes: Uint8Array, use: (line: JsonObject, from: number) => void): number {
  let unread = 0;
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(NEWLINE, from);
    const to = end === -1 ? bytes.length : end;
    const text = new TextDecoder().decode(bytes.subarray(from, to));
    const line = lineIn(text);
    if (line !== undefined) use(line, from);
    else if (text.trim() !== "") unread += 1;
    from = to + 1;
  }
  return unread;
}

function lineIn(text: string): JsonObject | undefined {
  try {
    const line = JSON.parse(text) as unknown;
    return isObject(line) ? line : undefined;
  } catch {
    return undefined;
  }
}

/** Returns what a person wrote of a prompt. */
export function saidIn(text: string): string {
  return text.replaceAll(NOT_SAID, "").trim();
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Returns the text of content that is a text, or a list of parts of which some have one. */
export function textIn(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.flatMap((part) => (isObject(part) && typeof part["text"] === "string" ? [part["text"]] : [])).join("\n");
}

/** Names a tool with the file that it was used on; other inputs can be secrets. */
export function toolNamed(name: string, input: unknown): string {
  const file = isObject(input) ? textOf(input["file_path"]) : undefined;
  return file === undefined ? name : `${name} ${file}`;
}

/**
 * Reads the transcript of Claude Code.
 *
 * @param bytes - whole lines, of which the first need not be a prompt
 */
export function turnsIn(bytes: Uint8Array): Seen {
  const turns = new SeenTurns();
  let version: string | undefined;
  const unread = eachLine(bytes, (line, from) => {
    version = textOf(line["version"]) ?? version;
    if (!isOfMain(line)) return;
    const prompt = line["type"] === "user" ? promptIn(line) : undefined;
    if (prompt !== undefined) turns.prompt(prompt, from);
    if (line["type"] === "assistant") turns.answer(answerIn(line));
  });
  return turns.seen(version, unread);
}

function isOfMain(line: JsonObject): boolean {
  return ["isMeta", "isSidechain", "isCompactSummary"].every((name) => line[name] !== true);
}

function promptIn(line: JsonObject): Pick<SeenTurn, "id" | "at" | "input"> | undefined {
  const id = textOf(line["uuid"]);
  const texts = textsOf(line).filter((text) => !NO_PROMPT.test(text));
  const input = saidIn(texts.join("\n"));
  return id === undefined || input === "" ? undefined : { id, at: textOf(line["timestamp"]), input };
}

function answerIn(line: JsonObject): SeenAnswer {
  const tools = blocksOf(line).flatMap(({ type, name, input }) =>
    type === "tool_use" && typeof name === "string" ? [toolNamed(name, input)] : [],
  );
  const { message } = line;
  return { text: textsOf(line).join("\n").trim(), tools, model: isObject(message) ? textOf(message["model"]) : undefined };
}

function textsOf(line: JsonObject): readonly string[] {
  return blocksOf(line).flatMap(({ type, text }) => (type === "text" && typeof text === "string" ? [text] : []));
}

function blocksOf({ message }: JsonObject): readonly JsonObject[] {
  const content = isObject(message) ? message["content"] : undefined;
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content.filter(isObject) : [];
}
