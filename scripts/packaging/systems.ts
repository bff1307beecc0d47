/**
 * Systems to try executables on: roots made from Debian's packages, entered by `chroot`, or by emulation of another processor.
 *
 * The packages are fetched with apt from where this machine gets its own, and checked by apt. Nothing is installed: what apt
 * notes is kept in a directory of its own.
 *
 * @module
 */
import { $ } from "bun";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "../failure.ts";
import { zigDirectory } from "../runtime.ts";
import type { TargetName } from "../targets.ts";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
/** The release whose glibc (2.31) is the oldest that Debian still distributes. */
const OLD = "bullseye";
const NEWER = "bookworm";

/** A place where an executable can be run. */
export interface System {
  /** Its name in the report. */
  readonly name: string;
  /** Command before the path of the executable, and its arguments. */
  readonly through: readonly string[];
  /** The directory that is its root; undefined: this machine's. */
  readonly root: string | undefined;
  readonly environment: Record<string, string>;
}

/** Debian's packages, unpacked. */
export class Packages {
  readonly #directory: string;
  #isUpdated = false;

  /** @param directory - kept for the next run */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** @returns the directory a package is unpacked in @throws {Failure} when it cannot be had */
  async unpacked(name: string, architecture: "amd64" | "arm64", release: string): Promise<string> {
    const target = join(this.#directory, `${name}-${architecture}-${release}`);
    if (existsSync(target)) return target;
    const options = await this.#options(architecture);
    const downloads = join(this.#directory, "downloads");
    rmSync(downloads, { recursive: true, force: true });
    mkdirSync(downloads, { recursive: true });
    const got = await $`apt-get ${options} --quiet=2 -t ${release} download ${name}:${architecture}`.cwd(downloads).quiet().nothrow();
    const [file] = readdirSync(downloads);
    if (got.exitCode !== 0 || file === undefined) throw new Failure(`${name} for ${architecture} of ${release}: ${lastLine(got.stderr)}`);
    await $`dpkg-deb --extract ${join(downloads, file)} ${target}.new`.quiet();
    await $`mv ${target}.new ${target}`.quiet();
    return target;
  }

  async #options(architecture: string): Promise<string[]> {
    if (Bun.which("apt-get") === null) throw new Failure("there is no apt-get to fetch packages with");
    const at = (name: string) => join(this.#directory, "apt", name);
    for (const name of ["lists/partial", "cache/archives/partial"]) mkdirSync(at(name), { recursive: true });
    writeFileSync(at("status"), "");
    const settings: Record<string, string> = {
      "Dir::Etc::SourceList": at("sources.list"),
      "Dir::Etc::SourceParts": "/dev/null",
      "Dir::State": at(""),
      "Dir::State::Lists": at("lists"),
      "Dir::State::status": at("status"),
      "Dir::Cache": at("cache"),
      "APT::Architecture": architecture,
      "APT::Sandbox::User": "root",
    };
    const options = Object.entries(settings).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
    options.push("-o", "APT::Architectures::=amd64", "-o", "APT::Architectures::=arm64");
    if (this.#isUpdated) return options;
    const archive = await archiveOfThisMachine();
    writeFileSync(at("sources.list"), [OLD, NEWER].map((release) => `deb [signed-by=${KEYRING}] ${archive} ${release} main\n`).join(""));
    const update = await $`apt-get ${options} --quiet=2 update`.quiet().nothrow();
    if (update.exitCode !== 0) throw new Failure(`apt-get update: ${lastLine(update.stderr)}`);
    this.#isUpdated = true;
    return options;
  }
}

/** The address that this machine has Debian's packages from. */
async function archiveOfThisMachine(): Promise<string> {
  const format = "$(REPO_URI) $(LABEL)";
  const targets = await $`apt-get indextargets --format ${format} ${"Created-By: Packages"}`.quiet().nothrow();
  const line = targets
    .text()
    .split("\n")
    .find((text) => text.endsWith(" Debian"));
  if (line === undefined || !existsSync(KEYRING)) throw new Failure("this machine has no packages of Debian's");
  return line.split(" ")[0] ?? "";
}

function lastLine(output: Buffer): string {
  return output.toString().trim().split("\n").at(-1) ?? "";
}

export const HERE: System = { name: "this machine", through: [], root: undefined, environment: {} };

/** linux-x64 on glibc 2.31 and nothing else. */
export async function oldGlibc(packages: Packages): Promise<System> {
  const root = await packages.unpacked("libc6", "amd64", OLD);
  return { name: "glibc 2.31 in a bare root", ...inRoot(root) };
}

/** A processor without AVX: the first with SSE4.2. */
export async function oldProcessor(packages: Packages): Promise<System> {
  const emulator = join(await packages.unpacked("qemu-user-static", "amd64", NEWER), "usr/bin/qemu-x86_64-static");
  // Content of /proc/cpuinfo is this machine's.
  return {
    name: "a processor of 2008 (QEMU, Nehalem)",
    through: [emulator, "-cpu", "Nehalem"],
    root: undefined,
    environment: { CAIRN_SIMD: "sse" },
  };
}

export async function arm64(packages: Packages): Promise<System> {
  return emulated("arm64 with glibc 2.31 (QEMU)", packages, await packages.unpacked("libc6", "arm64", OLD));
}

/** @param executable - whose needs the libstdc++ is made for */
export async function musl(packages: Packages, executable: string): Promise<System> {
  const root = await muslRoot(packages, "x86_64", "amd64", executable);
  return { name: "musl 1.2.3 in a bare root", ...inRoot(root) };
}

/** @param executable - whose needs the libstdc++ is made for */
export async function arm64Musl(packages: Packages, executable: string): Promise<System> {
  return emulated("arm64 with musl 1.2.3 (QEMU)", packages, await muslRoot(packages, "aarch64", "arm64", executable));
}

async function emulated(name: string, packages: Packages, root: string): Promise<System> {
  const emulator = join(await packages.unpacked("qemu-user-static", "amd64", NEWER), "usr/bin/qemu-aarch64-static");
  return { name, through: [emulator, "-L", root], root: undefined, environment: {} };
}

/** With mounts of its own, which go with the process: Bun reads /proc, and wants some devices. */
function inRoot(root: string): Pick<System, "through" | "root" | "environment"> {
  const asRoot = process.geteuid?.() === 0 ? ["unshare", "--mount"] : ["unshare", "--user", "--map-root-user", "--mount"];
  for (const name of ["proc", "dev", "tmp"]) mkdirSync(join(root, name), { recursive: true });
  const script = `mount --rbind /proc "${root}/proc" && mount --rbind /dev "${root}/dev" && exec chroot "${root}" "$@"`;
  return { through: [...asRoot, "sh", "-c", script, "sh"], root, environment: {} };
}

/** Debian has no libstdc++ for musl: for the test one is linked from its static library, with what the executable needs of it. */
async function muslRoot(
  packages: Packages,
  processor: "x86_64" | "aarch64",
  architecture: "amd64" | "arm64",
  executable: string,
): Promise<string> {
  const root = await packages.unpacked("musl", architecture, NEWER);
  // Directories in which it would look besides /usr/lib.
  rmSync(join(root, "etc"), { recursive: true, force: true });
  const within = (path: string) => join(path, "usr/lib/gcc", `${processor}-linux-gnu`, "12");
  const cpp = within(await packages.unpacked("libstdc++-12-dev", architecture, NEWER));
  const gcc = within(await packages.unpacked("libgcc-12-dev", architecture, NEWER));
  const library = join(cpp, "libstdc++.a");
  const defined = new Set((await $`nm --defined-only -P ${library}`.quiet().text()).split("\n").map((line) => line.split(" ")[0]));
  const named = (await dynamicSymbols(executable)).filter((name) => defined.has(name));
  if (named.length === 0) throw new Failure(`${executable} needs nothing of libstdc++`);
  const glue = join(root, "glue.c");
  writeFileSync(glue, GLUE);
  mkdirSync(join(root, "usr/lib"), { recursive: true });
  const output = join(root, "usr/lib/libstdc++.so.6");
  const wanted = named.map((name) => `-Wl,-u,${name}`);
  const libraries = [library, join(gcc, "libgcc_eh.a"), join(gcc, "libgcc.a")];
  const zig = join(await zigDirectory(), "zig");
  const cache = join(import.meta.dir, "../../.tools/zig-cache");
  await $`${zig} cc -target ${processor}-linux-musl -shared -nostdlib -o ${output} -Wl,-soname,libstdc++.so.6 ${glue} ${wanted} ${libraries}`
    .env({ ...process.env, ZIG_GLOBAL_CACHE_DIR: cache, ZIG_LOCAL_CACHE_DIR: join(cache, "local") })
    .quiet();
  return root;
}

/** Symbols that glibc has and musl has not, of those that the parts of the library refer to. */
const GLUE = `
__attribute__((visibility("hidden"))) void *__dso_handle = 0;
char __libc_single_threaded = 0;
unsigned arc4random(void) { return 4; }
int _dl_find_object(void *address, void *result) { return -1; }
unsigned long getauxval(unsigned long type);
unsigned long __getauxval(unsigned long type) { return getauxval(type); }
`;

/** Names of the symbols that an executable shares with its libraries. */
async function dynamicSymbols(executable: string): Promise<string[]> {
  const table = await $`readelf --dyn-syms --wide ${executable}`.quiet().text();
  return table.split("\n").flatMap((line) => line.trim().split(/\s+/)[7]?.split("@")[0] ?? []);
}

/** Puts an executable where a system can start it. @returns its path there */
export function placed(executable: string, { root }: System, target: TargetName): string {
  if (root === undefined) return executable;
  const name = `/cairn-${target}`;
  copyFileSync(executable, join(root, name));
  chmodSync(join(root, name), 0o755);
  return name;
}

/** The newest version of glibc that a file needs, as in `2.17`; undefined when it needs none. */
export async function glibcNeeded(file: string): Promise<string | undefined> {
  const versions = await $`readelf --version-info --wide ${file}`.quiet().text();
  const numbers = Array.from(versions.matchAll(/GLIBC_(\d+)\.(\d+)/g), ([, major, minor]) => [Number(major), Number(minor)] as const);
  const [newest] = numbers.toSorted((a, b) => b[0] - a[0] || b[1] - a[1]);
  return newest?.join(".");
}

/** Libraries that a file names. */
export async function librariesNeeded(file: string): Promise<string[]> {
  const dynamic = await $`readelf --dynamic --wide ${file}`.quiet().text();
  return Array.from(dynamic.matchAll(/\(NEEDED\).*\[(.+)\]/g), ([, name = ""]) => name);
}

/** Names that a library exports. */
export async function exportsOf(file: string): Promise<string[]> {
  const table = await $`readelf --dyn-syms --wide ${file}`.quiet().text();
  const rows = table.split("\n").map((line) => line.trim().split(/\s+/));
  return rows.flatMap(([, , , , binding, , section, name]) =>
    ["GLOBAL", "WEAK"].includes(binding ?? "") && section !== "UND" && name !== undefined ? [name.split("@")[0] ?? ""] : [],
  );
}
