import { expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchDirectory } from "../support/process.ts";

const ROOT = join(import.meta.dir, "../..");

/** `scripts/test` beside a preparation that finds a Bun outside the path, which says what it was asked. */
async function asked(...args: string[]): Promise<string> {
  using directory = scratchDirectory();
  const scripts = join(directory.path, "scripts");
  mkdirSync(scripts);
  copyFileSync(join(ROOT, "scripts/test"), join(scripts, "test"));
  writeFileSync(join(directory.path, "found"), '#!/bin/sh\necho "$@"\n');
  chmodSync(join(directory.path, "found"), 0o755);
  writeFileSync(join(scripts, "setup"), 'root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)\nbun=$root/found\n');
  const child = Bun.spawn([join(scripts, "test"), ...args], { env: { PATH: "/usr/bin:/bin" }, stdin: "ignore", stdout: "pipe" });
  const [stdout, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  expect(code).toBe(0);
  return stdout.trim();
}

test("scripts/test checks everything, mends with --fix and runs the tests it is given, with the Bun that was prepared", async () => {
  expect(await asked()).toBe("scripts/check.ts");
  expect(await asked("--fix")).toBe("scripts/check.ts --fix");
  expect(await asked("test/sessions.test.ts")).toBe("test --timeout 120000 test/sessions.test.ts");
});

test("what the README and package.json have one run needs no Bun on the path", () => {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };
  const commands = [...Array.from(readme.matchAll(/`([^`\n]+)`/g), ([, text = ""]) => text), ...Object.values(scripts)];
  expect(commands.filter((command) => command.startsWith("bun "))).toEqual([]);
});

const TIMEOUT_MS = 60_000;

test(
  "setting up removes what a compilation that was killed has left, and nothing of one that runs",
  () => {
    mkdirSync(join(ROOT, "native"), { recursive: true });
    const [left, running] = [mkdtempSync(join(ROOT, "native/scratch-")), mkdtempSync(join(ROOT, "native/scratch-"))];
    mkdirSync(join(left, "source"));
    const longAgo = new Date(0);
    utimesSync(left, longAgo, longAgo);
    const { exitCode, stderr } = Bun.spawnSync([join(ROOT, "scripts/setup")], { stdin: "ignore" });
    expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
    expect([left, running].map((path) => existsSync(path))).toEqual([false, true]);
    rmdirSync(running);
  },
  TIMEOUT_MS,
);

test(
  "a flag that a script does not know ends it with one line that names it",
  () => {
    for (const script of ["build.ts", "benchmark/main.ts", "evaluation/main.ts"]) {
      const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, join(ROOT, "scripts", script), "--nope"], { stdin: "ignore" });
      expect({ script, exitCode, stdout: stdout.toString(), stderr: stderr.toString() }).toEqual({
        script,
        exitCode: 1,
        stdout: "",
        stderr: expect.stringMatching(/^[^\n]*--nope[^\n]*\n$/),
      });
    }
  },
  TIMEOUT_MS,
);
