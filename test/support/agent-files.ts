/**
 * Files of coding agents as their users have them, and with Cairn in them: `CAIRN` stands for the path of the executable.
 *
 * @module
 */

export interface AgentFile {
  readonly agent: string;
  /** In the home directory. */
  readonly path: string;
  /** Undefined where there is no such file before. */
  readonly before: string | undefined;
  readonly after: string;
}

const args = (indent: string) => `[\n${indent}  "mcp",\n${indent}  "--user",\n${indent}  "ada"\n${indent}]`;

function flat(event: string): string {
  return `    "${event}": [
      {
        "command": "CAIRN hook cursor --user ada",
        "timeout": 5
      }
    ]`;
}

function copilotHook(event: string): string {
  const line = `CAIRN hook copilot --user ada --event ${event}`;
  return `{
        "type": "command",
        "bash": "${line}",
        "powershell": "${line}",
        "timeoutSec": 5
      }`;
}

/** Our command at an event with its seconds, as a list of groups has it. */
function group(line: string, agent: string): string {
  const [event, seconds] = line.split(" ");
  return `    "${event}": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "CAIRN hook ${agent} --user ada",
            "timeout": ${seconds}
          }
        ]
      }
    ]`;
}

export const AGENT_FILES: readonly AgentFile[] = [
  {
    agent: "claude-code",
    path: ".claude.json",
    before: `{
  "numStartups": 12,
  "mcpServers": {
    "github": { "type": "http", "url": "https://example.com/mcp" }
  },
  "projects": {"/src/app": {"allowedTools": []}}
}
`,
    after: `{
  "numStartups": 12,
  "mcpServers": {
    "github": { "type": "http", "url": "https://example.com/mcp" },
    "cairn": {
      "type": "stdio",
      "command": "CAIRN",
      "args": ${args("      ").replace('"mcp"', '"mcp",\n        "--hooks"')}
    }
  },
  "projects": {"/src/app": {"allowedTools": []}}
}
`,
  },
  {
    agent: "codex",
    path: ".codex/config.toml",
    before: `model = "gpt-5" # the usual one

[mcp_servers.docs]
command = "docs"

[projects."/src/app"]
trust_level = "trusted"
# end
`,
    after: `model = "gpt-5" # the usual one

[mcp_servers.docs]
command = "docs"

[projects."/src/app"]
trust_level = "trusted"
# end

[mcp_servers.cairn]
command = "CAIRN"
args = ["mcp","--hooks","--user","ada"]
`,
  },
  {
    agent: "codex",
    path: ".codex/hooks.json",
    before: undefined,
    after: `{
  "hooks": {
${["SessionStart 5", "UserPromptSubmit 5", "Stop 5", "PreCompact 5", "SessionEnd 3"].map((line) => group(line, "codex")).join(",\n")}
  }
}
`,
  },
  {
    agent: "cursor",
    path: ".cursor/mcp.json",
    before: undefined,
    after: `{
  "mcpServers": {
    "cairn": {
      "command": "CAIRN",
      "args": ${args("      ").replace('"mcp"', '"mcp",\n        "--hooks"')}
    }
  }
}
`,
  },
  {
    agent: "cursor",
    path: ".cursor/hooks.json",
    before: `{
  "version": 1,
  "hooks": {
    "stop": [{ "command": "./audit.sh" }] // of the team
  }
}
`,
    after: `{
  "version": 1,
  "hooks": {
    "stop": [{ "command": "./audit.sh" }, {"command":"CAIRN hook cursor --user ada","timeout":5}], // of the team
${["sessionStart", "beforeSubmitPrompt", "afterAgentResponse", "preCompact", "sessionEnd"].map(flat).join(",\n")}
  }
}
`,
  },
  {
    agent: "opencode",
    path: ".config/opencode/opencode.jsonc",
    before: `{
  // The model of every day.
  "model": "anthropic/claude", /* not the large one */
  "mcp": {
    "docs": { "type": "remote", "url": "https://example.com/mcp" }, // searched first
  },
}
`,
    after: `{
  // The model of every day.
  "model": "anthropic/claude", /* not the large one */
  "mcp": {
    "docs": { "type": "remote", "url": "https://example.com/mcp" }, // searched first
    "cairn": {
      "type": "local",
      "command": [
        "CAIRN",
        "mcp",
        "--hooks",
        "--user",
        "ada"
      ]
    },
  },
}
`,
  },
  {
    agent: "vscode",
    path: ".config/Code/User/mcp.json",
    before: `\uFEFF{\r\n\t"servers": {\r\n\t\t"docs": { "command": "docs" } // of the team\r\n\t},\r\n\t"inputs": []\r\n}\r\n`,
    after: `\uFEFF{\r\n\t"servers": {\r\n\t\t"docs": { "command": "docs" }, // of the team\r\n\t\t"cairn": {\r\n\t\t\t"type": "stdio",\r\n\t\t\t"command": "CAIRN",\r\n\t\t\t"args": [\r\n\t\t\t\t"mcp",\r\n\t\t\t\t"--user",\r\n\t\t\t\t"ada"\r\n\t\t\t]\r\n\t\t}\r\n\t},\r\n\t"inputs": []\r\n}\r\n`,
  },
  {
    agent: "copilot",
    path: ".copilot/mcp-config.json",
    before: `{}`,
    after: `{
  "mcpServers": {
    "cairn": {
      "type": "local",
      "command": "CAIRN",
      "args": ${args("      ").replace('"mcp"', '"mcp",\n        "--hooks"')},
      "tools": [
        "*"
      ]
    }
  }
}`,
  },
  {
    agent: "copilot",
    path: ".copilot/hooks/cairn.json",
    before: undefined,
    after: `{
  "version": 1,
  "hooks": {
    "sessionStart": [
      ${copilotHook("sessionStart")}
    ],
    "agentStop": [
      ${copilotHook("agentStop")}
    ]
  }
}
`,
  },
  {
    agent: "gemini",
    path: ".gemini/settings.json",
    before: `{"theme":"Dark","mcpServers":{"docs":{"command":"docs"}}}`,
    after: `{"theme":"Dark","mcpServers":{"docs":{"command":"docs"}, "cairn": {"command":"CAIRN","args":["mcp","--hooks","--user","ada"]}}, "hooks": {${["SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"].map((event, i) => `${i === 0 ? "" : " "}"${event}":${i === 0 ? "" : " "}[{"hooks":[{"type":"command","command":"CAIRN hook gemini --user ada","timeout":5000}]}]`).join(",")}}}`,
  },
  {
    agent: "windsurf",
    path: ".codeium/windsurf/mcp_config.json",
    before: `{
    "mcpServers": {
        "cairn": {
            "command": "old" // of another version
        },
        "docs": {
            "command": "docs"
        }
    }
}
`,
    after: `{
    "mcpServers": {
        "cairn": {
            "command": "CAIRN",
            "args": [
                "mcp",
                "--user",
                "ada"
            ]
        },
        "docs": {
            "command": "docs"
        }
    }
}
`,
  },
  {
    agent: "zed",
    path: ".config/zed/settings.json",
    before: `// Zed settings
{
  "ui_font_size": 16
  // "theme": "One Light"
}
`,
    after: `// Zed settings
{
  "ui_font_size": 16,
  // "theme": "One Light"
  "context_servers": {
    "cairn": {
      "command": "CAIRN",
      "args": ${args("      ")}
    }
  }
}
`,
  },
  {
    agent: "claude-desktop",
    path: ".config/Claude/claude_desktop_config.json",
    before: `{
  "mcpServers": {

  }
}
`,
    after: `{
  "mcpServers": {
    "cairn": {
      "command": "CAIRN",
      "args": ${args("      ")}
    }
  }
}
`,
  },
];

/** The files after `cairn setup --remove`, where that is not what they were: empty objects go with the server. */
export const AFTER_REMOVAL: Readonly<Record<string, string>> = {
  ".cursor/mcp.json": "{}\n",
  ".codex/hooks.json": "{}\n",
  ".codeium/windsurf/mcp_config.json": `{
    "mcpServers": {
        "docs": {
            "command": "docs"
        }
    }
}
`,
  ".config/Claude/claude_desktop_config.json": "{}\n",
};
