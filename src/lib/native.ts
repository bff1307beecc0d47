/**
 * Loads the native add-ons inside the executable.
 *
 * The system loads a shared library only from a file. So each add-on is written out once, and checked on every start against
 * the SHA-256 known at build time: a file that was cut short or changed is replaced, never loaded. The directory must be one
 * that nobody else can write to, since who can change the file runs code as this process.
 *
 * From source nothing here runs: `import "lmdb"` finds its add-on under node_modules. In the executable the bundler plugin
 * (`scripts/native-plugin.ts`) replaces such look-ups by calls of `loadNative`, which run while the importing module is
 * evaluated. So `configureNative` is called before such a module is imported. Its settings travel as environment data, of
 * which every Worker gets a copy.
 *
 * @module
 */
import { createHash, randomUUID } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";
import { hasCode, messageOf } from "./errors.ts";

const SETTINGS_KEY = "cairn.native";
/** In the data directory. */
const NATIVE_DIRECTORY = ".native";
const SHORT_HASH_LENGTH = 16;
/** The name of an unpacked add-on, also of one that is being written. */
const UNPACKED = /^([a-z0-9-]+-[0-9a-f]{16}\.node)(\.[0-9a-f-]{36})?$/;

/** The add-ons of the executable, which `scripts/build.ts` writes in. */
declare const CAIRN_ADDONS: readonly Pick<EmbeddedAddon, "name" | "sha256">[] | undefined;

/** True if this runs from the executable, and not from source. */
export const IS_EXECUTABLE = typeof CAIRN_ADDONS !== "undefined";

