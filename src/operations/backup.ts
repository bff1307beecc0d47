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
import { appendFile, open } from "node:fs/promises";
import { join } from "node:path";
import { mkdirSync } from "node:fs";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { digest, freeBytes, megabytes, type Digest } from "../lib/files.ts";
import { NO_PARTITION } from "../lib/ids.ts";
import { toIso } from "../lib/time.ts";
import { version } from "../lib/version.ts";
import { FREE_BYTES_MIN, isDamage } from "../storage/lmdb/disk/disk-errors.ts";
import { DATA_FILE, STORE_DIRECTORY } from "../storage/lmdb/file/data-file.ts";
import { Store } from "../storage/lmdb/store.ts";
import { BACKUP_NUMBER, memories, meta, sessions, SCHEMA_VERSION } from "../storage/tables.ts";
import type { BackupSource } from "./backup-source.ts";
import { checkFile } from "./damage.ts";
import { writeAtomically, type WriteOptions } from "./files.ts";
import { putStore } from "./new-store.ts";
import { backupNumberIn } from "./own-backups.ts";
import { OperationError, type OnProgress } from "./report.ts";

const FORMAT = 1;
const DESCRIPTION_BYTES = 512;
const FINDINGS_SHOWN_MAX = 3;
const DAMAGED = "The store is damaged, so that no backup was written. cairn doctor says what is lost.";

export interface Description extends Digest {
  cairn_backup: number;
  cairn: string;
  schema: number;
  created_at: string;
}

export async function writeBackup(store: Store, clock: Clock, path: string, options: WriteOptions): Promise<Description> {
  const header = { cairn_backup: FORMAT, cairn: version, schema: store.schema, created_at: toIso(clock.now()) };
  let description: Description = { ...header, bytes: 0, sha256: "" };
  await writeAtomically(path, options, async (directory) => {
    const isCurrent = store.schema === SCHEMA_VERSION;
    const assertWhole = (file: string) => assertCopy(file, { decode: isCurrent }, DAMAGED);
    // LMDB copies pages as they are, and follows what a damaged one says: that can end the process.
    using _pinned = store.snapshot();
    assertCopy(join(store.directory, DATA_FILE), { decode: false }, DAMAGED);
    try {
      await store.backup(directory);
    } catch (error) {
      if (!isDamage(error)) throw new OperationError(`${path} cannot be written: ${messageOf(error)}.`, { cause: error });
      assertWhole(join(store.directory, DATA_FILE));
      throw new OperationError(DAMAGED, { cause: error });
    }
    const copy = join(directory, "data.mdb");
    assertWhole(copy);
    description = { ...header, ...(await digest(copy)) };
    await appendFile(copy, `${JSON.stringify(description).padEnd(DESCRIPTION_BYTES - 1)}\n`);
    return copy;
  });
  return description;
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
  source: BackupSource,
  dataDirectory: string,
  clock: Clock,
  { force }: WriteOptions,
  onProgress?: OnProgress,
): Promise<Restored> {
  const description = await describeBackup(source);
  const { name } = source;
  const number = backupNumberIn(dataDirectory);
  const refusal = force ? undefined : `There is a store in ${dataDirectory} already. Restore elsewhere, or replace it with --force.`;
  let counts = { sessions: 0, memories: 0 };
  await putStore(dataDirectory, refusal, async (incoming) => {
    assertSpace(description.bytes, incoming);
    mkdirSync(join(incoming, STORE_DIRECTORY), { mode: 0o700 });
    const copyPath = join(incoming, DATA_FILE);
    await copyChecked(source, description, copyPath, onProgress);
    const isCurrent = description.schema === SCHEMA_VERSION;
    assertCopy(copyPath, { decode: isCurrent }, `${name} is a backup of a damaged store. Nothing was changed.`);
    const store = await Store.open(incoming, clock, { older: true });
    counts = { sessions: store.count(sessions), memories: store.count(memories) };
    const { schema } = store;
    // The store that the backup is of may be in use, and the one that is replaced has backups.
    await store.commit(NO_PARTITION, (tx) => (number === undefined ? tx.remove(meta, BACKUP_NUMBER) : tx.put(meta, BACKUP_NUMBER, number)));
    await store.close();
    if (schema !== description.schema) throw new OperationError(`${name} has another schema than it says. Nothing was changed.`);
  });
  return { ...description, ...counts };
}

/** @throws {OperationError} without space on the disk for the store and what a server on it writes meanwhile */
function assertSpace(bytes: number, directory: string): void {
  const [needed, free] = [bytes + FREE_BYTES_MIN, freeBytes(directory)];
  if (free < needed)
    throw new OperationError(
      `There is no space to restore it: ${megabytes(needed)} are needed on the disk, and ${megabytes(free)} are free.`,
    );
}

/** Copies the store out of a backup. @throws {OperationError} when it is not what was written */
async function copyChecked(source: BackupSource, { bytes, sha256 }: Description, copyPath: string, onProgress?: OnProgress): Promise<void> {
  await using copy = await open(copyPath, "wx", 0o600);
  const hasher = new Bun.CryptoHasher("sha256");
  let done = 0;
  for await (const piece of source.read()) {
    const chunk = piece.subarray(0, bytes - done);
    if (chunk.byteLength === 0) continue;
    hasher.update(chunk);
    await copy.writeFile(chunk);
    done += chunk.byteLength;
    onProgress?.(done, bytes);
  }
  if (done !== bytes || hasher.digest("hex") !== sha256)
    throw new OperationError(`${source.name} is damaged: it is not what was written. Nothing was changed.`);
}

/** @throws {OperationError} when a page or a row of a copy cannot be read */
function assertCopy(path: string, options: { decode: boolean }, problem: string): void {
  const { findings } = checkFile(path, options);
  if (findings.length === 0) return;
  const found = findings.slice(0, FINDINGS_SHOWN_MAX).map(({ what, count }) => `${what}: ${count}`);
  throw new OperationError(`${problem} Found: ${found.join("; ")}.`);
}

/** Reads and checks the description of a backup, as far as that is possible without reading all of it. */
export async function describeBackup(source: BackupSource): Promise<Description> {
  const { name } = source;
  const bytes = (await source.size()) - DESCRIPTION_BYTES;
  const found = descriptionIn(await Array.fromAsync(source.read(Math.max(0, bytes))));
  if (!isDescription(found)) throw new OperationError(`${name} is not a Cairn backup, or it is truncated. Nothing was changed.`);
  if (found.cairn_backup !== FORMAT || found.schema > SCHEMA_VERSION)
    throw new OperationError(`${name} was written by Cairn ${found.cairn}, which is newer. Restore it with that one.`);
  if (found.bytes !== bytes) throw new OperationError(`${name} is damaged: its length is wrong. Nothing was changed.`);
  return found;
}

/** Undefined for what is no JSON. */
function descriptionIn(pieces: readonly Uint8Array[]): unknown {
  try {
    return JSON.parse(Buffer.concat(pieces).toString());
  } catch {
    return undefined;
  }
}

function isDescription(value: unknown): value is Description {
  const { cairn_backup, sha256 } = (value ?? {}) as Partial<Description>;
  return typeof cairn_backup === "number" && typeof sha256 === "string";
}
