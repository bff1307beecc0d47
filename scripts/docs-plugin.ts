/**
 * Puts the documentation into the executable.
 *
 * @module
 */
import type { BunPlugin } from "bun";
import { docsFiles } from "../src/docs/files.ts";

/** Returns the plugin that replaces `src/docs/files.ts` by a module that names files of the executable. */
export async function docsPlugin(): Promise<BunPlugin> {
  const files = [...(await docsFiles())];
  const imports = files.map(([, file], i) => `import file${i} from ${JSON.stringify(file)} with { type: "file" };`);
  const entries = files.map(([path], i) => `[${JSON.stringify(path)}, file${i}]`);
  const contents = `${imports.join("\n")}\nconst files = new Map([${entries.join(", ")}]);\nexport const docsFiles = async () => files;`;
  return {
    name: "docs",
    setup(build) {
      build.onLoad({ filter: /docs[\\/]files\.ts$/ }, () => ({ loader: "js", contents }));
    },
  };
}
