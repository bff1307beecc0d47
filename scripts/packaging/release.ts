/**
 * Everything that is published of a version, made from its executables: the same bytes each time.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { SCHEMA_VERSION } from "../../src/storage/tables.ts";
import { Failure } from "../failure.ts";
import { TARGETS, targetOf, type Target, type TargetName } from "../targets.ts";
import { tarGz, type ArchivedFile, type Level } from "./archive.ts";
import { clientPackage } from "./client.ts";
import { debName, debPackage } from "./deb.ts";
import { documentBytes } from "./documents.ts";
import { npmPackages } from "./npm.ts";
import { pluginFiles } from "./plugins.ts";
import { billOfMaterials } from "./sbom.ts";

const root = join(import.meta.dir, "../..");

export interface Release {
  readonly version: string;
  /** The day of its commit, as in `2027-01-31`. */
  readonly date: string;
  /** The address at which these files will be, without a slash at its end. */
  readonly url: string;
  /** Paths of the executables. */
  readonly executables: Partial<Record<TargetName, string>>;
  /** Paths of the wheel of the Python client and of its sources. */
  readonly python: readonly string[];
}

/** Writes all files of a release into a directory, which is made. @returns their names */
export function writeRelease(release: Release, directory: string, level: Level = 6): string[] {
  mkdirSync(directory, { recursive: true });
  const sums = new Map<string, string>();
  const put = (name: string, content: string | Uint8Array) => {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    writeFileSync(join(directory, name), bytes);
    sums.set(name, createHash("sha256").update(bytes).digest("hex"));
  };
  const { version, date, url } = release;
  const executables = Object.entries(release.executables) as [TargetName, string][];
  for (const [target, path] of executables) put(archiveName(version, target), tarGz(archived(version, target, path), level));
  for (const [target, path] of executables) {
    const name = debName(version, target);
    if (name !== undefined) put(name, debPackage(version, target, readFileSync(path), level));
  }
  const packages = [...npmPackages(version, release.executables), clientPackage(version)];
  for (const { file, files } of packages) put(file, tarGz(files, level));
  put(`cairn-plugins-${version}.tar.gz`, tarGz(pluginFiles(version), level));
  for (const path of release.python) put(basename(path), readFileSync(path));
  const shaOf = (target: TargetName) => sums.get(archiveName(version, target));
  const fill = (template: string) => filled(readFileSync(join(import.meta.dir, "templates", template), "utf8"), { version, url, shaOf });
  put("install.sh", fill("install.sh"));
  put("Dockerfile", fill("Dockerfile"));
  put("cairn.rb", fill("cairn.rb"));
  put("sbom.cdx.json", billOfMaterials(version, date));
  put(
    "release-notes.md",
    releaseNotes(
      version,
      executables.map(([target]) => target),
    ),
  );
  const archives = Object.fromEntries(
    executables.map(([target]) => [target, { file: archiveName(version, target), sha256: shaOf(target) }]),
  );
  put("latest.json", `${JSON.stringify({ version, date, schema: SCHEMA_VERSION, archives }, null, 2)}\n`);
  const lines = Array.from(sums, ([name, sum]) => `${sum}  ${name}\n`).toSorted((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1));
  writeFileSync(join(directory, "SHA256SUMS"), lines.join(""));
  return [...sums.keys(), "SHA256SUMS"];
}

/** Name of the archive for a target. */
export function archiveName(version: string, target: TargetName): string {
  return `${baseName(version, target)}.tar.gz`;
}

function baseName(version: string, target: TargetName): string {
  return `cairn-${version}-${target}`;
}

function archived(version: string, target: TargetName, executable: string): ArchivedFile[] {
  const { platform }: Target = targetOf(target);
  const documents = ["LICENSE", "NOTICE", "README.md", ...(platform === "linux" ? ["scripts/deploy/cairn.service"] : [])];
  const directory = baseName(version, target);
  return [
    { name: `${directory}/cairn`, bytes: readFileSync(executable), executable: true },
    ...documents.map((path) => ({ name: `${directory}/${path.split("/").at(-1)}`, bytes: documentBytes(path) })),
  ];
}

interface Values {
  readonly version: string;
  readonly url: string;
  readonly shaOf: (target: TargetName) => string | undefined;
}

/** A template with what stands between `@` filled in. */
function filled(template: string, { version, url, shaOf }: Values): string {
  const targets = Object.keys(TARGETS) as TargetName[];
  const hashes = targets.flatMap((target) => (shaOf(target) === undefined ? [] : [`    ${target}) echo ${shaOf(target)} ;;`]));
  return template
    .replaceAll("@HASHES@", hashes.join("\n"))
    .replaceAll("@VERSION@", version)
    .replaceAll("@URL@", url)
    .replaceAll(/@SHA256:([a-z0-9-]+)@/g, (_, target: TargetName) => shaOf(target) ?? "0".repeat(64));
}

/** The section of this version in CHANGELOG.md, and what each executable needs. @throws {Failure} when there is none */
function releaseNotes(version: string, targets: readonly TargetName[]): string {
  const changes = changesOf(readFileSync(join(root, "CHANGELOG.md"), "utf8"), version);
  if (changes === undefined) throw new Failure(`CHANGELOG.md has no section for ${version}.`);
  const rows = targets.map((target) => `| \`${target}\` | ${targetOf(target).needs} | ${targetOf(target).tested} |`);
  return [`# Cairn ${version}`, "", changes, "", "## Targets", "", "| target | needs | tested |", "| --- | --- | --- |", ...rows, ""].join(
    "\n",
  );
}

/** @returns what stands below the heading of a version; undefined when there is no such heading */
export function changesOf(changelog: string, version: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/\s/, 1)[0] === version);
  return section?.slice(section.indexOf("\n") + 1).trim();
}
