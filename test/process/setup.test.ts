/**
 * `cairn setup`: the files of coding agents in a home directory of their own, as the executable leaves them.
 *
 * @module
 */
import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { buildBinary } from "../support/binary.ts";
import { AFTER_REMOVAL, AGENT_FILES } from "../support/agent-files.ts";
import { onLinux } from "../support/platform.ts";
import { runCairn, scratchDirectory, type Scratch } from "../support/process.ts";

const it = onLinux("these directories of programs");

/** A home directory, and the command in a project below it. */
function homeWith(files: Readonly<Record<string, string>>): Scratch & { run: (...args: string[]) => ReturnType<typeof runCairn> } {
  const home = scratchDirectory();
  for (const [path, text] of Object.entries({ "project/.keep": "", ...files })) write(home.at(path), text);
  const options = { directory: home.at("project"), environment: { HOME: home.path, USER: "ada" } };
  return { ...home, run: (...args) => runCairn(["setup", ...args], options) };
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

const BEFORE = Object.fromEntries(AGENT_FILES.flatMap(({ path, before }) => (before === undefined ? [] : [[path, before]])));

it("the file of every agent has the server, and all else as it was written; twice is no change, and it can be taken out again", async () => {
  const cairn = await buildBinary();
  using home = homeWith({ ...BEFORE, ".cursor/argv.json": "{}" });
  const read = () =>
    Object.fromEntries(AGENT_FILES.map(({ path }) => [path, existsSync(home.at(path)) ? readFileSync(home.at(path), "utf8") : undefined]));

  expect(await home.run("all", "--yes")).toMatchObject({ code: 0, stderr: "" });
  expect(read()).toEqual(Object.fromEntries(AGENT_FILES.map(({ path, after }) => [path, after.replaceAll("CAIRN", cairn)])));
  expect(await home.run("all", "--yes")).toEqual({ code: 0, stdout: "Nothing to change.\n", stderr: "" });

  expect(await home.run("all", "--yes", "--remove")).toMatchObject({ code: 0, stderr: "" });
  expect(read()).toEqual(Object.fromEntries(AGENT_FILES.map(({ path, before }) => [path, AFTER_REMOVAL[path] ?? before])));
  expect(await home.run("all", "--yes", "--remove")).toEqual({ code: 0, stdout: "Nothing to change.\n", stderr: "" });
});

it("alone it lists the agents, a dry run shows the lines that change, and neither writes", async () => {
  const cairn = await buildBinary();
  using home = homeWith({ ".claude.json": `{\n  "oauthAccount": "secret",\n  "mcpServers": { "docs": {} }\n}\n` });
  const list = await home.run();
  expect(list).toMatchObject({ code: 0, stderr: "" });
  expect(list.stdout).toMatch(/^claude-code +Claude Code +would change ~\/\.claude\.json, ~\/\.claude\/settings\.json$/m);
  expect(list.stdout).toMatch(/^zed +Zed +not installed$/m);

  const diff = [
    "--- ~/.claude.json",
    "+++ ~/.claude.json",
    "@@ -3,1 +3,1 @@",
    '-  "mcpServers": { "docs": {} }',
    `+  "mcpServers": { "docs": {}, "cairn": {"type":"stdio","command":"${cairn}","args":["mcp","--user","ada"]} }`,
    "",
  ].join("\n");
  expect(await home.run("claude-code", "--mcp-only", "--dry-run")).toEqual({ code: 0, stdout: diff, stderr: "" });
  expect(await home.run("claude-code", "--mcp-only")).toMatchObject({
    code: 2,
    stdout: diff,
    stderr: expect.stringMatching(/nobody can be asked here/),
  });
  expect(readdirSync(home.path).sort()).toEqual([".claude.json", "project"]);
});

it("a link stays a link, a mode stays, and the file of before is kept once", async () => {
  const text = `{ "mcpServers": {} }\n`;
  using home = homeWith({ "dotfiles/cursor.json": text });
  chmodSync(home.at("dotfiles/cursor.json"), 0o640);
  mkdirSync(home.at(".cursor"));
  symlinkSync("../dotfiles/cursor.json", home.at(".cursor/mcp.json"));
  for (const user of ["ada", "bob"]) expect(await home.run("cursor", "--yes", "--user", user)).toMatchObject({ code: 0 });
  expect(lstatSync(home.at(".cursor/mcp.json")).isSymbolicLink()).toBe(true);
  expect(readlinkSync(home.at(".cursor/mcp.json"))).toBe("../dotfiles/cursor.json");
  expect(statSync(home.at("dotfiles/cursor.json")).mode & 0o777).toBe(0o640);
  expect(readFileSync(home.at("dotfiles/cursor.json"), "utf8")).toContain('"bob"');
  expect(readdirSync(home.at("dotfiles")).sort()).toEqual(["cursor.json", "cursor.json.cairn-backup"]);
  expect(readFileSync(home.at("dotfiles/cursor.json.cairn-backup"), "utf8")).toBe(text);
});

it("a file that makes no sense is left as it is, with the reason, and the others are written all the same", async () => {
  const odd = {
    ".claude.json": `{ "mcpServers": `,
    ".cursor/mcp.json": `{ "mcpServers": [] }`,
    ".codex/config.toml": `mcp_servers = { cairn = { command = "other" } }\n`,
    ".copilot/mcp-config.json": `[]`,
    ".codeium/windsurf/mcp_config.json": "{ \u0000",
  };
  using home = homeWith({ ...odd, ".config/zed/settings.json": "{}" });
  mkdirSync(home.at(".gemini"));
  symlinkSync("nowhere", home.at(".gemini/settings.json"));
  const { code, stderr } = await home.run("all", "gemini", "--yes");
  expect(code).toBe(1);
  const said = stderr
    .trim()
    .split("\n")
    .map((line) => line.replace(home.path, "~"));
  expect(said).toEqual([
    "Claude Code: ~/.claude.json is left as it is: it is not JSON from line 1 on.",
    "Codex: ~/.codex/config.toml is left as it is: its mcp_servers.cairn is written in a way that cannot be changed here.",
    "Cursor: ~/.cursor/mcp.json is left as it is: its mcpServers is not an object.",
    "Copilot CLI: ~/.copilot/mcp-config.json is left as it is: it is not an object.",
    "Windsurf: ~/.codeium/windsurf/mcp_config.json is left as it is: it is not JSON from line 1 on.",
  ]);
  for (const [path, text] of Object.entries(odd)) expect(readFileSync(home.at(path), "utf8")).toBe(text);
  expect(readFileSync(home.at(".config/zed/settings.json"), "utf8")).toContain('"cairn"');
  expect(await home.run("gemini", "--yes")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/it is a link that leads nowhere\.$/m),
  });
});

