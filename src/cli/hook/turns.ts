/**
 * Logs what is new in a transcript as turns of the agent's session. The place up to which that is done moves after the server's answer,
 * and a turn has the id of its prompt as external id: however often it is sent it is logged once.
 *
 * @module
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { systemClock } from "../../lib/clock.ts";
import { hasCode } from "../../lib/errors.ts";
import { parseInstant } from "../../lib/time.ts";
import { pastTime } from "../import/found.ts";
import type { HookEnvironment } from "./environment.ts";
import type { HookEvent } from "./event.ts";
import type { KeptSession, SessionFile } from "./kept.ts";
import { Refusal, type HookServer } from "./server.ts";
import { continued, TEXT_LENGTH_MAX, type SeenTurn } from "./transcript.ts";

const STEP_BYTES = 4 * 1_048_576;
/** A longer one is no text of a conversation. */
export const LINE_BYTES_MAX = 16 * 1_048_576;
/** A body has at most twice that, and a turn has room in it whatever its characters: of one JSON makes six bytes at most. */
const BATCH_BYTES_MAX = 700_000;
/** Length of the name of a model, and of a tool with its file. */
const NAME_LENGTH_MAX = 200;
const EXTERNAL_ID_LENGTH_MAX = 256;
const TURNS_AT_ONCE = 100;
/** Answers to a turn that does not fit. */
const NEVER_TAKEN = [400, 413, 422];
/** Turns that wait for a server. */
const SAID_MAX = 20;
const NEWLINE = 10;
const LONGEST_TTL_SECONDS = 2_592_000;

interface Read {
  readonly bytes: Uint8Array;
  readonly isWhole: boolean;
}

/** @returns what is to be noted of the transcript */
export async function logTurns(
  server: HookServer,
  environment: HookEnvironment,
  event: HookEvent,
  file: SessionFile,
): Promise<{ version: string | undefined; problem: string | undefined }> {
  const { kept } = file;
  const { turnsIn } = event.agent;
  if (turnsIn === undefined) return logSaid(server, environment, event, file);
  let version: string | undefined;
  let [unread, understood, bytes, refused] = [0, 0, 0, 0];
  for (;;) {
    const read = event.transcript === undefined ? undefined : stepOf(event.transcript, kept);
    // Before the first prompt there is none.
    if (read === undefined) return { version, problem: event.kind === "start" ? undefined : "there is no transcript" };
    const seen = turnsIn(read.bytes);
    const found = kept.open === undefined ? seen.turns : [continued(kept.open, seen.rest), ...seen.turns];
    version = seen.version ?? version;
    unread += seen.unread;
    understood += seen.understood;
    bytes += read.bytes.length;
    const isDone = read.isWhole && (event.kind === "stop" || event.kind === "end");
    const turns = completeTurns(found, isDone, event);
    refused += await send(server, environment, event, kept, turns);
    moveOn(kept, read, turns.length, found[turns.length]);
    file.save();
    const isForeign = event.kind === "stop" && bytes > 0 && understood === 0;
    if (read.isWhole) return { version, problem: problemOf({ unread, isForeign, refused }) };
  }
}

/** Moves the place to the turn that is not complete: it is read again, unless it has filled a step. */
function moveOn(kept: KeptSession, { bytes, isWhole }: Read, complete: number, open: SeenTurn | undefined): void {
  if (open === undefined || (complete === 0 && !isWhole))
    Object.assign(kept, { open: shortened(open), offset: kept.offset + bytes.length });
  else if (complete > 0 || kept.open === undefined) Object.assign(kept, { open: undefined, offset: kept.offset + open.from });
}

function shortened(open: SeenTurn | undefined): SeenTurn | undefined {
  return open && { ...open, input: open.input.slice(0, TEXT_LENGTH_MAX), output: open.output.slice(0, TEXT_LENGTH_MAX) };
}

