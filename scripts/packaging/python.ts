/**
 * The packages of the Python client in src/python: a wheel, and the sources that it is built from.
 *
 *     scripts/package-python      writes them to dist/, for `pip install FILE`
 *
 * Its version is that of Cairn.
 *
 * @module
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import manifest from "../../package.json";
import { Failure, runScript } from "../failure.ts";

const root = join(import.meta.dir, "../..");

/** Names of the wheel and of the sources. */
export function pythonNames(version: string): [wheel: string, sources: string] {
  return [`cairn_client-${version}-py3-none-any.whl`, `cairn_client-${version}.tar.gz`];
}

/** Builds the packages into a directory, the same bytes each time. @returns their names */
export function buildPython(to: string): [wheel: string, sources: string] {
  mkdirSync(join(root, "dist"), { recursive: true });
  const directory = mkdtempSync(join(root, "dist/.python-"));
  try {
    for (const name of ["cairn_client", "pyproject.toml", "README.md"]) {
      const filter = (path: string) => !path.includes("__pycache__");
      cpSync(join(root, "src/python", name), join(directory, name), { recursive: true, filter });
    }
    cpSync(join(root, "LICENSE"), join(directory, "LICENSE"));
    const project = join(directory, "pyproject.toml");
    writeFileSync(project, readFileSync(project, "utf8").replace(/^version = .*$/m, `version = "${manifest.version}"`));
    const command = [join(root, "scripts/python"), "-m", "hatchling", "build", "-d", to];
    const { exitCode, stderr } = Bun.spawnSync(command, { cwd: directory, stdin: "ignore" });
    if (exitCode !== 0) throw new Failure(`The client for Python is not built:\n${stderr.toString().trimEnd()}`);
    return pythonNames(manifest.version);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

if (import.meta.main) {
  await runScript(() => {
    const to = join(root, "dist");
    for (const name of buildPython(to)) console.log(relative(process.cwd(), join(to, name)));
    return Promise.resolve();
  });
}
