/**
 * Compiles the native add-ons, and nothing else: no node-gyp, no Python, no headers from the network.
 *
 *     bun scripts/build-native.ts               every build of them for this machine, with the system's compiler
 *     bun scripts/build-native.ts --host-only   only what running from source needs
 *
 * hnswlib-node comes as source only and leaves the distance functions to the compiler's flags, so there is one build per
 * level of the instruction set, of a copy that takes less time and memory (`hnswlib/*.patch`). lmdb comes with a binary, but the
 * LMDB in it ends the process where a write could fail (`lmdb/*.patch`); ours is the same source with those places repaired, in
 * one compilation unit, which halves the time. The encoder of the built-in embedding is ours (`src/native/`); it has the code for every
 * level in one file. All carry their own C++ library, so that they need none but the system's libc.
 *
 * A build is kept under `native/<target>/<toolchain>/` next to a key made from its sources, its flags and the compiler, and
 * done again only when the key differs. The ones for this machine are also put where `import "lmdb"`,
 * `import "hnswlib-node"` and `src/embeddings/builtin/native.ts` look first, so that running from source needs no preload.
 *
 * @module
 */
import { createHash, randomUUID } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative } from "node:path";
import { bestSimdLevel, cpuFlags } from "../src/lib/native.ts";
import { compilerFor, presentCompiler, type Compiler, type Level, type Toolchain } from "./compiler.ts";
import { Failure, runScript } from "./failure.ts";
import { hostTarget, targetOf, type Target, type TargetName } from "./targets.ts";

interface Recipe {
  readonly name: string;
  /** Directories under node_modules that are compiled or included. */
  readonly sources: readonly string[];
  /** All that decides the result besides the sources and the compiler. */
  readonly flags: readonly string[];
  compile(output: string): Promise<void>;
}

const root = dirname(import.meta.dir);
const modules = join(root, "node_modules");

// Both packages use the stable C interface of Node 18.12 and later; NAPI_VERSION keeps them to what Bun has of it.
const COMMON_FLAGS = ["-O3", "-fPIC", "-DNAPI_VERSION=8"];

/**
 * hnswlib has no NEON code of its own: only when sums may be reordered does the compiler turn its loops into vector
 * instructions. Not -ffast-math: linked with it, a library sets tiny numbers to zero in all that loads it.
 */
const NEON_FLAGS = ["-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno", "-ffp-contract=fast"];

/** The builds of the vector add-on for a target, and the level of the instruction set that each wants. */
function hnswBuilds(target: TargetName): Record<string, Level | undefined> {
  const { architecture, platform }: Target = targetOf(target);
  if (architecture === "arm64") return { "hnsw-neon": undefined };
  // Abilities of an Intel Mac are not asked for (`lib/native.ts`).
  return platform === "darwin" ? { "hnsw-sse": undefined } : { "hnsw-sse": undefined, "hnsw-v3": "v3", "hnsw-v4": "v4" };
}

const LMDB_C = ["lmdb/libraries/liblmdb/mdb.c", "lmdb/libraries/liblmdb/midl.c", "lmdb/libraries/liblmdb/chacha8.c", "lz4/lib/lz4.c"];
const LMDB_CPP = ["lmdb-js", "writer", "env", "compression", "ordered-binary", "misc", "txn", "dbi", "cursor", "v8-functions"];
const LMDB_DEFINES = ["-DMDB_MAXKEYSIZE=0", "-DMDB_USE_ROBUST", "-DNODE_GYP_MODULE_NAME=lmdb"];

/** Changes to lmdb's source, as unified diffs; each says at its head what it is for. They are made in this order. */
const LMDB_PATCHES = ["open", "errors", "map", "damaged-pages", "macos", "single-pages", "keys", "free-list", "damaged-writes", "wipe"].map(
  (name) => join(root, "scripts/lmdb", `${name}.patch`),
);

/** Paths of the add-ons for a target, by name, whether they are built yet or not. */
export function addonPaths(target: TargetName, toolchain: Toolchain): Record<string, string> {
  const names = ["lmdb", "encoder", ...Object.keys(hnswBuilds(target))];
  return Object.fromEntries(names.map((name) => [name, addonPath(target, toolchain, name)]));
}

function addonPath(target: TargetName, toolchain: Toolchain, name: string): string {
  return join(root, "native", target, toolchain, `${name}.node`);
}