/** Keeps what an event says of a turn. */
export function keepSaid(kept: KeptSession, { kind, promptId: id, prompt, lastMessage }: HookEvent): void {
  if (id === undefined) return;
  if (kind === "prompt" && prompt !== "") {
    const turn = { id, at: new Date(systemClock.now()).toISOString(), input: prompt.slice(0, TEXT_LENGTH_MAX), outputs: [] };
    kept.said = [...kept.said.filter((one) => one.id !== id), turn].slice(-SAID_MAX);
  }
  const length = kept.said.find((one) => one.id === id)?.outputs.join("").length ?? TEXT_LENGTH_MAX;
  if (kind !== "answer" || lastMessage === undefined || length >= TEXT_LENGTH_MAX) return;
  kept.said.find((one) => one.id === id)?.outputs.push(lastMessage.slice(0, TEXT_LENGTH_MAX));
}

/** Logs turns that events have said: those before the last one, and that one after its answer. */
async function logSaid(server: HookServer, environment: HookEnvironment, event: HookEvent, file: SessionFile) {
  const { kept } = file;
  const isDone = event.kind === "stop" || event.kind === "end";
  const done = isDone ? kept.said : kept.said.slice(0, -1);
  const seen = done.map(({ outputs, ...turn }) => ({ ...turn, output: outputs.join("\n\n"), model: undefined, tools: [], from: 0 }));
  const refused = await send(server, environment, event, kept, seen);
  kept.said = kept.said.slice(done.length);
  file.save();
  const isForeign = event.kind === "stop" && seen.some(({ id, output }) => id === event.promptId && output === "");
  const foreign = isForeign ? "there was no answer before its end: its events may have changed" : undefined;
  return { version: event.version, problem: refused > 0 ? refusedText(refused) : foreign };
}

function refusedText(count: number): string {
  return `the server refused ${count} ${count === 1 ? "turn" : "turns"}`;
}

/** @param isForeign - after an answer the transcript has grown, and nothing of that is known */
function problemOf({ unread, isForeign, refused }: { unread: number; isForeign: boolean; refused: number }): string | undefined {
  if (isForeign) return "the transcript has neither a prompt nor an answer that is known: its format may have changed";
  if (refused > 0) return refusedText(refused);
  return unread === 0 ? undefined : `${unread} lines of the transcript are not JSON`;
}

function completeTurns(turns: readonly SeenTurn[], isLastDone: boolean, { kind, lastMessage }: HookEvent): readonly SeenTurn[] {
  const last = turns.at(-1);
  if (last === undefined || !isLastDone) return turns.slice(0, -1);
  if (kind !== "stop") return turns;
  // The transcript can be behind the event.
  const said = lastMessage?.trim() ?? "";
  if (said === "" || last.output.includes(said)) return turns;
  return [...turns.slice(0, -1), { ...last, output: last.output === "" ? said : `${last.output}\n\n${said}` }];
}

/** Reads whole lines of a regular file of this user; from its beginning where it is another one than before. */
function stepOf(path: string, kept: KeptSession): Read | undefined {
  const file = opened(path);
  if (file === undefined) return undefined;
  try {
    const { size, ino, uid, mode } = fstatSync(file);
    const isRegular = (mode & constants.S_IFMT) === constants.S_IFREG;
    if (!isRegular || (process.geteuid !== undefined && uid !== process.geteuid())) return undefined;
    if (kept.inode !== ino || kept.offset > size) Object.assign(kept, { inode: ino, offset: 0, open: undefined });
    for (const most of [STEP_BYTES, LINE_BYTES_MAX]) {
      const bytes = Buffer.alloc(Math.min(most, size - kept.offset));
      const length = readSync(file, bytes, 0, bytes.length, kept.offset);
      const isWhole = length === 0 || kept.offset + length >= size;
      const end = bytes.subarray(0, length).lastIndexOf(NEWLINE) + 1;
      if (end > 0 || isWhole) return { bytes: bytes.subarray(0, end), isWhole };
      if (most === LINE_BYTES_MAX) return { bytes: bytes.subarray(0, length), isWhole };
    }
    return undefined;
  } finally {
    closeSync(file);
  }
}

