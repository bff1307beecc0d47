/**
 * The systems that Cairn is released for. One Linux x64 machine builds all of them.
 *
 * @module
 */
import { existsSync, readdirSync } from "node:fs";
import { Failure } from "./failure.ts";

export interface Target {
  readonly platform: "linux" | "darwin";
  readonly architecture: "x64" | "arm64";
  /** On Linux. */
  readonly libc?: "glibc" | "musl";
  /** The package of the Bun that becomes part of the executable. */
  readonly runtime: string;
  /** Name that Bun has for it. */
  readonly compile: Bun.Build.CompileTarget;
  /** Name that zig has for it, with the oldest system that the add-ons are to start on. */
  readonly triple: string;
  /** Description in the README and the release notes. */
  readonly needs: string;
  readonly tested: string;
}

const IN_EMULATION = "the smoke test passes in emulation (QEMU) at every release";
const ON_NO_MAC = "built, signed and inspected; not yet run on macOS";

export const TARGETS = {
  "linux-x64": {
    platform: "linux",
    architecture: "x64",
    libc: "glibc",
    runtime: "@oven/bun-linux-x64",
    compile: "bun-linux-x64",
    triple: "x86_64-linux-gnu.2.17",
    needs: "glibc 2.17 or newer; a processor with SSE4.2",
    tested:
      "all tests at every change, with the add-ons as GCC compiles them; at every release those of the executable, and the smoke test on glibc 2.31 and on a processor without AVX",
  },
  "linux-arm64": {
    platform: "linux",
    architecture: "arm64",
    libc: "glibc",
    runtime: "@oven/bun-linux-aarch64",
    compile: "bun-linux-arm64",
    triple: "aarch64-linux-gnu.2.17",
    needs: "glibc 2.17 or newer; a kernel with pages of 4 KB",
    tested: IN_EMULATION,
  },
  "linux-x64-musl": {
    platform: "linux",
    architecture: "x64",
    libc: "musl",
    runtime: "@oven/bun-linux-x64-musl",
    compile: "bun-linux-x64-musl",
    triple: "x86_64-linux-musl",
    needs: "musl and libstdc++ (on Alpine: `apk add libstdc++`)",
    tested: "the smoke test passes on musl at every release",
  },
  "linux-arm64-musl": {
    platform: "linux",
    architecture: "arm64",
    libc: "musl",
    runtime: "@oven/bun-linux-aarch64-musl",
    compile: "bun-linux-arm64-musl",
    triple: "aarch64-linux-musl",
    needs: "musl and libstdc++ (on Alpine: `apk add libstdc++`)",
    tested: IN_EMULATION,
  },
  "darwin-arm64": {
    platform: "darwin",
    architecture: "arm64",
    runtime: "@oven/bun-darwin-aarch64",
    compile: "bun-darwin-arm64",
    triple: "aarch64-macos.13.0-none",
    needs: "macOS 13 or newer",
    tested: ON_NO_MAC,
  },
  "darwin-x64": {
    platform: "darwin",
    architecture: "x64",
    runtime: "@oven/bun-darwin-x64",
    compile: "bun-darwin-x64",
    triple: "x86_64-macos.13.0-none",
    needs: "macOS 13 or newer",
    tested: ON_NO_MAC,
  },
} as const satisfies Record<string, Target>;

export type TargetName = keyof typeof TARGETS;

export const TARGET_NAMES = Object.keys(TARGETS) as TargetName[];

export function targetOf(name: TargetName): Target {
  return TARGETS[name];
}

/** @throws {Failure} naming those that there are */
export function asTarget(value: string): TargetName {
  if (isTarget(value)) return value;
  throw new Failure(`There is no target ${value}; choose from ${TARGET_NAMES.join(", ")}.`);
}

function isTarget(value: string): value is TargetName {
  return Object.hasOwn(TARGETS, value);
}

/** @throws {Failure} when this machine is none of them */
export function hostTarget(): TargetName {
  const name = `${process.platform}-${process.arch}${isMusl() ? "-musl" : ""}`;
  if (isTarget(name)) return name;
  throw new Failure(`Cairn runs on ${TARGET_NAMES.join(", ")}; this is ${name}.`);
}

/** Checks whether the C library of this machine is musl: its loader is there, and glibc's is not. */
function isMusl(): boolean {
  const has = (pattern: RegExp) =>
    ["/lib", "/lib64"].some((path) => existsSync(path) && readdirSync(path).some((name) => pattern.test(name)));
  return process.platform === "linux" && has(/^ld-musl-/) && !has(/^ld-linux/);
}
