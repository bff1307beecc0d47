/**
 * `cairn hook status`, `pause` and `resume`.
 *
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { readSetupConfig } from "../../config.ts";
import { AGENTS, type Agent } from "../setup/agents.ts";
import { isOurHook } from "../setup/hook-edits.ts";
import { print, escaped } from "../print.ts";
import { announced } from "../announcement.ts";
import type { HookEnvironment, Subcommand } from "./environment.ts";
import { isPaused, lastEvents, pause } from "./kept.ts";

const P95 = 0.95;

export async function run(subcommand: Subcommand, { directory, server, isOff }: HookEnvironment): Promise<number> {
  if (subcommand !== "status") {
    pause(directory, subcommand === "pause");
    await print(subcommand === "pause" ? "Hooks do nothing until cairn hook resume." : "Hooks are on.");
    return 0;
  }
  await print(`Hooks: ${isOff ? "off (CAIRN_HOOKS)" : isPaused(directory) ? "paused" : "on"}`);
  await print(
    escaped(`Server: ${server?.url.origin ?? (announced(directory) === undefined ? "none is running" : `that of ${directory}`)}`),
  );
  const events = Object.entries(lastEvents(directory));
  const silent = AGENTS.filter(({ name }) => !events.some(([agent]) => agent === name)).filter(isSetUp);
  for (const { name, hooksNote } of silent)
    await print(`${name}: set up, and has not run a hook yet${hooksNote === undefined ? "" : `; ${hooksNote}`}`);
  if (events.length + silent.length === 0) await print("No agent has run a hook yet: cairn setup enters them.");
  for (const [agent, { event, at, version, problem, ms }] of events) {
    const sorted = ms.toSorted((one, other) => one - other);
    const p95 = sorted[Math.ceil(sorted.length * P95) - 1];
    const parts = [`last event ${event} at ${at}`, version && `version ${version}`, p95 !== undefined && `prompts take ${p95} ms (p95)`];
    await print(escaped(`${agent}: ${parts.filter(Boolean).join(", ")}`));
    if (problem !== undefined) await print(escaped(`  problem: ${problem}`));
  }
  return 0;
}

/** Checks whether an agent has our hooks in the files of its user. */
function isSetUp({ hooks }: Agent): boolean {
  try {
    const path = hooks?.user({ ...readSetupConfig([]), project: process.cwd() }).path;
    return path !== undefined && existsSync(path) && isOurHook(readFileSync(path, "utf8"));
  } catch {
    // There is no home directory, or the file cannot be read.
    return false;
  }
}
