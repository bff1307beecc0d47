/**
 * Coding agents that run `cairn hook`: their events, their transcripts, and how each takes text for its model. Pure.
 *
 * @module
 */
import { codexTurnsIn } from "./codex-transcript.ts";
import { geminiTurnsIn } from "./gemini-transcript.ts";
import { turnsIn, type Seen } from "./transcript.ts";

export type EventKind = "start" | "prompt" | "stop" | "compact" | "end";

export interface HookAgent {
  readonly name: string;
  readonly events: Readonly<Record<string, EventKind>>;
  readonly turnsIn: (bytes: Uint8Array) => Seen;
  /** True where the agent continues while a hook runs after an answer. */
  readonly isAsync: boolean;
  /** Reasons of a start after which its model no longer sees what it was shown before. */
  readonly forgets: readonly string[];
}

const EVENTS = {
  SessionStart: "start",
  UserPromptSubmit: "prompt",
  Stop: "stop",
  PreCompact: "compact",
  SessionEnd: "end",
} as const;

const FORGETS = ["compact", "clear"];

export const CLAUDE_CODE: HookAgent = { name: "claude-code", events: EVENTS, turnsIn, isAsync: true, forgets: FORGETS };

export const HOOK_AGENTS: readonly HookAgent[] = [
  CLAUDE_CODE,
  { name: "codex", events: EVENTS, turnsIn: codexTurnsIn, isAsync: false, forgets: FORGETS },
  {
    name: "gemini",
    events: { SessionStart: "start", BeforeAgent: "prompt", AfterAgent: "stop", SessionEnd: "end" },
    turnsIn: geminiTurnsIn,
    isAsync: false,
    // It leaves text of hooks out of what it resumes.
    forgets: [...FORGETS, "resume"],
  },
];
