/**
 * The compilers that make the native add-ons: the system's for this machine, zig for what is released.
 *
 * zig comes from npm with the headers and libraries of every target, so one machine builds for all of them, and for systems
 * older than itself: a library that was linked on a new glibc does not start on an old one. On a machine without a compiler it stands
 * in for the system's, where it runs.
 *
 * @module
 */
import { join } from "node:path";
import { Failure } from "./failure.ts";
import { zigDirectory } from "./runtime.ts";
import { hostTarget, targetOf, type Target, type TargetName } from "./targets.ts";

export type Toolchain = "system" | "zig";

/** A level of the instruction set of x86-64. */
export type Level = "v3" | "v4";

export interface Compiler {
  readonly toolchain: Toolchain;
  readonly target: TargetName;
  /** Command before the arguments. */
  readonly c: readonly string[];
  readonly cpp: readonly string[];
  /** undefined when it is not there: what it has made can be used all the same. */
  readonly version: string | undefined;
  readonly flags: readonly string[];
  readonly environment: Record<string, string>;
  /** @param level - undefined: what every processor has */
  levelFlags(level: Level | undefined): readonly string[];
  /** @param name - of the library */
  linkFlags(name: string): readonly string[];
}

const root = join(import.meta.dir, "..");

/** Symbols that an add-on shows to the program that loads it. */
const EXPORTS = join(root, "scripts/exports.map");

/** @throws {Failure} when there is no such compiler for this target on this machine */
export async function compilerFor(target: TargetName, toolchain: Toolchain): Promise<Compiler> {
  return toolchain === "zig" ? zig(target) : system(target);
}

/**
 * Returns the compiler if it is there, or else what compiles in its place.
 *
 * @throws {Failure} saying how to get one, when there is neither
 */
export async function presentCompiler(target: TargetName, toolchain: Toolchain): Promise<Compiler> {
  const compiler = await compilerFor(target, toolchain);
  if (compiler.version === undefined && toolchain === "system" && mayUseZig()) return { ...(await zig(target)), toolchain };
  assertThere(compiler);
  return compiler;
}

/** A compiler that CXX names is wanted and no other. */
function mayUseZig(): boolean {
  const runs = process.platform === "linux" && process.arch === "x64";
  return runs && process.env["CXX"] === undefined && Bun.which("npm") !== null;
}

/** Builds for this machine only. It is checked to be there once something has to be compiled. */
function system(target: TargetName): Compiler {
  if (target !== hostTarget()) throw new Failure(`The system's compiler builds for ${hostTarget()} only, not for ${target}.`);
  const command = process.env["CXX"] ?? "c++";
  const { platform } = targetOf(target);
  return {
    toolchain: "system",
    target,
    c: [command, "-x", "c"],
    cpp: [command],
    version: versionOf([command, "--version"]),
    flags: [],
    environment: {},
    levelFlags: (level) => (level === undefined ? [] : [`-march=x86-64-${level}`]),
    linkFlags: (name) =>
      // A libstdc++ of its own means that the result needs no library but libc.
      platform === "darwin" ? macosLinkFlags(name) : [...linuxLinkFlags(), "-pthread", "-static-libstdc++", "-static-libgcc"],
  };
}

async function zig(target: TargetName): Promise<Compiler> {
  const directory = await zigDirectory();
  const command = join(directory, "zig");
  const { triple, platform, architecture }: Target = targetOf(target);
  const cache = join(root, ".tools/zig-cache");
  return {
    toolchain: "zig",
    target,
    c: [command, "cc"],
    cpp: [command, "c++"],
    version: versionOf([command, "version"]),
    // Without the last it adds traps on undefined behaviour.
    flags: ["-target", triple, "-fno-sanitize=undefined"],
    environment: { ZIG_GLOBAL_CACHE_DIR: cache, ZIG_LOCAL_CACHE_DIR: join(cache, "local") },
    levelFlags: (level) => (architecture === "x64" ? [`-mcpu=x86_64${level === undefined ? "" : `_${level}`}`] : []),
    linkFlags: (name) => (platform === "darwin" ? [...macosLinkFlags(name), "-s"] : linuxLinkFlags()),
  };
}

function linuxLinkFlags(): string[] {
  return ["-shared", "-s", `-Wl,--version-script=${EXPORTS}`];
}

/** The program that loads it has what it does not define; without a name of its own it would keep the path it was linked at. */
function macosLinkFlags(name: string): string[] {
  return ["-dynamiclib", "-Wl,-undefined,dynamic_lookup", `-Wl,-install_name,@rpath/${name}.node`];
}

function versionOf([command = "", ...args]: string[]): string | undefined {
  if (Bun.which(command) === null) return undefined;
  return (
    Bun.spawnSync([command, ...args])
      .stdout.toString()
      .split("\n")[0] ?? ""
  );
}

/** @throws {Failure} saying how to get one, when it is not there */
function assertThere({ version, cpp: [command], toolchain }: Compiler): void {
  if (version !== undefined) return;
  const advice =
    process.platform === "darwin"
      ? "Install Apple's (xcode-select --install), or name yours in CXX."
      : "Install one (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++ libstdc++-static; Alpine: apk add g++), name yours in CXX, or install npm, which has one.";
  const isDefault = toolchain === "system" && command === "c++";
  throw new Failure(
    `There is no C++ compiler (${command}), and the native add-ons have to be compiled once.\n` +
      (isDefault ? advice : "Install it, or name another one in CXX."),
  );
}
