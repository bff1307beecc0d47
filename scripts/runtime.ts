/**
 * The Bun that becomes part of the executable: for each target the one whose hash is in `bun.lock`, whichever Bun runs the build.
 *
 * The one for this machine is in node_modules, where an installation with the frozen lock file has put it. Bun would fetch those
 * for others by name and version alone; here they are fetched with npm and their hash is checked first.
 *
 * @module
 */
import { $ } from "bun";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure } from "./failure.ts";

const root = dirname(import.meta.dir);

const PACKAGES = {
  "bun-linux-x64": "@oven/bun-linux-x64",
  "bun-linux-x64-baseline": "@oven/bun-linux-x64-baseline",
  "bun-linux-arm64": "@oven/bun-linux-aarch64",
} as const;

export type Target = keyof typeof PACKAGES;

export const TARGETS = Object.keys(PACKAGES) as Target[];

/** Of packages that Bun's own package does not name, and the lock file therefore neither. To be changed with Bun's version. */
const NOT_IN_LOCK: Record<string, { version: string; hash: string }> = {
  "@oven/bun-linux-x64-baseline": {
    version: "1.4.5",
    hash: "sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==",
  },
};

/** @returns the path of a Bun for a target, of the version in package.json */
export async function runtimeFor(target: Target): Promise<string> {
  const name = PACKAGES[target];
  const installed = join(root, "node_modules", name, "bin/bun");
  if (existsSync(installed)) return installed;
  const { devDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { devDependencies: { bun: string } };
  const version = devDependencies.bun;
  const hash = expectedHash(name, version);
  const directory = join(root, ".tools", `${name.replace("@oven/", "")}-${version}`);
  if (!existsSync(directory)) await fetchInto(directory, `${name}@${version}`, hash);
  return join(directory, "package/bin/bun");
}

function expectedHash(name: string, version: string): string {
  const lock = readFileSync(join(root, "bun.lock"), "utf8");
  const line = lock.split("\n").find((text) => text.trimStart().startsWith(`"${name}": ["${name}@${version}",`));
  const pinned = NOT_IN_LOCK[name];
  const hash = /"(sha512-[^"]+)"\],?$/.exec(line ?? "")?.[1] ?? (pinned?.version === version ? pinned.hash : undefined);
  if (hash === undefined) throw new Failure(`Neither bun.lock nor scripts/runtime.ts has the hash of ${name}@${version}.`);
  return hash;
}

/** Into a directory of its own first, so that what was interrupted leaves nothing half done. */
async function fetchInto(directory: string, specifier: string, hash: string): Promise<void> {
  mkdirSync(dirname(directory), { recursive: true });
  const scratch = mkdtempSync(`${directory}-`);
  try {
    const packed = await $`npm pack ${specifier} --pack-destination ${scratch}`.quiet().nothrow();
    const [archive] = readdirSync(scratch);
    if (packed.exitCode !== 0 || archive === undefined) {
      throw new Failure(
        `${specifier}, which becomes part of the executable, could not be fetched with npm: ${packed.stderr.toString().trim()}`,
      );
    }
    const found = `sha512-${Bun.CryptoHasher.hash("sha512", readFileSync(join(scratch, archive)), "base64")}`;
    if (found !== hash) throw new Failure(`${specifier} is not the one that bun.lock names: its hash is ${found} instead of ${hash}.`);
    await $`tar -xzf ${join(scratch, archive)} -C ${scratch}`.quiet();
    rmSync(join(scratch, archive));
    renameSync(scratch, directory);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
