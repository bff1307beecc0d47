/**
 * Tests of what not every machine has. Elsewhere they are skipped, which is never silent: their names say why, and `scripts/test`
 * sums them up at its end. With CAIRN_TEST_REQUIRE=all they fail instead.
 *
 * @module
 */
import { test } from "bun:test";
import { appendFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** What a machine may lack. */
export interface Part {
  readonly name: string;
  /** Says why it is not on this machine; undefined where it is. Asked once. */
  readonly problem: () => string | undefined;
}

/** A test that was not run, as a line of JSON in the file that CAIRN_TEST_MISSING names. */
export interface Missing {
  readonly part: string;
  readonly reason: string;
  readonly test: string;
}

type Register = (name: string, run: () => void | Promise<unknown>, timeoutMs?: number) => void;

/** Gives the function that registers a test of what only machines with some parts can do. */
export function needs(...parts: readonly Part[]): Register {
  const [missing] = parts.filter(({ problem }) => problem() !== undefined);
  if (missing === undefined) return test;
  const { name: part } = missing;
  const reason = missing.problem() ?? "";
  return (name, run, timeoutMs) => {
    const title = `${name} (not on this machine: ${reason})`;
    if (!note({ part, reason, test: name })) test.skip(title, run, timeoutMs);
    else test(title, () => Promise.reject(new Error(`CAIRN_TEST_REQUIRE=all requires ${part}`)));
  };
}

/**
 * Returns whether a part is on this machine, for what a test does otherwise without it.
 *
 * @param untested - what is not tested without it
 * @throws where it is missing and required
 */
export function isHere({ name: part, problem }: Part, untested: string): boolean {
  const reason = problem();
  if (reason !== undefined && note({ part, reason, test: untested }))
    throw new Error(`CAIRN_TEST_REQUIRE=all requires ${part}, for ${untested}: ${reason}`);
  return reason === undefined;
}

/** Has `scripts/test` say what is missing. @returns whether it is required */
function note(missing: Missing): boolean {
  const file = process.env["CAIRN_TEST_MISSING"];
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(missing)}\n`);
  return process.env["CAIRN_TEST_REQUIRE"] === "all";
}

/**
 * @param reason - what only Linux has
 * @param more - needed besides
 */
export function onLinux(reason: string, ...more: readonly Part[]): Register {
  return needs({ name: "Linux", problem: () => (process.platform === "linux" ? undefined : `only Linux has ${reason}`) }, ...more);
}

/** A program that this process would find. One that a version manager stands in for may be found and still not run. */
function program(part: string, command: string, ...args: readonly string[]): Part {
  const problem = once(() => {
    if (Bun.which(command) === null) return `there is no ${command}`;
    const { exitCode } = Bun.spawnSync([command, ...args], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    return exitCode === 0 ? undefined : `${command} does not run`;
  });
  return { name: part, problem };
}

export const CURL = program("curl", "curl", "--version");
export const PS = program("ps", "ps", "-p", String(process.pid));
export const DPKG = program("dpkg", "dpkg-deb", "--version");
export const GIT = program("git", "git", "--version");
export const NODE = program("Node.js", "node", "--version");
export const NPM = program("npm", "npx", "--version");
export const DENO = program("Deno", "deno", "--version");
export const PYTHON = program("Python", "python3", "-c", "");
/** The oldest that the client for Python runs on. */
export const PYTHON_3_11 = program("Python 3.11", "python3", "-c", "import sys; sys.exit(sys.version_info < (3, 11))");

/** Another Python that the client is tested on, by its version, which `scripts/python` finds. */
export const pythonOf = (version: string) => pythonPart(`Python ${version}`, { CAIRN_PYTHON: version }, "--which");

/** What the client for Python is tested with; the first who asks installs it. */
export const PYTHON_PACKAGES = pythonPart("packages for Python", {}, "-c", "");
export const pythonPackagesOf = (version: string) => pythonPart(`packages for Python ${version}`, { CAIRN_PYTHON: version }, "-c", "");

/** The reason why there is none is the last line that `scripts/python` says. */
function pythonPart(name: string, environment: Record<string, string>, ...args: readonly string[]): Part {
  const problem = once(() => {
    const script = join(dirname(dirname(import.meta.dir)), "scripts/python");
    const env = { ...process.env, ...environment };
    const { exitCode, stderr } = Bun.spawnSync([script, ...args], { env, stdin: "ignore", stdout: "ignore" });
    return exitCode === 0 ? undefined : (stderr.toString().trimEnd().split("\n").at(-1) ?? "");
  });
  return { name, problem };
}

/** A compiler of C++ with AddressSanitizer and UndefinedBehaviorSanitizer. */
export const SANITIZERS: Part = {
  name: "sanitizers",
  problem: once(() => {
    const compiler = process.env["CXX"] ?? "c++";
    if (Bun.which(compiler) === null) return `there is no ${compiler}`;
    const command = [compiler, "-fsanitize=address,undefined", "-x", "c++", "-", "-o", "/dev/null"];
    const { exitCode } = Bun.spawnSync(command, { stdin: Buffer.from("int main() {}"), stdout: "ignore", stderr: "ignore" });
    return exitCode === 0 ? undefined : `${compiler} has none`;
  }),
};

export const ROOT: Part = {
  name: "root",
  problem: once(() => (process.geteuid?.() === 0 ? undefined : "only root gives files to other users")),
};

/** What `localhost` on IPv6 needs. */
export const IPV6: Part = {
  name: "IPv6",
  problem: once(() => {
    const isHere = Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ address }) => address === "::1"));
    return isHere ? undefined : "the loopback interface has no ::1";
  }),
};

export const MOUNTS: Part = {
  name: "mounts",
  problem: once(() => (mayMount() ? undefined : "a process may not have mounts of its own, as in many containers")),
};

/** Returns the command that runs another one with mounts of its own, which go when it ends. */
export function mountCommand(): string[] {
  return process.geteuid?.() === 0 ? ["unshare", "--mount"] : ["unshare", "--user", "--map-root-user", "--mount"];
}

function mayMount(): boolean {
  if (Bun.which("unshare") === null) return false;
  return Bun.spawnSync([...mountCommand(), "mount", "-t", "tmpfs", "tmpfs", tmpdir()]).exitCode === 0;
}

/** Returns the same; undefined where that is not allowed, and then `untested` is what is not tested. */
export function ownMounts(untested: string): string[] | undefined {
  return isHere(MOUNTS, untested) ? mountCommand() : undefined;
}

function once<Value>(ask: () => Value): () => Value {
  let answer: { readonly value: Value } | undefined;
  return () => (answer ??= { value: ask() }).value;
}
