/**
 * `cairn setup`: enters Cairn in the files of coding agents as a server of MCP, and takes it out again.
 *
 * It shows every change as a diff and asks before it writes. Called again it finds nothing to change.
 *
 * @module
 */
import { existsSync, realpathSync } from "node:fs";
import { basename, relative, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { structuredPatch } from "diff";
import { readSetupConfig, UsageError, type SetupConfig } from "../../config.ts";
import { systemReason } from "../../lib/system-errors.ts";
import { target } from "../../lib/version.ts";
import { checkedName } from "../command-line.ts";
import { escaped, print } from "../print.ts";
import { AGENTS, type Agent, type Places } from "./agents.ts";
import { planned, type Part, type Wanted } from "./plan.ts";
import { readText, removeText, replaceText, type FileText } from "./text-file.ts";

const ALL = "all";
/** Agent of the hooks that name none. */
const UNNAMED = "claude-code";
/** Other programs write their files, too: a file that has changed meanwhile is read again. */
const ATTEMPTS_MAX = 3;

/** Parts of a file: the server, the hooks, or both. */
type Parts = readonly Part[];

interface Change {
  readonly agent: Agent;
  readonly path: string;
  readonly parts: Parts;
  readonly before: FileText | undefined;
  readonly after: string;
}

type Planned = Change | { readonly agent: Agent; readonly problem: string };

export async function setup(args: readonly string[]): Promise<number> {
  const config = readSetupConfig(args);
  const { agents, has } = config;
  const places: Places = { ...config, project: process.cwd() };
  const wantedOf = wantedBy(config);
  const isProject = has("project");
  if (agents.length === 0) {
    await list(places, isProject, wantedOf);
    return 0;
  }
  const results = chosen(agents, places).flatMap((agent) => plan(agent, places, isProject, wantedOf(agent)));
  const changes = results.filter((result): result is Change => !("problem" in result));
  let isComplete = changes.length === results.length;
  for (const result of results) if ("problem" in result) console.error(escaped(`${result.agent.title}: ${result.problem}`));
  for (const change of changes) await printDiff(change, places);
  if (changes.length === 0 && isComplete) await print("Nothing to change.");
  else if (has("dry-run") || changes.length === 0) return isComplete ? 0 : 1;
  else if (!(has("yes") || (await isConfirmed(changes.length)))) {
    await print("Nothing was changed.");
    return 1;
  } else for (const change of changes) isComplete = (await apply(change, places, wantedOf(change.agent))) && isComplete;
  return isComplete ? 0 : 1;
}

function chosen(names: readonly string[], places: Places): readonly Agent[] {
  if (names.includes(ALL)) return AGENTS.filter((agent) => isInstalled(agent, places));
  return names.map((name) => {
    const agent = AGENTS.find((one) => one.name === name);
    if (agent === undefined)
      throw new UsageError(`there is no agent ${name}: it is one of ${AGENTS.map((one) => one.name).join(", ")}, or all`);
    return agent;
  });
}

function isInstalled({ program, signs }: Agent, places: Places): boolean {
  return (program !== undefined && Bun.which(program) !== null) || signs(places).some((path) => existsSync(path));
}

type WantedOf = (agent: Agent) => Wanted;

/** Returns what agents are to run. In a project it is what everybody has who works there, so that it names no path and no user. */
function wantedBy({ mcp, has, login }: SetupConfig): WantedOf {
  if (has("remove")) return () => ({ server: undefined, hook: undefined });
  const { url, user, "data-dir": directory } = mcp;
  const isShared = has("project");
  if (isShared && directory !== undefined) throw new UsageError("--data-dir is a path of this machine: a project's files name none");
  const name = checkedName("user", user ?? (isShared ? undefined : login));
  const flags = { url, user: name, "data-dir": directory === undefined ? undefined : resolve(directory) };
  const given = Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}`, value]));
  const command = isShared ? "cairn" : executable();
  const options = [...given, ...(has("no-capture") ? ["--no-capture"] : [])];
  const hookOf = (name: string) => [command, "hook", ...(name === UNNAMED ? [] : [name]), ...options].map(shellWord).join(" ");
  return ({ name: agent, hooks }) => {
    const hasHooks = hooks !== undefined && !has("mcp-only");
    return { server: { command, args: ["mcp", ...(hasHooks ? ["--hooks"] : []), ...given] }, hook: hasHooks ? hookOf(agent) : undefined };
  };
}

function shellWord(word: string): string {
  return /^[\w.,:=@%+/-]+$/.test(word) ? word : `"${word.replaceAll(/["$`\\]/g, "\\$&")}"`;
}

/** Returns the path of this executable that stays when it is upgraded: where the shell finds it, if it is the same. */
function executable(): string {
  const own = process.execPath;
  if (target === null)
    throw new UsageError("agents start the executable: run cairn setup with it, not from source (scripts/build makes it)");
  if (/[\\/]_npx[\\/]/.test(own)) throw new UsageError("npx removes this executable some day: install it with npm install --global first");
  const found = Bun.which("cairn");
  return found !== null && realpathSync(found) === realpathSync(own) ? found : own;
}

