/**
 * `cairn hook`: what coding agents run at the events of a conversation.
 *
 * It asks the server that is there and starts none. Whatever happens it ends with 0 and in time, and prints the memories for the model or
 * nothing: an agent must not wait for it, nor fail by it. Memories arise by the tools of MCP alone; of the conversation turns are logged.
 *
 * @module
 */
import { existsSync, writeSync } from "node:fs";
import { systemClock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { systemReason } from "../../lib/system-errors.ts";
import { isOffIn, readHook, type HookEnvironment } from "./environment.ts";
import { CURSOR, type EventKind, type HookAgent } from "./agents.ts";
import { eventIn, type HookEvent } from "./event.ts";
import { isPaused, noteEvent, removeOld, SessionFile } from "./kept.ts";
import { HookServer } from "./server.ts";
import { keepSaid, logTurns } from "./turns.ts";
import { blockOf, type FoundMemory } from "./block.ts";

const INPUT_LENGTH_MAX = 1_048_576;
const DEADLINES_MS: Readonly<Record<EventKind, number>> = { start: 800, prompt: 150, answer: 500, stop: 2_000, compact: 1_000, end: 1_000 };
/** After an answer in an agent that waits for its hooks: what is left is logged at the next event. */
const WAITED_STOP_MS = 500;
const LOOK_MS = 25;
const MEMORIES = {
  start: { limit: 20, tokens: 800 },
  prompt: { limit: 5, tokens: 400, threshold: 0.7, queryLengthMax: 10_000 },
};
const PROMPTS_KEPT = 50;

export async function hook(args: readonly string[]): Promise<number> {
  let line: ReturnType<typeof readHook>;
  try {
    line = readHook(args);
  } catch (error) {
    console.error(`cairn: ${messageOf(error)}`);
    return 0;
  }
  const { subcommand, hook: environment } = line;
  return subcommand === undefined ? onEvent(environment) : (await import("./status.ts")).run(subcommand, environment);
}

async function onEvent(environment: HookEnvironment): Promise<number> {
  const held: Held = {
    file: undefined,
    end() {
      held.file?.[Symbol.dispose]();
      process.exit(0);
    },
  };
  const { end } = held;
  for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, end);
  systemClock.timer(environment.waitMs ?? DEADLINES_MS.stop, end);
  try {
    await withInput(environment, held);
  } catch {
    // Nothing can be kept.
  }
  return end();
}

async function withInput(environment: HookEnvironment, held: Held): Promise<void> {
  const { agent, directory, server, waitMs } = environment;
  if (environment.isOff || (environment.isCursor && agent.name !== CURSOR) || isPaused(directory)) return;
  const event = eventIn(await inputText(), environment);
  if (event === undefined || (server === undefined && !existsSync(directory))) return;
  if ("problem" in event) note(environment, agent, { event: "unknown", problem: event.problem });
  else if (event.cwd === undefined || !isOffIn(event.cwd)) {
    const ms = waitMs ?? deadlineMs(event);
    systemClock.timer(ms, () => {
      note(environment, event.agent, { event: event.name, problem: `it was not done within ${ms} ms` });
      held.end();
    });
    await answer(environment, event, held);
  }
}

function deadlineMs({ agent, kind }: HookEvent): number {
  return kind === "stop" && !agent.isAsync ? WAITED_STOP_MS : DEADLINES_MS[kind];
}

/** The end of the process, with the file that it gives up. */
interface Held {
  file: SessionFile | undefined;
  readonly end: () => never;
}

async function answer(environment: HookEnvironment, event: HookEvent, held: Held): Promise<void> {
  let seen: Noted;
  try {
    seen = await handle(environment, event, held);
  } catch (error) {
    seen = { problem: systemReason(error) };
  }
  note(environment, event.agent, { event: event.name, ...seen }, event.kind === "prompt" ? process.uptime() * 1000 : undefined);
}

function note({ directory }: HookEnvironment, agent: HookAgent, event: Parameters<typeof noteEvent>[2], ms?: number): void {
  noteEvent(directory, agent.name, event, ms);
}

async function inputText(): Promise<string> {
  const text = await Bun.stdin.text();
  return text.length > INPUT_LENGTH_MAX ? "" : text;
}

interface Noted {
  readonly version?: string | undefined;
  readonly problem?: string | undefined;
}

async function handle(environment: HookEnvironment, event: HookEvent, held: Held): Promise<Noted> {
  const file = (held.file = await SessionFile.open(environment.directory, event.agent.name, event.sessionId));
  const { kept } = file;
  if (event.kind === "start") removeOld(environment.directory);
  if ([event.name, event.source].some((reason) => reason !== undefined && event.agent.forgets.includes(reason))) kept.shown = [];
  if (event.kind === "prompt" && event.promptId !== undefined && kept.prompts.includes(event.promptId)) return {};
  if (event.agent.turnsIn === undefined && !environment.noCapture) {
    keepSaid(kept, event);
    file.save();
  }
  const isShown = event.agent.takes.includes(event.kind);
  if (event.kind === "answer" || (event.kind === "prompt" && !isShown)) return { version: event.version };
  using server = await serverFor(environment, event.kind);
  if (isShown && (event.kind === "start" || event.kind === "prompt")) {
    const found = event.kind === "start" ? await newest(server, environment) : await about(server, environment, event, kept.shown.length);
    const block = blockOf(
      found.filter(({ id }) => !kept.shown.includes(id)).slice(0, MEMORIES[event.kind].limit),
      MEMORIES[event.kind].tokens,
    );
    if (event.promptId !== undefined) kept.prompts = [...kept.prompts, event.promptId].slice(-PROMPTS_KEPT);
    if (block !== undefined) {
      kept.shown.push(...block.ids);
      writeSync(1, JSON.stringify(event.agent.injection(event.name, block.text)));
    }
    file.save();
    if (event.kind === "prompt") return { version: event.version };
  }
  return environment.noCapture ? {} : await logTurns(server, environment, event, file);
}

/** At the start of an agent its `cairn mcp` starts, too: it is waited for until the deadline. */
async function serverFor(environment: HookEnvironment, kind: EventKind): Promise<HookServer> {
  for (;;) {
    const server = await HookServer.find(environment);
    if (server !== undefined && (kind !== "start" || (await server.isThere()))) return server;
    server?.[Symbol.dispose]();
    if (kind !== "start") throw new Error("no server is running");
    await systemClock.sleep(LOOK_MS);
  }
}

async function newest(server: HookServer, { user }: HookEnvironment): Promise<readonly FoundMemory[]> {
  if (user === undefined) return [];
  const { data } = await server.ask("GET", `/v1/memory?limit=${MEMORIES.start.limit}&user_id=${encodeURIComponent(user)}`);
  return data as FoundMemory[];
}

async function about(server: HookServer, { user }: HookEnvironment, { prompt }: HookEvent, shown: number): Promise<readonly FoundMemory[]> {
  const { limit, threshold, queryLengthMax } = MEMORIES.prompt;
  const query = Array.from(prompt.slice(0, queryLengthMax)).join("").trim();
  if (user === undefined || query === "") return [];
  const { data } = await server.ask("POST", "/v1/memory/search", { query, user_id: user, threshold, limit: Math.min(limit + shown, 50) });
  return data as FoundMemory[];
}
