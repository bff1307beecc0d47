/**
 * Bundles the dashboard for the browser: `app/` becomes a few files with the hash of their content in their names.
 *
 * Run from source, this happens on the first request. The executable contains the files, minified and compressed:
 * `scripts/dashboard-plugin.ts` replaces this module by one that names them.
 *
 * @module
 */
import { basename, extname, join } from "node:path";

export const BASE = "/dashboard/";
export const PAGE_NAME = "index.html";

/** One file of the dashboard, in every encoding in which it can be sent. */
export interface Asset {
  /** Its path below `BASE`; `PAGE_NAME` is the page itself. */
  readonly name: string;
  readonly type: string;
  readonly hash: string;
  readonly encodings: { readonly identity: Blob; readonly gzip?: Blob; readonly br?: Blob };
}

interface Bundle {
  readonly files: readonly { name: string; type: string; hash: string; bytes: Uint8Array<ArrayBuffer> }[];
  /** Paths of all that went into it. */
  readonly inputs: readonly string[];
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

export async function bundleDashboard(options: { minify: boolean }): Promise<Bundle> {
  const result = await Bun.build({
    entrypoints: [join(import.meta.dir, "app/index.html")],
    target: "browser",
    splitting: true,
    minify: options.minify,
    sourcemap: options.minify ? "none" : "inline",
    metafile: true,
    publicPath: BASE,
    naming: { entry: "[name].[ext]", chunk: "[name]-[hash].[ext]", asset: "[name]-[hash].[ext]" },
    define: { "process.env.NODE_ENV": '"production"' },
  });
  const files = await Promise.all(
    result.outputs.map(async (output) => ({
      name: basename(output.path),
      type: TYPES[extname(output.path)] ?? "application/octet-stream",
      hash: output.hash ?? "",
      bytes: new Uint8Array(await output.arrayBuffer()),
    })),
  );
  return { files, inputs: Object.keys(result.metafile?.inputs ?? {}) };
}

export async function dashboardAssets(): Promise<Asset[]> {
  const { files } = await bundleDashboard({ minify: false });
  return files.map(({ bytes, ...file }) => ({ ...file, encodings: { identity: new Blob([bytes]) } }));
}
