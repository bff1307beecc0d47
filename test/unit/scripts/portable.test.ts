/**
 * What runs on Linux and not on macOS: words that scripts, sources and tests must not have, or only where they say why. No Mac
 * runs these tests, so this is what keeps working from source on one from breaking unnoticed.
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";

const ROOT = join(import.meta.dir, "../../..");

const withoutComments = (text: string) =>
  text
    .replace(/\/\*[^]*?\*\//g, "")
    .replace(/^\s*(\/\/|#).*$/gm, "")
    .replace(/\s\/\/ .*$/gm, "");

function read(pattern: string): { path: string; code: string }[] {
  return Array.from(new Glob(pattern).scanSync(ROOT))
    .toSorted()
    .map((path) => ({ path, code: readFileSync(join(ROOT, path), "utf8") }));
}

const SHELL = [...read("scripts/*"), ...read("scripts/packaging/templates/*.sh")].filter(({ code }) => /^#!.*\b(ba)?sh\n/.test(code));

/** In a script: commands that macOS lacks, flags that its own do not know, and what bash 3.2, the one there, cannot do. */
const NOT_IN_SHELL: Readonly<Record<string, RegExp>> = {
  "a command that macOS lacks":
    /(?<![\w./-])(timeout|nproc|setsid|tac|shuf|numfmt|getent|ldd|free|pidof|ionice|chrt|prlimit|unshare|setpriv|xxd -r)\s/,
  "a flag of GNU":
    /\b(readlink -f|realpath|stat -c|sed -i|sed -r|sed -E -i|grep -P|date -d|date --|cp --|ls --|mktemp --|xargs -r|sort -V|head -n -|tail --|find .* -printf|du -b|ps --)/,
  "what bash 3.2 cannot do":
    /\b(mapfile|readarray|coproc|declare -A|local -A|local -n|declare -n|wait -n)\b|\$\{\w+(,,|\^\^|@[A-Z])\}|&>>|\|&|\$EPOCH|\[\[ -v /,
};

test("the scripts use what bash 3.2 and the commands of macOS have", () => {
  expect(SHELL.map(({ path }) => path)).toContain("scripts/setup");
  const found = SHELL.flatMap(({ path, code }) =>
    Object.entries(NOT_IN_SHELL).flatMap(([what, pattern]) => (pattern.test(withoutComments(code)) ? [`${path}: ${what}`] : [])),
  );
  expect(found).toEqual([]);
});

test("a command that only some systems have is used only where it is there", () => {
  const guarded = ["flock", "sha256sum", "shasum", "sysctl"];
  const bare = SHELL.flatMap(({ path, code }) => {
    const text = withoutComments(code);
    return guarded
      .filter((name) => new RegExp(`\\b${name}\\b`).test(text) && !new RegExp(`command -v ${name}|${name} .*2>/dev/null`).test(text))
      .map((name) => `${path}: ${name}`);
  });
  expect(bare).toEqual([]);
});

/** What only Linux has, for programs. */
const LINUX_ONLY = /\/proc\/|\/dev\/(full|shm)|\/sys\/|libc\.so\.6|LD_PRELOAD|\b(prlimit|unshare|nsenter|setpriv|systemctl)\b/;

/** Where the product and the scripts use it, and what they do elsewhere. */
const KNOWN: Readonly<Record<string, string>> = {
  "src/cli/bench/process-use.ts": "ps",
  "src/cli/notify.ts": "only under systemd",
  "src/config.ts": "asks on Linux alone whether it has IPv6; elsewhere it has",
  "src/lib/native.ts": "the build for every processor where /proc/cpuinfo is not there; a directory that is not there is passed over",
  "src/operations/files.ts": "the path itself, in a directory that nobody else can write to",
  "scripts/bare.ts": "refuses where there is no dpkg-query",
  "scripts/executable.ts": "ps",
  "scripts/weights.ts": "the path of the executable, which may be another by then",
  "scripts/packaging/systems.ts": "a release is made on Linux",
  "scripts/packaging/smoke.ts": "a release is made on Linux",
};

test("the product and the scripts use what only Linux has where they know what to do without", () => {
  const using = [...read("src/**/*.ts"), ...read("scripts/**/*.ts")].filter(({ code }) => LINUX_ONLY.test(withoutComments(code)));
  expect(using.map(({ path }) => path).filter((path) => !Object.hasOwn(KNOWN, path) && !path.startsWith("scripts/mutation/"))).toEqual([]);
});

test("a test that needs what only Linux has says so in its name where it is skipped", () => {
  const words = new RegExp(`${LINUX_ONLY.source}|"sha256sum"|diskShim\\(|bindDatagrams\\(|compileLibrary\\(`);
  const silent = read("test/**/*.test.ts")
    .filter(({ path }) => path !== "test/unit/scripts/portable.test.ts")
    .filter(({ code }) => words.test(withoutComments(code)) && !/\bonLinux\(/.test(code))
    .map(({ path }) => path);
  // One needs dpkg, which says so; the other does something else where it is missing: modes in the place of mounts, and a path that is
  // nowhere either.
  expect(silent.toSorted()).toEqual(["test/packaging/deb.test.ts", "test/process/reading.test.ts"]);
});
