/**
 * The bill of materials of the executables: everything that NOTICE names, with versions and hashes from the lock file.
 *
 * That NOTICE names what is in the executable, no less and no more, is checked by each build (`notice.ts`).
 *
 * @see https://cyclonedx.org/docs/1.6/json/
 * @module
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";

const root = join(import.meta.dir, "../..");

interface Component {
  readonly name: string;
  readonly version?: string;
  readonly license: { id: string } | { name: string };
  /** Of the package it comes in, as the lock file has it. */
  readonly integrity?: string;
  readonly isNpm: boolean;
}

/** @returns a document of CycloneDX 1.6 @throws {Failure} naming what the lock file does not have */
export function billOfMaterials(version: string, date: string): string {
  const components = [...fromNotice(), bun()].map(({ name, version: own, license, integrity, isNpm }) => ({
    type: "library",
    "bom-ref": isNpm ? purl(name, own) : name,
    name,
    ...(own === undefined ? {} : { version: own }),
    licenses: [{ license }],
    ...(isNpm ? { purl: purl(name, own) } : {}),
    ...(integrity === undefined ? {} : { hashes: [{ alg: "SHA-512", content: hexOf(integrity) }] }),
  }));
  const application = { type: "application", "bom-ref": "cairn", name: "cairn", version, licenses: [{ license: { id: "Apache-2.0" } }] };
  const content = {
    metadata: { timestamp: `${date}T00:00:00Z`, component: application },
    components,
    dependencies: [{ ref: "cairn", dependsOn: components.map((component) => component["bom-ref"]) }],
  };
  const head = { bomFormat: "CycloneDX", specVersion: "1.6", serialNumber: uuidOf(JSON.stringify(content)), version: 1 };
  return `${JSON.stringify({ ...head, ...content }, null, 2)}\n`;
}

/** The packages, and the sources that the native add-ons are compiled from. */
function fromNotice(): Component[] {
  const notice = readFileSync(join(root, "NOTICE"), "utf8");
  const section = (title: string) => new RegExp(`^=+\\n${title}\\n=+\\n([^]*?)\\n=+\\n`, "m").exec(notice)?.[1] ?? "";
  const packages = Array.from(section("Packages").matchAll(/^(\S+) \(npm; (.+)\)$/gm), ([, name = "", id = ""]) => ({
    name,
    ...locked(name),
    license: { id },
    isNpm: true,
  }));
  const sources = Array.from(
    section("Native add-ons").matchAll(/^(\S.*?) \((.+)\)(?:, in released executables)?$/gm),
    ([, name = "", license = ""]) => ({ name, license: { name: license }, isNpm: false }),
  );
  return [...packages, ...sources];
}

function bun(): Component {
  return { name: "bun", ...locked("bun"), license: { id: "MIT" }, isNpm: true };
}

function locked(name: string): { version: string; integrity: string } {
  const { packages } = Bun.JSONC.parse(readFileSync(join(root, "bun.lock"), "utf8")) as { packages: Record<string, readonly unknown[]> };
  const [specifier = "", ...rest] = packages[name] ?? [];
  const integrity = rest.at(-1);
  const prefix = `${name}@`;
  if (typeof specifier !== "string" || !specifier.startsWith(prefix) || typeof integrity !== "string")
    throw new Failure(`bun.lock does not have ${name}, which NOTICE names.`);
  return { version: specifier.slice(prefix.length), integrity };
}

function purl(name: string, version = ""): string {
  return `pkg:npm/${name.replace("@", "%40")}@${version}`;
}

/** @param integrity - as in `sha512-…`, base64 */
function hexOf(integrity: string): string {
  return Buffer.from(integrity.slice("sha512-".length), "base64").toString("hex");
}

/** The same for the same content. */
function uuidOf(content: string): string {
  const hex = createHash("sha256").update(content).digest("hex");
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
