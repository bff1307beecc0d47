/**
 * Coding agents and assistants: where each keeps its servers of MCP, and in which shape. A line of the table for each.
 *
 * @module
 */
import { join } from "node:path";
import { copilotHooks, openCodePlugin, type OwnText } from "./own-files.ts";

/** Command that an agent starts, and its arguments. */
export interface Program {
  readonly command: string;
  readonly args: readonly string[];
}

/** Directories of this user, and of the project. */
export interface Places {
  readonly home: string;
  /** Files of the user's programs: XDG_CONFIG_HOME, `~/Library/Application Support`, `%APPDATA%`. */
  readonly applications: string;
  readonly config: string;
  readonly claude: string | undefined;
  readonly codex: string;
  readonly project: string;
}

/** A file that has the server as one value below a path of names. */
export interface ServerFile {
  readonly path: string;
  readonly format: "json" | "toml";
  /** Names above the server. */
  readonly below: readonly string[];
  readonly value: (program: Program) => Readonly<Record<string, string | readonly string[]>>;
}

/** A file with hooks by event, besides which others may stand. */
export interface HookFile {
  readonly path: string;
  readonly format: "hooks";
  /** Ours by event. */
  readonly handlers: (command: string) => Readonly<Record<string, object>>;
  /** True where a list has commands, and no groups of them. */
  readonly isFlat: boolean;
}

/** A file that is ours alone. */
export interface OwnFile {
  readonly path: string;
  readonly format: "own";
  readonly text: OwnText;
}

export interface Agent {
  readonly name: string;
  readonly title: string;
  /** The command that starts it. */
  readonly program?: string;
  /** Paths of which one is there where it is installed. */
  readonly signs: (places: Places) => readonly string[];
  /** Its file for all projects of the user; of several names the first that is there counts, else the first. */
  readonly user: (places: Places) => readonly ServerFile[];
  /** Its file in a project; undefined where it has none. */
  readonly project?: (places: Places) => readonly ServerFile[];
  /** Its files of hooks, for all projects and in one. */
  readonly hooks?: { readonly user: (places: Places) => HookFile | OwnFile; readonly project?: (places: Places) => HookFile | OwnFile };
  /** Step of its user before it runs them. */
  readonly hooksNote?: string;
}

const plain = ({ command, args }: Program) => ({ command, args });
const stdio = (program: Program) => ({ type: "stdio", ...plain(program) });
const json = (path: string, below: readonly string[] = ["mcpServers"], value: ServerFile["value"] = plain): ServerFile => ({
  path,
  format: "json",
  below,
  value,
});
const toml = (path: string): ServerFile => ({ path, format: "toml", below: ["mcp_servers"], value: plain });
const own = (path: string, text: OwnText): OwnFile => ({ path, format: "own", text });
const openCode = (folder: string) =>
  ["opencode.json", "opencode.jsonc"].map((file) =>
    json(join(folder, file), ["mcp"], ({ command, args }) => ({ type: "local", command: [command, ...args] })),
  );

/** Hooks as Claude Code has them; each ends by itself before the time after which the agent ends it. */
const hooks =
  (events: Readonly<Record<string, object>>) =>
  (path: string): HookFile => ({
    path,
    format: "hooks",
    handlers: (command) =>
      Object.fromEntries(Object.entries(events).map(([event, more]) => [event, { type: "command", command, ...more }])),
    isFlat: false,
  });
/** Seconds; those of `async` run while the agent continues. */
const claudeHooks = hooks({
  SessionStart: { timeout: 5 },
  UserPromptSubmit: { timeout: 5 },
  Stop: { timeout: 10, async: true },
  PreCompact: { timeout: 5 },
  SessionEnd: { timeout: 5 },
});
/** Seconds, of which the agent allows three at the end. */
const codexHooks = hooks({
  SessionStart: { timeout: 5 },
  UserPromptSubmit: { timeout: 5 },
  Stop: { timeout: 5 },
  PreCompact: { timeout: 5 },
  SessionEnd: { timeout: 3 },
});
/** Milliseconds. Its `PreCompress` comes at every prompt. */
const geminiHooks = hooks({
  SessionStart: { timeout: 5000 },
  BeforeAgent: { timeout: 5000 },
  AfterAgent: { timeout: 5000 },
  SessionEnd: { timeout: 5000 },
});

/** Seconds. */
const cursorHooks = (path: string): HookFile => ({
  path,
  format: "hooks",
  handlers: (command) =>
    Object.fromEntries(
      ["sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "stop", "preCompact", "sessionEnd"].map((event) => [
        event,
        { command, timeout: 5 },
      ]),
    ),
  isFlat: true,
});