it("in a project it names neither a path nor a user, and says for which agents there is no file", async () => {
  using home = homeWith({});
  expect(await home.run("claude-code", "codex", "--project", "--yes")).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(readFileSync(home.at("project/.mcp.json"), "utf8"))).toEqual({
    mcpServers: { cairn: { type: "stdio", command: "cairn", args: ["mcp", "--hooks"] } },
  });
  expect(readFileSync(home.at("project/.claude/settings.json"), "utf8")).toContain('"command": "cairn hook"');
  expect(readFileSync(home.at("project/.codex/config.toml"), "utf8")).toBe(
    `[mcp_servers.cairn]\ncommand = "cairn"\nargs = ["mcp","--hooks"]\n`,
  );
  expect(await home.run("claude-desktop", "--project", "--yes")).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/no file in a project/),
  });
  expect(readdirSync(home.path)).toEqual(["project"]);
});

const USAGE: Readonly<Record<string, RegExp>> = {
  "emacs --yes": /there is no agent emacs: it is one of claude-code, codex, /,
  "cursor --url ftp://x": /--url must be an address/,
  "cursor --url http://127.0.0.1:1 --data-dir x": /--url and --data-dir exclude each other/,
  "cursor --project --data-dir x": /--data-dir is a path of this machine/,
};

for (const [line, says] of Object.entries(USAGE)) {
  test(`cairn setup ${JSON.stringify(line)} is refused before anything is read`, async () => {
    using home = homeWith({ ".cursor/mcp.json": "not JSON" });
    expect(await home.run(...line.split(" "))).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(says) });
  });
}

it("the executable is named by the path that an upgrade keeps", async () => {
  using home = homeWith({});
  mkdirSync(home.at("bin"));
  symlinkSync(await buildBinary(), home.at("bin/cairn"));
  const environment = { HOME: home.path, PATH: home.at("bin") };
  expect(await runCairn(["setup", "cursor", "--yes"], { directory: home.at("project"), environment })).toMatchObject({ code: 0 });
  expect(JSON.parse(readFileSync(home.at(".cursor/mcp.json"), "utf8"))).toEqual({
    mcpServers: { cairn: { command: join(home.path, "bin/cairn"), args: ["mcp", "--hooks"] } },
  });
});

