/**
 * Puts the native add-ons into the executable.
 *
 * lmdb, hnswlib-node and the encoder's module look for their add-on on disk, where it is not any more once the code is bundled. This plugin replaces those look-ups: the add-ons become files inside the executable, and
 * `src/lib/native.ts` unpacks, checks and loads them.
 *
 * Bun would also embed a plain `require("…/x.node")`, but it unpacks to a name in the temporary directory anyone can
 * guess, and takes a file that is already there when merely its length is right.
 *
 * Generated code names add-ons and no path, so that the executable is the same wherever it is built.
 *
 * @module
 */
import type { BunPlugin } from "bun";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { addonPaths } from "./build-native.ts";
import type { Toolchain } from "./compiler.ts";
import { Failure } from "./failure.ts";
import type { TargetName } from "./targets.ts";

/** Stands for `lib/native.ts` in what is generated, and before the name of an add-on for its file. */
const LOADER = "cairn-native:load";
const ADDON = "cairn-addon:";

const nativeModule = join(dirname(import.meta.dir), "src/lib/native.ts");

/** An add-on that has been built. */
interface Addon {
  readonly name: string;
  readonly bytes: Buffer;
  readonly sha256: string;
}

/** @returns the add-ons for an executable, which have been built before */
export function builtAddons(target: TargetName, toolchain: Toolchain): readonly Addon[] {
  return Object.entries(addonPaths(target, toolchain)).map(([name, path]) => {
    const bytes = readFileSync(path);
    return { name, bytes, sha256: createHash("sha256").update(bytes).digest("hex") };
  });
}

export function nativePlugin(addons: readonly Addon[]): BunPlugin {
  return {
    name: "native",
    setup(build) {
      build.onResolve({ filter: /^cairn-native:load$/ }, () => ({ path: nativeModule }));
      // With a path of its own a `.node` would be taken for a module in spite of `type: "file"`.
      build.onResolve({ filter: /^cairn-addon:/ }, ({ path }) => ({ path: `${path.slice(ADDON.length)}.node`, namespace: "addon" }));
      build.onLoad({ filter: /.*/, namespace: "addon" }, ({ path }) => ({
        loader: "file",
        contents: named(addons, path.slice(0, -".node".length)).bytes,
      }));
      build.onResolve({ filter: /^node-gyp-build-optional-packages$/ }, () => ({ path: "lmdb", namespace: "native" }));
      build.onResolve({ filter: /^cairn-native:encoder$/ }, () => ({ path: "encoder", namespace: "native" }));
      build.onLoad({ filter: /.*/, namespace: "native" }, ({ path }) => ({ loader: "js", contents: addonLoader(addons, path) }));
      build.onLoad({ filter: /hnswlib-node[\\/]lib[\\/]index\.js$/ }, () => ({ loader: "js", contents: hnswLoader(addons) }));
      build.onLoad({ filter: /lmdb[\\/]write\.js$/ }, ({ path }) => ({
        loader: "js",
        contents: repairedWriter(readFileSync(path, "utf8")),
      }));
      // Only a faster way to read msgpack strings, and Cairn stores JSON; msgpackr does without it when there is none.
      build.onResolve({ filter: /^msgpackr-extract$/ }, () => ({ path: "msgpackr-extract", namespace: "absent" }));
      build.onLoad({ filter: /.*/, namespace: "absent" }, () => ({ loader: "js", contents: "module.exports = null;" }));
    },
  };
}

/**
 * A function that returns an add-on: for lmdb it stands for node-gyp-build-optional-packages, which would be called with the directory of
 * the package; for the encoder it is what `weights.ts` puts its loading through.
 */
function addonLoader(addons: readonly Addon[], name: string): string {
  return `
    import { loadNative } from "${LOADER}";
    ${addonImports([named(addons, name)])}
    export default () => loadNative(addons["${name}"]);`;
}

/**
 * lmdb's writer prints a commit that failed, beside rejecting it: lines of its source, before what Cairn says of it. What
 * waits for its flush it leaves waiting, also the closing of a store that was ever written relaxed.
 */
function repairedWriter(source: string): string {
  const [before, after, ...more] = source.split(/console\.error\(error\);(?=\s+if \(commitRejectPromise\))/);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Failure("lmdb's write.js no longer prints a failed commit as it did.");
  return `${before}for (const resolve of resolvers) resolve();${after}`;
}

/** Loads the add-on when one of its classes is first wanted, that is for an index: most stores are too small for one. */
function hnswLoader(addons: readonly Addon[]): string {
  const builds = addons.filter(({ name }) => name.startsWith("hnsw-"));
  const chosen = builds.length === 1 ? JSON.stringify(builds[0]?.name) : `"hnsw-" + chosenSimdLevel()`;
  return `
    import { chosenSimdLevel, loadNative } from "${LOADER}";
    ${addonImports(builds)}
    let loaded;
    const addon = () => (loaded ??= loadNative(addons[${chosen}]));
    export default {
      get HierarchicalNSW() {
        return addon().HierarchicalNSW;
      },
      get PostingScorer() {
        return addon().PostingScorer;
      },
      get RowComparer() {
        return addon().RowComparer;
      },
    };`;
}

/** Imports add-ons as files of the executable and declares `addons`, what is known of each, by name. */
function addonImports(addons: readonly Addon[]): string {
  const imports = addons.map(({ name }, index) => `import path${index} from "${ADDON}${name}" with { type: "file" };`);
  const entries = addons.map(({ name, sha256 }, index) => `"${name}": { name: "${name}", path: path${index}, sha256: "${sha256}" }`);
  return `${imports.join("\n")}\nconst addons = { ${entries.join(", ")} };`;
}

function named(addons: readonly Addon[], wanted: string): Addon {
  const addon = addons.find(({ name }) => name === wanted);
  if (addon === undefined) throw new Error(`there is no add-on ${wanted}`);
  return addon;
}
