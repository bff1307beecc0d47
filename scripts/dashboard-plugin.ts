/**
 * Puts the files of the dashboard into the executable: minified, and compressed once, as well as it can be done.
 *
 * @module
 */
import type { BunPlugin } from "bun";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { BASE, bundleDashboard, PAGE_NAME } from "../src/dashboard/bundle.ts";

const ENCODERS = {
  identity: (bytes: Uint8Array<ArrayBuffer>) => bytes,
  gzip: (bytes: Uint8Array<ArrayBuffer>) => Bun.gzipSync(bytes, { level: 9 }),
  br: (bytes: Uint8Array<ArrayBuffer>) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }),
};

/**
 * Returns the plugin that replaces `src/dashboard/bundle.ts` by a module that names files of the executable.
 *
 * @param scratch - where the files lie until the executable is made
 */
export async function dashboardPlugin(scratch: string): Promise<{ plugin: BunPlugin; inputs: readonly string[] }> {
  const { files, inputs } = await bundleAtRoot();
  const imports: string[] = [];
  const assets = files.map(({ name, type, hash, bytes }) => {
    const encodings = Object.entries(ENCODERS).map(([encoding, encode]) => {
      const path = join(scratch, `${name}.${encoding}`);
      writeFileSync(path, encode(bytes));
      imports.push(`import file${imports.length} from ${JSON.stringify(path)} with { type: "file" };`);
      return `${encoding}: Bun.file(file${imports.length - 1})`;
    });
    return `{ ...${JSON.stringify({ name, type, hash })}, encodings: { ${encodings.join(", ")} } }`;
  });
  const contents = `${imports.join("\n")}
    export const BASE = ${JSON.stringify(BASE)};
    export const PAGE_NAME = ${JSON.stringify(PAGE_NAME)};
    const assets = [${assets.join(", ")}];
    export const dashboardAssets = async () => assets;`;
  const plugin: BunPlugin = {
    name: "dashboard",
    setup(build) {
      build.onLoad({ filter: /dashboard[\\/]bundle\.ts$/ }, () => ({ loader: "js", contents }));
    },
  };
  return { plugin, inputs };
}

/** The hashes in the names of the files depend on the working directory. */
async function bundleAtRoot() {
  const workingDirectory = process.cwd();
  process.chdir(dirname(import.meta.dir));
  try {
    return await bundleDashboard({ minify: true });
  } finally {
    process.chdir(workingDirectory);
  }
}
