/**
 * `cairn hook` as a coding agent runs it, and what it leaves.
 *
 * @module
 */
import { expect } from "bun:test";
import { buildBinary } from "./binary.ts";
import type { CairnProcess } from "./process.ts";

/** Waits longer than an agent would: machines can be slow. */
export const PATIENT = ["--user", "ada", "--wait", "60000"];
export const SILENT = { code: 0, stdout: "", stderr: "" };

export interface Agent {
  /** Claude Code, unless given. */
  readonly name?: string;
  readonly dataDirectory: string;
  readonly directory: string;
  readonly transcript?: string;
}

export async function hook(
  input: unknown,
  agent: Agent,
  { args = PATIENT, env = {} }: { args?: readonly string[]; env?: Record<string, string> } = {},
) {
  const name = agent.name === undefined ? [] : [agent.name];
  const child = Bun.spawn([await buildBinary(), "hook", ...name, "--data-dir", agent.dataDirectory, ...args], {
    env,
    cwd: agent.directory,
    stdin: new Blob([typeof input === "string" ? input : JSON.stringify(input)]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, stdout, stderr };
}

export function event(name: string, agent: Agent, more: Record<string, unknown> = {}) {
  const { directory: cwd, transcript } = agent;
  return { session_id: "s-1", hook_event_name: name, cwd, ...(transcript === undefined ? {} : { transcript_path: transcript }), ...more };
}

export const prompt = (agent: Agent, text: string, id: string) => event("UserPromptSubmit", agent, { prompt: text, prompt_id: id });

/** Text for the model, of an answer that has nothing else. */
export function injected(answer: Awaited<ReturnType<typeof hook>>, name: string): string {
  expect(answer).toMatchObject({ code: 0, stderr: "" });
  const said = JSON.parse(answer.stdout);
  expect(said).toEqual({ hookSpecificOutput: { hookEventName: name, additionalContext: expect.any(String) } });
  return said.hookSpecificOutput.additionalContext;
}

export const lines = (...all: readonly unknown[]) =>
  all.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");

export async function turnsOf(cairn: CairnProcess, session = "s-1", agent = "claude-code"): Promise<any[]> {
  const { data } = await cairn.ok(cairn.get(`/v1/sessions?external_id=code:${agent}:${session}`));
  if (data.length === 0) return [];
  return (await cairn.all(`/v1/sessions/${data[0].id}/turns?order=asc`)).map(({ input, output }) => [input.content, output.content]);
}

export const remember = (cairn: CairnProcess, content: string, more: object = {}) =>
  cairn.ok(cairn.post("/v1/memory", { content, user_id: "ada", ...more }));