/** Builds what is missing or out of date, and says so on standard error. */
export async function buildNative(target: TargetName, toolchain: Toolchain, { hostOnly = false } = {}): Promise<void> {
  const outdatedWith = (compiler: Compiler) =>
    recipes(compiler).filter(
      (recipe) => (!hostOnly || ["lmdb", "encoder", hostHnsw()].includes(recipe.name)) && !isCurrent(recipe, compiler),
    );
  const isOutdated = outdatedWith(await compilerFor(target, toolchain)).length > 0;
  const compiler = isOutdated ? await presentCompiler(target, toolchain) : undefined;
  const outdated = compiler === undefined ? [] : outdatedWith(compiler);
  if (compiler !== undefined && outdated.length > 0) {
    // On a terminal Bun's console.error is red, as if something had failed.
    process.stderr.write(`Compiling the native add-ons (${outdated.map((recipe) => recipe.name).join(", ")}) …\n`);
    await inParallel(outdated, (recipe) => build(recipe, compiler));
  }
  if (toolchain === "system") installForSourceMode();
}

function recipes(compiler: Compiler): Recipe[] {
  const hnsw = Object.entries(hnswBuilds(compiler.target)).map(([name, level]) => hnswRecipe(compiler, name, level));
  return [lmdbRecipe(compiler), encoderRecipe(compiler), ...hnsw];
}

/** Changes to hnswlib's source, as those to lmdb's. */
const HNSW_PATCHES = ["load", "memory", "bytes", "deleted", "damage", "ties"].map((name) => join(root, "scripts/hnswlib", `${name}.patch`));

function hnswRecipe(compiler: Compiler, name: string, level: Level | undefined): Recipe {
  const flags = [
    "-std=c++17",
    ...COMMON_FLAGS,
    // An exception of C++, such as for want of memory, is thrown in JavaScript: otherwise it ends the process.
    "-DNODE_ADDON_API_CPP_EXCEPTIONS_ALL",
    ...compiler.flags,
    ...compiler.levelFlags(level),
    ...(name === "hnsw-neon" ? NEON_FLAGS : []),
    "-fvisibility=hidden",
    "-DNODE_GYP_MODULE_NAME=addon",
    "-w",
    ...compiler.linkFlags(name),
  ];
  const includes = ["node-addon-api", "node-api-headers/include"].map((directory) => `-I${join(modules, directory)}`);
  return {
    name,
    sources: ["hnswlib-node/src", "node-addon-api", "node-api-headers/include"],
    flags: [...flags, ...HNSW_PATCHES.map((path) => readFileSync(path, "utf8"))],
    compile: (output) =>
      inScratchDirectory(async (scratch) => {
        cpSync(join(modules, "hnswlib-node/src"), join(scratch, "src"), { recursive: true });
        for (const path of HNSW_PATCHES) applyPatch(scratch, path);
        await run(
          [...compiler.cpp, ...flags, ...includes, hidingPath(scratch), hidingPath(modules), join(scratch, "src/addon.cc"), "-o", output],
          {
            environment: compiler.environment,
          },
        );
      }),
  };
}

const ENCODER_SOURCES = join(root, "src/native");
const ENCODER_UNITS = ["addon", "encoder", "kernels", "rows", "tokenizer", "weights"].map((name) => join(ENCODER_SOURCES, `${name}.cc`));

/**
 * Flags that decide the bits of a vector: products and sums are rounded each by itself, on every processor. The others let loops become
 * vector instructions, and change no result.
 */
export const ENCODER_ARITHMETIC = ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"];

function encoderRecipe(compiler: Compiler): Recipe {
  const flags = [
    "-std=c++17",
    ...COMMON_FLAGS,
    "-DNODE_ADDON_API_CPP_EXCEPTIONS_ALL",
    ...compiler.flags,
    ...compiler.levelFlags(undefined),
    ...ENCODER_ARITHMETIC,
    "-fvisibility=hidden",
    "-w",
    ...compiler.linkFlags("encoder"),
  ];
  const includes = ["node-addon-api", "node-api-headers/include"].map((directory) => `-I${join(modules, directory)}`);
  return {
    name: "encoder",
    sources: ["node-addon-api", "node-api-headers/include"],
    flags: [...flags, ...filesBelow(ENCODER_SOURCES).map((path) => readFileSync(path, "utf8"))],
    compile: (output) =>
      run([...compiler.cpp, ...flags, ...includes, hidingPath(ENCODER_SOURCES), hidingPath(modules), ...ENCODER_UNITS, "-o", output], {
        environment: compiler.environment,
      }),
  };
}

