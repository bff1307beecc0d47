/**
 * Checks what is in dist/release: the sums, what each executable needs and holds, how it is signed, and that it runs, as far as
 * this machine can say. What cannot be had here is told and not passed over.
 *
 * @module
 */
import { $ } from "bun";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { addonPaths, lmdbAssembly } from "../build-native.ts";
import { Failure } from "../failure.ts";
import { readMachO, signatureProblems } from "../macho.ts";
import { TARGET_NAMES, targetOf, type Target, type TargetName } from "../targets.ts";
import { weightsProblems } from "../weights.ts";
import { pythonNames } from "./python.ts";
import { archiveName } from "./release.ts";
import { smokeTest } from "./smoke.ts";
import * as systems from "./systems.ts";

const root = join(import.meta.dir, "../..");

const GLIBC = "2.17";
const MACOS = "13.0";
/** Symbols that an add-on shows to the program that loads it. */
const ENTRY_POINTS = ["napi_register_module_v1", "node_api_module_get_api_version_v1"];
/** The C library of each kind, and of musl what the Bun for it needs besides. */
const LIBRARIES = { glibc: /^(lib(c|m|dl|pthread)\.so\.\d+|ld-linux-.*)$/, musl: /^(libc\.musl-.*|libc\.so|libstdc\+\+\.so\.6)$/ } as const;

/** @throws {Failure} when anything is wrong, after all has been checked */
export async function verify(release: string): Promise<void> {
  if (!existsSync(join(release, "SHA256SUMS")))
    throw new Failure("There is no release in dist/release: make it with scripts/release VERSION.");
  const { version } = JSON.parse(readFileSync(join(release, "latest.json"), "utf8")) as { version: string };
  const scratch = mkdtempSync(join(root, ".tools/verify-"));
  const report = new Report();
  try {
    await report.check("every file has the SHA-256 in SHA256SUMS", () => sums(release));
    const executables = new Map<TargetName, string>();
    for (const target of TARGET_NAMES) {
      await report.check(`${target}: unpacks`, async () => {
        await $`tar -xzf ${join(release, archiveName(version, target))} -C ${scratch}`.quiet();
        executables.set(target, join(scratch, archiveName(version, target).replace(/\.tar\.gz$/, ""), "cairn"));
      });
    }
    await pythonPackage(report, join(release, pythonNames(version)[0]), scratch, version);
    for (const [target, executable] of executables) await inspect(report, target, executable);
    for (const [target, executable] of executables) await run(report, target, executable);
    await report.check("linux-x64: the tests of the executable pass on it", () => processTests(executables.get("linux-x64") ?? ""));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  report.end();
}

class Report {
  #failed = 0;

  /** @param work - may give what there is to say besides */
  async check(what: string, work: () => Promise<string | void> | string | void): Promise<void> {
    try {
      const said = await work();
      console.log(`ok: ${what}${said === undefined ? "" : `: ${said}`}`);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#failed++;
      console.log(`FAILED: ${what}: ${error.message}`);
    }
  }

  skip(what: string, reason: string): void {
    console.log(`NOT CHECKED: ${what}: ${reason}`);
  }

  end(): void {
    if (this.#failed > 0) throw new Failure(`${this.#failed} checks failed.`);
  }
}

function assertNone(problems: readonly string[]): void {
  if (problems.length > 0) throw new Failure(problems.join("; "));
}

function sums(release: string): string {
  const lines = readFileSync(join(release, "SHA256SUMS"), "utf8").trimEnd().split("\n");
  const named = new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]));
  const found = readdirSync(release).filter((name) => name !== "SHA256SUMS");
  const shaOf = (name: string) =>
    createHash("sha256")
      .update(readFileSync(join(release, name)))
      .digest("hex");
  assertNone(found.filter((name) => named.get(name) !== shaOf(name)).map((name) => `${name} has another`));
  assertNone([...named.keys()].filter((name) => !found.includes(name)).map((name) => `${name} is missing`));
  return `${found.length} files`;
}

/** Installs the wheel next to nothing else, and has it say its version. */
async function pythonPackage(report: Report, wheel: string, scratch: string, version: string): Promise<void> {
  const what = "the wheel of the Python client installs and says its version";
  const python = join(root, "scripts/python");
  const found = await $`${python} -c "import sys; print(sys.executable)"`.quiet().nothrow();
  if (found.exitCode !== 0) return report.skip(what, found.stderr.toString().trim());
  await report.check(what, async () => {
    const [executable, to] = [found.text().trim(), join(scratch, "python")];
    await $`${executable} -m pip install --quiet --no-deps --no-index --target ${to} ${wheel}`.quiet();
    const program = "import cairn_client, importlib.metadata; print(importlib.metadata.version('cairn-client'), cairn_client.__file__)";
    const said = await $`${executable} -c ${program}`.env({ ...process.env, PYTHONPATH: to }).text();
    if (said.trim() !== `${version} ${join(to, "cairn_client/__init__.py")}`) throw new Failure(`it says ${said.trim()}`);
  });
}

