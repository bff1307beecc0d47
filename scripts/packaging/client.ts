/**
 * The npm package `cairn-client`: the client in src/client and the adapters in src/adapters as JavaScript with types.
 *
 *     scripts/package-client          writes it to dist/cairn-client-VERSION.tgz, for `npm publish FILE` or `npm install FILE`
 *
 * It is a file, because npm makes a link to a directory that it installs: the adapters would import the frameworks of this checkout.
 *
 * Each adapter is an entry of its own, `cairn-client/langgraph`, and its framework a peer dependency that may be missing. The package
 * has no dependency and no script that runs when it is installed.
 *
 * @module
 */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import manifest from "../../package.json";
import { Failure, runScript } from "../failure.ts";
import { tarGz, type ArchivedFile } from "./archive.ts";
import type { NpmPackage } from "./npm.ts";

const root = join(import.meta.dir, "../..");

const NAME = "cairn-client";
/** The oldest Node that has all web APIs that are used. */
const NODE = ">=20";

/** Returns the package, the same bytes each time. */
export function clientPackage(version: string): NpmPackage {
  const adapters = globSync("src/adapters/*.ts", { cwd: root }).map((path) => path.slice("src/adapters/".length, -".ts".length));
  const description = {
    name: NAME,
    version,
    description: "Client of Cairn: sessions, versioned state, memory and an audit trail for AI agents. With adapters for agent frameworks.",
    license: manifest.license,
    type: "module",
    sideEffects: false,
    engines: { node: NODE },
    exports: {
      ".": entry("client/index"),
      ...Object.fromEntries(adapters.toSorted().map((name) => [`./${name}`, entry(`adapters/${name}`)])),
      "./package.json": "./package.json",
    },
    ...peers(),
  };
  const files: ArchivedFile[] = [
    { name: "package.json", bytes: Buffer.from(`${JSON.stringify(description, null, 2)}\n`) },
    ...compiled(),
    { name: "LICENSE", bytes: readFileSync(join(root, "LICENSE")) },
    { name: "README.md", bytes: readme("client", "](../adapters/", "](adapters/") },
    { name: "skills/cairn/SKILL.md", bytes: readFileSync(join(root, "src/docs/skill/SKILL.md")) },
    { name: "adapters/README.md", bytes: readme("adapters", "](../client/", "](../") },
  ];
  return { file: `${NAME}-${version}.tgz`, files: files.map((file) => ({ ...file, name: `package/${file.name}` })) };
}

/** In the package the page of the client is at the root, and not next to that of the adapters. */
function readme(folder: string, link: string, packedLink: string): Buffer {
  return Buffer.from(readFileSync(join(root, "src", folder, "README.md"), "utf8").replaceAll(link, packedLink));
}

const entry = (path: string) => ({ types: `./${path}.d.ts`, default: `./${path}.js` });

/**
 * The packages that adapters import, in any version: one that an adapter does not know must not keep those from the client who do not use
 * that adapter. README.md of the adapters names the versions that they are tested with.
 */
function peers(): object {
  const texts = globSync("src/adapters/**/*.ts", { cwd: root }).map((path) => readFileSync(join(root, path), "utf8"));
  const imported = texts.flatMap((text) => Array.from(text.matchAll(/ from "((?:@[\w-]+\/)?[\w-]+)/g), ([, from = ""]) => from));
  const names = [...new Set(imported)].toSorted();
  return {
    peerDependencies: Object.fromEntries(names.map((name) => [name, "*"])),
    peerDependenciesMeta: Object.fromEntries(names.map((name) => [name, { optional: true }])),
  };
}

/** JavaScript and declarations, in the order of their names. */
function compiled(): ArchivedFile[] {
  mkdirSync(join(root, "dist"), { recursive: true });
  const directory = mkdtempSync(join(root, "dist/.client-"));
  try {
    const command = [process.execPath, join(root, "node_modules/.bin/tsc"), "-p", join(root, "src/client/tsconfig.json")];
    const { exitCode, stdout } = Bun.spawnSync([...command, "--outDir", directory], { stdin: "ignore" });
    if (exitCode !== 0) throw new Failure(`The client does not compile:\n${stdout.toString().trimEnd()}`);
    const names = globSync("**/*.{js,d.ts}", { cwd: directory }).toSorted();
    return names.map((name) => ({ name, bytes: Buffer.from(withJsExtensions(readFileSync(join(directory, name), "utf8"))) }));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The compiler rewrites imports in JavaScript, and leaves those in declarations as they are. */
function withJsExtensions(text: string): string {
  return text.replaceAll(/((?:from |import\()"\.[^"]*)\.ts"/g, '$1.js"');
}

if (import.meta.main) {
  await runScript(async () => {
    const { file, files } = clientPackage(manifest.version);
    const path = join(root, "dist", file);
    await writeFile(path, tarGz(files));
    console.log(relative(process.cwd(), path));
  });
}
