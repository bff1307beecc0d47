/**
 * Transcripts of coding agents as sessions and turns, by the names that hooks give them: what a hook has logged is there already.
 *
 * @module
 */
import { basename, isAbsolute, relative } from "node:path";
import type { JsonObject } from "../../lib/json.ts";
import { parseInstant } from "../../lib/time.ts";
import { OperationError } from "../../operations/report.ts";
import { codexTurnsIn } from "../hook/codex-transcript.ts";
import { continued, isObject, turnsIn, type Seen, type SeenTurn } from "../hook/transcript.ts";
import { LINE_BYTES_MAX, turnOf } from "../hook/turns.ts";
import type { Found, Selection, SourceSession } from "./found.ts";
import { filesOf, linesOf } from "./files.ts";
import { objectOfLine } from "./values.ts";

export interface TranscriptAgent {
  readonly name: string;
  readonly title: string;
  readonly turnsIn: (bytes: Uint8Array) => Seen;
  /** Session and directory that a line names. */
  readonly placeIn: (line: JsonObject) => { readonly session: unknown; readonly directory: unknown };
  /** Finds the session in the name of a file, which counts before lines: a resumed session may hold those of another. */
  readonly sessionOfFile: (name: string) => string | undefined;
}

export const CLAUDE_CODE: TranscriptAgent = {
  name: "claude-code",
  title: "Claude Code",
  turnsIn,
  placeIn: ({ sessionId, cwd }) => ({ session: sessionId, directory: cwd }),
  sessionOfFile: (name) => /^([\da-f]{8}-[\da-f-]{27})\.jsonl$/i.exec(name)?.[1],
};

export const CODEX: TranscriptAgent = {
  name: "codex",
  title: "Codex",
  turnsIn: codexTurnsIn,
  placeIn: ({ type, payload }) =>
    type === "session_meta" && isObject(payload) ? { session: payload["id"], directory: payload["cwd"] } : NO_PLACE,
  sessionOfFile: (name) => /-([\da-f]{8}-[\da-f-]{27})\.jsonl$/i.exec(name)?.[1],
};
const NO_PLACE = { session: undefined, directory: undefined };

const STEP_BYTES = 1_048_576;
/** An agent whose transcript was written later may still be at work. */
const AT_WORK_MS = 10 * 60_000;
const NEWLINE = Buffer.from("\n");

/** @throws {OperationError} where nothing is a transcript of the agent */
export async function* transcripts(agent: TranscriptAgent, paths: readonly string[], selection: Selection): AsyncGenerator<Found> {
  let first: string | undefined;
  let isAnyKnown = false;
  for await (const path of filesOf(paths, (name) => name.endsWith(".jsonl"))) {
    first ??= path;
    const transcript = new Transcript(agent, path, selection);
    yield* transcript.found();
    isAnyKnown ||= transcript.isKnown;
  }
  if (isAnyKnown) return;
  const place = first === undefined ? `${paths.join(", ")} has no file that ends with .jsonl` : `${first}, line 1, names no session`;
  throw new OperationError(`There is no transcript of ${agent.title}: ${place}.`);
}

class Transcript {
  readonly #agent: TranscriptAgent;
  readonly #path: string;
  readonly #selection: Selection;
  #sessionId: string | undefined;
  #directory: string | undefined;
  #session: SourceSession | undefined;
  #lastAt: number | undefined;
  /** The turn whose answer may continue. */
  #open: SeenTurn | undefined;

  constructor(agent: TranscriptAgent, path: string, selection: Selection) {
    this.#agent = agent;
    this.#path = path;
    this.#selection = selection;
  }

  get isKnown(): boolean {
    return this.#sessionId !== undefined;
  }

  async *found(): AsyncGenerator<Found> {
    let step: Buffer[] = [];
    let bytesOfStep = 0;
    for await (const { number, bytes } of linesOf(this.#path)) {
      const reason = bytes === undefined ? `longer than ${LINE_BYTES_MAX / 1_048_576} MiB` : this.#note(bytes);
      if (reason === undefined && bytes !== undefined) {
        step.push(Buffer.from(bytes), NEWLINE);
        bytesOfStep += bytes.length + 1;
      }
      if (reason === undefined && bytesOfStep < STEP_BYTES) continue;
      yield* this.#take(step);
      [step, bytesOfStep] = [[], 0];
      if (reason !== undefined) yield { kind: "skipped", place: `${this.#path}, line ${number}`, reason };
    }
    yield* this.#take(step);
    if (this.#open === undefined) return;
    const { now } = this.#selection;
    if (this.#lastAt !== undefined && now - this.#lastAt < AT_WORK_MS) yield { kind: "open", place: this.#path };
    else yield* this.#turn(this.#open);
  }

  /** @returns why the line does not fit */
  #note(bytes: Buffer): string | undefined {
    const text = new TextDecoder().decode(bytes);
    if (text.trim() === "") return undefined;
    const line = objectOfLine(text);
    if (typeof line === "string") return line;
    const { session, directory } = this.#agent.placeIn(line);
    if (typeof session === "string" && session !== "") this.#sessionId ??= this.#agent.sessionOfFile(basename(this.#path)) ?? session;
    if (typeof directory === "string" && directory !== "") this.#directory ??= directory;
    const { timestamp } = line;
    if (typeof timestamp === "string") this.#lastAt = parseInstant(timestamp) ?? this.#lastAt;
    return undefined;
  }

  /** Gives the turns of a step that are whole: the last one may continue in the next. */
  *#take(step: readonly Buffer[]): Generator<Found> {
    const open = this.#open;
    const { rest, turns } = this.#agent.turnsIn(Buffer.concat([...step]));
    const all = open === undefined ? [...turns] : [continued(open, rest), ...turns];
    // A version of it writes a prompt twice; here the step ended in between.
    const [first, again] = all;
    if (open !== undefined && this.#agent === CODEX && first?.output === "" && first.input === again?.input)
      all.splice(0, 2, continued(first, again));
    for (const turn of all.slice(0, -1)) yield* this.#turn(turn);
    this.#open = all.at(-1);
  }

  *#turn(seen: SeenTurn): Generator<Found> {
    const { since, projects } = this.#selection;
    const at = parseInstant(seen.at ?? "");
    if (this.#sessionId === undefined) return;
    if (since !== undefined && (at === undefined || at < since)) return;
    if (projects?.some((project) => isBelow(this.#directory, project)) === false) return;
    yield { kind: "turn", session: (this.#session ??= this.#named(this.#sessionId)), turn: turnOf(seen) };
  }

  #named(sessionId: string): SourceSession {
    const { name } = this.#agent;
    const directory = this.#directory === undefined ? {} : { directory: this.#directory };
    return { externalId: `code:${name}:${sessionId}`.slice(0, 256), agentId: name, metadata: { source: "import", ...directory } };
  }
}

function isBelow(directory: string | undefined, project: string): boolean {
  // One of another system would be one below the directory of this process.
  if (directory === undefined || !isAbsolute(directory)) return false;
  const path = relative(project, directory);
  return path !== ".." && !path.startsWith("../") && !isAbsolute(path);
}
