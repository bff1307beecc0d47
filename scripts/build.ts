/**
 * Builds the executable: one file that holds Bun, the code and the native add-ons, and needs only glibc to run.
 *
 *     bun scripts/build.ts                              dist/cairn for this machine
 *     bun scripts/build.ts --target bun-linux-arm64     for another one (that one needs a cross compiler)
 *     bun scripts/build.ts --outfile DIR/cairn          somewhere else
 *     bun scripts/build.ts --if-changed                 only when its sources have changed since
 *
 * The Bun inside is the one whose hash is in the lock file (`runtime.ts`), whichever runs this.
 *
 * The format is ESM, because with bytecode in the default format `import.meta.url` keeps the path of the source, and the
 * Worker is then found on the machine that built it and on no other.
 *
 * @module
 */
import { $ } from "bun";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { type Architecture, buildNative, filesBelow } from "./build-native.ts";
import { Failure, readArguments, runScript } from "./failure.ts";
import { nativePlugin } from "./native-plugin.ts";
import { assertNoticeNames } from "./notice.ts";
import { runtimeFor, TARGETS, type Target } from "./runtime.ts";

const root = dirname(import.meta.dir);

const ARCHITECTURES = {
  "bun-linux-x64": "x64",
  // For processors without AVX2, which the ordinary Bun wants.
  "bun-linux-x64-baseline": "x64",
  "bun-linux-arm64": "arm64",
} as const satisfies Record<Target, Architecture>;

/** All that decides what the executable does, besides the packages, whose hashes are in bun.lock. */
const SOURCES = [
  "src",
  "scripts/build.ts",
  "scripts/build-native.ts",
  "scripts/lmdb",
  "scripts/native-plugin.ts",
  "scripts/notice.ts",
  "scripts/runtime.ts",
  "NOTICE",
  "package.json",
  "bun.lock",
  "tsconfig.json",
];

async function main(): Promise<void> {
  const { values } = readArguments({
    options: { target: { type: "string" }, outfile: { type: "string" }, "if-changed": { type: "boolean", default: false } },
  });
  const target = asTarget(values.target ?? `bun-linux-${process.arch}`);
  const outfile = values.outfile ? resolve(values.outfile) : join(root, "dist/cairn");
  const inputs = `${target} ${sourceHash()}\n`;
  if (values["if-changed"] && isCurrent(outfile, inputs)) return;
  const runtime = await runtimeFor(target);
  await buildNative({ architecture: ARCHITECTURES[target], hostOnly: false });
  await compile(target, runtime, outfile);
  writeFileSync(inputsFile(outfile), inputs);
  console.log(`${relative(process.cwd(), outfile)} (${(statSync(outfile).size / 1e6).toFixed(1)} MB)`);
}

/** In a directory of its own first: the source maps Bun leaves there are in the executable already. */
async function compile(target: Target, runtime: string, outfile: string): Promise<void> {
  mkdirSync(dirname(outfile), { recursive: true });
  const scratch = mkdtempSync(join(dirname(outfile), ".build-"));
  try {
    await bundle(target, runtime, join(scratch, "cairn"));
    renameSync(join(scratch, "cairn"), outfile);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function bundle(target: Target, runtime: string, outfile: string): Promise<void> {
  const result = await Bun.build({
    entrypoints: [join(root, "src/main.ts"), join(root, "src/vectors/worker.ts")],
    // In the executable the code is at one level, so that `new URL("./worker.ts", import.meta.url)` finds a Worker beside its
    // own module in both forms.
    naming: { entry: "[name].[ext]" },
    target: "bun",
    format: "esm",
    minify: true,
    bytecode: true,
    sourcemap: "linked",
    metafile: true,
    define: { "process.env.NODE_ENV": '"production"', CAIRN_COMMIT: JSON.stringify(await commit()) },
    plugins: [nativePlugin(ARCHITECTURES[target])],
    // All configuration comes from flags and the environment: files that happen to lie in the working directory are not read.
    compile: {
      target,
      executablePath: runtime,
      outfile,
      autoloadBunfig: false,
      autoloadDotenv: false,
      autoloadPackageJson: false,
      autoloadTsconfig: false,
    },
  });
  assertNoticeNames(Object.values(result.metafile?.outputs ?? {}).flatMap((output) => Object.keys(output.inputs)));
}

function asTarget(value: string): Target {
  if (isTarget(value)) return value;
  throw new Failure(`There is no target ${value}; choose from ${TARGETS.join(", ")}.`);
}

function isTarget(value: string): value is Target {
  return TARGETS.some((known) => known === value);
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