/** Returns the changes of an agent's files, and why one is left as it is. */
function plan(agent: Agent, places: Places, isProject: boolean, wanted: Wanted): Planned[] {
  const files = isProject ? agent.project?.(places) : agent.user(places);
  const file = files?.find(({ path }) => existsSync(path)) ?? files?.[0];
  if (file === undefined) return [{ agent, problem: "it has no file in a project: leave --project out" }];
  const hooks = agent.hooks?.[isProject ? "project" : "user"]?.(places);
  const parts: Parts = hooks === undefined ? [file] : [file, hooks];
  const paths = [...new Set(parts.map(({ path }) => path))];
  return paths.flatMap((path) =>
    planFile(
      agent,
      path,
      parts.filter((part) => part.path === path),
      wanted,
    ),
  );
}

function planFile(agent: Agent, path: string, parts: Parts, wanted: Wanted): Planned[] {
  try {
    const before = readText(path);
    const isWanted = parts.some(({ format }) => (isHooks(format) ? wanted.hook : wanted.server) !== undefined);
    if (before === undefined && !isWanted) return [];
    const after = planned(parts, before?.text ?? "", wanted);
    return after === (before?.text ?? "") ? [] : [{ agent, path, parts, before, after }];
  } catch (error) {
    return [{ agent, problem: `${path} is left as it is: ${systemReason(error)}.` }];
  }
}

function isHooks(format: Part["format"]): boolean {
  return format === "hooks" || format === "own";
}

async function list(places: Places, isProject: boolean, wantedOf: WantedOf): Promise<void> {
  for (const agent of AGENTS) {
    const results = isInstalled(agent, places) ? plan(agent, places, isProject, wantedOf(agent)) : undefined;
    await print(escaped(`${agent.name.padEnd(16)}${agent.title.padEnd(16)}${stateOf(results, places)}`));
  }
  await print(
    "\ncairn setup AGENT… shows what it would change in these files, and asks first; cairn setup all does so for all that are here.",
  );
}

function stateOf(results: readonly Planned[] | undefined, places: Places): string {
  if (results === undefined) return "not installed";
  const problem = results.find((result) => "problem" in result);
  if (problem !== undefined) return problem.problem;
  const paths = results.flatMap((result) => ("problem" in result ? [] : [shown(result.path, places)]));
  return paths.length === 0 ? "nothing to change" : `would change ${paths.join(", ")}`;
}

function shown(path: string, { home, project }: Places): string {
  for (const [directory, name] of [
    [project, "."],
    [home, "~"],
  ] as const) {
    const inside = relative(directory, path);
    if (!inside.startsWith("..") && resolve(directory, inside) === path) return `${name}/${inside}`;
  }
  return path;
}

/** Prints the lines that change and no others: a file may hold secrets of its owner. */
async function printDiff(change: Change, places: Places): Promise<void> {
  const { path, before, after } = change;
  const name = escaped(shown(path, places));
  await print(`--- ${before === undefined ? "/dev/null" : name}\n+++ ${isRemoval(change) ? "/dev/null" : name}`);
  const { hunks } = structuredPatch("", "", before?.text ?? "", after, undefined, undefined, { context: 0 });
  for (const { oldStart, oldLines, newStart, newLines, lines } of hunks) {
    await print(`@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`);
    for (const line of lines) await print(escaped(line.replace(/\r$/, "")));
  }
}

function isRemoval({ parts, after }: Change): boolean {
  return after === "" && parts.some(({ format }) => format === "own");
}

async function isConfirmed(count: number): Promise<boolean> {
  if (!process.stdin.isTTY) throw new UsageError("nobody can be asked here: add --yes to write this, or --dry-run to see it only");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`Write ${count === 1 ? "this file" : `these ${count} files`}? [y/N] `);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}

/** Writes a change as it was shown; one to a file that has changed meanwhile is made to that. */
async function apply(change: Change, places: Places, wanted: Wanted): Promise<boolean> {
  const { agent, path, parts } = change;
  const name = shown(path, places);
  const keepsFirst = !parts.some(({ format }) => format === "own");
  try {
    if (isRemoval(change)) {
      removeText(path, change.before);
      await print(escaped(`${agent.title}: removed ${name}`));
      return true;
    }
    let { before, after } = change;
    for (let attempt = 1; !replaceText(path, before, after, keepsFirst); attempt += 1) {
      if (attempt === ATTEMPTS_MAX) throw new Error("it keeps changing");
      before = readText(path);
      after = planned(parts, before?.text ?? "", wanted);
    }
    await print(escaped(`${agent.title}: wrote ${name}`));
    if (wanted.hook !== undefined && agent.hooksNote !== undefined && parts.some(({ format }) => isHooks(format)))
      await print(escaped(`${agent.title}: ${agent.hooksNote}.`));
    return true;
  } catch (error) {
    console.error(escaped(`${agent.title}: ${basename(path)} is left as it is: ${systemReason(error)}.`));
    return false;
  }
}
