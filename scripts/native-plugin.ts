/**
 * Puts the native add-ons into the executable.
 *
 * lmdb and hnswlib-node look for their add-on on disk, next to their own files, which are not there any more once the
 * code is bundled. This plugin replaces those look-ups: the add-ons become files inside the executable, and
 * `src/lib/native.ts` unpacks, checks and loads them.
 *
 * Bun would also embed a plain `require("…/x.node")`, but it unpacks to a name in the temporary directory anyone can
 * guess, and takes a file that is already there when merely its length is right.
 *
 * @module
 */
import type { BunPlugin } from "bun";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { addonPaths, type Architecture } from "./build-native.ts";
import { Failure } from "./failure.ts";

const nativeModule = join(dirname(import.meta.dir), "src/lib/native.ts");

/** The plugin for executables of one architecture, whose add-ons have been built before. */
export function nativePlugin(architecture: Architecture): BunPlugin {
  const paths = addonPaths(architecture);
  return {
    name: "native",
    setup(build) {
      build.onResolve({ filter: /^node-gyp-build-optional-packages$/ }, () => ({ path: "lmdb", namespace: "native" }));
      build.onLoad({ filter: /.*/, namespace: "native" }, () => ({ loader: "js", contents: lmdbLoader(paths) }));
      build.onLoad({ filter: /hnswlib-node[\\/]lib[\\/]index\.js$/ }, () => ({ loader: "js", contents: hnswLoader(paths) }));
      build.onLoad({ filter: /lmdb[\\/]write\.js$/ }, ({ path }) => ({ loader: "js", contents: mendedWriter(readFileSync(path, "utf8")) }));
      // Only a faster way to read msgpack strings, and Cairn stores JSON; msgpackr does without it when there is none.
      build.onResolve({ filter: /^msgpackr-extract$/ }, () => ({ path: "msgpackr-extract", namespace: "absent" }));
      build.onLoad({ filter: /.*/, namespace: "absent" }, () => ({ loader: "js", contents: "module.exports = null;" }));
    },
  };
}

/** Stands for node-gyp-build-optional-packages: a function from a package's directory to its add-on. */
function lmdbLoader(paths: Record<string, string>): string {
  return `
    import { loadNative } from ${JSON.stringify(nativeModule)};
    ${addonImports(paths, ["lmdb"])}
    export default () => loadNative(addons["lmdb"]);`;
}

/**
 * lmdb's writer prints a commit that failed, beside rejecting it: lines of its source, before what Cairn says of it. What
 * waits for its flush it leaves waiting, also the closing of a store that was ever written relaxed.
 */
function mendedWriter(source: string): string {
  const [before, after, ...more] = source.split(/console\.error\(error\);(?=\s+if \(commitRejectPromise\))/);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Failure("lmdb's write.js no longer prints a failed commit as it did.");
  return `${before}for (const resolve of resolvers) resolve();${after}`;
}

function hnswLoader(paths: Record<string, string>): string {
  const names = Object.keys(paths).filter((name) => name.startsWith("hnsw-"));
  const chosen = names.length === 1 ? JSON.stringify(names[0]) : `"hnsw-" + chosenSimdLevel()`;
  return `
    import { chosenSimdLevel, loadNative } from ${JSON.stringify(nativeModule)};
    ${addonImports(paths, names)}
    export default loadNative(addons[${chosen}]);`;
}

/** Imports add-ons as files of the executable and declares `addons`, what is known of each, by name. */
function addonImports(paths: Record<string, string>, names: readonly string[]): string {
  const imports = names.map((name, index) => `import path${index} from ${JSON.stringify(paths[name])} with { type: "file" };`);
  const entries = names.map(
    (name, index) => `${JSON.stringify(name)}: { name: "${name}", path: path${index}, sha256: "${sha256(paths[name])}" }`,
  );
  return `${imports.join("\n")}\nconst addons = { ${entries.join(", ")} };`;
}

function sha256(path: string | undefined): string {
  if (path === undefined) throw new Error("no such add-on");
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}
