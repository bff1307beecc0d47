/**
 * The plugin for the marketplaces of Claude Code, Codex and Cursor: one folder with the server and the hooks that `cairn setup` enters, and
 * the catalogue of each agent that names it. It runs the `cairn` of the PATH and has no program of its own.
 *
 * @module
 */
import manifest from "../../package.json";
import { AGENTS, type HookFile } from "../../src/cli/setup/agents.ts";
import { planned } from "../../src/cli/setup/plan.ts";
import type { ArchivedFile } from "./archive.ts";

const NAME = "cairn";
const FOLDER = `plugins/${NAME}`;
const DESCRIPTION = "Long-term memory and a searchable log of conversations, on a server of your own. Needs the cairn executable.";
const PLACES = { home: "", applications: "", config: "", claude: undefined, codex: "", project: "" };
const OWNER = { name: "Cairn" };
const MCP = ".mcp.json";
const README = `# Cairn

Long-term memory for coding agents, and a searchable log of their conversations, kept on your machine or on a server of your own.

With the plugin the agent starts \`cairn mcp\`, whose tools add and search memories, and runs \`cairn hook\` at its events: the model sees what
was remembered at the start of a session and what a prompt is about, each memory once, and each turn is logged once after its answer. Nothing
is remembered that nobody asked to remember. A hook starts nothing, always ends with 0, and says nothing where no server answers in time.

The \`cairn\` executable has to be on the PATH. \`cairn hook status\` says what hooks last did, \`cairn hook pause\` switches them off.
\`cairn setup\` enters the same without a plugin; both together show and log nothing twice.
`;

/** Returns the files of a marketplace that has the plugin alone. */
export function pluginFiles(version: string): ArchivedFile[] {
  const plugin = { name: NAME, version, description: DESCRIPTION, author: OWNER, license: manifest.license };
  const listed = { name: NAME, description: DESCRIPTION, version };
  const catalogue = { name: NAME, owner: OWNER, metadata: { description: DESCRIPTION, version } };
  const codex = { name: NAME, source: { source: "local", path: `./${FOLDER}` }, category: "Productivity" };
  const files: Readonly<Record<string, object>> = {
    ".claude-plugin/marketplace.json": { ...catalogue, plugins: [{ ...listed, source: `./${FOLDER}` }] },
    ".agents/plugins/marketplace.json": {
      name: NAME,
      interface: { displayName: "Cairn" },
      plugins: [{ ...codex, policy: { installation: "AVAILABLE", authentication: "ON_INSTALL" } }],
    },
    ".cursor-plugin/marketplace.json": { ...catalogue, plugins: [{ ...listed, source: FOLDER }] },
    [`${FOLDER}/.claude-plugin/plugin.json`]: plugin,
    [`${FOLDER}/.codex-plugin/plugin.json`]: { ...plugin, hooks: "./hooks/codex.json", mcpServers: `./${MCP}` },
    [`${FOLDER}/.cursor-plugin/plugin.json`]: { ...plugin, hooks: "hooks/cursor.json", mcpServers: MCP },
    [`${FOLDER}/${MCP}`]: { mcpServers: { [NAME]: { command: NAME, args: ["mcp", "--hooks"] } } },
    [`${FOLDER}/hooks/hooks.json`]: hooksOf("claude-code", `${NAME} hook`),
    [`${FOLDER}/hooks/codex.json`]: hooksOf("codex", `${NAME} hook codex`),
    [`${FOLDER}/hooks/cursor.json`]: hooksOf("cursor", `${NAME} hook cursor`),
  };
  const texts = Object.entries(files).map(([name, content]) => ({ name, bytes: Buffer.from(`${JSON.stringify(content, null, 2)}\n`) }));
  return [...texts, { name: `${FOLDER}/README.md`, bytes: Buffer.from(README) }].map((file) => ({
    ...file,
    name: `${NAME}-plugins/${file.name}`,
  }));
}

/** Returns the hooks that `cairn setup` enters in a file that has no others. */
function hooksOf(agent: string, hook: string): object {
  const file = AGENTS.find(({ name }) => name === agent)?.hooks?.user(PLACES) as HookFile;
  return JSON.parse(planned([file], "", { server: undefined, hook })) as object;
}
