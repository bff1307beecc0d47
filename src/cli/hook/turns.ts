/**
 * Logs what is new in a transcript as turns of the agent's session. The place up to which that is done moves after the server's answer,
 * and a turn has the id of its prompt as external id: however often it is sent it is logged once.
 *
 * @module
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { systemClock } from "../../lib/clock.ts";
import type { HookEnvironment } from "./environment.ts";
import type { HookEvent } from "./event.ts";
import type { KeptSession, SessionFile } from "./kept.ts";
import { Refusal, type HookServer } from "./server.ts";
import type { Seen, SeenTurn } from "./transcript.ts";

const STEP_BYTES = 4 * 1_048_576;
/** Several such have room in a body. */
const TEXT_LENGTH_MAX = 50_000;
const TURNS_AT_ONCE = 4;
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
  let [unread, understood, bytes] = [0, 0, 0];
  for (;;) {
    const read = event.transcript === undefined ? undefined : stepOf(event.transcript, kept);
    if (read === undefined) return { version, problem: "there is no transcript" };
    const seen = turnsIn(read.bytes);
    version = seen.version ?? version;
    unread += seen.unread;
    understood += seen.understood;
    bytes += read.bytes.length;
    const isDone = read.isWhole && (event.kind === "stop" || event.kind === "end");
    const turns = completeTurns(seen, isDone || (!read.isWhole && seen.turns.length === 1), event);
    for (let i = 0; i < turns.length; i += TURNS_AT_ONCE) await send(server, environment, event, kept, turns.slice(i, i + TURNS_AT_ONCE));
    const open = seen.turns[turns.length];
    kept.offset += open?.from ?? read.bytes.length;
    file.save();
    if (read.isWhole) return { version, problem: problemOf({ unread, isForeign: event.kind === "stop" && bytes > 0 && understood === 0 }) };
  }
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
  for (let i = 0; i < seen.length; i += TURNS_AT_ONCE) await send(server, environment, event, kept, seen.slice(i, i + TURNS_AT_ONCE));
  kept.said = kept.said.slice(done.length);
  file.save();
  const isForeign = event.kind === "stop" && seen.some(({ id, output }) => id === event.promptId && output === "");
  return { version: event.version, problem: isForeign ? "there was no answer before its end: its events may have changed" : undefined };
}

/** @param isForeign - after an answer the transcript has grown, and nothing of that is known */
function problemOf({ unread, isForeign }: { unread: number; isForeign: boolean }): string | undefined {
  if (isForeign) return "the transcript has neither a prompt nor an answer that is known: its format may have changed";
  return unread === 0 ? undefined : `${unread} lines of the transcript are not JSON`;
}

/** @param isLastDone - also of a turn that fills a step: what follows of it is left out */
function completeTurns({ turns }: Seen, isLastDone: boolean, { kind, lastMessage }: HookEvent): readonly SeenTurn[] {
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
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const { size, ino, uid, mode } = fstatSync(file);
    const isRegular = (mode & constants.S_IFMT) === constants.S_IFREG;
    if (!isRegular || (process.geteuid !== undefined && uid !== process.geteuid())) return undefined;
    if (kept.inode !== ino || kept.offset > size) Object.assign(kept, { inode: ino, offset: 0 });
    const bytes = Buffer.alloc(Math.min(STEP_BYTES, size - kept.offset));
    const length = readSync(file, bytes, 0, bytes.length, kept.offset);
    const isWhole = kept.offset + length >= size;
    const end = bytes.subarray(0, length).lastIndexOf(NEWLINE) + 1;
    // A line that is longer than a step is no text of a conversation.
    return { bytes: bytes.subarray(0, end === 0 && !isWhole ? length : end), isWhole };
  } finally {
    closeSync(file);
  }
}

async function send(
  server: HookServer,
  environment: HookEnvironment,
  event: HookEvent,
  kept: KeptSession,
  turns: readonly SeenTurn[],
): Promise<void> {
  kept.session ??= await sessionOf(server, environment, event);
  const body = { turns: turns.map(turnOf) };
  try {
    await server.ask("POST", `/v1/sessions/${kept.session}/turns/batch`, body);
  } catch (error) {
    // Somebody has deleted it: the next event makes another one.
    if (error instanceof Refusal && error.status === 404) kept.session = undefined;
    throw error;
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
  const isTime = at !== undefined && !Number.isNaN(Date.parse(at));
  return {
    input: { type: "text", content: input.slice(0, TEXT_LENGTH_MAX).toWellFormed() },
    output: { type: "text", content: output.slice(0, TEXT_LENGTH_MAX).toWellFormed() },
    external_id: id.slice(0, 256),
    ...(isTime ? { occurred_at: at } : {}),
    metadata: { ...(model === undefined ? {} : { model }), ...(tools.length === 0 ? {} : { tools }) },
  };
}
