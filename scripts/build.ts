/**
 * Builds the executable: one file that holds Bun, the code and the native add-ons, and needs only the system's libc to run.
 *
 *     bun scripts/build.ts                              dist/cairn for this machine, with its own compiler
 *     bun scripts/build.ts --target linux-arm64         dist/linux-arm64/cairn as it is released; `all`: every target
 *     bun scripts/build.ts --outfile DIR/cairn          somewhere else
 *     bun scripts/build.ts --if-changed                 only when its sources have changed since
 *     bun scripts/build.ts --releases URL               where `cairn version --check` looks for newer ones
 *
 * The Bun inside is the one whose hash is in the lock file (`runtime.ts`), whichever runs this. With `--target` the result is
 * a function of the commit: the same bytes wherever and whenever it is built.
 *
 * The format is ESM, because with bytecode in the default format `import.meta.url` keeps the path of the source, and the
 * Worker is then found on the machine that built it and on no other. There is no source map: it takes room in every executable.
 *
 * @module
 */
import { $ } from "bun";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { buildNative, filesBelow } from "./build-native.ts";
import type { Toolchain } from "./compiler.ts";
import { dashboardPlugin } from "./dashboard-plugin.ts";
import { docsPlugin } from "./docs-plugin.ts";
import { Failure, readArguments, runScript } from "./failure.ts";
import { signAdHoc } from "./macho.ts";
import { builtAddons, nativePlugin } from "./native-plugin.ts";
import { assertNoticeNames } from "./notice.ts";
import { runtimeFor } from "./runtime.ts";
import { placeWeights, weightsPlugin } from "./weights.ts";
import { asTarget, hostTarget, TARGET_NAMES, targetOf, type TargetName } from "./targets.ts";

const root = dirname(import.meta.dir);

/** All that decides what the executable does, besides the packages, whose hashes are in bun.lock. */
const SOURCES = [
  "src",
  "scripts/build.ts",
  "scripts/build-native.ts",
  "scripts/compiler.ts",
  "scripts/dashboard-plugin.ts",
  "scripts/docs-plugin.ts",
  "scripts/exports.map",
  "scripts/lmdb",
  "scripts/hnswlib",
  "scripts/macho.ts",
  "scripts/native-plugin.ts",
  "scripts/notice.ts",
  "scripts/runtime.ts",
  "scripts/targets.ts",
  "scripts/weights.ts",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "test/README.md",
  "NOTICE",
  "package.json",
  "bun.lock",
  "tsconfig.json",
];

interface Build {
  readonly target: TargetName;
  readonly toolchain: Toolchain;
  readonly outfile: string;
  /** Address of the releases. */
  readonly releases: string | undefined;
}

async function main(): Promise<void> {
  const { values } = readArguments({
    options: {
      target: { type: "string" },
      outfile: { type: "string" },
      releases: { type: "string" },
      "if-changed": { type: "boolean", default: false },
    },
  });
  const { target, outfile, releases } = values;
  if (target === "all" && outfile !== undefined) throw new Failure("--outfile is for one target: with all of them leave it out.");
  const released = target === undefined ? [] : target === "all" ? TARGET_NAMES : [asTarget(target)];
  const builds: Build[] =
    target === undefined
      ? [{ target: hostTarget(), toolchain: "system", outfile: join(root, "dist/cairn"), releases }]
      : released.map((name) => ({ target: name, toolchain: "zig", outfile: join(root, "dist", name, "cairn"), releases }));
  for (const build of builds) await make({ ...build, outfile: outfile ? resolve(outfile) : build.outfile }, values["if-changed"]);
}

async function make(build: Build, ifChanged: boolean): Promise<void> {
  const { target, toolchain, outfile, releases = "" } = build;
  const inputs = `${target} ${toolchain} ${releases} ${sourceHash()}\n`;
  if (ifChanged && isCurrent(outfile, inputs)) return;
  const runtime = await runtimeFor(target);
  await buildNative(target, toolchain);
  await compile(build, runtime);
  writeFileSync(inputsFile(outfile), inputs);
  console.log(`${relative(process.cwd(), outfile)} (${(statSync(outfile).size / 1e6).toFixed(1)} MB)`);
}