export const AGENTS: readonly Agent[] = [
  {
    name: "claude-code",
    title: "Claude Code",
    program: "claude",
    signs: ({ home, claude }) => [claude ?? join(home, ".claude"), join(claude ?? home, ".claude.json")],
    user: ({ home, claude }) => [json(join(claude ?? home, ".claude.json"), ["mcpServers"], stdio)],
    project: ({ project }) => [json(join(project, ".mcp.json"), ["mcpServers"], stdio)],
    hooks: {
      user: ({ home, claude }) => claudeHooks(join(claude ?? join(home, ".claude"), "settings.json")),
      project: ({ project }) => claudeHooks(join(project, ".claude/settings.json")),
    },
  },
  {
    name: "codex",
    title: "Codex",
    program: "codex",
    signs: ({ codex }) => [codex],
    user: ({ codex }) => [toml(join(codex, "config.toml"))],
    project: ({ project }) => [toml(join(project, ".codex/config.toml"))],
    hooks: {
      user: ({ codex }) => codexHooks(join(codex, "hooks.json")),
      project: ({ project }) => codexHooks(join(project, ".codex/hooks.json")),
    },
    hooksNote: "it runs hooks that you trust: enter /hooks in it once",
  },
  {
    name: "cursor",
    title: "Cursor",
    program: "cursor",
    signs: ({ home }) => [join(home, ".cursor")],
    user: ({ home }) => [json(join(home, ".cursor/mcp.json"))],
    project: ({ project }) => [json(join(project, ".cursor/mcp.json"))],
    hooks: {
      user: ({ home }) => cursorHooks(join(home, ".cursor/hooks.json")),
      project: ({ project }) => cursorHooks(join(project, ".cursor/hooks.json")),
    },
  },
  {
    name: "opencode",
    title: "OpenCode",
    program: "opencode",
    signs: ({ config }) => [join(config, "opencode")],
    user: ({ config }) => openCode(join(config, "opencode")),
    project: ({ project }) => openCode(project),
    hooks: {
      user: ({ config }) => own(join(config, "opencode/plugins/cairn.js"), openCodePlugin),
      project: ({ project }) => own(join(project, ".opencode/plugins/cairn.js"), openCodePlugin),
    },
  },
  {
    name: "vscode",
    title: "VS Code",
    program: "code",
    signs: ({ applications }) => [join(applications, "Code")],
    user: ({ applications }) => [json(join(applications, "Code/User/mcp.json"), ["servers"], stdio)],
    project: ({ project }) => [json(join(project, ".vscode/mcp.json"), ["servers"], stdio)],
  },
  {
    name: "copilot",
    title: "Copilot CLI",
    program: "copilot",
    signs: ({ home }) => [join(home, ".copilot")],
    user: ({ home }) => [
      json(join(home, ".copilot/mcp-config.json"), ["mcpServers"], (program) => ({ type: "local", ...plain(program), tools: ["*"] })),
    ],
    // Hooks of a project would run where there is no cairn, too: on servers of GitHub.
    hooks: { user: ({ home }) => own(join(home, ".copilot/hooks/cairn.json"), copilotHooks) },
  },
  {
    name: "gemini",
    title: "Gemini CLI",
    program: "gemini",
    signs: ({ home }) => [join(home, ".gemini/settings.json"), join(home, ".gemini/tmp")],
    user: ({ home }) => [json(join(home, ".gemini/settings.json"))],
    project: ({ project }) => [json(join(project, ".gemini/settings.json"))],
    hooks: {
      user: ({ home }) => geminiHooks(join(home, ".gemini/settings.json")),
      project: ({ project }) => geminiHooks(join(project, ".gemini/settings.json")),
    },
  },
  {
    name: "windsurf",
    title: "Windsurf",
    program: "windsurf",
    signs: ({ home }) => [join(home, ".codeium/windsurf")],
    user: ({ home }) => [json(join(home, ".codeium/windsurf/mcp_config.json"))],
  },
  {
    name: "zed",
    title: "Zed",
    program: "zed",
    signs: ({ config }) => [join(config, "zed")],
    user: ({ config }) => [json(join(config, "zed/settings.json"), ["context_servers"])],
    project: ({ project }) => [json(join(project, ".zed/settings.json"), ["context_servers"])],
  },
  {
    name: "claude-desktop",
    title: "Claude Desktop",
    signs: ({ applications }) => [join(applications, "Claude")],
    user: ({ applications }) => [json(join(applications, "Claude/claude_desktop_config.json"))],
  },
];
