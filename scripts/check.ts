/**
 * The gate: everything that has to hold before a change goes in.
 *
 *     scripts/test          types, lint, format, unused code, the executable, then every test
 *     scripts/test FILE…    test files alone, with what `bun test` takes
 *     scripts/test --all    the same as either, as long as tests should run that are longer by nature
 *     scripts/test --bare   the same as either, on a machine that has npm and nothing else
 *     scripts/test --fix    puts the format right instead, and what the linter can repair; writes what is made of the API in the clients, and in pages
 *
 * Says one line for what passes and everything for what fails. The last line sums up the tests, those of the front door on PostgreSQL
 * included; the lines before it say what could not be run on this machine, and why. That is no failure unless CAIRN_TEST_REQUIRE=all.
 * Tests have a directory for temporary files, which goes with the run; what they leave there when they have passed is a failure.
 *
 * @module
 */
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Missing } from "../test/support/platform.ts";
import { installPostgres } from "../test/support/postgres.ts";
import { testBare } from "./bare.ts";

interface Check {
  readonly name: string;
  /** Arguments for this same Bun, which also runs the tools: their own first line asks for Node. */
  readonly command: readonly string[];
}

interface Outcome {
  readonly passed: boolean;
  readonly output: string;
}

const root = dirname(import.meta.dir);

const CODE = ["src", "test", "scripts"];
const FORMAT = [...tool("oxfmt"), "-c", "scripts/oxfmt.json", ...CODE];
const LINT = [
  ...tool("oxlint"),
  "-c",
  "scripts/oxlint.json",
  "--type-aware",
  "--deny-warnings",
  "--report-unused-disable-directives",
  ...CODE,
];

const [isAll, args] = process.argv[2] === "--all" ? [true, process.argv.slice(3)] : [false, process.argv.slice(2)];
/** The timeout only ends what hangs: machines can be slow. */
const TEST = ["test", "--timeout", isAll ? "3600000" : "300000"];
const TESTS = [...TEST, ..."--no-isolate --randomize --only-failures".split(" ")];
/** More than there are processors: files that start processes, or a browser, wait for a third of their time. */
const EMBEDDED_WORKERS = availableParallelism() + 1;
/** With its database and its threads one keeps a processor busy. */
const POSTGRES_WORKERS = availableParallelism();

const filesOf = (names: string) => names.split(" ").map((name) => `test/${name}.test.ts`);
/** Tests of what depends on no store, or that start a PostgreSQL of their own. */
const ON_ANY_STORE = filesOf("config mutations pages servers shared-search spec-coverage tidy worst-length");
/** On PostgreSQL these tests run on three servers that share a database. */
const ON_SERVERS = filesOf(
  "idempotency model/simulation names races rate-limit restart webhook-deliveries webhook-events webhook-retries webhook-targets webhooks",
);
/** With one server alone, all that know a database are away at a restart. */
const ON_EITHER = filesOf("restart");
/** The other tests of the front door run on PostgreSQL, too, with one server. */
const ON_POSTGRES = Array.from(new Bun.Glob("test/*.test.ts").scanSync(root))
  .sort()
  .filter((file) => ON_EITHER.includes(file) || ![...ON_ANY_STORE, ...ON_SERVERS].includes(file));

/** For temporary files. Its name is short: sockets are made below it, whose paths may have some hundred characters. */
const scratch = mkdtempSync(join(tmpdir(), "cairn-"));
// The user of PostgreSQL has a directory in it.
chmodSync(scratch, 0o711);
/** File in which tests note what they cannot do on this machine. */
const MISSING = join(scratch, ".missing");
const ENVIRONMENT = { ...process.env, TMPDIR: scratch, CAIRN_TEST_MISSING: MISSING, ...(isAll ? { CAIRN_TEST_ALL: "1" } : {}) };
/** For a PostgreSQL that a test has ended, whose directory goes after it. */
const LEAVING_SECONDS = 60;
const isAllRequired = process.env["CAIRN_TEST_REQUIRE"] === "all";

const CHECKS: readonly Check[] = [
  { name: "types", command: [...tool("tsc"), "--noEmit"] },
  { name: "types of the dashboard", command: [...tool("tsc"), "--noEmit", "-p", "src/dashboard/app"] },
  { name: "lint", command: LINT },
  { name: "format", command: [...FORMAT, "--check"] },
  { name: "unused code", command: [...tool("knip"), "-c", "scripts/knip.json", "--no-config-hints"] },
  { name: "executable", command: ["scripts/build.ts", "--if-changed"] },
];

function tool(name: string): string[] {
  return [`node_modules/.bin/${name}`];
}

/** All at once, then the tests: some measure time, and some use the executable. */
async function check(): Promise<boolean> {
  const [withoutPostgres, outcomes] = await Promise.all([installPostgres(), Promise.all(CHECKS.map(runCheck)), fetchPythonPackages()]);
  const testsPassed = await runTests(withoutPostgres);
  return testsPassed && outcomes.every((outcome) => outcome.passed);
}

/** Tests would wait for them, one after the other; those say why where there are none. */
async function fetchPythonPackages(): Promise<void> {
  await Bun.spawn([join(root, "scripts/python"), "--version"], { env: ENVIRONMENT, stdio: ["ignore", "ignore", "ignore"] }).exited;
}

