/**
 * A registry on loopback that has the packages in a directory of files, as npm packs them.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface NpmRegistry extends Disposable {
  readonly url: string;
  /** The files that were fetched, in the order in which they were. */
  readonly fetched: readonly string[];
}

export async function npmRegistry(directory: string): Promise<NpmRegistry> {
  const fetched: string[] = [];
  const packages = new Map<string, object>();
  const files = readdirSync(directory).filter((name) => name.endsWith(".tgz"));
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      const path = decodeURIComponent(new URL(url).pathname.slice(1));
      const file = path.startsWith("-/") ? path.slice(2) : "";
      if (!files.includes(file)) return Response.json(packages.get(path) ?? {}, { status: packages.has(path) ? 200 : 404 });
      fetched.push(file);
      return new Response(Bun.file(join(directory, file)));
    },
  });
  const url = `http://127.0.0.1:${server.port}/`;
  for (const file of files) {
    const bytes = readFileSync(join(directory, file));
    const manifest = (await (await new Bun.Archive(bytes).files()).get("package/package.json")?.json()) as {
      name: string;
      version: string;
    };
    const dist = { integrity: `sha512-${createHash("sha512").update(bytes).digest("base64")}`, tarball: `${url}-/${file}` };
    const { name, version } = manifest;
    packages.set(name, { name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } });
  }
  return { url, fetched, [Symbol.dispose]: () => void server.stop(true) };
}
