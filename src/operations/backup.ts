/**
 * A backup: the whole store in one file, taken while it is in use.
 *
 * ```
 * the store, as LMDB writes a copy of it      `bytes` long
 * one line of JSON: what it is                 512 bytes, spaces at the end
 * ```
 * The description comes last, so a file that was cut short has none. It names the length and the SHA-256 of what comes
 * before. The vector index is not in it: it is built again from the store.
 *
 * @module
 */
import { appendFile, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { mkdirSync } from "node:fs";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { toIso } from "../lib/time.ts";
import { version } from "../lib/version.ts";
import { DATA_FILE, STORE_DIRECTORY } from "../storage/data-file.ts";
import { isDamage } from "../storage/refusal.ts";
import { Store } from "../storage/store.ts";
import { BACKUP_NUMBER, memories, meta, sessions, SCHEMA_VERSION } from "../storage/tables.ts";
import { checkFile } from "./damage.ts";
import { writeWhole, type WriteOptions } from "./files.ts";
import { putStore } from "./new-store.ts";
import { OperationError, type OnProgress } from "./report.ts";

const FORMAT = 1;
const DESCRIPTION_BYTES = 512;
const CHUNK_BYTES = 1024 * 1024;
const FINDINGS_SHOWN_MAX = 3;
const DAMAGED = "The store is damaged, so that no backup was written. cairn doctor says what is lost.";

export interface Description {
  cairn_backup: number;
  cairn: string;
  schema: number;
  created_at: string;
  bytes: number;
  sha256: string;
}

export async function writeBackup(store: Store, clock: Clock, path: string, options: WriteOptions): Promise<Description> {
  const taken: { description?: Description } = {};
  await writeWhole(path, options, async (directory) => {
    const created_at = toIso(clock.now());
    const isCurrent = store.schema === SCHEMA_VERSION;
    const assertWhole = (file: string) => assertCopy(file, { decode: isCurrent }, DAMAGED);
    try {
      await store.backup(directory);
    } catch (error) {
      if (!isDamage(error)) throw new OperationError(`${path} cannot be written: ${messageOf(error)}.`, { cause: error });
      assertWhole(join(store.directory, DATA_FILE));
      throw new OperationError(DAMAGED, { cause: error });
    }
    const copy = join(directory, "data.mdb");
    assertWhole(copy);
    const { bytes, sha256 } = await digest(copy, Number.POSITIVE_INFINITY, () => undefined);
    taken.description = { cairn_backup: FORMAT, cairn: version, schema: store.schema, created_at, bytes, sha256 };
    await appendFile(copy, `${JSON.stringify(taken.description).padEnd(DESCRIPTION_BYTES - 1)}\n`);
    return copy;
  });
  return taken.description as Description;
}

export interface Restored extends Description {
  sessions: number;
  memories: number;
}

/**
 * Makes a backup the store of a data directory, after it was found whole and has been opened. One of an older Cairn is
 * brought up to date when it is served.
 *
 * @throws {OperationError} when the file is no whole backup, or there is a store and `force` is not set
 */
export async function restoreBackup(
  path: string,
  dataDirectory: string,
  clock: Clock,
  { force }: WriteOptions,
  onProgress?: OnProgress,
): Promise<Restored> {
  const description = await describe(path);
  const refusal = force ? undefined : `There is a store in ${dataDirectory} already. Restore elsewhere, or replace it with --force.`;
  let counts = { sessions: 0, memories: 0 };
  await putStore(dataDirectory, refusal, async (draft) => {
    mkdirSync(join(draft, STORE_DIRECTORY), { mode: 0o700 });
    const copyPath = join(draft, DATA_FILE);
    const copy = await open(copyPath, "wx", 0o600);
    try {
      let done = 0;
      const found = await digest(path, description.bytes, async (chunk) => {
        await copy.writeFile(chunk);
        onProgress?.((done += chunk.byteLength), description.bytes);
      });
      if (found.bytes !== description.bytes || found.sha256 !== description.sha256) {
        throw new OperationError(`${path} is damaged: it is not what was written. Nothing was changed.`);
      }
    } finally {
      await copy.close();
    }
    const isCurrent = description.schema === SCHEMA_VERSION;
    assertCopy(copyPath, { decode: isCurrent }, `${path} is a backup of a damaged store. Nothing was changed.`);
    const store = await Store.open(draft, clock, { older: true });
    counts = { sessions: store.count(sessions), memories: store.count(memories) };
    const { schema } = store;
    // The store that the backup is of may be in use.
    await store.commit((tx) => tx.remove(meta, BACKUP_NUMBER));
    await store.close();
    if (schema !== description.schema) throw new OperationError(`${path} has another schema than it says. Nothing was changed.`);
  });
  return { ...description, ...counts };
}

/** @throws {OperationError} when a page or a row of a copy cannot be read */
function assertCopy(path: string, options: { decode: boolean }, problem: string): void {
  const { findings } = checkFile(path, options);
  if (findings.length === 0) return;
  const found = findings.slice(0, FINDINGS_SHOWN_MAX).map(({ what, count }) => `${what}: ${count}`);
  throw new OperationError(`${problem} Found: ${found.join("; ")}.`);
}

/** What a backup says of itself, as far as that can be told without reading all of it. */
async function describe(path: string): Promise<Description> {
  const file = await stat(path);
  if (!file.isFile()) throw new OperationError(`${path} is no backup file, but ${file.isDirectory() ? "a directory" : "something else"}.`);
  const { size } = file;
  const text = await Bun.file(path)
    .slice(Math.max(0, size - DESCRIPTION_BYTES), size)
    .text();
  const description = parsed(text);
  if (description === undefined) throw new OperationError(`${path} is no backup of Cairn's, or it was cut short. Nothing was changed.`);
  if (description.cairn_backup !== FORMAT || description.schema > SCHEMA_VERSION) {
    throw new OperationError(`${path} was written by Cairn ${description.cairn}, which is newer. Restore it with that one.`);
  }
  if (description.bytes !== size - DESCRIPTION_BYTES)
    throw new OperationError(`${path} is damaged: its length is wrong. Nothing was changed.`);
  return description;
}

function parsed(text: string): Description | undefined {
  try {
    const value = JSON.parse(text) as Partial<Description> | null;
    return typeof value?.cairn_backup === "number" && typeof value.sha256 === "string" ? (value as Description) : undefined;
  } catch {
    return undefined;
  }
}

/** Reads the first bytes of a file once: hands each piece to `take`, and returns how many there were and their hash. */
async function digest(
  path: string,
  length: number,
  take: (chunk: Uint8Array) => void | Promise<void>,
): Promise<{ bytes: number; sha256: string }> {
  const hasher = new Bun.CryptoHasher("sha256");
  const file = await open(path, "r");
  const buffer = new Uint8Array(CHUNK_BYTES);
  let bytes = 0;
  try {
    while (bytes < length) {
      const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.byteLength, length - bytes));
      if (bytesRead === 0) break;
      const chunk = buffer.subarray(0, bytesRead);
      hasher.update(chunk);
      await take(chunk);
      bytes += bytesRead;
    }
  } finally {
    await file.close();
  }
  return { bytes, sha256: hasher.digest("hex") };
}
