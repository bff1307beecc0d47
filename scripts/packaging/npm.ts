/**
 * The packages for npm: `cairn-server` with a launcher, and for each target one with its executable, of which npm and Bun install
 * the one for the platform they run on. None has a script that runs when it is installed.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { targetOf, type Target, type TargetName } from "../targets.ts";
import type { ArchivedFile } from "./archive.ts";
import { documentBytes } from "./documents.ts";

const NAME = "cairn-server";
const LICENSE = "Apache-2.0";
const DESCRIPTION = "Sessions, memory and an audit trail for AI agents, in one executable.";
/** The oldest Node whose reports name the libc as the launcher wants it. */
const NODE = ">=18";

export interface NpmPackage {
  /** The name of its file, as `npm pack` has it. */
  readonly file: string;
  readonly files: readonly ArchivedFile[];
}

/** @param executables - their paths */
export function npmPackages(version: string, executables: Partial<Record<TargetName, string>>): NpmPackage[] {
  const targets = Object.keys(executables) as TargetName[];
  const common = { version, license: LICENSE };
  const launcher: NpmPackage = {
    file: `${NAME}-${version}.tgz`,
    files: packed(
      {
        name: NAME,
        ...common,
        description: DESCRIPTION,
        bin: { cairn: "launcher.cjs", [NAME]: "launcher.cjs" },
        engines: { node: NODE },
        optionalDependencies: Object.fromEntries(targets.map((target) => [`@${NAME}/${target}`, version])),
      },
      [{ name: "launcher.cjs", bytes: readFileSync(join(import.meta.dir, "templates/launcher.cjs")), executable: true }],
    ),
  };
  return [launcher, ...targets.map((target) => executablePackage(target, executables[target] ?? "", common))];
}

function executablePackage(target: TargetName, executable: string, common: { version: string; license: string }): NpmPackage {
  const { platform, architecture, libc }: Target = targetOf(target);
  const manifest = {
    name: `@${NAME}/${target}`,
    ...common,
    description: `The Cairn executable for ${target}.`,
    os: [platform],
    cpu: [architecture],
    ...(libc === undefined ? {} : { libc: [libc] }),
    preferUnplugged: true,
  };
  return {
    file: `${NAME}-${target}-${common.version}.tgz`,
    files: packed(manifest, [{ name: "cairn", bytes: readFileSync(executable), executable: true }]),
  };
}

function packed(manifest: object, own: readonly ArchivedFile[]): ArchivedFile[] {
  const documents = ["LICENSE", "NOTICE", "README.md"].map((name) => ({ name, bytes: documentBytes(name) }));
  const description = { name: "package.json", bytes: Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`) };
  return [description, ...own, ...documents].map((file) => ({ ...file, name: `package/${file.name}` }));
}
