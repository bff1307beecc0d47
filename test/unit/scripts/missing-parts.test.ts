import { expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratchDirectory } from "../../support/process.ts";

const ROOT = dirname(dirname(dirname(import.meta.dir)));

/** Runs the gate's command on a file with a test of what every machine has, and one of what none has. */
function runOnFile(environment: Record<string, string>) {
  using directory = scratchDirectory();
  const file = directory.at("some.test.ts");
  const platform = JSON.stringify(join(ROOT, "test/support/platform.ts"));
  writeFileSync(
    file,
    `import { expect, test } from "bun:test";
import { isHere, needs } from ${platform};
import { longRounds } from ${JSON.stringify(join(ROOT, "test/support/rounds.ts"))};
const ANVIL = { name: "an anvil", problem: () => "nobody has brought one" };
test("a hammer falls", () => expect(longRounds(1, 20)).toBe(${environment["CAIRN_TEST_ALL"] === "1" ? 20 : 1}));
needs(ANVIL)("it rings", () => expect(1).toBe(2));
if (isHere(ANVIL, "swords")) test("a sword is forged", () => expect(1).toBe(2));
`,
  );
  const env = { PATH: process.env["PATH"] ?? "", ...environment };
  const args = environment["CAIRN_TEST_ALL"] === "1" ? ["--all", file] : [file];
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, join(ROOT, "scripts/check.ts"), ...args], { cwd: ROOT, env });
  const missing = stdout
    .toString()
    .split("\n")
    .filter((line) => /^(NOT TESTED| {2}- )/.test(line));
  const counted = [...stderr.toString().matchAll(/^ (\d+) (pass|skip|fail)$/gm)].map(([, count, what]) => `${count} ${what}`);
  return { exitCode, missing, counted };
}

const MISSING = ["NOT TESTED on this machine, which lacks an anvil (nobody has brought one):", "  - it rings", "  - swords"];

for (const { name, environment } of [
  { name: "", environment: {} },
  { name: ", with --all too, where rounds are many", environment: { CAIRN_TEST_ALL: "1" } },
]) {
  test(`what a machine lacks is said at the end, and is no failure${name}`, () => {
    expect(runOnFile(environment)).toEqual({ exitCode: 0, missing: MISSING, counted: ["1 pass", "1 skip", "0 fail"] });
  });
}

test("with CAIRN_TEST_REQUIRE=all what a machine lacks fails, a whole file too", () => {
  const { exitCode, missing } = runOnFile({ CAIRN_TEST_REQUIRE: "all" });
  expect({ exitCode, missing }).toEqual({ exitCode: 1, missing: MISSING });
});

test("what tests leave of their temporary files is named and a failure, and goes with the run", () => {
  using directory = scratchDirectory();
  const file = directory.at("some.test.ts");
  writeFileSync(
    file,
    `import { test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
test("a hammer is left lying", () => void mkdtempSync(tmpdir() + "/hammer-"));
`,
  );
  const env = { PATH: process.env["PATH"] ?? "", TMPDIR: directory.path };
  const { exitCode, stdout } = Bun.spawnSync([process.execPath, join(ROOT, "scripts/check.ts"), file], { cwd: ROOT, env });
  expect({ exitCode, left: readdirSync(directory.path) }).toEqual({ exitCode: 1, left: ["some.test.ts"] });
  expect(stdout.toString()).toMatch(/^LEFT by tests in the directory for temporary files: hammer-\w+$/m);
});
