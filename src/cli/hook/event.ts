/**
 * Input of a hook, as agents write it, read loosely: their formats change. Pure.
 *
 * @module
 */
import { CURSOR, VSCODE, type EventKind, type HookAgent } from "./agents.ts";
import { isObject, saidIn, textOf } from "./transcript.ts";

export interface HookEvent {
  readonly agent: HookAgent;
  readonly kind: EventKind;
  /** As the agent calls it. */
  readonly name: string;
  readonly sessionId: string;
  readonly promptId: string | undefined;
  readonly prompt: string;
  readonly cwd: string | undefined;
  readonly transcript: string | undefined;
  /** Reason of a start. */
  readonly source: string | undefined;
  readonly lastMessage: string | undefined;
  /** Version of the agent. */
  readonly version: string | undefined;
}

const SESSION_ID = /^[\w.-]{1,200}$/;

/**
 * @param command - agent whose hooks run, and the event if its input does not name it
 * @returns what is not understood of it, instead of an event; undefined where it is of another agent or of a subagent
 */
export function eventIn(
  text: string,
  command: { readonly agent: HookAgent; readonly event: string | undefined },
): HookEvent | { readonly problem: string } | undefined {
  let input: unknown;
  try {
    input = JSON.parse(text);
  } catch {
    return { problem: "the input is not JSON" };
  }
  if (!isObject(input)) return { problem: "the input is not an object" };
  const member = (...names: string[]) => names.map((name) => textOf(input[name])).find((value) => value !== undefined);
  const inCode = member("hookEventName");
  const agent = inCode === undefined ? command.agent : VSCODE;
  const isCursor = agent.name === CURSOR;
  if (isCursor !== (member("conversation_id") !== undefined) || member("agent_id") !== undefined) return undefined;
  const name = inCode ?? member("hook_event_name") ?? command.event ?? "";
  const kind = Object.hasOwn(agent.events, name) ? agent.events[name] : undefined;
  if (kind === undefined) return { problem: `there is no event ${JSON.stringify(name.slice(0, 64))}` };
  const sessionId = member(...(isCursor ? ["conversation_id"] : ["session_id", "sessionId"])) ?? "";
  if (!SESSION_ID.test(sessionId)) return { problem: `${name} has no session_id` };
  return {
    agent,
    kind,
    name,
    sessionId,
    promptId: member("prompt_id", "turn_id", "generation_id"),
    prompt: saidIn(member("prompt") ?? ""),
    cwd: member("cwd") ?? (Array.isArray(input["workspace_roots"]) ? textOf(input["workspace_roots"][0]) : undefined),
    transcript: member("transcript_path", "transcriptPath"),
    source: member("source"),
    lastMessage: member("last_assistant_message", "prompt_response", "text"),
    version: member("cursor_version", "version"),
  };
}