const V3_FLAGS = ["avx2", "fma", "bmi2", "f16c", "movbe", "abm"];
/** Processor flags that each build of the vector add-on needs, fastest first (names as in /proc/cpuinfo). */
const SIMD_REQUIREMENTS = {
  v4: [...V3_FLAGS, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"],
  v3: V3_FLAGS,
  sse: [] as string[],
} as const;

/** A build of the vector add-on for x86-64; `sse` runs everywhere. */
export type SimdLevel = keyof typeof SIMD_REQUIREMENTS;
export const SIMD_LEVELS = Object.keys(SIMD_REQUIREMENTS) as readonly SimdLevel[];

/** Variables by which an operator changes where add-ons are unpacked, and which one is loaded. */
export interface NativeSettings {
  /** Directory to unpack into, tried before all others. */
  readonly directory?: string | undefined;
  /** The data directory, whose `.native` is tried next. It has to exist: only one level is created. */
  readonly dataDirectory?: string | undefined;
  /** The level to use instead of the best one the processor knows. */
  readonly simd?: SimdLevel | undefined;
}

/** An add-on inside the executable. */
export interface EmbeddedAddon {
  readonly name: string;
  /** Path inside the executable, as given by an import with `{ type: "file" }`. */
  readonly path: string;
  /** SHA-256 of its bytes in hexadecimal. */
  readonly sha256: string;
}

/** Keeps the settings for this thread and for every Worker started after the call. */
export function configureNative(settings: NativeSettings): void {
  setEnvironmentData(SETTINGS_KEY, { ...settings });
}

/**
 * Unpacks an add-on where needed and loads it.
 *
 * @throws {Error} naming every directory tried, and why it would not do
 * @public called by what `scripts/native-plugin.ts` generates
 */
export function loadNative(addon: EmbeddedAddon): unknown {
  const refusals: string[] = [];
  for (const directory of candidateDirectories(settings())) {
    try {
      return open(unpack(addon, directory));
    } catch (error) {
      refusals.push(`  ${directory}: ${messageOf(error)}`);
    }
  }
  const advice = "Set CAIRN_NATIVE_DIR to a directory of this user that allows writing and executing.";
  throw new Error(`The add-on ${addon.name} could not be unpacked and loaded.\n${refusals.join("\n")}\n${advice}`);
}

/**
 * The level of the vector add-on to load: the setting, else the best one this processor knows.
 *
 * @public called by what `scripts/native-plugin.ts` generates
 */
export function chosenSimdLevel(): SimdLevel {
  return settings().simd ?? bestSimdLevel(cpuFlags());
}

/** The best level for a processor with these flags. */
export function bestSimdLevel(flags: ReadonlySet<string>): SimdLevel {
  return SIMD_LEVELS.find((level) => SIMD_REQUIREMENTS[level].every((flag) => flags.has(flag))) ?? "sse";
}

/** Flags of the first processor; none where /proc is not mounted, which leads to the level that runs everywhere. */
export function cpuFlags(): ReadonlySet<string> {
  try {
    const line = /^flags\s*:(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"));
    return new Set(line?.[1]?.trim().split(" "));
  } catch {
    return new Set();
  }
}

/** Checks whether code for processors without AVX2 is all that runs here, as far as the system says. */
export function lacksAvx2(
  flags: ReadonlySet<string> = cpuFlags(),
  { platform, arch }: Pick<NodeJS.Process, "platform" | "arch"> = process,
): boolean {
  return platform === "linux" && arch === "x64" && flags.size > 0 && !flags.has("avx2");
}

function settings(): NativeSettings {
  const value: unknown = getEnvironmentData(SETTINGS_KEY);
  return typeof value === "object" && value !== null ? value : {};
}

/** /dev/shm comes last: it is lost with the machine's memory, but is often writable where nothing else is. */
function candidateDirectories({ directory, dataDirectory }: NativeSettings): string[] {
  const ownName = `cairn-${process.geteuid?.()}`;
  const shared = [join(tmpdir(), ownName), join("/dev/shm", ownName)];
  return [directory, dataDirectory && join(dataDirectory, NATIVE_DIRECTORY), ...shared].filter(
    (path): path is string => path !== undefined && path !== "",
  );
}

/** Path of the add-on's verified file inside `directory`. */
function unpack(addon: EmbeddedAddon, directory: string): string {
  ensurePrivateDirectory(directory);
  const path = join(directory, unpackedName(addon));
  if (!hasHash(path, addon.sha256)) writeAtomically(path, readFileSync(addon.path));
  return path;
}

function unpackedName({ name, sha256 }: Pick<EmbeddedAddon, "name" | "sha256">): string {
  return `${name}-${sha256.slice(0, SHORT_HASH_LENGTH)}.node`;
}

/**
 * Removes what other versions have unpacked into a data directory that this process has locked. A command of theirs that still
 * runs has its add-on mapped, and one that starts later unpacks it again.
 *
 * @param addons - those of this executable; from source there are none, and nothing is removed
 */
export function removeOtherAddons(
  dataDirectory: string,
  addons: readonly Pick<EmbeddedAddon, "name" | "sha256">[] | undefined = IS_EXECUTABLE ? CAIRN_ADDONS : undefined,
): void {
  if (addons === undefined) return;
  const directory = join(dataDirectory, NATIVE_DIRECTORY);
  const own = new Set(addons.map(unpackedName));
  for (const name of namesIn(directory)) {
    const [, unpacked] = UNPACKED.exec(name) ?? [];
    if (unpacked !== undefined && !own.has(unpacked)) rmSync(join(directory, name), { force: true });
  }
}

/** The files of a directory of this user's; none where there is no such directory, or a link in its place. */
function namesIn(directory: string): string[] {
  const stats = lstatSync(directory, { throwIfNoEntry: false });
  return stats?.isDirectory() === true && stats.uid === process.geteuid?.() ? readdirSync(directory) : [];
}

function ensurePrivateDirectory(directory: string): void {
  try {
    mkdirSync(directory, { mode: 0o700 });
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
  const stats = lstatSync(directory);
  if (!stats.isDirectory()) throw new Error("not a directory");
  if (stats.uid !== process.geteuid?.()) throw new Error("belongs to another user");
  if ((stats.mode & 0o022) !== 0) throw new Error("other users can write to it");
}

function hasHash(path: string, sha256: string): boolean {
  try {
    return createHash("sha256").update(readFileSync(path)).digest("hex") === sha256;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

/** Two processes may do this at once: each writes its own file, and the rename leaves one whole file either way. */
function writeAtomically(path: string, bytes: Uint8Array): void {
  const temporaryPath = `${path}.${randomUUID()}`;
  try {
    writeFileSync(temporaryPath, bytes, { mode: 0o500, flag: "wx" });
    renameSync(temporaryPath, path);
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}

function open(path: string): unknown {
  const loaded: { exports: unknown } = { exports: {} };
  process.dlopen(loaded, path);
  return loaded.exports;
}
