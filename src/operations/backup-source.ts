/**
 * Places that a backup is read from: a file, or an object in a bucket.
 *
 * @module
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { Bucket, BUCKET_URL_FORM, BucketError, isBucketUrl, parseBucketUrl, type BucketAccess } from "../lib/s3.ts";
import { backupIn } from "./own-backups.ts";
import { OperationError } from "./report.ts";

export interface BackupSource {
  /** Path or address, for messages. */
  readonly name: string;
  size(): Promise<number>;
  /** Bytes from an offset on, as they come. */
  read(from?: number): AsyncIterable<Uint8Array>;
}

const CHUNK_BYTES = 1024 * 1024;

export function backupFile(path: string): BackupSource {
  return {
    name: path,
    async size() {
      const file = await stat(path);
      if (!file.isFile())
        throw new OperationError(`${path} is not a backup file but ${file.isDirectory() ? "a directory" : "something else"}.`);
      return file.size;
    },
    read: (from = 0) => createReadStream(path, { start: from, highWaterMark: CHUNK_BYTES }),
  };
}

export function backupObject(bucket: Bucket, name: string): BackupSource {
  return { name: bucket.url(name), size: () => bucket.size(name), read: (from) => bucket.read(name, from) };
}

const SUFFIX = ".cairn";

/**
 * Returns the backup in a file, or at the address of a bucket as `backupAt` does.
 *
 * @param number - of the store whose backups count below a prefix; without it the prefix must be of one store
 */
export async function placedBackup(place: string, access: BucketAccess, number?: string): Promise<BackupSource> {
  return isBucketUrl(place) ? await backupAt(place, access, number) : backupFile(place);
}

/**
 * Returns the backup at an address: an object, or the newest below a prefix.
 *
 * @throws {OperationError} where there is none, or where those of several stores lie together
 */
async function backupAt(url: string, access: BucketAccess, number: string | undefined): Promise<BackupSource> {
  const place = parseBucketUrl(url);
  if (place === undefined) throw new OperationError(`${url} is no address of a bucket: that is ${BUCKET_URL_FORM}.`);
  return await saying(url, async () => {
    const parts = place.prefix.split("/");
    const name = parts.at(-1) ?? "";
    if (name.endsWith(SUFFIX)) return backupObject(new Bucket({ ...place, prefix: parts.slice(0, -1).join("/") }, access), name);
    const bucket = new Bucket(place, access);
    return backupObject(bucket, newestOf(await bucket.list(), url, number).name);
  });
}

/** Returns what `work` does. @throws {OperationError} for what the bucket says */
export async function saying<Result>(url: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof BucketError)) throw error;
    throw new OperationError(`${url} cannot be read: ${error.message}`, { cause: error });
  }
}

function newestOf(objects: readonly { name: string }[], url: string, number: string | undefined): { name: string } {
  const backups = objects.flatMap(({ name }) => {
    const found = backupIn(name);
    return found === undefined || (number !== undefined && found.number !== number) ? [] : [{ name, ...found }];
  });
  const newest = backups.toSorted((a, b) => (a.id < b.id ? -1 : 1)).at(-1);
  if (newest === undefined) throw new OperationError(`There is no backup${number === undefined ? "" : " of this store"} in ${url}.`);
  const others = [...new Map(backups.map((one) => [one.number, one.name])).values()];
  if (others.length > 1)
    throw new OperationError(`${url} holds backups of ${others.length} stores. Name one of them, such as ${url}/${others.join(" or ")}.`);
  return newest;
}
