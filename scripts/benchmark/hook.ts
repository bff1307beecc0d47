/**
 * `scripts/bench hook`: what `cairn hook` adds to a prompt, next to `curl` with the same search, one after the other.
 *
 * @module
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Executable } from "../executable.ts";
import { Failure, readArguments } from "../failure.ts";

const HELP = `scripts/bench hook: measures what a hook adds to a prompt, next to curl

  --rounds N               of each (60)
  --binary FILE            another executable (dist/cairn)
`;

const root = dirname(dirname(import.meta.dir));
const QUERY = "On which day does Ada deploy?";

export async function measureHook(args: string[]): Promise<void> {
  const { values } = readArguments({
    args,
    options: {
      rounds: { type: "string", default: "60" },
      binary: { type: "string", default: join(root, "dist/cairn") },
      help: { type: "boolean", default: false },
    },
  });
  const rounds = Number(values.rounds);
  if (values.help) return console.log(HELP);
  if (!(rounds > 0)) throw new Failure(`--rounds must be a number above 0; got ${values.rounds}.`);
  const directory = mkdtempSync(join(tmpdir(), "cairn-hook-"));
  try {
    await measured(directory, values.binary, rounds);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function measured(directory: string, binary: string, rounds: number): Promise<void> {
  const dataDirectory = join(directory, "data");
  const cairn = await Executable.start({ binary, dataDirectory, logLevel: "error", log: join(directory, "log") });
  try {
    print(await timesOf(cairn, binary, directory, rounds));
  } finally {
    cairn.kill();
  }
}

interface Times {
  readonly hook: number[];
  readonly curl: number[];
}

async function timesOf(cairn: Executable, binary: string, directory: string, rounds: number): Promise<Times> {
  const [url, key, dataDirectory] = [cairn.url, await cairn.createKey(), join(directory, "data")];
  const headers = { "X-API-Key": key, "Content-Type": "application/json" };
  const memory = { content: "Ada deploys on Thursdays.", user_id: "ada" };
  const added = await fetch(`${url}/v1/memory`, { method: "POST", headers, body: JSON.stringify(memory) });
  if (added.status !== 201) throw new Failure(`The memory was answered with ${added.status}: ${await added.text()}`);
  const search = JSON.stringify({ query: QUERY, user_id: "ada", threshold: 0.7, limit: 5 });
  const curl = ["curl", "-sS", "--fail", "-H", `X-API-Key: ${key}`, "-H", "Content-Type: application/json", "-d", search];
  const hook = [binary, "hook", "--data-dir", dataDirectory, "--user", "ada", "--wait", "60000"];
  const times: Times = { hook: [], curl: [] };
  for (let round = -1; round < rounds; round += 1) {
    // A session of its own: a memory is shown once in each.
    const event = { session_id: `s-${round}`, hook_event_name: "UserPromptSubmit", cwd: directory, prompt: QUERY, prompt_id: "p" };
    const hookMs = await timed(hook, JSON.stringify(event));
    const curlMs = await timed([...curl, `${url}/v1/memory/search`], "");
    // The first of each reads its program from the disk.
    if (round < 0) continue;
    times.hook.push(hookMs);
    times.curl.push(curlMs);
  }
  return times;
}

function print(times: Times): void {
  const ratio = at(times.hook, 0.95) / at(times.curl, 0.95);
  for (const [name, ms] of Object.entries(times) as [string, number[]][])
    console.log(`${name.padEnd(6)}${[0, 0.5, 0.95].map((part) => `${at(ms, part).toFixed(1)} ms`.padStart(12)).join("")}`);
  console.log(`best, in the middle, at p95; at p95 the hook takes ${ratio.toFixed(1)} times as long as curl`);
}

/** Returns how long a program takes, in milliseconds. @throws {Failure} unless it finds the memory */
async function timed(command: readonly string[], input: string): Promise<number> {
  const startedAt = performance.now();
  const child = Bun.spawn([...command], { stdin: new Blob([input]), stdout: "pipe", stderr: "inherit" });
  const [said] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  const ms = performance.now() - startedAt;
  if (!said.includes("Thursdays")) throw new Failure(`${command[0]} did not find the memory: ${said}`);
  return ms;
}

function at(times: readonly number[], part: number): number {
  return times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))] ?? Number.NaN;
}