async function inspect(report: Report, name: TargetName, executable: string): Promise<void> {
  const target: Target = targetOf(name);
  const addons = addonPaths(name, "zig");
  await report.check(`${name}: holds its native add-ons`, () => {
    const bytes = readFileSync(executable);
    assertNone(Object.entries(addons).flatMap(([addon, path]) => (bytes.includes(readFileSync(path)) ? [] : [`not ${addon}`])));
    return Object.keys(addons).join(", ");
  });
  await report.check(`${name}: holds the weights of the built-in embedding, where it can map them`, () =>
    assertNone(weightsProblems(readFileSync(executable))),
  );
  if (target.platform === "darwin") return inspectMachO(report, name, target, executable, addons);
  await report.check(`${name}: needs no newer glibc than ${GLIBC}, and the C library alone`, async () => {
    const files = [executable, ...Object.values(addons)];
    for (const file of files) {
      const needed = await systems.glibcNeeded(file);
      if (target.libc === "musl" ? needed !== undefined : Number(needed?.split(".")[1]) > Number(GLIBC.split(".")[1]))
        throw new Failure(`${file} needs glibc ${needed}`);
      const allowed = LIBRARIES[target.libc ?? "glibc"];
      assertNone(
        (await systems.librariesNeeded(file)).filter((library) => !allowed.test(library)).map((library) => `${file} needs ${library}`),
      );
    }
  });
  await report.check(`${name}: the add-ons export their entry points alone`, async () => {
    for (const file of Object.values(addons))
      assertNone(
        (await systems.exportsOf(file)).filter((symbol) => !ENTRY_POINTS.includes(symbol)).map((symbol) => `${file} exports ${symbol}`),
      );
  });
}

async function inspectMachO(
  report: Report,
  name: TargetName,
  { architecture }: Target,
  executable: string,
  addons: Readonly<Record<string, string>>,
): Promise<void> {
  const program = readMachO(readFileSync(executable));
  const loaded = Object.entries(addons).map(([addon, path]) => ({ addon, bytes: readFileSync(path) }));
  await report.check(`${name}: every page of the executable has the hash in its signature`, () =>
    assertNone(signatureProblems(readFileSync(executable))),
  );
  await report.check(`${name}: macOS ${MACOS} starts it, and it needs libraries of the system alone`, () => {
    for (const [file, bytes] of [
      ["the executable", readFileSync(executable)] as const,
      ...loaded.map(({ addon, bytes }) => [addon, bytes] as const),
    ]) {
      const found = readMachO(bytes);
      if (found.architecture !== architecture) throw new Failure(`${file} is for ${found.architecture}`);
      if (found.minimumMacos === undefined || Number(found.minimumMacos) > Number(MACOS))
        throw new Failure(`${file} wants macOS ${found.minimumMacos}`);
      assertNone(found.libraries.filter((path) => !/^\/(usr\/lib|System\/Library)\//.test(path)).map((path) => `${file} needs ${path}`));
    }
  });
  await report.check(`${name}: the add-ons look up nothing that the executable does not export`, () => {
    let count = 0;
    for (const { addon, bytes } of loaded) {
      const found = readMachO(bytes);
      if (found.ownName !== `@rpath/${addon}.node`) throw new Failure(`${addon} calls itself ${found.ownName}`);
      assertNone(
        ENTRY_POINTS.slice(0, 1)
          .filter((symbol) => !found.exported.has(`_${symbol}`))
          .map((symbol) => `${addon} lacks ${symbol}`),
      );
      const fromProgram = found.undefinedSymbols.filter(({ library }) => library === 0 || library > found.libraries.length);
      count += fromProgram.length;
      assertNone(fromProgram.filter((symbol) => !program.exported.has(symbol.name)).map((symbol) => `${addon} looks up ${symbol.name}`));
    }
    return `${count} symbols`;
  });
  await report.check(`${name}: a commit flushes the drive after its meta page`, async () => {
    const [, body = ""] = /^_mdb_env_write_meta:([^]*?)\.cfi_endproc/m.exec(await lmdbAssembly(name, "zig")) ?? [];
    const calls = Array.from(body.matchAll(/\b(?:bl|callq?)\s+_(pwrite|fcntl|fsync)\b/g), ([, call]) => call);
    if (!calls.includes("pwrite") || !calls.includes("fcntl")) throw new Failure(`it calls ${calls.join(", ") || "nothing"}`);
  });
  // arm64 loads nothing that is not signed.
  if (architecture === "arm64")
    await report.check(`${name}: every page of the add-ons has the hash in its signature`, () =>
      assertNone(loaded.flatMap(({ addon, bytes }) => signatureProblems(bytes).map((problem) => `${addon}: ${problem}`))),
    );
  report.skip(`${name}: runs`, "this is not macOS");
}

async function run(report: Report, name: TargetName, executable: string): Promise<void> {
  const packages = new systems.Packages(join(root, ".tools/debian"));
  const here: (() => systems.System)[] = [() => systems.HERE];
  const all: Record<string, readonly (() => systems.System | Promise<systems.System>)[]> = {
    "linux-x64": [...here, () => systems.oldGlibc(packages), () => systems.oldProcessor(packages)],
    "linux-arm64": [() => systems.arm64(packages)],
    "linux-x64-musl": [() => systems.musl(packages, executable)],
    "linux-arm64-musl": [() => systems.arm64Musl(packages, executable)],
  };
  for (const [i, prepare] of (all[name] ?? []).entries()) {
    let system: systems.System;
    try {
      system = await prepare();
    } catch (error) {
      report.skip(`${name}: the smoke test, system ${i + 1}`, error instanceof Error ? error.message : String(error));
      continue;
    }
    await report.check(`${name}: the smoke test passes on ${system.name}`, async () => {
      const before = performance.now();
      const startMs = await smokeTest(executable, name, system);
      return `${((performance.now() - before) / 1000).toFixed(0)} s, the first start ${(startMs / 1000).toFixed(1)} s`;
    });
  }
}

async function processTests(executable: string): Promise<string> {
  const tests = await $`${process.execPath} test --timeout 120000 --only-failures test/process`
    .cwd(root)
    .env({ ...process.env, CAIRN_TEST_EXECUTABLE: executable })
    .quiet()
    .nothrow();
  const said = tests.stderr.toString();
  if (tests.exitCode !== 0) throw new Failure(said.split("\n").slice(-60).join("\n"));
  return /(\d+) pass/.exec(said)?.[0] ?? "";
}
