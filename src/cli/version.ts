/**
 * `cairn version`: which Cairn this is; with `--native` whether its native add-ons work here, with `--check` whether there is a
 * newer one.
 *
 * Plain `version` loads nothing native and writes nothing, so it also works where the server does not: an installer asks with
 * `--native`. Nothing looks for newer versions by itself.
 *
 * @module
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { configOf, parseFlags, UsageError } from "../config.ts";
import { chosenSimdLevel, configureNative } from "../lib/native.ts";
import { commit, releases, target, version } from "../lib/version.ts";
import { SCHEMA_VERSION } from "../storage/tables.ts";
import { compareVersions, fetchLatest, upgradeCommand } from "./latest.ts";
import { print } from "./print.ts";

/** Files by which Docker and Podman mark a container. */
const CONTAINER_MARKS = ["/.dockerenv", "/run/.containerenv"];

export async function printVersion(args: readonly string[]): Promise<number> {
  const { flags, has } = parseFlags(args, { flags: ["url"], switches: ["native", "check"] });
  const { url, ...settings } = flags;
  if (url !== undefined && !has("check")) throw new UsageError("--url needs --check");
  const address = has("check") ? addressOf(url ?? releases) : undefined;
  await print([`cairn ${version}`, ...(target === null ? [] : [target]), ...(commit === null ? [] : [`(${commit})`])].join(" "));
  if (has("native")) await loadAddons(settings);
  if (address !== undefined) await check(address);
  return 0;
}

/** Loads the add-ons as a server would, but unpacks them into the data directory only when nothing else will do. */
async function loadAddons(flags: Readonly<Record<string, string | undefined>>): Promise<void> {
  const { nativeDirectory, dataDirectory, simd } = configOf(flags);
  const temporary = mkdtempSync(join(tmpdir(), "cairn-native-"));
  try {
    configureNative({ directory: nativeDirectory ?? temporary, dataDirectory, simd });
    await import("../storage/lmdb/store.ts");
    await print("lmdb: loads");
    const { loadHnswlib } = await import("../search/graph/hnsw-index.ts");
    loadHnswlib();
    await print(process.arch === "x64" ? `hnswlib: loads (${chosenSimdLevel()})` : "hnswlib: loads");
    const { checkEncoder } = await import("../embeddings/builtin/self-check.ts");
    await print(`encoder: computes what it should (${checkEncoder().join(", ")})`);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function addressOf(url: string | null): URL {
  if (url === null) throw new UsageError("this Cairn was not built by a release: say with --url where releases are published");
  const address = URL.parse(url.endsWith("/") ? url : `${url}/`);
  if (address === null || !["http:", "https:"].includes(address.protocol))
    throw new UsageError(`--url must be an address such as https://cairn.example.com/releases; got ${url}`);
  return address;
}

async function check(address: URL): Promise<void> {
  const latest = await fetchLatest(address);
  const order = compareVersions(latest.version, version);
  if (order === 0) return print("This is the newest version.");
  if (order < 0) return print(`The newest version that is published is ${latest.version}.`);
  await print(`Cairn ${latest.version} of ${latest.date} is newer.`);
  if (latest.schema !== SCHEMA_VERSION)
    await print(
      `Its store has schema ${latest.schema}, this one's has ${SCHEMA_VERSION}: its first start writes a backup, about as large as the store, and then migrates it.`,
    );
  const isContainer = CONTAINER_MARKS.some((path) => existsSync(path));
  await print(`  ${upgradeCommand(latest.version, address, { executable: process.execPath, home: homedir(), isContainer })}`);
}
