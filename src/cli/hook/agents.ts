/**
 * Coding agents that run `cairn hook`: their events, their transcripts, and how each takes text for its model. Pure.
 *
 * @module
 */
import { codexTurnsIn } from "./codex-transcript.ts";
import { copilotTurnsIn } from "./copilot-transcript.ts";
import { geminiTurnsIn } from "./gemini-transcript.ts";
import { turnsIn, type Seen } from "./transcript.ts";

export type EventKind = "start" | "prompt" | "answer" | "stop" | "compact" | "end";

export interface HookAgent {
  readonly name: string;
  readonly events: Readonly<Record<string, EventKind>>;
  /** Reads its transcript; undefined where its events have prompts and answers. */
  readonly turnsIn: ((bytes: Uint8Array) => Seen) | undefined;
  /** True where the agent continues while a hook runs after an answer. */
  readonly isAsync: boolean;
  /** Events, and reasons of a start, after which its model no longer sees what it was shown before. */
  readonly forgets: readonly string[];
  /** Kinds of events at which it takes text for its model. */
  readonly takes: readonly EventKind[];
  /** Returns the answer that gives text to its model. */
  readonly injection: (event: string, text: string) => object;
}

/** Runs the hooks of Claude Code, too. */
export const CURSOR = "cursor";

const EVENTS = {
  SessionStart: "start",
  UserPromptSubmit: "prompt",
  Stop: "stop",
  PreCompact: "compact",
  SessionEnd: "end",
} as const;

/** The members of Claude Code; others refuse more than these. */
const injection = (hookEventName: string, additionalContext: string) => ({ hookSpecificOutput: { hookEventName, additionalContext } });

const FORGETS = ["compact", "clear"];
const TAKES = ["start", "prompt"] as const;

export const CLAUDE_CODE: HookAgent = {
  name: "claude-code",
  events: EVENTS,
  turnsIn,
  isAsync: true,
  forgets: FORGETS,
  takes: TAKES,
  injection,
};

/** It runs the hooks of Claude Code and those of Copilot, and takes text at the start alone. */
export const VSCODE: HookAgent = {
  name: "vscode",
  events: EVENTS,
  turnsIn: copilotTurnsIn,
  isAsync: false,
  forgets: FORGETS,
  takes: ["start"],
  injection,
};

export const HOOK_AGENTS: readonly HookAgent[] = [
  CLAUDE_CODE,
  { name: "codex", events: EVENTS, turnsIn: codexTurnsIn, isAsync: false, forgets: FORGETS, takes: TAKES, injection },
  {
    name: "gemini",
    events: { SessionStart: "start", BeforeAgent: "prompt", AfterAgent: "stop", SessionEnd: "end" },
    turnsIn: geminiTurnsIn,
    isAsync: false,
    // It leaves text of hooks out of what it resumes.
    forgets: [...FORGETS, "resume"],
    takes: TAKES,
    injection,
  },
  {
    name: CURSOR,
    events: {
      sessionStart: "start",
      beforeSubmitPrompt: "prompt",
      afterAgentResponse: "answer",
      stop: "stop",
      preCompact: "compact",
      sessionEnd: "end",
    },
    turnsIn: undefined,
    isAsync: false,
    forgets: ["preCompact"],
    takes: TAKES,
    injection: (event, text) => ({ ...(event === "beforeSubmitPrompt" ? { continue: true } : {}), additional_context: text }),
  },
  {
    name: "opencode",
    events: {
      "session.created": "start",
      "chat.message": "prompt",
      "text.complete": "answer",
      "session.idle": "stop",
    },
    turnsIn: undefined,
    isAsync: false,
    // The plugin has the texts, and starts over with the process and after the context was compacted.
    forgets: ["session.created"],
    takes: TAKES,
    injection: (_, text) => ({ text }),
  },
  {
    name: "copilot",
    events: { sessionStart: "start", agentStop: "stop" },
    turnsIn: copilotTurnsIn,
    isAsync: false,
    forgets: [],
    takes: ["start"],
    injection: (_, additionalContext) => ({ additionalContext }),
  },
  VSCODE,
];