async function runCheck({ name, command }: Check): Promise<Outcome> {
  const outcome = await run(command);
  console.log(outcome.passed ? `${name}: ok` : `${name}: FAILED\n${outcome.output}`);
  return outcome;
}

/** @param withoutPostgres - why there is none */
async function runTests(withoutPostgres: string | undefined): Promise<boolean> {
  const { passed, output } = await run([...TESTS, `--parallel=${EMBEDDED_WORKERS}`]);
  if (!passed) console.log(`tests: FAILED\n${output}`);
  const runs = [{ passed, output }];
  const missing: Missing[] = [];
  for (const [files, servers] of [
    [ON_POSTGRES, "1"],
    [ON_SERVERS, "3"],
  ] as const) {
    const name = `tests on PostgreSQL, servers that share it: ${servers}`;
    if (withoutPostgres !== undefined) {
      missing.push({ part: "PostgreSQL", reason: withoutPostgres, test: `${name}, ${files.length} files` });
      continue;
    }
    const command = [...TESTS, `--parallel=${POSTGRES_WORKERS}`, ...files];
    const again = await run(command, { CAIRN_TEST_STORE: "postgres", CAIRN_TEST_SERVERS: servers });
    const skipped = countIn(again.output, "skip");
    console.log(again.passed ? `${name}: ok, ${skipped} skipped of what only the embedded store has` : `${name}: FAILED\n${again.output}`);
    runs.push(again);
  }
  missing.push(...missingInTests());
  sayMissing(missing);
  const isMissingRequired = isAllRequired && missing.length > 0;
  const isLeft = runs.every((one) => one.passed) && (await isAnythingLeft());
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  // A failure outside of any test, like a file that cannot be read, ends the run without being counted.
  const failed = sum(runs.map((one) => Math.max(countIn(one.output, "fail"), one.passed ? 0 : 1)));
  console.log(`${sum(runs.map((one) => countIn(one.output, "pass")))} passed, ${failed || Number(isMissingRequired || isLeft)} failed`);
  return runs.every((one) => one.passed) && !isMissingRequired && !isLeft;
}

async function runFiles(files: readonly string[]): Promise<boolean> {
  const child = Bun.spawn([process.execPath, ...TEST, ...files], { cwd: root, env: ENVIRONMENT, stdio: ["inherit", "inherit", "inherit"] });
  const code = await endedBySignals(child);
  sayMissing(missingInTests());
  return code === 0 && !(await isAnythingLeft());
}

/** Says what tests have left of their temporary files; a browser leaves some, which begin with a dot. */
async function isAnythingLeft(): Promise<boolean> {
  const end = performance.now() + LEAVING_SECONDS * 1_000;
  for (;;) {
    const left = readdirSync(scratch).filter((name) => !name.startsWith("."));
    if (left.length === 0) return false;
    if (performance.now() > end || !left.every((name) => name.startsWith("cairn-postgres-"))) {
      console.log(`LEFT by tests in the directory for temporary files: ${left.join(", ")}`);
      return true;
    }
    await Bun.sleep(100);
  }
}

/** Reads what tests have noted, each once. */
function missingInTests(): Missing[] {
  const lines = existsSync(MISSING) ? readFileSync(MISSING, "utf8").split("\n").filter(Boolean) : [];
  return Array.from(new Set(lines), (line) => JSON.parse(line) as Missing);
}

function sayMissing(missing: readonly Missing[]): void {
  for (const [part, some = []] of Object.entries(Object.groupBy(missing, (one) => one.part))) {
    const reasons = Array.from(new Set(some.map(({ reason }) => reason)));
    console.log(`NOT TESTED on this machine, which lacks ${part} (${reasons.join("; ")}):`);
    for (const { test } of some) console.log(`  - ${test}`);
  }
}

/** From Bun's summary, which has a line for each: ` 12 pass`. */
function countIn(output: string, what: "pass" | "fail" | "skip"): number {
  return Number(new RegExp(`^\\s*(\\d+) ${what}$`, "m").exec(output)?.[1] ?? 0);
}

async function fix(): Promise<boolean> {
  const types = await runCheck({ name: "types of the client", command: ["scripts/client-types.ts"] });
  const python = await runCheck({ name: "the client for Python", command: ["scripts/python-client.ts"] });
  const pages = await runCheck({ name: "generated parts of pages", command: ["scripts/generated-pages.ts"] });
  const lint = await runCheck({ name: "lint", command: [...LINT, "--fix"] });
  const format = await runCheck({ name: "format", command: FORMAT });
  return types.passed && python.passed && pages.passed && lint.passed && format.passed;
}

async function run(command: readonly string[], environment: Record<string, string> = {}): Promise<Outcome> {
  const env = { ...ENVIRONMENT, ...environment };
  const child = Bun.spawn([process.execPath, ...command], { cwd: root, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    endedBySignals(child),
  ]);
  return { passed: code === 0, output: stdout + stderr };
}

/** Passes on what ends this run, so that the directory for temporary files goes with it. */
async function endedBySignals(child: Bun.Subprocess): Promise<number> {
  const end = (signal: NodeJS.Signals) => child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, end);
  const code = await child.exited;
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, end);
  return code;
}

async function main(): Promise<boolean> {
  if (args[0] === "--fix") return fix();
  if (args[0] === "--bare") return (await testBare(args.slice(1))) === 0;
  return args.length > 0 ? runFiles(args) : check();
}

try {
  process.exitCode = (await main()) ? 0 : 1;
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
