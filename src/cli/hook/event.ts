/**
 * Input of a hook, as agents write it, read loosely: their formats change. Pure.
 *
 * @module
 */

export type EventKind = "start" | "prompt" | "stop" | "compact" | "end";

export interface HookEvent {
  readonly kind: EventKind;
  /** As the agent calls it. */
  readonly name: string;
  readonly sessionId: string;
  readonly promptId: string | undefined;
  readonly prompt: string;
  readonly cwd: string | undefined;
  readonly transcript: string | undefined;
  /** Reason of a start: `compact` and `clear` have emptied what the model sees. */
  readonly source: string | undefined;
  readonly lastMessage: string | undefined;
}

const KINDS: ReadonlyMap<string, EventKind> = new Map([
  ["SessionStart", "start"],
  ["UserPromptSubmit", "prompt"],
  ["Stop", "stop"],
  ["PreCompact", "compact"],
  ["SessionEnd", "end"],
]);
const SESSION_ID = /^[\w.-]{1,200}$/;

/** Names of agents that have hooks here. */
export const CLAUDE_CODE = "claude-code";

/** @returns what is not understood of it, instead of an event; undefined where it is of another agent or of a subagent */
export function eventIn(text: string): HookEvent | { readonly problem: string } | undefined {
  let input: unknown;
  try {
    input = JSON.parse(text);
  } catch {
    return { problem: "the input is not JSON" };
  }
  if (typeof input !== "object" || input === null) return { problem: "the input is not an object" };
  const member = (name: string) => {
    const value = (input as Record<string, unknown>)[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  if (member("conversation_id") !== undefined || member("agent_id") !== undefined) return undefined;
  const name = member("hook_event_name") ?? "";
  const kind = KINDS.get(name);
  if (kind === undefined) return { problem: `there is no event ${JSON.stringify(name.slice(0, 64))}` };
  const sessionId = member("session_id") ?? "";
  if (!SESSION_ID.test(sessionId)) return { problem: `${name} has no session_id` };
  return {
    kind,
    name,
    sessionId,
    promptId: member("prompt_id"),
    prompt: member("prompt") ?? "",
    cwd: member("cwd"),
    transcript: member("transcript_path"),
    source: member("source"),
    lastMessage: member("last_assistant_message"),
  };
}