/** @returns undefined where there is nothing, or a link */
function opened(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (hasCode(error, "ENOENT") || hasCode(error, "ELOOP")) return undefined;
    throw error;
  }
}

type SentTurn = ReturnType<typeof turnOf>;

/** Logs turns, as many at once as have room in a body. @returns the number of those that the server refused */
async function send(
  server: HookServer,
  environment: HookEnvironment,
  event: HookEvent,
  kept: KeptSession,
  turns: readonly SeenTurn[],
): Promise<number> {
  let refused = 0;
  for (const batch of batchesOf(turns.map(turnOf))) {
    kept.session ??= await sessionOf(server, environment, event);
    refused += await sendBatch(server, kept, batch);
  }
  return refused;
}

function batchesOf(turns: readonly SentTurn[]): SentTurn[][] {
  const batches: SentTurn[][] = [];
  let left = 0;
  for (const turn of turns) {
    const bytes = Buffer.byteLength(JSON.stringify(turn));
    if (bytes > left || batches.at(-1)?.length === TURNS_AT_ONCE) [left] = [BATCH_BYTES_MAX, batches.push([])];
    left -= bytes;
    batches.at(-1)?.push(turn);
  }
  return batches;
}

/** Leaves out what the server will never take: those after it would wait for it. */
async function sendBatch(server: HookServer, kept: KeptSession, turns: readonly SentTurn[]): Promise<number> {
  try {
    await server.ask("POST", `/v1/sessions/${kept.session ?? ""}/turns/batch`, { turns });
    return 0;
  } catch (error) {
    // Somebody has deleted it: the next event makes another one.
    if (error instanceof Refusal && error.status === 404) kept.session = undefined;
    if (!(error instanceof Refusal) || !NEVER_TAKEN.includes(error.status)) throw error;
    if (turns.length === 1) return 1;
    let refused = 0;
    for (const turn of turns) refused += await sendBatch(server, kept, [turn]);
    return refused;
  }
}

async function sessionOf(server: HookServer, { user }: HookEnvironment, { agent, sessionId, cwd }: HookEvent): Promise<string> {
  const session = {
    agent_id: agent.name,
    ...(user === undefined ? {} : { user_id: user }),
    external_id: `code:${agent.name}:${sessionId}`,
    if_exists: "return",
    metadata: { source: "hook", ...(cwd === undefined ? {} : { directory: cwd }) },
  };
  const make = (ttl: number | "never") => server.ask("POST", "/v1/sessions", { ...session, ttl_seconds: ttl });
  // A setting may keep sessions without an end to admin keys.
  const made = await make("never").catch((error: unknown) => {
    if (error instanceof Refusal && error.status < 500 && error.status !== 429) return make(LONGEST_TTL_SECONDS);
    throw error;
  });
  return made["id"] as string;
}

export function turnOf({ id, at, input, output, model, tools }: SeenTurn) {
  const ms = parseInstant(at ?? "");
  const time = ms === undefined ? undefined : pastTime(ms, systemClock.now());
  return {
    input: { type: "text", content: textOf(input, TEXT_LENGTH_MAX) },
    output: { type: "text", content: textOf(output, TEXT_LENGTH_MAX) },
    external_id: textOf(id, EXTERNAL_ID_LENGTH_MAX),
    ...(time === undefined ? {} : { occurred_at: time }),
    metadata: {
      ...(model === undefined ? {} : { model: textOf(model, NAME_LENGTH_MAX) }),
      ...(tools.length === 0 ? {} : { tools: tools.map((tool) => textOf(tool, NAME_LENGTH_MAX)) }),
    },
  };
}

function textOf(text: string, lengthMax: number): string {
  return text.slice(0, lengthMax).toWellFormed();
}
