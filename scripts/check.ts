/**
 * The gate: everything that has to hold before a change goes in.
 *
 *     scripts/test          types, lint, format, unused code, the executable, then every test
 *     scripts/test --fix    puts the format right instead, and what the linter can mend; writes the types of the client
 *
 * Says one line for what passes and everything for what fails. The last line sums up the tests, those of the front door on PostgreSQL
 * included; where there is no PostgreSQL to test with, the line before it says so.
 *
 * @module
 */
import { dirname } from "node:path";
import { installPostgres } from "../test/support/postgres.ts";

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

/** On every processor, the slowest files of the last run first. The timeout only ends what hangs: machines can be slow. */
const TESTS = "test --parallel --no-isolate --randomize --only-failures --timeout 120000".split(" ");
const timings = (store: string) => [`--timings=.tools/test-timings-${store}.json`, "--update-timings"];

const filesOf = (names: string) => names.split(" ").map((name) => `test/${name}.test.ts`);
/** What these test depends on no store, or they start a PostgreSQL of their own. */
const ON_ANY_STORE = filesOf("config mutations servers shared-search spec-coverage tidy worst-length");
/** The tests of the front door run on PostgreSQL, too. */
const ON_POSTGRES = Array.from(new Bun.Glob("test/*.test.ts").scanSync(root))
  .sort()
  .filter((file) => !ON_ANY_STORE.includes(file));
/** Those that run once more on three servers that share a database. */
const ON_SERVERS = filesOf(
  "idempotency model/simulation races rate-limit restart webhook-deliveries webhook-events webhook-retries webhook-targets webhooks",
);

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
  const [withoutPostgres, ...outcomes] = await Promise.all([installPostgres(), ...CHECKS.map(runCheck)]);
  const testsPassed = await runTests(withoutPostgres);
  return testsPassed && outcomes.every((outcome) => outcome.passed);
}

async function runCheck({ name, command }: Check): Promise<Outcome> {
  const outcome = await run(command);
  console.log(outcome.passed ? `${name}: ok` : `${name}: FAILED\n${outcome.output}`);
  return outcome;
}

/** @param withoutPostgres - why there is none */
async function runTests(withoutPostgres: string | undefined): Promise<boolean> {
  const { passed, output } = await run([...TESTS, ...timings("embedded")]);
  if (!passed) console.log(`tests: FAILED\n${output}`);
  const runs = [{ passed, output }];
  for (const [files, servers] of withoutPostgres === undefined
    ? ([
        [ON_POSTGRES, "1"],
        [ON_SERVERS, "3"],
      ] as const)
    : []) {
    const command = [...TESTS, ...timings(`postgres-${servers}`), ...files];
    const again = await run(command, { CAIRN_TEST_STORE: "postgres", CAIRN_TEST_SERVERS: servers });
    const name = `tests on PostgreSQL, servers that share it: ${servers}`;
    const skipped = countIn(again.output, "skip");
    console.log(again.passed ? `${name}: ok, ${skipped} skipped of what only the embedded store has` : `${name}: FAILED\n${again.output}`);
    runs.push(again);
  }
  if (withoutPostgres !== undefined) console.log(`NOT TESTED: the store on PostgreSQL: ${withoutPostgres}`);
  const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
  // What fails outside of any test, like a file that cannot be read, ends the run without being counted.
  const failed = sum(runs.map((one) => Math.max(countIn(one.output, "fail"), one.passed ? 0 : 1)));
  console.log(`${sum(runs.map((one) => countIn(one.output, "pass")))} passed, ${failed} failed`);
  return runs.every((one) => one.passed);
}

/** From Bun's summary, which has a line for each: ` 12 pass`. */
function countIn(output: string, what: "pass" | "fail" | "skip"): number {
  return Number(new RegExp(`^\\s*(\\d+) ${what}$`, "m").exec(output)?.[1] ?? 0);
}

async function fix(): Promise<boolean> {
  const types = await runCheck({ name: "types of the client", command: ["scripts/client-types.ts"] });
  const lint = await runCheck({ name: "lint", command: [...LINT, "--fix"] });
  const format = await runCheck({ name: "format", command: FORMAT });
  return types.passed && lint.passed && format.passed;
}

async function run(command: readonly string[], environment: Record<string, string> = {}): Promise<Outcome> {
  const env = { ...process.env, ...environment };
  const child = Bun.spawn([process.execPath, ...command], { cwd: root, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { passed: code === 0, output: stdout + stderr };
}

const passed = process.argv.includes("--fix") ? await fix() : await check();
process.exit(passed ? 0 : 1);
