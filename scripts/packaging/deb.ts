/**
 * Packages for Debian and Ubuntu: the executable, its systemd unit, and the user that it runs as. The same bytes each time, on any system.
 *
 * A package is an archive of `ar` with two archives of `tar`: what is installed, and what dpkg does before and after that (deb(5)).
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { targetOf, type Target, type TargetName } from "../targets.ts";
import { tarGz, type ArchivedFile, type Level } from "./archive.ts";
import { documentBytes } from "./documents.ts";

const TEMPLATES = join(import.meta.dir, "templates/deb");
const SCRIPTS = ["postinst", "prerm", "postrm"];
const ARCHITECTURES = { x64: "amd64", arm64: "arm64" } as const;

/** Name of the package for a target; undefined where Debian has none. */
export function debName(version: string, target: TargetName): string | undefined {
  const { platform, libc, architecture }: Target = targetOf(target);
  if (platform !== "linux" || libc !== "glibc") return undefined;
  return `cairn_${version}_${ARCHITECTURES[architecture]}.deb`;
}

export function debPackage(version: string, target: TargetName, executable: Uint8Array, level: Level): Buffer {
  const installed = installedFiles(executable);
  const kib = Math.ceil(installed.reduce((sum, { bytes }) => sum + bytes.length, 0) / 1024);
  const control = [
    "Package: cairn",
    `Version: ${version}`,
    `Architecture: ${ARCHITECTURES[targetOf(target).architecture]}`,
    "Maintainer: Cairn",
    `Installed-Size: ${kib}`,
    "Depends: libc6 (>= 2.17), passwd",
    "Section: database",
    "Priority: optional",
    "Description: sessions, memory and an audit trail for AI agents",
    " Sessions with versioned state, turns, memories with search by meaning, and",
    " traces, over a JSON REST API and MCP.",
    "",
  ].join("\n");
  const scripts = SCRIPTS.map((name) => ({ name: `./${name}`, bytes: readFileSync(join(TEMPLATES, name)), executable: true }));
  return ar([
    { name: "debian-binary", bytes: Buffer.from("2.0\n") },
    { name: "control.tar.gz", bytes: tarGz([directory("./"), { name: "./control", bytes: Buffer.from(control) }, ...scripts], level) },
    { name: "data.tar.gz", bytes: tarGz(installed, level) },
  ]);
}

/** With the directories that they are in, which dpkg wants before them. */
function installedFiles(executable: Uint8Array): ArchivedFile[] {
  const unit = documentBytes("scripts/deploy/cairn.service").toString().replace("/usr/local/bin/cairn serve", "/usr/bin/cairn serve");
  const files: ArchivedFile[] = [
    { name: "./usr/bin/cairn", bytes: executable, executable: true },
    { name: "./usr/lib/systemd/system/cairn.service", bytes: Buffer.from(unit) },
    { name: "./usr/share/doc/cairn/copyright", bytes: documentBytes("LICENSE") },
    { name: "./usr/share/doc/cairn/NOTICE", bytes: documentBytes("NOTICE") },
  ];
  const directories = new Set(files.flatMap(({ name }) => Array.from(name.matchAll(/\//g), ({ index }) => name.slice(0, index + 1))));
  return [...[...directories].toSorted().map(directory), ...files];
}

function directory(name: string): ArchivedFile {
  return { name, bytes: new Uint8Array(0), directory: true };
}

/** An archive of `ar`: a line of 60 characters for each file, and its bytes, up to an even number of them. */
function ar(files: readonly { name: string; bytes: Uint8Array }[]): Buffer {
  const parts = files.flatMap(({ name, bytes }) => [
    Buffer.from(
      `${name.padEnd(16)}${"0".padEnd(12)}${"0".padEnd(6)}${"0".padEnd(6)}${"100644".padEnd(8)}${String(bytes.length).padEnd(10)}\`\n`,
    ),
    bytes,
    Buffer.alloc(bytes.length % 2, "\n"),
  ]);
  return Buffer.concat([Buffer.from("!<arch>\n"), ...parts]);
}