function lmdbRecipe(compiler: Compiler): Recipe {
  const { environment } = compiler;
  const compileFlags = [
    ...COMMON_FLAGS,
    "-DNAPI_DISABLE_CPP_EXCEPTIONS",
    ...compiler.flags,
    ...compiler.levelFlags(undefined),
    ...LMDB_DEFINES,
    "-fvisibility=hidden",
    "-w",
  ];
  const linkFlags = compiler.linkFlags("lmdb");
  const cppFlags = ["-std=c++17"];
  return {
    name: "lmdb",
    sources: ["lmdb/src", "lmdb/dependencies", "lmdb/node_modules/node-addon-api", "node-api-headers/include"],
    flags: [...compileFlags, ...cppFlags, ...linkFlags, ...LMDB_PATCHES.map((path) => readFileSync(path, "utf8"))],
    async compile(output) {
      await inScratchDirectory(async (scratch) => {
        prepareLmdbSource(scratch);
        const includes = [...lmdbIncludes(scratch), hidingPath(scratch), hidingPath(modules)];
        const sources = LMDB_C.map((path) => join(scratch, "dependencies", path));
        for (const source of sources)
          await run([...compiler.c, ...compileFlags, ...includes, "-c", source, "-o", `${source}.o`], { environment });
        const files = [join(scratch, "all.cpp"), ...sources.map((source) => `${source}.o`)];
        await run([...compiler.cpp, ...cppFlags, ...compileFlags, ...includes, ...files, ...linkFlags, "-o", output], { environment });
      });
    },
  };
}

/** Assertions keep the path of their source: this cuts it to what is the same on every machine. */
function hidingPath(directory: string): string {
  return `-ffile-prefix-map=${directory}=.`;
}

/** Compiles LMDB to assembly language, to see what is in it. */
export async function lmdbAssembly(target: TargetName, toolchain: Toolchain): Promise<string> {
  const compiler = await presentCompiler(target, toolchain);
  let text = "";
  await inScratchDirectory(async (scratch) => {
    prepareLmdbSource(scratch);
    const output = join(scratch, "mdb.s");
    const flags = [...compiler.flags, ...LMDB_DEFINES, "-O1", "-fno-inline", "-w", ...lmdbIncludes(scratch)];
    const source = join(scratch, "dependencies", LMDB_C[0] ?? "");
    await run([...compiler.c, ...flags, "-S", source, "-o", output], { environment: compiler.environment });
    text = readFileSync(output, "utf8");
  });
  return text;
}

/** A patched copy of lmdb's source, with one file that includes all of its C++ and the header it wants from Node. */
function prepareLmdbSource(scratch: string): void {
  for (const directory of ["src", "dependencies"]) cpSync(join(modules, "lmdb", directory), join(scratch, directory), { recursive: true });
  for (const path of LMDB_PATCHES) applyPatch(scratch, path);
  writeFileSync(join(scratch, "all.cpp"), LMDB_CPP.map((name) => `#include "src/${name}.cpp"\n`).join(""));
  // Only compared with Node's own version to switch on V8 calls, which Bun does not have.
  writeFileSync(
    join(scratch, "node_version.h"),
    "#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 0\n#define NODE_PATCH_VERSION 0\n",
  );
}