/** In a directory of its own first, so that a build that fails leaves the executable that was there. */
async function compile(build: Build, runtime: string): Promise<void> {
  mkdirSync(dirname(build.outfile), { recursive: true });
  const scratch = mkdtempSync(join(dirname(build.outfile), ".build-"));
  const made = join(scratch, "cairn");
  try {
    await bundle(build, runtime, made);
    const executable = readFileSync(made);
    placeWeights(executable);
    // Bun leaves darwin-x64 with a signature that does not fit, and macOS ends such a process.
    writeFileSync(made, targetOf(build.target).platform === "darwin" ? signAdHoc(executable, "cairn") : executable);
    renameSync(made, build.outfile);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function bundle({ target, toolchain, releases }: Build, runtime: string, outfile: string): Promise<void> {
  const addons = builtAddons(target, toolchain);
  const constants = {
    "process.env.NODE_ENV": "production",
    CAIRN_COMMIT: await commit(),
    CAIRN_TARGET: target,
    CAIRN_RELEASES: releases ?? null,
    CAIRN_ADDONS: addons.map(({ name, sha256 }) => ({ name, sha256 })),
  };
  const dashboard = await dashboardPlugin(dirname(outfile));
  const result = await Bun.build({
    entrypoints: ["src/main.ts", "src/search/worker.ts", "src/embeddings/builtin/encoder-worker.ts"].map((path) => join(root, path)),
    root: join(root, "src"),
    // In the executable the code is at one level, so that `new URL("./worker.ts", import.meta.url)` finds a Worker beside its
    // own module in both forms.
    naming: { entry: "[name].[ext]" },
    splitting: true,
    target: "bun",
    format: "esm",
    minify: true,
    bytecode: true,
    metafile: true,
    define: Object.fromEntries(Object.entries(constants).map(([name, value]) => [name, JSON.stringify(value)])),
    plugins: [nativePlugin(addons), weightsPlugin, dashboard.plugin, await docsPlugin()],
    // All configuration comes from flags and the environment: files that happen to lie in the working directory are not read.
    compile: {
      target: targetOf(target).compile,
      executablePath: runtime,
      outfile,
      autoloadBunfig: false,
      autoloadDotenv: false,
      autoloadPackageJson: false,
      autoloadTsconfig: false,
    },
  });
  assertNoticeNames([
    ...Object.values(result.metafile?.outputs ?? {}).flatMap((output) => Object.keys(output.inputs)),
    ...dashboard.inputs,
  ]);
}

/** The commit, marked where tracked files differ from it; null where there is no git or no commit. */
async function commit(): Promise<string | null> {
  const head = await $`git rev-parse --short=12 HEAD`.cwd(root).quiet().nothrow();
  if (head.exitCode !== 0) return null;
  const changes = await $`git status --porcelain --untracked-files=no`.cwd(root).quiet().nothrow();
  return head.text().trim() + (changes.text() === "" ? "" : "-modified");
}

function isCurrent(outfile: string, inputs: string): boolean {
  const file = inputsFile(outfile);
  return existsSync(outfile) && existsSync(file) && readFileSync(file, "utf8") === inputs;
}

/** Says what the executable was built from. Not called a key: nobody should take it for a secret. */
function inputsFile(outfile: string): string {
  return `${outfile}.inputs`;
}

function sourceHash(): string {
  const hash = createHash("sha256");
  for (const path of SOURCES.flatMap((source) => filesAt(join(root, source)))) {
    hash
      .update(`${relative(root, path)}\0`)
      .update(readFileSync(path))
      .update("\0");
  }
  return hash.digest("hex");
}

function filesAt(path: string): string[] {
  return statSync(path).isDirectory() ? filesBelow(path) : [path];
}

await runScript(main);
