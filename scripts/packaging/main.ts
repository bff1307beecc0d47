/**
 * `scripts/release`: makes everything that is published of a version, in dist/release, and publishes nothing.
 *
 *     scripts/release VERSION --url URL [--latest-url URL]   from the commit that is checked out, without changes
 *     scripts/release --verify                               starts, reads and tries what is in dist/release; takes minutes
 *     scripts/release --reproduce                            makes it again elsewhere, from a clone, and compares every byte
 *
 * `--url` is the address at which the files of this version will be, `--latest-url` the one at which those of the newest version
 * always are. Both stand in what is made. Without them it can be tried, but not published.
 *
 * @module
 */
import { $ } from "bun";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { Failure, readArguments, runScript } from "../failure.ts";
import { TARGET_NAMES } from "../targets.ts";
import { buildPython } from "./python.ts";
import { changesOf, writeRelease } from "./release.ts";

const root = join(import.meta.dir, "../..");
const RELEASE = join(root, "dist/release");
/** Tools that the files were made with, so that it can be done again; not published. */
const ARGUMENTS = join(root, "dist/release.json");
/** A name that never leads anywhere (RFC 2606). */
const NOWHERE = "https://cairn.invalid";

interface Arguments {
  readonly version: string;
  readonly url: string;
  readonly latestUrl: string;
}

async function main(): Promise<void> {
  const { values, positionals } = readArguments({
    options: {
      url: { type: "string" },
      "latest-url": { type: "string" },
      verify: { type: "boolean", default: false },
      reproduce: { type: "boolean", default: false },
    },
    allowPositionals: true,
  });
  const [version, ...more] = positionals;
  if (more.length > 0) throw new Failure("scripts/release takes one version.");
  if (values.verify || values.reproduce) {
    if (version !== undefined) throw new Failure("--verify and --reproduce are for what is in dist/release: leave the version out.");
    if (values.reproduce) await reproduce();
    if (values.verify) await (await import("./verify.ts")).verify(RELEASE);
    return;
  }
  if (version === undefined) throw new Failure("Say which version: scripts/release 0.1.0 --url URL");
  const url = addressOf("--url", values.url) ?? `${NOWHERE}/${version}`;
  await make({ version, url, latestUrl: addressOf("--latest-url", values["latest-url"]) ?? values.url ?? `${NOWHERE}/latest` });
  if (values.url === undefined) console.error(`These files name ${NOWHERE}, which leads nowhere. To publish them, say where with --url.`);
}

function addressOf(flag: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const url = URL.parse(value);
  // It becomes part of scripts.
  if (url === null || !["https:", "http:"].includes(url.protocol) || !/^[\w.:/~%+-]+$/.test(url.href))
    throw new Failure(`${flag} must be an address such as https://cairn.example.com/releases/0.1.0; got ${value}`);
  return url.href.replace(/\/+$/, "");
}

async function make({ version, url, latestUrl }: Arguments): Promise<void> {
  const date = await assertReleasable(version);
  const started = performance.now();
  await $`${process.execPath} ${join(root, "scripts/build.ts")} --target all --releases ${latestUrl}`.quiet();
  const executables = Object.fromEntries(TARGET_NAMES.map((target) => [target, join(root, "dist", target, "cairn")]));
  mkdirSync(join(root, "dist"), { recursive: true });
  const scratch = mkdtempSync(join(root, "dist/.release-"));
  const packages = mkdtempSync(join(root, "dist/.python-release-"));
  try {
    const python = buildPython(packages).map((name) => join(packages, name));
    const names = writeRelease({ version, date, url, executables, python }, scratch);
    rmSync(RELEASE, { recursive: true, force: true });
    renameSync(scratch, RELEASE);
    writeFileSync(ARGUMENTS, `${JSON.stringify({ version, url, latestUrl } satisfies Arguments)}\n`);
    console.log(`${relative(process.cwd(), RELEASE)}: ${names.length} files in ${((performance.now() - started) / 1000).toFixed(0)} s`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
    rmSync(packages, { recursive: true, force: true });
  }
}

/** @returns the day of the commit @throws {Failure} saying why what is checked out is not this version */
async function assertReleasable(version: string): Promise<string> {
  const { version: own } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };
  if (own !== version) throw new Failure(`package.json says ${own}, not ${version}.`);
  if (changesOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version) === undefined)
    throw new Failure(`CHANGELOG.md has no section for ${version}.`);
  const status = await $`git status --porcelain`.cwd(root).quiet().nothrow();
  if (status.exitCode !== 0) throw new Failure("A release is made from a git checkout: its commit and the day of it become part of it.");
  if (status.text() !== "")
    throw new Failure(`A release is made from a commit, and these files differ from it:\n${status.text().trimEnd()}`);
  return (await $`git log -1 --format=%cs`.cwd(root).text()).trim();
}

/** Makes the same release from a clone in another directory, time zone and language, with nothing that was compiled here. */
async function reproduce(): Promise<void> {
  const { version, url, latestUrl } = JSON.parse(readFileSync(ARGUMENTS, "utf8")) as Arguments;
  const scratch = mkdtempSync(join(root, ".tools/reproduce-"));
  const clone = join(scratch, "another directory");
  try {
    await $`git clone --quiet --no-hardlinks ${root} ${clone}`.quiet();
    await $`git checkout --quiet --detach ${(await $`git rev-parse HEAD`.cwd(root).text()).trim()}`.cwd(clone).quiet();
    const env = { ...process.env, TZ: "Asia/Tokyo", LC_ALL: "de_DE.UTF-8", LANG: "de_DE.UTF-8" };
    await $`${join(clone, "scripts/release")} ${version} --url ${url} --latest-url ${latestUrl}`.cwd(clone).env(env).quiet();
    const [mine, again] = [RELEASE, join(clone, "dist/release")].map((path) => readFileSync(join(path, "SHA256SUMS"), "utf8").split("\n"));
    const different = mine?.filter((line) => again?.includes(line) === false) ?? [];
    if (different.length > 0)
      throw new Failure(`Made again these files are others:\n${different.map((line) => line.slice(66)).join("\n")}`);
    console.log(`Made again from a clone in another directory, time zone and language: the same ${mine?.length} files.`);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

await runScript(main);