/** Applies a unified diff strictly: every hunk at its line, with its context as it is. So the build needs neither git nor patch. */
function applyPatch(directory: string, patch: string): void {
  const [, ...files] = readFileSync(patch, "utf8").split(/^--- a\//m);
  for (const [name = "", ...hunks] of files.map((text) => text.split(/\n(?=@@ )/))) {
    const path = join(directory, name.slice(0, name.indexOf("\n")));
    const lines = readFileSync(path, "utf8").split("\n");
    for (const hunk of hunks) {
      const [head = "", ...changes] = hunk.trimEnd().split("\n");
      const side = (sign: string) => changes.filter((line) => line[0] === " " || line[0] === sign).map((line) => line.slice(1));
      const [before, after] = [side("-"), side("+")];
      // Hunks are made from the first to the last, so each begins where it will begin in the patched file.
      const at = Number(/\+(\d+)/.exec(head)?.[1]) - 1;
      if (lines.slice(at, at + before.length).join("\n") !== before.join("\n"))
        throw new Failure(`${relative(root, patch)} does not apply to ${relative(directory, path)}: ${head}`);
      lines.splice(at, before.length, ...after);
    }
    writeFileSync(path, lines.join("\n"));
  }
}

function lmdbIncludes(scratch: string): string[] {
  const own = ["", "src", "dependencies/lz4/lib", "dependencies/lmdb/libraries/liblmdb"].map((path) => join(scratch, path));
  // lmdb is written against version 6 of node-addon-api and brings it along; ours, 8, belongs to hnswlib-node.
  return [...own, join(modules, "lmdb/node_modules/node-addon-api"), join(modules, "node-api-headers/include")].map((path) => `-I${path}`);
}

async function build(recipe: Recipe, compiler: Compiler): Promise<void> {
  const output = artifactPath(recipe, compiler);
  mkdirSync(dirname(output), { recursive: true });
  await inScratchDirectory(async (scratch) => {
    // Under its own name: zig's linker signs for arm64 macOS with it.
    const made = join(scratch, `${recipe.name}.node`);
    await recipe.compile(made);
    renameSync(made, output);
  });
  writeFileSync(`${output}.key`, `${sourceKey(recipe)} ${compiler.version}\n`);
}

/** A compiler that is gone since does not matter: an image may be made with one and run without. */
function isCurrent(recipe: Recipe, compiler: Compiler): boolean {
  const output = artifactPath(recipe, compiler);
  if (!existsSync(output) || !existsSync(`${output}.key`)) return false;
  const key = readFileSync(`${output}.key`, "utf8");
  const [wanted, { version }] = [sourceKey(recipe), compiler];
  return version === undefined ? key.startsWith(`${wanted} `) : key === `${wanted} ${version}\n`;
}

function sourceKey(recipe: Recipe): string {
  // Paths among the flags are those of this checkout.
  const hash = createHash("sha256").update(JSON.stringify(recipe.flags).replaceAll(root, "."));
  for (const source of recipe.sources) {
    const directory = join(modules, source);
    if (!existsSync(directory)) throw new Failure(`node_modules/${source} is missing: run scripts/setup.`);
    for (const path of filesBelow(directory)) hash.update(`${relative(modules, path)}\0`).update(readFileSync(path));
  }
  return hash.digest("hex");
}

/** Every file in a directory and those inside it, in an order that is the same everywhere. */
export function filesBelow(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

function artifactPath(recipe: Recipe, { target, toolchain }: Compiler): string {
  return addonPath(target, toolchain, recipe.name);
}

/** Directory in which `src/embeddings/builtin/native.ts` looks. */
const ENCODER_INSTALLED = join(root, "native/encoder.node");

/** Both packages look into their own `build/Release` before anywhere else. */
function installForSourceMode(): void {
  const built = (name: string) => addonPath(hostTarget(), "system", name);
  installFile(built("lmdb"), join(modules, "lmdb/build/Release/lmdb.node"));
  installFile(built("encoder"), ENCODER_INSTALLED);
  installFile(built(hostHnsw()), join(modules, "hnswlib-node/build/Release/addon.node"));
}

/** By rename: a running process may have the old file mapped, and writing into it would change its code. */
function installFile(source: string, destination: string): void {
  if (existsSync(destination) && readFileSync(source).equals(readFileSync(destination))) return;
  mkdirSync(dirname(destination), { recursive: true });
  const temporary = `${destination}.${randomUUID()}`;
  copyFileSync(source, temporary);
  renameSync(temporary, destination);
}

function hostHnsw(): string {
  return process.arch === "x64" ? `hnsw-${bestSimdLevel(cpuFlags())}` : "hnsw-neon";
}

async function run(command: string[], { environment }: { environment: Record<string, string> }): Promise<void> {
  const env = { ...process.env, ...environment };
  const child = Bun.spawn(command, { cwd: root, env, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [output, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code === 0) return;
  const ended = child.signalCode ? `was ended by ${child.signalCode} (out of memory?)` : `ended with code ${code}`;
  throw new Failure(`${command[0]} ${ended}:\n  ${command.join(" ")}\n${output.split("\n").slice(0, 20).join("\n")}`);
}

async function inScratchDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  mkdirSync(join(root, "native"), { recursive: true });
  const directory = mkdtempSync(join(root, "native/scratch-"));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Waits for all of them even when one fails, so that none is left running. */
async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const queue = [...items];
  const lanes = Array.from({ length: availableParallelism() }, async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  });
  for (const lane of await Promise.allSettled(lanes)) if (lane.status === "rejected") throw lane.reason;
}

if (import.meta.main) {
  await runScript(() => buildNative(hostTarget(), "system", { hostOnly: process.argv.includes("--host-only") }));
}
