/**
 * Coding agents as npm installs them. Each takes hundreds of MB, so that only `scripts/test --all` asks for it.
 *
 * @module
 */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Part } from "./platform.ts";

export interface NpmAgent extends Part {
  /** Path of its program. */
  readonly command: string;
}

/** @param finish - script of the package that puts the executable of this system in its place */
function npmAgent(name: string, packageName: string, version: string, program: string, finish?: string): NpmAgent {
  const folder = join(dirname(dirname(import.meta.dir)), ".tools", `${program}-${version}`);
  const directory = join(folder, "node_modules", packageName);
  const command = join(folder, "node_modules/.bin", program);
  const runs = () =>
    existsSync(command) &&
    Bun.spawnSync([command, "--version"], { env: { PATH: process.env["PATH"] }, stdout: "ignore", stderr: "ignore" }).exitCode === 0;
  const install = () => {
    if (Bun.which("npm") === null || Bun.which("node") === null) return "there is no npm";
    if (runs()) return undefined;
    mkdirSync(folder, { recursive: true });
    const options = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
    Bun.spawnSync(
      ["npm", "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", `${packageName}@${version}`],
      options,
    );
    if (finish !== undefined && existsSync(directory)) Bun.spawnSync(["node", finish], { ...options, cwd: directory });
    return runs() ? undefined : "npm does not install it";
  };
  let answer: { problem: string | undefined } | undefined;
  return { name, command, problem: () => (answer ??= { problem: install() }).problem };
}

export const CLAUDE_CODE = npmAgent("Claude Code", "@anthropic-ai/claude-code", "2.1.332", "claude", "install.cjs");
export const CODEX = npmAgent("Codex", "@openai/codex", "0.171.0", "codex");
export const GEMINI = npmAgent("Gemini CLI", "@google/gemini-cli", "0.61.0", "gemini");
export const OPENCODE = npmAgent("OpenCode", "opencode-ai", "1.18.33", "opencode", "postinstall.mjs");
