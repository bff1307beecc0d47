/**
 * Unpacking and loading of the add-ons inside the executable, tried with the one that source mode uses.
 *
 * @module
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { bestSimdLevel, configureNative, type EmbeddedAddon, lacksAvx2, loadNative } from "../../../src/lib/native.ts";

const bytes = readFileSync(join(dirname(Bun.resolveSync("hnswlib-node/package.json", import.meta.dir)), "build/Release/addon.node"));

let directory: string;
let addon: EmbeddedAddon;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "cairn-native-"));
  addon = { name: "hnsw", path: join(directory, "embedded"), sha256: sha256(bytes) };
  writeFileSync(addon.path, bytes);
});

afterEach(() => {
  configureNative({});
  rmSync(directory, { recursive: true });
});

describe("loading an add-on", () => {
  test("unpacks it where only this user can read it", () => {
    const chosen = join(directory, "chosen");
    configureNative({ directory: chosen });
    expect(loadNative(addon)).toHaveProperty("HierarchicalNSW");
    expect(readdirSync(chosen)).toEqual([`hnsw-${addon.sha256.slice(0, 16)}.node`]);
    expect(statSync(chosen).mode & 0o777).toBe(0o700);
    expect(sha256(readFileSync(unpackedIn(chosen)))).toBe(addon.sha256);
  });

  test("replaces a file that is not what was built, whatever its length", () => {
    configureNative({ dataDirectory: directory });
    mkdirSync(join(directory, ".native"), { mode: 0o700 });
    writeFileSync(unpackedIn(join(directory, ".native")), Buffer.alloc(bytes.length));
    expect(loadNative(addon)).toHaveProperty("HierarchicalNSW");
    expect(sha256(readFileSync(unpackedIn(join(directory, ".native"))))).toBe(addon.sha256);
  });

  test("passes over a directory that others can write to", () => {
    const open = join(directory, "open");
    mkdirSync(open);
    chmodSync(open, 0o777);
    configureNative({ directory: open, dataDirectory: directory });
    expect(loadNative(addon)).toHaveProperty("HierarchicalNSW");
    expect(readdirSync(open)).toEqual([]);
    expect(readdirSync(join(directory, ".native"))).toHaveLength(1);
  });

  test("makes no data directory: a mistyped one stays missing", () => {
    const missing = join(directory, "missing");
    configureNative({ dataDirectory: missing, directory });
    expect(loadNative(addon)).toHaveProperty("HierarchicalNSW");
    expect(readdirSync(directory)).not.toContain("missing");
  });
});

test.each([
  { flags: "avx2 fma bmi2 f16c movbe abm avx512f avx512bw avx512cd avx512dq avx512vl", level: "v4" },
  { flags: "avx2 fma bmi2 f16c movbe abm avx512f", level: "v3" },
  { flags: "avx2 fma", level: "sse" },
  { flags: "", level: "sse" },
] as const)("a processor with '$flags' gets $level", ({ flags, level }) => {
  expect(bestSimdLevel(new Set(flags.split(" ")))).toBe(level);
});

function unpackedIn(parent: string): string {
  return join(parent, `hnsw-${addon.sha256.slice(0, 16)}.node`);
}

function sha256(content: Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}

test("a processor is said to lack AVX2 where the system names its flags, and that is none of them", () => {
  const linux = { platform: "linux", arch: "x64" } as const;
  expect(lacksAvx2(new Set(["sse2", "avx"]), linux)).toBe(true);
  expect(lacksAvx2(new Set(["sse2", "avx2"]), linux)).toBe(false);
  expect(lacksAvx2(new Set(), linux)).toBe(false);
  expect(lacksAvx2(new Set(["fp", "asimd"]), { platform: "linux", arch: "arm64" })).toBe(false);
  expect(lacksAvx2(new Set(["sse2"]), { platform: "darwin", arch: "x64" })).toBe(false);
});