it("what was set up and has not run a hook yet is named, with what its user has to do", async () => {
  using home = homeWith({});
  expect(await home.run("codex", "cursor", "--yes")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Codex: .*enter \/hooks/m) });
  const options = { directory: home.at("project"), environment: { HOME: home.path } };
  const { stdout } = await runCairn(["hook", "status"], options);
  expect(stdout).toContain("codex: set up, and has not run a hook yet; it runs hooks that you trust: enter /hooks in it once\n");
  expect(stdout).toContain("cursor: set up, and has not run a hook yet\n");
  expect(stdout).not.toContain("gemini");
});

it("the plugin of OpenCode is a file of its own: shown, replaced and removed; another's by that name is left as it is", async () => {
  const path = ".config/opencode/plugins/cairn.js";
  using home = homeWith({ ".config/opencode/opencode.json": "{}\n", [path]: "export const Mine = async () => ({});\n" });
  const foreign = await home.run("opencode", "--yes");
  expect(foreign).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/cairn\.js is left as it is: it is not a file of cairn setup\.$/m),
  });
  expect(readFileSync(home.at(path), "utf8")).toStartWith("export const Mine");

  rmSync(home.at(path));
  const shown = await home.run("opencode", "--dry-run");
  expect(shown.stdout).toContain(`--- /dev/null\n+++ ~/${path}\n@@ -1,0 +1,`);
  expect(existsSync(home.at(path))).toBe(false);
  for (const user of ["ada", "bob"]) expect(await home.run("opencode", "--yes", "--user", user)).toMatchObject({ code: 0, stderr: "" });
  expect(readFileSync(home.at(path), "utf8")).toContain(`const COMMAND = "${await buildBinary()} hook opencode --user bob";`);
  expect(await home.run("opencode", "--yes", "--user", "bob")).toEqual({ code: 0, stdout: "Nothing to change.\n", stderr: "" });

  const removal = await home.run("opencode", "--yes", "--remove");
  expect(removal).toMatchObject({ code: 0, stderr: "", stdout: expect.stringContaining(`--- ~/${path}\n+++ /dev/null\n`) });
  expect(readdirSync(dirname(home.at(path)))).toEqual([]);
});

it("hooks go next to those of others, an old one of ours is replaced, and they can be taken out again", async () => {
  const cairn = await buildBinary();
  const foreign = (indent: string) => `${indent}{ "matcher": "resume", "hooks": [{ "type": "command", "command": "notify" }] }, // mine`;
  const before = `{
  // settings of Ada
  "model": "opus",
  "hooks": {
    "SessionStart": [
${foreign("      ")}
      { "hooks": [{ "type": "command", "command": "/old/cairn hook" }, { "type": "command", "command": "cairn-hooks" }] }
    ],
    "Notification": [{ "hooks": [{ "type": "command", "command": "'/my apps/cairn' hook --user bob" }] }]
  }
}
`;
  const without = `{
  // settings of Ada
  "model": "opus",
  "hooks": {
    "SessionStart": [
${foreign("      ")}
      { "hooks": [{ "type": "command", "command": "cairn-hooks" }] }
    ]
  }
}
`;
  using home = homeWith({ ".claude/settings.json": before });
  const read = () => readFileSync(home.at(".claude/settings.json"), "utf8");
  expect(await home.run("claude-code", "--yes", "--no-capture")).toMatchObject({ code: 0, stderr: "" });
  const ours = { type: "command", command: `${cairn} hook --user ada --no-capture` };
  const { hooks } = Bun.JSONC.parse(read()) as { hooks: Record<string, unknown[]> };
  expect(Object.keys(hooks)).toEqual(["SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd"]);
  expect(hooks["SessionStart"]?.[2]).toEqual({ hooks: [{ ...ours, timeout: 5 }] });
  expect(hooks["Stop"]).toEqual([{ hooks: [{ ...ours, timeout: 10, async: true }] }]);
  expect(await home.run("claude-code", "--yes", "--no-capture")).toEqual({ code: 0, stdout: "Nothing to change.\n", stderr: "" });
  expect(await home.run("claude-code", "--yes", "--remove")).toMatchObject({ code: 0, stderr: "" });
  expect(read()).toBe(without);
  expect(JSON.parse(readFileSync(home.at(".claude.json"), "utf8"))).toEqual({});
});
