/**
 * `scripts/mutate`: whether the tests notice what they are there to notice.
 *
 * Each mutation of `mutations.txt` is made in a copy of the repository and its tests are run there, each file first without it:
 * a test that fails anyway notices nothing. A test that takes far longer than it did then counts as one that failed.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure, readArguments, runScript } from "../failure.ts";
import { mutate, type Mutation } from "./mutation.ts";
import { MUTATIONS } from "./mutations.ts";
import { Workspace, type TestRun } from "./workspace.ts";

const HELP = `scripts/mutate: breaks the code in one place after another and checks that a test notices

  --only N,N-M     these mutations, by their numbers
  --file TEXT      those of files whose path contains this
  --says TEXT      those whose description contains this
  --jobs N         how many at once (1)
  --list           says what there is and runs nothing

The exit code is 1 when a mutation survives, or its tests fail without it.
`;

const root = dirname(dirname(import.meta.dir));
/** Of a test file that has hung: this, and so many times as long as without a mutation. */
const LIMIT_MS_MIN = 60_000;
const LIMIT_FACTOR = 5;
const JOBS_MAX = 16;

interface Numbered extends Mutation {
  readonly number: number;
}

async function main(): Promise<void> {
  const { values } = readArguments({
    options: {
      only: { type: "string" },
      file: { type: "string", default: "" },
      says: { type: "string", default: "" },
      jobs: { type: "string", default: "1" },
      list: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return void process.stdout.write(HELP);
  const chosen = chooseMutations(values.only, ({ file, breaks }) => file.includes(values.file ?? "") && breaks.includes(values.says ?? ""));
  for (const mutation of chosen) mutate(readFileSync(join(root, mutation.file), "utf8"), mutation);
  if (values.list) return chosen.forEach((mutation) => console.log(describe(mutation)));
  const { survivors, undecided } = await runAll(chosen, readJobs(values.jobs ?? ""));
  const caught = chosen.length - survivors.length - undecided.length;
  console.log(`${chosen.length} mutations, ${caught} caught, ${survivors.length} survived, ${undecided.length} undecided`);
  for (const mutation of survivors) console.log(`survived: ${describe(mutation)}\n  ${mutation.find}\n  → ${mutation.replace}`);
  for (const mutation of undecided) console.log(`undecided: ${describe(mutation)}`);
  if (caught < chosen.length) process.exit(1);
}

function chooseMutations(only: string | undefined, isMeant: (mutation: Mutation) => boolean): Numbered[] {
  const numbers = only === undefined ? undefined : readNumbers(only);
  const chosen = MUTATIONS.map((mutation, index) => ({ ...mutation, number: index + 1 })).filter(
    (mutation) => (numbers === undefined || numbers.has(mutation.number)) && isMeant(mutation),
  );
  if (chosen.length === 0) throw new Failure("There is no such mutation; --list says what there is.");
  return chosen;
}

/** `3,7-9` */
function readNumbers(text: string): Set<number> {
  return new Set(
    text.split(",").flatMap((part) => {
      const [, from, to] = /^(\d{1,4})(?:-(\d{1,4}))?$/.exec(part) ?? [];
      if (from === undefined) throw new Failure(`--only takes numbers such as 3,7-9; got ${part}`);
      return Array.from({ length: Number(to ?? from) - Number(from) + 1 }, (_, i) => Number(from) + i);
    }),
  );
}

function readJobs(text: string): number {
  const jobs = Number(text);
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > JOBS_MAX) throw new Failure(`--jobs takes a number from 1 to ${JOBS_MAX}; got ${text}`);
  return jobs;
}

/** @returns those that survived, and those whose tests fail, or cannot be run, anyway */
async function runAll(mutations: readonly Numbered[], jobs: number): Promise<{ survivors: Numbered[]; undecided: Numbered[] }> {
  const survivors: Numbered[] = [];
  const undecided: Numbered[] = [];
  const baselines = new Map<string, Promise<TestRun>>();
  const queue = [...mutations];
  const workspaces = Array.from({ length: jobs }, () => new Workspace(root));
  const clean = () => workspaces.forEach((workspace) => workspace[Symbol.dispose]());
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      clean();
      process.exit(1);
    });
  }
  const work = async (workspace: Workspace) => {
    for (let mutation = queue.shift(); mutation !== undefined; mutation = queue.shift()) {
      try {
        if (!(await isCaught(workspace, mutation, baselines))) survivors.push(mutation);
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        console.log(`${describe(mutation)}: UNDECIDED: ${error.message}`);
        undecided.push(mutation);
      }
    }
  };
  try {
    await Promise.all(workspaces.map(work));
  } finally {
    clean();
  }
  const sorted = (some: Numbered[]) => some.sort((a, b) => a.number - b.number);
  return { survivors: sorted(survivors), undecided: sorted(undecided) };
}

async function isCaught(workspace: Workspace, mutation: Numbered, baselines: Map<string, Promise<TestRun>>): Promise<boolean> {
  const limits = new Map<string, number>();
  for (const file of mutation.tests) {
    // Another job may be at it; the time is the same for both.
    const baseline = baselines.get(file) ?? workspace.test(file, LIMIT_FACTOR * LIMIT_MS_MIN);
    baselines.set(file, baseline);
    const { outcome, ms, output } = await baseline;
    if (outcome !== "passed") throw new Failure(`${file} ${outcome} without any mutation:\n${output}`);
    limits.set(file, Math.max(LIMIT_MS_MIN, Math.ceil(LIMIT_FACTOR * ms)));
  }
  const startedAt = performance.now();
  const caughtBy = await workspace.with(mutation, async () => {
    for (const [file, limitMs] of limits) {
      const { outcome, output } = await workspace.test(file, limitMs);
      if (outcome !== "passed") return `${file} › ${outcome === "timed out" ? "(timed out)" : firstFailure(output)}`;
    }
    return undefined;
  });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${describe(mutation)}: ${caughtBy === undefined ? "SURVIVED" : `caught by ${caughtBy}`} (${seconds} s)`);
  return caughtBy !== undefined;
}

/** @throws {Failure} when no test ran: then nothing says that one would have noticed */
function firstFailure(output: string): string {
  const name = /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(output)?.[1];
  if (name === undefined) throw new Failure(`No test could be run with the mutation:\n${output}`);
  return name;
}

function describe({ number, file, symbol, breaks }: Numbered): string {
  return `${String(number).padStart(3)} ${[file, symbol].join(" ").trim()}: ${breaks}`;
}

await runScript(main);
